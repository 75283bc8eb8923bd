/** Runs one request from its start to its end: chooses its skill, prepares the run, and runs its loop. */

import { join } from 'node:path';
import { placeOfSelection } from '@telos/protocol/attachment';
import {
  type Message,
  type RouteReason,
  type RunError,
  type RunEvent,
  type RunOutcome,
  runModes,
  type SkillRef,
} from '@telos/protocol/run';
import { asMessage, sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { Interruption, TelosError } from '../core/errors.ts';
import { runLoop } from '../core/loop.ts';
import { lastAnswer } from '../core/messages.ts';
import type { MediaKind, Provider } from '../core/ports.ts';
import { hiddenIn } from '../mcp/config.ts';
import type { ReviewState } from '../policy/agentReviews.ts';
import { policyNotices } from '../policy/policyFile.ts';
import { createProvider, isModelOf, type ProviderChoice } from '../providers/create.ts';
import { routeRequest } from '../routing/route.ts';
import type { Match } from '../routing/routeName.ts';
import type { NoMatch, WithoutSkill } from '../routing/routeResult.ts';
import type { Agent } from '../skills/agent.ts';
import { ownHooks, packHooks, skillHooks } from '../skills/readHooks.ts';
import { roleOf, skillSettings } from '../skills/skillSettings.ts';
import { routingModel } from './meter.ts';
import { type PreparedRun, prepareRun } from './prepare.ts';
import { type Engine, type Run, type RunRequest, type RunStep, type UseSkill, wordsOf } from './request.ts';
import { workingDirOf } from './runFolders.ts';
import type { RunHooks } from './runHooks.ts';
import { type RunSetup, specOf } from './runSetup.ts';
import { roomOf } from './runWindow.ts';
import type { ServerGate } from './serverGate.ts';
import { aimedAtServer, namesOffers } from './serverMentions.ts';
import { useSkill } from './useSkill.ts';

interface Ending {
  outcome: RunOutcome;
  error?: RunError;
}

/**
 * Yields `run_start`, the events of the run, and `run_end`. Never throws.
 * The events may contain secrets that `run.redact` knows.
 */
export async function* startRun(
  run: Run,
  engine: Engine,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  const started = performance.now();
  yield startOf(run);
  let ending: Ending;
  try {
    const choosing: RunEvent[] = [];
    let chosen: Match | WithoutSkill;
    run.fromHooks = yield* ownHooksOn(run, engine, signal);
    try {
      chosen = await chooseSkill(run, engine, choosing, signal);
    } finally {
      yield* choosing;
    }
    ending = {
      outcome: yield* (isApart(chosen, run) ? carryOutApart : carryOut)(chosen, run, engine, signal),
    };
  } catch (thrown) {
    ending = endingOf(thrown, signal);
  }
  yield endOf(ending, run, started, signal);
}

/** Returns true for a skill that runs in a conversation of its own. What follows its answer is said in the outer one. */
const isApart = ({ skill, ...chosen }: Match | WithoutSkill, { request }: Run): boolean =>
  skill?.runsApart === true &&
  !request.step &&
  !request.change &&
  !('reason' in chosen && chosen.reason.rule === 'continued');

/** Runs a skill that sees nothing of the conversation, to which only the request and its answer are added. */
async function* carryOutApart(
  chosen: Match | WithoutSkill,
  run: Run,
  engine: Engine,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RunOutcome> {
  const { conversation, ...request } = run.request;
  const apart: Run = { ...run, request, messages: [] };
  try {
    return yield* carryOut(chosen, apart, engine, signal);
  } finally {
    const earlier = conversation?.messages ?? [];
    run.earlier = earlier.length;
    if (apart.messages.length > 0)
      run.messages.push(...earlier, { role: 'user', content: wordsOf(request) }, ...answerOf(apart.messages));
  }
}

/** Returns the last words of a run as the one message that the conversation keeps of it. */
function answerOf(messages: readonly Message[]): Message[] {
  const content = lastAnswer(messages);
  return content === '' ? [] : [{ role: 'assistant', content }];
}

/** Runs a skill, or without one, from its settings to the end of its loop. Throws what ends it early. */
async function* carryOut(
  chosen: Match | WithoutSkill,
  run: Run,
  engine: Engine,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RunOutcome> {
  const found = chosen.skill && roleOf(chosen.skill, chosen.agent.skills);
  const match = chosen.skill && { ...chosen, role: found?.role };
  if (found?.problem) yield { type: 'notice', level: 'warning', ...asMessage(found.problem) };
  const own = match && !run.request.step ? await settingsOf(match, run, engine) : undefined;
  yield* own?.said ?? [];
  run.model = own?.model ?? run.caller?.model;
  const provider = await providerFor(match, run, engine, run.model);
  await checkAttached(run, provider, signal);
  await learnSecrets(match, run, engine);
  yield routed(chosen, provider, run.request.step, engine);
  // Nothing is asked and no server is started for a run that may not begin.
  for (const one of (await run.budget?.check(provider)) ?? [])
    yield { type: 'notice', level: 'warning', ...asMessage(one) };
  run.useSkill = stepsOf(run, engine);
  const prepared = await prepareRun(match, run, provider, engine);
  const { change } = run.request;
  try {
    if (change) {
      const { changeContext } = await import('./compact.ts');
      const setup = prepared.spec();
      const { hooks } = await hooksOf(match, run, setup, engine);
      const room = roomOf({ ...setup, hooks });
      yield* changeContext(room, change, signal);
      return 'completed';
    }
    yield* prepared.opening;
    yield* policyNotices(prepared.policy.rules);
    const gate = await gateOf(prepared, run);
    if (gate) yield* gate.start(signal);
    // A model wrote the words of a step.
    if (match && !run.caller && isTyped(run.request) && namesOffers(run.request.text)) {
      const { handOver } = await import('./handOver.ts');
      yield* handOver(match, { run, policy: prepared.policy, provider, gate }, signal);
    }
    return yield* runWithHooks(match, run, prepared.spec(gate), engine, signal);
  } finally {
    await prepared.close();
  }
}

/** Runs the loop, with the hooks of the skill and of the person around it. */
async function* runWithHooks(
  match: Match | undefined,
  run: Run,
  setup: RunSetup,
  engine: Engine,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RunOutcome> {
  if (run.fromHooks?.length) (await import('./runHooks.ts')).addContext(run.messages, run.fromHooks);
  const { hooks, changed } = await hooksOf(match, run, setup, engine);
  for (const name of changed) {
    const why = sentence(
      'The hooks of {0} have changed. They run again once you accept its permissions.',
      name,
    );
    yield { type: 'notice', level: 'warning', ...asMessage(why) };
  }
  if (!hooks) {
    yield* commandsOfText(run, setup, signal);
    return yield* runLoop(specOf(setup), signal);
  }
  let outcome: RunOutcome;
  try {
    if (!run.request.goesOn)
      yield* hooks.begin(wordsOf(run.request), run.messages, run.earlier === 0, signal);
    // The setup reads its tools in each round.
    Object.assign(setup, { hooks });
    yield* commandsOfText(run, setup, signal);
    outcome = yield* runLoop(specOf(setup), signal);
  } catch (error) {
    yield* hooks.end(signal);
    hooks.close();
    throw error;
  }
  yield* hooks.end(signal);
  hooks.close();
  return outcome;
}

/** Runs what the skill's text has run before the model reads it. */
async function* commandsOfText(
  run: Run,
  setup: RunSetup,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  if (run.textMark !== undefined) yield* (await import('./textCommands.ts')).runMarked(run, setup, signal);
}

/** Has the person's own hooks look at a request before any skill or model does. Returns what they want the model to know. */
async function* ownHooksOn(
  { id, request, human }: Run,
  { config }: Engine,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, readonly string[]> {
  const hooks = ownHooks(config.configDir).hooks.filter(({ event }) => event === 'UserPromptSubmit');
  if (hooks.length === 0 || request.step || request.change || request.goesOn) return [];
  const [{ RunHooks }, { runPolicy }, { commandEnvironment }] = await Promise.all([
    import('./runHooks.ts'),
    import('../policy/decision.ts'),
    import('../tools/command.ts'),
  ]);
  const folder = workingDirOf(config);
  const folders = { workingDir: folder, packDir: folder, skillDir: folder, commandDir: folder };
  const env = commandEnvironment({ ...config.env, HOME: config.home }, folders, config.dataDir);
  const run = { human, policy: runPolicy(config, undefined, folders), context: { ...folders, env } };
  const own = new RunHooks({ hooks, session: request.conversationId ?? id, kind: 'run', run });
  return yield* own.prompt(wordsOf(request), signal);
}

/**
 * Returns the hooks of a run, none if there are none, and the projects whose hooks were accepted as others than they are. Where a recording
 * answers, nothing is held back that it did.
 */
async function hooksOf(
  match: Match | undefined,
  { id, request, caller }: Run,
  setup: RunSetup,
  { config, catalog }: Engine,
): Promise<{ hooks?: RunHooks; changed: readonly string[] }> {
  const changed: string[] = [];
  if (setup.provider.recording) return { changed };
  const { agent, skill } = match ?? {};
  const own = ownHooks(config.configDir);
  const everywhere = (await catalog.agents()).filter(({ name }) => name !== agent?.name);
  const others: { agent: Agent; config: Config }[] = [];
  for (const other of everywhere) {
    const state = await ofProject(other, config);
    if (own.everywhere.includes(other.name) || state === 'reviewed') others.push({ agent: other, config });
    else if (state === 'changed') changed.push(other.name);
  }
  const hooks = [
    ...own.hooks.filter(({ event }) => event !== 'UserPromptSubmit'),
    ...others.flatMap(other => packHooks(other.agent).hooks),
    ...(agent ? packHooks(agent).hooks : []),
    ...(agent && skill ? skillHooks(skill.hooks, agent, skill).hooks : []),
  ];
  if (hooks.length === 0) return { changed };
  const { RunHooks } = await import('./runHooks.ts');
  const kind = request.step ? 'plan' : caller ? 'step' : 'run';
  const session = caller?.runId ?? request.conversationId ?? id;
  const { messages, redact: hide } = setup;
  const made = new RunHooks({ hooks, session, kind, run: setup, others, messages, redact: hide });
  return { hooks: made, changed };
}

/** Returns whether the user has accepted the hooks of a project: these run in every run there. Undefined for an agent without such. */
async function ofProject(agent: Agent, config: Config): Promise<ReviewState['state'] | undefined> {
  if (agent.source !== 'project' || packHooks(agent).hooks.length === 0) return undefined;
  const { openReviews } = await import('../policy/decision.ts');
  const found = await openReviews(config)
    .stateOf(agent)
    .catch(() => undefined);
  return found?.state;
}

/** Returns what carries out the skills that the run uses. */
const stepsOf =
  (run: Run, engine: Engine): UseSkill =>
  (call, wanted, context, signal) =>
    useSkill(call, wanted, context, { run, engine, carryOut: stepIn(engine) }, signal);

const stepIn = (engine: Engine) =>
  async function* (match: Match, run: Run, signal: AbortSignal): AsyncGenerator<RunEvent, Ending> {
    try {
      return { outcome: yield* carryOut(match, run, engine, signal) };
    } catch (thrown) {
      return endingOf(thrown, signal);
    }
  };

const warning = (message: string): RunEvent => ({ type: 'notice', level: 'warning', message });

function startOf({ id: runId, request }: Run): RunEvent {
  const { text, attachments = [], selection, mode = 'default', withoutContextFiles } = request;
  const attached = attachments.map(({ kind, name }) => ({ kind, name }));
  const startedAt = new Date().toISOString();
  return {
    type: 'run_start',
    runId,
    text,
    startedAt,
    ...(attached.length > 0 && { attached }),
    ...(selection && { selection: placeOfSelection(selection) }),
    ...(mode !== 'default' && { mode }),
    ...(withoutContextFiles && { withoutContextFiles }),
  };
}

function endOf(ending: Ending, run: Run, started: number, { reason }: AbortSignal): RunEvent {
  return {
    type: 'run_end',
    outcome: ending.outcome,
    ...run.counts,
    durationMs: Math.max(0, Math.round(performance.now() - started - run.waited.ms)),
    messages: run.messages,
    ...(ending.error && { error: ending.error }),
    ...(ending.outcome === 'cancelled' && reason instanceof Interruption && { interrupted: true }),
  };
}

/** Returns how a run ends that has thrown. */
export function endingOf(thrown: unknown, signal: AbortSignal): Ending {
  if (signal.aborted) return { outcome: 'cancelled' };
  if (!(thrown instanceof TelosError)) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return { outcome: 'failed', error: { code: 'internal', message } };
  }
  const { code } = thrown;
  const outcome = code === 'no_match' || code === 'budget' ? code : 'failed';
  return { outcome, error: thrown.runError };
}

/**
 * Returns the skill, or what else fits a run without one. A model that is asked counts against the budget however it ends, which
 * `report` receives. Throws TelosError `no_match` and the errors of `routeRequest`.
 */
async function chooseSkill(
  { request, budget }: Run,
  engine: Engine,
  report: RunEvent[],
  signal: AbortSignal,
): Promise<Match | WithoutSkill> {
  if (request.step) return skillOfStep(request.step, engine);
  if (request.change || request.goesOn) return skillSoFar(request, engine);
  if (request.withoutSkill) return withoutSkill();
  if (await isForNoSkill(request, engine)) return withoutSkill();
  const aimed = isTyped(request) ? aimedAtServer(request, await engine.catalog.agents()) : request;
  if ('reason' in aimed) return aimed;
  const model = () => routingModel(engine, budget, event => report.push(event));
  const found = await routeRequest(
    { ...aimed, answersAnyway: answersAnyway(request, engine) },
    engine,
    signal,
    model,
  );
  if (found.notice) report.push(warning(found.notice));
  if (!('choices' in found)) return found;
  if (!answersAnyway(request, engine)) throw noMatch(request.text, found);
  return withoutSkill(found.choices.map(({ agent, skill }) => ({ agent, skill })));
}

const withoutSkill = (likely: readonly SkillRef[] = []): WithoutSkill => ({
  agent: undefined,
  skill: undefined,
  alsoFits: undefined,
  ...(likely.length > 0 && { likely }),
});

/** Returns true if a request without a skill that is sure is answered, as it says itself or the settings do. */
const answersAnyway = (request: RunRequest, { config }: Engine): boolean =>
  request.answersAnyway === true || config.answerWithoutSkill === 'always';

/** Returns true if there is no skill that could be meant, and the request is answered all the same. */
const isForNoSkill = async (request: RunRequest, engine: Engine): Promise<boolean> =>
  answersAnyway(request, engine) &&
  !request.skill &&
  request.agent === undefined &&
  (await engine.catalog.agents()).length === 0;

/** Returns the skill that the step names. Throws TelosError `config` if there is none of that name. */
async function skillOfStep({ skill: named }: RunStep, { catalog }: Engine): Promise<Match | WithoutSkill> {
  if (!named) return withoutSkill();
  const agent = await catalog.agentNamed(named.agent);
  const skill = agent.skills.find(({ id }) => id === named.skill);
  if (skill) return { agent, skill, reason: { rule: 'chosen' } };
  const known = agent.skills.map(({ id }) => id).join(', ');
  throw new TelosError('config', [
    sentence('The agent {0} has no skill {1}.', agent.name, named.skill),
    sentence('Its skills: {0}.', known),
  ]);
}

/** Returns the skill of the conversation, or none if it has gone. */
async function skillSoFar({ conversation }: RunRequest, { catalog }: Engine): Promise<Match | WithoutSkill> {
  const { agent: named, skill: id } = conversation?.skill ?? {};
  const agent = (await catalog.agents()).find(({ name }) => name === named);
  const skill = agent?.skills.find(each => each.id === id);
  if (!agent || !skill) return withoutSkill();
  return { agent, skill, reason: { rule: 'continued' } };
}

const typedIn: ReadonlySet<RunRequest['origin']> = new Set(['acp', 'chat', 'cli', 'discord', 'schedule']);

/** Returns true for a person's own words. Those of a plan, an eval, a task or a program call no prompt of a server and attach nothing. */
const isTyped = ({ origin, step }: RunRequest): boolean => !step && typedIn.has(origin);

function noMatch(text: string, { suggestions, choices, didYouMean }: NoMatch): TelosError {
  const available = suggestions.map(({ agent, skill }) => `  ${skill} (${agent})`).join('\n');
  const why =
    didYouMean === undefined
      ? sentence("No matching skill found for: '{0}'\n\nAvailable skills:\n{1}", text, available)
      : sentence(
          "No matching skill found for: '{0}'. Did you mean {1}?\n\nAvailable skills:\n{2}",
          ...[text, didYouMean, available],
        );
  return new TelosError('no_match', [why], {
    suggestions,
    ...(choices.length > 0 && { choices }),
    ...(didYouMean !== undefined && { didYouMean }),
  });
}

/**
 * Gives the run what its skill says of its mode, its limits and its effort. Returns the skill's model, unless the person has named one for
 * this run, and notices of what differs from other runs.
 */
async function settingsOf(
  { agent, skill, role }: Match,
  run: Run,
  { config, models }: Engine,
): Promise<{ model?: string; said: RunEvent[] }> {
  const { settings, problems } = skillSettings(config, agent, skill, role);
  const { effort, mode, budget } = settings;
  const said: RunEvent[] = problems.map(problem => ({
    type: 'notice',
    level: 'warning',
    ...asMessage(problem),
  }));
  const isFlag = (name: string): boolean => config.origins[name]?.origin === 'flag';
  if (effort !== undefined && !isFlag('effort')) run.effort = effort;
  const before = run.request.mode ?? 'default';
  // A skill may be careful where the person is not, never the other way round.
  if (mode && mode !== 'default' && runModes.indexOf(mode) > runModes.indexOf(before)) {
    run.request = { ...run.request, mode };
    const set =
      mode === 'plan'
        ? sentence('The skill {0} is set to plan: it only reads.', skill.id)
        : sentence('The skill {0} is set to review: it asks before each change.', skill.id);
    said.push({ type: 'notice', level: 'info', ...asMessage(set) });
  }
  if (Object.keys(budget).length > 0) {
    const { joinedBudget, openBudget } = await import('./budget.ts');
    // The file in which a person changes them, no matter who set them.
    const place = { value: '', origin: 'default', file: join(config.configDir, 'agents.toml') } as const;
    const origins = Object.fromEntries(Object.keys(budget).map(name => [name, place]));
    run.budget = joinedBudget([
      run.budget,
      openBudget({ ...config, budget, origins }, { id: run.caller?.runId ?? run.id, waited: run.waited }),
    ]);
  }
  if (settings.model === undefined || isFlag('model')) return { said };
  const usual = settings.isAuthorsModel ? await models.choice(run.caller?.model) : undefined;
  const model = usual ? await meantModel(settings.model, usual) : settings.model;
  if (!usual || usual.recording || isModelOf(usual, model)) return { model, said };
  const other = sentence(
    'The skill {0} asks for {1}, which is not a model of {2}, so {3} runs it.',
    ...[skill.id, model, usual.name, usual.model],
  );
  return { said: [...said, { type: 'notice', level: 'info', ...asMessage(other) }] };
}

/** Returns the model that an author means by `opus`, `sonnet` or `haiku`: the user's own if it is such a one, else the latest. */
async function meantModel(written: string, { name, model }: ProviderChoice): Promise<string> {
  const family = /^(?:opus|sonnet|haiku)$/i.test(written) ? written.toLowerCase() : undefined;
  if (family === undefined) return written;
  if (model.split(/[-/]/).includes(family)) return model;
  const { latestModel } = await import('../providers/models.ts');
  return latestModel(name, family) ?? written;
}

/** Throws TelosError `config` if the model is known not to take what is attached. Nothing has been sent then. */
async function checkAttached({ request }: Run, provider: Provider, signal: AbortSignal): Promise<void> {
  const files = (request.attachments ?? []).filter(each => each.kind !== 'text');
  if (files.length === 0 || provider.recording) return;
  const taken = await provider.media?.(signal);
  const refused = taken && files.find(({ kind }) => !taken.includes(kind as MediaKind));
  if (!refused) return;
  const { model } = provider;
  const why =
    refused.kind === 'image'
      ? sentence(
          '{0} does not accept images. Nothing was sent. Remove {1}, or choose another model.',
          model,
          refused.name,
        )
      : sentence(
          '{0} does not accept PDF files. Nothing was sent. Remove {1}, or choose another model.',
          model,
          refused.name,
        );
  throw new TelosError('config', [why], { remedy: { kind: 'choose_model' } });
}

/** A run without a skill may read any file in the folders of skills. */
async function learnSecrets(match: Match | undefined, { redact }: Run, engine: Engine): Promise<void> {
  for (const { mcpConfig } of match ? [match.agent] : await engine.catalog.agents())
    if (mcpConfig) redact.learn(hiddenIn(mcpConfig, engine.config.env));
}

/** Returns the model of the run. If the run is recorded, it gets the tape of the recorder. */
async function providerFor(
  match: Match | undefined,
  run: Run,
  { config, models }: Engine,
  model: string | undefined,
): Promise<Provider> {
  const { text, recordTo, recordedEval, step } = run.request;
  const choice = await models.choice(step?.model ?? model);
  const provider = await createProvider(config, choice, match?.skill.dir, step?.key);
  if (!recordTo) return provider;
  const [{ openRecorder }, { skillDigest }, { costOf }] = await Promise.all([
    import('../providers/recording.ts'),
    import('../skills/skillDigest.ts'),
    import('../providers/models.ts'),
  ]);
  const { agent, skill } = match ?? {};
  const named = { agent: agent?.name ?? 'telos', skill: skill?.id ?? step?.name ?? '', request: text };
  const recorder = openRecorder(provider, recordTo, named, {
    header: {
      ...(skill && { skillDigest: await skillDigest(skill.dir) }),
      ...(recordedEval && { eval: recordedEval }),
    },
    places: { pack: agent?.packDir, home: config.home },
    redact: run.redact.text,
    priceOf: tokens => costOf(provider, tokens),
  });
  run.request = { ...run.request, tape: recorder.tape };
  return recorder.provider;
}

function routed(
  chosen: Match | WithoutSkill,
  provider: Provider,
  step: RunStep | undefined,
  { config }: Engine,
): RunEvent {
  const { agent, skill } = chosen;
  const reason: RouteReason = chosen.skill
    ? chosen.reason
    : step
      ? { rule: 'chosen' }
      : {
          rule: 'without_skill',
          ...(chosen.alsoFits && { alsoFits: chosen.alsoFits }),
          ...(chosen.likely && { likely: chosen.likely }),
        };
  return {
    type: 'routed',
    agent: agent?.name ?? 'telos',
    skill: skill?.id ?? step?.name ?? '',
    description: skill?.description ?? '',
    reason,
    provider: provider.name,
    model: provider.model,
    workingDir: step?.workingDir ?? agent?.workingDir ?? workingDirOf(config),
    hasMcp: agent?.mcpConfig !== undefined,
    ...(provider.recording && { recording: provider.recording }),
  };
}

async function gateOf({ connect, policy }: PreparedRun, { human }: Run): Promise<ServerGate | undefined> {
  if (!connect) return undefined;
  const { ServerGate } = await import('./serverGate.ts');
  return new ServerGate({ connect, human, policy });
}
