/** A release with made-up decisions in a copy, up to its last step, by the real clients and stand-ins of the registries on loopback. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { decisionsLeft, filledFiles, readProduct, unfilledFiles } from '../release/product.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

interface Step {
  id?: string;
  run?: string;
  uses?: string;
  with?: object;
}

interface Job {
  steps: Step[];
  'timeout-minutes'?: number;
  permissions?: unknown;
}

interface Ended {
  code: number;
  text: string;
}

/** Takes what is published, in the wire of npm, the Marketplace and Open VSX. */
async function startRegistries(): Promise<{
  url: string;
  there: Set<string>;
  refusing: Set<string>;
  close(): void;
}> {
  const there = new Set<string>();
  const refusing = new Set<string>();
  const gallery = (id: string, resourceName: string, routeTemplate: string) => ({
    ...{ id, area: 'gallery', resourceName, routeTemplate, resourceVersion: 2 },
    ...{ minVersion: '1.0', maxVersion: '7.2', releasedVersion: '0.0' },
  });
  const server: Server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').replace(/\?.*/, '');
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const take = (name: string): void => {
      if (!refusing.has(name)) there.add(name);
      answer(refusing.has(name) ? 503 : 201, {});
    };
    request.resume().on('end', () => {
      if (request.method === 'OPTIONS') {
        const value = [
          gallery(
            'a41192c8-9525-4b58-bc86-179fa549d80d',
            'extensions',
            '_apis/{area}/{resource}/{extensionId}',
          ),
          gallery(
            'e11ea35a-16fe-4b80-ab11-c4cab88a0966',
            'extensions',
            '_apis/{area}/publishers/{publisherName}/extensions/{extensionName}',
          ),
        ];
        answer(200, { count: value.length, value });
      } else if (path.startsWith('/_apis/')) {
        if (request.method !== 'GET') take('marketplace');
        else if (there.has('marketplace')) answer(200, { versions: [{ version: '0.9.0' }] });
        else answer(404, { message: 'unknown' });
      } else if (path.startsWith('/api/')) {
        if (request.method === 'POST') take('openvsx');
        else answer(there.has('openvsx') ? 200 : 404, {});
      } else if (request.method === 'PUT') take('npm');
      else if (!there.has('npm')) answer(404, { error: 'not found' });
      else
        answer(200, {
          name: '@garden/telos',
          'dist-tags': { latest: '0.9.0' },
          versions: { '0.9.0': { name: '@garden/telos', version: '0.9.0' } },
        });
    });
  });
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, there, refusing, close: () => server.close().closeAllConnections() };
}

describe('the files for a code host', () => {
  const read = (file: string) => parse(readFileSync(join(root, file), 'utf8'));

  it('publish with the least rights, only from a tag, and only what was checked', () => {
    const { on, permissions, jobs } = read('.github/workflows/release.yml');
    assert.deepEqual(on, { push: { tags: ['v*'] } });
    assert.deepEqual(permissions, { contents: 'read' });
    assert.equal(jobs.publish.needs, 'build');
    assert.equal(jobs.publish.environment, 'release');
    const scripts = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts;
    for (const { steps, 'timeout-minutes': limit, permissions: rights } of Object.values<Job>(jobs)) {
      assert.ok(limit && rights);
      for (const { run = '', uses } of steps) {
        assert.ok((run === '') === (uses !== undefined), 'a step runs or uses');
        assert.doesNotMatch(run, /\$\{\{/, 'what others wrote is no code');
        for (const [, name = ''] of run.matchAll(/npm run (\S+)/g)) assert.ok(scripts[name], name);
      }
    }
    const built = (jobs.build.steps as Job['steps']).map(({ run }) => run);
    assert.ok(built.indexOf('npm run release:check') < built.indexOf('npm test'));
  });

  /** Names that each action takes, as its own page says. One that is not listed must be looked up first. */
  const takes: Readonly<Record<string, readonly string[]>> = {
    'actions/checkout@v5': ['fetch-depth'],
    'actions/setup-node@v5': ['node-version'],
    'actions/attest-build-provenance@v3': ['subject-path'],
    'actions/upload-artifact@v4': ['name', 'path', 'if-no-files-found'],
    'actions/download-artifact@v5': ['name', 'path'],
    'azure/login@v2': ['client-id', 'tenant-id', 'allow-no-subscriptions'],
    'docker/setup-buildx-action@v3': [],
    'docker/login-action@v3': ['registry', 'username', 'password'],
  };

  it('name only actions, jobs, steps and values that there are, and scripts that a shell can read', () => {
    const { jobs } = read('.github/workflows/release.yml');
    const action = read('.github/actions/telos/action.yml');
    const known = /^(?:github\.(?:repository|ref_name|actor|token)|vars\.[A-Z_]+|secrets\.[A-Z_]+)$/;
    const check = (steps: Step[], own: RegExp): void => {
      const ids = steps.flatMap(({ id }) => id ?? []);
      for (const step of steps) {
        if (step.uses) assert.ok(takes[step.uses], step.uses);
        for (const name of Object.keys(step.with ?? {}))
          assert.ok(takes[step.uses ?? '']?.includes(name), name);
        for (const [, value = ''] of JSON.stringify(step).matchAll(/\$\{\{ *(.*?) *\}\}/g)) {
          const [, id = ''] = /^steps\.(\w+)\.outputs\.[\w-]+$/.exec(value) ?? [];
          assert.ok(known.test(value) || own.test(value) || ids.includes(id), value);
        }
        if (step.run) execFileSync('bash', ['-n'], { input: step.run });
      }
    };
    for (const job of Object.values<Job & { needs?: string }>(jobs)) {
      if (job.needs) assert.ok(jobs[job.needs], job.needs);
      check(job.steps, /^$/);
    }
    const inputs = Object.keys(action.inputs).join('|');
    check(action.runs.steps, new RegExp(`^inputs\\.(?:${inputs})$`));
    for (const { shell, run } of action.runs.steps)
      assert.ok(run === undefined || shell, 'each names its shell');
  });

  it('ask in forms, for the report that there is', () => {
    for (const name of ['bug', 'wish']) {
      const { description, body } = read(`.github/ISSUE_TEMPLATE/${name}.yml`);
      assert.ok(
        description &&
          body.every((one: { id: string; attributes: { label: string } }) => one.id && one.attributes.label),
      );
    }
    assert.match(readFileSync(join(root, '.github/ISSUE_TEMPLATE/bug.yml'), 'utf8'), /telos doctor --report/);
  });

  it('run Telos in a pipeline within a budget, and a worker as nobody', () => {
    const { runs, inputs } = read('.github/actions/telos/action.yml');
    const [, step] = runs.steps;
    for (const [, name = ''] of JSON.stringify(step.env).matchAll(/inputs\.(\w+)/g))
      assert.ok(inputs[name], name);
    assert.ok(step.env.TELOS_MAX_COST);
    assert.doesNotMatch(step.run, /\$\{\{/);
    const lines = readFileSync(join(root, 'media/worker/Containerfile'), 'utf8').split('\n');
    assert.ok(lines.indexOf('USER nobody') > lines.findLastIndex(line => /^(?:RUN|COPY)/.test(line)));
    assert.ok(lines.includes('ARG BASE'), 'the base has no default');
  });
});

describe('a release', function () {
  this.timeout(120_000);
  let folder: TempFolder;
  let copy: string;
  let registries: Awaited<ReturnType<typeof startRegistries>>;

  const node = (script: string, args: string[] = []): Promise<Ended> =>
    new Promise(ended => {
      const env = {
        PATH: `${join(root, 'node_modules/.bin')}:${process.env['PATH']}`,
        HOME: folder.path,
        npm_config_registry: `${registries.url}/`,
        npm_config_userconfig: join(folder.path, '.npmrc'),
        npm_config_fetch_retries: '0',
        VSCE_MARKETPLACE_URL: registries.url,
        VSCE_PAT: 'pat-0123456789',
        OVSX_REGISTRY_URL: registries.url,
        OVSX_PAT: 'ovsx-0123456789',
      };
      execFile(
        process.execPath,
        [join(root, 'test/release', script), ...args],
        { cwd: copy, env },
        (error, out, err) => ended({ code: error ? Number(error.code) : 0, text: out + err }),
      );
    });
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], {
      cwd: copy,
      stdio: 'pipe',
    });

  beforeEach(async () => {
    registries = await startRegistries();
    folder = tempFolder({
      'copy/.keep': '',
      '.npmrc': `${registries.url.replace('http:', '')}/:_authToken=npm-0123456789\n`,
    });
    copy = join(folder.path, 'copy');
    for (const name of [
      'package.json',
      'README.md',
      'SECURITY.md',
      'SUPPORT.md',
      '.github',
      'media/marketplace.md',
      'media/product.json',
      'media/registries',
    ])
      cpSync(join(root, name), join(copy, name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    git('init', '-q');
    git('commit', '-q', '--allow-empty', '-m', 'first');
  });
  afterEach(() => {
    folder.remove();
    registries.close();
  });

  function decide(): void {
    const decided = {
      undecided: [],
      npm: '@garden/telos',
      publisher: 'garden',
      repository: 'https://code.garden.test/garden/telos.git',
      homepage: 'https://garden.test/',
      bugs: 'https://code.garden.test/garden/telos/issues',
      images: 'https://code.garden.test/garden/telos/media',
    };
    writeFileSync(join(copy, 'media/product.json'), JSON.stringify(decided));
    const manifest = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8'));
    writeFileSync(join(copy, 'package.json'), JSON.stringify({ ...manifest, version: '0.9.0' }));
    for (const [file, text] of filledFiles(copy)) writeFileSync(join(copy, file), text);
  }

  /** Packs small ones by the real packers, and states what they are as the code host would. */
  function pack(isSigned = true): string {
    const artefacts = join(folder.path, 'artefacts');
    folder.add({
      'artefacts/.keep': '',
      'ext/package.json': JSON.stringify({
        name: 'telos',
        publisher: 'garden',
        version: '0.9.0',
        engines: { vscode: '^1.110.0' },
      }),
      'ext/README.md': 'Telos.\n',
      'npm/package.json': JSON.stringify({ name: '@garden/telos', version: '0.9.0' }),
    });
    const vsce = join(root, 'node_modules/@vscode/vsce/vsce');
    const vsix = [
      'package',
      '--allow-missing-repository',
      '--skip-license',
      '--out',
      join(artefacts, 'telos.vsix'),
    ];
    execFileSync(process.execPath, [vsce, ...vsix], { cwd: join(folder.path, 'ext'), stdio: 'pipe' });
    execFileSync('npm', ['pack', '--pack-destination', artefacts], {
      cwd: join(folder.path, 'npm'),
      stdio: 'pipe',
    });
    for (const name of readdirSync(artefacts).filter(one => /\.(?:tgz|vsix)$/.test(one))) {
      const sha256 = createHash('sha256')
        .update(readFileSync(join(artefacts, name)))
        .digest('hex');
      const payload = Buffer.from(JSON.stringify({ subject: [{ name, digest: { sha256 } }] })).toString(
        'base64',
      );
      const bundle = { dsseEnvelope: { payload, signatures: [{ sig: 'c2ln' }] } };
      if (isSigned) writeFileSync(join(artefacts, `${name}.sigstore.json`), JSON.stringify(bundle));
    }
    return artefacts;
  }

  it('waits only for what a person must decide', async () => {
    const { code, text } = await node('check.ts');
    const lines = text.trim().split('\n');
    const left = decisionsLeft(readProduct(root));
    assert.deepEqual(
      lines,
      left.length > 0 ? left.map(line => `Decide in media/product.json: ${line}`) : [lines[0]],
    );
    assert.equal(code, left.length > 0 ? 1 : 0);
    assert.deepEqual(unfilledFiles(root), [], 'npm run product writes them');
  });

  it('goes through with made-up decisions, and is published once', async () => {
    decide();
    const artefacts = pack();
    assert.deepEqual(await node('check.ts', ['--artefacts', artefacts]), {
      code: 0,
      text: 'Ready: telos 0.9.0.\n',
    });
    const [packed = ''] = readdirSync(artefacts).filter(name => name.endsWith('.tgz'));
    const sha256 = createHash('sha256')
      .update(readFileSync(join(artefacts, packed)))
      .digest('hex');
    for (const name of ['telos.rb', 'flake.nix']) {
      const text = readFileSync(join(artefacts, name), 'utf8');
      assert.ok(text.includes(`sha256 ${name === 'flake.nix' ? '= ' : ''}"${sha256}"`), text);
      assert.ok(
        text.includes(`"https://code.garden.test/garden/telos/releases/download/v0.9.0/${packed}"`),
        text,
      );
      assert.doesNotMatch(text, /\.example|0{64}/);
    }
    const first = await node('publish.ts', [artefacts]);
    assert.equal(first.code, 0, first.text);
    assert.deepEqual([...registries.there], ['npm', 'marketplace', 'openvsx']);
    assert.match((await node('publish.ts', [artefacts])).text, /npm has 0\.9\.0 already/);
  });

  it('says what was published when a registry refuses half-way, and does the rest when run again', async () => {
    decide();
    const artefacts = pack();
    registries.refusing.add('openvsx');
    const half = await node('publish.ts', [artefacts]);
    assert.equal(half.code, 1);
    assert.match(half.text, /Open VSX refused: HTTP 503/);
    assert.match(half.text, /Published: npm, Marketplace\. Run this again for the rest\./);
    assert.doesNotMatch(half.text, /0123456789/);
    registries.refusing.clear();
    const rest = await node('publish.ts', [artefacts]);
    assert.equal(rest.code, 0, rest.text);
    assert.ok(registries.there.has('openvsx'));
  });

  it('is refused for a forgotten placeholder, a tag that exists, a file without a signature and a clone without history', async () => {
    decide();
    folder.add({ 'copy/SUPPORT.md': 'Write to https://telos.example/help.\n' });
    assert.match(
      (await node('check.ts')).text,
      /^SUPPORT\.md still has an address that belongs to nobody\.$/m,
    );
    cpSync(join(root, 'SUPPORT.md'), join(copy, 'SUPPORT.md'));

    git('tag', 'v0.9.0');
    git('commit', '-q', '--allow-empty', '-m', 'second');
    assert.match((await node('check.ts')).text, /^The tag v0\.9\.0 exists and is another commit\./m);
    git('tag', '-d', 'v0.9.0');

    const artefacts = pack(false);
    const refused = await node('publish.ts', [artefacts]);
    assert.match(refused.text, /^Nothing was published\.\n.*tgz is not signed.*\ntelos\.vsix is not signed/);
    assert.equal(registries.there.size, 0);

    const signed = pack();
    const [packed = ''] = readdirSync(signed).filter(name => name.endsWith('.tgz'));
    appendFileSync(join(signed, packed), 'more');
    assert.match(
      (await node('publish.ts', [signed])).text,
      /^Nothing was published\.\n.*tgz is damaged.*\n.*tgz is not signed/,
    );
    assert.equal(registries.there.size, 0);
    rmSync(join(signed, packed));
    assert.match((await node('check.ts', ['--artefacts', signed])).text, /must have exactly one \.tgz\./);

    writeFileSync(join(copy, '.git/shallow'), execFileSync('git', ['rev-parse', 'HEAD'], { cwd: copy }));
    assert.match((await node('check.ts')).text, /^This clone has no history\./m);
    rmSync(join(copy, '.git'), { recursive: true });
    assert.match((await node('check.ts')).text, /^This folder has no history of git/m);
  });

  it('takes no gap for a decision', () => {
    decide();
    const product = readProduct(copy);
    assert.deepEqual(decisionsLeft(product), []);
    const gaps = [
      '',
      'https://telos.example/',
      'https://example.com/telos',
      'https://code.test/OWNER/telos',
      '<name>',
      'TODO',
    ];
    for (const homepage of [...gaps, 'https://code.test/YOUR-NAME/telos'])
      assert.deepEqual(
        decisionsLeft({ ...product, homepage }).map(line => line.split(':')[0]),
        ['homepage'],
        homepage,
      );
  });

  it('says that nothing was published when the first registry refuses, and goes on behind the second', async () => {
    decide();
    const artefacts = pack();
    registries.refusing.add('npm');
    const none = await node('publish.ts', [artefacts]);
    assert.equal(none.code, 1);
    assert.match(none.text, /npm refused: [\s\S]*Published: nothing\. Run this again for the rest\./);
    registries.refusing.clear();
    registries.refusing.add('marketplace');
    const one = await node('publish.ts', [artefacts]);
    assert.equal(one.code, 1);
    assert.match(one.text, /Marketplace refused: [\s\S]*Published: npm\. Run this again for the rest\./);
    assert.doesNotMatch(none.text + one.text, /0123456789/);
    registries.refusing.clear();
    assert.equal((await node('publish.ts', [artefacts])).code, 0);
    assert.deepEqual([...registries.there].sort(), ['marketplace', 'npm', 'openvsx']);
  });
});
