/**
 * Implements `telos trust <agent>` and `telos policy`. `trust` shows what an agent's files name, and binds a yes to exactly
 * those bytes.
 */

import {
  type DefaultRule,
  defaultRule,
  defaultRules,
  describePermission,
  importDecide,
  listPermissions,
  type Permission,
  permissionId,
  revokePermission,
} from '@telos/engine/policy';
import { Telos } from '@telos/engine/telos';
import { type AgentCard, describeCard } from '@telos/protocol/agentCard';
import type { JsonObject } from '@telos/protocol/run';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { readLine } from './keyboard.ts';
import type { Terminal } from './terminal.ts';
import { linesNamed } from './terminalHuman.ts';
import { exactText, remedyText, table, terminalJson, terminalText } from './terminalText.ts';

export interface TrustOptions extends ConfigOptions {
  yes?: boolean;
  json?: boolean;
  /** Lines of the card that are not accepted, with commas or blanks between them. */
  without?: string;
}

/** Returns the exit code: 0 if the agent is reviewed, 1 if it is not or does not exist. */
export async function trustCommand(name: string, options: TrustOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  const card = await telos.agentCard(name);
  if (options.json) terminal.out(`${terminalJson(card)}\n`);
  else terminal.out(`${cardText(card)}\n`);
  const { lines: without, strange } = linesNamed(options.without ?? '', card, config.home);
  if (strange.length > 0) {
    terminal.say(terminalText(`The permissions do not name ${strange.join(', ')}, so nothing was approved.`));
    return 2;
  }
  if (card.state === 'reviewed' && without.length === 0) {
    terminal.say('It is reviewed; nothing has changed since.');
    return 0;
  }
  if (!options.yes && !(await saysYes(terminal))) {
    terminal.say(
      `Nothing was approved. ${terminal.canAsk ? '' : 'Use --yes to approve it without being asked.'}`.trim(),
    );
    return 1;
  }
  await telos.acceptCard(card, without);
  terminal.say(
    terminalText(`Approved. '${card.agent}' may use what is named above until one of its files changes.`),
  );
  return 0;
}

/**
 * Returns the card as text. Names, paths and lines come from files of unknown origin, so invisible characters are escaped.
 */
function cardText(card: AgentCard): string {
  return describeCard(card)
    .map(line => exactText(line.replaceAll('\n', ' ')))
    .join('\n');
}

async function saysYes(terminal: Terminal): Promise<boolean> {
  if (!terminal.canAsk) return false;
  // It takes effect from now on, so a single mistyped letter must not be enough.
  const answer = await readLine('Approve it? [yes/N] ', new AbortController().signal);
  return answer?.trim().toLowerCase() === 'yes';
}

export interface PolicyOptions extends ConfigOptions {
  agent?: string;
  json?: boolean;
}

/** Lists the default rules if `tool` is empty. Returns the exit code: 2 if the input is not a JSON object. */
export async function policyExplainCommand(
  tool: string,
  json: string,
  options: PolicyOptions,
  terminal: Terminal,
): Promise<number> {
  if (tool === '') {
    const lines = Object.entries(defaultRules).map(
      ([name, rule]) => `${name}: ${actionOf(rule)}\n  ${rule.when}`,
    );
    const { decisionSteps } = await importDecide();
    const steps = decisionSteps.map(({ says }, at) => `${at + 1}. ${says}`);
    const text = ['The first of these that has an answer decides:', ...steps, '', ...lines].join('\n');
    terminal.out(`${options.json ? terminalJson(defaultRules) : text}\n`);
    return 0;
  }
  const input = objectIn(json);
  if (!input) {
    terminal.say(`The input of ${terminalText(tool)} is not a JSON object such as '{"path": "notes.md"}'.`);
    return 2;
  }
  const config = configFor(options, terminal);
  if (!config) return 2;
  const decision = await Telos.open(config).explain(tool, input, options.agent);
  if (options.json) {
    terminal.out(`${terminalJson(decision)}\n`);
    return 0;
  }
  const lines = [`${decision.action} (rule ${decision.rule})`];
  if ('subject' in decision) lines.push(`What: ${decision.subject}`);
  if ('folder' in decision && decision.folder) lines.push(`In: ${decision.folder}`);
  if (decision.action !== 'deny' && decision.boxed) lines.push('Where: in the sandbox');
  if ('reason' in decision) lines.push(`Why: ${decision.reason}`);
  const rule = defaultRule(decision.rule);
  if (rule) lines.push(`Default rule: ${rule.when} (${actionOf(rule)})`);
  if (decision.action === 'ask' && decision.toAllow)
    lines.push(`To allow it beforehand: ${remedyText(decision.toAllow)}`);
  terminal.out(`${lines.map(exactText).join('\n')}\n`);
  return 0;
}

const longestYes = { once: 'this call', run: 'this run', always: 'always' } as const;

const actionOf = ({ action, yes }: DefaultRule): string =>
  yes === undefined
    ? action
    : `${action}; approval applies to ${longestYes[yes]}${yes === 'once' ? '' : ' at most'}`;

/** Lists the granted permissions. Returns the exit code. */
export async function policyListCommand(options: PolicyOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { file, permissions, problems, warnings } = await listPermissions(config);
  const named = permissions.map(permission => ({ id: permissionId(permission), ...permission }));
  if (options.json) terminal.out(`${terminalJson(named)}\n`);
  else if (permissions.length > 0) {
    const rows = named.map(({ id, ...permission }) => [
      id,
      agentOf(permission),
      describePermission(permission),
      grantedAt(permission),
    ]);
    terminal.out(`${table(['Id', 'Agent', 'What', 'Since'], rows, terminal.outWidth)}\n`);
  } else if (problems.length === 0) terminal.say(terminalText(`Nothing is granted. Rules go to ${file}.`));
  for (const problem of [...problems, ...warnings])
    terminal.say(terminal.style.yellow(terminalText(problem)));
  return problems.length > 0 ? 1 : 0;
}

/** Revokes the permission with this id, and all that grant the same. Returns the exit code. */
export async function policyRevokeCommand(
  id: string,
  options: PolicyOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { permissions } = await listPermissions(config);
  const meant = permissions.filter(permission => permissionId(permission) === id);
  const [first] = meant;
  if (!first) {
    const number = /^\d+$/.test(id) ? ', for a place in the list can be that of another one by now' : '';
    terminal.say(
      `Grant '${terminalText(id)}' not found. Give an id that \`telos policy list\` shows${number}.`,
    );
    return 2;
  }
  let done = false;
  for (const permission of meant) done = (await revokePermission(permission, config)) || done;
  const what = `${agentOf(first)}, ${describePermission(first)}`;
  terminal.say(terminalText(done ? `Revoked: ${what}` : `Already revoked: ${what}`));
  return 0;
}

const agentOf = (permission: Permission): string =>
  permission.kind === 'card' ? permission.review.agent : permission.rule.agent;

const grantedAt = (permission: Permission): string =>
  (permission.kind === 'card' ? permission.review.reviewedAt : (permission.rule.granted ?? '')).slice(0, 10);

function objectIn(json: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as JsonObject)
      : undefined;
  } catch {
    return undefined;
  }
}
