/** Reads what the fields and the text of a SKILL.md say: the tools it names, what it requires of the machine, and what it does. */
import { beginningOf, type Sentence, sentence, shortened } from '@telos/protocol/text';
import type { InstallStep, RuntimeMetadata } from './agent.ts';
import { fieldText, parseYamlValue } from './frontmatter.ts';
import { parseLooseJson } from './frontmatterLines.ts';

/** Aliases by Telos's name. The first ones are shown to the model. All are understood in any case. */
export const toolAliases: Readonly<Record<string, readonly string[]>> = {
  read_file: ['read', 'Read', 'cat', 'view'],
  write_file: ['write', 'Write', 'create_file'],
  edit_file: ['edit', 'Edit', 'MultiEdit', 'str_replace'],
  list_directory: ['ls', 'LS', 'list'],
  search_files: ['grep', 'Grep', 'search', 'rg'],
  glob: ['Glob', 'find'],
  run_command: ['exec', 'bash', 'Bash', 'shell', 'terminal'],
  fetch_url: ['web_fetch', 'WebFetch', 'fetch'],
  use_skill: ['Task', 'Agent', 'Skill'],
};

const byAlias = new Map(
  Object.entries(toolAliases).flatMap(([tool, aliases]) =>
    aliases.map(alias => [alias.toLowerCase(), tool] as const),
  ),
);

/** Returns Telos's name of the tool with this name elsewhere, or undefined if there is none. */
export const toolNamed = (name: string): string | undefined =>
  Object.hasOwn(toolAliases, name) ? name : byAlias.get(name.toLowerCase());

export interface ToolNames {
  /** Names of Telos's own tools, as far as the skill names all of a tool. */
  tools: ReadonlySet<string>;
  /** Names of MCP servers' tools, as written. */
  mcpTools: readonly string[];
  /** Words of commands, such as `git` and `*`. A last `*` matches any further words. */
  commands: readonly (readonly string[])[];
  /** Hosts of web pages. */
  hosts: readonly string[];
  /** Entries that mean nothing here. */
  unknown: readonly string[];
}

/**
 * Returns the entries of a list, or of a text with commas and blanks. A pattern in parentheses stays whole. Returns undefined if
 * there are no entries.
 */
export function splitAllowedTools(value: unknown): string[] | undefined {
  const texts = (Array.isArray(value) ? value : [value]).filter(item => typeof item === 'string');
  const entries = texts.flatMap(text => text.match(/[^\s,()]+(?:\([^)]*\))?/g) ?? []);
  return entries.length > 0 ? entries : undefined;
}

/** Returns what the entries name. Everything in it is empty if there are none. */
export function readToolNames(entries: readonly string[] = []): ToolNames {
  const tools = new Set<string>();
  const names = { mcpTools: [] as string[], commands: [] as string[][], hosts: [] as string[] };
  const unknown: string[] = [];
  for (const entry of entries) {
    const [, name = '', within = '*'] = /^([^(]*)(?:\((.*)\))?$/.exec(entry) ?? [];
    const tool = toolNamed(name);
    const pattern = within.trim();
    const host = /^domain:([\w.-]+)$/i.exec(pattern)?.[1];
    if (/^mcp__/.test(name)) names.mcpTools.push(name);
    else if (tool === undefined) unknown.push(name);
    else if (/^\*{0,2}$/.test(pattern)) tools.add(tool);
    else if (tool === 'run_command') names.commands.push(pattern.replace(/\s*:\*$/, ' *').split(/\s+/));
    else if (tool === 'fetch_url' && host) names.hosts.push(host.toLowerCase());
    else unknown.push(entry);
  }
  return { tools, ...names, unknown };
}

/**
 * Whether a skill's `disallowed-tools` name the tool. `server` is set for an MCP server's tool. Such tools are named
 * `mcp__server`, `mcp__server__*` or `mcp__server__tool`.
 */
export function namesTool(
  { tools, mcpTools }: ToolNames,
  name: string,
  server?: { server: string; tool: string },
): boolean {
  if (!server) return tools.has(name);
  const whole = `mcp__${server.server}`;
  const names = [whole, `${whole}__*`, `${whole}__${server.tool}`];
  return mcpTools.some(entry => names.includes(entry));
}

/** Returns the names in a skill's `arguments`: a text with blanks or commas, or a list of names or of `name: …`. */
export function argumentNamesIn(value: unknown): string[] {
  const each = typeof value === 'string' ? value.split(/[\s,]+/) : Array.isArray(value) ? value : [];
  return each
    .map((item): unknown => (recordIn(item) ? recordIn(item)?.['name'] : item))
    .filter(item => typeof item === 'string')
    .filter(name => /^[A-Za-z]\w*$/.test(name));
}

/** In characters. */
const longestHint = 100;

/** Returns an `argument-hint` as one line. `[crate]` without quotes is a list for YAML, and means itself. */
export function argumentHintIn(value: unknown): string | undefined {
  const written = Array.isArray(value) ? `[${value.map(String).join(', ')}]` : fieldText(value);
  return shortened(written?.replace(/\s+/g, ' ').trim() ?? '', longestHint) || undefined;
}

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
  /** Values that could not be understood. */
  problems: readonly Sentence[];
}

type Values = Readonly<Record<string, unknown>>;

/** Reads a skill's requirements. `fields` is the frontmatter. Never throws. */
export function readRuntimeMetadata(fields: Values): ReadMetadata {
  const problems: Sentence[] = [];
  const values = runtimeValues(fields, problems);
  const requires = recordIn(values['requires']);
  if (!requires && list(values['requires']).length > 0)
    problems.push(sentence('`requires` is not a list of `bins`, `anyBins`, `env` or `config`.'));
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
function runtimeValues(fields: Values, problems: Sentence[]): Values {
  const written = fields['metadata'];
  const metadata = recordIn(written);
  if (typeof written === 'string' && written.trim() && !metadata)
    problems.push(sentence('{0} could not be read as a map, nor as JSON.', '`metadata`'));
  for (const runner of runners) {
    const inner = metadata?.[runner] ?? fields[runner];
    const values = recordIn(inner);
    if (values) return values;
    if (inner !== undefined && inner !== null)
      problems.push(sentence('{0} could not be read as a map, nor as JSON.', `\`metadata.${runner}\``));
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

function readSystems(value: unknown, problems: Sentence[]): NodeJS.Platform[] {
  const found = names(value).flatMap(name => {
    const system = systems[name.toLowerCase()];
    if (!system) problems.push(sentence("`os` names '{0}'; known are darwin, linux and win32.", name));
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

/** Maximum length of a synopsis, in characters. */
const longest = 300;
/** Number of characters that are examined. The beginning says what a skill is about. */
const searched = 20_000;

/**
 * Returns a `## Description` section, else the first sentence of prose, else the title. Returns undefined if there is none of
 * them.
 */
export function synopsisOf(body: string): string | undefined {
  const blocks = proseBlocks(body.slice(0, searched));
  const described = blocks.find(({ heading }) => /^description$/i.test(heading));
  // A text that ends with a colon only introduces a list.
  const text = (described ?? blocks.find(block => !/[:：]$/.test(block.text)) ?? blocks[0])?.text;
  if (text) return summary(firstSentences(text));
  const title = /^#[ \t]+(.+)$/m.exec(body.slice(0, searched))?.[1];
  return title ? summary(plainText(title)) || undefined : undefined;
}

/** Returns paragraphs of prose with the heading above them. Code, lists, tables and pictures are left out. */
function proseBlocks(text: string): { heading: string; text: string }[] {
  const blocks: { heading: string; text: string }[] = [];
  let heading = '';
  let fence = '';
  let paragraph: string[] = [];
  const end = (): void => {
    const prose = plainText(beginningOf(paragraph.join(' '), 2_000));
    // A paragraph without two words says nothing.
    if (/\S\s+\S|[\u3040-\u9fff]{4}/.test(prose)) blocks.push({ heading, text: prose });
    paragraph = [];
  };
  for (const line of [...text.replace(/<!--[\s\S]*?(?:-->|$)/g, '').split('\n'), '']) {
    const trimmed = line.trim();
    const mark = /^(?:```|~~~)/.exec(trimmed)?.[0];
    if (mark && (!fence || fence === mark)) {
      end();
      fence = fence ? '' : mark;
    } else if (!fence) {
      const title = /^#{1,6}[ \t]+(.*?)[ \t#]*$/.exec(trimmed)?.[1];
      if (title !== undefined || !trimmed || isNoProse(trimmed)) end();
      else paragraph.push(trimmed);
      if (title !== undefined) heading = plainText(title);
    }
  }
  return blocks;
}

const isNoProse = (line: string): boolean =>
  /^(?:[-*+•|<]|\d+[.)]\s|!\[|\[!\[|={3,}|-{3,})/.test(line) && !/^(?:\*\*|__)/.test(line);

/** Removes the signs of Markdown that would only disturb in a list. */
function plainText(text: string): string {
  return text
    .replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, '$1')
    .replace(/\*\*|__|`/g, '')
    .replace(/^>\s*/, '')
    .replace(/\s+/g, ' ')
    .trim();
}

function firstSentences(text: string): string {
  return /^.{20,}?[.!?。！？](?=\s|$|[\u3040-\u9fff])/u.exec(text)?.[0] ?? text;
}

function summary(text: string): string {
  const cut = shortened(text, longest);
  return cut === text ? text : cut.replace(/\s+\S*…$/, '…');
}
