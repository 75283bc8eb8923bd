/** Puts together what the decisions of a run are made from. */
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { secretFinder, secretsIn } from '../redact.ts';
import type { RunFolders } from '../tools/tool.ts';
import type { ReviewedAgent } from './agentFiles.ts';
import { AgentReviews } from './agentReviews.ts';
import { type PolicyContext, RunMemory } from './decision.ts';
import { PolicyFile } from './policyFile.ts';

type PolicyPlaces = Pick<Config, 'configDir' | 'home'>;

/** The user's own rules, in the user's own folder and nowhere else. */
export const openPolicyFile = ({ configDir, home }: PolicyPlaces): PolicyFile =>
  new PolicyFile(join(configDir, 'policy.toml'), home);

export const openReviews = ({ configDir }: PolicyPlaces): AgentReviews =>
  new AgentReviews(join(configDir, 'reviews'));

/** For one run of an agent; without one only rules for every agent hold. */
export function runPolicy(
  config: Pick<Config, 'configDir' | 'dataDir' | 'home' | 'env'> & Partial<Pick<Config, 'cwd'>>,
  agent: ReviewedAgent | undefined,
  folders: RunFolders,
): PolicyContext {
  const { configDir, dataDir, home, env, cwd } = config;
  return {
    ...folders,
    home,
    ...(cwd === undefined ? {} : { currentDir: cwd }),
    protectedDirs: [configDir, dataDir],
    ...(agent ? { agent } : {}),
    rules: openPolicyFile(config),
    reviews: openReviews(config),
    memory: new RunMemory(),
    holdsSecret: secretFinder(secretsIn(env)),
    env,
  };
}
