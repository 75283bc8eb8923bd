/**
 * Knows what setup commands run and obey of a project, and finds in a difference what changes that. Pure. It reads texts, as the guard
 * against tampering does.
 */

import { basename, normalize } from 'node:path/posix';
import { isCode, obeyedAt } from '@telos/engine/files';
import type { PlanCheck, TamperFinding } from '@telos/protocol/plan';

/** A file that differs. Texts are missing where there are none: binary, too large, or not there on that side. */
export interface FileChange {
  /** Relative to the repository, with `/`. Where it is now, or was if it is gone. */
  path: string;
  /** Where it was before it was renamed. */
  from?: string;
  status: 'added' | 'changed' | 'deleted' | 'renamed';
  before?: string;
  after?: string;
}

/** What setup commands run of a project, by its files before the work. */
export interface SetupRun {
  /** The commands, the scripts of package.json that they run, and the texts of the scripts that they name. */
  lines: readonly string[];
  /** Paths that these name. Not each of them is there. */
  names: ReadonlySet<string>;
}

const finding = (file: string, detail: string): TamperFinding => ({ kind: 'check-script', file, detail });

/** Returns changes of what the setup runs. Files that are new count as well: a setup may look whether they are there. */
export function setupChanges(change: FileChange, { lines, names }: SetupRun): TamperFinding[] {
  const { path, from, status, before, after } = change;
  const isRun = (file: string): boolean =>
    ((names.has(file) || names.has(file.replace(/\.\w+$/, ''))) && isRunByName(file)) ||
    setupFiles.some(([program, name]) => name.test(file) && lines.some(line => program.test(line)));
  const file = [from, path].find(one => one !== undefined && isRun(one));
  if (file !== undefined) return [finding(file, `The setup runs or obeys it, and it was ${status}.`)];
  const parts = setupParts.find(
    ({ program, file: name }) => name.test(path) && lines.some(line => program.test(line)),
  );
  if (!parts || status === 'deleted') return [];
  const now = after === undefined ? undefined : parts.of(after, lines);
  if (now === undefined) return [finding(path, 'The setup obeys it, and what it runs then cannot be told.')];
  const old = parts.of(before ?? '', lines) ?? new Map<string, string>();
  return [...new Set([...old.keys(), ...now.keys()])].flatMap(name => {
    if (old.get(name) === now.get(name)) return [];
    const [is, was] = [now, old].map(all => all.get(name));
    const what = is === undefined ? 'gone' : is.length > 200 ? 'another one now' : `now ${is}`;
    return [
      finding(
        path,
        `The setup runs or obeys "${name}", which is ${what}${was === undefined ? '; there was none' : ''}.`,
      ),
    ];
  });
}

export function scriptsIn(text: string): Readonly<Record<string, string>> {
  const { scripts } = jsonFields(text) as { scripts?: unknown };
  if (typeof scripts !== 'object' || scripts === null) return {};
  return Object.fromEntries(Object.entries(scripts).filter(([, line]) => typeof line === 'string'));
}

/** Returns the names of the scripts that checks run, with those that these run in turn. Only such that were there before. */
export function scriptsOf(
  checks: readonly Pick<PlanCheck, 'command'>[],
  scripts: Readonly<Record<string, string>>,
): string[] {
  const found = new Set<string>();
  const waiting = checks.map(({ command }) => command);
  for (let line = waiting.pop(); line !== undefined; line = waiting.pop())
    for (const name of namedScripts(line))
      for (const one of [`pre${name}`, name, `post${name}`])
        if (Object.hasOwn(scripts, one) && !found.has(one)) {
          found.add(one);
          waiting.push(scripts[one] ?? '');
        }
  return [...found];
}

function namedScripts(line: string): string[] {
  const runs =
    /\b(?:npm|pnpm|yarn|bun)\b((?:\s+--?[\w-]+(?:=\S+)?)*)\s+(?:(?:run|run-script|rum)\s+(?:--?[\w-]+(?:=\S+)?\s+)*)?([\w:.-]+)/g;
  const short: Readonly<Record<string, string>> = { t: 'test', tst: 'test', it: 'test' };
  const named = [...line.matchAll(runs)].map(([, , name = '']) => short[name] ?? name);
  const several = /\b(?:npm-run-all|run-s|run-p|concurrently)\b([^;&|]*)/.exec(line)?.[1] ?? '';
  return [...named, ...several.split(/[\s"']+/).map(word => word.replace(/^npm:/, ''))].filter(Boolean);
}

/** Scripts of a project's own, by their endings and folders. */
export const ownScript =
  /\.(?:sh|bash|zsh|fish|ps1|bat|cmd)$|(?:^|\/)(?:scripts?|ci|tools?|hack|checks?|build)\//;

/** Changes of the folder in one text that are followed. */
const mostMoves = 8;

/** Paths that a text may name: from the top of the project, from `folder`, or from where the text changes to. */
export function namedPaths(text: string, folder = ''): string[] {
  const moves = /(?:\b(?:cd|pushd)|--(?:prefix|cwd|dir)|\s-C)[\s=]+["']?([\w.@/-]+)/g;
  const left = [...text.matchAll(moves)].slice(0, mostMoves).map(([, to = '']) => to);
  const folders = new Set(['', folder, ...left]);
  const words = text
    .replace(/\$(?:\w+|\{[^}]*\})/g, ' ')
    .split(/[\s;&|<>(){}'"`=,$:]+/)
    .map(word => word.replace(/^(?:\.?\/)+/, ''));
  const modules = [...text.matchAll(/\s-m\s+([\w.]+)/g)].flatMap(([, name = '']) => {
    const place = name.replaceAll('.', '/');
    return [`${place}.py`, `${place}/__init__.py`, `${place}/__main__.py`];
  });
  const named = [...new Set([...words, ...modules])].filter(word => /^[\w.@+-][\w.@+/-]*$/.test(word));
  const all = named.flatMap(word => [...folders].map(each => normalize(`${each}/${word}`)));
  return [...new Set(all.map(path => path.replace(/^\/+/, '')))].filter(path => !/^\.\.?(?:\/|$)/.test(path));
}

/** What is looked into for the packages that it names, and lists of packages that can start nothing by themselves. */
const packageLists =
  /(?:^|\/)(?:package\.json|composer\.json|pyproject\.toml|setup\.cfg|requirements[^/]*\.txt|Cargo\.toml|go\.(?:mod|sum|work)|[^/]*[.-]lock(?:\.json|\.yaml|b)?|npm-shrinkwrap\.json)$/;

/** Whether a setup that names the file runs it, or has a program obey it. */
export const isRunByName = (path: string): boolean =>
  !packageLists.test(path) &&
  (isCode(path) ||
    ownScript.test(path) ||
    !basename(path).includes('.') ||
    obeyedAt(path, path)?.kind === 'program');

/** Files that programs of a setup run or obey by their names. */
const setupFiles: readonly (readonly [program: RegExp, file: RegExp])[] = [
  [
    /\b(?:npm|npx|pnpm|pnpx|yarn|yarnpkg|bun|bunx|corepack|lerna|rush)\b/,
    /(?:^|\/)(?:\.npmrc|\.yarnrc(?:\.yml)?|\.?pnpmfile\.[cm]?js|pnpm-workspace\.yaml|\.?bunfig\.toml|binding\.gyp|package\.(?:json5|ya?ml)|lerna\.json|rush\.json)$|(?:^|\/)\.yarn\/(?:releases|plugins|patches|unplugged)\//i,
  ],
  [
    /\b(?:pip[\d.]*|pipx|uvx?|poetry|pipenv|pdm|hatch|tox|nox|conda|python[\d.]*)\b/,
    /(?:^|\/)(?:setup\.py|hatch_build\.py|noxfile\.py|tox\.ini|uv\.toml|poetry\.toml|sitecustomize\.py|[^/]+\.pth)$/i,
  ],
  [/\bbundler?\b/, /(?:^|\/)(?:Gemfile|gems\.rb|[^/]+\.gemspec)$|(?:^|\/)\.bundle\//i],
  [
    /(?:^|[;&|({`!]|\b(?:sudo|exec|then|do|else)\s)\s*mix\b/m,
    /(?:^|\/)mix\.exs$|(?:^|\/)config\/[^/]+\.exs$/,
  ],
  [/\bcargo\b/, /(?:^|\/)(?:\.cargo\/config(?:\.toml)?|rust-toolchain(?:\.toml)?)$/],
  [/\bcargo\s+(?:\+\S+\s+)?(?!fetch\b)\w/, /(?:^|\/)build\.rs$/],
  [
    /\b(?:gradlew?|mvnw?)\b/,
    /(?:^|\/)(?:gradlew|mvnw|[^/]+\.gradle(?:\.kts)?)$|(?:^|\/)(?:buildSrc|gradle|\.mvn)\//,
  ],
  [
    /\b(?:docker|podman)\b/,
    /(?:^|\/)(?:Dockerfile[^/]*|[^/]+\.Dockerfile|(?:docker-)?compose[^/]*\.ya?ml)$/i,
  ],
  [/\bdeno\b/, /(?:^|\/)deno\.jsonc?$/],
  [/\b(?:mise|rtx)\b/, /(?:^|\/)\.?mise(?:\.[\w-]+)?\.toml$|(?:^|\/)(?:\.mise|mise)\//],
  [
    /(?:^|[;&|({`!]|\b(?:sudo|exec|then|do|else)\s)\s*(?:\w+=\S*\s+)*(?:make|gmake|just|task|rake)\b/m,
    /(?:^|\/)(?:GNUmakefile|[Mm]akefile|[^/]+\.mk|\.?[Jj]ustfile|[^/]+\.just|Taskfile(?:\.dist)?\.ya?ml|Rakefile|[^/]+\.rake)$/,
  ],
];

/** Scripts that package managers run when they install. */
const lifecycle = [
  'preinstall',
  'install',
  'postinstall',
  'prepublish',
  'preprepare',
  'prepare',
  'postprepare',
  'prepack',
  'postpack',
  'dependencies',
  'pnpm:devPreinstall',
];
/** Fields with which package managers start other programs, or let packages run scripts. */
const installFields = [
  'packageManager',
  'trustedDependencies',
  'allowScripts',
  'pnpm',
  'dependenciesMeta',
  'gypfile',
];
/** Tables of a pyproject.toml that only name packages, or set up what no install runs. */
const calmTables =
  /^\s*\[\s*(?:project(?:\.(?:optional-dependencies|urls|scripts|gui-scripts))?|dependency-groups|tool\.(?:poetry\.(?:dependencies|group\.[\w.-]+|dev-dependencies)|uv\.sources|(?:ruff|black|isort|mypy|pytest|coverage|pyright|pylint|bandit|flake8)(?:\.[\w.-]+)?))\s*\]/;

/** What of a file that names packages is run or obeyed by an install, by its name. Undefined if that cannot be told. */
const setupParts: readonly {
  program: RegExp;
  file: RegExp;
  of: (text: string, lines: readonly string[]) => Map<string, string> | undefined;
}[] = [
  { program: setupFiles[0]![0], file: /(?:^|\/)package\.json$/, of: packageParts },
  {
    program: /\bcomposer\b/,
    file: /(?:^|\/)composer\.json$/,
    of: text => fieldsOf(text, ['scripts', 'config']),
  },
  {
    program: setupFiles[1]![0],
    file: /(?:^|\/)pyproject\.toml$/,
    of: text => new Map([['its build', loudTables(text, calmTables)]]),
  },
  {
    program: setupFiles[1]![0],
    file: /(?:^|\/)setup\.cfg$/,
    of: text =>
      new Map([
        [
          'its build',
          loudTables(text, /^\s*\[(?:flake8|mypy|tool:pytest|coverage|isort|pycodestyle|metadata)[^\]]*\]/),
        ],
      ]),
  },
];

const loudTables = (text: string, calm: RegExp): string =>
  text
    .split(/^(?=[ \t]*\[)/m)
    .filter(part => !calm.test(part))
    .map(part => part.trim())
    .join('\n');

/** Returns undefined for a text that is no JSON object. Package managers read one that begins with a byte order mark. */
function fieldsOf(text: string, keys: readonly string[]): Map<string, string> | undefined {
  const json = text.replace(/^\uFEFF/, '');
  const fields = jsonFields(json);
  if (json.trim() !== '' && !/^\s*\{\s*\}\s*$/.test(json) && Object.keys(fields).length === 0)
    return undefined;
  return new Map(
    keys.flatMap(key => (fields[key] === undefined ? [] : [[key, JSON.stringify(fields[key])] as const])),
  );
}

function packageParts(text: string, lines: readonly string[]): Map<string, string> | undefined {
  const parts = fieldsOf(text, installFields);
  if (!parts) return undefined;
  const scripts = scriptsIn(text.replace(/^\uFEFF/, ''));
  for (const name of installScripts(lines, scripts)) parts.set(name, JSON.stringify(scripts[name]));
  return parts;
}

/** Returns the names of the scripts that setup commands run, and those that package managers run when they install. */
export function installScripts(
  lines: readonly string[],
  scripts: Readonly<Record<string, string>>,
): string[] {
  const own = lifecycle.filter(name => Object.hasOwn(scripts, name));
  const all = [...lines, ...own.map(name => scripts[name] ?? '')];
  return [
    ...new Set([
      ...own,
      ...scriptsOf(
        all.map(command => ({ command })),
        scripts,
      ),
    ]),
  ];
}

/** Returns the fields of a JSON object. Returns none for any other text. */
export function jsonFields(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
