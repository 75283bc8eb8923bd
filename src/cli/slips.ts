/** Finds the command that is meant by words which are none: a slip of the finger, or a command as other programs call it. */
import { isOneEditAway } from '@telos/engine/routing';
import type { CliCommand } from './parser.ts';

export interface Slip {
  /** The words that were typed and are not a command. */
  typed: string;
  /** The commands that may be meant, as they are written behind `telos`. */
  meant: readonly string[];
}

/** Commands of other programs, alone. */
const others: Readonly<Record<string, string>> = {
  version: '--version',
  list: 'list-skills',
  ls: 'list-skills',
  log: 'runs --follow',
  logs: 'runs --follow',
  history: 'runs',
  sessions: 'runs',
  resume: '--continue',
  continue: '--continue',
  check: 'lint',
  remove: 'uninstall',
  rm: 'uninstall',
  delete: 'uninstall',
  setup: 'init',
  login: 'key',
  auth: 'key',
  config: 'doctor',
  settings: 'doctor',
  usage: 'cost',
  revert: 'undo',
  bot: '--help',
};

/** Commands of other programs before one name. */
const othersWithName: Readonly<Record<string, string>> = {
  remove: 'uninstall',
  rm: 'uninstall',
  delete: 'uninstall',
  add: 'install',
  login: 'key',
  auth: 'key',
  upgrade: 'update',
};

/** Words for the same act, in the order in which a command of that name is looked for. */
const families: readonly (readonly string[])[] = [
  ['list', 'show', 'status', 'ls', 'view', 'info'],
  ['remove', 'delete', 'revoke', 'uninstall', 'rm', 'del'],
  ['add', 'new', 'create', 'install'],
  ['on', 'resume', 'enable'],
  ['off', 'pause', 'drain', 'disable', 'stop'],
  ['run', 'start', 'execute'],
  ['test', 'check', 'try'],
];

const familyOf = (word: string): readonly string[] | undefined =>
  families.find(family => family.includes(word));

/** Things by their name for one. Each has the command that lists them, and where there is one, those that add and remove one. */
const things: Readonly<Record<string, { list: string; add?: string; remove?: string }>> = {
  skill: { list: 'list-skills', add: 'install', remove: 'uninstall' },
  agent: { list: 'agents', add: 'install', remove: 'uninstall' },
  pack: { list: 'agents', add: 'install', remove: 'uninstall' },
  plugin: { list: 'agents', add: 'install', remove: 'uninstall' },
  run: { list: 'runs', remove: 'runs delete' },
  plan: { list: 'plan show', add: 'plan new', remove: 'plan remove' },
  model: { list: 'models' },
  server: { list: 'mcp list', add: 'mcp add' },
  tool: { list: 'mcp list --start' },
  hook: { list: 'hooks' },
  schedule: { list: 'schedule list', add: 'schedule add', remove: 'schedule remove' },
  permission: { list: 'policy list', remove: 'policy revoke' },
  worker: { list: 'fleet status' },
};

const thingOf = (word: string) =>
  Object.hasOwn(things, word.replace(/s$/, '')) ? things[word.replace(/s$/, '')] : undefined;

/** `mcp list --start` tries each server. */
const triesServers = ['test', 'check', 'try', 'start', 'ping'];

const mostNames = 3;
const sentenceWord = /^(?:an?|the|my|our|your|this|that|these|all|of|for|to|in|on|with|from|and|or|is|are)$/i;
const isName = (word: string): boolean => /^[\w@.:/~-]+$/.test(word) && !sentenceWord.test(word);

/** Returns the slip that these words are; undefined if they are a command or a request. */
export function findSlip(request: string, commands: readonly CliCommand[]): Slip | undefined {
  const [first = '', second, ...more] = request.split(/\s+/);
  const names = [second ?? '', ...more];
  if (second === undefined) {
    const other = Object.hasOwn(others, first) ? others[first] : thingOf(first)?.list;
    if (other && commands.every(({ name }) => name !== first)) return { typed: first, meant: [other] };
  } else if (names.length <= mostNames + 1 && names.every(isName)) {
    const meant =
      withName(first, names) ??
      below(commands, first, second, more) ??
      ofThing(commands, first, second, more);
    if (meant) return { typed: more.length > 0 ? `${first} ${second}` : first, meant: [meant] };
  }
  const meant = ofFinger(commands, first, names, second === undefined);
  return meant.length > 0 ? { typed: first, meant } : undefined;
}

function withName(first: string, [name = '', ...more]: readonly string[]): string | undefined {
  const command = Object.hasOwn(othersWithName, first) ? othersWithName[first] : undefined;
  if (!command || more.length > 0 || thingOf(name)) return undefined;
  // "add tests" is a request; a source has a sign between its parts.
  return command === 'install' && !/[:/]/.test(name) ? undefined : `${command} ${name}`;
}

/** Returns the command below a command that an act of the same family means. */
function below(
  commands: readonly CliCommand[],
  first: string,
  second: string,
  names: readonly string[],
): string | undefined {
  const group = commands.find(({ name }) => name === first);
  const family = familyOf(second);
  if (!group?.inner || group.inner.some(({ name }) => name === second)) return undefined;
  if (first === 'mcp' && triesServers.includes(second)) return 'mcp list --start';
  if (!family) return undefined;
  if (group.run && family.includes('list')) return first;
  const meant = family.find(act => group.inner?.some(({ name }) => name === act));
  if (meant) return [first, meant, ...names].join(' ');
  return thingOf(first) ? undefined : `${first} --help`;
}

/** Returns the command for an act on a thing, in either order. */
function ofThing(
  commands: readonly CliCommand[],
  first: string,
  second: string,
  names: readonly string[],
): string | undefined {
  const inner = commands.find(({ name }) => name === first)?.inner;
  if (inner?.some(({ name }) => name === second)) return undefined;
  const thing = thingOf(first) ?? thingOf(second);
  const family = familyOf(thingOf(first) ? second : first);
  const act = (['list', 'add', 'remove'] as const).find(one => family?.includes(one));
  const command = act && thing?.[act];
  return command && [command, ...(act === 'list' ? [] : names)].join(' ');
}

/** Returns commands that are one slip away, if the word is alone or is followed by a command below it or by a folder. */
function ofFinger(
  commands: readonly CliCommand[],
  first: string,
  [second = '', ...more]: readonly string[],
  isAlone: boolean,
): string[] {
  const near = commands.filter(({ name }) => isOneEditAway(first, name));
  const isFolder = more.length === 0 && /^(?:~|\.{1,2})?\/|^\.{1,2}$/.test(second);
  const meant =
    isAlone || isFolder ? near : near.filter(({ inner }) => inner?.some(({ name }) => name === second));
  return meant.map(({ name }) => name);
}
