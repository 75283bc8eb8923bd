/** Makes spans and metrics of the events of a run, by the conventions for generative AI. Sees only what was redacted before. */
import { randomBytes } from 'node:crypto';
import type { ApprovalDecision, RunEvent, Usage } from '@telos/protocol/run';
import { beginningOf } from '@telos/protocol/text';
import { addedUsage } from '@telos/protocol/usage';
import type { Metrics } from './metrics.ts';
import type { Attributes, Span } from './otlp.ts';

export interface SpanPlace {
  traceId: string;
  parentSpanId?: string | undefined;
}

export interface SpanSink {
  add(span: Span): void;
  metrics: Metrics;
  hasContent: boolean;
}

type Event<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;

interface OpenTool {
  spanId: string;
  start: number;
  event: Event<'tool_start'>;
  answer?: ApprovalDecision;
  /** The skill that the call runs as a step. */
  skill?: RunSpans;
}

/** In characters of one text. */
const mostContent = 16_384;

/** Names of the conventions, where they differ. */
const providerNames: Readonly<Record<string, string>> = {
  gemini: 'gcp.gemini',
  azure: 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  vertex: 'gcp.vertex_ai',
};

export const newSpanId = (): string => randomBytes(8).toString('hex');
export const newTraceId = (): string => randomBytes(16).toString('hex');
export const timeNow = (): number => performance.timeOrigin + performance.now();

export class RunSpans {
  readonly #place: SpanPlace;
  readonly #sink: SpanSink;
  readonly #more: Attributes;
  readonly #spanId = newSpanId();
  #start = 0;
  isOpen = false;
  #request = '';
  #runId = '';
  #routed: Event<'routed'> | undefined;
  #usage: Usage | undefined;
  /** When the model was asked last, as far as events tell, and when it began to answer. */
  #askedAt = 0;
  #firstAt: number | undefined;
  #text = '';
  #lastText = '';
  #denials = 0;
  readonly #tools = new Map<string, OpenTool>();

  constructor(place: SpanPlace, sink: SpanSink, more: Attributes = {}) {
    this.#place = place;
    this.#sink = sink;
    this.#more = more;
  }

  add(event: RunEvent, now = timeNow()): void {
    switch (event.type) {
      case 'run_start':
        [this.#start, this.#askedAt, this.isOpen] = [now, now, true];
        [this.#runId, this.#request] = [event.runId, event.text];
        return;
      case 'routed':
        [this.#routed, this.#askedAt] = [event, now];
        return;
      case 'text':
        this.#firstAt ??= now;
        if (this.#sink.hasContent && this.#text.length < mostContent) this.#text += event.text;
        return;
      case 'reasoning':
        this.#firstAt ??= now;
        return;
      case 'usage':
        this.#usage = addedUsage(this.#usage, event.usage);
        (this.innermost ?? this).#chat(event, now);
        return;
      case 'tool_start':
        this.#tools.set(event.call.id, { spanId: newSpanId(), start: now, event });
        return;
      case 'approval_response': {
        const tool = this.#tools.get(event.callId);
        if (tool) tool.answer = event.decision;
        return;
      }
      case 'skill_event':
        this.#step(event, now);
        return;
      case 'tool_end':
        this.#tool(event, now);
        this.#askedAt = now;
        return;
      case 'run_end':
        this.#end(event, now);
        return;
      default:
        if (this.#firstAt === undefined) this.#askedAt = now;
    }
  }

  /** Ends what is open: nobody reads the events of the run any more. */
  close(now = timeNow()): void {
    const cancelled = { type: 'run_end', outcome: 'cancelled', rounds: 0, toolCalls: 0 } as const;
    if (this.isOpen) this.#end({ ...cancelled, durationMs: 0, messages: [] }, now);
  }

  /** The deepest skill that works as a step now. */
  get innermost(): RunSpans | undefined {
    const open = [...this.#tools.values()].findLast(({ skill }) => skill?.isOpen)?.skill;
    return open?.innermost ?? open;
  }

  get #common(): Attributes {
    const provider = this.#routed?.provider;
    return {
      'gen_ai.provider.name': provider && (providerNames[provider] ?? provider),
      'gen_ai.request.model': this.#routed?.model,
    };
  }

  #content(name: string, text: string): Attributes {
    return this.#sink.hasContent ? { [name]: beginningOf(text, mostContent) } : {};
  }

  #span(span: Omit<Span, 'traceId'>): void {
    this.#sink.add({ traceId: this.#place.traceId, ...span });
  }

  #chat({ round, usage, routing }: Event<'usage'>, now: number): void {
    const common = routing
      ? {
          'gen_ai.provider.name': providerNames[routing.provider] ?? routing.provider,
          'gen_ai.request.model': routing.model,
        }
      : this.#common;
    const operation = { 'gen_ai.operation.name': 'chat', ...common };
    const start = Math.min(this.#askedAt, now);
    this.#span({
      spanId: newSpanId(),
      parentSpanId: this.#spanId,
      name: `chat ${common['gen_ai.request.model'] ?? ''}`.trim(),
      kind: 'client',
      start,
      end: now,
      attributes: {
        ...operation,
        ...this.#content('gen_ai.output.messages', said('assistant', this.#text)),
        ...usageAttributes(usage),
        'gen_ai.response.time_to_first_chunk':
          this.#firstAt === undefined ? undefined : Math.max(0, this.#firstAt - start) / 1000,
        'telos.round': round,
      },
    });
    const { metrics } = this.#sink;
    metrics.record('gen_ai.client.operation.duration', (now - start) / 1000, operation);
    const tokens = { input: promptTokens(usage), output: usage.outputTokens };
    for (const [type, count] of Object.entries(tokens))
      metrics.record('gen_ai.client.token.usage', count, { ...operation, 'gen_ai.token.type': type });
    if (this.#text !== '') this.#lastText = this.#text;
    [this.#text, this.#firstAt, this.#askedAt] = ['', undefined, now];
  }

  #step({ callId, event }: Event<'skill_event'>, now: number): void {
    const tool = this.#tools.get(callId);
    if (!tool) return;
    const place = { traceId: this.#place.traceId, parentSpanId: tool.spanId };
    tool.skill ??= new RunSpans(place, this.#sink);
    tool.skill.add(event, now);
  }

  #tool({ callId, name, result, policy }: Event<'tool_end'>, now: number): void {
    const open = this.#tools.get(callId);
    this.#tools.delete(callId);
    open?.skill?.close(now);
    const isRefused = open?.answer?.allow === false && !open.answer.isSkipped;
    const isDenied = policy?.action === 'deny' || isRefused;
    const operation = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': name };
    const failure = isDenied ? 'denied' : result.isError ? 'tool_error' : undefined;
    const start = open?.start ?? now;
    this.#span({
      spanId: open?.spanId ?? newSpanId(),
      parentSpanId: this.#spanId,
      name: `execute_tool ${name}`,
      kind: 'internal',
      start,
      end: now,
      attributes: {
        ...operation,
        'gen_ai.tool.type': 'function',
        'gen_ai.tool.call.id': callId,
        ...(open && this.#content('gen_ai.tool.call.arguments', JSON.stringify(open.event.call.input))),
        ...this.#content('gen_ai.tool.call.result', String(result.content)),
        'telos.decision': policy?.action,
        'telos.decision.rule': policy?.rule,
        'telos.decision.answer': open?.answer && (open.answer.allow ? open.answer.scope : 'no'),
        'telos.sandboxed': policy?.boxed,
        'error.type': failure,
      },
      error: failure === undefined ? undefined : '',
    });
    this.#sink.metrics.record('gen_ai.execute_tool.duration', (now - start) / 1000, {
      ...operation,
      'error.type': failure,
    });
    if (!isDenied) return;
    this.#denials++;
    const rule = policy?.rule;
    this.#sink.metrics.count('telos.denials', 1, { 'gen_ai.tool.name': name, 'telos.decision.rule': rule });
  }

  #end({ outcome, error, rounds }: Event<'run_end'>, now: number): void {
    this.isOpen = false;
    for (const { skill } of this.#tools.values()) skill?.close(now);
    const { agent, skill, reason } = this.#routed ?? {};
    const operation = { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': agent || 'telos' };
    const failure = outcome === 'completed' ? undefined : (error?.code ?? outcome);
    if (this.#text !== '') this.#lastText = this.#text;
    this.#span({
      spanId: this.#spanId,
      parentSpanId: this.#place.parentSpanId,
      name: `invoke_agent ${operation['gen_ai.agent.name']}`,
      kind: 'internal',
      start: this.#start,
      end: now,
      attributes: {
        ...operation,
        ...this.#common,
        ...this.#more,
        ...(this.#usage && usageAttributes(this.#usage)),
        ...this.#content('gen_ai.input.messages', said('user', this.#request)),
        ...this.#content('gen_ai.output.messages', said('assistant', this.#lastText)),
        'telos.run.id': this.#runId,
        'telos.skill': skill || undefined,
        'telos.route.rule': reason?.rule,
        'telos.outcome': outcome,
        'telos.rounds': rounds,
        'telos.denials': this.#denials,
        'error.type': failure,
      },
      error: failure === undefined ? undefined : this.#sink.hasContent ? (error?.message ?? '') : '',
    });
    this.#sink.metrics.record('gen_ai.invoke_agent.duration', (now - this.#start) / 1000, {
      ...operation,
      'error.type': failure,
    });
  }
}

/** The conventions count what came from a cache as input too. */
const promptTokens = ({ inputTokens, cacheReadTokens, cacheWriteTokens }: Usage): number =>
  inputTokens + cacheReadTokens + cacheWriteTokens;

const usageAttributes = (usage: Usage): Attributes => ({
  'gen_ai.usage.input_tokens': promptTokens(usage),
  'gen_ai.usage.output_tokens': usage.outputTokens,
  'gen_ai.usage.cache_read.input_tokens': usage.cacheReadTokens,
  'gen_ai.usage.cache_creation.input_tokens': usage.cacheWriteTokens,
  'telos.cost.usd': usage.cost === 'unknown' ? undefined : usage.cost,
});

const said = (role: 'user' | 'assistant', content: string): string =>
  JSON.stringify([{ role, parts: [{ type: 'text', content }] }]);
