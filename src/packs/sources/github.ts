/** Finds the commit that a ref of GitHub means, and fetches the files of exactly that commit. */

import { TelosError } from '@telos/engine/errors';
import { asSaid, type Sentence, sentence } from '@telos/protocol/text';
import { type Download, download, downloadJson } from './download.ts';
import { baseAddress, type Found, fields, type Resolver, text, unpack } from './fetched.ts';
import { type Reach, type Source, UnclearSource } from './sourceText.ts';
import { repositoryLimits } from './treeWriter.ts';

type Github = Extract<Source, { kind: 'github' }>;

export const isCommit = (ref: string): boolean => /^[\da-f]{40}$/.test(ref);

const api = (reach: Reach): string => baseAddress(reach, 'TELOS_GITHUB_API_URL', 'https://api.github.com');
const token = ({ env }: Reach): string | undefined => env['GITHUB_TOKEN'] || env['GH_TOKEN'] || undefined;

export const github: Resolver<'github', 'github'> = {
  async resolve(source, reach) {
    const { ref, commit, path } = await commitOf(source, reach);
    const { owner, repo } = source;
    const page = `github.com/${owner}/${repo}`;
    const short = commit.slice(0, 7);
    const found: Found = {
      resolved: { kind: 'github', url: `https://${page}`, ref, commit, path },
      from: `${page}${path && `/${path}`} at ${short}${ref === '' || ref === commit ? '' : `, ${ref}`}`,
      version: short,
      name: repo,
    };
    return found;
  },

  async fetch({ url, commit }, root, reach) {
    const place = new URL(url).pathname;
    const key = token(reach);
    const codeload = baseAddress(reach, 'TELOS_GITHUB_DOWNLOAD_URL', 'https://codeload.github.com');
    // A private repository is handed out by the API alone, which leads on without the token.
    const address = key
      ? `${api(reach)}/repos${place}/tarball/${commit}`
      : `${codeload}${place}/tar.gz/${commit}`;
    const answer = await download(address, { reach, token: key, allow: [404] });
    if (answer.status === 404) throw missing(address, sentence('commit {0}', commit), reach);
    return unpack(answer, root, 1, reach.signal, repositoryLimits);
  },
};

/** The longest beginning of a page's path that is a ref wins, as on GitHub itself. */
async function commitOf(
  source: Github,
  reach: Reach,
): Promise<{ ref: string; commit: string; path: string }> {
  const { path, ref, tail } = source;
  if (tail === undefined) {
    const commit = ref !== undefined && isCommit(ref) ? ref : await lookUp(source, ref ?? 'HEAD', reach);
    if (commit === undefined)
      throw missing(
        addressOf(source, ref ?? 'HEAD', reach),
        ref === undefined ? sentence('repository') : asSaid(ref),
        reach,
      );
    return { ref: ref ?? '', commit, path };
  }
  const parts = tail.split('/');
  for (let length = Math.min(parts.length, mostRefParts); length > 0; length--) {
    const candidate = parts.slice(0, length).join('/');
    const commit = isCommit(candidate) ? candidate : await lookUp(source, candidate, reach);
    if (commit !== undefined) return { ref: candidate, commit, path: parts.slice(length).join('/') };
  }
  throw missing(addressOf(source, parts[0]!, reach), asSaid(tail), reach);
}

/** Names of branches have few slashes, and each costs a request. */
const mostRefParts = 5;

const addressOf = ({ owner, repo }: Github, ref: string, reach: Reach): string =>
  `${api(reach)}/repos/${owner}/${repo}/commits/${ref.split('/').map(encodeURIComponent).join('/')}`;

async function lookUp(source: Github, ref: string, reach: Reach): Promise<string | undefined> {
  const address = addressOf(source, ref, reach);
  const accept = 'application/vnd.github.sha';
  const answer = await download(address, {
    reach,
    accept,
    token: token(reach),
    allow: [401, 403, 404, 409, 422],
    limit: 1024 * 1024,
  });
  if (answer.status === 401 || answer.status === 403) throw limited(answer);
  if (answer.status >= 400) return undefined;
  if (answer.url !== address) await checkOwner(source, reach);
  const commit = answer.bytes.toString('utf8').trim();
  if (isCommit(commit)) return commit;
  throw new TelosError('pack', [
    sentence('{0} did not answer with a commit.', address),
    sentence('Nothing was installed.'),
  ]);
}

/** GitHub leads on from a repository that was renamed, or given to someone else. No one has asked for that one. */
async function checkOwner({ owner, repo }: Github, reach: Reach): Promise<void> {
  const answer = await downloadJson(`${api(reach)}/repos/${owner}/${repo}`, { reach, token: token(reach) });
  const now = text(fields(answer)['full_name']) ?? '';
  if (now.toLowerCase() === `${owner}/${repo}`.toLowerCase()) return;
  throw new UnclearSource(`${owner}/${repo} is now served by ${now}. Nothing was installed.`, [
    `github:${now}`,
  ]);
}

function missing(address: string, what: Sentence, reach: Reach): TelosError {
  const why = token(reach)
    ? sentence('GitHub has no {0} at {1}, or your GITHUB_TOKEN may not see it.', what, address)
    : sentence('GitHub has no {0} at {1}, or it is private: set GITHUB_TOKEN.', what, address);
  return new TelosError('pack', [why, sentence('Nothing was installed.')]);
}

function limited({ headers, status, url }: Download): TelosError {
  const isUsedUp = headers['x-ratelimit-remaining'] === '0';
  const until = new Date(Number(headers['x-ratelimit-reset'] ?? 0) * 1000);
  const isKnown = !Number.isNaN(until.getTime()) && until.getTime() !== 0;
  const usedUp = isKnown
    ? sentence('GitHub answers no more requests until {0}.', until.toISOString())
    : sentence('GitHub answers no more requests.');
  const why = isUsedUp
    ? [usedUp, sentence('With GITHUB_TOKEN it answers many more.')]
    : [sentence('GitHub answered with {0} for {1}.', status, url), sentence('Check GITHUB_TOKEN.')];
  return new TelosError('pack', [...why, sentence('Nothing was installed.')]);
}
