/** Decides on the tool calls of a run for its loop, and carries out those that may run. */

import type { Message, RunEvent, ToolCall, ToolResult } from '@telos/protocol/run';
import { asMessage } from '@telos/protocol/text';
import type { KeptWrites } from '../changes/keptWrites.ts';
import { reasonOf } from '../core/errors.ts';
import type { AllowedCall, CallPolicy, CallReport, MeantCall, SettledCall } from '../core/ports.ts';
import type { WriteKeeper } from '../files/atomicWrite.ts';
import { cutMiddle } from '../files/plainText.ts';
import { reviewOf } from '../policy/decision.ts';
import { keepAdditions } from '../policy/ownChanges.ts';
import { resolveCall } from '../policy/resolveCall.ts';
import { isBuiltin } from '../policy/subject.ts';
import { asksClock, type RunTape } from '../providers/recordingFile.ts';
import type { BackgroundCommands } from '../tools/background.ts';
import { type ToolContext, toolError } from '../tools/tool.ts';
import {
  type ApprovalContext,
  approveCall,
  askQuestion,
  type Granted,
  hostQuestions,
  signInAt,
} from './approval.ts';
import { away, executeTool, unseen, withNotes } from './commandChanges.ts';
import { boxNote } from './openBox.ts';
import type { UseSkill } from './request.ts';
import type { RunHooks } from './runHooks.ts';
import type { ModelParts } from './sampling.ts';
import { serverQuestions } from './serverAsks.ts';
import type { ServerGate } from './serverGate.ts';
import type { ToolSearch } from './toolSearch.ts';

/** Everything that the calls of a run work with. */
export interface ToolCallContext extends ApprovalContext, Partial<ModelParts> {
  context: Omit<
    ToolContext,
    | 'signal'
    | 'approvedSubject'
    | 'approvedFolder'
    | 'approvedLine'
    | 'askHost'
    | 'onProgress'
    | 'onNotice'
    | 'onOutput'
    | 'background'
    | 'askUser'
    | 'useSkill'
    | 'askSignIn'
    | 'askServer'
    | 'changes'
  > & { changes?: KeptWrites | undefined };
  messages: Message[];
  /** Knows which tool is meant by a call that names one. */
  search?: ToolSearch | undefined;
  /** Run before and after the calls. Missing if there are none. */
  hooks?: RunHooks | undefined;
  /** Holds the MCP servers that are not connected yet. */
  gate?: ServerGate | undefined;
  /** Commands of the conversation that go on in the background. Missing if none may. */
  background?: BackgroundCommands | undefined;
  /** Answers calls that leave the machine, or keeps what they return. */
  tape?: RunTape | undefined;
  /** Carries out another skill as a step. Missing if none may be used. */
  useSkill?: UseSkill | undefined;
}

/** Maximum size of one result that a model reads, in bytes. A longer one is cut to its head, its tail and the exact size. */
const maxResultBytes = 64 * 1024;

/** Returns the decisions on the calls of a run. */
export function callPolicy(run: ToolCallContext): CallPolicy {
  return {
    wait: (written, signal) =>
      run.gate?.isFor(resolved(written, run).call, run.tools) ? run.gate.open(signal) : run.gate?.news(),
    resolve: written => resolved(written, run),
    decide: (meant, signal) => decideOn(meant, run, signal),
    ended(call, { result, policy }) {
      if (run.tape && cannotRepeat(call, run))
        run.tape.keep({ callId: call.id, name: call.name, result, ...(policy && { policy }) });
    },
    *warnings() {
      run.hooks?.checkGoesOn();
      yield* problemsOf(run.context.changes);
    },
  };
}

async function* decideOn(
  { call, notes }: MeantCall,
  run: ToolCallContext,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, AllowedCall | SettledCall> {
  const instead = run.gate?.resultFor(call, run.tools);
  if (instead) return { result: instead };
  const taped = run.tape?.endOf(call);
  if (taped) return taped;
  const held = yield* heldBack(call, run, signal);
  if ('result' in held) return held;
  const outcome = yield* approveCall(held.call, { ...run, wantsQuestion: held.ask }, signal);
  if (!outcome.granted) {
    const { refusal, policy } = outcome;
    return { result: toolError(refusal), ...(policy && { policy }) };
  }
  const ours = [...notes, ...held.notes, ...editNotes(held.call, outcome)];
  const hooks = run.hooks?.runsAfter(outcome.call) ? run.hooks : undefined;
  return {
    // The user was asked about this call alone, so it is done before anything else is.
    isAlone:
      outcome.policy.action === 'ask' ||
      outcome.tool.access === 'write' ||
      outcome.tool.access === 'execute' ||
      hooks !== undefined,
    policy: outcome.policy,
    async execute(report) {
      const result = await carryOut(outcome, run, report, signal);
      const inBox = outcome.boxed ? boxNote(result, run.policy) : undefined;
      const noted = withNotes(result, inBox === undefined ? ours : [...ours, inBox]);
      if (!hooks || noted.isError) return noted;
      // A run that is cancelled meanwhile has done the call all the same.
      return report
        .through(hooks.after(outcome.call, noted, signal))
        .catch(error =>
          signal.aborted ? noted : withNotes(noted, [`A hook after this call failed: ${reasonOf(error)}`]),
        );
    },
  };
}

/**
 * Has the hooks look at a call before it is decided on. They can make that stricter, and the call another one, which is decided on like
 * any other.
 */
async function* heldBack(
  call: ToolCall,
  run: ToolCallContext,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, { call: ToolCall; ask?: string; notes: readonly string[] } | SettledCall> {
  const { hooks, tools } = run;
  const isKnown = tools.some(({ definition }) => definition.name === call.name);
  if (!hooks || !isKnown || call.problem) return { call, notes: [] };
  const { denied, by, changed, ask, context } = yield* hooks.before(call, signal);
  if (denied === undefined) {
    const meant = changed && resolved(changed.call, run);
    const now = meant?.call ?? call;
    const notes = meant
      ? [
          `A hook of ${changed.by} changed the call. This ran instead: ${JSON.stringify(now.input)}`,
          ...meant.notes,
        ]
      : [];
    return { call: now, ...(ask !== undefined && { ask }), notes: [...notes, ...context] };
  }
  const policy = { action: 'deny', rule: 'hook.deny' } as const;
  return { result: toolError(`A hook of ${by} does not allow this: ${denied}`), policy };
}

/** Returns true for a call whose result no replay can repeat: it leaves the machine, or asks its clock. */
const cannotRepeat = (call: ToolCall, { tools }: ToolCallContext): boolean =>
  asksClock(call) ||
  !isBuiltin(call.name) ||
  tools.find(({ definition }) => definition.name === call.name)?.access === 'network';

const resolved = (written: ToolCall, { tools, policy, search }: ToolCallContext) =>
  resolveCall(search?.meant(written) ?? written, tools, policy);

/** Yields warnings about files that cannot be restored. */
function* problemsOf(changes: WriteKeeper | undefined): Generator<RunEvent, void> {
  for (let problem = changes?.takeProblem(); problem !== undefined; problem = changes?.takeProblem())
    yield { type: 'notice', level: 'warning', message: problem };
}

/** Returns what the model must know if the person has changed its command. */
const editNotes = (asked: ToolCall, { call }: Granted): readonly string[] =>
  call === asked ? [] : [`The user changed the command. This ran instead: ${String(call.input['command'])}`];

async function carryOut(
  granted: Granted,
  run: ToolCallContext,
  report: CallReport,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { tool, call, approvedSubject, approvedFolder, approvedLine, boxed, variables } = granted;
  const { box, ...own } = run.context;
  const env = { ...variables, ...own.env };
  if (boxed && !box) return toolError('The sandbox for commands is gone. Nothing was run.');
  const askHost = hostQuestions(call, run, report.through, signal);
  const context: ToolContext = {
    ...own,
    ...(boxed && box ? { box, askHost } : {}),
    env,
    signal,
    approvedSubject,
    ...(approvedFolder === undefined ? {} : { approvedFolder }),
    ...(approvedLine === undefined ? {} : { approvedLine }),
    onProgress: report.progress,
    onNotice: message => report.show({ type: 'notice', level: 'info', ...asMessage(message) }),
    onOutput: text => report.show({ type: 'tool_output', callId: call.id, text }),
    askSignIn: wanted => report.through(signInAt(wanted, run, signal)),
    askUser: (question, choices) => report.through(askQuestion(call, { question, choices }, run, signal)),
    ...(run.useSkill && {
      useSkill: (skill, request) => report.through(run.useSkill!(call, { skill, request }, run, signal)),
    }),
    ...(run.background && { background: placeOf(call, run.background, run) }),
    ...(!run.human.isAway && {
      askServer: serverQuestions(call, run, report.through),
    }),
  };
  const isOwnScript = tool.access === 'execute' && granted.policy.rule.startsWith('card.');
  const before = isOwnScript ? await reviewOf(run.policy) : undefined;
  try {
    const result = withinLimit(await executeTool(granted, context, run, report.through));
    const added = await keepAdditions(before, run.policy);
    if (added !== undefined) report.show({ type: 'notice', level: 'info', ...asMessage(added) });
    return result;
  } catch (error) {
    if (signal.aborted) return toolError('The run was cancelled while this call was running.');
    return toolError(`${call.name} failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function placeOf(
  call: ToolCall,
  commands: BackgroundCommands,
  run: ToolCallContext,
): NonNullable<ToolContext['background']> {
  return {
    commands,
    callId: call.id,
    shown: command => (run.policy.holdsSecret?.(command) ? '(a command with a secret)' : command),
    askHost: hostQuestions(call, { ...run, human: away }, unseen, new AbortController().signal),
    left: () => undefined,
  };
}

/** Keeps the head and the tail of a long result, and says how long it is. */
function withinLimit(result: ToolResult): ToolResult {
  const content = cutMiddle(
    result.content,
    maxResultBytes,
    bytes =>
      `\n\n[... cut: the result has ${result.wholeSize ?? bytes} bytes, of which the middle is left out ...]\n\n`,
  );
  return content === result.content ? result : { ...result, content };
}
