/** Decides if a call may run. The policy decides, asks the person if needed, and the answer is kept for its scope. */

import type { FormContent } from '@telos/protocol/form';
import type { ApprovalRequest, RunEvent, ToolCall } from '@telos/protocol/run';
import { sentence, spoken } from '@telos/protocol/text';
import { writeDiff } from '../changes/lineDiff.ts';
import type { DecidedBy } from '../core/ports.ts';
import { type Human, newToken } from '../core/ports.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { mostShown } from '../policy/danger.ts';
import { decide, planOnlyReads } from '../policy/decide.ts';
import type { Allow, Ask, Decision, PolicyContext } from '../policy/decision.ts';
import { grantedVariables, recordAnswer } from '../policy/grants.ts';
import { missingPath } from '../policy/missingPath.ts';
import { policyNotices } from '../policy/policyFile.ts';
import { rememberRead } from '../policy/secretReads.ts';
import { hostCall, isBuiltin } from '../policy/subject.ts';
import { mapStrings } from '../redact.ts';
import { inputProblem } from '../tools/builtin.ts';
import { usualTime, wantedTime } from '../tools/command.ts';
import { expectProcess } from '../tools/processStart.ts';
import { type ReadOnlyCommand, runReadOnly } from '../tools/readOnlyShell.ts';
import { type AskHost, type Tool, type ToolContext, toolError, type WantedSignIn } from '../tools/tool.ts';

/** In milliseconds. */
const readOnlyTimeoutMs = 10_000;

export interface ApprovalContext {
  tools: readonly Tool[];
  human: Human;
  policy: PolicyContext;
  /** The question that the person has answered with the words of this call. The same question is not asked again. */
  answered?: Ask;
  /** Why a hook wants the person to be asked, whatever the policy allows. */
  wantsQuestion?: string | undefined;
  /** Of the run. What only looks runs in its box too. */
  context?: Pick<ToolContext, 'box'>;
}

export interface Granted {
  granted: true;
  tool: Tool;
  /** The call as it was decided on. It differs from the model's if the person has changed the command. */
  call: ToolCall;
  /** The subject of the decision. The tool does exactly that, so that nothing can be swapped in between. */
  approvedSubject: string;
  /** For a command: the folder of the decision. */
  approvedFolder?: string;
  /** For a command: the line to start in its place. */
  approvedLine?: string;
  /** Set for a command that runs in the box or not at all. */
  boxed?: true;
  /** Variables that the agent's accepted card names, for a command's environment. */
  variables: Readonly<Record<string, string>>;
  policy: DecidedBy;
}

/** Outcome of the check. The model reads `refusal`. */
export type ApprovalOutcome = Granted | { granted: false; refusal: string; policy?: DecidedBy };

/** Checks the call, decides on it, and asks the person if needed. Reports progress as events. */
export async function* approveCall(
  call: ToolCall,
  context: ApprovalContext,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ApprovalOutcome> {
  const tool = context.tools.find(candidate => candidate.definition.name === call.name);
  if (call.problem) return { granted: false, refusal: call.problem };
  if (!tool && context.policy.mode === 'plan' && isBuiltin(call.name))
    return { granted: false, refusal: planOnlyReads, policy: { action: 'deny', rule: 'mode.plan' } };
  if (!tool) {
    const names = context.tools.map(candidate => candidate.definition.name).join(', ');
    return { granted: false, refusal: `Unknown tool: ${call.name}. The tools are ${names}.` };
  }
  const problem = inputProblem(tool, call.input);
  if (problem) return { granted: false, refusal: problem };
  if (tool.access === 'execute') expectProcess();
  yield* policyNotices(context.policy.rules);
  const worded = (reason: string): string => tool.wordFailure?.(call.input, reason) ?? reason;
  let decision = await decide(call, context.policy);
  const policy: DecidedBy = { action: decision.action, rule: decision.rule };
  if (decision.action === 'deny')
    return { granted: false, refusal: worded(`Not allowed (${decision.rule}): ${decision.reason}`), policy };
  if (decision.action === 'ask' && !isAnswered(decision, context.answered)) {
    const missing = await missingPath(call, decision.subject, context.policy);
    if (missing !== undefined) return { granted: false, refusal: missing };
    const answer = yield* askPerson(call, decision, context, signal);
    if (answer.command !== undefined)
      return yield* approveEdited(call, answer.command, { ...context, answered: decision }, signal);
    if (answer.refusal !== undefined) return { granted: false, refusal: answer.refusal, policy };
    // Once its card is accepted, a script is started as its first line says.
    const now = decision.card && answer.isLasting ? await decide(call, context.policy) : undefined;
    if (now?.action === 'allow' && now.subject === decision.subject) decision = now;
  }
  if (decision.action === 'allow' && context.wantsQuestion !== undefined) {
    const asked = hookQuestion(decision, context.wantsQuestion);
    const answer = yield* askPerson(call, asked, context, signal);
    if (answer.command !== undefined)
      return yield* approveEdited(call, answer.command, { ...context, answered: asked }, signal);
    if (answer.refusal !== undefined) return { granted: false, refusal: answer.refusal, policy };
  }
  rememberRead(call, decision.subject, context.policy);
  const allowedBy = decision.action === 'ask' ? decision.allowedBy : decision.rule;
  if (allowedBy === 'card.file') context.policy.memory?.made.add(decision.subject);
  const withSecrets = decision.rule !== 'run.box';
  const variables =
    call.name === 'run_command' ? await grantedVariables(context.policy, { withSecrets }) : {};
  const readOnly = decision.action === 'allow' ? decision.readOnly : undefined;
  const done = readOnly ? asReadOnlyTool(tool, readOnly, context.context?.box) : tool;
  const { subject, folder } = decision;
  const line = decision.action === 'allow' ? decision.line : undefined;
  const isBoxed = decision.boxed || staysBoxed(call, decision, context.policy);
  const where = {
    ...(folder === undefined ? {} : { approvedFolder: folder }),
    ...(line === undefined ? {} : { approvedLine: line }),
    ...(isBoxed ? { boxed: true as const } : {}),
  };
  const by = isBoxed ? { ...policy, boxed: true as const } : policy;
  return { granted: true, tool: done, call, approvedSubject: subject, ...where, variables, policy: by };
}

/** Returns the question that a hook wants about a call that the policy allows. */
function hookQuestion({ subject, folder, boxed }: Allow, words: string): Ask {
  const sentences = [sentence('A hook wants you to be asked: {0}', words)];
  return {
    ...{ action: 'ask', rule: 'hook.ask', reason: spoken(sentences), sentences, subject, scopes: ['once'] },
    ...(folder !== undefined && { folder }),
    ...(boxed && { boxed }),
  };
}

const forBox = /^(?:run\.box|mode\.sandbox|card\.(?:script|command))$/;

/**
 * Returns true for a command that is allowed since the box keeps it from more. If a word of it means a place of secrets only a moment
 * later, as a link was put there meanwhile, that does not lead it out of the box.
 */
const staysBoxed = ({ name }: ToolCall, { action, rule }: Decision, { hasBox }: PolicyContext): boolean =>
  hasBox === true && name === 'run_command' && action === 'allow' && forBox.test(rule);

/** Decides on a command as the person has changed it. The floor, prohibitions and other dangers count as for any command. */
async function* approveEdited(
  call: ToolCall,
  command: string,
  context: ApprovalContext,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, ApprovalOutcome> {
  const edited = { ...call, input: { ...call.input, command } };
  const outcome = yield* approveCall(edited, context, signal);
  if (outcome.granted) return outcome;
  const refusal = `The user changed the command to: ${command}\nIt was not run. ${outcome.refusal}`;
  return { ...outcome, refusal };
}

/** Returns true if the person has just answered the same question, about at least the same dangers. */
function isAnswered(now: Ask, before: Ask | undefined): boolean {
  if (!before) return false;
  // Of more dangers, not all are named.
  if ((now.danger?.length ?? 0) >= mostShown) return false;
  const known = before.danger?.map(one => JSON.stringify(one)) ?? [];
  const isKnown = (now.danger ?? []).every(one => known.includes(JSON.stringify(one)));
  return isKnown && questionOf(now) === questionOf(before);
}

/** Returns what a question is about, and where the command would run. With a card, the rule is that of the card. */
const questionOf = ({ card, rule, reason, sentences, boxed }: Ask): string =>
  JSON.stringify([card ? 'run.command' : rule, sentences ?? reason, boxed === true]);

/** Returns a tool that runs the checked command word by word, instead of passing the line to a shell. */
function asReadOnlyTool(tool: Tool, command: ReadOnlyCommand, box: ToolContext['box']): Tool {
  return {
    ...tool,
    access: 'read',
    async execute(input, context) {
      const inBox = { ...context, ...(box && { box }) };
      const outcome = await runReadOnly(command, inBox, readOnlyTimeoutMs);
      if ('content' in outcome) return { ...outcome, isError: false };
      return toolError(tool.wordFailure?.(input, outcome.problem) ?? outcome.problem);
    },
  };
}

/** Asks the person, then signs in at a server that requires it. Returns the reason if the person refuses. */
export async function* signInAt(
  wanted: WantedSignIn,
  { human, policy }: Pick<ApprovalContext, 'human' | 'policy'>,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, string | undefined> {
  const origins = await wanted.origins(signal);
  if (!origins) return undefined;
  const [page, ...others] = origins;
  const who = [wanted.server, policy.agent?.name ?? 'telos', wanted.place, page ?? ''] as const;
  const sentences = [
    wanted.more === undefined
      ? sentence(
          "The MCP server '{0}' of agent {1}, at {2}, wants you to sign in at {3}, which opens in your browser.",
          ...who,
        )
      : wanted.more
        ? sentence(
            "The MCP server '{0}' of agent {1}, at {2}, wants you to sign in once more, for more rights ({4}), at {3}, which opens in your browser.",
            ...who,
            wanted.more,
          )
        : sentence(
            "The MCP server '{0}' of agent {1}, at {2}, wants you to sign in once more, for more rights, at {3}, which opens in your browser.",
            ...who,
          ),
    ...(others.length > 0 ? [sentence('Telos also speaks with {0} for it.', others.join(', '))] : []),
    sentence("The tokens are stored with the editor's secrets and sent to this server only."),
  ];
  const question: Ask = {
    action: 'ask',
    rule: 'mcp.authorize',
    reason: spoken(sentences),
    sentences,
    subject: `sign in at ${page}`,
    scopes: ['once'],
  };
  const call: ToolCall = { id: `mcp-sign-in-${wanted.server}`, name: 'mcp_sign_in', input: {} };
  const { refusal } = yield* askPerson(call, question, { human, policy }, signal);
  if (refusal === undefined) {
    await wanted.signIn(signal);
    return undefined;
  }
  const without = wanted.more === undefined ? '' : 'more rights at ';
  const message = `The run continues without ${without}the MCP server '${wanted.server}', which requires a sign-in. ${refusal}`;
  yield { type: 'notice', level: 'warning', message };
  return refusal;
}

/**
 * Returns what decides on the hosts that the boxed command of a call wants. A person reads one question at a time. `show` passes its
 * events on.
 */
export function hostQuestions(
  { id }: ToolCall,
  { human, policy }: Pick<ApprovalContext, 'human' | 'policy'>,
  show: <Result>(events: AsyncGenerator<RunEvent, Result>) => Promise<Result>,
  signal: AbortSignal,
): AskHost {
  let open: Promise<unknown> = Promise.resolve();
  return async ({ host, port, program }, until) => {
    const url = `${port === 80 ? 'http' : 'https'}://${host}:${port}/`;
    const call: ToolCall = { id: `${id}-${host}:${port}`, name: hostCall, input: { url, program } };
    const decision = await decide(call, policy);
    if (decision.action === 'allow') return undefined;
    if (decision.action === 'deny') return `Not allowed (${decision.rule}): ${decision.reason}`;
    const question: Ask = {
      ...decision,
      forConversation: true,
      ...(!policy.boxRequired && { mayLeave: true }),
    };
    const either = AbortSignal.any([signal, until]);
    const answer = open.then(() =>
      either.aborted
        ? { refusal: 'The command ended before anyone was asked.' }
        : show(askPerson(call, question, { human, policy }, either)),
    );
    open = answer.catch(() => undefined);
    return (await answer).refusal;
  };
}

/** Returns what decides on the hosts of a program that no one is asked about, such as a server in its box. */
export const grantedHosts =
  (policy: PolicyContext): AskHost =>
  async ({ host, port, program }) => {
    const url = `${port === 80 ? 'http' : 'https'}://${host}:${port}/`;
    const decision = await decide(
      { id: `host-${host}:${port}`, name: hostCall, input: { url, program } },
      policy,
    );
    if (decision.action === 'allow') return undefined;
    return `Not allowed: neither the permissions nor a rule name ${host}:${port}, and no question is asked for a server.`;
  };

/** What a person has answered. A plain yes has none of the first four. */
interface Answer {
  /** Why the call is refused. */
  refusal?: string;
  /** True if the person has left the question open: nobody denied anything. */
  isSkipped?: boolean;
  /** True if no person was there to answer. */
  isAway?: boolean;
  /** The command as the person has changed it. */
  command?: string;
  /** What the person has filled in. */
  content?: FormContent;
  /** True if the answer holds for more than this call. */
  isLasting?: boolean;
}

/** Asks about a call. The question is asked before its event is yielded, or an early answer would be lost. */
export async function* askPerson(
  call: ToolCall,
  question: Ask,
  { human, policy }: Pick<ApprovalContext, 'human' | 'policy'>,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, Answer> {
  const diff = await writeDiff(call, question.subject);
  // What is hidden of a secret would be lost in the words that come back.
  const isEditable = call.name === 'run_command' && policy.holdsSecret?.(question.subject) !== true;
  const request = {
    ...approvalRequest(call, question),
    ...(diff === undefined ? {} : { diff }),
    ...(isEditable && { isEditable }),
    ...timeLimitOf(call),
    ...(call.name === 'run_command' && call.input['background'] === true && { inBackground: true as const }),
  };
  if (question.card && policy.memory) policy.memory.cardShown = true;
  if (question.box && policy.noBox) policy.noBox.isTold = true;
  const answer = human.approve(request, signal);
  yield { type: 'approval_request', request };
  const response = await answer;
  yield { type: 'approval_response', callId: call.id, decision: response };
  if (!response.allow && response.isSkipped) return { refusal: response.reason, isSkipped: true };
  if (!response.allow)
    return { refusal: `Denied: ${response.reason}`, ...(response.isAway && { isAway: true }) };
  const { command, content } = response;
  if (question.form) return content ? { content } : {};
  if (isEditable && command !== undefined && command !== question.subject) return { command };
  const kept = await recordAnswer(call, question, response.scope, policy, response.without);
  if (kept.notice) yield { type: 'notice', level: 'warning', message: kept.notice };
  return kept.refusal === undefined ? { isLasting: response.scope !== 'once' } : { refusal: kept.refusal };
}

/** Asks the person a question of the skill. The answer grants nothing. */
export async function* askQuestion(
  call: ToolCall,
  { question, choices }: { question: string; choices: readonly string[] },
  { human }: Pick<ApprovalContext, 'human'>,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, { answer?: string; refusal?: string }> {
  const sentences = [sentence('Your answer gives no permissions.')];
  const request: ApprovalRequest = {
    callId: call.id,
    token: newToken(),
    tool: call.name,
    subject: question,
    rule: 'run.question',
    reason: spoken(sentences),
    sentences,
    scopes: ['once'],
    choices,
  };
  const answer = human.approve(request, signal);
  yield { type: 'approval_request', request };
  const decision = await answer;
  yield { type: 'approval_response', callId: call.id, decision };
  if (!decision.allow) return { refusal: decision.reason };
  return decision.answer === undefined ? {} : { answer: decision.answer };
}

/** Returns how long a command may take, if that is more than usual. */
function timeLimitOf({ name, input }: ToolCall): { timeLimit?: number } {
  const wanted = name === 'run_command' ? wantedTime(input) : undefined;
  return wanted === undefined || wanted <= usualTime ? {} : { timeLimit: wanted / 1000 };
}

function approvalRequest(call: ToolCall, question: Ask): ApprovalRequest {
  const { subject, folder, rule, reason, scopes, grant, card, toAllow, danger, sentences, box } = question;
  const { form, showsWhole, mayLeave, forConversation } = question;
  return {
    callId: call.id,
    token: newToken(),
    tool: call.name,
    subject,
    ...(folder ? { folder } : {}),
    rule,
    // The reason contains names from outside. No name may break its line or hide characters.
    reason: escapeInvisible(reason),
    scopes,
    ...(grant ? { grant } : {}),
    ...(card ? { card } : {}),
    ...(toAllow ? { toAllow } : {}),
    ...(danger ? { danger } : {}),
    ...(sentences ? { sentences: mapStrings(sentences, escapeInvisible) } : {}),
    ...(box ? { box: mapStrings(box, escapeInvisible) } : {}),
    ...(form ? { form } : {}),
    ...(showsWhole ? { showsWhole } : {}),
    ...(mayLeave ? { mayLeave } : {}),
    ...(forConversation ? { forConversation } : {}),
  };
}
