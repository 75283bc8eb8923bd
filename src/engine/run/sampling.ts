/** Has the model of a run answer what an MCP server asks of it (sampling): text alone, without tools and beside the conversation. */
import type { Message, RunEvent } from '@telos/protocol/run';
import { asMessage, type Sentence } from '@telos/protocol/text';
import { defaultMaxTokens } from '../core/limits.ts';
import type { Budget, Provider, TokenCount } from '../core/ports.ts';
import { usageOf } from '../core/usage.ts';

/** What a server asks, as it is shown and sent. */
export interface Sampling {
  system: string;
  messages: readonly { role: Message['role']; content: string }[];
  /** Upper bound of the answer, in tokens. */
  maxTokens: number;
}

/** What a model has answered, in the protocol's words. */
export interface Sampled {
  text: string;
  model: string;
  stopReason: string;
}

/** The model of a run, as far as servers may ask it. */
export interface Sampler {
  readonly model: string;
  /** Throws what the provider throws, TelosError `budget` if a limit is reached, and the abort reason on abort. */
  ask(wanted: Sampling, signal: AbortSignal): AsyncGenerator<RunEvent, Sampled>;
}

/** The model of a run, with what its questions are counted by. */
export interface ModelParts {
  provider: Provider;
  budget?: Budget | undefined;
  counts: { readonly rounds: number };
  priceOf(tokens: TokenCount): number | 'unknown';
  redact?: (text: string) => string;
}

/** More than a person looks through before a yes. In characters. */
const longestText = 8_000;
const mostMessages = 20;

type Fields = Readonly<Record<string, unknown>>;

/** Returns what a server asks, unchecked as it sends it, or a phrase that says why it is not asked. */
export function readSampling(params: unknown): Sampling | string {
  const { messages, systemPrompt, maxTokens, tools, toolChoice } = fieldsOf(params);
  if (tools !== undefined || toolChoice !== undefined) return 'it wants tools, which are not offered';
  if (!Array.isArray(messages) || messages.length === 0 || messages.length > mostMessages)
    return 'it has no messages, or too many';
  const read: Sampling['messages'][number][] = [];
  for (const { role, content } of messages.map(fieldsOf)) {
    const blocks = (Array.isArray(content) ? content : [content]).map(fieldsOf);
    if (role !== 'user' && role !== 'assistant') return 'a message of it is of no one';
    if (blocks.some(({ type, text }) => type !== 'text' || typeof text !== 'string'))
      return 'only text can be asked';
    read.push({ role, content: blocks.map(({ text }) => text).join('\n') });
  }
  // Otherwise a model would go on with words that the server has put into its mouth.
  if (read[0]?.role !== 'user' || read.at(-1)?.role !== 'user')
    return 'it does not begin and end with a question';
  const system = typeof systemPrompt === 'string' ? systemPrompt : '';
  const length = read.reduce((sum, { content }) => sum + content.length, system.length);
  if (length > longestText) return 'it is too long to be looked through';
  const most = typeof maxTokens === 'number' && maxTokens >= 1 ? Math.floor(maxTokens) : defaultMaxTokens;
  return { system, messages: read, maxTokens: Math.min(most, defaultMaxTokens) };
}

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};

/** Returns all that is sent to the model, for the person who is asked. */
export function samplingText({ system, messages }: Sampling): string {
  const parts = messages.map(({ role, content }) => `[${role}]\n${content}`);
  return [...(system === '' ? [] : [`[system]\n${system}`]), ...parts].join('\n\n');
}

/** Returns the model of a run for its servers. Undefined without one, and for a recording, which answers no one else. */
export function samplerOf({
  provider,
  budget,
  counts,
  priceOf,
  redact,
}: Partial<ModelParts>): Sampler | undefined {
  if (!provider || !counts || !priceOf || provider.recording) return undefined;
  return {
    model: provider.model,
    async *ask({ system, messages, maxTokens }, signal) {
      yield* warnings((await budget?.check(provider)) ?? []);
      const request = { system, messages, tools: [], maxTokens, isAside: true as const };
      let text = '';
      let stopReason = '';
      for await (const event of provider.streamCompletion(request, signal)) {
        if (event.type === 'text') text += event.text;
        if (event.type === 'retry') yield event;
        if (event.type !== 'done' && event.type !== 'spent') continue;
        if (event.type === 'done') stopReason = event.stopReason;
        const usage = event.usage && usageOf(event.usage, priceOf(event.usage));
        if (usage) yield { type: 'usage', round: counts.rounds, usage };
        yield* warnings(budget?.add(usage) ?? []);
      }
      return {
        text: redact?.(text) ?? text,
        model: provider.model,
        stopReason: protocolReasons[stopReason] ?? stopReason,
      };
    },
  };
}

const protocolReasons: Readonly<Record<string, string>> = {
  end_turn: 'endTurn',
  max_tokens: 'maxTokens',
  stop_sequence: 'stopSequence',
};

function* warnings(all: readonly Sentence[]): Generator<RunEvent, void> {
  for (const one of all) yield { type: 'notice', level: 'warning', ...asMessage(one) };
}
