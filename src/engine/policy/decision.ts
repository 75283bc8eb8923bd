/** Defines the context and the result of a decision, which the parts of the policy share. */

import { join } from 'node:path';
import type { AgentCard } from '@telos/protocol/agentCard';
import type { BoxState } from '@telos/protocol/doctorReport';
import type { ApprovalRequest, ApprovalScope, Danger, Remedy, RunMode } from '@telos/protocol/run';
import type { Sentence } from '@telos/protocol/text';
import { type Config, type SandboxMode, telosFolders } from '../config.ts';
import type { McpToolFacts } from '../mcp/tools.ts';
import { secretFinder, secretsIn } from '../redact.ts';
import type { ReadOnlyCommand } from '../tools/readOnlyShell.ts';
import type { RunFolders } from '../tools/tool.ts';
import type { ReviewedAgent } from './agentFiles.ts';
import { AgentReviews, type ReviewState } from './agentReviews.ts';
import type { RuleDraft } from './policyEdit.ts';
import { PolicyFile } from './policyFile.ts';

/** Grants and sensitive reads of one run, as far as its later decisions depend on them. */
export class RunMemory {
  /** Names of what was granted, see `grantName`. */
  readonly grants = new Set<string>();
  /** A file with secrets that the run has read. From then on its fetches are asked about. */
  sensitive: string | undefined;
  /** Files that the run has made because the agent's card names them. */
  readonly made = new Set<string>();
  /** True if the card has been shown. Calls that it would not cover are then asked about without it. */
  cardShown = false;

  /**
   * Hosts that commands may reach for the rest of the conversation, with their ports, and the digest of the agent's files at the time of
   * the yes. Later runs of the conversation share it.
   */
  hosts = new Map<string, string | undefined>();
}

/** Why no box for commands works, and the exact command that mends it. */
export interface NoBox {
  why: string;
  mend?: string;
  /** Set as soon as a question of the conversation has said so. */
  isTold?: boolean;
}

export interface PolicyContext extends RunFolders {
  /** Folder that `~` means. Absolute path. */
  home: string;
  /** Folder that Telos was started in, if it is known. Absolute path. */
  currentDir?: string;
  /** Folders of Telos's own configuration and data, which come last, and hidden ones. No call reads or writes in them. Absolute paths. */
  protectedDirs: readonly string[];
  /** Those of them that are closed for this run alone. */
  hiddenDirs?: readonly string[];
  /** Returns the server and the tool behind a name; undefined for the names of other tools. */
  mcpTool?: (name: string) => McpToolFacts | undefined;
  /** The agent of the run. Without it, no rule for a named agent fits and no card is shown. */
  agent?: ReviewedAgent;
  /** True for a run without a skill. Its own rules name the agent `telos` and, as its pack, the working folder. */
  isTelos?: true;
  /** The user's own rules. */
  rules?: PolicyFile;
  reviews?: AgentReviews;
  memory?: RunMemory;
  /** Commands that the running skill's `allowed-tools` and `disallowed-tools` name, word by word. */
  namedCommands?: readonly (readonly string[])[];
  disallowedCommands?: readonly (readonly string[])[];
  /** `read-only` looks and changes nothing. `worker` does the work of a plan, in its working folder only. */
  role?: 'read-only' | 'worker';
  /** Chosen by the person for this run. Defaults to `default`. */
  mode?: RunMode;
  /** True for a skill of the user's own, for which the mode `sandbox` takes the place of its permissions. */
  isOwn?: boolean;
  /** Files and folders that a worker changes in no way. Absolute. */
  closed?: readonly string[];
  /** Names of the tools that a step of a plan brings. They have no effect outside of their own answers. */
  stepTools?: ReadonlySet<string>;
  /**
   * Commands of a plan's accepted card. `changed` returns the file that has changed what one of them does. Those in `outside` have the
   * person's rights where others run in the box.
   */
  cardCommands?: {
    commands: readonly string[];
    changed?: (command: string) => Promise<string | undefined>;
    outside?: ReadonlySet<string>;
  };
  /** True if commands can run in a box here, with no more rights than the file tools have without a question. */
  hasBox?: boolean;
  /** True if commands in the box change the working folder directly, since nothing here can hold their changes back. */
  worksDirectly?: boolean;
  /** Why commands can run in no box here. Missing if the person wants none. */
  noBox?: NoBox;
  /** True if no command may run outside of a box. */
  boxRequired?: boolean;
  /** Where the question would be asked, if that matters. */
  surface?: 'discord';
  /** Returns true for a text that contains the value of a loaded secret, in any usual encoding. */
  holdsSecret?: (text: string) => boolean;
  /** Variables that the user has set. Agents see those that their accepted card names. */
  env?: Readonly<Record<string, string>>;
}

/**
 * Permissions that an answer of `always` stores: one rule in policy.toml, or the acceptance of the card that was shown. Both if
 * that card does not cover the call.
 */
export interface LastingGrant {
  rule?: RuleDraft;
  card?: AgentCard;
}

/**
 * The result of a decision. `rule` is stable and can be searched for; no answer overrides one that begins with `floor.`. `subject` is
 * exactly what the call would touch: the real path, the normal form of the address, or the command. The caller passes it to the
 * tool as `approvedSubject`, so that the tool does exactly what was decided on.
 */
export type Decision = Allow | Ask | Deny;

export interface Allow {
  action: 'allow';
  rule: string;
  subject: string;
  /** For a command: the folder in which it may run. Real and absolute path. */
  folder?: string;
  /**
   * For a command whose every part was checked: the line that is started in its place. It is written from the words that were
   * decided on.
   */
  line?: string;
  /** A command that only looks at files, as it was checked. It is run in place of the line, without a shell. */
  readOnly?: ReadOnlyCommand;
  /** Set if the command is allowed in the box only. */
  boxed?: true;
}

export interface Ask {
  action: 'ask';
  rule: string;
  reason: string;
  subject: string;
  /** See `Allow`. */
  folder?: string;
  /** See `Allow`: where the command runs after a yes. */
  boxed?: true;
  scopes: readonly ApprovalScope[];
  /** See `ApprovalRequest`. */
  grant?: string;
  card?: AgentCard;
  /** The rule that allows the call where the mode does not ask. */
  allowedBy?: string;
  /** Present if `always` is offered. */
  lasting?: LastingGrant;
  /** Lets the user avoid the question beforehand. */
  toAllow?: Remedy;
  /** See `ApprovalRequest`. */
  danger?: readonly Danger[];
  sentences?: readonly Sentence[];
  box?: readonly Sentence[];
  form?: ApprovalRequest['form'];
  showsWhole?: true;
  mayLeave?: true;
  /** See `ApprovalRequest`. */
  forConversation?: true;
}

export interface Deny {
  action: 'deny';
  rule: string;
  reason: string;
}

export const allow = (rule: string, subject: string): Allow => ({ action: 'allow', rule, subject });
export const deny = (rule: string, reason: string): Deny => ({ action: 'deny', rule, reason });

type PolicyPlaces = Pick<Config, 'configDir' | 'home'>;

/** Opens the user's own rules, which are in the user's own folder and nowhere else. */
export const openPolicyFile = ({ configDir, home }: PolicyPlaces): PolicyFile =>
  new PolicyFile(join(configDir, 'policy.toml'), home);

export const openReviews = ({ configDir }: PolicyPlaces): AgentReviews =>
  new AgentReviews(join(configDir, 'reviews'));

/** Returns the context for one run of an agent. Without an agent, only rules for every agent hold. */
export function runPolicy(
  config: Pick<Config, 'configDir' | 'dataDir' | 'home' | 'env'> &
    Partial<Pick<Config, 'cwd' | 'hiddenDirs'>>,
  agent: ReviewedAgent | undefined,
  folders: RunFolders,
): PolicyContext {
  const { home, env, cwd, hiddenDirs = [] } = config;
  return {
    ...folders,
    home,
    ...(cwd === undefined ? {} : { currentDir: cwd }),
    protectedDirs: [...hiddenDirs, ...telosFolders(config)],
    hiddenDirs,
    ...(agent ? { agent } : {}),
    rules: openPolicyFile(config),
    reviews: openReviews(config),
    memory: new RunMemory(),
    holdsSecret: secretFinder(secretsIn(env)),
    env,
  };
}

/** Returns the state of the agent; undefined if it cannot be known, and then nothing is granted for the agent. */
export async function reviewOf({ agent, reviews }: PolicyContext): Promise<ReviewState | undefined> {
  if (!agent || !reviews) return undefined;
  return reviews.stateOf(agent).catch(() => undefined);
}

/** Returns what decisions know of the box. `state` is missing where the person wants none. */
export function boxFacts(
  mode: SandboxMode,
  state: BoxState | undefined,
): Pick<PolicyContext, 'hasBox' | 'noBox' | 'boxRequired'> {
  if (mode === 'off' || !state) return {};
  const required = mode === 'required' ? { boxRequired: true } : {};
  if (state.works) return { hasBox: true, ...required };
  const { why, mend } = state;
  return { ...required, noBox: { why, ...(mend !== undefined && { mend }) } };
}
