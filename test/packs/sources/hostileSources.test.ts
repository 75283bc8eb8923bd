import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { lookAtSource, type Offer, offerAgain, placeOffer } from '../../../src/packs/sources/install.ts';
import { updatesFor, verifyPacks } from '../../../src/packs/sources/locked.ts';
import { parseSource, sourceText } from '../../../src/packs/sources/sourceText.ts';
import { type GitDaemon, gitDaemon } from '../../fakes/gitDaemon.ts';
import { commitFiles, type SourceServers, sourceServers } from '../../fakes/sourceServers.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const skill = '---\ndescription: D\n---\nB\n';
const files = { 'skills/s/SKILL.md': skill };

describe('a source', () => {
  let folder: TempFolder;
  let servers: SourceServers;
  let daemon: GitDaemon;

  before(async () => {
    folder = tempFolder({ 'git/.keep': '' });
    servers = await sourceServers();
    daemon = await gitDaemon(join(folder.path, 'git'));
  });
  after(async () => {
    await daemon.close();
    await servers.close();
    folder.remove();
  });

  const config = (name: string) => {
    const home = join(folder.path, name);
    folder.add({ [`${name}/.gitconfig`]: daemon.config, [`${name}/project/.keep`]: '' });
    return loadConfig({
      env: { ...servers.env, HOME: home, PATH: process.env['PATH'] },
      home,
      cwd: join(home, 'project'),
    });
  };
  const offered = async (text: string, home = 'home'): Promise<Offer> => {
    const looked = await lookAtSource(text, config(home));
    if (looked.kind !== 'offer') throw new Error(looked.message);
    return looked;
  };

  it('is read back from its own text, and no other text is one', () => {
    const place = { cwd: '/project', home: '/home/a' };
    for (const text of [
      'github:a/b',
      'github:a/b/c/d@v1#e',
      'npm:@a/b@1.0.0#c',
      'clawhub:@a/b@1.0.0',
      'git+https://h.example/a/b.git@v1#c',
      'git@h.example:a/b.git@v1',
      'https://h.example/a/SKILL.md',
    ])
      equal(sourceText(parseSource(text, place)), text);
    equal(
      sourceText(parseSource('https://github.com/a/b/tree/feat/x/skills#c', place)),
      'https://github.com/a/b/tree/feat/x/skills#c',
    );
    for (const text of [
      '',
      'github:a',
      'github:-a/b',
      'github:a/../b',
      'github:a/b@-x',
      'github:a/b@x..y',
      'npm:',
      'clawhub:a/b/c',
      'git+ssh://-oProxyCommand=x/a',
      'ext::sh',
      'git+ext::sh',
      'https://user:pass@h.example/',
      'foo:bar',
      'github:a/b\u202e',
    ])
      ok(
        throws(() => parseSource(text, place)),
        text,
      );
  });

  it('of git starts no hook, filter or submodule, and makes no link', async () => {
    const place = join(folder.path, 'git/evil.git');
    const canary = join(folder.path, 'canary');
    commitFiles(place, {
      ...files,
      '.gitattributes': '* filter=evil\n',
      '.gitmodules': `[submodule "x"]\n\tpath = x\n\turl = ${folder.path}\n`,
      'hooks/post-checkout': `#!/bin/sh\ntouch ${canary}\n`,
    });
    const run = (input: string, ...args: string[]): string =>
      execFileSync('git', ['-C', place, ...args], { input, encoding: 'utf8' }).trim();
    const link = run('SKILL.md', 'hash-object', '-w', '--stdin');
    const out = run('/etc/passwd', 'hash-object', '-w', '--stdin');
    run(`120000 ${link}\tskills/s/in\n160000 ${'1'.repeat(40)}\tx\n`, 'update-index', '--index-info');
    const commit = (name: string): void => {
      const tree = run('', 'write-tree');
      const made = execFileSync(
        'git',
        ['-C', place, '-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit-tree', tree, '-m', 'x'],
        { encoding: 'utf8' },
      ).trim();
      run('', 'update-ref', `refs/heads/${name}`, made);
    };
    commit('inner');
    const home = config('evil');
    folder.add({
      'evil/.gitconfig': `${daemon.config}[filter "evil"]\n\tsmudge = touch ${canary}\n[core]\n\thooksPath = ${place}/hooks\n`,
    });
    const offer = await offered(`git+${daemon.base}evil.git@inner`, 'evil');
    deepEqual(offer.leftOut.toSorted(), ['x/']);
    const { path } = await placeOffer(offer, { allowHigh: true });
    await offer.dispose();
    ok(!existsSync(canary) && lstatSync(join(path, 'skills/s/in')).isFile());
    equal((await verifyPacks({ config: home }))[0]?.state, 'same');
    run(`120000 ${out}\tskills/s/out\n`, 'update-index', '--index-info');
    commit('outer');
    const outer = await offered(`git+${daemon.base}evil.git@outer`, 'evil');
    deepEqual(outer.leftOut.toSorted(), ['skills/s/out', 'x/']);
    await outer.dispose();
    await rejects(offered(`git+${daemon.base}evil.git@none`), /no branch or tag 'none'/);
  });

  it('is not read with a git or npm that lies where agents work', async () => {
    const home = join(folder.path, 'planted');
    const bin = join(home, 'obsidian/telos/garden/bin');
    for (const name of ['git', 'npm']) {
      folder.add({
        [`planted/obsidian/telos/garden/bin/${name}`]: `#!/bin/sh\necho "$0" >> ${folder.path}/proof\nexit 1\n`,
      });
      chmodSync(join(bin, name), 0o755);
    }
    const { npm_config_registry: _registry, ...env } = servers.env;
    const at = (PATH: string) =>
      loadConfig({ env: { ...env, HOME: home, PATH }, home, cwd: join(home, 'project') });
    await rejects(lookAtSource(`git+${daemon.base}none.git`, at(bin)), /git is not installed/);
    await rejects(lookAtSource('npm:good', at(bin)), /npm is not installed/);
    await rejects(
      lookAtSource(`git+${daemon.base}none.git`, at(`${bin}:${process.env['PATH']}`)),
      /git cannot read/,
    );
    equal(existsSync(join(folder.path, 'proof')), false);
  });

  it('of npm is refused if its bytes are not those of its integrity', async () => {
    servers.npm.publish('good', '1.0.0', files);
    servers.npm.publish('bad', '1.0.0', files, { integrity: `sha512-${'A'.repeat(86)}==` });
    await (await offered('npm:good')).dispose();
    await rejects(offered('npm:bad'), /integrity of .* is sha512-.* but sha512-AAAA.*Nothing was installed/);
    await rejects(offered('npm:good@9.9.9'), /no version '9\.9\.9'.*1\.0\.0/);
  });

  it('of npm comes from the registry that is set, else from the one that npm names, and without either says what to set', async () => {
    servers.npm.publish('found', '1.0.0', files);
    const { npm_config_registry: registry, ...env } = servers.env;
    const bin = join(folder.path, 'asked/bin');
    const at = (more: Record<string, string>) =>
      loadConfig({
        env: { ...env, HOME: join(folder.path, 'asked'), PATH: bin, ...more },
        home: join(folder.path, 'asked'),
      });
    const taken = async (more: Record<string, string>): Promise<void> => {
      const looked = await lookAtSource('npm:found', at(more));
      equal(looked.kind, 'offer');
      if (looked.kind === 'offer') await looked.dispose();
    };
    folder.add({ 'asked/.keep': '', 'asked/project/.npmrc': 'registry=https://evil.example/\n' });
    await rejects(
      lookAtSource('npm:found', at({})),
      /npm is not installed\. Set npm_config_registry.*Nothing was installed/,
    );
    // npm itself, as far as it is asked: what a project sets counts in that project only.
    folder.add({
      'asked/bin/npm': `#!/bin/sh\necho "$*" >> ${folder.path}/calls\n[ -f .npmrc ] && exit 1\necho ${registry}/\n`,
    });
    chmodSync(join(bin, 'npm'), 0o755);
    await taken({});
    equal(readFileSync(join(folder.path, 'calls'), 'utf8'), 'config get registry\n');
    for (const name of ['npm_config_registry', 'NPM_CONFIG_REGISTRY'])
      await taken({ [name]: registry ?? '' });
    folder.add({ 'asked/.npmrc': `registry=${registry}\n` });
    await taken({});
    equal(readFileSync(join(folder.path, 'calls'), 'utf8'), 'config get registry\n', 'npm was asked once');
  });

  it('of a site is refused with another schema or digest', async () => {
    const index = '/.well-known/agent-skills/index.json';
    servers.answers.set(index, JSON.stringify({ $schema: 'https://evil.example/schema.json', skills: [] }));
    await rejects(offered(servers.url), /has the schema "https:\/\/evil\.example/);
    const $schema = 'https://schemas.agentskills.io/discovery/0.2.0/schema.json';
    servers.answers.set('/s/SKILL.md', skill);
    const entry = { name: 's', type: 'skill-md', url: '/s/SKILL.md', digest: `sha256:${'0'.repeat(64)}` };
    servers.answers.set(index, JSON.stringify({ $schema, skills: [entry] }));
    await rejects(offered(servers.url), /sha256 of .* but 0{64} was promised/);
    servers.answers.set(index, JSON.stringify({ $schema, skills: [{ ...entry, type: 'exe' }] }));
    await rejects(offered(servers.url), /as "exe", which is neither/);
  });

  it('of a site is not the page of a login that answers in its place', async () => {
    for (const page of [
      '<html><body>Sign in</body></html>',
      '\ufeff \n<!DOCTYPE html>\n<title>Oh no</title>',
    ])
      for (const path of ['/login/SKILL.md', '/login/marketplace.json']) {
        servers.answers.set(path, page);
        await rejects(offered(`${servers.url}${path}`), /answered with a web page|is not JSON/);
      }
    servers.answers.set('/login/SKILL.md', `<h1>Login</h1>\n\nChecks <html> pages.\n`);
    ok(await offered(`${servers.url}/login/SKILL.md`));
  });

  it('of a site may have line ends of Windows, counts byte for byte, and no line break in it becomes a name or an address', async () => {
    const index = '/.well-known/agent-skills/index.json';
    const windows = skill.replaceAll('\n', '\r\n');
    const digest = (content: string): string =>
      `sha256:${createHash('sha256').update(content).digest('hex')}`;
    const serve = (entry: object): void => {
      const $schema = 'https://schemas.agentskills.io/discovery/0.2.0/schema.json';
      const file = JSON.stringify(
        { $schema, skills: [{ name: 's', type: 'skill-md', url: '/w/SKILL.md', ...entry }] },
        null,
        2,
      );
      servers.answers.set(index, `\ufeff${file.replaceAll('\n', '\r\n')}\r\n`);
    };
    servers.answers.set('/w/SKILL.md', windows);
    serve({ digest: digest(windows) });
    const offer = await offered(servers.url, 'windows');
    equal((await offer.read('SKILL.md')).toString(), windows);
    await offer.dispose();
    serve({ digest: digest(skill) });
    await rejects(offered(servers.url, 'windows'), /was promised/);
    serve({ digest: digest(windows), name: 's\r\nX-Evil: 1' });
    await rejects(offered(servers.url, 'windows'), /called "s\\r\\nX-Evil: 1", which contains/);
    const before = servers.seen.length;
    serve({ digest: digest(windows), url: '/w/SKILL.md\r\nHost: evil.example' });
    await rejects(offered(servers.url, 'windows'));
    ok(servers.seen.slice(before).every(({ path }) => !/[\r\n]/.test(path)));
  });

  it('that someone else serves by now is not taken for the same', async () => {
    servers.github.commit('acme/kept', files);
    const offer = await offered('github:acme/kept', 'moved');
    await placeOffer(offer);
    await offer.dispose();
    servers.github.commit('evil/kept', { 'skills/s/SKILL.md': `${skill}evil\n` });
    servers.github.moved.set('acme/kept', 'evil/kept');
    for await (const { state, problem } of updatesFor({ config: config('moved') })) {
      equal(state, 'failed');
      match(problem ?? '', /acme\/kept is now served by evil\/kept/);
    }
    equal(readFileSync(join(folder.path, 'moved/.skills/kept/skills/s/SKILL.md'), 'utf8'), skill);
  });

  it('is fetched once, whichever of its skills are wanted and whatever it is called', async () => {
    const skills = Object.fromEntries(['a', 'b', 'c'].map(name => [`skills/${name}/SKILL.md`, skill]));
    servers.github.commit('acme/many', skills);
    const whole = await offered('github:acme/many', 'some');
    const before = servers.seen.length;
    const some = await offerAgain(whole, { skills: ['a', 'c'] });
    const named = await offerAgain(some, { as: 'other' });
    equal(servers.seen.length, before);
    deepEqual(
      [whole, some, named].map(({ name, files: all }) => [name, all.map(({ path }) => path.split('/')[1])]),
      [
        ['many', ['a', 'b', 'c']],
        ['many', ['a', 'c']],
        ['other', ['a', 'c']],
      ],
    );
    const { path } = await placeOffer(named);
    await whole.dispose();
    ok(existsSync(join(path, 'skills/c/SKILL.md')) && !existsSync(join(path, 'skills/b')));
    equal((await verifyPacks({ config: config('some') }))[0]?.state, 'same');
  });

  it('of more files than a pack may have gives one of its skills by name, and else names them', async () => {
    const many = Object.fromEntries(Array.from({ length: 5100 }, (_, at) => [`skills/s/f${at}.txt`, 'x']));
    servers.github.commit('acme/vast', { ...files, ...many, 'skills/t/SKILL.md': skill });
    const whole = await lookAtSource('github:acme/vast', config('home'));
    match(whole.kind === 'choices' ? whole.message : '', /more than 5000 files, which is more than a pack/);
    deepEqual(whole.kind === 'choices' && whole.choices, ['github:acme/vast#s', 'github:acme/vast#t']);
    const one = await offered('github:acme/vast#t');
    deepEqual([one.name, one.files.map(({ path }) => path)], ['t', ['SKILL.md']]);
    await one.dispose();
  });

  it('of a folder goes without its pipes and sockets, and names them', async () => {
    folder.add({
      'piped/a/b/s/SKILL.md': skill,
      'piped/a/b/t/SKILL.md': skill,
      'plain/skills/s/SKILL.md': skill,
    });
    for (const place of ['piped/a/b/s', 'plain/skills/s'])
      execFileSync('mkfifo', [join(folder.path, place, 'pipe')]);
    for (const [name, left] of [
      ['piped', 'a/b/s/pipe'],
      ['plain', 'skills/s/pipe'],
    ] as const) {
      const offer = await offered(join(folder.path, name));
      deepEqual([offer.leftOut, offer.isRisky], [[left], false], name);
      await placeOffer(offer);
      await offer.dispose();
    }
  });

  it('that a link names reaches nothing on this machine', async () => {
    const foreign = { isForeign: true };
    await rejects(lookAtSource('http://127.0.0.1:1/x.zip', config('link'), foreign), /not https/);
    await rejects(lookAtSource(folder.path, config('link'), foreign), /a folder of this machine/);
    await rejects(
      lookAtSource('https://127.0.0.1:1/x.zip', config('link'), foreign),
      /has not been approved/,
    );
    await rejects(lookAtSource('git+https://169.254.169.254/x.git', config('link')), /metadata address/);
  });

  it('is given up when the person stops', async () => {
    servers.answers.set('/slow.zip', (_request, response) => void response.writeHead(200).write('PK'));
    const stop = new AbortController();
    const looking = lookAtSource(`${servers.url}/slow.zip`, config('stop'), {
      signal: stop.signal,
      progress: ({ kind }) => kind === 'downloading' && stop.abort(),
    });
    await rejects(looking, /abort/i);
  });
});

function throws(call: () => unknown): boolean {
  try {
    call();
    return false;
  } catch {
    return true;
  }
}
