/** Which operation of a case is done by which of our functions. */
import type { ConformanceCase } from './caseFile.ts';
import type { CaseWorld } from './caseWorld.ts';
import type { Observed } from './expectations.ts';
import { agentOperations } from './ops/agents.ts';
import { chatOperations } from './ops/chats.ts';
import { commandLineOperations } from './ops/commandLine.ts';
import { configOperations } from './ops/config.ts';
import { fsCommandOperations } from './ops/fsCommands.ts';
import { fsSkillOperations } from './ops/fsSkills.ts';
import { logOperations } from './ops/log.ts';
import { mcpOperations } from './ops/mcp.ts';
import { packOperations } from './ops/packs.ts';
import { pickingOperations } from './ops/picking.ts';
import { projectContextOperations } from './ops/projectContext.ts';
import { providerOperations } from './ops/providers.ts';
import { routingOperations } from './ops/routing.ts';
import { runOperations } from './ops/runs.ts';
import { skillOperations } from './ops/skills.ts';
import { toolOperations } from './ops/tools.ts';
import { workflowOperations } from './ops/workflow.ts';

/** Does what a case says and tells what is to be seen afterwards; throws `CannotJudge` if the product has no part for it yet. */
export type Operation = (testCase: ConformanceCase, world: CaseWorld) => Promise<Observed>;
export type Operations = Readonly<Record<string, Operation>>;

export const operations: Operations = {
  ...skillOperations,
  ...agentOperations,
  ...chatOperations,
  ...configOperations,
  ...routingOperations,
  ...fsSkillOperations,
  ...fsCommandOperations,
  ...packOperations,
  ...toolOperations,
  ...runOperations,
  ...logOperations,
  ...providerOperations,
  ...mcpOperations,
  ...commandLineOperations,
  ...pickingOperations,
  ...workflowOperations,
  ...projectContextOperations,
};
