/** Carries out the tool calls of one model turn: checked, decided, asked about, run; each gets exactly one result. */
import type {
  ApprovalRequest,
  Message,
  RunEvent,
  ToolCall,
  ToolResult,
  ToolResultBlock,
} from '../protocol/run.ts';
import type { Human } from './human.ts';
import { type Decision, decide, type PolicyContext } from './policy/decide.ts';
import { inputProblem } from './tools/builtin.ts';
import { type Tool, type ToolContext, toolError } from './tools/tool.ts';

/** What the calls of a run work with. */
export interface ToolBench {
  tools: readonly Tool[];
  human: Human;
  policy: PolicyContext;
  context: Omit<ToolContext, 'signal' | 'approvedSubject' | 'onProgress'>;
  messages: Message[];
}

/** A model reads at most this much of one result, in bytes: the head, the tail and the exact size. */
const maxResultBytes = 64 * 1024;

/** Between two of a call's notices, in milliseconds. */
const progressInterval = 1000;

interface Granted {
  granted: true;
  tool: Tool;
  /** What was decided on; the tool does exactly that, so that nothing can be swapped in between. */
  approvedSubject: string;
}

type Permit = Granted | { granted: false; refusal: ToolResult };

/**
 * Runs the calls in their order, neighbours that only read or fetch at the same time. The results go into the transcript as one
 * message, also when the run is cancelled in the middle: a call without a result would make the transcript unusable.
 */
export async function* runTools(
  calls: readonly ToolCall[],
  bench: ToolBench,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  const results = new Map<string, ToolResult>();
  const running: Promise<RunEvent>[] = [];
  const progress = new Progress();
  const end = (call: ToolCall, result: ToolResult): RunEvent => {
    results.set(call.id, result);
    return { type: 'tool_end', callId: call.id, name: call.name, result };
  };
  try {
    for (const call of calls) {
      signal.throwIfAborted();
      yield { type: 'tool_start', call };
      const permit = yield* permitFor(call, bench, signal);
      if (!permit.granted) {
        yield end(call, permit.refusal);
        continue;
      }
      const alone = permit.tool.access === 'write' || permit.tool.access === 'execute';
      if (alone) yield* drained(running, progress);
      running.push(carryOut(call, permit, bench, progress, signal).then(result => end(call, result)));
      if (alone) yield* drained(running, progress);
    }
    yield* drained(running, progress);
    signal.throwIfAborted();
  } finally {
    await Promise.all(running);
    const cancelled = toolError('The run was cancelled before this call ended.');
    bench.messages.push({
      role: 'user',
      content: calls.map(call => resultBlock(call, results.get(call.id) ?? cancelled)),
    });
  }
}

async function* drained(running: Promise<RunEvent>[], progress: Progress): AsyncGenerator<RunEvent, void> {
  for (const work of running) {
    yield* progress.until(work);
    yield await work;
  }
  running.length = 0;
}

/** What calls say about how far they have come, while somebody waits for them to end. */
class Progress {
  #waiting: RunEvent[] = [];
  #wake: () => void = () => undefined;

  /** For one call; what it says more often than once in `progressInterval` is left out. */
  of(call: ToolCall): (message: string) => void {
    let last = Number.NEGATIVE_INFINITY;
    return message => {
      const now = performance.now();
      if (now - last < progressInterval) return;
      last = now;
      this.#waiting.push({ type: 'notice', level: 'info', message: `${call.name}: ${message}` });
      this.#wake();
    };
  }

  async *until(work: Promise<unknown>): AsyncGenerator<RunEvent, void> {
    let over = false;
    void work.then(() => {
      over = true;
      this.#wake();
    });
    for (;;) {
      yield* this.#waiting.splice(0);
      if (over) return;
      await new Promise<void>(resolve => {
        this.#wake = resolve;
      });
    }
  }
}

/** May this call run? Asks the person where the policy says so; the question is put before it is announced, or an early answer is lost. */
async function* permitFor(
  call: ToolCall,
  bench: ToolBench,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, Permit> {
  const tool = bench.tools.find(candidate => candidate.definition.name === call.name);
  if (call.problem) return refuse(call.problem);
  if (!tool) {
    const names = bench.tools.map(candidate => candidate.definition.name).join(', ');
    return refuse(`Unknown tool: ${call.name}. The tools are ${names}.`);
  }
  const problem = inputProblem(tool, call.input);
  if (problem) return refuse(problem);
  const decision = await decide(call, bench.policy);
  if (decision.action === 'deny') return refuse(`Not allowed (${decision.rule}): ${decision.reason}`);
  if (decision.action === 'allow') return { granted: true, tool, approvedSubject: decision.subject };
  const request = approvalRequest(call, decision);
  const answer = bench.human.approve(request, signal);
  yield { type: 'approval_request', request };
  const response = await answer;
  yield { type: 'approval_response', callId: call.id, decision: response };
  if (!response.allow) return refuse(`Denied: ${response.reason}`);
  return { granted: true, tool, approvedSubject: decision.subject };
}

function approvalRequest(call: ToolCall, decision: Extract<Decision, { action: 'ask' }>): ApprovalRequest {
  const { subject, folder, rule, reason, scopes, grant } = decision;
  return {
    callId: call.id,
    tool: call.name,
    subject,
    ...(folder ? { folder } : {}),
    rule,
    reason,
    scopes,
    ...(grant ? { grant } : {}),
  };
}

async function carryOut(
  call: ToolCall,
  permit: Granted,
  bench: ToolBench,
  progress: Progress,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { tool, approvedSubject } = permit;
  const context: ToolContext = { ...bench.context, signal, approvedSubject, onProgress: progress.of(call) };
  try {
    return withinLimit(await tool.execute(call.input, context));
  } catch (error) {
    if (signal.aborted) return toolError('The run was cancelled while this call was running.');
    return toolError(`${call.name} failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function resultBlock(call: ToolCall, result: ToolResult): ToolResultBlock {
  const content = result.images?.length
    ? [{ type: 'text' as const, text: result.content }, ...result.images]
    : result.content;
  return { type: 'tool_result', tool_use_id: call.id, content, is_error: result.isError };
}

/** Keeps head and tail of a long result, cut at whole characters, and says how long it was. */
function withinLimit(result: ToolResult): ToolResult {
  const bytes = Buffer.from(result.content, 'utf8');
  if (bytes.length <= maxResultBytes) return result;
  const note = `\n\n[... cut: the result has ${bytes.length} bytes, of which the middle is left out ...]\n\n`;
  const half = Math.floor((maxResultBytes - Buffer.byteLength(note)) / 2);
  const head = bytes
    .subarray(0, half)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
  const tail = bytes
    .subarray(bytes.length - half)
    .toString('utf8')
    .replace(/^\uFFFD+/, '');
  return { ...result, content: head + note + tail };
}

const refuse = (content: string): Permit => ({ granted: false, refusal: toolError(content) });
