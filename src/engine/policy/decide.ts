/** The one place that says what a tool call may do: allow it, ask a person, or refuse it. */
import type { ToolCall } from '../../protocol/run.ts';
import {
  type Allow,
  type Ask,
  allow,
  type Decision,
  type Deny,
  deny,
  type PolicyContext,
} from './decision.ts';
import { ask, askWithCard, defaultDecision, readOnlyCommand } from './defaults.ts';
import type { PolicyRule, PolicyRules } from './policyFile.ts';
import { hides } from './prohibitions.ts';
import { bound, firstThatCounts } from './ruleBytes.ts';
import { isAbout, isExact, ruleFits } from './ruleMatch.ts';
import { grantName, type Wanted, whatItWants } from './wanted.ts';

/**
 * Decides on a call of a built-in tool, or of one of an MCP server, whose input has been checked: by the floor, the user's deny rules, the
 * step's role, the surface, what was granted for the run, the user's allow rules, and else by default. Asks nobody, changes nothing, and sends nothing.
 */
export async function decide(call: ToolCall, context: PolicyContext): Promise<Decision> {
  const wanted = await whatItWants(call, context);
  if ('action' in wanted) return wanted;
  const decision = await decideOn(wanted, context);
  if (decision.action === 'ask') return bound(decision, context);
  return wanted.kind === 'command' && decision.action === 'allow'
    ? { ...decision, folder: wanted.folder }
    : decision;
}

async function decideOn(wanted: Wanted, context: PolicyContext): Promise<Decision> {
  const rules = context.rules?.read();
  const denied =
    forbidden(wanted, rules, context) ??
    (await beyondRole(wanted, context)) ??
    (await beyondSurface(wanted, rules, context));
  if (denied) return denied;
  const insisting = alwaysAsked(wanted, context);
  if (insisting) return insisting;
  if (context.memory?.grants.has(grantName(wanted))) return allow('grant.run', wanted.subject);
  const byDefault = await defaultDecision(wanted, context);
  if (byDefault.action === 'allow') return hidden(byDefault, rules, context) ?? byDefault;
  if (byDefault.action === 'deny') return byDefault;
  const fitting = rules?.allow.filter(one => ruleFits(one, wanted, context) && lifts(one, byDefault)) ?? [];
  const rule = await firstThatCounts(fitting, context);
  if (rule) return allow(nameOf(rule), wanted.subject);
  // A rule for every agent answers it as soon as this one has been reviewed.
  return fitting.some(({ agent }) => agent === '*') ? askWithCard(byDefault, context) : byDefault;
}

/** Greppable, and leads to the place. */
const nameOf = ({ effect, line }: PolicyRule): string => `policy.${effect}:${line}`;

function forbidden(wanted: Wanted, rules: PolicyRules | undefined, context: PolicyContext): Deny | undefined {
  const rule = rules?.deny.find(one => ruleFits(one, wanted, context));
  return rule && forbiddenBy(rule, rules);
}

const forbiddenBy = (rule: PolicyRule, rules: PolicyRules | undefined): Deny =>
  deny(
    nameOf(rule),
    `A [[deny]] rule forbids it: ${rules?.file}, line ${rule.line}.${rule.path ? ` It is about ${rule.path}.` : ''}`,
  );

/** What a command shows that only looks is known once it has been read word by word. */
function hidden(allowed: Allow, rules: PolicyRules | undefined, context: PolicyContext): Deny | undefined {
  const { readOnly } = allowed;
  const rule = readOnly && rules?.deny.find(one => isAbout(one, context) && hides(one, readOnly));
  return rule && forbiddenBy(rule, rules);
}

async function beyondRole(wanted: Wanted, context: PolicyContext): Promise<Deny | undefined> {
  if (context.role !== 'read-only' || wanted.kind === 'read' || wanted.kind === 'fetch') return undefined;
  if (wanted.kind !== 'command')
    return deny('role.read-only', 'This step only looks: it writes no files and runs no other commands.');
  const looking = await readOnlyCommand(wanted, context);
  return looking.action === 'deny' ? looking : undefined;
}

async function beyondSurface(
  wanted: Wanted,
  rules: PolicyRules | undefined,
  context: PolicyContext,
): Promise<Deny | undefined> {
  if (context.surface !== 'discord' || wanted.kind !== 'command') return undefined;
  const exact = rules?.allow.filter(rule => isExact(rule) && ruleFits(rule, wanted, context)) ?? [];
  if (await firstThatCounts(exact, context)) return undefined;
  return deny(
    'surface.discord',
    'From Discord only a command runs that a rule of policy.toml names exactly.',
  );
}

/** What secrets could leave by is asked about each time, whatever has been granted. */
function alwaysAsked(wanted: Wanted, context: PolicyContext): Ask | undefined {
  if (wanted.kind !== 'fetch') return undefined;
  const never = 'run and always';
  if (context.holdsSecret?.(wanted.subject)) {
    const reason = `The address holds a secret that is loaded here, and ${wanted.url.host} would get it.`;
    return ask(wanted, { rule: 'fetch.secret', reason, never }, context);
  }
  const sensitive = context.memory?.sensitive;
  if (sensitive === undefined) return undefined;
  const reason = `This run has read ${sensitive}, and ${wanted.url.host} would get whatever is in the address.`;
  return ask(wanted, { rule: 'fetch.after-sensitive', reason, never }, context);
}

/** A rule for a whole folder is about ordinary files; what holds secrets or is obeyed is named one by one. */
function lifts(rule: PolicyRule, question: Ask): boolean {
  return !rule.path?.endsWith('/**') || /^((read|write)\.outside$|card\.)/.test(question.rule);
}
