/** Performs one request: opens its budget, chooses its skill, and runs it, or runs without a skill. */

import type { AttachedName } from '../../protocol/attachment.ts';
import type { RunError, RunEvent, RunOutcome, SkillRef } from '../../protocol/run.ts';
import type { ChangeStore } from '../changes/changeStore.ts';
import type { Config } from '../config.ts';
import { Interruption, TelosError } from '../errors.ts';
import { type Human, withoutSecrets } from '../human.ts';
import { hiddenIn } from '../mcp/config.ts';
import type { SignInPort } from '../mcp/signIn.ts';
import { createProvider, type ProviderChoice } from '../providers/create.ts';
import type { Provider } from '../providers/provider.ts';
import { recordingProvider } from '../providers/recording.ts';
import type { Redactor } from '../redact.ts';
import type { Match, RouteResult } from '../routing/route.ts';
import { namedSkill } from '../routing/routeName.ts';
import type { FileAgent } from '../skills/discover.ts';
import { workFoldersOf } from '../skills/workFolders.ts';
import { type Budget, openBudget } from './budget.ts';
import { runSkill, runWithoutSkill, type SkillBench } from './prepare.ts';
import { withoutReasoning } from './prompt.ts';
import { type RunRequest, type RunState, wordsOf } from './request.ts';

/** The parts of the engine that a request needs. */
export interface Performing {
  readonly config: Config;
  readonly changes: ChangeStore;
  agents(): Promise<readonly FileAgent[]>;
  /** `report` receives the usage of a model that chooses the skill, and notices about the budget. */
  route(
    request: RunRequest,
    signal: AbortSignal,
    budget: Budget | undefined,
    report: (event: RunEvent) => void,
  ): Promise<RouteResult>;
  provider(): Promise<ProviderChoice>;
  readonly ripgrep: string | undefined;
  readonly signIn: SignInPort | undefined;
}

/** The person who is asked, the redactor, and the state of the run so far. */
export interface RunParts {
  readonly human: Human;
  readonly redact: Redactor;
  readonly state: RunState;
}

/**
 * Performs a request. Throws TelosError `no_match`, `config`, `auth` or `budget`, and the errors of a provider.
 * Throws the abort reason on abort.
 */
export async function* performRequest(
  request: RunRequest,
  engine: Performing,
  parts: RunParts,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RunOutcome> {
  const budget = openBudget(engine.config);
  if (request.withoutSkill || (await continuesWithoutSkill(request, engine))) {
    const provider = await providerFor(undefined, request, engine);
    const agents = await engine.agents();
    // The run may read any file in the folders of skills.
    for (const { mcpConfig } of agents)
      if (mcpConfig) parts.redact.learn(hiddenIn(mcpConfig, engine.config.env));
    return yield* runWithoutSkill(
      wordsOf(request),
      benchOf(provider, request, engine, parts, budget, agents),
      signal,
    );
  }
  const match = yield* route(request, engine, budget, signal);
  if (match.notice) yield { type: 'notice', level: 'warning', message: match.notice };
  if (!match.skill) throw noMatch(request.text, match.suggestions);
  const provider = await providerFor(match, request, engine);
  const bench = benchOf(provider, request, engine, parts, budget, await engine.agents());
  return yield* runSkill(match, wordsOf(request), bench, signal);
}

/** Chooses the skill. This may already be a model call, which counts however it ends. */
async function* route(
  request: RunRequest,
  engine: Performing,
  budget: Budget | undefined,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RouteResult> {
  const reported: RunEvent[] = [];
  try {
    return await engine.route(request, signal, budget, event => reported.push(event));
  } finally {
    yield* reported;
  }
}

async function continuesWithoutSkill(
  { text, agent, skill, conversation }: RunRequest,
  engine: Performing,
): Promise<boolean> {
  if (skill || conversation?.skill?.skill !== '') return false;
  const agents = await engine.agents();
  const asked = agent === undefined ? agents : agents.filter(({ name }) => name === agent);
  return namedSkill(text, asked) === undefined;
}

function benchOf(
  provider: Provider,
  { conversation, attachments }: RunRequest,
  { config, changes, ripgrep, signIn }: Performing,
  { human, redact, state }: RunParts,
  budget: Budget | undefined,
  agents: readonly FileAgent[],
): SkillBench {
  // A recording answers from its beginning, whatever was said before.
  const earlier = provider.recording || !conversation ? [] : withoutReasoning(conversation.messages);
  state.earlier = earlier.length;
  return {
    earlier,
    ...(conversation?.skillIsUnread && { skillIsUnread: true }),
    ...(attachments && { attachments }),
    provider,
    human: withoutSecrets(human, redact.text),
    redact,
    state,
    config,
    changes: changes.keeper(state.runId),
    budget,
    ripgrep,
    signIn,
    workFolders: workFoldersOf(config, agents),
  };
}

async function providerFor(
  match: Match | undefined,
  request: RunRequest,
  { config, provider: choice }: Performing,
): Promise<Provider> {
  const provider = await createProvider(config, await choice(), match?.skill.dir);
  if (!request.recordTo) return provider;
  return recordingProvider(provider, request.recordTo, {
    agent: match?.agent.name ?? 'telos',
    skill: match?.skill.id ?? '',
    request: request.text,
  });
}

function noMatch(text: string, suggestions: readonly SkillRef[]): TelosError {
  const available = suggestions.map(({ agent, skill }) => `  ${skill} (${agent})`).join('\n');
  return new TelosError(
    'no_match',
    `No matching skill found for: '${text}'\n\nAvailable skills:\n${available}`,
    { suggestions },
  );
}

/** Yields `run_start`, the events of `body`, and `run_end`. Never throws. The caller owns the state. */
export async function* framed(
  text: string,
  state: RunState,
  body: () => AsyncGenerator<RunEvent, RunOutcome>,
  signal: AbortSignal,
  attached: readonly AttachedName[] = [],
): AsyncGenerator<RunEvent, void> {
  const started = performance.now();
  yield {
    type: 'run_start',
    runId: state.runId,
    text,
    startedAt: new Date().toISOString(),
    ...(attached.length > 0 && { attached }),
  };
  let outcome: RunOutcome;
  let error: RunError | undefined;
  try {
    outcome = yield* body();
  } catch (thrown) {
    ({ outcome, error } = ending(thrown, signal));
  }
  yield {
    type: 'run_end',
    outcome,
    rounds: state.counts.rounds,
    toolCalls: state.counts.toolCalls,
    durationMs: Math.round(performance.now() - started),
    messages: state.messages,
    ...(error ? { error } : {}),
    ...(outcome === 'cancelled' && signal.reason instanceof Interruption && { interrupted: true }),
  };
}

function ending(thrown: unknown, signal: AbortSignal): { outcome: RunOutcome; error?: RunError } {
  if (signal.aborted) return { outcome: 'cancelled' };
  if (!(thrown instanceof TelosError)) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return { outcome: 'failed', error: { code: 'internal', message } };
  }
  const { code, message, suggestions } = thrown;
  const outcome = code === 'no_match' ? 'no_match' : code === 'budget' ? 'budget' : 'failed';
  return { outcome, error: { code, message, ...(suggestions ? { suggestions } : {}) } };
}
