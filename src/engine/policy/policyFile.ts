/** Reads policy.toml, the user's own rules on what agents may do; a rule that is not understood in full grants nothing. */
import { type BigIntStats, existsSync, lstatSync, statSync } from 'node:fs';
import { expandPath } from '../config.ts';
import { readToml, type TomlTable } from '../files/settingsFile.ts';
import { hostKind, isNeverReached } from '../tools/addresses.ts';
import { openRuleWarning } from './openPrograms.ts';

/** What a rule is about besides its tool; an allow rule has exactly one of argv, command, host, path and digest. */
export interface RuleSubject {
  /** Exact words; a last `*` opens the arguments. */
  argv?: readonly string[];
  /** Exact text of a command. */
  command?: string;
  /** With `command`: only in this folder. Absolute. */
  folder?: string;
  /** `example.com`, `*.example.com`, or `localhost:3000`: a host on this machine or its network only with its port. */
  host?: string;
  /** A file, or everything in a folder where it ends in `/**`. Absolute. */
  path?: string;
  /** The MCP server's name and the digest of the tool's description and schema. */
  server?: string;
  digest?: string;
}

export interface PolicyRule extends RuleSubject {
  effect: 'allow' | 'deny';
  /** `*` for every agent. */
  agent: string;
  /** Only for the agent in this folder. Absolute. */
  pack?: string;
  /** `*` only in a deny rule. */
  tool: string;
  /** When Telos wrote it down for an answer. ISO time. */
  granted?: string;
  /** Of the agent's files when Telos wrote it down; it counts only for these. */
  agent_digest?: string;
  /** Of its header in the file, from 1. */
  line: number;
}

export interface PolicyRules {
  file: string;
  allow: readonly PolicyRule[];
  deny: readonly PolicyRule[];
  /** Sentences that name file and line. */
  problems: readonly string[];
  /** Sentences about rules that are in force and wider than they look. */
  warnings: readonly string[];
  /** Set when the file cannot be read whole, so that what it forbids is not known: the first reason. Then nothing may run. */
  broken?: string;
}

/**
 * By file: the rules as this process last read them whole. A slip of the pen in an open window changes no rule; a process that has read
 * nothing yet has nothing to go by.
 */
const lastWhole = new Map<string, PolicyRules>();

/** Reads again whenever the file has changed, so that what one window grants or revokes holds in every other. */
export class PolicyFile {
  readonly file: string;
  readonly #home: string;
  #stamp = '';
  #rules: PolicyRules;
  #told = '';

  constructor(file: string, home: string) {
    this.file = file;
    this.#home = home;
    this.#rules = { file, allow: [], deny: [], problems: [], warnings: [] };
  }

  /** Never throws. */
  read(): PolicyRules {
    let stats: BigIntStats | undefined;
    try {
      stats = statSync(this.file, { bigint: true, throwIfNoEntry: false });
    } catch {
      // Reading it says why it cannot be looked at.
      this.#stamp = '';
      this.#rules = this.#readOrKeep();
      return this.#rules;
    }
    const stamp = stats ? `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}` : 'none';
    if (stamp === this.#stamp) return this.#rules;
    this.#rules = this.#readOrKeep();
    // Two writes within one tick of the file system's clock look the same: what is that fresh is read again.
    const fresh = stats !== undefined && Date.now() - Number(stats.ctimeMs) < 100;
    this.#stamp = fresh || !stats ? '' : stamp;
    return this.#rules;
  }

  #readOrKeep(): PolicyRules {
    const kept = lastWhole.get(this.file);
    const until = kept ? 'its rules as they were read before hold' : 'nothing runs';
    const rules = readPolicy(this.file, this.#home, until);
    if (rules.broken !== undefined) return kept ? { ...kept, problems: rules.problems } : rules;
    // Where there is no file, nothing was ever forbidden by it.
    if (rules.isThere) lastWhole.set(this.file, rules);
    else lastWhole.delete(this.file);
    return rules;
  }

  /** What is wrong with the file, or wider than it looks, and has not been told by this method before. */
  newProblems(): readonly string[] {
    const { problems, warnings } = this.read();
    const all = [...problems, ...warnings];
    const text = all.join('\n');
    if (text === this.#told) return [];
    this.#told = text;
    return all;
  }
}

/**
 * Never throws. An allow rule that is not understood is left out: it forbids nothing. Anything else that is not understood could be a
 * prohibition of anything, so the file counts as broken. `until` says what holds until it is corrected.
 */
export function readPolicy(
  file: string,
  home: string,
  until = 'nothing runs',
): PolicyRules & { isThere: boolean } {
  const { text, table, diagnostics } = readToml(file, 'policy', `Until it is corrected, ${until}.`);
  const problems = diagnostics.map(({ message, line }) => `${file}, line ${line}: ${message}`);
  // A link whose target is missing is a file of the user that cannot be read, not one that was never written.
  const isThere = isListed(file);
  if (isThere && text === '' && diagnostics.length === 0 && !existsSync(file))
    problems.push(
      `${file} is a link to nothing. Restore its target, or delete the link. Until then, ${until}.`,
    );
  // A place whose name was read wrongly would be another place.
  for (const line of linesMatching(text, /\ufffd/))
    problems.push(
      `${file}, line ${line}: there are bytes that are not UTF-8. Save the file as UTF-8. Until it is corrected, ${until}.`,
    );
  for (const key of Object.keys(table)) {
    const [line = 1] = linesMatching(text, new RegExp(`^\\s*\\[*\\s*["']?${escapedForPattern(key)}\\b`));
    if (key !== 'allow' && key !== 'deny')
      problems.push(
        `${file}, line ${line}: '${key}' is not known here; rules are [[allow]] and [[deny]]. Until it is corrected, ${until}.`,
      );
  }
  const rules = (effect: PolicyRule['effect']): PolicyRule[] => {
    const entries = Object.hasOwn(table, effect) ? table[effect] : [];
    const lines = headerLines(text, effect);
    if (!Array.isArray(entries)) {
      const [line = 1] = linesMatching(text, new RegExp(`^\\s*\\[?\\s*["']?${effect}\\b`));
      problems.push(`${file}, line ${line}: '${effect}' must be written as [[${effect}]].`);
      return [];
    }
    return entries.flatMap((entry, index) => {
      const line = lines[index] ?? 1;
      const rule = ruleOf(entry, effect, line, home);
      if (typeof rule !== 'string') return [rule];
      const therefore = effect === 'allow' ? 'so it is not used' : `so until it is corrected, ${until}`;
      problems.push(`${file}, line ${line}: this [[${effect}]] rule ${rule}, ${therefore}.`);
      return [];
    });
  };
  const deny = rules('deny');
  const [broken] = problems;
  if (broken !== undefined) return { file, allow: [], deny, problems, warnings: [], broken, isThere };
  const allow = rules('allow');
  const warnings = allow.flatMap(rule => openRuleWarning(rule, file) ?? []);
  return { file, allow, deny, problems, warnings, isThere };
}

function isListed(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // Reading it has failed as well, and has said why.
    return true;
  }
}

const linesMatching = (text: string, pattern: RegExp): number[] =>
  text.split('\n').flatMap((line, index) => (pattern.test(line) ? [index + 1] : []));

const escapedForPattern = (text: string): string => text.replace(/[^\w]/g, '\\$&');

/** Numbers of the lines that begin an entry, in the order of the entries. */
export function headerLines(text: string, effect: PolicyRule['effect']): number[] {
  return linesMatching(text, new RegExp(`^\\s*\\[\\[\\s*${effect}\\s*\\]\\]`));
}

const textKeys = [
  'agent',
  'pack',
  'tool',
  'command',
  'folder',
  'host',
  'path',
  'server',
  'digest',
  'granted',
  'agent_digest',
];

/** The rule, or what is wrong with it. */
function ruleOf(
  entry: unknown,
  effect: PolicyRule['effect'],
  line: number,
  home: string,
): PolicyRule | string {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return 'is no table';
  const table = entry as TomlTable;
  for (const [key, value] of Object.entries(table)) {
    if (key === 'argv') {
      const words = Array.isArray(value) && value.length > 0 && value.every(word => typeof word === 'string');
      if (!words) return 'has an argv that is no list of words such as ["git", "status"]';
    } else if (!textKeys.includes(key)) return `has the unknown key '${key}'`;
    else if (typeof value !== 'string' || value === '') return `has a '${key}' that is no text`;
  }
  const rule = { agent: '*', ...table, effect, line } as unknown as PolicyRule;
  if (!table['tool']) return 'names no tool';
  if (effect === 'allow' && !table['agent']) return 'names no agent; "*" means every agent';
  for (const key of ['pack', 'folder', 'path'] as const) {
    const path = rule[key];
    if (path === undefined) continue;
    if (!/^(~([\\/]|$)|[\\/]|[A-Za-z]:)/.test(path)) return `has a '${key}' that is no absolute path`;
    // It would be taken by the letter, and forbid nothing.
    if (effect === 'deny' && /[*?]/.test(path.replace(/\/\*\*$/, '')))
      return `has a '${key}' with a pattern; only /** at its end is understood`;
    rule[key] = expandPath(path, home, home);
  }
  return subjectProblem(rule) ?? rule;
}

const subjectKeys = ['argv', 'command', 'host', 'path', 'digest'] as const;

function subjectProblem(rule: PolicyRule): string | undefined {
  const { effect, tool, host } = rule;
  const named = subjectKeys.filter(key => rule[key] !== undefined);
  const counts = effect === 'allow' ? named.length === 1 : named.length <= 1;
  if (!counts) return `needs exactly one of ${subjectKeys.join(', ')}`;
  if (effect === 'allow' && tool === '*') return 'allows every tool; name one';
  if (host !== undefined && !/^(\*\.)?([\w.-]+|\[[\da-f:]+\])(:\d+)?$/i.test(host))
    return `has a host that is none: ${host}`;
  const kind = host === undefined ? 'public' : hostKind(host.replace(/:\d+$/, ''));
  if (effect === 'allow' && isNeverReached(kind)) return `names a ${kind} address, which is never fetched`;
  const fits: Partial<Record<(typeof subjectKeys)[number], readonly string[]>> = {
    argv: ['run_command'],
    command: ['run_command'],
    host: ['fetch_url'],
  };
  const wanted = named[0] && fits[named[0]];
  if (wanted && tool !== '*' && !wanted.includes(tool)) return `has a '${named[0]}', which ${tool} has not`;
  return undefined;
}
