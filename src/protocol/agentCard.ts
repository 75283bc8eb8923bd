/** Defines an agent's card as it is sent to frontends, and the words in which each of them shows it. */
import { codePointOf, english, type Say, type Sentence, spoken, unseen } from './text.ts';

/** A place in a file that a person should look at before trusting the file. Lines count from 1. */
export interface RedFlag {
  /** A rule of the look before. What is known about each is in `engine/scan/rules.json`. */
  kind:
    | 'pipe-to-shell'
    | 'decode-and-run'
    | 'credential-path'
    | 'invisible-characters'
    | 'archive-password'
    | 'secret-in-clear'
    | 'not-looked-into'
    | 'too-many-hosts'
    | 'compiled-code'
    | 'unpinned-code'
    | 'runs-later'
    | 'gains-rights'
    | 'mines-coins'
    | 'paste-host'
    | 'webhook-host'
    | 'tunnel-host'
    | 'short-link'
    | 'bare-address'
    | 'lookalike-letters'
    | 'repository-program'
    | 'repository-file'
    | 'hidden-repository'
    | 'link-out'
    | 'special-file'
    | 'executable-download'
    | 'hard-coded-secret'
    | 'fetched-instructions'
    | 'changes-instructions'
    | 'hides-from-person'
    | 'reads-and-sends'
    | 'moves-money'
    | 'reads-foreign-text'
    | 'undeclared'
    | 'undeclared-host'
    | 'undeclared-program'
    | 'unused-declaration'
    | 'not-run';
  /** Path as in the digest: below the agent's folder, or absolute if the file is elsewhere. */
  file: string;
  line: number;
  /** The line, shortened, with invisible characters written as escapes. May be empty. */
  text: string;
}

/** How much a finding weighs. `high`: read that line before you install it. */
export type FindingLevel = 'high' | 'medium' | 'low';

/** A red flag with its weight, as `telos scan` and an install show it. */
export interface Finding extends RedFlag {
  level: FindingLevel;
}

/** A folder that an agent's files chose. The path is real and absolute. `write` includes reading. */
export interface CardFolder {
  path: string;
  access: 'read' | 'write';
}

/** The card of one agent. Accepting it grants exactly what it names, as long as no byte of the agent's files changes. */
export interface AgentCard {
  agent: string;
  /** The agent's own folder. Absolute. */
  folder: string;
  /** Where the agent came from, in words. */
  origin: string;
  /** The same, for a frontend that translates. */
  originSaid?: Sentence;
  /** `new`: never accepted. `changed`: accepted, but its files have changed since. */
  state: 'new' | 'reviewed' | 'changed';
  /** SHA-256, hexadecimal, over the sorted `path:sha256` lines of the files. Includes `folders` if there are any. */
  digest: string;
  /** Folder in which the agent reads and writes its files. Absolute. */
  workingDir: string;
  /** Why `workingDir` is not the folder that the agent's files ask for, as a sentence. */
  workingDirNote?: string;
  /** Folders outside the agent's own that its files chose. */
  folders: readonly CardFolder[];
  hosts: readonly string[];
  scripts: readonly string[];
  /** Commands that its skills name in `allowed-tools`, such as `git *`. They run unasked while their words stay in the run's folders. */
  commands?: readonly string[];
  /** Environment variables that the agent's commands see if the user has set them. */
  variables: readonly string[];
  /** Files and folders out of the ordinary that its text says it writes, such as `AGENTS.md`. It writes and reads them unasked. */
  writes?: readonly string[];
  /** Hooks, each as `PreToolUse (Write|Edit): command`. They run by themselves, in the sandbox. */
  hooks?: readonly string[];
  /** What its files say of hooks and cannot be used, in sentences. */
  hooksNotRun?: readonly string[];
  /** MCP servers, each with its exact command line or address as written. */
  servers: readonly { name: string; place: string }[];
  /** What its files say of MCP servers and cannot be used, with the reason, in sentences. Such servers are not started. */
  notStarted?: readonly string[];
  redFlags: readonly RedFlag[];
  /** Parts of the agent's folder that the digest does not cover. */
  leftOut?: readonly { path: string; why: 'repository' | 'work' }[];
  /** Changes since the accepted version. Empty unless `state` is `changed`. */
  changes: readonly { path: string; change: 'added' | 'changed' | 'removed' }[];
  /** Time of the last acceptance, in ISO format. */
  reviewedAt?: string;
}

/** What a card names of an agent's files, before it is known whose they are. */
export type CardLines = Pick<
  AgentCard,
  | 'hosts'
  | 'scripts'
  | 'commands'
  | 'variables'
  | 'writes'
  | 'servers'
  | 'notStarted'
  | 'folders'
  | 'hooks'
  | 'hooksNotRun'
>;

/** Returns what a file does that has such a flag, as the end of a sentence. */
export function flagWords(kind: RedFlag['kind'], say: Say = english): string {
  switch (kind) {
    case 'pipe-to-shell':
      return say('runs what it downloads');
    case 'decode-and-run':
      return say('decodes something and runs it');
    case 'credential-path':
      return say('names a place of keys or passwords');
    case 'invisible-characters':
      return say('contains invisible characters');
    case 'archive-password':
      return say('gives a password for an archive');
    case 'secret-in-clear':
      return say('sends a secret over plain http, where others can read it');
    case 'not-looked-into':
      return say('was not checked (too large or not text)');
    case 'too-many-hosts':
      return say('is one of the files that name too many hosts to review, so none of them is allowed');
    case 'compiled-code':
      return say('is compiled code, which cannot be read');
    case 'unpinned-code':
      return say('installs or runs code from elsewhere without a fixed version');
    case 'runs-later':
      return say('sets something up to run later: a schedule or a startup file');
    case 'gains-rights':
      return say('gives itself or a user more rights on this machine');
    case 'mines-coins':
      return say('mines coins with this machine');
    case 'paste-host':
      return say('names a site where anyone can leave text or files');
    case 'webhook-host':
      return say('names a site that collects what is sent to it');
    case 'tunnel-host':
      return say('names a tunnel to a private computer');
    case 'short-link':
      return say('has a short link that hides where it leads');
    case 'bare-address':
      return say('uses an IP address instead of a host name');
    case 'lookalike-letters':
      return say('has letters of another script that look like Latin ones');
    case 'repository-program':
      return say('makes Git start a program');
    case 'repository-file':
      return say('uses files in .git, which the permissions do not cover, so no script of it is allowed');
    case 'hidden-repository':
      return say('is a Git folder in an unusual place, so no script of it is allowed');
    case 'link-out':
      return say('is a link to files that the permissions do not cover, so no script of it is allowed');
    case 'special-file':
      return say('is neither a file nor a folder, so no script of it is allowed');
    case 'executable-download':
      return say('downloads a program');
    case 'hard-coded-secret':
      return say('contains a secret');
    case 'fetched-instructions':
      return say('follows instructions that it fetches when it runs');
    case 'changes-instructions':
      return say('changes what agents, Git or the editor do later');
    case 'hides-from-person':
      return say('tells the agent to hide something from you, or not to ask');
    case 'reads-and-sends':
      return say('reads secrets and sends something in the same file');
    case 'moves-money':
      return say('can move money');
    case 'reads-foreign-text':
      return say('reads what strangers write');
    case 'undeclared':
      return say('takes a secret variable that its text does not name');
    case 'undeclared-host':
      return say('reaches a host that its text does not name');
    case 'undeclared-program':
      return say('uses a program that its metadata does not name');
    case 'unused-declaration':
      return say('asks for something that it does not use');
    case 'not-run':
      return say('is present, and Telos does not run it');
  }
}

function wordsOfState(state: AgentCard['state'], say: Say): string {
  switch (state) {
    case 'new':
      return say('not reviewed yet');
    case 'reviewed':
      return say('reviewed, unchanged since');
    case 'changed':
      return say('changed since it was reviewed');
  }
}

const shownChanges = 20;
const shownFlags = 30;

export function describeFlag({ kind, file, line, text }: RedFlag, say: Say = english): string {
  const place = aboutWholeFile.includes(kind) ? file : `${file}:${line}`;
  return `${place} ${flagWords(kind, say)}${text ? `: ${text}` : ''}`;
}

/** Flags that are about a whole file, so that a line number says nothing. */
const aboutWholeFile: readonly RedFlag['kind'][] = [
  ...([
    'not-looked-into',
    'too-many-hosts',
    'compiled-code',
    'repository-program',
    'repository-file',
  ] as const),
  ...(['hidden-repository', 'link-out', 'special-file'] as const),
];

/** Returns what a person can switch off before accepting the card, each by the name that `without` takes. */
export const switchableLines = ({
  hosts,
  scripts,
  commands = [],
  variables,
  writes = [],
  hooks = [],
}: AgentCard): string[] => [
  ...new Set([...hosts, ...scripts, ...commands, ...variables, ...writes, ...hooks]),
];

/** Returns one line for each part of the agent that its card does not cover. */
export function describeLeftOut({ leftOut = [] }: Pick<AgentCard, 'leftOut'>, say: Say = english): string[] {
  return leftOut.map(({ path, why }) =>
    why === 'work'
      ? say('{0}: what the agent writes in its working folder', path)
      : say('{0}: what Git keeps there, without its settings and hooks', path),
  );
}

export function describeChange({ path, change }: AgentCard['changes'][number], say: Say = english): string {
  switch (change) {
    case 'added':
      return say('added: {0}', path);
    case 'changed':
      return say('changed: {0}', path);
    case 'removed':
      return say('removed: {0}', path);
  }
}

export const describeFolder = ({ path, access }: CardFolder, say: Say = english): string =>
  access === 'write'
    ? say('reads and writes in {0} without asking again', path)
    : say('reads in {0} without asking again', path);

/**
 * Returns the card as lines of plain text. The lists are complete, except long ones of changes and flags.
 * Those say how many entries are left out.
 */
export function describeCard(card: AgentCard, say: Say = english): string[] {
  const list = (title: string, items: readonly string[]): string[] =>
    items.length > 0 ? [`${title}:`, ...items.map(item => `  ${item}`)] : [`${title}: ${say('none')}`];
  const flags = card.redFlags.map(flag => `! ${describeFlag(flag, say)}`);
  const changes = card.changes.map(change => describeChange(change, say));
  const leftOut = describeLeftOut(card, say);
  const lines = [
    say('Agent {0} ({1})', card.agent, wordsOfState(card.state, say)),
    say('From: {0}', card.originSaid ? spoken([card.originSaid], say) : card.origin),
    say('Working folder: {0}', card.workingDir),
    ...(card.workingDirNote === undefined ? [] : [`  ${card.workingDirNote}`]),
    ...list(
      say('Folders that its files choose'),
      card.folders.map(folder => describeFolder(folder, say)),
    ),
    ...list(say('Hosts that its files name'), card.hosts),
    ...list(say('Scripts that it may run'), card.scripts),
    ...(card.commands?.length ? list(say('Commands that it may run'), card.commands) : []),
    ...list(say('Variables that its commands see'), card.variables),
    ...(card.writes?.length ? list(say('Files that its text says it writes'), card.writes) : []),
    ...(hookTexts(card, say).length > 0
      ? list(say('Hooks that run by themselves'), hookTexts(card, say))
      : []),
    ...list(say('MCP servers'), [
      ...card.servers.map(({ name, place }) => `${name}: ${place}`),
      ...notStartedTexts(card, say),
    ]),
    ...(leftOut.length > 0 ? list(say('Not covered by these permissions'), leftOut) : []),
    ...(flags.length > 0 ? [say('Look at these:'), ...capped(flags, shownFlags, say)] : []),
    ...(changes.length > 0 ? [say('What has changed:'), ...capped(changes, shownChanges, say)] : []),
    say('Digest: {0}', card.digest),
  ];
  // A name can contain a line break, and the text after it would look like a line of the card.
  return lines.map(line => unseen.replacedIn(line, codePointOf));
}

/** Returns one line for each server that the agent's files name and that is not started. */
export const notStartedTexts = (
  { notStarted = [] }: Pick<AgentCard, 'notStarted'>,
  say: Say = english,
): string[] => notStarted.map(problem => say('not started: {0}', problem));

/** Returns one line for each hook, and for each that does not run. */
export const hookTexts = (
  { hooks = [], hooksNotRun = [] }: Pick<AgentCard, 'hooks' | 'hooksNotRun'>,
  say: Say = english,
): string[] => [...hooks, ...hooksNotRun.map(problem => say('not run: {0}', problem))];

function capped(lines: readonly string[], limit: number, say: Say): string[] {
  const shown = lines.slice(0, limit).map(line => `  ${line}`);
  return lines.length > limit ? [...shown, `  … ${say('and {0} more', lines.length - limit)}`] : shown;
}
