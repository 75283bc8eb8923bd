/** Keeps the window of a run's model: measures each request, and makes room before the window is full. */
import type { Message } from '@telos/protocol/run';
import { grouped, sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { defaultMaxTokens } from '../core/limits.ts';
import type {
  Budget,
  CompletionRequest,
  ContextWindow,
  Effort,
  Provider,
  TokenCount,
  ToolDefinition,
} from '../core/ports.ts';
import { used } from '../core/usage.ts';
import type { Tool } from '../tools/tool.ts';
import type { Room } from './compact.ts';
import { ContextMeter, type FirstParts } from './contextMeter.ts';
import { sentMessages } from './contextView.ts';
import type { RunHooks } from './runHooks.ts';
import type { ToolSearch } from './toolSearch.ts';

/** The parts of a prepared run that fill the window. */
export interface WindowedRun {
  provider: Provider;
  system: string;
  /** Folder of the skill that runs, if any. */
  skillDir?: string;
  /** Filled during the run, so that a failed run still has its transcript. The first message is already there. */
  messages: Message[];
  tools: readonly Tool[];
  /** Leaves tools out of the requests. */
  search?: ToolSearch | undefined;
  context: { workingDir: string };
  effort?: Effort | undefined;
  /** Tokens that the model takes. Undefined if that is not known. */
  window?: number | undefined;
  /** The parts of the first message of the run. */
  firstParts?: FirstParts | undefined;
  /** Increased during the run. */
  counts: { rounds: number; toolCalls: number };
  priceOf(tokens: TokenCount): number | 'unknown';
  budget?: Budget | undefined;
  /** Hides secrets in a model's own notes. */
  redact?: (text: string) => string;
  /** Can keep the conversation from being summarized. */
  hooks?: RunHooks | undefined;
}

/** Few runs fill the context of a model. */
const roomMaking = () => import('./compact.ts');

/** Share of the limit from which room is made. */
const tightFrom = 0.85;

/** Share of an estimate that is certain. */
const surely = 0.6;

/** Returns the parts of a run that make room in its conversation. */
export function roomOf(setup: WindowedRun): Room {
  const meter = new ContextMeter(setup.window, setup.firstParts);
  const request = (messages: readonly Message[]): CompletionRequest =>
    requestOf(setup, messages, definitionsOf(setup), defaultMaxTokens);
  return { spec: setup, meter, request, used: tokens => used(tokens, setup) };
}

/** Returns the definitions that a request has. */
export const definitionsOf = ({ tools, search }: Pick<WindowedRun, 'tools' | 'search'>): ToolDefinition[] =>
  (search?.shown(tools) ?? tools).map(({ definition }) => definition);

/** Returns the window of a run. A recording answers any request, so no room is made for it. */
export function runWindow(setup: WindowedRun): ContextWindow {
  const room = roomOf(setup);
  const { meter } = room;
  const next = (tools: readonly ToolDefinition[], maxTokens: number): CompletionRequest =>
    requestOf(setup, sentMessages(setup.messages), tools, maxTokens);
  const throwIfHopeless = ({ system, tools, messages }: CompletionRequest): void => {
    const least = meter.tokensOf({ system, tools, messages: messages.slice(0, 1) });
    const { window = Number.POSITIVE_INFINITY, provider } = setup;
    if (least * surely <= window) return;
    throw new TelosError('config', [
      sentence(
        'The instructions, tools and request of this run have about {0} tokens, and {1} takes {2} in all.',
        grouped(least),
        provider.model,
        grouped(window),
      ),
      sentence('Choose a model with a larger context, or a skill with less text and fewer MCP servers.'),
    ]);
  };
  return {
    size: setup.window,
    async *fit(tools, maxTokens, signal) {
      const request = next(tools, maxTokens);
      const { limit } = meter;
      const isTight = limit !== undefined && meter.tokensOf(request) > limit * tightFrom;
      if (!isTight || setup.provider.recording) return request;
      throwIfHopeless(request);
      yield* (await roomMaking()).makeRoom(room, signal);
      return next(tools, maxTokens);
    },
    async *shrink(refused, signal) {
      const before = meter.tokensOf(refused);
      meter.refused(refused);
      yield* (await roomMaking()).makeRoom(room, signal, true);
      return meter.tokensOf(room.request(sentMessages(setup.messages))) < before;
    },
    counted: (request, usage) => meter.counted(request, usage),
  };
}

const requestOf = (
  { system, skillDir, effort, context: { workingDir } }: WindowedRun,
  messages: readonly Message[],
  tools: readonly ToolDefinition[],
  maxTokens: number,
): CompletionRequest => ({
  system,
  messages,
  tools,
  workingDir,
  ...(skillDir === undefined ? {} : { skillDir }),
  ...(effort === undefined ? {} : { effort }),
  maxTokens,
});
