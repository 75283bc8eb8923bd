/** Decides how the run of a skill, a step of a plan and a run without a skill differ. */
import type { RunEvent } from '@telos/protocol/run';
import { asMessage, sentence } from '@telos/protocol/text';
import type { KeptWrites } from '../changes/keptWrites.ts';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import type { Provider } from '../core/ports.ts';
import type { Diagnostic } from '../files/settingsFile.ts';
import { type PolicyContext, reviewOf, runPolicy } from '../policy/decision.ts';
import { isOwnTyping, keepTyping } from '../policy/ownChanges.ts';
import { windowOf } from '../providers/contextWindow.ts';
import type { RunTape } from '../providers/recordingFile.ts';
import type { Match } from '../routing/routeName.ts';
import type { Agent, Missing } from '../skills/agent.ts';
import { existingSkillRoots } from '../skills/findSkills.ts';
import { thisMachine } from '../skills/machine.ts';
import { readinessOf } from '../skills/readiness.ts';
import { readToolNames } from '../skills/skillFields.ts';
import { resourcesBeside } from '../skills/skillTexts.ts';
import { hasWorkedOutside, rememberWorkFolder, workFoldersOf } from '../skills/workFolders.ts';
import { backgroundNames, withBackground } from '../tools/backgroundTools.ts';
import { skillTools } from '../tools/builtin.ts';
import { commandEnvironment } from '../tools/command.ts';
import { personTools } from '../tools/personTools.ts';
import type { RunFolders, Tool } from '../tools/tool.ts';
import { withContextFiles } from './contextFiles.ts';
import { commandsOf, cutOffBefore, endedBefore } from './conversationCommands.ts';
import { addRequest, addSkillRequest, earlierFor, rememberReads } from './firstRequest.ts';
import { type OpenedBox, openBox } from './openBox.ts';
import { defectNotice, defectsOf, movedFrom, placeOf } from './openingNotices.ts';
import { fillBody, systemPrompt, withoutSkillPrompt } from './prompt.ts';
import { conversationOf, type Engine, type Run, type RunStep, wordsOf } from './request.ts';
import { foldersOf, foldersWithoutSkill, placesOf } from './runFolders.ts';
import type { ServedRun } from './runServers.ts';
import type { RunSetup } from './runSetup.ts';
import {
  conversationTools,
  keptTools,
  planTools,
  type ServerFacts,
  tapedTool,
  withoutNames,
} from './runTools.ts';
import { searchNames } from './toolSearch.ts';
import { mayUseSkills, nearSkillsText, otherSkillsText, useSkillTool } from './useSkill.ts';

/** Maximum number of files beside the skill that are listed for the model. */
const maxResources = 100;

/** What the run of a skill, a step of a plan and a run without a skill have each in their own way. */
export interface RunPlan {
  opening: readonly RunEvent[];
  policy: PolicyContext;
  folders: RunFolders;
  env: Readonly<Record<string, string>>;
  /** Of the agent whose servers the run has. Undefined if it has none. */
  servers?: (Pick<ServedRun, 'agent' | 'place'> & { tape?: RunTape | undefined }) | undefined;
  /** Undefined if no command runs. */
  box?: Promise<OpenedBox> | undefined;
  /** Returns the tools of the engine. `inBox` makes of them what is offered in the sandbox. */
  tools(inBox: (tools: readonly Tool[]) => readonly Tool[]): readonly Tool[];
  /** Returns what is offered of them, or of them and those of the servers. Looked up in every round: a server may change its tools. */
  offered(all: readonly Tool[], facts: ServerFacts | undefined): readonly Tool[];
  /** Returns the system text. `tools` are the names of those that are offered. */
  system(tools: readonly string[]): string;
  loop: Pick<RunSetup, 'maxRounds' | 'skillDir' | 'background' | 'tape' | 'mail'>;
  /** Returns what keeps the bytes before each write. Missing if nothing is written. */
  keeper?: () => KeptWrites | undefined;
  /** Called after the servers and the commands have ended. */
  ended?: () => Promise<void>;
}

/** Returns how a skill runs. Throws TelosError `config` for one without its instructions. */
export async function planSkill(
  match: Match,
  run: Run,
  provider: Provider,
  engine: Engine,
): Promise<RunPlan> {
  const { agent, skill, role } = match;
  const { config, changes } = engine;
  const { tape } = run.request;
  const { missing } = readinessOf(skill, thisMachine(config.env));
  if (!run.request.change) checkReadable(match, missing);
  const resources = resourcesBeside(skill, maxResources);
  const workFolders = workFoldersOf(config, await engine.catalog.agents());
  const folders: RunFolders = { ...foldersOf(agent, skill, config), workFolders };
  const policy = skillPolicy(config, match, folders, run);
  shareReads(run, policy);
  const isPlan = run.request.mode === 'plan';
  // Found while the rest is read.
  const box = openRunBox(run, folders, policy, config);
  const hasMoved = !hasWorkedOutside(config, agent.name);
  const isFirst = rememberWorkFolder(config, agent.workingDir, agent.name);
  const earlier = earlierFor(run, provider);
  await addSkillRequest(match, run, earlier, provider, folders.personDir ?? folders.workingDir, config);
  await rememberReads(earlier, run, policy);
  const typed = await keepTyping(policy, config.dataDir);
  const before = await reviewOf(policy);
  const others = await otherSkills(match, run, provider, engine);
  // Where it is not offered, a server's tool may have its name.
  if (others !== '') policy.stepTools = withUseSkill;
  const disallowed = readToolNames(disallowedOf(match));
  const onlyTools = skill.onlyTools ?? role?.onlyTools;
  const only = onlyTools && readToolNames(onlyTools);
  return {
    opening: [
      ...(isFirst || (earlier.length === 0 && !run.caller) ? [placeOf(agent, config, isFirst)] : []),
      ...(isFirst && hasMoved ? movedFrom(agent) : []),
      ...endedBefore(config, run.redact.text),
      ...cutOffBefore(config),
      ...(typed === undefined ? [] : [{ type: 'notice', level: 'info', ...asMessage(typed) } as const]),
      ...defectsOf(skill, missing),
    ],
    policy,
    folders,
    env: commandEnvironment({ ...config.env, HOME: config.home }, folders, config.dataDir),
    // What a server does cannot be checked, so a plan starts none.
    servers: isPlan || tape?.servers ? undefined : serversOf(agent, agent.workingDir, workFolders, tape),
    box,
    tools: inBox => runTools(inBox, others),
    offered: (all, facts) => [
      ...keptTools({ disallowed, only }, isPlan ? planTools : all, facts),
      ...(tape?.servers ?? []).map(tapedTool),
    ],
    system(tools) {
      const calledBy = run.caller?.name;
      const called = calledBy === undefined ? {} : { calledBy };
      const roleText = role && fillBody(role.body, placesOf(agent, role, config), '').body.trim();
      const facts = { resources, missing, tools, isPlan, others, role: roleText, ...called };
      return withContextFiles(systemPrompt(agent, skill, folders, facts), run, config);
    },
    loop: {
      maxRounds: config.maxRounds ?? skill.maxRounds ?? agent.maxRounds,
      skillDir: skill.dir,
      background: commandsOf(conversationOf(run), config),
      tape,
    },
    keeper: () => run.caller?.changes ?? changes.keeper(run.caller?.runId ?? run.id),
    async ended() {
      if (run.caller?.memory) run.caller.memory.sensitive ??= policy.memory?.sensitive;
      if (before) await policy.reviews?.noteRun(agent, before).catch(() => undefined);
    },
  };
}

/** What its role may not do, a skill may not do as this role. */
const disallowedOf = ({ skill, role }: Pick<Match, 'skill' | 'role'>): readonly string[] => [
  ...(skill.disallowedTools ?? []),
  ...(role?.disallowedTools ?? []),
];

/** Without its instructions nothing that a skill does would be the skill. */
function checkReadable({ skill }: Match, missing: readonly Missing[]): void {
  const unread = missing.find(({ kind }) => kind === 'file');
  if (!unread) return;
  throw new TelosError('config', [
    sentence('The skill {0} was not run, since its file cannot be read.', skill.id),
    unread.sentences.reason,
    unread.sentences.nextStep,
  ]);
}

/** Returns how a step of a plan runs. A skill adds its text, its folder and its servers, and changes nothing of the role. */
export async function planStep(
  step: RunStep,
  match: Match | undefined,
  run: Run,
  { config, catalog, changes }: Engine,
): Promise<RunPlan> {
  const { workingDir, maxRounds, mail } = step;
  const { agent, skill } = match ?? {};
  const workFolders = workFoldersOf(config, await catalog.agents());
  const folders: RunFolders = {
    workingDir,
    commandDir: workingDir,
    packDir: workingDir,
    skillDir: workingDir,
    ...(agent && skill && { packDir: agent.packDir, skillDir: skill.dir }),
    alsoReadable: step.alsoReadable ?? [],
    workFolders: [workingDir, ...workFolders],
  };
  const body = skill ? fillBody(skill.body, placesOf(agent, skill, config), '').body : '';
  addRequest(run, [], body, wordsOf(run.request));
  const policy = stepPolicy(step, config, agent, folders, run);
  const isWorker = step.role === 'worker';
  return {
    opening: [],
    policy,
    folders,
    env: { ...commandEnvironment({ ...config.env, HOME: config.home }, folders), ...step.env },
    servers: agent && serversOf(agent, workingDir, workFolders),
    box: isWorker ? openStepBox(step, folders, policy, config) : undefined,
    tools: inBox => inBox(step.tools),
    offered: all => all,
    system: () => step.system,
    loop: { maxRounds, mail, ...(skill && { skillDir: skill.dir }) },
    ...(isWorker && { keeper: () => changes.keeper(run.id) }),
  };
}

/** Returns how a run without a skill goes: with the tools, the sandbox, the modes and the questions that a skill has. */
export async function planOpen(run: Run, provider: Provider, engine: Engine): Promise<RunPlan> {
  const { config, changes } = engine;
  const diagnostics: Diagnostic[] = [];
  const roots = existingSkillRoots(config, diagnostics);
  const folders: RunFolders = {
    ...foldersWithoutSkill(config, roots),
    workFolders: workFoldersOf(config, await engine.catalog.agents()),
  };
  const policy: PolicyContext = {
    ...typedPolicy(config, undefined, folders, run),
    isTelos: true,
    stepTools: withUseSkill,
  };
  const isPlan = run.request.mode === 'plan';
  const box = openRunBox(run, folders, policy, config);
  const earlier = earlierFor(run, provider);
  const others = await otherSkills(undefined, run, provider, engine);
  addRequest(run, earlier, await nearSkillsText(run.request.text, others, engine), wordsOf(run.request));
  await rememberReads(earlier, run, policy);
  const background = commandsOf(conversationOf(run), config);
  return {
    opening: [
      ...diagnostics.map(defect => defectNotice(defect.file, defect)),
      ...endedBefore(config, run.redact.text),
      ...cutOffBefore(config),
    ],
    policy,
    folders,
    env: commandEnvironment({ ...config.env, HOME: config.home }, folders, config.dataDir),
    box,
    tools: inBox => runTools(inBox, others),
    // What reads and ends commands is there once one goes on.
    offered: all => (isPlan ? planTools : background.hasBegun ? all : withoutNames(all, backgroundNames)),
    system: () =>
      withContextFiles(withoutSkillPrompt(folders, roots, { policy, others, isPlan }), run, config),
    loop: { maxRounds: config.maxRounds, background, tape: run.request.tape },
    keeper: () => changes.keeper(run.id),
  };
}

/** Returns where an agent's servers work. Undefined for an agent without servers. */
const serversOf = (
  agent: Agent,
  root: string,
  workFolders: readonly string[],
  tape?: RunTape,
): RunPlan['servers'] =>
  agent.mcpConfig === undefined
    ? undefined
    : { agent, place: { root, workFolders: [root, ...workFolders] }, tape };

const withUseSkill: ReadonlySet<string> = new Set([...conversationTools, useSkillTool.definition.name]);

/** Returns the tools of a run that a user has asked for. `others` is the text about the skills that it may use. */
const runTools = (inBox: Parameters<RunPlan['tools']>[0], others: string): readonly Tool[] => [
  ...withBackground(inBox(skillTools)),
  ...personTools,
  ...(others === '' ? [] : [useSkillTool]),
];

/** Returns the sandbox of a run that a user has asked for. Undefined if it carries out nothing. */
const openRunBox = (
  run: Run,
  folders: RunFolders,
  policy: PolicyContext,
  config: Config,
): Promise<OpenedBox> | undefined =>
  run.request.mode === 'plan' || run.request.change
    ? undefined
    : openBox(config, folders, conversationOf(run), policy, { sharesNetwork: true });

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

/** Returns the rules for a run, which also know what secrets it has come across. */
function runRules(
  config: Config,
  agent: Agent | undefined,
  folders: RunFolders,
  { redact }: Run,
): PolicyContext {
  const rules = runPolicy(config, agent, folders);
  return { ...rules, holdsSecret: text => rules.holdsSecret?.(text) === true || redact.finds(text) };
}

/** Returns the policy of what a user has asked for, in the mode and from the place of the request. */
function typedPolicy(config: Config, agent: Agent | undefined, folders: RunFolders, run: Run): PolicyContext {
  const { mode, origin, asksCommands } = run.request;
  return {
    ...runRules(config, agent, folders, run),
    ...(mode === undefined ? {} : { mode }),
    ...(mode === 'sandbox' && { isOwn: !agent || isOwnTyping(agent, config.dataDir) }),
    ...(origin === 'discord' && !asksCommands && { surface: 'discord' }),
    stepTools: conversationTools,
  };
}

const skillPolicy = (config: Config, match: Match, folders: RunFolders, run: Run): PolicyContext => ({
  ...typedPolicy(config, match.agent, folders, run),
  namedCommands: readToolNames(match.skill.allowedTools).commands,
  disallowedCommands: readToolNames(disallowedOf(match)).commands,
});

function stepPolicy(
  { role, commands, commandsChanged, closed = [], box, tools }: RunStep,
  config: Config,
  agent: Agent | undefined,
  folders: RunFolders,
  run: Run,
): PolicyContext {
  return {
    ...runRules(config, agent, folders, run),
    role,
    closed,
    stepTools: new Set([...tools.map(({ definition }) => definition.name), ...searchNames]),
    cardCommands: {
      commands,
      ...(commandsChanged && { changed: commandsChanged }),
      ...(box && { outside: box.outside }),
    },
  };
}
