/** Adds and removes single rules of policy.toml, and leaves every other byte as its owner wrote it. */
import { type Sentence, sentence } from '@telos/protocol/text';
import { expandPath } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { editShared, parseToml, tomlString } from '../files/settingsFile.ts';
import {
  headerLines,
  type PolicyRule,
  type PolicyRules,
  type RuleSubject,
  readPolicy,
} from './policyFile.ts';

/** A rule as Telos writes it for an answer of the user. */
export interface RuleDraft extends RuleSubject {
  agent: string;
  pack: string;
  tool: string;
  /** Digest of the agent's files when the answer was given. */
  agent_digest?: string;
}

/** A rule that a person has made. It counts for the agent whatever its files are. */
export interface UserRule extends RuleSubject {
  /** `*` for every agent. */
  agent: string;
  tool: string;
}

/** Appends a rule that a person has made, unless it is there. Throws TelosError `config` if the file is broken or stays locked. */
export async function writeRule(file: string, effect: PolicyRule['effect'], rule: UserRule): Promise<void> {
  const lines = draftLines(rule);
  await edit(file, text =>
    blocksOf(text, effect).some(block => sameRule(block.lines, lines))
      ? text
      : withEntry(text, [`[[${effect}]]`, ...lines]),
  );
}

/**
 * Appends an allow rule, unless the same one is there. A rule that Telos wrote for other files of the agent is replaced. Throws
 * TelosError `config` if the file is broken or stays locked.
 */
export async function addRule(file: string, draft: RuleDraft, now: Date): Promise<void> {
  await edit(file, text => {
    const { agent_digest: _digest, ...lasting } = draft;
    const same = draftLines(draft);
    if (blocksOf(text, 'allow').some(block => sameRule(block.lines, same))) return text;
    const written = [...same, `granted = ${tomlString(now.toISOString())}`];
    const stale = blocksOf(text, 'allow').find(block => isStale(block.lines, draftLines(lasting)));
    if (stale) return withBlock(text, stale, ['[[allow]]', ...written, ...stale.lines.filter(isComment)]);
    return withEntry(text, ['[[allow]]', ...written]);
  });
}

/** Returns the rules with which a person has switched off a server's tool, for the agent or for every one. */
export const switchesOf = (
  { deny }: Pick<PolicyRules, 'deny'>,
  agent: string,
  server: string,
  tool: string,
): PolicyRule[] =>
  deny.filter(
    rule =>
      rule.server === server &&
      rule.tool === tool &&
      [agent, '*'].includes(rule.agent) &&
      [rule.pack, rule.argv, rule.command, rule.host, rule.path, rule.digest].every(
        part => part === undefined,
      ),
  );

/** Switches a server's tool off for an agent, or on again. Throws TelosError `config` if the file is broken or stays locked. */
export async function switchTool(
  { file, home }: { file: string; home: string },
  { agent, server, tool }: { agent: string; server: string; tool: string },
  isOn: boolean,
): Promise<void> {
  if (!isOn) return writeRule(file, 'deny', { agent, tool, server });
  for (const rule of switchesOf(readPolicy(file, home), agent, server, tool))
    await removeRule(file, rule, home);
}

function withEntry(text: string, lines: readonly string[]): string {
  const before = text === '' ? head : text.endsWith('\n') ? text : `${text}\n`;
  return `${before}\n${lines.join('\n')}\n`;
}

/**
 * Removes the rule with this content, wherever it is in the file by now. Returns false if it is no longer there. Throws
 * TelosError `config`.
 */
export async function removeRule(file: string, rule: PolicyRule, home: string): Promise<boolean> {
  let removed = false;
  await edit(file, text => {
    removed = false;
    const own = JSON.stringify(contentOf(rule, home));
    const block = blocksOf(text, rule.effect).find(
      ({ lines }) => JSON.stringify(contentOf(tableIn(lines, rule.effect), home)) === own,
    );
    if (!block) return text;
    removed = true;
    const lines = text.split('\n');
    lines.splice(block.start - 1, block.lines.length);
    return lines.join('\n');
  });
  return removed;
}

const head = `# What agents may do without a question. Telos appends here what you allow for always; edit and delete as you like.
`;

function draftLines(draft: RuleDraft | UserRule): string[] {
  return Object.entries(draft).map(([key, value]) => {
    const written = Array.isArray(value)
      ? `[${value.map(tomlString).join(', ')}]`
      : tomlString(String(value));
    return `${key} = ${written}`;
  });
}

const sameRule = (lines: readonly string[], wanted: readonly string[]): boolean =>
  wanted.every(line => lines.includes(line)) &&
  lines.slice(1).every(line => wanted.includes(line) || /^(granted =.*|\s*(#.*)?)$/.test(line));

/** Returns true for a rule that Telos wrote for the same subject, whatever the files were. */
const isStale = (lines: readonly string[], wanted: readonly string[]): boolean =>
  lines.some(line => line.startsWith('granted = ')) &&
  sameRule(
    lines.filter(line => !line.startsWith('agent_digest = ')),
    wanted,
  );

const isComment = (line: string): boolean => /^\s*#/.test(line);

function withBlock(text: string, { start, lines }: Block, written: readonly string[]): string {
  const all = text.split('\n');
  all.splice(start - 1, lines.length, ...written);
  return all.join('\n');
}

interface Block {
  /** Line of its header, from 1. */
  start: number;
  lines: string[];
}

/** Returns the entries with their headers. Empty lines and comments before the next header belong to that one. */
function blocksOf(text: string, effect: PolicyRule['effect']): Block[] {
  const lines = text.split('\n');
  return headerLines(text, effect).map(start => {
    let end = start;
    while (end < lines.length && !/^\s*\[/.test(lines[end]!)) end++;
    while (end > start && /^\s*(#.*)?$/.test(lines[end - 1]!)) end--;
    return { start, lines: lines.slice(start - 1, end) };
  });
}

function tableIn(lines: readonly string[], effect: PolicyRule['effect']): object {
  try {
    const entries = parseToml(lines.join('\n'))[effect];
    return Array.isArray(entries) && entries.length === 1 ? (entries[0] as object) : {};
  } catch {
    return {};
  }
}

/** Returns the values that distinguish one rule from another, in a fixed order. */
function contentOf(rule: object, home: string): unknown[] {
  const {
    agent = '*',
    tool,
    argv,
    command,
    host,
    server,
    digest,
    granted,
    agent_digest,
    ...paths
  } = rule as Partial<PolicyRule>;
  const places = [paths.pack, paths.folder, paths.path].map(path => path && expandPath(path, home, home));
  return [agent, tool, argv, command, host, server, digest, granted, agent_digest, ...places].map(
    value => value ?? null,
  );
}

async function edit(file: string, change: (text: string) => string): Promise<void> {
  await editShared(file, text => {
    checkWhole(file, text, sentence('It was not changed; correct it first.'));
    const changed = change(text);
    if (changed !== text)
      checkWhole(file, changed, sentence('Telos cannot change it safely; change it by hand.'));
    return changed;
  });
}

function checkWhole(file: string, text: string, consequence: Sentence): void {
  try {
    parseToml(text);
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    throw new TelosError('config', [sentence('{0} is broken: {1}.', file, reason), consequence]);
  }
}
