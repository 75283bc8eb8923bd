/** Reads the catalogues of plugins that editors know as marketplaces. */

import { TelosError } from '@telos/engine/errors';
import { sentence } from '@telos/protocol/text';
import { fields, listOf, text } from './fetched.ts';
import { isCommit } from './github.ts';
import { parseSource, type Source } from './sourceText.ts';

/** Something in a tree that can be installed. */
export interface Candidate {
  name: string;
  description: string;
  /** Folder below the tree, with `/`. Empty for the tree itself. */
  path: string;
  /** Folders of skills below `path` that make up the pack. Missing if `path` as a whole is the pack. */
  skills?: readonly string[];
  /** Somewhere else, where a catalogue leads. */
  elsewhere?: { source: Source; sha?: string };
  /** MCP servers that the catalogue alone names, or the files that it says have some. */
  servers?: readonly string[];
  /** Why it cannot be installed. */
  problem?: string;
}

interface Place {
  /** The catalogue was fetched alone, so nothing lies beside it. */
  alone: boolean;
  file: string;
  isFolder(path: string): Promise<boolean>;
}

/** Returns an entry for each plugin, one with its problem where it cannot be installed. Throws TelosError `pack` if there are none. */
export async function pluginsIn(
  manifest: Readonly<Record<string, unknown>>,
  path: string,
  place: Place,
): Promise<Candidate[]> {
  const plugins = listOf(manifest['plugins'])
    .map(fields)
    .filter(({ name }) => text(name) !== undefined);
  if (plugins.length === 0)
    throw new TelosError('pack', [
      sentence('{0} lists no plugins.', place.file),
      sentence('Nothing was installed.'),
    ]);
  const top = text(fields(manifest['metadata'])['pluginRoot']) ?? '';
  return Promise.all(plugins.map(plugin => candidateOf(plugin, path, top, place)));
}

async function candidateOf(
  plugin: Readonly<Record<string, unknown>>,
  path: string,
  top: string,
  place: Place,
): Promise<Candidate> {
  const description = text(plugin['description']) ?? '';
  const base = { name: String(plugin['name']), description, path, ...serversIn(plugin) };
  const { source } = plugin;
  if (typeof source !== 'string') return { ...base, ...elsewhere(fields(source)) };
  if (place.alone)
    return {
      ...base,
      problem: `is next to ${place.file}, which was fetched alone. Install it from the repository of the catalogue.`,
    };
  const folder = inner(source, '') ?? '';
  const candidates = [top, ''].map(root => inner(`${root}/${folder}`, path));
  if (inner(source, path) === undefined)
    return { ...base, problem: `is at ${JSON.stringify(source)}, which leads out of the catalogue.` };
  for (const candidate of candidates) {
    const below = candidate?.slice(path === '' ? 0 : path.length + 1);
    if (candidate === undefined || below === undefined || (below !== '' && !(await place.isFolder(below))))
      continue;
    return { ...base, path: candidate, ...skillsIn(plugin) };
  }
  return { ...base, problem: `names the folder ${JSON.stringify(source)}, which does not exist.` };
}

/** An entry can name MCP servers, or files that have some. */
function serversIn({ mcpServers }: Readonly<Record<string, unknown>>): { servers?: string[] } {
  const servers = [mcpServers]
    .flat()
    .flatMap(one => (typeof one === 'string' ? one : Object.keys(fields(one))));
  return servers.length > 0 ? { servers } : {};
}

/** An entry can name its skills itself. Then they alone are the pack. */
function skillsIn(plugin: Readonly<Record<string, unknown>>): { skills?: string[] } {
  const named = Array.isArray(plugin['skills']) ? plugin['skills'] : [];
  const skills = named
    .flatMap(one => (typeof one === 'string' ? (inner(one, '') ?? []) : []))
    .filter(one => one !== '');
  return skills.length > 0 ? { skills } : {};
}

/** Returns the path below `base`, or undefined if it leads out of it. */
function inner(given: string, base: string): string | undefined {
  if (/\\|^[A-Za-z]:|\0/.test(given)) return undefined;
  const parts = given.split('/').filter(part => part !== '' && part !== '.');
  if (parts.includes('..')) return undefined;
  return [...(base === '' ? [] : base.split('/')), ...parts].join('/');
}

function elsewhere(source: Readonly<Record<string, unknown>>): Pick<Candidate, 'elsewhere' | 'problem'> {
  const [ref, sha, path] = [text(source['ref']), text(source['sha']), text(source['path']) ?? ''];
  const kind = text(source['source']) ?? '';
  if (sha !== undefined && !isCommit(sha))
    return { problem: `names the commit ${JSON.stringify(sha)}, which is not one.` };
  const folder = inner(path, '');
  if (folder === undefined)
    return { problem: `is at ${JSON.stringify(path)}, which leads out of its repository.` };
  try {
    const found = otherSource(kind, source, sha ?? ref, folder);
    return found
      ? { elsewhere: { source: found, ...(sha && { sha }) } }
      : { problem: `comes from ${JSON.stringify(kind)}, which Telos does not install from.` };
  } catch (error) {
    return { problem: `has no usable source: ${error instanceof Error ? error.message : String(error)}` };
  }
}

const nowhere = { cwd: '/', home: '/' };

function otherSource(
  kind: string,
  source: Readonly<Record<string, unknown>>,
  ref: string | undefined,
  path: string,
): Source | undefined {
  const version = ref === undefined ? '' : `@${ref}`;
  switch (kind) {
    case 'github':
      return parseSource(`github:${text(source['repo']) ?? ''}${path && `/${path}`}${version}`, nowhere);
    case 'url':
    case 'git-subdir': {
      const parsed = parseSource(`git+${text(source['url']) ?? ''}${version}`, nowhere);
      return parsed.kind === 'git' ? { ...parsed, path } : undefined;
    }
    case 'npm': {
      if (source['registry'] !== undefined) return undefined;
      const wanted = text(source['version']);
      return parseSource(
        `npm:${text(source['package']) ?? ''}${wanted === undefined ? '' : `@${wanted}`}`,
        nowhere,
      );
    }
    default:
      return undefined;
  }
}
