/** Fetches from web sites: a SKILL.md, an archive, a catalogue, or the skills that a site lists at a well-known place. */

import { TelosError } from '@telos/engine/errors';
import { packNameProblem } from '@telos/engine/skills';
import { sentence } from '@telos/protocol/text';
import { type Download, download, jsonOf, nothingInstalled, textLimit } from './download.ts';
import {
  checkSame,
  type Fetched,
  type Found,
  fields,
  listOf,
  type Resolver,
  text,
  unpack,
} from './fetched.ts';
import { type Reach, type Source, sourceText, UnclearSource } from './sourceText.ts';
import { TreeWriter } from './treeWriter.ts';

type Web = Extract<Source, { kind: 'web' }>;

/** The only schema of a well-known index that is understood. It is compared as a text and never fetched. */
const indexSchema = 'https://schemas.agentskills.io/discovery/0.2.0/schema.json';

export const web: Resolver<'web', 'url' | 'well-known'> = {
  async resolve(source, reach) {
    if (fileKind(source.url) === undefined) return fromIndex(source, reach);
    const answer = await keptDownload(source.url, reach);
    const { host } = new URL(source.url);
    const resolved = { kind: 'url', url: source.url, sha256: answer.sha256, path: '' } as const;
    return {
      resolved,
      from: `${host}${new URL(source.url).pathname}, sha256 ${answer.sha256.slice(0, 12)}`,
      version: answer.sha256.slice(0, 7),
      name: nameIn(source.url),
    };
  },

  async fetch(resolved, root, reach) {
    const answer = await keptDownload(resolved.url, reach);
    const wanted = resolved.kind === 'url' ? resolved.sha256 : resolved.digest.replace(/^sha256:/, '');
    // Before anything in it is read.
    checkSame('sha256', resolved.url, wanted, answer.sha256);
    const isText =
      resolved.kind === 'url' ? fileKind(resolved.url) !== 'archive' : resolved.type === 'skill-md';
    return isText ? alone(answer, root, resolved.url) : unpack(answer, root, 0, reach.signal);
  },
};

function fileKind(url: string): 'skill' | 'archive' | 'catalogue' | undefined {
  const path = new URL(url).pathname;
  if (/\/skill\.md$/i.test(path)) return 'skill';
  if (/\.(?:zip|tgz|tar\.gz)$/i.test(path)) return 'archive';
  return /marketplace\.json$/.test(path) ? 'catalogue' : undefined;
}

/** The name of the folder that a SKILL.md lies in, or of the archive. */
function nameIn(url: string): string {
  const { pathname, hostname } = new URL(url);
  const parts = pathname.split('/').filter(Boolean);
  const name =
    fileKind(url) === 'archive' ? parts.at(-1)?.replace(/\.(?:zip|tgz|tar\.gz)$/i, '') : parts.at(-2);
  return decoded(name || hostname);
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

async function keptDownload(url: string, reach: Reach): Promise<Download> {
  const kept = reach.kept.get(url) as Download | undefined;
  const answer =
    kept ??
    (await download(url, { reach, ...(fileKind(url) === 'archive' ? {} : { limit: 8 * textLimit }) }));
  reach.kept.set(url, answer);
  return answer;
}

async function alone({ bytes, url, sha256 }: Download, root: string, address: string): Promise<Fetched> {
  const writer = new TreeWriter(root, url);
  const name = fileKind(address) === 'catalogue' ? 'marketplace.json' : 'SKILL.md';
  // A login or an error page that comes with 200 is no skill, though any text could be one.
  if (/^\ufeff?\s*<(?:!doctype html|html)[\s>]/i.test(bytes.subarray(0, 1024).toString('utf8')))
    throw new TelosError('pack', [
      sentence('{0} answered with a web page and not with a {1}.', url, name),
      sentence('Check the address, and whether this network wants a sign-in.'),
      nothingInstalled,
    ]);
  const path = writer.admit({ path: name, kind: 'file' }, bytes.length);
  if (path !== undefined) await writer.write(path, bytes, false);
  return { archive: { url, sha256 }, leftOut: [] };
}

type IndexEntry = Readonly<Record<string, unknown>>;

interface SiteIndex {
  /** Address that was asked, and the one that answered. */
  indexUrl: string;
  url: string;
  schema: string;
  entries: readonly IndexEntry[];
}

/** Returns what a site says of the skills that it lists, or undefined for the address of a file or of one of the skills. */
export async function listedAt(
  source: Web,
  reach: Reach,
): Promise<{ name: string; description: string }[] | undefined> {
  if (source.name !== undefined || fileKind(source.url) !== undefined) return undefined;
  const { entries } = await readIndex(source, reach);
  return entries
    .map(({ name, description }) => ({ name: String(name), description: text(description) ?? '' }))
    .filter(({ name }) => isUsable(name));
}

/** True for a name that can be given behind `#`. */
const isUsable = (name: string): boolean => /^[^/\\@#]{1,100}$/.test(name);

async function readIndex(source: Web, reach: Reach): Promise<SiteIndex> {
  const indexUrl = /\/\.well-known\/agent-skills\/index\.json$/.test(new URL(source.url).pathname)
    ? source.url
    : `${source.url.replace(/[?#].*$/, '').replace(/\/+$/, '')}/.well-known/agent-skills/index.json`;
  const answer = await download(indexUrl, {
    reach,
    limit: textLimit,
    accept: 'application/json',
    allow: [404],
  });
  if (answer.status === 404)
    throw new TelosError('pack', [
      sentence(
        '{0} is not a SKILL.md, an archive or a catalogue, and the site lists no skills at {1}.',
        source.url,
        indexUrl,
      ),
      sentence('Nothing was installed.'),
    ]);
  const { $schema, skills } = jsonOf(answer);
  if ($schema !== indexSchema)
    throw new TelosError('pack', [
      sentence(
        '{0} has the schema {1}; this Telos reads {2}.',
        indexUrl,
        JSON.stringify($schema ?? null),
        indexSchema,
      ),
      sentence('Nothing was installed.'),
    ]);
  const entries = listOf(skills)
    .map(fields)
    .filter(({ name }) => text(name) !== undefined);
  return { indexUrl, url: answer.url, schema: $schema, entries };
}

/** Finds a skill in the index of a site. Throws UnclearSource if it lists several and none is named. */
async function fromIndex(source: Web, reach: Reach): Promise<Found> {
  const { indexUrl, url, schema, entries } = await readIndex(source, reach);
  const wanted = source.name === undefined ? entries : entries.filter(({ name }) => name === source.name);
  if (wanted.length !== 1) {
    const choices = entries
      .map(({ name }) => String(name))
      .filter(isUsable)
      .map(name => sourceText({ ...source, name }));
    const what =
      wanted.length > 1
        ? `lists several skills`
        : entries.length === 0
          ? 'lists no skills'
          : `lists no skill '${source.name}'`;
    throw new UnclearSource(`${indexUrl} ${what}.`, choices);
  }
  return foundEntry(wanted[0]!, url, schema);
}

function foundEntry(entry: IndexEntry, indexUrl: string, schema: string): Found {
  const [name, type, digest] = [
    text(entry['name']) ?? '',
    text(entry['type']) ?? '',
    text(entry['digest']) ?? '',
  ];
  const place = text(entry['url']);
  const problem = packNameProblem(name);
  if (problem !== undefined)
    throw new TelosError(
      'pack',
      `${indexUrl} offers a skill called ${JSON.stringify(name)}, which ${problem}. Nothing was installed.`,
    );
  if (type !== 'skill-md' && type !== 'archive')
    throw new TelosError('pack', [
      sentence(
        "{0} offers '{1}' as {2}, which is neither skill-md nor archive.",
        indexUrl,
        name,
        JSON.stringify(type),
      ),
      sentence('Nothing was installed.'),
    ]);
  if (!/^sha256:[\da-f]{64}$/.test(digest) || place === undefined || !URL.canParse(place, indexUrl))
    throw new TelosError('pack', [
      sentence("{0} gives no address or no sha256 for '{1}', so it cannot be checked.", indexUrl, name),
      sentence('Nothing was installed.'),
    ]);
  const url = new URL(place, indexUrl).href;
  const version = text(entry['version']) ?? digest.slice(7, 14);
  return {
    resolved: { kind: 'well-known', indexUrl, schema, name, type, digest, url },
    from: `${new URL(indexUrl).host}, ${name} ${version}`,
    version,
    name,
  };
}
