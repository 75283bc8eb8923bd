/** Where a case and the policy, or two papers, say different things: what is decided, by the case that comes nearest. */
export const decided: ReadonlyMap<string, string> = new Map([
  [
    'trust-005',
    "a workspace's top-level mcp.json asks, as the workspace's skills and scripts do; it is neither refused nor started unasked",
  ],
  [
    'mcp-024',
    'an MCP call is cut at 5 minutes whatever it reports, and after 60 s in which it says nothing; the server is told',
  ],
]);

/** Cases that the product decides otherwise on purpose, each with the section that says so. All that they check otherwise must hold. */
export const contradictions: ReadonlyMap<string, string> = new Map([
  [
    'workflow-003',
    'section 7 of the design: a planner only reads, and hands plan.md in by submit_plan; the engine writes the file',
  ],
  [
    'workflow-005',
    'section 7 of the design: who splits a plan only reads, and hands each story in by submit_story; the engine writes the files',
  ],
]);
