/**
 * Finds the special files that a skill's text says it writes: those that instruct agents, notes beside another runner's settings, and
 * a folder of its own name in the home folder. The card names them, and its acceptance covers them.
 */
import { existsSync, statSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import { isInside, realPlace } from '../files/paths.ts';
import { isSensitive, obeyedAt } from '../files/sensitiveNames.ts';

/** A text that names more does not say what it does. */
const mostPromised = 20;
/** In characters. No text that is meant to be followed is longer. */
const longestText = 200_000;

/**
 * A path between characters that can be around one. Letters of other alphabets are in no path that counts. No character is in both
 * sets, so the time grows only linearly with the text.
 */
const writtenPath =
  /(?<=^|[\s`'"([|,*])((?:~\/|\$HOME\/|\$\{HOME\}\/|\.\/)?(?:[\w.<>{}-]+\/)*[\w.<>{}-]*[\w}>]\/?|(?:~\/)?(?:[\w.-]+\/)+)(?=$|[\s`'")\]|,;:!?*]|\.(?:$|[\s*)"']))/g;
/** Words before a path in the same line that make it a promise. */
const writes =
  /(?:\b(?:writ|wrote|sav|creat|updat|append|add|keep|kept|generat|stor|output|produc|maintain|record|edit|persist|draft|touch|scaffold)\w*\b|>>?)[^\n]{0,80}$/i;
const denied = /\b(?:no|not|never|don't|without|instead of)\b[^.\n]*$/i;

/** Names of notes beside another runner's settings. By other names, that runner can obey them. */
const noteNames =
  /^(?:notes?|memory|memories|logs?|state|data|plans?|reports?|tasks?|context|sessions?|docs|research|outputs?|results?|drafts?|archive|journal|reflections?|learnings?|history|specs?|work|tmp)$/;
/** Folders of the home folder that programs use by these names. A skill can have any name. */
const ofPrograms =
  /^(?:config|local|cache|bin|lib|opt|var|tmp|ssh|skills?|telos|openclaw|clawdbot|clawd|moltbot|cargo|rustup|nvm|pyenv|rbenv|asdf|sdkman|volta|bun|deno|npm|nodegyp|yarn|pnpm|ivy2?|sbt|m2|gradle|java|dotnet|nuget|android|docker|podman|colima|lima|vagrant(d)?|ansible|terraform(d)?|wine|steam|pki|dbus|gnome2?|kde4?|fonts|icons|themes|vscode\w*|cursor\w*|vim|emacs(d)?|ohmyzsh|ohmybash|tmux|zsh|bash|fish|git|svn|hg|ipython|jupyter|matplotlib|ollama|lmstudio|conda|condarc|gem|bundle|cpan|stack|cabal|ghcup|opam|julia|r|trash|system|library|applications?|desktop|documents|downloads)$/;
/** Parts of names by which runners look for what they obey, whatever the skill is called. */
const ofRunners =
  /agent|skill|hook|command|setting|config|rule|plugin|style|mcp|server|prompt|mode|extension|instruction|workflow|steering|snapshot/i;
const dataEnding =
  /\.(?:md|markdown|txt|json|jsonl|ndjson|csv|tsv|html?|xml|ya?ml|log|db|sqlite3?|pdf|png|jpe?g|svg|webp|docx|xlsx|pptx|ics)$/i;
const plainName = /^[A-Za-z0-9_][\w .@+-]*$/;

/** Returns what the card says, as the text has it: `AGENTS.md`, `SKILL.md`, `.claude/notes`, `~/.own_name`. `names` are its own. */
export function promisedIn(text: string, names: readonly string[]): string[] {
  const own = new Set(names.filter(name => /^[\w .-]+$/.test(name)).map(bare));
  const found = new Set<string>();
  for (const line of text.slice(0, longestText).split('\n')) {
    for (const match of line.matchAll(writtenPath)) {
      const path = match[1]!.replace(/^\.\//, '').replace(/^\$(?:HOME|\{HOME\})\//, '~/');
      if (path.includes('..')) continue;
      const before = line.slice(Math.max(0, match.index - 100), match.index);
      const promise = path.startsWith('~/') ? homeFolder(path, own) : noteFile(path, own);
      const said = promise ?? (path.endsWith('.md') && writes.test(before) ? instructions(path) : undefined);
      if (said !== undefined && found.size < mostPromised && !denied.test(before)) found.add(said);
    }
  }
  return [...found].sort();
}

const bare = (name: string): string => name.replace(/[ ._-]/g, '').toLowerCase();

/** Returns the folder in the home folder that has one of the skill's own names. */
function homeFolder(path: string, own: ReadonlySet<string>): string | undefined {
  const [, folder = ''] = /^~\/(\.[A-Za-z0-9][\w-]*)(?:\/|$)/.exec(path) ?? [];
  const name = bare(folder);
  if (name.length < 3 || !own.has(name) || ofPrograms.test(name)) return undefined;
  const isOfOthers = [folder, `${folder}/x.md`].some(
    each => isSensitive(`/${each}`) || obeyedAt(`/home/${each}`, each) !== undefined,
  );
  return isOfOthers ? undefined : `~/${folder}`;
}

/** Returns the folder, or file, of notes in a hidden folder of the working folder that otherwise configures an agent. */
function noteFile(path: string, own: ReadonlySet<string>): string | undefined {
  const [top = '', name = '', ...rest] = path.replace(/\/$/, '').split('/');
  if (!/^\.[a-z]+$/.test(top) || obeyedAt(`/${top}/x.md`, `${top}/x.md`)?.by !== 'other agents')
    return undefined;
  const stem = name.replace(dataEnding, '');
  const isOwn = /[-_]/.test(stem) && own.has(bare(stem.replace(/\.local$/, ''))) && !ofRunners.test(stem);
  if (!/^[\w.-]+$/.test(name) || !(isOwn || noteNames.test(stem))) return undefined;
  if (isSensitive(name) || obeyedAt(name, name) !== undefined) return undefined;
  const isFile = stem !== name && rest.length === 0 && !path.endsWith('/');
  return isFile || (stem === name && !name.includes('.')) ? `${top}/${name}` : undefined;
}

/** Returns a text file that instructs agents and is not in a folder that others obey. */
function instructions(path: string): string | undefined {
  const name = posix.basename(path);
  if (!path.endsWith('.md') || obeyedAt(name, name)?.kind !== 'agent') return undefined;
  // The folder of a new skill has the name that the person gives it.
  if (name === skillName) return name;
  const folders = path.split('/').slice(0, -1);
  return folders.every(isPlainFolder) ? path : undefined;
}

const skillName = 'SKILL.md';

const isPlainFolder = (name: string): boolean =>
  plainName.test(name) && obeyedAt(`/${name}/x.md`, `${name}/x.md`) === undefined;

/** Where the promises of a card hold. */
export interface PromisePlaces {
  workingDir: string;
  home: string;
  /** The files that this run has made by such a promise. */
  made?: ReadonlySet<string>;
}

/**
 * Whether one of the promises is about the real path. A link at the place that was promised leads to another path, which none is
 * about. A skill is promised only where none is yet.
 */
export function isPromised(path: string, promised: readonly string[], places: PromisePlaces): boolean {
  const { workingDir, home, made } = places;
  return promised.some(promise => {
    const isHome = promise.startsWith('~/');
    const base = realPlace(isHome ? home : workingDir);
    if (base === undefined || !isInside(base, path)) return false;
    if (promise === skillName) return isNewSkill(path, relative(base, path), made);
    const place = join(base, isHome ? promise.slice(2) : promise);
    if (dataEnding.test(promise)) return place === path;
    return isInside(place, path) && isPlainData(path, relative(place, path));
  });
}

function isNewSkill(path: string, below: string, made: ReadonlySet<string> | undefined): boolean {
  const names = below.split(sep);
  const isPlace = names.at(-1) === skillName && names.slice(0, -1).every(isPlainFolder);
  return isPlace && (made?.has(path) === true || !existsSync(path));
}

/** A folder, or data that is only read: no program, nothing that programs or agents obey, nothing that holds secrets. */
function isPlainData(path: string, below: string): boolean {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (below === '') return isFolder;
  return (
    below.split(sep).every(name => plainName.test(name)) &&
    (isFolder || dataEnding.test(below)) &&
    !isSensitive(path) &&
    obeyedAt(below, below) === undefined
  );
}
