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

/** Cases outside the areas to come that wait for a part of the product, and are not judged until then; one that is judged comes off. */
export const waiting: ReadonlyMap<string, string> = new Map([
  [
    'trust-007',
    'a link to another machine is refused with its address until packs come from there; the suite in VS Code holds that no link installs unasked',
  ],
]);
