/** Prepares a run: its prompt, its tools, its folders and its policy. Asks nothing and starts nothing. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Attachment } from '../../protocol/attachment.ts';
import type { Message, Remedy, RunEvent } from '../../protocol/run.ts';
import { type Sentence, sentence, told } from '../../protocol/text.ts';
import type { Config } from '../config.ts';
import { isInside, resolvePath } from '../files/paths.ts';
import type { Diagnostic } from '../files/settingsFile.ts';
import { connectServers, type McpServers } from '../mcp/servers.ts';
import { type PolicyContext, reviewOf, runPolicy } from '../policy/decision.ts';
import { keepTyping } from '../policy/ownChanges.ts';
import { priceOf } from '../providers/models.ts';
import type { Provider, TokenCount } from '../providers/provider.ts';
import type { Match } from '../routing/routeName.ts';
import type { Agent, Skill } from '../skills/agent.ts';
import { existingSkillRoots, type SkillRoot } from '../skills/findSkills.ts';
import { thisMachine } from '../skills/machine.ts';
import { readinessOf } from '../skills/readiness.ts';
import { namesTool, readToolNames, type ToolNames } from '../skills/skillFields.ts';
import { resourcesOf } from '../skills/skillTexts.ts';
import { personFolder, rememberWorkFolder, workFoldersOf } from '../skills/workFolders.ts';
import { skillTools } from '../tools/builtin.ts';
import { commandEnvironment } from '../tools/command.ts';
import { readOnlyShellTool } from '../tools/readOnlyShell.ts';
import type { RunFolders, Tool } from '../tools/tool.ts';
import type { RunSpec } from './loop.ts';
import { openBox } from './openBox.ts';
import {
  fillBody,
  firstMessage,
  missingNotice,
  systemPrompt,
  withAttachments,
  withoutReasoning,
  withoutSkillPrompt,
} from './prompt.ts';
import { type Engine, type Run, type RunStep, wordsOf } from './request.ts';
import type { ServerGate } from './serverGate.ts';

/** Maximum number of files beside the skill that are listed for the model. */
const maxResources = 100;

export interface PreparedRun {
  /** Notices for the person, before anything is asked. */
  opening: readonly RunEvent[];
  policy: PolicyContext;
  /** Starts the agent's MCP servers. Missing if the run uses none. */
  connect?: (signal: AbortSignal) => Promise<McpServers>;
  /** Returns what the loop runs with. `gate` holds the servers that are not connected yet. */
  spec(gate?: ServerGate): RunSpec;
  /** Ends the servers. */
  close(): Promise<void>;
}

/** Prepares the run of a skill, or a run that only reads. Throws errors that prevent it. */
export async function prepareRun(
  match: Match | undefined,
  run: Run,
  provider: Provider,
  engine: Engine,
): Promise<PreparedRun> {
  const { step } = run.request;
  if (step) return prepareStep(step, match, run, provider, engine);
  return match ? prepareSkill(match, run, provider, engine) : prepareOpen(run, provider, engine);
}

async function prepareSkill(
  match: Match,
  run: Run,
  provider: Provider,
  engine: Engine,
): Promise<PreparedRun> {
  const { agent, skill } = match;
  const { config, changes, ripgrep, signIn } = engine;
  const resources = resourcesOf(skill.dir, maxResources);
  const workFolders = workFoldersOf(config, await engine.catalog.agents());
  const folders: RunFolders = { ...foldersOf(agent, skill, config), workFolders };
  let servers: McpServers | undefined;
  const policy = skillPolicy(config, match, folders, run, () => servers);
  const isPlan = run.request.mode === 'plan';
  // Found while the rest is read.
  const opening = isPlan ? undefined : openBox(config, folders, conversationOf(run), policy);
  const isFirst = rememberWorkFolder(config, agent.workingDir, agent.name);
  const { missing } = readinessOf(skill, thisMachine(config.env));
  const earlier = earlierFor(run, provider);
  addSkillRequest(match, run, earlier);
  const env = commandEnvironment({ ...config.env, HOME: config.home }, folders, config.dataDir);
  const disallowed = readToolNames(skill.disallowedTools);
  await rememberReads(earlier, run, policy);
  const protectedDirs = await realFolders(policy);
  const typed = await keepTyping(policy, config.dataDir);
  const before = await reviewOf(policy);
  const opened = await opening;
  Object.assign(policy, opened?.facts);
  const commandTools = opened?.offered(skillTools) ?? skillTools;
  const offered = (gate?: ServerGate): readonly Tool[] => [
    ...keptTools(
      disallowed,
      isPlan ? planTools : (servers?.merged().tools ?? commandTools),
      servers?.merged().facts,
    ),
    ...(gate?.tools ?? []),
  ];
  return {
    opening: [
      ...(isFirst ? placeOf(agent, config) : []),
      ...(typed === undefined ? [] : [{ type: 'notice', level: 'info', ...told(typed) } as const]),
      ...openingOf(skill, missingNotice(skill, missing)),
    ],
    policy,
    // What a server does cannot be checked, so a plan starts none.
    ...(agent.mcpConfig !== undefined &&
      !isPlan && {
        async connect(signal) {
          const reach = { signIn, redact: run.redact, workFolders: [agent.workingDir, ...workFolders] };
          servers = await connectServers(config, agent, commandTools, env, signal, reach);
          return servers;
        },
      }),
    spec(gate) {
      const tools = offered(gate).map(tool => tool.definition.name);
      return {
        ...loopFields(run, provider),
        maxRounds: config.maxRounds ?? skill.maxRounds ?? agent.maxRounds,
        system: systemPrompt(agent, skill, folders, { resources, missing, tools, isPlan }),
        skillDir: skill.dir,
        // Looked up in every round: a server may change its tools.
        get tools() {
          return offered(gate);
        },
        gate,
        context: {
          ...{ ...folders, env, ripgrep, changes: changes.keeper(run.id), protectedDirs },
          ...(opened?.box && { box: opened.box }),
        },
        policy,
      };
    },
    async close() {
      await servers?.close();
      await changes.settled();
      if (before) await policy.reviews?.noteRun(agent, before).catch(() => undefined);
    },
  };
}

/** Prepares a step of a plan. A skill adds its text, its folder and its servers, and changes nothing of the role. */
async function prepareStep(
  step: RunStep,
  match: Match | undefined,
  run: Run,
  provider: Provider,
  engine: Engine,
): Promise<PreparedRun> {
  const { config, changes, ripgrep, signIn } = engine;
  const { workingDir, role, commands, commandsChanged, closed = [], mail } = step;
  const { agent, skill } = match ?? {};
  const own = agent && skill ? { packDir: agent.packDir, skillDir: skill.dir } : undefined;
  const folders: RunFolders = {
    ...{ workingDir, commandDir: workingDir, packDir: workingDir, skillDir: workingDir, ...own },
    alsoReadable: step.alsoReadable ?? [],
    workFolders: [workingDir, ...workFoldersOf(config, await engine.catalog.agents())],
  };
  addRequest(run, [], skill ? fillBody(skill.body, skill.dir, '').body : '', wordsOf(run.request));
  const env = { ...commandEnvironment({ ...config.env, HOME: config.home }, folders), ...step.env };
  let servers: McpServers | undefined;
  const rules = runPolicy(config, agent, folders);
  const policy: PolicyContext = {
    ...rules,
    holdsSecret: text => rules.holdsSecret?.(text) === true || run.redact.finds(text),
    mcpTool: name => servers?.merged().facts.get(name),
    role,
    closed,
    stepTools: new Set(step.tools.map(({ definition }) => definition.name)),
    cardCommands: { commands, ...(commandsChanged && { changed: commandsChanged }) },
  };
  const protectedDirs = await realFolders(policy);
  const keeper = role === 'worker' ? { changes: changes.keeper(run.id, { watches: false }) } : {};
  return {
    opening: [],
    policy,
    ...(agent?.mcpConfig !== undefined && {
      async connect(signal) {
        const reach = { signIn, redact: run.redact, workFolders: folders.workFolders ?? [] };
        servers = await connectServers(config, agent, step.tools, env, signal, reach);
        return servers;
      },
    }),
    spec: gate => ({
      ...loopFields(run, provider),
      maxRounds: step.maxRounds,
      system: step.system,
      ...(skill && { skillDir: skill.dir }),
      get tools() {
        return [...(servers?.merged().tools ?? step.tools), ...(gate?.tools ?? [])];
      },
      gate,
      context: { ...folders, env, ripgrep, protectedDirs, ...keeper },
      policy,
      mail,
    }),
    close: async () => servers?.close(),
  };
}

/** Returns the conversation so far. A recording answers from its beginning, whatever was said before. */
const earlierFor = ({ request: { conversation } }: Run, { recording }: Provider): readonly Message[] =>
  recording || !conversation ? [] : withoutReasoning(conversation.messages);

/** Names the conversation, whose commands share what they have in the box. */
const conversationOf = ({ id, request }: Run): string => request.conversationId ?? id;

/** Adds the skill and the request to the transcript. The model has already read a skill that continues. */
function addSkillRequest({ skill, reason }: Match, run: Run, earlier: readonly Message[]): void {
  const words = wordsOf(run.request);
  const isUnread = run.request.conversation?.skillIsUnread === true;
  const isRead = reason.rule === 'continued' && earlier.length > 0 && !isUnread;
  const invokedAs = reason.rule === 'explicit' ? reason.matched : undefined;
  const filled = fillBody(skill.body, skill.dir, words, invokedAs);
  addRequest(run, earlier, isRead ? '' : filled.body, isRead ? words : filled.words);
}

/** Adds the conversation so far and the request to the transcript. */
function addRequest(run: Run, earlier: readonly Message[], body: string, words: string): void {
  const content = withAttachments(firstMessage(body, words, new Date()), run.request.attachments ?? []);
  run.earlier = earlier.length;
  run.messages.push(...earlier, { role: 'user', content });
}

const loopFields = ({ human, messages, counts, budget }: Run, provider: Provider) => ({
  provider,
  human,
  messages,
  counts,
  budget,
  priceOf: (tokens: TokenCount) => priceOf(provider.name, provider.model, tokens),
});

function skillPolicy(
  config: Config,
  { agent, skill }: Match,
  folders: RunFolders,
  { redact, request: { mode } }: Run,
  servers: () => McpServers | undefined,
): PolicyContext {
  const rules = runPolicy(config, agent, folders);
  return {
    ...rules,
    ...(mode === undefined ? {} : { mode }),
    holdsSecret: text => rules.holdsSecret?.(text) === true || redact.finds(text),
    namedCommands: readToolNames(skill.allowedTools).commands,
    disallowedCommands: readToolNames(skill.disallowedTools).commands,
    mcpTool: name => servers()?.merged().facts.get(name),
  };
}

/** Returns warnings about defects of the skill and about what is missing on this machine. */
function openingOf({ file, diagnostics }: Skill, missing: Sentence | undefined): RunEvent[] {
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  const said = errors.map(error => placedDefect(file, error));
  return [...said, ...(missing === undefined ? [] : [missing])].map(warning);
}

/** Says where a foreign skill writes, since neither its files nor a setting need have said so. */
function placeOf({ isForeign, name, workingDir }: Agent, { configDir }: Config): RunEvent[] {
  if (!isForeign) return [];
  const remedy: Remedy = { kind: 'choose_folder', agent: name, file: join(configDir, 'agents.toml') };
  return [{ type: 'notice', level: 'info', ...told(sentence('Files go to {0}.', workingDir)), remedy }];
}

const placedDefect = (file: string, { message, sentences = [] }: Diagnostic): Sentence => ({
  text: `{0}:${sentences.map((_, index) => ` {${index + 1}}`).join('') || ' {1}'}`,
  values: [file, ...(sentences.length > 0 ? sentences : [message])],
});

const warning = (said: Sentence): RunEvent => ({ type: 'notice', level: 'warning', ...told(said) });

const attachedNames = (attachments: readonly Attachment[]): string[] =>
  attachments.map(each => (each.kind === 'text' && each.path) || each.name);

/** Records what earlier runs of the conversation read, and what the person passes to this one. */
async function rememberReads(earlier: readonly Message[], run: Run, policy: PolicyContext): Promise<void> {
  const handedOver = attachedNames(run.request.attachments ?? []);
  // Most runs have neither, and need no reader of commands before their first request.
  if (earlier.length === 0 && handedOver.length === 0) return;
  const { rememberEarlierReads } = await import('../policy/secretReads.ts');
  rememberEarlierReads(earlier, handedOver, policy);
}

/** Returns the tools that are offered: all but those that the skill's `disallowed-tools` name. */
function keptTools(
  disallowed: ToolNames,
  tools: readonly Tool[],
  facts?: ReturnType<McpServers['merged']>['facts'],
): readonly Tool[] {
  return tools.filter(({ definition: { name } }) => !namesTool(disallowed, name, facts?.get(name)));
}

/** Returns the real paths of the protected folders, since a search compares real paths. */
export async function realFolders({ protectedDirs, home }: PolicyContext): Promise<string[]> {
  return Promise.all(protectedDirs.map(folder => resolvePath(folder, folder, home).catch(() => folder)));
}

/** Returns the folders of a run. Commands of a pack of Telos run in its folder, those of a foreign skill where it works. */
export function foldersOf(agent: Agent, skill: Skill, config: Pick<Config, 'cwd' | 'home'>): RunFolders {
  const personDir = personFolder(config);
  return {
    workingDir: agent.workingDir,
    packDir: agent.packDir,
    skillDir: skill.dir,
    ...(skill.name !== skill.id && { skillName: skill.name }),
    commandDir: agent.isForeign ? agent.workingDir : agent.packDir,
    ...(personDir === undefined ? {} : { personDir }),
  };
}

/** Tools that are offered to a run without a skill. */
export const readOnlyTools: readonly Tool[] = [
  ...skillTools.filter(tool => tool.access === 'read'),
  readOnlyShellTool,
];

/** Tools that are offered to a run that only plans. */
const planTools: readonly Tool[] = [
  ...readOnlyTools,
  ...skillTools.filter(tool => tool.access === 'network'),
];

async function prepareOpen(run: Run, provider: Provider, engine: Engine): Promise<PreparedRun> {
  const { config, ripgrep } = engine;
  const diagnostics: Diagnostic[] = [];
  const roots = existingSkillRoots(config, diagnostics);
  const folders: RunFolders = {
    ...foldersWithoutSkill(config, roots),
    workFolders: workFoldersOf(config, await engine.catalog.agents()),
  };
  addRequest(run, earlierFor(run, provider), '', wordsOf(run.request));
  const policy: PolicyContext = { ...runPolicy(config, undefined, folders), role: 'read-only' };
  const env = commandEnvironment({ ...config.env, HOME: config.home }, folders);
  const protectedDirs = await realFolders(policy);
  return {
    opening: diagnostics.map(defect => warning(placedDefect(defect.file, defect))),
    policy,
    spec: () => ({
      ...loopFields(run, provider),
      maxRounds: config.maxRounds,
      system: withoutSkillPrompt(folders, roots),
      tools: readOnlyTools,
      context: { ...folders, env, ripgrep, protectedDirs },
      policy,
    }),
    close: async () => undefined,
  };
}

/**
 * Returns the working folder of a run without a skill: the folder of the call.
 * It is `workingRoot` if the folder of the call is the home folder or above it: that shows more than a person wants.
 */
export const workingDirOf = ({ cwd, home, workingRoot }: Config): string =>
  isInside(cwd, home) ? workingRoot : cwd;

function foldersWithoutSkill(config: Config, roots: readonly SkillRoot[]): RunFolders {
  const workingDir = workingDirOf(config);
  const paths = roots.map(({ path }) => path);
  // A program needs a folder that exists.
  const commandDir = [workingDir, ...paths].find(path => existsSync(path)) ?? workingDir;
  return { workingDir, packDir: workingDir, skillDir: workingDir, commandDir, alsoReadable: paths };
}
