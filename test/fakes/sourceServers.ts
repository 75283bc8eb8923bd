/** The servers that packs come from, on loopback and in their own wire: ClawHub, GitHub with its downloads, an npm registry, web sites. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TempFolder, tempFolder } from './tempFolder.ts';

export type TestFiles = Readonly<Record<string, string | Uint8Array>>;

export interface SourceServers {
  url: string;
  /** Variables that lead Telos here. */
  env: Record<string, string>;
  /** Method, path and authorization of each request. */
  seen: { path: string; method: string; token: string | undefined }[];
  /** What a path answers: bytes, or whatever the function writes. Wins over everything else. */
  answers: Map<string, Answer>;
  github: FakeGithub;
  npm: FakeNpm;
  clawhub: FakeClawhub;
  close(): Promise<void>;
}

export type Answer =
  | string
  | Buffer
  | ((request: IncomingMessage, response: ServerResponse, body: string) => void);

export async function sourceServers(): Promise<SourceServers> {
  const folder = tempFolder();
  const seen: SourceServers['seen'] = [];
  const answers: SourceServers['answers'] = new Map();
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', piece => pieces.push(piece as Buffer));
    request.on('end', () => {
      const path = request.url ?? '';
      seen.push({ path, method: request.method ?? '', token: request.headers.authorization });
      const parts = [github, npm, clawhub];
      const answer =
        answers.get(path) ??
        answers.get(path.replace(/\?.*$/, '')) ??
        parts.map(part => part.answer(path)).find(Boolean);
      if (answer === undefined) response.writeHead(404, { 'content-type': 'text/plain' }).end('Not found');
      else if (typeof answer === 'function') answer(request, response, Buffer.concat(pieces).toString());
      else response.end(answer);
    });
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [github, npm, clawhub] = [new FakeGithub(folder), new FakeNpm(folder, url), new FakeClawhub(folder)];
  return {
    url,
    seen,
    answers,
    github,
    npm,
    clawhub,
    env: {
      CLAWHUB_REGISTRY: url,
      TELOS_GITHUB_API_URL: `${url}/api`,
      TELOS_GITHUB_DOWNLOAD_URL: `${url}/codeload`,
      npm_config_registry: `${url}/npm`,
    },
    async close() {
      server.closeAllConnections();
      await new Promise(done => server.close(done));
      folder.remove();
    },
  };
}

const json =
  (value: unknown, status = 200): Answer =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

/** Repositories are folders of git; an archive is what `git archive` makes of a commit, as on GitHub. */
export class FakeGithub {
  readonly #folder: TempFolder;
  /** Full names that lead on to another. */
  readonly moved = new Map<string, string>();
  count = 0;

  constructor(folder: TempFolder) {
    this.#folder = folder;
  }

  repository(name: string): string {
    return join(this.#folder.path, 'github', name);
  }

  /** Commits the files, which replace all others, and returns the commit. Paths in `scripts` become executable. */
  commit(
    name: string,
    files: TestFiles,
    { tag, branch, scripts = [] }: { tag?: string; branch?: string; scripts?: string[] } = {},
  ): string {
    const place = this.repository(name);
    return commitFiles(place, files, { tag, branch, scripts, isNew: this.count++ === 0 });
  }

  answer(path: string): Answer | undefined {
    const [, owner, repo, ref] = /^\/api\/repos\/([^/]+)\/([^/]+)\/commits\/(.+)$/.exec(path) ?? [];
    if (owner) return this.#commitAnswer(`${owner}/${repo}`, decodeURIComponent(ref ?? ''));
    const [, full = ''] = /^\/api\/repos\/([^/]+\/[^/]+)$/.exec(path) ?? [];
    if (full) return json({ full_name: this.moved.get(full) ?? full });
    const [, id, ofMoved] = /^\/api\/repositories\/([^/]+)\/commits\/(.+)$/.exec(path) ?? [];
    if (id) return this.#commitAnswer(decodeURIComponent(id), ofMoved ?? '');
    const [, name, commit] =
      /^\/codeload\/([^/]+\/[^/]+)\/tar\.gz\/([\da-f]{40})$/.exec(path) ??
      /^\/api\/repos\/([^/]+\/[^/]+)\/tarball\/([\da-f]{40})$/.exec(path) ??
      [];
    return name && commit ? this.archive(name, commit) : undefined;
  }

  archive(name: string, commit: string): Buffer | undefined {
    try {
      const prefix = `${name.split('/')[1]}-${commit}/`;
      return execFileSync(
        'git',
        ['-C', this.repository(name), 'archive', '--format=tar.gz', `--prefix=${prefix}`, commit],
        { stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1e9 },
      );
    } catch {
      return undefined;
    }
  }

  #commitAnswer(name: string, ref: string): Answer {
    const other = this.moved.get(name);
    if (other)
      return (_request, response) =>
        void response
          .writeHead(301, { location: `/api/repositories/${encodeURIComponent(other)}/commits/${ref}` })
          .end();
    try {
      const args = [
        '-C',
        this.repository(name),
        'rev-parse',
        '--verify',
        '--quiet',
        '--end-of-options',
        `${ref}^{commit}`,
      ];
      return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    } catch {
      return json({ message: 'No commit found for SHA' }, 422);
    }
  }
}

export function commitFiles(
  place: string,
  files: TestFiles,
  {
    tag,
    branch = 'main',
    scripts = [],
  }: { tag?: string | undefined; branch?: string | undefined; scripts?: string[]; isNew?: boolean } = {},
): string {
  const run = (...args: string[]): string =>
    execFileSync('git', ['-C', place, ...args], {
      encoding: 'utf8',
      env: gitEnv,
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
  execFileSync('mkdir', ['-p', place]);
  execFileSync('git', ['init', '--quiet', '--initial-branch=main', place], { env: gitEnv, stdio: 'ignore' });
  const hashes = new Map<unknown, string>();
  const blobs = Object.entries(files).map(([path, content]) => {
    const write = ['-C', place, 'hash-object', '-w', '--stdin'];
    const hash =
      hashes.get(content) ?? execFileSync('git', write, { input: content, encoding: 'utf8' }).trim();
    hashes.set(content, hash);
    return `${scripts.includes(path) ? '100755' : '100644'} ${hash}\t${path}`;
  });
  run('read-tree', '--empty');
  execFileSync('git', ['-C', place, 'update-index', '--index-info'], {
    input: `${blobs.join('\n')}\n`,
    env: gitEnv,
  });
  const parent = spawnText(place, branch);
  const commit = run('commit-tree', run('write-tree'), '-m', 'files', ...(parent ? ['-p', parent] : []));
  run('update-ref', `refs/heads/${branch}`, commit);
  if (tag) run('tag', '-f', tag, commit);
  return commit;
}

function spawnText(place: string, branch: string): string {
  try {
    return execFileSync('git', ['-C', place, 'rev-parse', '--verify', '--quiet', `refs/heads/${branch}`], {
      encoding: 'utf8',
    }).trim();
  } catch {
    return '';
  }
}

const gitEnv = {
  PATH: process.env['PATH'] ?? '',
  ...{
    GIT_AUTHOR_NAME: 'A',
    GIT_AUTHOR_EMAIL: 'a@example.com',
    GIT_COMMITTER_NAME: 'A',
    GIT_COMMITTER_EMAIL: 'a@example.com',
  },
  GIT_CONFIG_NOSYSTEM: '1',
};

/** Packages are packed by `npm pack`'s own rules: everything below `package/`. */
export class FakeNpm {
  readonly #folder: TempFolder;
  readonly #url: string;
  readonly #packages = new Map<
    string,
    { tags: Record<string, string>; versions: Record<string, { bytes: Buffer; integrity: string }> }
  >();

  constructor(folder: TempFolder, url: string) {
    this.#folder = folder;
    this.#url = url;
  }

  publish(name: string, version: string, files: TestFiles, { integrity }: { integrity?: string } = {}): void {
    const place = `npm/${name.replace('/', '+')}/${version}`;
    this.#folder.add(
      Object.fromEntries(
        Object.entries({ 'package.json': JSON.stringify({ name, version }), ...files }).map(
          ([path, content]) => [`${place}/${path}`, content],
        ),
      ),
    );
    execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', this.#folder.path], {
      cwd: join(this.#folder.path, place),
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const file = `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;
    this.publishBytes(
      name,
      version,
      execFileSync('cat', [join(this.#folder.path, file)], { maxBuffer: 1e9 }),
      integrity,
    );
  }

  publishBytes(
    name: string,
    version: string,
    bytes: Buffer,
    integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`,
  ): void {
    const known = this.#packages.get(name) ?? { tags: {}, versions: {} };
    known.versions[version] = { bytes, integrity };
    known.tags['latest'] = version;
    this.#packages.set(name, known);
  }

  answer(path: string): Answer | undefined {
    const [, tarball, version] = /^\/npm\/-\/(.+)-(\d[^/]*)\.tgz$/.exec(path) ?? [];
    if (tarball) return this.#packages.get(tarball.replace('+', '/'))?.versions[version ?? '']?.bytes;
    const name = decodeURIComponent(/^\/npm\/([^-].*)$/.exec(path)?.[1] ?? '');
    const found = this.#packages.get(name);
    if (!found) return undefined;
    const versions = Object.entries(found.versions).map(([one, { integrity }]) => [
      one,
      {
        name,
        version: one,
        dist: { integrity, tarball: `${this.#url}/npm/-/${name.replace('/', '+')}-${one}.tgz` },
      },
    ]);
    return json({ name, 'dist-tags': found.tags, versions: Object.fromEntries(versions) });
  }
}

export interface ClawhubSkill {
  owner: string;
  versions: Record<string, TestFiles>;
  latest: string;
  moderation?: unknown;
  /** Status and sentence in place of a download. */
  refuses?: [number, string];
}

/** Skills by slug. A slug with several owners answers 409 unless one is named. */
export class FakeClawhub {
  readonly #folder: TempFolder;
  readonly skills = new Map<string, ClawhubSkill[]>();

  constructor(folder: TempFolder) {
    this.#folder = folder;
  }

  answer(path: string): Answer | undefined {
    const url = new URL(path, 'http://x');
    const owner = url.searchParams.get('ownerHandle');
    const [, slug = url.searchParams.get('slug') ?? '', rest = ''] =
      /^\/api\/v1\/skills\/([^/]+)(.*)$/.exec(url.pathname) ?? [];
    if (url.pathname === '/api/v1/search') return this.#found(url.searchParams.get('q') ?? '');
    const all = (this.skills.get(decodeURIComponent(slug)) ?? []).filter(
      one => owner === null || one.owner === owner,
    );
    const [skill] = all;
    if (!skill) return undefined;
    if (all.length > 1)
      return json(
        {
          code: 'AMBIGUOUS_SKILL_SLUG',
          message: 'Several',
          matches: all.map(one => ({ ownerHandle: one.owner })),
        },
        409,
      );
    // Its own client asks which version has these files.
    if (url.pathname === '/api/v1/resolve')
      return json({
        slug,
        match: { version: Object.keys(skill.versions)[0] },
        latestVersion: { version: skill.latest },
      });
    if (url.pathname === '/api/v1/download')
      return this.#download(slug, skill, url.searchParams.get('version') ?? skill.latest);
    const version = /^\/versions\/(.+)$/.exec(rest)?.[1];
    if (version)
      return (
        skill.versions[version] &&
        json({
          version: { version, files: this.#files(skill.versions[version]) },
          skill: { slug, displayName: slug },
        })
      );
    if (rest !== '') return undefined;
    return json({
      skill: {
        slug,
        displayName: slug,
        summary: `The skill ${slug}`,
        tags: { latest: skill.latest },
        stats: {},
        createdAt: 1,
        updatedAt: 1,
      },
      latestVersion: { version: skill.latest, createdAt: 1, changelog: '' },
      owner: { handle: skill.owner },
      moderation: skill.moderation ?? null,
    });
  }

  #files(files: TestFiles): object[] {
    return Object.entries(files).map(([path, content]) => ({
      path,
      size: Buffer.byteLength(content),
      sha256: createHash('sha256').update(content).digest('hex'),
    }));
  }

  #download(slug: string, { refuses, versions }: ClawhubSkill, version: string): Answer | undefined {
    if (refuses)
      return (_request, response) =>
        void response.writeHead(refuses[0], { 'content-type': 'text/plain' }).end(refuses[1]);
    const files = versions[version];
    if (!files) return undefined;
    return zipOf(this.#folder, { ...files, '_meta.json': JSON.stringify({ slug, version }) });
  }

  #found(words: string): Answer {
    const results = [...this.skills]
      .filter(([slug]) => slug.includes(words))
      .flatMap(([slug, all]) =>
        all.map(one => ({
          slug,
          displayName: slug,
          summary: `The skill ${slug}`,
          version: one.latest,
          score: 1,
          ownerHandle: one.owner,
          moderation: one.moderation,
        })),
      );
    return json({ results });
  }
}

let zips = 0;

/** Returns what `zip` makes of the files. */
export function zipOf(folder: TempFolder, files: TestFiles): Buffer {
  const place = `zip${++zips}`;
  folder.add(
    Object.fromEntries(Object.entries(files).map(([path, content]) => [`${place}/${path}`, content])),
  );
  const cwd = join(folder.path, place);
  execFileSync('zip', ['-q', '-r', '../out.zip', '.'], { cwd });
  const bytes = execFileSync('cat', ['../out.zip'], { cwd, maxBuffer: 1e9 });
  execFileSync('rm', ['../out.zip'], { cwd });
  return bytes;
}
