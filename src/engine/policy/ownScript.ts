/** Reads a line that starts one of the agent's own scripts and does nothing else, and writes how it is started. */
import { isAbsolute, join, relative, sep } from 'node:path';
import { pluginRootOf } from '../files/hostPlugin.ts';
import { isInside, realIfThere } from '../files/paths.ts';
import { shellWord } from '../files/plainText.ts';
import { loadText } from '../files/regularFile.ts';
import { isSensitive } from '../files/sensitiveNames.ts';
import type { AgentFiles } from './agentFiles.ts';
import type { AgentFile } from './agentReader.ts';
import type { PolicyContext } from './decision.ts';
import { type Assignment, interpreterOf, readCall, runModule } from './scriptCall.ts';
import { isSteeringVariable } from './serverPrograms.ts';
import { piecesOf, reserved } from './shellCommands.ts';
import { signs } from './shellSigns.ts';
import { readLine } from './shellWords.ts';
import type { PolicySubjectOf } from './subject.ts';

/** A line that starts an own script. */
export interface OwnScript {
  /** The script, as the card names it. */
  label: string;
  /** The line that is started in its place. Missing on Windows, whose shell reads words in another way. */
  line?: string;
}

/** The words of a line. They contain `signs` around the names of variables whose values are not known here. */
interface OneCommand {
  assignments: readonly Assignment[];
  words: readonly string[];
  /** True if its errors go where its output goes. */
  joinsErrors: boolean;
}

type Values = Readonly<Record<string, string | undefined>>;

/** In characters. */
const longestLine = 20_000;

/** Returns the script that a line starts; undefined for a line that is more than that, or starts another program. */
export async function ownScript(
  { subject, words, folder }: PolicySubjectOf<'command'>,
  context: PolicyContext,
  files: AgentFiles | undefined,
): Promise<OwnScript | undefined> {
  if (!files) return undefined;
  const onWindows = process.platform === 'win32';
  const plain = words && { assignments: [], words, joinsErrors: false };
  const command = onWindows ? plain : readCommand(subject, knownValues(context));
  const found = command && (await new Finder(folder, context, files).find(command));
  if (!found) return undefined;
  return { label: found.label, ...(!onWindows && { line: lineOf(found) }) };
}

const knownValues = ({ skillDir, packDir, pluginData, home }: PolicyContext): Values => ({
  SKILL_DIR: skillDir,
  SKILL_PATH: skillDir,
  SKILL_ROOT: skillDir,
  CLAUDE_SKILL_DIR: skillDir,
  CLAUDE_PLUGIN_ROOT: pluginRootOf({ packDir, skillDir }),
  ...(pluginData !== undefined && { CLAUDE_PLUGIN_DATA: pluginData }),
  TELOS_SKILL_DIR: skillDir,
  TELOS_PACK_DIR: packDir,
  HOME: home,
});

/** Returns the one command of a line; undefined if it has a part whose meaning only a shell would know, or more commands. */
function readCommand(line: string, known: Values): OneCommand | undefined {
  if (line.length > longestLine || /[\0\r\ue000-\ue01f]/.test(line)) return undefined;
  const { tokens, inner, unread } = readLine(line);
  if (unread !== undefined || inner.length > 0) return undefined;
  const told = tokens.filter(({ kind }) => kind !== 'comment');
  while (told.at(-1)?.text === '\n' && told.at(-1)?.kind === 'operator') told.pop();
  const [errors, target] = told.slice(-2);
  const joinsErrors =
    errors?.kind === 'operator' &&
    errors.text === '>&' &&
    errors.stream === '2' &&
    target?.kind === 'word' &&
    target.text === '1';
  const assignments: Assignment[] = [];
  const words: string[] = [];
  for (const { kind, text } of joinsErrors ? told.slice(0, -2) : told) {
    const word = kind === 'word' ? knownText(text, known) : undefined;
    if (word === undefined) return undefined;
    const [, name, value = ''] = (words.length === 0 && /^([A-Za-z_]\w*)=(.*)$/s.exec(word)) || [];
    if (name === undefined) words.push(word);
    else assignments.push([name, value]);
  }
  const [program] = words;
  // A program in quotes is a program, but one named like a word of the shell is not worth the doubt.
  if (!program || reserved.test(program) || hasUnknown(program)) return undefined;
  return { assignments, words, joinsErrors };
}

const variable = new RegExp(`${signs.variable}([^${signs.end}]*)${signs.end}`, 'g');
const hasUnknown = (word: string): boolean => word.includes(signs.variable);

/** Returns the word with the values of known variables; undefined if a shell would make something else of it. */
function knownText(text: string, values: Values): string | undefined {
  const isHome = text.startsWith(signs.tilde) && /^(\/|$)/.test(text.slice(1));
  const plain = (isHome ? (values['HOME'] ?? signs.tilde) + text.slice(1) : text)
    .replaceAll(signs.comma, ',')
    .replace(variable, (sign, name: string) => (Object.hasOwn(values, name) ? values[name]! : sign));
  return /[\0\ue000-\ue013]/.test(plain) ? undefined : plain;
}

/** Returns the word with these values in place of variables. One without a value is empty. */
const withValues = (word: string, values: Values): string =>
  word.replace(variable, (_, name: string) => (Object.hasOwn(values, name) ? (values[name] ?? '') : ''));

/** Returns a word for a shell, which makes exactly that word of it. */
const quoted = (word: string): string =>
  word
    .split(variable)
    .map((part, index) =>
      index % 2 === 1 ? `"$${part}"` : part === '' && word !== '' ? '' : shellWord(part),
    )
    .join('');

const lineOf = ({ assignments, words, joinsErrors }: OneCommand): string =>
  [
    ...assignments.map(([name, value]) => `${name}=${quoted(value)}`),
    ...words.map(quoted),
    ...(joinsErrors ? ['2>&1'] : []),
  ].join(' ');

class Finder {
  readonly #folder: string;
  readonly #context: PolicyContext;
  readonly #files: AgentFiles;

  constructor(folder: string, context: PolicyContext, files: AgentFiles) {
    this.#folder = folder;
    this.#context = context;
    this.#files = files;
  }

  /** Returns how the script is started; undefined if the words start none. */
  async find({ words, assignments, joinsErrors }: OneCommand) {
    const call = readCall(words);
    if (!call) return undefined;
    const all = [...assignments, ...call.assignments];
    const { module, program, flags, rest } = call;
    const fixed = words.slice(0, words.length - rest.length);
    if (fixed.some(hasUnknown) || (module !== undefined && rest.some(hasUnknown))) return undefined;
    if (!rest.every(word => this.#mayPass(word))) return undefined;
    const script = module === undefined ? this.#ownFile(call.script) : this.#ownModule(module);
    if (!script || !(await this.#mayAssign(all, script.file))) return undefined;
    const { label, root } = script;
    if (module !== undefined) {
      const started = [program, '-I', '-c', runModule, root, module, ...rest];
      return { label, assignments: [...all, ['PYTHONPATH', root] as const], words: started, joinsErrors };
    }
    const before = program === '' ? await interpreterOf(script.file) : [program, ...flags];
    return { label, assignments: all, words: [...before, call.script, ...rest], joinsErrors };
  }

  /** Returns true if a word for a script means no place of secrets whatever its variables hold. */
  #mayPass(word: string): boolean {
    return [this.#context.env ?? {}, {}].every(
      values => !piecesOf(withValues(word, values)).some(isSensitive),
    );
  }

  /** Returns the agent's own file that the words name, with its label. */
  #ownFile(written: string) {
    // The path is not normalized as text, because the system goes up from the target of a link.
    const way = isAbsolute(written) ? written : this.#folder + sep + written;
    const path = realIfThere(way);
    if (path === undefined) return undefined;
    const { packDir } = this.#context;
    const pack = realIfThere(packDir) ?? packDir;
    const label = isInside(pack, path) ? relative(pack, path).split(sep).join('/') : path;
    const file = this.#files.files.get(label);
    return file && !file.isLink ? { label, file, root: '' } : undefined;
  }

  #ownModule(module: string) {
    const path = module.replaceAll('.', '/');
    for (const root of [this.#context.skillDir, this.#context.packDir])
      for (const file of [`${root}/${path}.py`, `${root}/${path}/__main__.py`]) {
        const found = this.#ownFile(file);
        if (found) return { ...found, root };
      }
    return undefined;
  }

  /** Returns true if the script, or the text of its skill, names each of the variables, and none says what programs load. */
  async #mayAssign(assignments: readonly Assignment[], script: AgentFile): Promise<boolean> {
    if (assignments.length === 0) return true;
    if (assignments.some(([name, value]) => isSteeringVariable(name) || hasUnknown(value))) return false;
    const texts = await Promise.all(
      [script.path, join(this.#context.skillDir, 'SKILL.md')].map(path => loadText(path).catch(() => '')),
    );
    return assignments.every(([name]) => texts.some(text => new RegExp(`\\b${name}\\b`).test(text)));
  }
}
