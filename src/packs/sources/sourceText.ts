/** Reads what a person types to say where a pack comes from. */

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Config, expandPath } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { isOneEditAway } from '@telos/engine/routing';
import type { ServerParts } from '@telos/engine/run';

/** What is asked for. `name` is one skill or plugin of it. */
export type Source = { name?: string | undefined } & (
  | { kind: 'folder'; path: string }
  /** `ref` is a tag, a branch or a commit; `tail` is what an address has after `/tree/`, in which a ref and a path cannot be distinguished. */
  | { kind: 'github'; owner: string; repo: string; path: string; ref?: string; tail?: string }
  | { kind: 'git'; url: string; path: string; ref?: string }
  | { kind: 'npm'; package: string; version?: string }
  | { kind: 'clawhub'; slug: string; owner?: string; version?: string }
  | { kind: 'web'; url: string }
  /** Skills of an MCP server. `agent` has it; without one, the only agent that does. */
  | { kind: 'mcp'; server: string; agent?: string }
);

export type SourceProgress =
  | { kind: 'resolving'; source: string }
  | { kind: 'waiting'; host: string; seconds: number }
  | { kind: 'downloading'; host: string; bytes: number; of?: number }
  | { kind: 'looking'; pack: string };

/** What a fetch may reach, how it is stopped, and whom it tells how far it is. */
export interface Reach {
  signal: AbortSignal;
  /** Origins that the person named: with the source itself or in the environment. They may be on this machine or its network. */
  origins: ReadonlySet<string>;
  env: Config['env'];
  home: string;
  progress?: ((event: SourceProgress) => void) | undefined;
  /** What was downloaded to find out a version, for the fetch that follows. */
  kept: Map<string, unknown>;
  /** The user's MCP servers. Missing for a source that someone else has named. */
  servers?: () => Promise<ServerParts>;
}

/** Thrown if the source has to be said more exactly. `choices` are complete sources. The exit code is 2. */
export class UnclearSource extends TelosError {
  readonly choices: readonly string[];

  constructor(message: string, choices: readonly string[] = []) {
    super('pack', message);
    this.choices = choices;
  }
}

export const sourceForms = [
  './folder[#name]',
  'clawhub:[@owner/]name[@version]',
  'github:owner/repo[/path][@ref][#name]',
  'git+https://host/repo.git[//folder][@ref][#name]',
  'npm:[@scope/]package[@version][#name]',
  'mcp:[agent:]server[/skill]',
  'https://host/… (SKILL.md, .zip, .tar.gz, marketplace.json, or a site with skills)',
];

/** Parts of names on GitHub, in npm and in ClawHub. None begins with a dot or a hyphen. */
const word = /^[A-Za-z0-9_][\w.-]{0,99}$/;
/** As git allows a ref, without what a command line or a revision's grammar would read in another way. */
const refPattern = /^(?![-./])(?!.*(?:\.\.|\/\/|@\{|\.lock(?:\/|$)))[\w./+@-]{1,200}(?<![./])$/;

/**
 * Returns what the text asks for. Relative paths start at `cwd`. Throws UnclearSource, with the grammar and the nearest form, for a
 * text that is none of the forms.
 */
export function parseSource(text: string, { cwd, home }: Pick<Config, 'cwd' | 'home'>): Source {
  const given = text.trim();
  if (given === '') throw unclear('Nothing was given to install.');
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(given))
    throw unclear(`${JSON.stringify(given)} has invisible characters. Type the source yourself.`);
  const scheme = /^([A-Za-z][\w+.-]+):(?!\\)/.exec(given)?.[1]?.toLowerCase();
  const rest = given.slice((scheme?.length ?? -1) + 1);
  switch (scheme) {
    case undefined:
      return /^[\w-]+@[\w.-]+:/.test(given) ? gitSource(given, '') : folderSource(given, cwd, home);
    case 'file':
      return fileSource(given);
    case 'github':
      return githubSource(rest, given);
    case 'clawhub':
      return clawhubSource(rest, given);
    case 'npm':
      return npmSource(rest, given);
    case 'mcp':
      return mcpSource(rest, given);
    case 'git+https':
    case 'git+http':
    case 'git+ssh':
      return gitSource(given.slice(4), given);
    case 'https':
    case 'http':
      return webSource(given);
    default:
      throw unclear(`${scheme}: is not a kind of source.`, nearest(scheme));
  }
}

function folderSource(given: string, cwd: string, home: string): Source {
  // `owner/repo` alone is what other programs take for GitHub; here it is a folder, and the other reading is said if it is missing.
  const path = expandPath(given, home, cwd);
  const [before, name] = splitAtLast(given, '#');
  // A folder may have the mark in its name.
  if (name === undefined || !isName(name) || existsSync(path)) return { kind: 'folder', path };
  const whole = expandPath(before, home, cwd);
  return existsSync(whole) ? { kind: 'folder', path: whole, name } : { kind: 'folder', path };
}

function fileSource(given: string): Source {
  try {
    return { kind: 'folder', path: fileURLToPath(given) };
  } catch {
    throw unclear(`${given} is not the address of a folder on this machine.`, 'file:///absolute/path');
  }
}

/** Splits `body[@ref][#name]`. */
function parts(
  rest: string,
  given: string,
): { body: string; ref: string | undefined; name: string | undefined } {
  const [before = '', name] = splitAtLast(rest, '#');
  const [body = '', ref] = splitAtLast(before, '@');
  if (name !== undefined && !isName(name))
    throw unclear(`${given}: '${name}' after # is not the name of a skill.`);
  if (ref !== undefined && !refPattern.test(ref))
    throw unclear(`${given}: '${ref}' after @ is not a tag, a branch, a commit or a version.`);
  return { body, ref, name };
}

/** A sign at the beginning belongs to the text, as in `@scope/name`. */
function splitAtLast(text: string, sign: string): [string, string | undefined] {
  const at = text.lastIndexOf(sign);
  return at <= 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

const isName = (name: string): boolean => name !== '' && name.length <= 100 && !/[/\\@#]|^\.+$/.test(name);

const withName = (name: string | undefined): { name?: string } => (name === undefined ? {} : { name });

function githubSource(rest: string, given: string): Source {
  const { body, ref, name } = parts(rest, given);
  const [owner = '', repo = '', ...path] = body.replace(/\/$/, '').split('/');
  const isWhole = word.test(owner) && !owner.includes('.') && isRepo(repo) && path.every(isPathPart);
  if (!isWhole) throw unclear(`${given} does not name a repository of GitHub.`, sourceForms[2]);
  const place = { owner, repo: repo.replace(/\.git$/, ''), path: path.join('/') };
  return { kind: 'github', ...place, ...(ref !== undefined && { ref }), ...withName(name) };
}

const isRepo = (repo: string): boolean =>
  /^[\w.-]{1,100}$/.test(repo) && !/^\.+$/.test(repo) && !repo.startsWith('-');
const isPathPart = (part: string): boolean =>
  part !== '' && part !== '.' && part !== '..' && !/[\\?*]/.test(part);

function clawhubSource(rest: string, given: string): Source {
  const [body, version] = splitAtLast(rest, '@');
  const [, owner, slug = ''] = /^(?:@?([\w.-]+)\/)?([\w.-]+)$/.exec(body) ?? [];
  const isWhole = word.test(slug) && !slug.includes('..') && (owner === undefined || word.test(owner));
  if (!isWhole || (version !== undefined && !/^[\w.+-]{1,100}$/.test(version)))
    throw unclear(`${given} does not name a skill of ClawHub.`, sourceForms[1]);
  return { kind: 'clawhub', slug, ...(owner && { owner }), ...(version !== undefined && { version }) };
}

function npmSource(rest: string, given: string): Source {
  const { body, ref, name } = parts(rest, given);
  if (
    !/^(?:@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~-][\w.~-]*$/i.test(body) ||
    body.startsWith('-') ||
    body.length > 214
  )
    throw unclear(`${given} does not name a package of npm.`, sourceForms[4]);
  return { kind: 'npm', package: body, ...(ref !== undefined && { version: ref }), ...withName(name) };
}

function mcpSource(rest: string, given: string): Source {
  const [, agent, server, name] = /^(?:([^:/#]+):)?([^:/#]+)(?:\/([^/#]+))?$/.exec(rest) ?? [];
  if (server === undefined) throw unclear(`${given} does not name an MCP server.`, sourceForms[5]);
  return { kind: 'mcp', server, ...(agent !== undefined && { agent }), ...withName(name) };
}

/** `given` is empty for `user@host:path`. */
function gitSource(address: string, given: string): Source {
  const [before, name] = splitAtLast(address, '#');
  if (name !== undefined && !isName(name))
    throw unclear(`${address}: '${name}' after # is not the name of a skill.`);
  // The `@` of a user stands before the host, and never in what follows it.
  const start = given === '' ? before.indexOf(':') : before.indexOf('/', before.indexOf('//') + 2);
  const at = start < 0 ? -1 : before.indexOf('@', start);
  const [whole, ref] = at < 0 ? [before, undefined] : [before.slice(0, at), before.slice(at + 1)];
  const slashes = start < 0 ? -1 : whole.indexOf('//', start);
  const url = slashes < 0 ? whole : whole.slice(0, slashes);
  const path = slashes < 0 ? '' : whole.slice(slashes + 2).replace(/\/$/, '');
  const host = given === '' ? /^[\w-]+@([\w.-]+):(.+)$/.exec(url)?.[1] : hostIn(url);
  const isWhole =
    host !== undefined && host !== '' && !/^-|[\s"'`$;&|<>\\]|::/.test(url) && !host.startsWith('-');
  const isFolder = path === '' || path.split('/').every(isPathPart);
  if (!isWhole || !isFolder || (ref !== undefined && !refPattern.test(ref)))
    throw unclear(`${given || address} is not the address of a git repository.`, sourceForms[3]);
  return { kind: 'git', url, path, ...(ref !== undefined && { ref }), ...withName(name) };
}

function hostIn(url: string): string | undefined {
  try {
    const { hostname, username, password, protocol } = new URL(url);
    if (password !== '' || (username !== '' && protocol !== 'ssh:')) return undefined;
    return hostname;
  } catch {
    return undefined;
  }
}

function webSource(given: string): Source {
  let url: URL;
  try {
    url = new URL(given);
  } catch {
    throw unclear(`${given} is not a web address.`);
  }
  if (url.username !== '' || url.password !== '')
    throw unclear(`${url.origin}… contains a user name or password. Leave it out.`);
  const name = url.hash === '' ? undefined : decoded(url.hash.slice(1));
  if (name !== undefined && !isName(name))
    throw unclear(`${given}: '${name}' after # is not the name of a skill.`);
  url.hash = '';
  if (url.protocol === 'https:' && /^(?:www\.)?github\.com$/.test(url.hostname))
    return githubPage(url, given, name);
  if (url.pathname.endsWith('.git'))
    return gitSource(`${url.href}${name === undefined ? '' : `#${name}`}`, given);
  return { kind: 'web', url: url.href, ...withName(name) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function githubPage({ pathname, href }: URL, given: string, name: string | undefined): Source {
  const [owner = '', repo = '', word, ...tail] = decoded(pathname).slice(1).replace(/\/$/, '').split('/');
  const base = githubSource(`${owner}/${repo}`, given) as Extract<Source, { kind: 'github' }>;
  if (word === undefined) return { ...base, ...withName(name) };
  if (word === 'releases' || word === 'archive' || word === 'raw')
    return { kind: 'web', url: href, ...withName(name) };
  if ((word !== 'tree' && word !== 'blob') || tail.length === 0 || !tail.every(isPathPart))
    throw unclear(`${given} is a GitHub page without a pack.`, sourceForms[2]);
  const file = word === 'blob' && /^skill\.md$/i.test(tail.at(-1) ?? '') ? tail.slice(0, -1) : tail;
  return { ...base, tail: file.join('/'), ...withName(name) };
}

/** Returns the source as text in its shortest form. `parseSource` reads it back. */
export function sourceText(source: Source): string {
  const name = source.name === undefined ? '' : `#${source.name}`;
  switch (source.kind) {
    case 'folder':
      return `${source.path}${name}`;
    case 'github': {
      const { owner, repo, path, ref, tail } = source;
      if (tail !== undefined) return `https://github.com/${owner}/${repo}/tree/${tail}${name}`;
      return `github:${owner}/${repo}${path && `/${path}`}${at(ref)}${name}`;
    }
    case 'git':
      return `${/^[\w-]+@/.test(source.url) ? '' : 'git+'}${source.url}${source.path && `//${source.path}`}${at(source.ref)}${name}`;
    case 'npm':
      return `npm:${source.package}${at(source.version)}${name}`;
    case 'clawhub':
      return `clawhub:${source.owner === undefined ? '' : `@${source.owner}/`}${source.slug}${at(source.version)}`;
    case 'mcp': {
      const { agent, server, name: skill } = source;
      return `mcp:${agent === undefined ? '' : `${agent}:`}${server}${skill === undefined ? '' : `/${skill}`}`;
    }
    case 'web':
      return `${source.url}${name}`;
  }
}

const at = (ref: string | undefined): string => (ref === undefined ? '' : `@${ref}`);

/** Returns the source without its version: two that differ in nothing else lead to versions of the same pack. */
export function withoutVersion(source: Source): string {
  if (source.kind === 'github') {
    const { ref: _ref, tail, ...rest } = source;
    return sourceText({
      ...rest,
      path: rest.path || (tail?.split('/').slice(1).join('/') ?? ''),
    }).toLowerCase();
  }
  const { version: _version, ref: _ref, ...rest } = source as Source & { version?: string; ref?: string };
  return sourceText(rest as Source);
}

/** Returns the source with another version. Throws UnclearSource for a kind that has none. */
export function atVersion(source: Source, version: string): Source {
  switch (source.kind) {
    case 'github': {
      const { tail: _tail, ...rest } = source;
      return parseVersion({ ...rest, ref: version }, version);
    }
    case 'git':
      return parseVersion({ ...source, ref: version }, version);
    case 'npm':
    case 'clawhub':
      return parseVersion({ ...source, version }, version);
    default:
      throw new UnclearSource(`${sourceText(source)} has no versions to choose from.`);
  }
}

function parseVersion(source: Source, version: string): Source {
  if (refPattern.test(version)) return source;
  throw new UnclearSource(`'${version}' is not a tag, a branch, a commit or a version.`);
}

function unclear(what: string, form?: string): UnclearSource {
  const near = form === undefined ? '' : ` Did you mean ${form}?`;
  return new UnclearSource(`${what}${near} A source is one of: ${sourceForms.join(' · ')}`);
}

/** Returns the form whose beginning is most like the scheme. */
function nearest(scheme: string): string | undefined {
  const starts = ['clawhub', 'github', 'git', 'npm', 'mcp', 'https'];
  const near =
    starts.find(one => isOneEditAway(scheme, one)) ??
    starts.find(one => scheme.startsWith(one.slice(0, 3)) || one.startsWith(scheme.slice(0, 3)));
  return near && sourceForms.find(form => form.startsWith(near));
}
