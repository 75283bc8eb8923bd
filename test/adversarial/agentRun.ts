/** Runs an agent on a model that obeys a script to the letter, over the provider's real wire, and tells what was seen from outside. */
import { unattended } from '../../src/cli/terminalHuman.ts';
import type { Human } from '../../src/engine/core/ports.ts';
import { type FrontendParts, Telos } from '../../src/engine/telos.ts';
import type { ApprovalDecision, ApprovalRequest, RunEvent } from '../../src/protocol/run.ts';
import { type AnthropicTurn, type ReceivedRequest, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { fieldsOf } from './caseFile.ts';
import { changesSince, noteKey, noteRun, snapshot } from './witness.ts';
import { agentName, usualKey, type World } from './world.ts';

export interface ScriptedCall {
  name: string;
  input: unknown;
}

export interface WireResult {
  content: string;
  isError: boolean;
}

export interface AgentRun {
  /** What the model was told about each call, in order, as it stood on the wire. */
  results: WireResult[];
  asked: ApprovalRequest[];
  events: RunEvent[];
  requests: ReceivedRequest[];
  milliseconds: number;
}

export interface RunOptions {
  /** Answers every question. If missing, questions stay unanswered. */
  person?: ApprovalDecision | ((request: ApprovalRequest) => Promise<ApprovalDecision>);
  env?: Readonly<Record<string, string>>;
  /** Said after the calls. */
  lastWords?: string;
  control?: AbortController;
  onEvent?: (event: RunEvent) => void;
  agent?: string;
  /** Default `one`. */
  skill?: string;
  /** In place of `person`. */
  human?: Human;
  /** Milliseconds between two writes of the model. */
  chunkDelayMs?: number;
  /** Instead of one call a turn. */
  turns?: AnthropicTurn[];
  /** What a frontend would bring. */
  parts?: FrontendParts;
}

/** One call a turn; the answer behind the last ends the run. */
export async function runAgent(
  world: World,
  calls: readonly ScriptedCall[],
  options: RunOptions = {},
): Promise<AgentRun> {
  const { person, env = {}, lastWords = 'done', control = new AbortController(), onEvent } = options;
  const turns = options.turns ?? [
    ...calls.map(({ name, input }, at) => ({ toolCalls: [{ id: `toolu_${at}`, name, input }] })),
    { text: [lastWords] },
  ];
  const server = await startAnthropicServer({ turns, chunkDelayMs: options.chunkDelayMs ?? 0 });
  const asked: ApprovalRequest[] = [];
  const human: Human = person
    ? {
        ask: unattended.ask,
        approve: async request => {
          asked.push(request);
          return typeof person === 'function' ? person(request) : person;
        },
      }
    : (options.human ?? unattended);
  const config = world.configFor({ ANTHROPIC_API_KEY: usualKey, ANTHROPIC_BASE_URL: server.url, ...env });
  const events: RunEvent[] = [];
  const isUnattended = !person && !options.human;
  const before = isUnattended ? snapshot(world) : new Map();
  const start = performance.now();
  try {
    const request = {
      text: 'do it',
      skill: { agent: options.agent ?? agentName, skill: options.skill ?? 'one' },
    };
    for await (const event of Telos.open(config, options.parts).run(request, human, control.signal)) {
      events.push(event);
      onEvent?.(event);
    }
  } finally {
    await server.close();
  }
  const milliseconds = performance.now() - start;
  const results = resultsIn(server.requests, events);
  if (isUnattended) noteRun(world, changesSince(before, snapshot(world)), events, results);
  if (events.at(-1)?.type !== 'run_end') world.noted.crashed.push('the run has no end');
  noteKey(world, 'the events', JSON.stringify(events));
  return {
    results,
    asked,
    events,
    requests: server.requests,
    milliseconds,
  };
}

/** From the last request, which repeats the whole conversation; where there was none any more, from the end of the run. */
function resultsIn(requests: readonly ReceivedRequest[], events: readonly RunEvent[]): WireResult[] {
  const end = events.at(-1);
  const onWire = toolResults((requests.at(-1)?.body?.messages ?? []) as unknown[]);
  const atEnd = toolResults(end?.type === 'run_end' ? end.messages : []);
  return atEnd.length > onWire.length ? atEnd : onWire;
}

function toolResults(messages: readonly unknown[]): WireResult[] {
  return messages
    .flatMap(message => fieldsOf(message)['content'] ?? [])
    .map(fieldsOf)
    .filter(block => block['type'] === 'tool_result')
    .map(block => ({ content: plainText(block['content']), isError: block['is_error'] === true }));
}

function plainText(content: unknown): string {
  if (typeof content === 'string') return content;
  const blocks = Array.isArray(content) ? content : [];
  return blocks.map(block => String(fieldsOf(block)['text'] ?? '')).join('\n');
}

/**
 * `ask` when a person was asked, whatever came of it; else by the result: `allow` when it was done, `deny` when policy or tool refused it,
 * `error` when it could not be done.
 */
export function decisionOf({ asked, results }: Pick<AgentRun, 'asked' | 'results'>): string {
  if (asked.length > 0) return 'ask';
  const result = results.at(-1);
  if (!result) return 'nothing';
  if (!result.isError) return 'allow';
  if (/^Not allowed \((input\.invalid|floor\.fetch-scheme)\)/.test(result.content)) return 'error';
  const refusals =
    /^(Not allowed|Denied)|is never (fetched|opened)|which is not fetched|refused address|has not been approved/;
  return refusals.test(result.content) ? 'deny' : 'error';
}

/** Returns true for a question that no one could answer: a no that names its rule. A case may call that `ask`. */
export const wasQuestion = ({ results }: Pick<AgentRun, 'results'>): boolean =>
  /^Denied: No one can be asked here/.test(results.at(-1)?.content ?? '');

/** The refusal names the rule that decided. */
export const namesRule = (told: string): boolean | string =>
  /\(rule [\w.-]+|^Not allowed \([\w.-]+\)/s.test(told) || told.slice(0, 300);

/** A run of one call, on the surface that the case names. */
export function runOne(world: World, call: ScriptedCall, options: RunOptions = {}): Promise<AgentRun> {
  const { surface, approved } = world.input;
  const person: ApprovalDecision | undefined =
    surface === 'vscode'
      ? approved === true
        ? { allow: true, scope: 'once' }
        : { allow: false, reason: 'No.' }
      : undefined;
  return runAgent(world, [call], { ...(person ? { person } : {}), ...options });
}
