/** Reads policy.toml, the user's own rules on what agents may do; a rule that is not understood in full grants nothing. */
import { type BigIntStats, statSync } from 'node:fs';
import { readToml, type TomlTable } from '../agents/toml.ts';
import { expandPath } from '../config.ts';
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
}

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
      // Reading it says why it cannot be looked at, and grants nothing.
      this.#stamp = '';
      this.#rules = readPolicy(this.file, this.#home);
      return this.#rules;
    }
    const stamp = stats ? `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}` : 'none';
    if (stamp === this.#stamp) return this.#rules;
    this.#rules = readPolicy(this.file, this.#home);
    // Two writes within one tick of the file system's clock look the same: what is that fresh is read again.
    const fresh = stats !== undefined && Date.now() - Number(stats.ctimeMs) < 100;
    this.#stamp = fresh ? '' : stamp;
    return this.#rules;
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

/** Never throws: a broken file has no rules, and a broken rule is left out. */
export function readPolicy(file: string, home: string): PolicyRules {
  const { text, table, diagnostics } = readToml(
    file,
    'policy',
    'Until it is corrected, nothing is granted by it.',
  );
  const problems = diagnostics.map(({ message, line }) => `${file}, line ${line}: ${message}`);
  const rules = (effect: PolicyRule['effect']): PolicyRule[] => {
    const entries = Object.hasOwn(table, effect) ? table[effect] : [];
    const lines = headerLines(text, effect);
    if (!Array.isArray(entries)) {
      problems.push(`${file}, line ${lines[0] ?? 1}: '${effect}' must be written as [[${effect}]].`);
      return [];
    }
    return entries.flatMap((entry, index) => {
      const line = lines[index] ?? 1;
      const rule = ruleOf(entry, effect, line, home);
      if (typeof rule !== 'string') return [rule];
      problems.push(`${file}, line ${line}: this [[${effect}]] rule ${rule}, so it is not used.`);
      return [];
    });
  };
  const deny = rules('deny');
  // A prohibition that is not understood might be about anything, so nothing is granted beside it.
  const allow = problems.length > 0 ? [] : rules('allow');
  for (const key of Object.keys(table)) {
    if (key !== 'allow' && key !== 'deny')
      problems.push(`${file}: '${key}' is nothing that Telos knows; rules are [[allow]] and [[deny]].`);
  }
  const warnings = allow.flatMap(rule => openRuleWarning(rule, file) ?? []);
  return { file, allow, deny, problems, warnings };
}

/** Numbers of the lines that begin an entry, in the order of the entries. */
export function headerLines(text: string, effect: PolicyRule['effect']): number[] {
  const header = new RegExp(`^\\s*\\[\\[\\s*${effect}\\s*\\]\\]`);
  return text.split('\n').flatMap((line, index) => (header.test(line) ? [index + 1] : []));
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
    if (!/^(~|[\\/]|[A-Za-z]:)/.test(path)) return `has a '${key}' that is no absolute path`;
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
  const fits: Partial<Record<(typeof subjectKeys)[number], readonly string[]>> = {
    argv: ['run_command'],
    command: ['run_command'],
    host: ['fetch_url'],
  };
  const wanted = named[0] && fits[named[0]];
  if (wanted && tool !== '*' && !wanted.includes(tool)) return `has a '${named[0]}', which ${tool} has not`;
  return undefined;
}
