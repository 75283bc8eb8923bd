/** Reads what a skill requires of the machine, under any of the names and spellings in use. */
import type { InstallStep, RuntimeMetadata } from './agent.ts';
import { parseYamlValue } from './frontmatter.ts';
import { parseLooseJson } from './frontmatterLines.ts';

/** Runners whose name the requirements may be under. The first one found is read. */
const runners = ['openclaw', 'clawdbot', 'moltbot', 'clawdis'] as const;
const ownKeys = ['requires', 'os', 'always', 'primaryEnv', 'install'] as const;

const systems: Readonly<Record<string, NodeJS.Platform>> = {
  darwin: 'darwin',
  macos: 'darwin',
  mac: 'darwin',
  osx: 'darwin',
  linux: 'linux',
  win32: 'win32',
  windows: 'win32',
  win: 'win32',
};

export interface ReadMetadata extends RuntimeMetadata {
  /** Values that could not be understood, in sentences. */
  problems: readonly string[];
}

type Values = Readonly<Record<string, unknown>>;

/** Reads a skill's requirements. `fields` is the frontmatter. Never throws. */
export function readRuntimeMetadata(fields: Values): ReadMetadata {
  const problems: string[] = [];
  const values = runtimeValues(fields, problems);
  const requires = recordIn(values['requires']);
  if (!requires && list(values['requires']).length > 0)
    problems.push('`requires` is no list of `bins`, `anyBins`, `env` or `config`.');
  return {
    requires: {
      bins: names(requires?.['bins'] ?? requires?.['bin']),
      anyBins: names(requires?.['anyBins']),
      env: names(requires?.['env']),
      config: names(requires?.['config']),
      ...(requires?.['pip'] === undefined ? {} : { pip: names(requires['pip']) }),
    },
    os: readSystems(values['os'], problems),
    always: values['always'] === true || values['always'] === 'true',
    primaryEnv: text(values['primaryEnv']),
    emoji: text(values['emoji']),
    homepage: text(values['homepage']) ?? text(fields['homepage']),
    install: list(values['install']).flatMap(entry => installStep(entry)),
    problems,
  };
}

/** Returns the values of a map, a JSON string or JSON5, each under its runner's name. Some files leave the name out. */
function runtimeValues(fields: Values, problems: string[]): Values {
  const written = fields['metadata'];
  const metadata = recordIn(written);
  if (typeof written === 'string' && written.trim() && !metadata)
    problems.push('`metadata` could not be read as a map, nor as JSON.');
  for (const runner of runners) {
    const inner = metadata?.[runner] ?? fields[runner];
    const values = recordIn(inner);
    if (values) return values;
    if (inner !== undefined && inner !== null)
      problems.push(`\`metadata.${runner}\` could not be read as a map, nor as JSON.`);
  }
  if (metadata && ownKeys.some(key => key in metadata)) return metadata;
  return recordIn(fields['requires']) ? fields : {};
}

/** Returns the record that a value is, or that its text means. */
function recordIn(value: unknown): Values | undefined {
  if (typeof value !== 'string') return isRecord(value) ? value : undefined;
  const trimmed = value.trim();
  if (!trimmed) return undefined;
  const read = parseLooseJson(trimmed) ?? parseYamlValue(trimmed);
  return isRecord(read) ? read : undefined;
}

function readSystems(value: unknown, problems: string[]): NodeJS.Platform[] {
  const found = names(value).flatMap(name => {
    const system = systems[name.toLowerCase()];
    if (!system) problems.push(`\`os\` names '${name}'; known are darwin, linux and win32.`);
    return system ? [system] : [];
  });
  return [...new Set(found)];
}

/** Builds the install command of each kind from an entry. */
const installCommands: Readonly<Record<string, (entry: Values) => string | undefined>> = {
  brew: entry => named('brew install', entry, 'formula', 'cask', 'package'),
  apt: entry => named('sudo apt-get install', entry, 'package', 'packages'),
  node: entry => named('npm install -g', entry, 'package'),
  npm: entry => named('npm install -g', entry, 'package'),
  go: entry => named('go install', entry, 'module', 'package'),
  uv: entry => named('uv tool install', entry, 'package', 'formula'),
  pip: entry => named('pip install', entry, 'package'),
  pipx: entry => named('pipx install', entry, 'package'),
  cargo: entry =>
    text(entry['git'])
      ? named('cargo install --git', entry, 'git')
      : named('cargo install', entry, 'crate', 'package'),
  download: () => undefined,
};

function named(command: string, entry: Values, ...keys: readonly string[]): string | undefined {
  const key = keys.find(candidate => names(entry[candidate]).length > 0);
  if (key === undefined) return undefined;
  return [command, ...(key === 'cask' ? ['--cask'] : []), ...names(entry[key])].join(' ');
}

function installStep(value: unknown): InstallStep[] {
  const entry = recordIn(value);
  if (!entry) return [];
  const command =
    text(entry['command']) ?? text(entry['run']) ?? installCommands[text(entry['kind']) ?? '']?.(entry);
  const words = [text(entry['label']), text(entry['instructions']), text(entry['url'])]
    .filter(Boolean)
    .join(': ');
  if (!command && !words) return [];
  return [{ command, label: words, bins: names(entry['bins']), os: readSystems(entry['os'], []) }];
}

/** Returns a list of texts. One text is a list of one, and a record gives its keys. */
function names(value: unknown): string[] {
  if (isRecord(value)) return Object.keys(value);
  return list(value).flatMap(item => text(item) ?? []);
}

const list = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];

function text(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return (typeof value === 'string' && value.trim()) || undefined;
}

const isRecord = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
