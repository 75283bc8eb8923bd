/** Reads policy.toml, the user's own rules on what agents may do. A rule that is not understood in full grants nothing. */
import { type BigIntStats, existsSync, lstatSync, statSync } from 'node:fs';
import type { RunEvent } from '@telos/protocol/run';
import { hostKind, isNeverReached } from '../addresses.ts';
import { expandPath } from '../config.ts';
import { readToml, type TomlTable } from '../files/settingsFile.ts';
import { openRuleWarning } from './programHabits.ts';

/** The subject of a rule besides its tool. An allow rule has exactly one of argv, command, host, path and digest. */
export interface RuleSubject {
  /** Exact words. A `*` at the end allows any further arguments. */
  argv?: readonly string[];
  /** Exact text of a command. */
  command?: string;
  /** With `command`: the only folder in which the rule holds. Absolute path. */
  folder?: string;
  /**
   * `example.com`, `*.example.com`, or `localhost:3000`. A host on this machine or its network needs its port. With `run_command` it is
   * a host that commands in the box may reach.
   */
  host?: string;
  /** A file, or everything in a folder if it ends in `/**`. Absolute path. */
  path?: string;
  /** The MCP server's name and the digest of the tool's description and schema. */
  server?: string;
  digest?: string;
}

export interface PolicyRule extends RuleSubject {
  effect: 'allow' | 'deny';
  /** `*` for every agent. */
  agent: string;
  /** Folder of the only agent for which the rule holds. Absolute path. */
  pack?: string;
  /** `*` only in a deny rule. */
  tool: string;
  /** Time when Telos wrote the rule for an answer. ISO time. */
  granted?: string;
  /** Digest of the agent's files when Telos wrote the rule. The rule counts only for these files. */
  agent_digest?: string;
  /** Line of its header in the file, from 1. */
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
  /** The first reason why the file cannot be read in full. What it forbids is then not known, so nothing may run. */
  broken?: string;
}

/**
 * Rules by file, as this process last read them in full. So a typing error in an open window changes no rule. A process that has
 * read nothing yet has no earlier rules to keep.
 */
const lastWhole = new Map<string, PolicyRules>();

/** Reads the file again whenever it has changed. So a rule that one window grants or revokes holds in every other. */
export class PolicyFile {
  readonly file: string;
  readonly #home: string;
  #stamp = '';
  #rules: PolicyRules;
  #reported = '';

  constructor(file: string, home: string) {
    this.file = file;
    this.#home = home;
    this.#rules = { file, allow: [], deny: [], problems: [], warnings: [] };
  }

  /** Returns the current rules. Never throws. */
  read(): PolicyRules {
    let stats: BigIntStats | undefined;
    let isLink = false;
    try {
      stats = lstatSync(this.file, { bigint: true, throwIfNoEntry: false });
      isLink = stats?.isSymbolicLink() === true;
      if (isLink) stats = statSync(this.file, { bigint: true, throwIfNoEntry: false });
    } catch {
      // Reading it reports why it cannot be examined.
      this.#stamp = '';
      this.#rules = this.#readOrKeep();
      return this.#rules;
    }
    const stamp = stats
      ? `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`
      : isLink
        ? 'link to nothing'
        : 'missing';
    if (stamp === this.#stamp) return this.#rules;
    this.#rules = this.#readOrKeep();
    // Two writes within one tick of the file system's clock look the same. A file this fresh is read again.
    const fresh = stats !== undefined && Date.now() - Number(stats.ctimeMs) < 100;
    this.#stamp = fresh ? '' : stamp;
    return this.#rules;
  }

  #readOrKeep(): PolicyRules {
    const kept = lastWhole.get(this.file);
    const until = kept ? 'its rules as they were read before hold' : 'nothing runs';
    const rules = readPolicy(this.file, this.#home, until);
    if (rules.broken !== undefined) return kept ? { ...kept, problems: rules.problems } : rules;
    // If the file is missing, it never forbade anything.
    if (rules.isThere) lastWhole.set(this.file, rules);
    else lastWhole.delete(this.file);
    return rules;
  }

  /** Returns the problems and warnings of the file, unless this method has returned the same ones before. */
  newProblems(): readonly string[] {
    const { problems, warnings } = this.read();
    const all = [...problems, ...warnings];
    const text = all.join('\n');
    if (text === this.#reported) return [];
    this.#reported = text;
    return all;
  }
}

/**
 * Reads a policy file. Never throws. An allow rule that is not understood is left out, because it forbids nothing. Anything else
 * that is not understood could forbid anything, so the file counts as broken. `until` says what holds until it is fixed.
 */
export function readPolicy(
  file: string,
  home: string,
  until = 'nothing runs',
): PolicyRules & { isThere: boolean } {
  const consequence = { text: `Until it is corrected, ${until}.`, values: [] };
  const { text, table, diagnostics } = readToml(file, 'policy', [consequence]);
  const problems = diagnostics.map(({ message, line }) => `${file}, line ${line}: ${message}`);
  // A link whose target is missing is a file of the user that cannot be read. It does not count as a file that was never written.
  const isThere = isListed(file);
  if (isThere && text === '' && diagnostics.length === 0 && !existsSync(file))
    problems.push(
      `${file} is a link to nothing. Restore its target, or delete the link. Until then, ${until}.`,
    );
  // A path that was read wrongly would name another place.
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
    // Reading it has failed as well, and has reported why.
    return true;
  }
}

const linesMatching = (text: string, pattern: RegExp): number[] =>
  text.split('\n').flatMap((line, index) => (pattern.test(line) ? [index + 1] : []));

const escapedForPattern = (text: string): string => text.replace(/[^\w]/g, '\\$&');

/** Returns the numbers of the lines that begin an entry, in the order of the entries. */
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

/** Returns what is wrong with a rule, or undefined if it would be understood. */
export function ruleProblem(effect: PolicyRule['effect'], rule: object, home: string): string | undefined {
  const read = ruleOf(rule, effect, 0, home);
  return typeof read === 'string' ? read : undefined;
}

/** Returns the rule, or a text that says what is wrong with it. */
function ruleOf(
  entry: unknown,
  effect: PolicyRule['effect'],
  line: number,
  home: string,
): PolicyRule | string {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return 'is not a table';
  const table = entry as TomlTable;
  for (const [key, value] of Object.entries(table)) {
    if (key === 'argv') {
      const words = Array.isArray(value) && value.length > 0 && value.every(word => typeof word === 'string');
      if (!words) return 'has an argv that is not a list of words such as ["git", "status"]';
    } else if (!textKeys.includes(key)) return `has the unknown key '${key}'`;
    else if (typeof value !== 'string' || value === '') return `has a '${key}' that is not text`;
  }
  const rule = { agent: '*', ...table, effect, line } as unknown as PolicyRule;
  if (!table['tool']) return 'names no tool';
  if (effect === 'allow' && !table['agent']) return 'names no agent; "*" means every agent';
  for (const key of ['pack', 'folder', 'path'] as const) {
    const path = rule[key];
    if (path === undefined) continue;
    if (!/^(~([\\/]|$)|[\\/]|[A-Za-z]:)/.test(path)) return `has a '${key}' that is not an absolute path`;
    // The pattern would be taken literally, and forbid nothing.
    const place = path.replace(/\/\*\*$/, '');
    const literal = expandPath(place, home, home);
    if (effect === 'deny' && (/[*?]/.test(place) || (/[[\]{}]/.test(place) && !existsSync(literal))))
      return `has a '${key}' with a pattern; only /** at its end is understood`;
    rule[key] = expandPath(path, home, home);
  }
  return (effect === 'deny' ? otherSpelling(rule) : undefined) ?? subjectProblem(rule) ?? rule;
}

/** Tools by the names that people write for them, which are those of other hosts. A server's tool is seldom called so. */
const namesElsewhere: Readonly<Record<string, readonly string[]>> = {
  read_file: ['Read'],
  write_file: ['Write'],
  edit_file: ['Edit', 'MultiEdit'],
  list_directory: ['LS'],
  search_files: ['Grep'],
  glob: [],
  run_command: ['Bash', 'Shell'],
  fetch_url: ['WebFetch'],
};

/** Returns what is wrong with the name of a tool that would forbid nothing, since the tool has another name. */
function otherSpelling({ tool, server }: PolicyRule): string | undefined {
  if (server !== undefined || Object.hasOwn(namesElsewhere, tool)) return undefined;
  const letters = (name: string): string => name.toLowerCase().replace(/[^a-z]/g, '');
  const [meant] =
    Object.entries(namesElsewhere).find(
      ([name, others]) => letters(name) === letters(tool) || others.includes(tool),
    ) ?? [];
  return meant && `names the tool '${tool}', which is called ${meant}`;
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
    host: ['fetch_url', 'run_command'],
  };
  const wanted = named[0] && fits[named[0]];
  if (wanted && tool !== '*' && !wanted.includes(tool)) return `has a '${named[0]}', which ${tool} has not`;
  return undefined;
}

/** Yields the problems of the user's own rules, once for each state of the file. */
export function* policyNotices(rules: PolicyFile | undefined): Generator<RunEvent, void> {
  const problems = rules?.newProblems() ?? [];
  for (const [index, message] of problems.entries()) {
    const isLast = index === problems.length - 1;
    yield { type: 'notice', level: 'warning', message, ...(isLast && { remedy: { kind: 'check_policy' } }) };
  }
}
