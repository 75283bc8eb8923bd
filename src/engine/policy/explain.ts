/** How a call would be decided on now, for somebody who wants to know before it happens. */
import type { JsonObject } from '../../protocol/run.ts';
import type { Config } from '../config.ts';
import type { RunFolders } from '../tools/tool.ts';
import type { ReviewedAgent } from './agentFiles.ts';
import { decide } from './decide.ts';
import type { Decision } from './decision.ts';
import { runPolicy } from './runPolicy.ts';

/** Without an agent, the rules for every agent and the folder of the call count. Asks nobody. */
export async function explainCall(
  tool: string,
  input: JsonObject,
  config: Pick<Config, 'configDir' | 'dataDir' | 'home' | 'env' | 'cwd'>,
  agent: ReviewedAgent | undefined,
  folders: RunFolders = {
    workingDir: config.cwd,
    packDir: config.cwd,
    skillDir: config.cwd,
    commandDir: config.cwd,
  },
): Promise<Decision> {
  return decide({ id: 'explain', name: tool, input }, runPolicy(config, agent, folders));
}
