/** Facts about this computer: which programs are on the PATH, and what its Python can import. Nothing is started. */

import { accessSync, constants, existsSync, readdirSync, realpathSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import { readText } from '../files/regularFile.ts';

/** The packages of one Python, as its folders list them. */
export interface Python {
  /** Whether `import name` finds something, for a name with or without dots. */
  hasModule(name: string): boolean;
  /** Whether the package with this name on the package index is installed. */
  hasPackage(name: string): boolean;
}

/** Facts about the computer. Created once for many skills. */
export interface Machine {
  platform: NodeJS.Platform;
  /** Variables that are set, with those of `.env`. */
  env: Readonly<Record<string, string>>;
  hasProgram(name: string): boolean;
  /** Packages that the Python on the PATH can import. Undefined without one, or if its folders are unknown. */
  python(): Python | undefined;
}

/**
 * Returns this computer. The folders of the PATH are read at the first question for a program, each once. Each name is looked up
 * once.
 */
export function thisMachine(
  env: Readonly<Record<string, string>>,
  platform: NodeJS.Platform = process.platform,
): Machine {
  const known = new Map<string, boolean>();
  let folders: { path: string; names: ReadonlySet<string> }[] | undefined;
  const look = (name: string): boolean => {
    if (isAbsolute(name)) return isProgram(name);
    folders ??= pathFolders(env).map(path => {
      const names = namesIn(path);
      return { path, names: new Set(platform === 'win32' ? names.map(each => each.toLowerCase()) : names) };
    });
    const spellings = platform === 'win32' ? windowsSpellings(name, env) : [name];
    return folders.some(({ path, names }) =>
      spellings.some(spelling => names.has(spelling) && isProgram(join(path, spelling))),
    );
  };
  let python: { found: Python | undefined } | undefined;
  return {
    platform,
    env,
    python() {
      python ??= { found: pythonOnPath(pathFolders(env), env, platform) };
      return python.found;
    },
    hasProgram(name) {
      const before = known.get(name);
      if (before !== undefined) return before;
      const found = look(name);
      known.set(name, found);
      return found;
    },
  };
}

const pathFolders = (env: Readonly<Record<string, string>>): string[] => [
  ...new Set((env['PATH'] ?? env['Path'] ?? '').split(delimiter).filter(isAbsolute)),
];

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function windowsSpellings(name: string, env: Readonly<Record<string, string>>): string[] {
  const endings = (env['PATHEXT'] ?? '.COM;.EXE;.BAT;.CMD').split(';');
  return ['', ...endings].map(ending => (name + ending).toLowerCase());
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns the Python that `python3` or `python` means. */
function pythonOnPath(
  folders: readonly string[],
  env: Readonly<Record<string, string>>,
  platform: NodeJS.Platform,
): Python | undefined {
  const names = platform === 'win32' ? ['python3.exe', 'python.exe'] : ['python3', 'python'];
  for (const name of names)
    for (const folder of folders) {
      const path = join(folder, name);
      if (!isProgram(path)) continue;
      const real = behindShim(path);
      if (real === undefined) continue;
      const sites = sitesOf(real, env, platform);
      return sites && packagesIn(sites);
    }
  return undefined;
}

/** Returns the program behind a link, or behind the script that a version manager puts in its place. */
function behindShim(path: string): string | undefined {
  const folder = dirname(path);
  if (basename(folder) !== 'shims') return path;
  const root = dirname(folder);
  const [version = 'system'] = textOf(join(root, 'version')).trim().split(/\s+/);
  return version === 'system' || version === ''
    ? undefined
    : join(root, 'versions', version, 'bin', 'python3');
}

/** Returns the folders in which a Python looks for packages. Undefined if they do not follow from where it is. */
function sitesOf(
  program: string,
  env: Readonly<Record<string, string>>,
  platform: NodeJS.Platform,
): string[] | undefined {
  const real = realOf(program);
  const home = env['HOME'] ?? env['USERPROFILE'];
  if (platform === 'win32') return sitesOnWindows(real, env);
  // A program of another name that starts Python could look anywhere.
  if (!/^python[\d.]*$/.test(basename(real))) return undefined;
  const prefix = dirname(dirname(real));
  const named = /python(3\.\d+)$/.exec(real)?.[1];
  const versions = namesIn(join(prefix, 'lib')).flatMap(name => /^python(3\.\d+)$/.exec(name)?.[1] ?? []);
  const fitting = versions.filter(
    version => (named ?? version) === version && existsSync(join(prefix, 'lib', `python${version}`, 'os.py')),
  );
  const [version] = fitting;
  if (version === undefined || fitting.length > 1) return undefined;
  const lib = (root: string): string => join(root, 'lib', `python${version}`);
  const own = [join(lib(prefix), 'site-packages'), join(lib(prefix), 'dist-packages')];
  const shared = [
    ...own,
    join(prefix, 'lib/python3/dist-packages'),
    ...(prefix === '/usr' ? [join(lib('/usr/local'), 'dist-packages')] : []),
    ...(home === undefined
      ? []
      : [
          join(lib(join(home, '.local')), 'site-packages'),
          join(home, 'Library/Python', version, 'lib/python/site-packages'),
        ]),
  ];
  // A virtual environment is a folder with links to a Python elsewhere.
  const environment = dirname(dirname(program));
  const settings = textOf(join(environment, 'pyvenv.cfg'));
  if (settings === '') return shared;
  const alone = join(lib(environment), 'site-packages');
  return /^include-system-site-packages\s*=\s*true/im.test(settings) ? [alone, ...shared] : [alone];
}

/** There, what a person installs without rights for all lies in their own folder, below the version without its dot. */
function sitesOnWindows(real: string, env: Readonly<Record<string, string>>): string[] | undefined {
  const settings = textOf(join(dirname(dirname(real)), 'pyvenv.cfg'));
  const home = settings === '' ? dirname(real) : /^home\s*=\s*(.+)$/im.exec(settings)?.[1]?.trim();
  if (home === undefined || !existsSync(join(home, 'Lib', 'os.py'))) return undefined;
  const version = namesIn(home).flatMap(name => /^python(3\d+)\.dll$/i.exec(name)?.[1] ?? [])[0];
  const roaming = env['APPDATA'];
  if (version === undefined || roaming === undefined) return undefined;
  const shared = [
    join(home, 'Lib', 'site-packages'),
    join(roaming, 'Python', `Python${version}`, 'site-packages'),
  ];
  if (settings === '') return shared;
  const alone = join(dirname(dirname(real)), 'Lib', 'site-packages');
  return /^include-system-site-packages\s*=\s*true/im.test(settings) ? [alone, ...shared] : [alone];
}

function packagesIn(sites: readonly string[]): Python {
  const modules = new Map<string, string>();
  const packages = new Set<string>();
  const folders = [...new Set(sites)];
  for (let at = 0; at < folders.length && at < mostSites; at++) {
    const site = folders[at]!;
    for (const name of namesIn(site)) {
      const packageName = /^(.+?)(?:-[^-]*)?(?:-py3[\d.]*)?\.(?:dist|egg)-info$/.exec(name)?.[1];
      if (packageName !== undefined) packages.add(plainPackage(packageName));
      else if (name.endsWith('.pth'))
        folders.push(
          ...textOf(join(site, name))
            .split(/\r?\n/)
            .filter(line => isAbsolute(line)),
        );
      else if (/^__editable__.*finder\.py$/.test(name))
        for (const [, module] of textOf(join(site, name)).matchAll(/'([\w.]+)': '\//g))
          modules.set(module!, site);
      else modules.set(name.replace(/\..*$/, ''), site);
    }
  }
  return {
    hasPackage: name => packages.has(plainPackage(name)),
    hasModule(name) {
      const [top = '', next] = name.split('.');
      if (!modules.has(top)) return false;
      // The parts of a shared name are installed one by one.
      const places = folders.map(site => join(site, top)).filter(path => existsSync(path));
      const isShared = places.length > 0 && !places.some(path => existsSync(join(path, '__init__.py')));
      if (next === undefined || !isShared) return true;
      return places.some(path => namesIn(path).some(each => each.replace(/\..*$/, '') === next));
    },
  };
}

/** A folder can name further ones, in a file that anyone could have written. */
const mostSites = 50;

const plainPackage = (name: string): string => name.toLowerCase().replace(/[-_.]+/g, '_');

function textOf(path: string): string {
  try {
    return readText(path).slice(0, 100_000);
  } catch {
    return '';
  }
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
