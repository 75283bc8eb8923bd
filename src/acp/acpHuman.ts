/** Asks the user in their editor: each question of a run as a request for permission, or as a form where the editor has forms. */

import type { Human } from '@telos/engine/run';
import { describeQuestion, describeWhole } from '@telos/protocol/describe';
import { type FormContent, type FormField, schemaOfForm } from '@telos/protocol/form';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type ApprovalScope,
  leaveBox,
  skipped,
} from '@telos/protocol/run';
import {
  type AgentContext,
  type ClientCapabilities,
  methods,
  type PermissionOption,
  type RequestPermissionRequest,
} from './protocol.ts';
import { fenced, kindOf, textContent } from './updates.ts';

export interface Asked {
  sessionId: string;
  client: AgentContext;
  can: ClientCapabilities;
}

const stopped: ApprovalDecision = { allow: false, reason: 'The user stopped the run.' };
const denied: ApprovalDecision = { allow: false, reason: 'The user denied this.' };

/** Returns the user behind the client. A client that answers nothing useful is a no. */
export function acpHuman(asked: Asked): Human {
  return {
    approve: (request, signal) => {
      if (request.form) return fillIn(request, request.form, asked, signal);
      return request.choices
        ? choose(request, request.choices, asked, signal)
        : permit(request, asked, signal);
    },
    ask: async (questions, signal) => {
      const answers: string[] = [];
      for (const question of questions) answers.push((await words(question, asked, signal)) ?? '');
      return answers;
    },
  };
}

async function permit(
  request: ApprovalRequest,
  asked: Asked,
  signal: AbortSignal,
): Promise<ApprovalDecision> {
  const chosen = await picked(request, optionsOf(request), asked, signal);
  const scope = request.scopes.find(one => one === chosen);
  if (scope) return { allow: true, scope };
  if (chosen === 'outside' && request.mayLeave) return leaveBox;
  return chosen === undefined ? stopped : denied;
}

const names = (request: ApprovalRequest): Record<ApprovalScope, string> => ({
  once: 'Allow Once',
  run: request.forConversation ? 'Allow for This Session' : 'Allow for This Run',
  always: request.card ? 'Approve the Permissions' : 'Always Allow',
});

function optionsOf(request: ApprovalRequest): PermissionOption[] {
  return [
    ...request.scopes.map(
      (scope): PermissionOption => ({
        optionId: scope,
        name: names(request)[scope],
        kind: scope === 'once' ? 'allow_once' : 'allow_always',
      }),
    ),
    ...(request.mayLeave
      ? [{ optionId: 'outside', name: 'Ask to Run Outside the Sandbox', kind: 'reject_once' } as const]
      : []),
    { optionId: 'no', name: 'Deny', kind: 'reject_once' },
  ];
}

/** Returns the id of the option that was selected; undefined if the client cancelled, closed or failed. */
async function picked(
  request: ApprovalRequest,
  options: PermissionOption[],
  { client, sessionId }: Asked,
  signal: AbortSignal,
): Promise<string | undefined> {
  const toolCall = {
    toolCallId: request.callId,
    title: describeQuestion(request),
    kind: kindOf(request.tool),
    status: 'pending' as const,
    content: [textContent(describeWhole(request, fenced).join('\n\n'))],
  };
  const params: RequestPermissionRequest = { sessionId, toolCall, options };
  try {
    const { outcome } = await client.request(methods.client.session.requestPermission, params, {
      cancellationSignal: signal,
      stopWaitingOnCancel: true,
    });
    return outcome.outcome === 'selected' ? outcome.optionId : undefined;
  } catch {
    // A client that cannot ask has not agreed.
    return undefined;
  }
}

/** Has the user choose an answer for the skill, or write one where the client has forms. */
async function choose(
  request: ApprovalRequest,
  choices: readonly string[],
  asked: Asked,
  signal: AbortSignal,
): Promise<ApprovalDecision> {
  if (choices.length === 0) {
    const said = await words(request.subject, asked, signal);
    return said ? { allow: true, scope: 'once', answer: said } : skipped;
  }
  const options = choices.map(
    (name, at): PermissionOption => ({ optionId: `${at}`, name, kind: 'allow_once' }),
  );
  const skip: PermissionOption = { optionId: 'skip', name: 'Skip', kind: 'reject_once' };
  const chosen = await picked(request, [...options, skip], asked, signal);
  const answer = chosen === undefined ? undefined : choices[Number(chosen)];
  return answer === undefined ? skipped : { allow: true, scope: 'once', answer };
}

/** Returns what the user writes; undefined where the client has no forms, or they left it. */
async function words(question: string, asked: Asked, signal: AbortSignal): Promise<string | undefined> {
  const field: FormField = { kind: 'text', name: 'answer', title: 'Answer', isRequired: true };
  const content = await elicited(question, [field], asked, signal);
  const { answer } = content ?? {};
  return typeof answer === 'string' ? answer : undefined;
}

async function fillIn(
  request: ApprovalRequest,
  form: readonly FormField[],
  asked: Asked,
  signal: AbortSignal,
): Promise<ApprovalDecision> {
  if (!asked.can.elicitation?.form)
    return { ...skipped, reason: 'This editor has no forms. Use the command line or VS Code for this step.' };
  const content = await elicited(request.subject, form, asked, signal);
  return content ? { allow: true, scope: 'once', content } : skipped;
}

async function elicited(
  message: string,
  fields: readonly FormField[],
  { client, can, sessionId }: Asked,
  signal: AbortSignal,
): Promise<FormContent | undefined> {
  if (!can.elicitation?.form) return undefined;
  try {
    const answer = await client.request(
      methods.client.elicitation.create,
      { mode: 'form', sessionId, message, requestedSchema: schemaOfForm(fields) },
      { cancellationSignal: signal, stopWaitingOnCancel: true },
    );
    return answer.action === 'accept' ? ((answer.content ?? {}) as FormContent) : undefined;
  } catch {
    return undefined;
  }
}
