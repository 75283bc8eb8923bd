/** Puts a question of a run into an elicitation of MCP, and reads the answer. */
import { describeWhole } from '@telos/protocol/describe';
import { answers, type FormContent, type FormField, schemaOfForm } from '@telos/protocol/form';
import { type ApprovalDecision, type ApprovalRequest, leaveBox, skipped } from '@telos/protocol/run';

const denied: ApprovalDecision = { allow: false, reason: 'The user denied this.' };

/** Returns the message and the schema of the form. It offers no answer that holds beyond the run: a client may answer by itself. */
export function elicitationOf(request: ApprovalRequest) {
  const isAsItIs = request.form || request.choices;
  const message = isAsItIs ? request.subject : describeWhole(request, text => text).join('\n');
  return { message, requestedSchema: schemaOfForm(fieldsOf(request)) };
}

/** Returns the decision for the content that came back. A missing or wrong answer is a no, or leaves a question of a skill open. */
export function decisionOf(request: ApprovalRequest, content: unknown): ApprovalDecision {
  const fields = fieldsOf(request);
  const isMeant = typeof content === 'object' && content !== null && answers(fields, content as FormContent);
  if (!isMeant) return request.form || request.choices ? skipped : denied;
  const filled = content as FormContent;
  if (request.form) return { allow: true, scope: 'once', content: filled };
  const answer = String(filled['answer'] ?? '');
  if (request.choices) return answer === '' ? skipped : { allow: true, scope: 'once', answer };
  if (answer === 'outside') return leaveBox;
  const scope = scopesOf(request).find(one => one === answer);
  return scope ? { allow: true, scope } : denied;
}

const scopesOf = ({ scopes }: ApprovalRequest) => scopes.filter(scope => scope !== 'always');

const labels = { once: 'Allow Once', run: 'Allow for This Run' } as const;

function fieldsOf(request: ApprovalRequest): readonly FormField[] {
  if (request.form) return request.form;
  const field = { name: 'answer', title: 'Answer', isRequired: true };
  if (request.choices?.length === 0) return [{ ...field, kind: 'text' }];
  const options = request.choices
    ? request.choices.map(choice => ({ value: choice, label: choice }))
    : [
        ...scopesOf(request).map(scope => ({ value: scope, label: labels[scope] })),
        ...(request.mayLeave ? [{ value: 'outside', label: 'Ask to Run Outside the Sandbox' }] : []),
        { value: 'no', label: 'Deny' },
      ];
  return [{ ...field, kind: 'choice', options }];
}
