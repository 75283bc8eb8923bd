/** Says as data what a command in the box sees of the disk: the little that it needs, and what of it can be written. */

import { lstatSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isOpenFolder } from '../files/closedFolder.ts';
import { isInside, isReadable, realPlace } from '../files/paths.ts';
import { readText } from '../files/regularFile.ts';
import { folded } from '../files/sensitiveNames.ts';
import { isHidden, type MarkedName } from './folderNames.ts';

/** One place of the box. All that is at no place is missing there. */
export type Place =
  /** `isInWork` is set where commands can change what is at the path, `isHeld` where the folder itself cannot be moved or removed. */
  | { kind: 'read' | 'write'; path: string; from?: string; isInWork?: true; isHeld?: true }
  | { kind: 'link'; path: string; to: string }
  /** `isFixed` means that nothing can be written there either. */
  | { kind: 'empty'; path: string; isFixed?: true }
  /** It is there, and cannot be read. */
  | { kind: 'hidden'; path: string; isFolder: boolean };

/** Where a command of one conversation works. All paths are real and absolute. */
export interface BoxPlaces {
  home: string;
  /** Stands in for the home folder, and for the folder of temporary files. Kept for the conversation. */
  ownHome: string;
  temporary: string;
  workingDir: string;
  readable: readonly string[];
  /** A folder of Telos's own that commands write, of a plugin. */
  pluginData?: string;
  /** Telos's own folders. */
  protectedDirs: readonly string[];
  /** Folders of the PATH. */
  programFolders: readonly string[];
  /** The folder of the repository that the working folder is a part of. It can be read, and only its `.git` is written, by Git. */
  around?: string;
  /** Nothing of a repository elsewhere is changed whose work tree the working folder is. */
  keepsRepository?: boolean;
  /** Files and folders that no command changes, such as those of a plan. Not each is there, or in the working folder. */
  unchanged?: readonly string[];
}

const systemFolders: readonly string[] =
  process.platform === 'darwin'
    ? [
        ...[
          '/usr',
          '/bin',
          '/sbin',
          '/System',
          '/Library',
          '/opt',
          '/etc',
          '/private/etc',
          '/Applications/Xcode.app',
        ],
        ...['/private/var/db/timezone', '/private/var/select', '/private/var/db/dyld', '/nix'],
      ]
    : [
        ...[
          '/usr',
          '/bin',
          '/sbin',
          '/lib',
          '/lib32',
          '/lib64',
          '/libx32',
          '/etc',
          '/opt',
          '/nix',
          '/gnu',
          '/snap',
        ],
        ...['/run/current-system', '/var/lib/ca-certificates', '/sys/devices/system/cpu'],
      ];

/** Programs that people install for themselves, with what these need beside them, and settings of Git. Below the home folder. */
const ownPrograms: readonly string[] = [
  ...[
    '.nvm',
    '.cargo',
    '.rustup',
    '.pyenv',
    '.rbenv',
    '.nodenv',
    '.goenv',
    '.jenv',
    '.asdf',
    '.volta',
    '.sdkman',
    '.fnm',
  ],
  ...[
    '.deno',
    '.bun',
    '.proto',
    '.ghcup',
    '.juliaup',
    '.linuxbrew',
    '.nix-profile',
    '.nix-defexpr',
    '.local/state/nix',
  ],
  ...['.local/bin', '.local/lib', '.local/pipx', '.local/share/pipx', '.local/share/uv', '.local/share/mise'],
  ...[
    '.local/share/fnm',
    '.local/share/pnpm',
    '.local/share/nvm',
    '.local/share/rtx',
    '.local/share/virtualenv',
  ],
  ...[
    'go/bin',
    'miniconda3',
    'anaconda3',
    'miniforge3',
    'mambaforge',
    '.gitconfig',
    '.config/git',
    '.config/mise',
  ],
];

/** Folders beside the one with the programs that belong to the same installation. */
const besidePrograms: readonly string[] = [
  ...['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libexec', 'share', 'include', 'etc', 'jre', 'jmods', 'conf'],
  ...[
    'versions',
    'version',
    'plugins',
    'completions',
    'shims',
    'toolchains',
    'Cellar',
    'Frameworks',
    'Homebrew',
    'opt',
  ],
];

/** How deep settings of programs are looked through for secrets, such as a token for publishing. */
const deepestSettings = 2;

const emptied: readonly Place[] = [
  { kind: 'link', path: '/var/tmp', to: '../tmp' },
  { kind: 'empty', path: '/run', isFixed: true },
];

/** Returns what every command of the conversation sees, whatever it does. Reads the disk, so it is done once. */
export function lastingPlaces(places: BoxPlaces): readonly Place[] {
  const { home, ownHome, temporary, workingDir, readable, pluginData, programFolders } = places;
  const system = systemPlaces();
  const own = isInside(workingDir, home) ? [] : ownProgramsIn(home);
  const beside = programFolders.flatMap(folder => programPlaces(folder, [...system, ...own], places));
  return [
    ...system,
    { kind: 'write', path: '/tmp', from: temporary },
    ...(process.platform === 'darwin' ? [] : emptied),
    ...(isInside(workingDir, home) ? [] : [{ kind: 'write', path: home, from: ownHome } as const]),
    ...own,
    ...beside,
    ...readable.filter(each => !isInside(workingDir, each)).map(path => ({ kind: 'read', path }) as const),
    ...(pluginData === undefined ? [] : [{ kind: 'write', path: pluginData } as const]),
  ];
}

/** Returns those of the lasting places that are the same for every command of the conversation, in the order in which they are made. */
export const basePlaces = (
  lasting: readonly Place[],
  { home, readable }: Pick<BoxPlaces, 'home' | 'readable'>,
): readonly Place[] =>
  inOrder(
    lasting.filter(place => {
      const isOwn = [home, '/tmp'].some(folder => isInside(folder, place.path));
      return !isOwn && !readable.includes(place.path) && !('from' in place);
    }),
  );

/** Returns what a command sees now. `names` are those of the working folder and of the other folders that it can read. */
export function viewOf(
  lasting: readonly Place[],
  places: BoxPlaces,
  names: readonly MarkedName[],
): readonly Place[] {
  const { workingDir, protectedDirs, keepsRepository, around, unchanged = [] } = places;
  const kept = unchanged.filter(
    path => isInside(workingDir, path) && path !== workingDir && isOrdinary(path),
  );
  const work: Place = { kind: 'write', path: workingDir };
  const shown = [...lasting, work];
  const closed = protectedDirs.filter(folder => shown.some(place => shows(place, folder)));
  return inOrder([
    ...shown,
    // First, since another place may say more of the same folder.
    ...names.filter(isSecret).flatMap(({ path }) => heldAbove(path, workingDir)),
    ...closed.flatMap(path => heldAbove(path, workingDir)),
    ...closed.map(path => ({ kind: 'empty', path }) as const),
    ...kept.flatMap(path => [...heldAbove(path, workingDir), fixed(path)]),
    ...worktreePlaces(workingDir, keepsRepository),
    ...(around === undefined ? [] : placesAround(join(around, '.git'), places)),
    ...markedPlaces(workingDir, names),
  ]);
}

/** Returns the folders of a layer: the working folder, and the repository elsewhere that a command there can change. */
export function layerRoots(places: BoxPlaces): string[] {
  const { workingDir, keepsRepository, around } = places;
  if (keepsRepository) return [workingDir];
  const above = around === undefined ? [] : [join(around, '.git')];
  return [workingDir, ...treeRepository(places), ...above];
}

/** Returns the repositories with those of their submodules, and the one to which a link or a file of the working folder leads. */
export function repositoriesOf(repositories: readonly string[], workingDir: string): string[] {
  const link = join(workingDir, '.git');
  const admin = /^gitdir: (.*)\n?$/.exec(fileText(link))?.[1];
  const own = admin === undefined ? realPlace(link) : realPlace(resolve(workingDir, admin));
  const all = [...repositories, ...(own === undefined || own === link ? [] : [link, own])];
  return [...new Set(all)].flatMap(withModules);
}

/** How deep the name of a submodule may be. */
const deepestModule = 6;

const withModules = (repository: string): string[] => [
  repository,
  ...modulesIn(join(repository, 'modules'), deepestModule),
];

const modulesIn = (folder: string, depth: number): string[] =>
  depth === 0
    ? []
    : foldersIn(folder).flatMap(name => {
        const path = join(folder, name);
        return isOrdinary(join(path, 'HEAD')) ? withModules(path) : modulesIn(path, depth - 1);
      });

/**
 * Returns the view of a command that writes into a layer: `mergedAt` returns where a folder is with it. Nothing of it need be read-only,
 * since nothing of it is in its place before it was looked at.
 */
export function layeredViewOf(
  lasting: readonly Place[],
  places: BoxPlaces,
  names: readonly MarkedName[],
  mergedAt: (root: string) => string | undefined,
): readonly Place[] {
  const { workingDir, protectedDirs, unchanged = [] } = places;
  const merged = layerRoots(places).flatMap((path): Place[] => {
    const from = mergedAt(path);
    return from === undefined ? [] : [{ kind: 'write', path, from }];
  });
  const shown = [...lasting, { kind: 'write', path: workingDir } as const];
  const kept = unchanged.filter(
    path => isInside(workingDir, path) && path !== workingDir && isOrdinary(path),
  );
  const tree = worktreeOf(workingDir)?.repository;
  return inOrder([
    ...lasting,
    ...merged,
    ...protectedDirs
      .filter(folder => shown.some(place => shows(place, folder)))
      .map(path => ({ kind: 'empty', path }) as const),
    ...kept.map(path => ({ kind: 'read', path }) as const),
    ...(places.keepsRepository && tree !== undefined ? [{ kind: 'read', path: tree } as const] : []),
    ...(places.keepsRepository && places.around !== undefined
      ? [{ kind: 'read', path: join(places.around, '.git') } as const]
      : []),
    ...names.filter(isSecret).map(({ path, isFolder }) => ({ kind: 'hidden', path, isFolder }) as const),
  ]);
}

const isSecret = ({ kind }: MarkedName): boolean => kind === 'secret' || kind === 'closed';

/**
 * Returns the folders between the working folder and a path in it. If one was moved, another could be made in its place, and what is
 * hidden in it would have another name while the box of the next command is made.
 */
function heldAbove(path: string, workingDir: string): Place[] {
  const folder = dirname(path);
  if (folder === workingDir || !isInside(workingDir, folder)) return [];
  return [...heldAbove(folder, workingDir), { kind: 'write', path: folder, isInWork: true, isHeld: true }];
}

const shows = (place: Place, path: string): boolean =>
  (place.kind === 'read' || place.kind === 'write') && place.from === undefined && isInside(place.path, path);

/** Only so many names are read-only: each takes time at every start. What else was changed of them is known afterwards. */
const mostObeyed = 100;

const isOfPlans = ({ path }: MarkedName): boolean => folded(basename(path)) === '.telos';

function markedPlaces(workingDir: string, names: readonly MarkedName[]): Place[] {
  const secret = names.filter(isSecret);
  const inWork = names.filter(({ path }) => isInside(workingDir, path));
  const obeyed = inWork.filter(({ kind }) => kind === 'obeyed');
  // What was done to the files of a plan may count before it is taken back: they come first, whatever else a project has.
  const fixedNames = [...obeyed.filter(isOfPlans), ...obeyed.filter(each => !isOfPlans(each))].slice(
    0,
    mostObeyed,
  );
  return [
    ...inWork
      .filter(({ kind }) => kind === 'repository')
      .flatMap(({ path }) => [...repositoryPlaces(path), ...treesElsewhere(path, workingDir)]),
    ...fixedNames.map(({ path }) => fixed(path)),
    ...secret.map(({ path, isFolder }) => ({ kind: 'hidden', path, isFolder }) as const),
  ];
}

const fixed = (path: string): Place => ({ kind: 'read', path, isInWork: true });

/** Returns the places of a `.git` folder. As a place of its own it cannot be moved away, with what is read-only in it. */
function repositoryPlaces(folder: string): Place[] {
  return [{ kind: 'write', path: folder, isInWork: true }, ...obeyedInGit(folder)];
}

/** How many work trees of a repository are kept from a command that tidies up. */
const mostTrees = 20;

/** Returns what a repository knows of its work trees outside of the working folder: Git in the box would take them for deleted. */
const treesElsewhere = (repository: string, workingDir: string): Place[] => [
  ...closedAt(join(repository, 'worktrees')),
  ...foldersIn(join(repository, 'worktrees'))
    .map(name => join(repository, 'worktrees', name))
    .filter(path => !isInside(workingDir, dirname(fileText(join(path, 'gitdir')).trimEnd())))
    .slice(0, mostTrees)
    .map(fixed),
];

/** Returns a folder that cannot be listed as one that stays as it is: what is in it is not known. */
const closedAt = (folder: string): Place[] =>
  isOrdinary(folder) && !isOpenFolder(folder) ? [fixed(folder)] : [];

/** Names below a `.git` folder by which Git starts programs. */
const obeyedByGit = ['config', 'config.worktree', 'hooks', 'commondir'];

function obeyedInGit(folder: string): Place[] {
  const modules = join(folder, 'modules');
  return [
    ...obeyedByGit
      .map(name => join(folder, name))
      .filter(isOrdinary)
      .map(fixed),
    ...closedAt(modules),
    // Each is the repository of a submodule, and may have some of its own.
    ...foldersIn(modules).flatMap(name => obeyedInGit(join(modules, name))),
  ];
}

/**
 * Returns the places of the repository whose work tree the working folder is, if Git made that with `git worktree`: then the
 * repository names the working folder too. What else claims to be one could lead anywhere.
 */
function worktreePlaces(workingDir: string, keepsRepository = false): Place[] {
  const { repository, own } = worktreeOf(workingDir) ?? {};
  if (repository === undefined || own === undefined) return [];
  if (keepsRepository) return [fixed(repository)];
  const ofMain = ['HEAD', 'index', 'info', 'modules', 'worktrees']
    .map(name => join(repository, name))
    .filter(isOrdinary);
  return [...repositoryPlaces(repository), ...ofMain.map(fixed), ...repositoryPlaces(own)];
}

/** Returns the places of a repository that contains the working folder. Only its own files change, not those of its submodules. */
function placesAround(repository: string, { workingDir, keepsRepository }: BoxPlaces): Place[] {
  if (keepsRepository) return [fixed(repository)];
  const ofOthers = ['info', 'modules', 'worktrees'].map(name => join(repository, name)).filter(isOrdinary);
  return [...repositoryPlaces(repository), ...treesElsewhere(repository, workingDir), ...ofOthers.map(fixed)];
}

/** Returns the repository of a work tree, and the folder in it that is the work tree's own. */
function worktreeOf(workingDir: string): { repository: string; own: string } | undefined {
  const link = join(workingDir, '.git');
  const admin = /^gitdir: (.*)\n?$/.exec(fileText(link))?.[1];
  const real = admin === undefined ? undefined : realPlace(admin);
  if (real === undefined || realPlace(fileText(join(real, 'gitdir')).trimEnd()) !== realPlace(link))
    return undefined;
  const repository = dirname(dirname(real));
  const isWorktree = basename(dirname(real)) === 'worktrees' && isOrdinary(join(repository, 'objects'));
  return isWorktree ? { repository, own: real } : undefined;
}

/** Returns the repository elsewhere that a command can change, as the working folder is a work tree of it; none otherwise. */
export function treeRepository({ workingDir, keepsRepository }: BoxPlaces): string[] {
  const repository = keepsRepository ? undefined : worktreeOf(workingDir)?.repository;
  return repository === undefined ? [] : [repository];
}

let system: readonly Place[] | undefined;

/** Returns the system's own folders, without what in their settings not everybody may read. */
function systemPlaces(): readonly Place[] {
  system ??= systemFolders.flatMap(path => {
    const there = shownAt(path);
    return /\/etc$/.test(path) && there.length > 0 ? [...there, ...closedIn(path)] : there;
  });
  return system;
}

/** Returns a file, a folder or a link as it is, or nothing if it is missing. */
function shownAt(path: string): Place[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (!stats) return [];
  if (stats.isSymbolicLink()) return [{ kind: 'link', path, to: readlinkSync(path) }];
  return [{ kind: 'read', path }];
}

/** For everybody to read. Certificates have the names of keys. */
const isCertificate = (path: string): boolean => /\.(?:pem|crt|0)$/.test(path);

/** Returns what only some may read, of whom this user is one. From the others the kernel keeps it anyway. */
function closedIn(folder: string): Place[] {
  return entriesOf(folder).flatMap(({ path, isFolder, mode, size }) => {
    const isForFew = (mode & 0o004) === 0 && size > 0 && !(isFolder && listed(path).length === 0);
    const isClosed = (isForFew || (isHidden(path) && !isCertificate(path))) && isReadable(path);
    if (isClosed) return [{ kind: 'hidden', path, isFolder } as const];
    return isFolder ? closedIn(path) : [];
  });
}

function ownProgramsIn(home: string): Place[] {
  return ownPrograms.flatMap(name => {
    const path = join(home, name);
    return shownAt(path).flatMap(place => [place, ...secretsIn(path, deepestSettings)]);
  });
}

function secretsIn(folder: string, depth: number): Place[] {
  if (depth === 0) return [];
  return entriesOf(folder).flatMap(({ path, isFolder }): Place[] => {
    if (isHidden(path)) return [{ kind: 'hidden', path, isFolder }];
    return isFolder ? secretsIn(path, depth - 1) : [];
  });
}

/** Returns what the programs of a folder of the PATH need: the folder, what is installed with it, and what its links lead to. */
function programPlaces(folder: string, seen: readonly Place[], places: BoxPlaces): Place[] {
  const { home, workingDir, protectedDirs } = places;
  const real = realPlace(folder);
  if (real === undefined || !isOrdinary(real) || isHidden(real)) return [];
  // A folder that holds one of these says much more than what programs need.
  const isWide = (path: string): boolean =>
    [home, workingDir, ...protectedDirs].some(each => isInside(path, each));
  if (isWide(real)) return [];
  const place = dirname(real);
  // What packages bring as programs are links into the folder around.
  const isOfPackages = basename(real) === '.bin' && basename(place) === 'node_modules';
  if (isOfPackages && !isWide(place) && !isInside(workingDir, place))
    return [...shownAt(folder).filter(({ kind }) => kind === 'link'), { kind: 'read', path: place }];
  const isInstallation =
    /^s?bin$|^shims$/.test(basename(real)) && !isWide(place) && basename(place) !== '.local';
  // One place is less work for the kernel than one for each of its folders.
  if (isInstallation && ownPrograms.includes(basename(place)))
    return [{ kind: 'read', path: place }, ...secretsIn(place, deepestSettings)];
  const beside = isInstallation ? besidePrograms.map(name => join(place, name)).filter(isOrdinary) : [];
  const shown = [real, ...beside.filter(each => !isWide(each))].map(
    path => ({ kind: 'read', path }) as const,
  );
  const isSeen = (path: string): boolean => [...seen, ...shown].some(each => shows(each, path));
  const isSystem = seen.some(each => shows(each, real)) && !real.startsWith('/usr/local/');
  const targets = isSystem ? [] : linksIn(real).filter(path => !isSeen(path) && !isHidden(path));
  return [
    ...shownAt(folder).filter(({ kind }) => kind === 'link'),
    ...shown.filter(({ path }) => !seen.some(each => shows(each, path))),
    ...targets.map(path => ({ kind: 'read', path }) as const),
  ];
}

/** Returns the files that the links in a folder lead to. */
function linksIn(folder: string): string[] {
  return listed(folder)
    .filter(entry => entry.isSymbolicLink())
    .flatMap(({ name }) => {
      const path = realPlace(join(folder, name));
      return path !== undefined && lstatSync(path, { throwIfNoEntry: false })?.isFile() ? [path] : [];
    });
}

/**
 * Returns the places from the outermost to the innermost, each path once: of two, the later one counts. Leaves out those that
 * the place around them shows in the same way.
 */
export function inOrder(places: readonly Place[]): readonly Place[] {
  const byPath = new Map(places.map(place => [place.path, place]));
  const sorted = [...byPath.values()].sort((one, other) => depthOf(one.path) - depthOf(other.path));
  const kept = new Map<string, Place>();
  for (const place of sorted) {
    const around = placeAround(place.path, kept);
    const isHeld =
      around?.kind === place.kind && place.kind !== 'link' && !('from' in around) && !('from' in place);
    const isLost = around?.kind === 'hidden';
    const isOwnPlace = place.kind === 'write' && (place.isHeld || basename(place.path) === '.git');
    if ((!isHeld || isOwnPlace) && !isLost) kept.set(place.path, place);
  }
  return [...kept.values()];
}

const depthOf = (path: string): number => path.split('/').length;

function placeAround(path: string, places: ReadonlyMap<string, Place>): Place | undefined {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const found = places.get(folder);
    if (found || dirname(folder) === folder) return found;
  }
}

/** Returns the real paths of folders that exist. */
export const realFoldersOf = (folders: readonly string[]): string[] => [
  ...new Set(
    folders.flatMap(folder => {
      try {
        return [realpathSync.native(folder)];
      } catch {
        return [];
      }
    }),
  ),
];

const isOrdinary = (path: string): boolean => {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats !== undefined && (stats.isFile() || stats.isDirectory());
};

const foldersIn = (folder: string): string[] =>
  listed(folder)
    .filter(entry => entry.isDirectory())
    .map(({ name }) => name);

function listed(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function entriesOf(folder: string): { path: string; isFolder: boolean; mode: number; size: number }[] {
  return listed(folder).flatMap(({ name }) => {
    const path = join(folder, name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats && (stats.isFile() || stats.isDirectory())
      ? [{ path, isFolder: stats.isDirectory(), mode: stats.mode, size: stats.size }]
      : [];
  });
}

/** Returns the text of a small file, empty if it is missing. */
function fileText(path: string): string {
  try {
    return lstatSync(path).isFile() && lstatSync(path).size < 10_000 ? readText(path) : '';
  } catch {
    return '';
  }
}
