/** Runs one request from its start to its end: chooses its skill, prepares the run, and runs its loop. */

import { join } from 'node:path';
import { placeOfSelection } from '@telos/protocol/attachment';
import {
  type RouteReason,
  type RunError,
  type RunEvent,
  type RunOutcome,
  runModes,
} from '@telos/protocol/run';
import { asMessage, sentence } from '@telos/protocol/text';
import { Interruption, TelosError } from '../core/errors.ts';
import { runLoop } from '../core/loop.ts';
import type { MediaKind, Provider } from '../core/ports.ts';
import { hiddenIn } from '../mcp/config.ts';
import { policyNotices } from '../policy/policyFile.ts';
import { createProvider, isModelOf } from '../providers/create.ts';
import { routeRequest } from '../routing/route.ts';
import type { Match } from '../routing/routeName.ts';
import type { NoMatch, WithoutSkill } from '../routing/routeResult.ts';
import { skillSettings } from '../skills/skillSettings.ts';
import { routingModel } from './meter.ts';
import { type PreparedRun, prepareRun, workingDirOf } from './prepare.ts';
import type { Engine, Run, RunRequest, RunStep, UseSkill } from './request.ts';
import { specOf } from './runSetup.ts';
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
    try {
      chosen = await chooseSkill(run, engine, choosing, signal);
    } finally {
      yield* choosing;
    }
    ending = { outcome: yield* carryOut(chosen, run, engine, signal) };
  } catch (thrown) {
    ending = endingOf(thrown, signal);
  }
  yield endOf(ending, run, started, signal);
}

/** Runs a skill, or without one, from its settings to the end of its loop. Throws what ends it early. */
async function* carryOut(
  chosen: Match | WithoutSkill,
  run: Run,
  engine: Engine,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RunOutcome> {
  const match = chosen.skill && chosen;
  const own = match && !run.request.step ? await settingsOf(match, run, engine) : undefined;
  yield* own?.said ?? [];
  const provider = await providerFor(match, run, engine, own?.model);
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
      const room = roomOf(prepared.spec());
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
    return yield* runLoop(specOf(prepared.spec(gate)), signal);
  } finally {
    await prepared.close();
  }
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
  if (request.withoutSkill) return { agent: undefined, skill: undefined, alsoFits: undefined };
  const aimed = isTyped(request) ? aimedAtServer(request, await engine.catalog.agents()) : request;
  if ('reason' in aimed) return aimed;
  const model = () => routingModel(engine, budget, event => report.push(event));
  const found = await routeRequest(aimed, engine, signal, model);
  if (found.notice) report.push(warning(found.notice));
  if ('choices' in found) throw noMatch(request.text, found);
  return found;
}

/** Returns the skill that the step names. Throws TelosError `config` if there is none of that name. */
async function skillOfStep({ skill: named }: RunStep, { catalog }: Engine): Promise<Match | WithoutSkill> {
  if (!named) return { agent: undefined, skill: undefined, alsoFits: undefined };
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
  if (!agent || !skill) return { agent: undefined, skill: undefined, alsoFits: undefined };
  return { agent, skill, reason: { rule: 'continued' } };
}

const typedIn: ReadonlySet<RunRequest['origin']> = new Set(['chat', 'cli', 'discord', 'schedule']);

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
  { agent, skill }: Match,
  run: Run,
  { config, models }: Engine,
): Promise<{ model?: string; said: RunEvent[] }> {
  const { settings, problems } = skillSettings(config, agent, skill.id);
  const { model, effort, mode, budget } = settings;
  const said: RunEvent[] = problems.map(problem => ({
    type: 'notice',
    level: 'warning',
    ...asMessage(problem),
  }));
  const isFlag = (name: string): boolean => config.origins[name]?.origin === 'flag';
  if (effort !== undefined && !isFlag('effort')) run.effort = effort;
  const before = run.request.mode ?? 'default';
  // A skill may be careful where the person is not, never the other way round.
  if (mode && runModes.indexOf(mode) > runModes.indexOf(before)) {
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
  if (model === undefined || isFlag('model')) return { said };
  const usual = settings.isAuthorsModel ? await models.choice() : undefined;
  if (!usual || usual.recording || isModelOf(usual, model)) return { model, said };
  const other = sentence(
    'The skill {0} asks for {1}, which is not a model of {2}, so {3} runs it.',
    ...[skill.id, model, usual.name, usual.model],
  );
  return { said: [...said, { type: 'notice', level: 'info', ...asMessage(other) }] };
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
  const [{ openRecorder }, { skillDigest }, { priceOf }] = await Promise.all([
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
    priceOf: tokens => priceOf(provider.name, provider.model, tokens),
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
      : { rule: 'without_skill', ...(chosen.alsoFits && { alsoFits: chosen.alsoFits }) };
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
