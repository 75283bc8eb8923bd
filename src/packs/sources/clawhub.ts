/** Finds skills in ClawHub, shows its verdict on them, and fetches a version whose files are checked one by one. */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { contentsOf } from '@telos/engine/undo';
import { beginningOf, type Sentence, sentence } from '@telos/protocol/text';
import { type Download, download, downloadJson, jsonOf } from './download.ts';
import {
  baseAddress,
  checkSame,
  type Found,
  fields,
  listOf,
  type Resolver,
  text,
  unpack,
  type Verdict,
} from './fetched.ts';
import { type Reach, type Source, sourceText, UnclearSource } from './sourceText.ts';

type Clawhub = Extract<Source, { kind: 'clawhub' }>;

const registryOf = (reach: Reach): string => baseAddress(reach, 'CLAWHUB_REGISTRY', 'https://clawhub.ai');

export const clawhub: Resolver<'clawhub', 'clawhub'> = {
  async resolve(source, reach) {
    const registry = registryOf(reach);
    const answer = await download(skillAddress(registry, source.slug, '', source.owner), {
      reach,
      allow: [404, 409, 403, 410, 423],
    });
    if (answer.status === 409) throw severalOwners(source, answer);
    if (answer.status === 404) throw missing(answer.url);
    if (answer.status >= 400) throw refusedBy(answer);
    const { skill, latestVersion, owner, moderation } = fields(jsonOf(answer));
    if (!skill) throw missing(answer.url);
    const handle = source.owner ?? text(fields(owner)['handle']) ?? '';
    const verdict = verdictOf(moderation, source);
    const version = source.version ?? text(fields(latestVersion)['version']);
    if (version === undefined) return fromGithub(source, handle, verdict, reach);
    return {
      resolved: { kind: 'clawhub', registry, slug: source.slug, ownerHandle: handle, version },
      from: `${new URL(registry).host}, ${handle === '' ? '' : `@${handle}/`}${source.slug} ${version}`,
      version,
      name: source.slug,
      ...(verdict && { verdict }),
    };
  },

  async fetch({ registry, slug, ownerHandle, version }, root, reach) {
    const listed = await downloadJson(
      skillAddress(registry, slug, `/versions/${encodeURIComponent(version)}`, ownerHandle),
      { reach },
    );
    const wanted = filesIn(fields(listed['version'])['files']);
    const query = new URLSearchParams({ slug, ...(ownerHandle && { ownerHandle }), version });
    const address = `${registry}/api/v1/download?${query}`;
    const answer = await download(address, { reach, allow: [403, 404, 410, 423] });
    if (answer.status >= 400) throw answer.status === 404 ? missing(address) : refusedBy(answer);
    const { archive, leftOut } = await unpack(answer, root, 0, reach.signal);
    await checkFiles(root, wanted, address);
    return { archive, leftOut };
  },
};

function skillAddress(registry: string, slug: string, more = '', owner = ''): string {
  return `${registry}/api/v1/skills/${encodeURIComponent(slug)}${more}${owner && `?${new URLSearchParams({ ownerHandle: owner })}`}`;
}

/** A skill without versions of its own lies in a repository of GitHub. */
async function fromGithub(
  source: Clawhub,
  owner: string,
  verdict: Verdict | undefined,
  reach: Reach,
): Promise<Found> {
  const address = skillAddress(registryOf(reach), source.slug, '/install', owner);
  const answer = await downloadJson(address, { reach });
  const { repo, path, commit } = fields(answer['github']);
  const [of = '', name = ''] = (text(repo) ?? '').split('/');
  if (answer['ok'] !== true || !/^[\w.-]+$/.test(of) || !/^[\w.-]+$/.test(name))
    throw new TelosError('pack', [
      sentence(
        'ClawHub has no version of {0} to install: {1}.',
        source.slug,
        text(answer['message']) ?? 'it gives no reason',
      ),
      sentence('Nothing was installed.'),
    ]);
  const { github } = await import('./github.ts');
  const found = await github.resolve(
    { kind: 'github', owner: of, repo: name, path: text(path) ?? '', ref: text(commit) ?? '' },
    reach,
  );
  return {
    ...found,
    name: source.slug,
    from: `ClawHub, which leads to ${found.from}`,
    ...(verdict && { verdict }),
  };
}

function verdictOf(moderation: unknown, { slug }: Clawhub): Verdict | undefined {
  const { isMalwareBlocked, isSuspicious, summary, reasonCodes, verdict } = fields(moderation);
  const reasons = listOf(reasonCodes)
    .filter(one => typeof one === 'string')
    .join(', ');
  const said = [text(verdict), text(summary) ?? reasons].filter(Boolean).join(': ');
  if (isMalwareBlocked === true)
    throw new TelosError('pack', [
      said
        ? sentence('ClawHub has blocked {0} as malware ({1}).', slug, said)
        : sentence('ClawHub has blocked {0} as malware.', slug),
      sentence('Nothing was installed, and no option installs it.'),
    ]);
  return isSuspicious === true ? { by: 'ClawHub', level: 'high', text: said || 'suspicious' } : undefined;
}

function severalOwners(source: Clawhub, answer: Download): UnclearSource {
  const matches = listOf(jsonOf(answer)['matches']).map(fields);
  const owners = matches.flatMap(
    one => text(one['ownerHandle']) ?? text(fields(one['owner'])['handle']) ?? [],
  );
  const choices = owners
    .filter(owner => /^[\w.-]+$/.test(owner))
    .map(owner => sourceText({ ...source, owner }));
  return new UnclearSource(`Several publishers of ClawHub have a skill '${source.slug}'.`, choices);
}

const missing = (address: string): TelosError =>
  new TelosError('pack', [
    sentence('ClawHub has nothing at {0}.', address),
    sentence('Nothing was installed.'),
  ]);

const refusals: Readonly<Record<number, Sentence>> = {
  403: sentence('ClawHub refuses to hand it out'),
  410: sentence('ClawHub has revoked it'),
  423: sentence('ClawHub is still looking at it; try again later'),
};

function refusedBy({ status, bytes }: Download): TelosError {
  const said = beginningOf(bytes.toString('utf8').trim(), 300);
  return new TelosError('pack', [
    {
      text: said ? '{0}: {1}.' : '{0}.',
      values: [refusals[status] ?? sentence('ClawHub answered with {0}', status), said],
    },
    sentence('Nothing was installed.'),
  ]);
}

function filesIn(list: unknown): ReadonlyMap<string, string> {
  return new Map(
    listOf(list)
      .map(fields)
      .map(({ path, sha256 }) => [text(path) ?? '', text(sha256) ?? '']),
  );
}

/** `_meta.json` is the registry's own and is in no list. */
async function checkFiles(root: string, wanted: ReadonlyMap<string, string>, address: string): Promise<void> {
  if (wanted.size === 0)
    throw new TelosError('pack', [
      sentence('ClawHub lists no files for {0}.', address),
      sentence('Nothing was installed.'),
    ]);
  if (!wanted.has('_meta.json')) await rm(join(root, '_meta.json'), { force: true });
  const contents = Object.entries((await contentsOf(root)) ?? {}).filter(([, value]) => value !== 'folder');
  for (const [path, value] of contents)
    checkSame(`sha256 of ${path}`, address, wanted.get(path) ?? 'no such file', value.slice(7, 71));
  for (const path of wanted.keys())
    if (!contents.some(([name]) => name === path))
      checkSame(`sha256 of ${path}`, address, wanted.get(path)!, 'missing');
}

export interface FoundSkill {
  /** What `install` takes. */
  source: string;
  slug: string;
  name: string;
  owner: string;
  version: string;
  summary: string;
  /** ClawHub's verdict, if it says one. */
  verdict: string;
}

/** Returns what ClawHub finds, best first. Throws TelosError `pack` if it cannot be reached. */
export async function searchClawHub(words: string, reach: Reach, limit = 20): Promise<FoundSkill[]> {
  const query = new URLSearchParams({ q: words, limit: String(limit) });
  const answer = await downloadJson(`${registryOf(reach)}/api/v1/search?${query}`, { reach });
  return listOf(answer['results'])
    .map(fields)
    .flatMap(one => {
      const slug = text(one['slug']);
      if (slug === undefined || !/^[\w.-]+$/.test(slug)) return [];
      const owner = text(one['ownerHandle']) ?? text(fields(one['owner'])['handle']) ?? '';
      const { isMalwareBlocked, isSuspicious, verdict } = fields(one['moderation']);
      const said =
        isMalwareBlocked === true ? 'malware' : isSuspicious === true ? 'suspicious' : (text(verdict) ?? '');
      return [
        {
          source: sourceText({ kind: 'clawhub', slug, ...(/^[\w.-]+$/.test(owner) && { owner }) }),
          slug,
          name: text(one['displayName']) ?? slug,
          owner,
          version: text(one['version']) ?? '',
          summary: text(one['summary']) ?? '',
          verdict: said,
        },
      ];
    });
}
