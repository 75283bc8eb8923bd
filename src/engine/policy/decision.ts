/** What a decision is made from and what comes out of it: data that the parts of the policy share. */

import { join } from 'node:path';
import type { AgentCard } from '../../protocol/agentCard.ts';
import type { ApprovalScope } from '../../protocol/run.ts';
import type { Config } from '../config.ts';
import type { McpToolFacts } from '../mcp/tools.ts';
import { secretFinder, secretsIn } from '../redact.ts';
import type { ReadOnlyCommand } from '../tools/readOnlyShell.ts';
import type { RunFolders } from '../tools/tool.ts';
import type { ReviewedAgent } from './agentFiles.ts';
import { AgentReviews } from './agentReviews.ts';
import type { RuleDraft } from './policyEdit.ts';
import { PolicyFile } from './policyFile.ts';

/** What one run has been allowed and has seen, as far as later decisions of it depend on that. */
export class RunMemory {
  /** By the name of what was granted, see `grantName`. */
  readonly grants = new Set<string>();
  /** A file with secrets that the run has read; from then on its fetches are asked about. */
  sensitive: string | undefined;
  /** The card has been shown, so that what it would not cover is asked about alone. */
  cardShown = false;
}

export interface PolicyContext extends RunFolders {
  /** What `~` means. Absolute. */
  home: string;
  /** The folder that Telos was started in, where it is known. Absolute. */
  currentDir?: string;
  /** Telos's own configuration and data; no call reads or writes in them. Absolute. */
  protectedDirs: readonly string[];
  /** The server and the tool behind a name; undefined for the names of other tools. */
  mcpTool?: (name: string) => McpToolFacts | undefined;
  /** Whose run it is; without it no rule for a named agent fits, and no card is shown. */
  agent?: ReviewedAgent;
  /** The user's own rules. */
  rules?: PolicyFile;
  reviews?: AgentReviews;
  memory?: RunMemory;
  /** The skill's own limit on its commands, such as `git *`: no other one may even be asked for. */
  commandPatterns?: readonly string[] | undefined;
  /** A step that looks and changes nothing. */
  role?: 'read-only';
  /** Where the question would be asked, where that counts. */
  surface?: 'discord';
  /** True for a text that holds the value of a loaded secret, in any usual encoding. */
  holdsSecret?: (text: string) => boolean;
  /** What the user has set; agents see the variables that their accepted card names. */
  env?: Readonly<Record<string, string>>;
}

/** What an answer of `always` writes down: one rule in policy.toml, the acceptance of the card that was shown, or both where that card does not cover the call. */
export interface LastingGrant {
  rule?: RuleDraft;
  card?: AgentCard;
}

/**
 * `rule` is stable and greppable; one that begins with `floor.` is lifted by no answer. `subject` is exactly what the call would touch: the
 * real path, the normal form of the address, or the command. Whoever carries out the call hands it to the tool as `approvedSubject`, so that what was decided on
 * is what is done.
 */
export type Decision = Allow | Ask | Deny;

export interface Allow {
  action: 'allow';
  rule: string;
  subject: string;
  /** Of a command: where it was decided that it may run. Real and absolute. */
  folder?: string;
  /** A command that only looks at files, as it was checked: to be run in place of the line, without a shell. */
  readOnly?: ReadOnlyCommand;
}

export interface Ask {
  action: 'ask';
  rule: string;
  reason: string;
  subject: string;
  /** As of `Allow`. */
  folder?: string;
  scopes: readonly ApprovalScope[];
  /** See `ApprovalRequest`. */
  grant?: string;
  card?: AgentCard;
  /** Present when `always` is offered. */
  lasting?: LastingGrant;
  /** What the user can do beforehand so that it is not asked, in a sentence. */
  toAllow?: string;
}

export interface Deny {
  action: 'deny';
  rule: string;
  reason: string;
}

export const allow = (rule: string, subject: string): Allow => ({ action: 'allow', rule, subject });
export const deny = (rule: string, reason: string): Deny => ({ action: 'deny', rule, reason });

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
