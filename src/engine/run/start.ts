/** Runs one request from its start to its end: chooses its skill, prepares the run, and runs its loop. */

import { placeOfSelection } from '../../protocol/attachment.ts';
import type { RouteReason, RunError, RunEvent, RunOutcome } from '../../protocol/run.ts';
import { told } from '../../protocol/text.ts';
import { Interruption, TelosError } from '../errors.ts';
import { hiddenIn } from '../mcp/config.ts';
import { policyNotices } from '../policy/policyFile.ts';
import { createProvider } from '../providers/create.ts';
import type { Provider } from '../providers/provider.ts';
import { recordingProvider } from '../providers/recording.ts';
import { routeRequest } from '../routing/route.ts';
import type { Match } from '../routing/routeName.ts';
import type { NoMatch, WithoutSkill } from '../routing/routeResult.ts';
import { runLoop } from './loop.ts';
import { routingModel } from './meter.ts';
import { type PreparedRun, prepareRun, workingDirOf } from './prepare.ts';
import type { Engine, Run, RunRequest, RunStep } from './request.ts';
import type { ServerGate } from './serverGate.ts';

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
    const match = chosen.skill && chosen;
    const provider = await providerFor(match, run.request, engine);
    await learnSecrets(match, run, engine);
    yield routed(chosen, provider, run.request.step, engine);
    // Nothing is asked and no server is started for a run that may not begin.
    for (const one of (await run.budget?.check()) ?? [])
      yield { type: 'notice', level: 'warning', ...told(one) };
    const prepared = await prepareRun(match, run, provider, engine);
    try {
      yield* prepared.opening;
      yield* policyNotices(prepared.policy.rules);
      const gate = await gateOf(prepared, run);
      if (gate) yield* gate.start(signal);
      ending = { outcome: yield* runLoop(prepared.spec(gate), signal) };
    } finally {
      await prepared.close();
    }
  } catch (thrown) {
    ending = endingOf(thrown, signal);
  }
  yield endOf(ending, run, started, signal);
}

const warning = (message: string): RunEvent => ({ type: 'notice', level: 'warning', message });

function startOf({ id: runId, request }: Run): RunEvent {
  const { text, attachments = [], selection, mode = 'default' } = request;
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
  return { outcome, error: thrown.told };
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
  if (request.withoutSkill) return { agent: undefined, skill: undefined, alsoFits: undefined };
  const model = () => routingModel(engine, budget, event => report.push(event));
  const found = await routeRequest(request, engine, signal, model);
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
  throw new TelosError(
    'config',
    `The agent ${agent.name} has no skill ${named.skill}. Its skills: ${known}.`,
  );
}

function noMatch(text: string, { suggestions, choices, didYouMean }: NoMatch): TelosError {
  const available = suggestions.map(({ agent, skill }) => `  ${skill} (${agent})`).join('\n');
  const hint = didYouMean === undefined ? '' : `. Did you mean ${didYouMean}?`;
  return new TelosError(
    'no_match',
    `No matching skill found for: '${text}'${hint}\n\nAvailable skills:\n${available}`,
    { suggestions, ...(choices.length > 0 && { choices }), ...(didYouMean !== undefined && { didYouMean }) },
  );
}

/** A run without a skill may read any file in the folders of skills. */
async function learnSecrets(match: Match | undefined, { redact }: Run, engine: Engine): Promise<void> {
  for (const { mcpConfig } of match ? [match.agent] : await engine.catalog.agents())
    if (mcpConfig) redact.learn(hiddenIn(mcpConfig, engine.config.env));
}

async function providerFor(
  match: Match | undefined,
  { text, recordTo, step }: RunRequest,
  { config, models }: Engine,
): Promise<Provider> {
  const choice = await models.choice(step?.model);
  const provider = await createProvider(config, choice, match?.skill.dir, step?.key);
  if (!recordTo) return provider;
  const { agent, skill } = match ?? {};
  return recordingProvider(provider, recordTo, {
    agent: agent?.name ?? 'telos',
    skill: skill?.id ?? step?.name ?? '',
    request: text,
  });
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
