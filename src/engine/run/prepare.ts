/** Prepares a run: its prompt, its tools, its folders and its policy. Asks nothing and starts nothing. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Attachment } from '@telos/protocol/attachment';
import type { Message, Remedy, RunEvent } from '@telos/protocol/run';
import { asMessage, type Sentence } from '@telos/protocol/text';
import { atMost } from '../cancellation.ts';
import { type Config, effortFor } from '../config.ts';
import type { Provider, TokenCount, ToolDefinition } from '../core/ports.ts';
import { pluginRootOf } from '../files/hostPlugin.ts';
import { isInside, resolvePath } from '../files/paths.ts';
import type { Diagnostic } from '../files/settingsFile.ts';
import type { OpenBox } from '../mcp/boxedServer.ts';
import { connectServers, type McpReach, type McpServers } from '../mcp/servers.ts';
import { type PolicyContext, reviewOf, runPolicy } from '../policy/decision.ts';
import { keepTyping } from '../policy/ownChanges.ts';
import { switchesOf } from '../policy/policyEdit.ts';
import { windowOf } from '../providers/contextWindow.ts';
import { priceOf } from '../providers/models.ts';
import type { Match } from '../routing/routeName.ts';
import type { Agent, Skill } from '../skills/agent.ts';
import { existingSkillRoots, type SkillRoot } from '../skills/findSkills.ts';
import { thisMachine } from '../skills/machine.ts';
import { readinessOf } from '../skills/readiness.ts';
import { namesTool, readToolNames, type ToolNames } from '../skills/skillFields.ts';
import { resourcesOf } from '../skills/skillTexts.ts';
import {
  hasWorkedOutside,
  movedCode,
  personFolder,
  rememberWorkFolder,
  workFoldersOf,
  worksIn,
} from '../skills/workFolders.ts';
import { backgroundNames, withBackground } from '../tools/backgroundTools.ts';
import { skillTools } from '../tools/builtin.ts';
import { commandEnvironment } from '../tools/command.ts';
import { personTools } from '../tools/personTools.ts';
import { readOnlyShellTool } from '../tools/readOnlyShell.ts';
import { type RunFolders, type Tool, toolError } from '../tools/tool.ts';
import { contextText } from './contextFiles.ts';
import { commandsOf, cutOffBefore, endCommands, endedBefore } from './conversationCommands.ts';
import { type OpenedBox, openBox } from './openBox.ts';
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
import type { RunSetup } from './runSetup.ts';
import type { ServerGate } from './serverGate.ts';
import { mayUseSkills, otherSkillsText, useSkillTool } from './useSkill.ts';

/** Maximum number of files beside the skill that are listed for the model. */
const maxResources = 100;

export interface PreparedRun {
  /** Notices for the person, before anything is asked. */
  opening: readonly RunEvent[];
  policy: PolicyContext;
  /** Starts the agent's MCP servers. Missing if the run uses none. */
  connect?: (signal: AbortSignal) => Promise<McpServers>;
  /** Returns what the loop runs with. `gate` holds the servers that are not connected yet. */
  spec(gate?: ServerGate): RunSetup;
  /** Ends the servers. */
  close(): Promise<void>;
}

/** It takes this thread alone: of many that begin together, the first are ready sooner if they do not all wait for each other. */
const inTurn = atMost(4);

/** Prepares the run of a skill, or a run that only reads. Throws errors that prevent it. */
export function prepareRun(
  match: Match | undefined,
  run: Run,
  provider: Provider,
  engine: Engine,
): Promise<PreparedRun> {
  const { step } = run.request;
  return inTurn(() => {
    if (step) return prepareStep(step, match, run, provider, engine);
    return match ? prepareSkill(match, run, provider, engine) : prepareOpen(run, provider, engine);
  });
}

async function prepareSkill(
  match: Match,
  run: Run,
  provider: Provider,
  engine: Engine,
): Promise<PreparedRun> {
  const { agent, skill } = match;
  const { config, changes, ripgrep } = engine;
  const { tape } = run.request;
  const resources = resourcesOf(skill.dir, maxResources);
  const workFolders = workFoldersOf(config, await engine.catalog.agents());
  const folders: RunFolders = { ...foldersOf(agent, skill, config), workFolders };
  let servers: McpServers | undefined;
  const policy = skillPolicy(config, match, folders, run, () => servers);
  shareReads(run, policy);
  const isPlan = run.request.mode === 'plan';
  // Found while the rest is read.
  const opening =
    isPlan || run.request.change
      ? undefined
      : openBox(config, folders, conversationOf(run), policy, { sharesNetwork: true });
  const hasMoved = !hasWorkedOutside(config, agent.name);
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
  const others = await otherSkills(match, run, provider, engine);
  const commandTools = [
    ...withBackground(opened?.offered(skillTools) ?? skillTools),
    ...personTools,
    ...(others === '' ? [] : [useSkillTool]),
  ];
  // Where it is not offered, a server's tool may have its name.
  if (others !== '') policy.stepTools = new Set([...conversationTools, useSkillTool.definition.name]);
  const offered = (gate?: ServerGate): readonly Tool[] => [
    ...keptTools(
      disallowed,
      isPlan ? planTools : (servers?.merged().tools ?? commandTools),
      servers?.merged().facts,
    ),
    ...(gate?.tools ?? []),
    ...(tape?.servers ?? []).map(tapedTool),
  ];
  return {
    opening: [
      ...(isFirst || (earlier.length === 0 && !run.caller) ? [placeOf(agent, config, isFirst)] : []),
      ...(isFirst && hasMoved ? movedFrom(agent) : []),
      ...endedBefore(config, run.redact.text),
      ...cutOffBefore(config),
      ...(typed === undefined ? [] : [{ type: 'notice', level: 'info', ...asMessage(typed) } as const]),
      ...openingOf(skill, missingNotice(skill, missing)),
    ],
    policy,
    // What a server does cannot be checked, so a plan starts none.
    ...(agent.mcpConfig !== undefined &&
      !tape?.servers &&
      !isPlan && {
        async connect(signal) {
          const place = { root: agent.workingDir, workFolders: [agent.workingDir, ...workFolders] };
          const reach = { ...serverReach(run, engine, policy, agent, folders), ...place };
          servers = await connectServers(config, agent, commandTools, env, signal, reach);
          const { tools, facts } = servers.merged();
          tape?.keepServers(tools.map(({ definition }) => definition).filter(({ name }) => facts.has(name)));
          return servers;
        },
      }),
    spec(gate) {
      const tools = offered(gate).map(tool => tool.definition.name);
      const calledBy = run.caller?.name;
      const called = calledBy === undefined ? {} : { calledBy };
      const facts = { resources, missing, tools, isPlan, others, ...called };
      return {
        // Before the other fields, which have what it is made of.
        system: withContextFiles(systemPrompt(agent, skill, folders, facts), run, config),
        ...loopFields(run, provider, config),
        maxRounds: config.maxRounds ?? skill.maxRounds ?? agent.maxRounds,
        skillDir: skill.dir,
        // Looked up in every round: a server may change its tools.
        get tools() {
          return offered(gate);
        },
        gate,
        background: commandsOf(conversationOf(run), config),
        tape,
        context: {
          ...folders,
          env,
          ripgrep,
          protectedDirs,
          ...sight(provider),
          changes: run.caller?.changes ?? changes.keeper(run.caller?.runId ?? run.id),
          ...(opened?.box && { box: opened.box }),
        },
        policy,
      };
    },
    async close() {
      await servers?.close();
      // No one could stop them any more.
      if (run.request.conversationId === undefined) await endCommands(run.id);
      opened?.box?.rest?.();
      await changes.settled();
      if (run.caller?.memory) run.caller.memory.sensitive ??= policy.memory?.sensitive;
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
  const { config, changes, ripgrep } = engine;
  const { workingDir, role, commands, commandsChanged, closed = [], mail, box } = step;
  const { agent, skill } = match ?? {};
  const own = agent && skill ? { packDir: agent.packDir, skillDir: skill.dir } : undefined;
  const folders: RunFolders = {
    workingDir,
    commandDir: workingDir,
    packDir: workingDir,
    skillDir: workingDir,
    ...own,
    alsoReadable: step.alsoReadable ?? [],
    workFolders: [workingDir, ...workFoldersOf(config, await engine.catalog.agents())],
  };
  addRequest(
    run,
    [],
    skill ? fillBody(skill.body, placesOf(agent, skill), '').body : '',
    wordsOf(run.request),
  );
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
    cardCommands: {
      commands,
      ...(commandsChanged && { changed: commandsChanged }),
      ...(box && { outside: box.outside }),
    },
  };
  const isWorker = role === 'worker';
  const opened = isWorker ? await openStepBox(step, folders, policy, config) : undefined;
  Object.assign(policy, opened?.facts);
  const stepTools = opened?.offered(step.tools) ?? step.tools;
  const protectedDirs = await realFolders(policy);
  const watches = opened?.box !== undefined;
  const keeper = isWorker ? { changes: changes.keeper(run.id, { watches }) } : {};
  return {
    opening: [],
    policy,
    ...(agent?.mcpConfig !== undefined && {
      async connect(signal) {
        const place = { root: workingDir, workFolders: folders.workFolders ?? [] };
        const reach = { ...serverReach(run, engine, policy, agent, folders), ...place };
        servers = await connectServers(config, agent, stepTools, env, signal, reach);
        return servers;
      },
    }),
    spec: gate => ({
      ...loopFields(run, provider, config),
      maxRounds: step.maxRounds,
      system: step.system,
      ...(skill && { skillDir: skill.dir }),
      get tools() {
        return [...(servers?.merged().tools ?? stepTools), ...(gate?.tools ?? [])];
      },
      gate,
      context: {
        ...folders,
        env,
        ripgrep,
        protectedDirs,
        ...sight(provider),
        ...keeper,
        ...(opened?.box && { box: opened.box }),
      },
      policy,
      mail,
    }),
    async close() {
      await servers?.close();
      opened?.box?.rest?.();
    },
  };
}

/** Returns the box of a step that works. It shares nothing with that of the checks, which judge its work. */
function openStepBox(
  { workingDir, box, closed: unchanged = [] }: RunStep,
  folders: RunFolders,
  policy: PolicyContext,
  config: Config,
): Promise<OpenedBox> {
  const { shown = [], alsoReadable = [] } = box ?? {};
  const seen = { ...folders, alsoReadable: [...(folders.alsoReadable ?? []), ...alsoReadable] };
  // What a plan commits, the engine commits.
  return openBox(config, seen, `step ${workingDir}`, policy, { shown, unchanged, keepsRepository: true });
}

/** Returns what opens the boxes of an agent's servers, which are loaded with the first of them. */
const boxesOf =
  (config: Config, { name }: Agent, folders: RunFolders, policy: PolicyContext): OpenBox =>
  async (server, args) => {
    const [{ serverBoxes }, { grantedHosts }] = await Promise.all([
      import('../box/serverBox.ts'),
      import('./approval.ts'),
    ]);
    const { holdsSecret } = policy;
    return serverBoxes(config, name, folders, { holdsSecret }, grantedHosts(policy))(server, args);
  };
/** Returns how the servers of a run reach the person, the frontend and their boxes. */
const serverReach = (
  { human, redact }: Run,
  { config, signIn, openUrl, book }: Engine,
  policy: PolicyContext,
  agent: Agent,
  folders: RunFolders,
): McpReach => ({
  signIn,
  openUrl,
  book,
  redact,
  openBox: boxesOf(config, agent, folders, policy),
  isOff: switchedOff(policy),
  canAsk: !human.isAway,
});

/** Returns what looks whether the person has switched off a server's tool. The rules are read again each time. */
const switchedOff =
  ({ rules, agent }: PolicyContext) =>
  (server: string, tool: string): boolean =>
    rules !== undefined && switchesOf(rules.read(), agent?.name ?? '', server, tool).length > 0;

/** Returns the conversation so far. A recording answers from its beginning, whatever was said before. */
const earlierFor = ({ request: { conversation } }: Run, { recording }: Provider): readonly Message[] =>
  recording || !conversation ? [] : withoutReasoning(conversation.messages);

/** Has a step know what the run that calls it has read, since that may be in its request. */
function shareReads({ caller }: Run, { memory }: PolicyContext): void {
  if (memory && caller?.memory) memory.sensitive = caller.memory.sensitive;
}

/** Returns the text about the skills that the run may use; empty if there are none. */
async function otherSkills(
  match: Match | undefined,
  run: Run,
  provider: Provider,
  { catalog, config }: Engine,
): Promise<string> {
  if (provider.recording || !mayUseSkills(run)) return '';
  const own = match && { agent: match.agent.name, skill: match.skill.id };
  return otherSkillsText(await catalog.agents(), own, windowOf(config, provider));
}

/** Names the conversation, whose commands share what they have in the box. */
const conversationOf = ({ id, request }: Run): string => request.conversationId ?? id;

/** Returns the folders that a skill's text may name. */
const placesOf = (agent: Agent | undefined, { dir }: Skill): { skillDir: string; pluginRoot: string } => ({
  skillDir: dir,
  pluginRoot: agent ? pluginRootOf({ packDir: agent.packDir, skillDir: dir }) : dir,
});

/** Adds the skill and the request to the transcript. The model has already read a skill that continues. */
function addSkillRequest({ agent, skill, reason }: Match, run: Run, earlier: readonly Message[]): void {
  const words = wordsOf(run.request);
  const isUnread = run.request.conversation?.skillIsUnread === true;
  const isRead = reason.rule === 'continued' && earlier.length > 0 && !isUnread;
  const invokedAs = reason.rule === 'explicit' ? reason.matched : undefined;
  const filled = fillBody(skill.body, placesOf(agent, skill), words, invokedAs, skill.argumentNames);
  addRequest(run, earlier, isRead ? '' : filled.body, isRead ? words : filled.words);
  // A skill that continues is in the conversation already.
  if (isRead && run.firstParts) run.firstParts.skill = filled.body.length;
}

/** Returns true if the model has the results of its latest calls, and was not asked since. */
function endsWithResults(messages: readonly Message[]): boolean {
  const content = messages.findLast(({ context }) => !context)?.content;
  return typeof content === 'object' && content.some(({ type }) => type === 'tool_result');
}

/** Adds the conversation so far and the request to the transcript. */
function addRequest(run: Run, earlier: readonly Message[], body: string, words: string): void {
  run.earlier = earlier.length;
  if (run.request.change || (run.request.goesOn && endsWithResults(earlier)))
    return void run.messages.push(...earlier);
  const content = withAttachments(firstMessage(body, words, new Date()), run.request.attachments ?? []);
  const handed = run.request.attachments ?? [];
  const files = handed.reduce((sum, each) => sum + (each.kind === 'text' ? each.text.length : 0), 0);
  run.firstParts = { skill: body.length, files };
  run.messages.push(...earlier, { role: 'user', content });
}

/** Lets tools return what the model can see. */
const sight = ({ media }: Provider) => (media ? { media } : {});

/** Returns the system text with the files that are read as context after it. */
function withContextFiles(system: string, run: Run, config: Config): string {
  if (run.request.withoutContextFiles) return system;
  const { text, names } = contextText(config, run.redact.text);
  if (text === '') return system;
  run.firstParts = {
    ...(run.firstParts ?? { skill: 0, files: 0 }),
    context: { characters: text.length, names },
  };
  return system + text;
}

const loopFields = (
  { human, messages, counts, budget, redact, firstParts, effort, useSkill }: Run,
  provider: Provider,
  config: Config,
) => ({
  provider,
  effort: effort ?? effortFor(config, provider.model),
  human,
  messages,
  counts,
  budget,
  firstParts,
  useSkill,
  window: windowOf(config, provider),
  redact: redact.text,
  priceOf: (tokens: TokenCount) => priceOf(provider.name, provider.model, tokens),
});

/** Returns a tool of a server in a replay. The tape answers each call of it. */
const tapedTool = (definition: ToolDefinition): Tool => ({
  definition,
  access: 'network',
  execute: async () => toolError('No server is started in a replay.'),
});

/** Tools that act on nothing but what the conversation has itself. */
const conversationTools: ReadonlySet<string> = new Set([
  ...backgroundNames,
  ...personTools.map(({ definition }) => definition.name),
]);

function skillPolicy(
  config: Config,
  { agent, skill }: Match,
  folders: RunFolders,
  { redact, request: { mode, origin, asksCommands } }: Run,
  servers: () => McpServers | undefined,
): PolicyContext {
  const rules = runPolicy(config, agent, folders);
  return {
    ...rules,
    ...(mode === undefined ? {} : { mode }),
    ...(origin === 'discord' && !asksCommands && { surface: 'discord' }),
    holdsSecret: text => rules.holdsSecret?.(text) === true || redact.finds(text),
    stepTools: conversationTools,
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

/** Says where an agent works, and how to change that if it is foreign and new there: neither its files nor a setting need have said so. */
function placeOf(
  { isForeign, name, workingDir }: Agent,
  { configDir, cwd }: Config,
  isFirst: boolean,
): RunEvent {
  const remedy: Remedy = { kind: 'choose_folder', agent: name, file: join(configDir, 'agents.toml') };
  return {
    type: 'notice',
    level: 'info',
    ...asMessage(worksIn(workingDir, cwd)),
    ...(isForeign && isFirst && { remedy }),
  };
}

/** Says where the agent worked before, if its work may still be there. */
const movedFrom = ({ diagnostics }: Agent): RunEvent[] =>
  diagnostics
    .filter(({ code }) => code === movedCode)
    .map(({ message, sentences = [], fixSentence }) => ({
      type: 'notice',
      level: 'info',
      ...(fixSentence ? asMessage(...sentences, fixSentence) : { message }),
    }));

const placedDefect = (file: string, { message, sentences = [] }: Diagnostic): Sentence => ({
  text: `{0}:${sentences.map((_, index) => ` {${index + 1}}`).join('') || ' {1}'}`,
  values: [file, ...(sentences.length > 0 ? sentences : [message])],
});

const warning = (said: Sentence): RunEvent => ({ type: 'notice', level: 'warning', ...asMessage(said) });

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

/**
 * Returns the folders of a run. Commands run where the agent works if that is the current folder or it is foreign, else in the pack; the
 * scripts of a pack of Telos always run in the pack, for which they were written.
 */
export function foldersOf(agent: Agent, skill: Skill, config: Pick<Config, 'cwd' | 'home'>): RunFolders {
  const personDir = personFolder(config);
  return {
    workingDir: agent.workingDir,
    packDir: agent.packDir,
    skillDir: skill.dir,
    ...(skill.name !== skill.id && { skillName: skill.name }),
    commandDir: agent.isForeign || agent.worksHere ? agent.workingDir : agent.packDir,
    ...(!agent.isForeign && agent.worksHere && { scriptDir: agent.packDir }),
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
  const policy: PolicyContext = {
    ...runPolicy(config, undefined, folders),
    role: 'read-only',
    stepTools: new Set([useSkillTool.definition.name]),
  };
  const others = await otherSkills(undefined, run, provider, engine);
  const env = commandEnvironment({ ...config.env, HOME: config.home }, folders);
  const protectedDirs = await realFolders(policy);
  return {
    opening: diagnostics.map(defect => warning(placedDefect(defect.file, defect))),
    policy,
    spec: () => ({
      system: withContextFiles(withoutSkillPrompt(folders, roots, others), run, config),
      ...loopFields(run, provider, config),
      maxRounds: config.maxRounds,
      tools: others === '' ? readOnlyTools : [...readOnlyTools, useSkillTool],
      context: { ...folders, env, ripgrep, protectedDirs, ...sight(provider) },
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
