/** Runs one skill: announces it, prepares its prompt, tools and folders, and starts the loop. */

import { existsSync } from 'node:fs';
import type { Attachment } from '../../protocol/attachment.ts';
import type { Message, RunEvent, RunOutcome } from '../../protocol/run.ts';
import type { Config } from '../config.ts';
import type { WriteKeeper } from '../files/atomicWrite.ts';
import type { Diagnostic } from '../files/diagnostic.ts';
import { isInside, resolvePath } from '../files/paths.ts';
import type { Human } from '../human.ts';
import { hiddenIn } from '../mcp/config.ts';
import { connectServers, type McpServers } from '../mcp/servers.ts';
import type { SignInPort } from '../mcp/signIn.ts';
import { type PolicyContext, runPolicy } from '../policy/decision.ts';
import { rememberEarlierReads } from '../policy/grants.ts';
import { priceOf } from '../providers/prices.ts';
import type { Provider } from '../providers/provider.ts';
import { type Redactor, redactor } from '../redact.ts';
import type { Match } from '../routing/route.ts';
import type { Agent, Skill } from '../skills/agent.ts';
import { type AllowedTools, keepsTool, readAllowedTools } from '../skills/allowedTools.ts';
import { existingSkillRoots, type SkillRoot } from '../skills/findSkills.ts';
import { readinessOf, thisMachine } from '../skills/readiness.ts';
import { resourcesOf, type SkillResources } from '../skills/resources.ts';
import { rememberWorkFolder, workFoldersOf } from '../skills/workFolders.ts';
import { skillTools } from '../tools/builtin.ts';
import { commandEnvironment } from '../tools/command.ts';
import { readOnlyShellTool } from '../tools/readOnlyShell.ts';
import type { RunFolders, Tool } from '../tools/tool.ts';
import { mayConnectServers, policyNotices, signInAt } from './approval.ts';
import type { Budget } from './budget.ts';
import { type RunSpec, runLoop } from './loop.ts';
import {
  fillBody,
  firstMessage,
  missingNotice,
  systemPrompt,
  withAttachments,
  withoutSkillPrompt,
} from './prompt.ts';
import type { RunState } from './request.ts';

/** Maximum number of files beside the skill that are listed for the model. */
const maxResources = 100;

/** Everything that a run is carried out with. */
export interface SkillBench {
  provider: Provider;
  human: Human;
  /** Learns further secrets that the run must hide. */
  redact?: Redactor;
  state: RunState;
  /** Messages of the conversation so far. The run's own messages are added after them. */
  earlier?: readonly Message[];
  /** True if the earlier messages lack the text of the skill that continues. */
  skillIsUnread?: boolean;
  /** Attachments of the request. */
  attachments?: readonly Attachment[];
  config: Config;
  /** Undefined if nothing is limited. */
  budget?: Budget | undefined;
  /** Keeps the state of files before the run. */
  changes?: WriteKeeper | undefined;
  /** See `FrontendParts`. */
  ripgrep?: string | undefined;
  signIn?: SignInPort | undefined;
  /** See `RunFolders`. Defaults to those of this agent alone. */
  workFolders?: readonly string[];
}

/** Returns how the run ended. Throws errors that prevent it. `words` is the request with the selection. */
export async function* runSkill(
  match: Match,
  words: string,
  {
    provider,
    human,
    redact = redactor([]),
    state,
    earlier = [],
    attachments = [],
    skillIsUnread = false,
    config,
    changes,
    budget,
    ripgrep,
    signIn,
    workFolders,
  }: SkillBench,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RunOutcome> {
  const { agent, skill } = match;
  const resources = resourcesOf(skill.dir, maxResources);
  const folders: RunFolders = {
    ...foldersOf(agent, skill, resources),
    workFolders: workFolders ?? workFoldersOf(config, [agent]),
  };
  rememberWorkFolder(config, agent.workingDir);
  if (agent.mcpConfig) redact.learn(hiddenIn(agent.mcpConfig, config.env));
  yield announcement(match, provider);
  // Nothing is asked and no server is started for a run that may not begin.
  for (const message of (await budget?.check()) ?? []) yield { type: 'notice', level: 'warning', message };
  for (const { message } of skill.diagnostics.filter(diagnostic => diagnostic.severity === 'error')) {
    yield { type: 'notice', level: 'warning', message: `${skill.file}: ${message}` };
  }
  const { missing } = readinessOf(skill, thisMachine(config.env));
  const notice = missingNotice(skill, missing);
  if (notice) yield { type: 'notice', level: 'warning', message: notice };
  const invokedAs = match.reason.rule === 'explicit' ? match.reason.matched : undefined;
  const filled = fillBody(skill.body, skill.dir, words, invokedAs);
  // The model has already read a skill that continues.
  const continues = match.reason.rule === 'continued' && earlier.length > 0 && !skillIsUnread;
  const text = firstMessage(continues ? '' : filled.body, continues ? words : filled.words, new Date());
  state.messages.push(...earlier, { role: 'user', content: withAttachments(text, attachments) });
  const env = commandEnvironment({ ...config.env, HOME: config.home }, folders, config.dataDir);
  const allowed = readAllowedTools(skill.allowedTools);
  let mcp: McpServers | undefined;
  const rules = runPolicy(config, agent, folders);
  const policy: PolicyContext = {
    ...rules,
    holdsSecret: text => rules.holdsSecret?.(text) === true || redact.finds(text),
    commandPatterns: allowed?.commandPatterns,
    mcpTool: name => mcp?.merged().facts.get(name),
  };
  rememberEarlierReads(earlier, attachedNames(attachments), policy);
  yield* policyNotices(policy);
  const wantsServers = agent.mcpConfig !== undefined && allowed?.mcpTools.length !== 0;
  if (wantsServers && (yield* mayConnectServers({ human, policy }, signal)))
    mcp = await connectServers(config, agent, skillTools, env, signal, {
      signIn,
      redact,
      workFolders: [agent.workingDir, ...(folders.workFolders ?? [])],
    });
  const offered = (): readonly Tool[] => keptTools(allowed, mcp);
  try {
    for (const wanted of mcp?.signIns ?? []) yield* signInAt(wanted, { human, policy }, signal);
    for (const message of mcp?.problems ?? []) yield { type: 'notice', level: 'warning', message };
    const spec: RunSpec = {
      provider,
      human,
      system: systemPrompt(agent, skill, folders, {
        resources,
        missing,
        tools: offered().map(tool => tool.definition.name),
      }),
      skillDir: skill.dir,
      // Looked up in every round: a server may change its tools.
      get tools() {
        return offered();
      },
      context: { ...folders, env, ripgrep, changes, protectedDirs: await realFolders(policy) },
      policy,
      messages: state.messages,
      counts: state.counts,
      budget,
      priceOf: tokens => priceOf(provider.name, provider.model, tokens),
    };
    return yield* runLoop(spec, signal);
  } finally {
    await mcp?.close();
  }
}

const attachedNames = (attachments: readonly Attachment[]): string[] =>
  attachments.map(each => (each.kind === 'text' && each.path) || each.name);

function announcement({ agent, skill, reason }: Match, provider: Provider): RunEvent {
  return {
    type: 'routed',
    agent: agent.name,
    skill: skill.id,
    description: skill.description,
    reason,
    provider: provider.name,
    model: provider.model,
    workingDir: agent.workingDir,
    hasMcp: agent.mcpConfig !== undefined,
    ...(provider.recording ? { recording: provider.recording } : {}),
  };
}

/** Returns the tools that are offered. `allowed-tools` narrows them and never adds any. */
function keptTools(allowed: AllowedTools | undefined, mcp: McpServers | undefined): readonly Tool[] {
  const merged = mcp?.merged();
  const tools = merged?.tools ?? skillTools;
  if (!allowed) return tools;
  return tools.filter(({ definition: { name } }) => keepsTool(allowed, name, merged?.facts.get(name)));
}

/** Returns the real paths of the protected folders, since a search compares real paths. */
export async function realFolders({ protectedDirs, home }: PolicyContext): Promise<string[]> {
  return Promise.all(protectedDirs.map(folder => resolvePath(folder, folder, home).catch(() => folder)));
}

/**
 * Returns the folders of a run. Commands run in the pack's folder.
 * If the skill's own folder has files that its text may name, they run there.
 */
export function foldersOf(agent: Agent, skill: Skill, { files }: SkillResources): RunFolders {
  return {
    workingDir: agent.workingDir,
    packDir: agent.packDir,
    skillDir: skill.dir,
    commandDir: files.length > 0 ? skill.dir : agent.packDir,
  };
}

/** Tools that are offered to a run without a skill. */
export const readOnlyTools: readonly Tool[] = [
  ...skillTools.filter(tool => tool.access === 'read'),
  readOnlyShellTool,
];

/**
 * Runs a request without a skill. Returns how the run ended; throws errors that prevent it.
 * `words` is the request with the selection.
 */
export async function* runWithoutSkill(
  words: string,
  {
    provider,
    human,
    state,
    earlier = [],
    attachments = [],
    config,
    budget,
    ripgrep,
    workFolders,
  }: SkillBench,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RunOutcome> {
  const diagnostics: Diagnostic[] = [];
  const roots = existingSkillRoots(config, diagnostics);
  const folders: RunFolders = {
    ...foldersWithoutSkill(config, roots),
    workFolders: workFolders ?? workFoldersOf(config, []),
  };
  yield {
    type: 'routed',
    agent: 'telos',
    skill: '',
    description: '',
    reason: { rule: 'without_skill' },
    provider: provider.name,
    model: provider.model,
    workingDir: folders.workingDir,
    hasMcp: false,
    ...(provider.recording ? { recording: provider.recording } : {}),
  };
  for (const { file, message } of diagnostics)
    yield { type: 'notice', level: 'warning', message: `${file}: ${message}` };
  const content = withAttachments(firstMessage('', words, new Date()), attachments);
  state.messages.push(...earlier, { role: 'user', content });
  const policy: PolicyContext = { ...runPolicy(config, undefined, folders), role: 'read-only' };
  yield* policyNotices(policy);
  const env = commandEnvironment({ ...config.env, HOME: config.home }, folders);
  return yield* runLoop(
    {
      provider,
      human,
      system: withoutSkillPrompt(folders, roots),
      tools: readOnlyTools,
      context: { ...folders, env, ripgrep, protectedDirs: await realFolders(policy) },
      policy,
      messages: state.messages,
      counts: state.counts,
      budget,
      priceOf: tokens => priceOf(provider.name, provider.model, tokens),
    },
    signal,
  );
}

/**
 * Returns the folders of a run without a skill. The working folder is the folder of the call.
 * It is `workingRoot` if the folder of the call is the home folder or above it: that shows more than a person wants.
 */
function foldersWithoutSkill({ cwd, home, workingRoot }: Config, roots: readonly SkillRoot[]): RunFolders {
  const workingDir = isInside(cwd, home) ? workingRoot : cwd;
  const paths = roots.map(({ path }) => path);
  // A program needs a folder that exists.
  const commandDir = [workingDir, ...paths].find(path => existsSync(path)) ?? workingDir;
  return { workingDir, packDir: workingDir, skillDir: workingDir, commandDir, alsoReadable: paths };
}
