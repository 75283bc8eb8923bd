/** Sorts what a command has written: what lands by itself, what others run or obey, and what stays as it was. */
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import type { LayerChanges, LayerFile } from '../changes/layerRead.ts';
import { isInside, statsAt } from '../files/paths.ts';
import { readRegularFile } from '../files/regularFile.ts';
import { folded, obeyedAt } from '../files/sensitiveNames.ts';
import type { PolicyContext } from '../policy/decision.ts';
import { describesBuild, programFolders } from '../policy/fileDefaults.ts';
import { keepsRecorded, landsInRepository } from '../policy/gitFiles.ts';
import { namesLeadingInto, obeyedThrough } from '../policy/leadingNames.ts';
import { describesOnly } from '../policy/text/repositoryFiles.ts';
import type { CommandLayer } from '../tools/tool.ts';
import { type ObeyedChange, programFolder } from './obeyedQuestion.ts';

/** Changes that wait for an answer as one: a file, or all of a repository that is removed. */
export interface WaitingChange extends ObeyedChange {
  files: readonly LayerFile[];
}

export interface JudgedLayer {
  /** Files that land by themselves. */
  free: LayerFile[];
  waiting: WaitingChange[];
}

/** In bytes. What is larger is not plain. */
const largestPackage = 64 * 1024;
const largestSetting = 1024 * 1024;

/** Sorts the changes of a command. Reads the files that have to be read for it, and nothing that a link leads to. */
export function judgeLayer(
  { files, folders }: LayerChanges,
  { roots, links, repositories }: CommandLayer,
  policy: Pick<PolicyContext, 'role' | 'env' | 'home'>,
): JudgedLayer {
  const root = roots[0]?.path ?? '';
  const names = namesLeadingInto({ root, home: policy.home, links, repositories });
  const places = programFolders(policy.env);
  const isProject = (path: string): boolean =>
    policy.role === 'worker' && describesBuild(path, relative(root, path));
  const gone = folders.flatMap(({ path, after }) =>
    after === null && isGitName(basename(path)) ? [path] : [],
  );
  const judged: JudgedLayer = { free: [], waiting: [] };
  const removed = new Map<string, LayerFile[]>(gone.map(path => [path, []]));
  for (const file of files) {
    const repository = gone.find(each => isInside(each, file.path));
    const git = gitPlace(file.path, roots);
    if (repository !== undefined) removed.get(repository)?.push(file);
    else if (git && keepsRecorded(git.inner, file.before !== undefined, file.after !== undefined)) continue;
    else {
      const isPlain = git !== undefined && isPlainInGit(file, git, roots);
      const by =
        obeyedThrough(file.path, names, root) ??
        (git ? (isPlain ? undefined : 'Git') : obeyedBy(file, root, isProject));
      const stats = file.after?.stats;
      const onPath =
        stats && programFolder(file.path, { isLink: stats.isSymbolicLink(), mode: stats.mode }, places);
      if (by === undefined && onPath === undefined) judged.free.push(file);
      else judged.waiting.push(waiting(file.path, [file], by ?? 'shells', onPath));
    }
  }
  for (const [path, all] of removed) judged.waiting.push(waiting(path, all, 'Git'));
  const removedFolders = folders.flatMap(({ path, after }) => (after === null ? [path] : []));
  return withWhole(judged, new Set(removedFolders));
}

/** What comes in the place of a folder waits with what is in that folder, and so does what is removed with it: a no deletes no half. */
function withWhole({ free, waiting }: JudgedLayer, removed: ReadonlySet<string>): JudgedLayer {
  const around = new Map<string, WaitingChange>();
  for (const change of waiting)
    for (const { path } of change.files)
      for (
        let folder = dirname(path);
        !around.has(folder) && dirname(folder) !== folder;
        folder = dirname(folder)
      )
        around.set(folder, change);
  const together = new Map<string, WaitingChange>();
  for (const change of waiting)
    for (const { path } of change.files) {
      const top = topOf(path, removed);
      if (top !== undefined) together.set(top, change);
    }
  const more = new Map<WaitingChange, LayerFile[]>();
  const left = free.filter(file => {
    const change = file.after ? around.get(file.path) : together.get(topOf(file.path, removed) ?? '');
    if (change) more.set(change, [...(more.get(change) ?? []), file]);
    return !change;
  });
  return {
    free: left,
    waiting: waiting.map(each => ({ ...each, files: [...each.files, ...(more.get(each) ?? [])] })),
  };
}

/** Returns the topmost of the removed folders that a path was in. */
function topOf(path: string, removed: ReadonlySet<string>): string | undefined {
  let top: string | undefined;
  for (let folder = dirname(path); dirname(folder) !== folder; folder = dirname(folder))
    if (removed.has(folder)) top = folder;
  return top;
}

const waiting = (path: string, files: readonly LayerFile[], by: string, onPath?: string): WaitingChange => ({
  path,
  files,
  before: files[0]?.before ?? null,
  by,
  ...(onPath !== undefined && { onPath }),
});

const isGitName = (name: string): boolean => folded(name) === '.git';

interface GitPlace {
  /** The folder of the repository, or its file if it is one. */
  repository: string;
  /** Below it, with `/`. Empty for itself. */
  inner: string;
}

/** Returns the place of a file in a repository; undefined if it is in none. */
function gitPlace(path: string, roots: CommandLayer['roots']): GitPlace | undefined {
  const at = roots.findIndex(root => isInside(root.path, path));
  const root = roots[at];
  if (!root) return undefined;
  const parts = relative(root.path, path).split(sep);
  // Further roots are repositories themselves.
  if (at > 0) return { repository: root.path, inner: parts.join('/') };
  const first = parts.findIndex(isGitName);
  if (first >= 0)
    return {
      repository: join(root.path, ...parts.slice(0, first + 1)),
      inner: parts.slice(first + 1).join('/'),
    };
  const bare = bareRepository(path, root);
  return bare === undefined ? undefined : { repository: bare, inner: relative(bare, path) };
}

/** Returns the folder that is a repository by what it holds, if the file is one that Git obeys there. */
function bareRepository(
  path: string,
  { path: root, upper }: CommandLayer['roots'][number],
): string | undefined {
  const name = folded(basename(path));
  const inHooks = folded(basename(dirname(path))) === 'hooks';
  if (!inHooks && name !== 'config' && name !== 'config.worktree' && name !== 'commondir') return undefined;
  const folder = inHooks ? dirname(dirname(path)) : dirname(path);
  if (!isInside(root, folder)) return undefined;
  const layered = join(upper, relative(root, folder));
  const isThere = (each: string): boolean =>
    statsAt(join(layered, each)) !== undefined || statsAt(join(folder, each)) !== undefined;
  return ['HEAD', 'objects', 'refs'].every(isThere) ? folder : undefined;
}

function isPlainInGit(
  file: LayerFile,
  { repository, inner }: GitPlace,
  roots: CommandLayer['roots'],
): boolean {
  if (inner.split('/').some(isGitName)) return false;
  const isLink = file.after?.stats.isSymbolicLink() === true;
  if (inner === '') return file.after === undefined || (!isLink && isOwnTree(file, repository, roots));
  // The checkout that a work tree shares its repository with stays as it is.
  const isElsewhere = roots.slice(1).some(({ path }) => path === repository);
  if (isElsewhere && isWorkTree(roots) && isOfOthers(inner, roots)) return false;
  const before = file.before?.isFile() ? bytesAt(file.path, file.before.size) : undefined;
  const after = file.after && !isLink ? bytesAt(file.after.at, file.after.stats.size) : null;
  return landsInRepository({
    inner,
    before,
    after: file.after ? (after ?? undefined) : null,
    isLink,
    isProgram: ((file.after?.stats.mode ?? 0) & 0o111) !== 0,
    isInWork: path => {
      const target = resolve(dirname(file.path), path);
      return (
        isInside(roots[0]?.path ?? '', target) &&
        !relative(roots[0]?.path ?? '', target)
          .split(sep)
          .some(isGitName)
      );
    },
  });
}

/** Whether a file of the shared repository belongs to its own checkout, or to another work tree. Git shortens the logs of all. */
function isOfOthers(inner: string, roots: CommandLayer['roots']): boolean {
  if (/^(?:index|HEAD|info\/(?!refs$)|modules\/)/.test(inner)) return true;
  const [, tree] = /^worktrees\/([^/]+)\/(?!logs\/)/.exec(inner) ?? [];
  if (tree === undefined) return false;
  const link = join(roots[0]?.path ?? '', '.git');
  const [, own] = /^gitdir: .*\/worktrees\/([^/\n]+)\n?$/.exec(bytesAt(link, 0)?.toString() ?? '') ?? [];
  return tree !== own;
}

/** Whether the working folder is a work tree of the repository elsewhere, and no folder within its only one. */
const isWorkTree = (roots: CommandLayer['roots']): boolean =>
  !isInside(dirname(roots[1]?.path ?? ''), roots[0]?.path ?? '');

/** Whether the file in place of a repository leads to one of the same working folder: of a submodule, or a further work tree. */
function isOwnTree({ path, after }: LayerFile, repository: string, roots: CommandLayer['roots']): boolean {
  const text = after && bytesAt(after.at, after.stats.size)?.toString();
  const [, to] = /^gitdir: ([^\0\n]+)\n$/.exec(text ?? '') ?? [];
  if (to === undefined || path !== repository) return false;
  const target = resolve(dirname(path), to);
  const place = gitPlace(join(target, 'HEAD'), roots);
  return place !== undefined && /^(?:modules|worktrees)\//.test(place.inner);
}

function bytesAt(path: string, size: number): Buffer | undefined {
  try {
    return size > largestSetting ? undefined : readRegularFile(path, largestSetting);
  } catch {
    return undefined;
  }
}

function obeyedBy(file: LayerFile, root: string, isProject: (path: string) => boolean): string | undefined {
  const { path } = file;
  const inWork = relative(root, path);
  if (isProject(path) || isPlainPackage(file, inWork)) return undefined;
  // File tools ask about each as a secret. Where there was none, nobody could hide it from a command.
  if (!file.before && folded(basename(path)) === '.env') return 'the programs of the project';
  const obeyed = obeyedAt(path, inWork);
  return obeyed && (obeyed.kind === 'agent' ? 'agents' : obeyed.by);
}

/** Whether the command made a package.json in which nothing is run or fetched, and not among installed packages. */
function isPlainPackage({ path, before, after }: LayerFile, inWork: string): boolean {
  if (before || !after?.stats.isFile() || basename(path) !== 'package.json') return false;
  if (obeyedAt(join(dirname(path), 'a file'), join(dirname(inWork), 'a file'))) return false;
  const bytes = after.stats.size > largestPackage ? undefined : bytesAt(after.at, after.stats.size);
  return bytes !== undefined && describesOnly(bytes.toString());
}
