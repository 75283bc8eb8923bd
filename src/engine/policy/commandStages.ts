/** Checks each command of a line: an own script of the agent, or a program that only computes inside the run's folders. */

import { existsSync, statSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { pluginRootOf } from '../files/hostPlugin.ts';
import { folderHolding, goesDownAndUp, isInside, realIfThere } from '../files/paths.ts';
import { loadText } from '../files/regularFile.ts';
import { isSensitive } from '../files/sensitiveNames.ts';
import type { AgentFiles } from './agentFiles.ts';
import type { AgentFile } from './agentReader.ts';
import { computation, toldOutput } from './computePrograms.ts';
import type { PolicyContext } from './decision.ts';
import { acceptedFolders, decideOnPlace, decideOnRead, unacceptedFolders } from './fileDefaults.ts';
import { gitVariables, quietRepository } from './gitLook.ts';
import { parseReadOnlyCommand } from './readOnlyCommand.ts';
import type { Computation, PathWord } from './readOnlyFlags.ts';
import { interpreterOf, readCall, runModule } from './scriptCall.ts';
import { isSteeringVariable } from './serverPrograms.ts';
import { piecesOf } from './shellCommands.ts';
import {
  fitsStars,
  hasStar,
  hasUnknown,
  type Known,
  lineOf,
  type Redirection,
  readPlan,
  type Stage,
  unknownIn,
  withValues,
} from './shellPlan.ts';
import { type PolicySubjectOf, subjectOf } from './subject.ts';

/** A line that was checked. */
export interface CheckedLine {
  /** Its commands, with their paths resolved. Missing on Windows, whose shell reads words in another way. */
  stages?: readonly Stage[];
  /** Labels of the agent's own files that it runs. */
  scripts: readonly string[];
}

/** Returns the checked line; undefined if a part of it is neither an own script nor a program that only computes. */
export async function checkedLine(
  { subject: line, words, folder }: PolicySubjectOf<'command'>,
  context: PolicyContext,
  files: AgentFiles | undefined,
): Promise<CheckedLine | undefined> {
  if (process.platform === 'win32') {
    const checker = new Checker(folder, context, files, { values: {}, prints: () => undefined });
    const isScript = words && (await checker.script({ words, assignments: [] })) !== undefined;
    return isScript ? { scripts: checker.scripts } : undefined;
  }
  const { skillDir, packDir, pluginData, home } = context;
  const own = {
    SKILL_DIR: skillDir,
    SKILL_PATH: skillDir,
    SKILL_ROOT: skillDir,
    CLAUDE_SKILL_DIR: skillDir,
    CLAUDE_PLUGIN_ROOT: pluginRootOf({ packDir, skillDir }),
    ...(pluginData !== undefined && { CLAUDE_PLUGIN_DATA: pluginData }),
    TELOS_SKILL_DIR: skillDir,
    TELOS_PACK_DIR: packDir,
  };
  const known: Known = {
    values: { ...own, HOME: home },
    prints: inner => toldOutput(inner, folder),
    // What a script reads from its environment, it would not find.
    maySet: name => !isSteeringVariable(name) && !Object.hasOwn(context.env ?? {}, name) && !(name in own),
  };
  const plan = readPlan(line, known);
  if (!plan) return undefined;
  const moves = plan.some(({ words }) => words[0] === 'cd');
  // Only the shell knows which folder that would be.
  if (moves && /\bpwd\b/i.test(line)) return undefined;
  const checker = new Checker(folder, context, files, known);
  const stages: Stage[] = [];
  for (const [index, stage] of plan.entries()) {
    // What follows a `cd` that failed would run in another folder.
    if (moves && !/^(|&&|\|)$/.test(stage.joint)) return undefined;
    const isAlone = stage.joint !== '|' && plan[index + 1]?.joint !== '|';
    const checked = stage.words[0] === 'cd' && !isAlone ? undefined : await checker.check(stage);
    if (!checked) return undefined;
    stages.push(checked);
  }
  return { stages, scripts: checker.scripts };
}

/** Levels of lines inside lines. */
const deepestInner = 3;

/** How one program is started. */
type Started = Pick<Stage, 'words' | 'assignments'>;

class Checker {
  readonly scripts: string[] = [];
  readonly #context: PolicyContext;
  readonly #files: AgentFiles | undefined;
  readonly #known: Known;
  #folder: string;

  constructor(folder: string, context: PolicyContext, files: AgentFiles | undefined, known: Known) {
    this.#known = known;
    this.#folder = folder;
    this.#context = context;
    this.#files = files;
  }

  async check(stage: Stage, depth = 0): Promise<Stage | undefined> {
    const inner: string[] = [];
    for (const line of stage.inner) {
      const checked = depth < deepestInner ? await this.#innerLine(line, depth + 1) : undefined;
      if (checked === undefined) return undefined;
      inner.push(checked);
    }
    const redirections: Redirection[] = [];
    for (const redirection of stage.redirections) {
      const target = await this.#redirected(redirection);
      if (target === undefined) return undefined;
      redirections.push({ ...redirection, target });
    }
    const done = (await this.script(stage)) ?? (await this.#computation(stage));
    return done && { ...stage, ...done, redirections, inner };
  }

  /** Returns the line as it is to run inside another. Its texts after `<<` would be outside of it. */
  async #innerLine(line: string, depth: number): Promise<string | undefined> {
    const stages: Stage[] = [];
    for (const stage of readPlan(line, this.#known) ?? []) {
      const isPlain = stage.words[0] !== 'cd' && stage.redirections.every(({ sign }) => sign !== '<<');
      const checked = isPlain ? await this.check(stage, depth) : undefined;
      if (!checked) return undefined;
      stages.push(checked);
    }
    return stages.length > 0 ? lineOf(stages) : undefined;
  }

  async #redirected({ sign, target }: Redirection): Promise<string | undefined> {
    if (sign === '>&' || sign === '<<' || target === '/dev/null') return target;
    return this.#path({ path: target, use: sign === '<' ? 'read' : 'write' });
  }

  /** Returns the path to use: as it is written, or its real path if it leads over a link. Undefined if it needs a question. */
  async #path({ path, use }: PathWord): Promise<string | undefined> {
    if (use === 'write' && this.#context.mode === 'review') return undefined;
    const place = isAbsolute(path) ? path : `${this.#folder}/${path}`;
    const tool = use === 'read' ? 'read_file' : 'write_file';
    const wanted = await subjectOf({ id: '', name: tool, input: { path: place } }, this.#context);
    if ('action' in wanted || (wanted.kind !== 'read' && wanted.kind !== 'write')) return undefined;
    const decide = use === 'read' ? decideOnRead : decideOnPlace;
    const { action } = await decide(wanted, this.#context);
    if (action !== 'allow') return undefined;
    return resolve(place) === wanted.subject && !goesDownAndUp(path) ? path : wanted.subject;
  }

  async #computation({ words: written, assignments }: Started): Promise<Started | undefined> {
    const words = assignments.length > 0 ? undefined : await this.#withNames(written);
    if (!words) return undefined;
    if (words[0] === 'cd') return this.#changeFolder(words);
    const looking = await this.#looking(words);
    if (looking) return { words: looking, assignments };
    const found = computation(words, path => existsSync(resolve(this.#folder, path)));
    if (!found) return undefined;
    // A name that matches a star is a path, nothing else.
    const paths = new Set(found.words.flatMap(word => (typeof word === 'string' ? [] : [word.path])));
    if (words !== written && words.some(word => !written.includes(word) && !paths.has(word)))
      return undefined;
    const resolved: string[] = [];
    for (const word of found.words) {
      const path = typeof word === 'string' ? word : await this.#path(word);
      if (path === undefined) return undefined;
      resolved.push(path);
    }
    for (const path of found.writes ?? [])
      if ((await this.#path({ path, use: 'write' })) === undefined) return undefined;
    if (!(await this.#mayCopy(found.trees ?? []))) return undefined;
    return found.ofRepository ? this.#inRepository(resolved) : { words: resolved, assignments };
  }

  /** Returns the words with the names of files that a shell would put for a star; undefined if that needs a question. */
  async #withNames(words: readonly string[]): Promise<readonly string[] | undefined> {
    if (!words.some(hasStar)) return words;
    const all: string[] = [];
    for (const word of words) {
      if (!hasStar(word)) {
        all.push(word);
        continue;
      }
      const folder = word.slice(0, word.lastIndexOf('/') + 1);
      if (hasStar(folder) || hasUnknown(word)) return undefined;
      if ((await this.#path({ path: folder || '.', use: 'read' })) === undefined) return undefined;
      const names = await readdir(resolve(this.#folder, folder)).catch(() => []);
      const found = names.filter(name => fitsStars(name, word.slice(folder.length))).sort();
      // A name can look like an option, and can hold what only this file's own signs may.
      const isStrange = found.some(name => (folder === '' && name.startsWith('-')) || strangeName.test(name));
      if (found.length === 0 || found.length > mostNames || isStrange) return undefined;
      all.push(...found.map(name => folder + name));
    }
    return all;
  }

  async #changeFolder([, folder = '', ...more]: readonly string[]) {
    if (more.length > 0 || folder === '' || folder.startsWith('-') || hasUnknown(folder)) return undefined;
    if ((await this.#path({ path: folder, use: 'read' })) === undefined) return undefined;
    const place = isAbsolute(folder) ? folder : `${this.#folder}/${folder}`;
    const real = realIfThere(place);
    if (real === undefined || !statSync(real, { throwIfNoEntry: false })?.isDirectory()) return undefined;
    this.#folder = real;
    return { words: ['cd', real], assignments: [] };
  }

  /** Returns the words of a program that shows names of files. Those that show content leave out secrets in another way. */
  async #looking(words: readonly string[]): Promise<string[] | undefined> {
    if (!/^(ls|find)$/.test(words[0] ?? '') || words.some(hasUnknown)) return undefined;
    const { home, protectedDirs } = this.#context;
    const roots = acceptedFolders(this.#context, await unacceptedFolders(this.#context));
    const scope = { roots, cwd: this.#folder, home, protectedDirs };
    const verdict = await parseReadOnlyCommand(words, scope);
    return verdict.allowed ? [words[0]!, ...verdict.command.argv] : undefined;
  }

  /** Returns false if a file below the folders may not be read or written, or is a link. */
  async #mayCopy(trees: NonNullable<Computation['trees']>): Promise<boolean> {
    for (const { from, to } of trees) {
      const top = resolve(this.#folder, from);
      const isFolder = await stat(top).then(
        stats => stats.isDirectory(),
        () => false,
      );
      if (!isFolder) continue;
      const entries = await readdir(top, { recursive: true, withFileTypes: true });
      if (entries.length > mostCopied) return false;
      for (const entry of entries) {
        if (!entry.isFile() && !entry.isDirectory()) return false;
        const path = join(entry.parentPath, entry.name);
        const below = relative(top, path);
        const uses: PathWord[] = [
          { path, use: 'read' },
          ...to.map((place): PathWord => ({ path: `${place}/${below}`, use: 'write' })),
        ];
        for (const use of uses) if ((await this.#path(use)) === undefined) return false;
      }
    }
    return true;
  }

  async #inRepository(words: readonly string[]) {
    // Stories are built in further work trees of a repository.
    const found = await quietRepository(this.#folder, this.#context.role === 'worker');
    const roots = acceptedFolders(this.#context, await unacceptedFolders(this.#context));
    if (!found || (await folderHolding(found.top, roots, this.#context.home)) === undefined) return undefined;
    const places = [
      ['GIT_DIR', found.gitDir],
      ['GIT_WORK_TREE', found.top],
    ] as const;
    return { words, assignments: [...gitVariables, ...places] };
  }

  /** Returns how an own script is started; undefined if the words start none. Notes the script. */
  async script({ words, assignments }: Started): Promise<Started | undefined> {
    const call = readCall(words);
    // The names that match a star are not compared with the table of secrets here.
    if (!call || words.some(hasStar)) return undefined;
    const all = [...assignments, ...call.assignments];
    const { module, program, flags, rest } = call;
    const fixed = words.slice(0, words.length - rest.length);
    if (fixed.some(hasUnknown) || (module !== undefined && rest.some(hasUnknown))) return undefined;
    if (!rest.every(word => this.#mayPass(word))) return undefined;
    if (module === 'py_compile') return this.#compile(program, rest, all);
    const script = module === undefined ? this.#ownFile(call.script) : this.#ownModule(module);
    if (!script || !(await this.#mayAssign(all, script.file))) return undefined;
    this.scripts.push(script.label);
    if (module !== undefined)
      return {
        assignments: [...all, ['PYTHONPATH', script.root]],
        words: [program, '-I', '-c', runModule, script.root, module, ...rest],
      };
    const before = program === '' ? await interpreterOf(script.file) : [program, ...flags];
    return { assignments: all, words: [...before, call.script, ...rest] };
  }

  /** Returns true if a word for a script has only variables in it, and means no place of secrets whatever they hold. */
  #mayPass(word: string): boolean {
    const names = unknownIn(word);
    const { env } = this.#context;
    return (
      names.every(name => /^\w+$/.test(name)) &&
      [env ?? {}, {}].every(values => !piecesOf(withValues(word, values)).some(isSensitive))
    );
  }

  /** Python's own module, which writes what it compiles to the cache. */
  async #compile(program: string, files: readonly string[], assignments: Stage['assignments']) {
    if (assignments.length > 0 || files.length === 0 || files.some(file => file.startsWith('-')))
      return undefined;
    const paths: string[] = [];
    for (const path of files) {
      const real = await this.#path({ path, use: 'read' });
      if (real === undefined) return undefined;
      paths.push(real);
    }
    return { assignments, words: [program, '-I', '-c', runModule, '', 'py_compile', ...paths] };
  }

  /** Returns the agent's own file that the words name, with its label. */
  #ownFile(written: string) {
    // The path is not normalized as text, because the system goes up from the target of a link.
    const way = isAbsolute(written) ? written : this.#folder + sep + written;
    const path = realIfThere(way);
    if (path === undefined || !this.#files) return undefined;
    const { packDir } = this.#context;
    const pack = realIfThere(packDir) ?? packDir;
    const below = relative(pack, path);
    const label = isInside(pack, path) ? below.split(sep).join('/') : path;
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
  async #mayAssign(assignments: Stage['assignments'], script: AgentFile): Promise<boolean> {
    if (assignments.length === 0) return true;
    if (assignments.some(([name, value]) => isSteeringVariable(name) || hasUnknown(value))) return false;
    const texts = await Promise.all(
      [script.path, join(this.#context.skillDir, 'SKILL.md')].map(path => loadText(path).catch(() => '')),
    );
    return assignments.every(([name]) => texts.some(text => new RegExp(`\\b${name}\\b`).test(text)));
  }
}

/** Maximum number of names that match one star. */
const mostNames = 200;
const strangeName = /[\0-\x1f\x7f-\x9f\ue000-\ue01f]/;

/** Files of one copied folder. */
const mostCopied = 500;
