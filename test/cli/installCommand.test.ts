import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type GitDaemon, gitDaemon } from '../fakes/gitDaemon.ts';
import { commitFiles, type SourceServers, sourceServers, zipOf } from '../fakes/sourceServers.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';
import { openTerminalSession } from './screen.ts';

const skill = (name: string, more = ''): string =>
  `---\nname: ${name}\ndescription: The skill ${name}\n---\nDo ${name}.\n${more}`;
const script = '#!/bin/sh\necho hello\n';
const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');
const files = {
  'skills/alpha/SKILL.md': skill('alpha'),
  'skills/alpha/scripts/go.sh': 'echo go\n',
  'skills/beta/SKILL.md': skill('beta'),
};

describe('telos install', () => {
  let servers: SourceServers;
  let daemon: GitDaemon;
  let folder: TempFolder;
  let home: CliHome;
  let env: Record<string, string>;

  before(async () => {
    servers = await sourceServers();
    folder = tempFolder({ 'local/skills/alpha/SKILL.md': skill('alpha'), 'git/.keep': '' });
    const scripts = ['skills/alpha/scripts/go.sh'];
    servers.github.commit('acme/tools', files, { tag: 'v1', scripts });
    commitFiles(join(folder.path, 'git/tools.git'), files, { scripts });
    servers.npm.publish('@acme/tools', '1.0.0', {
      ...files,
      'package.json': JSON.stringify({
        name: '@acme/tools',
        version: '1.0.0',
        scripts: { postinstall: 'touch /tmp/telos-canary-npm' },
      }),
    });
    servers.clawhub.skills.set('weather', [
      {
        owner: 'bob',
        latest: '1.2.0',
        versions: { '1.2.0': { 'SKILL.md': skill('weather'), 'scripts/x.sh': script } },
      },
    ]);
    servers.answers.set('/one/SKILL.md', skill('one'));
    servers.answers.set('/packed/tools.zip', zipOf(folder, files));
    const $schema = 'https://schemas.agentskills.io/discovery/0.2.0/schema.json';
    const entry = {
      name: 'known',
      description: 'D',
      type: 'skill-md',
      url: '/one/SKILL.md',
      digest: `sha256:${sha256(skill('one'))}`,
    };
    servers.answers.set('/.well-known/agent-skills/index.json', JSON.stringify({ $schema, skills: [entry] }));
    daemon = await gitDaemon(join(folder.path, 'git'));
  });
  after(async () => {
    await daemon.close();
    await servers.close();
    folder.remove();
  });
  beforeEach(() => {
    home = newHome();
    env = servers.env;
  });
  afterEach(() => home.remove());

  const newHome = (): CliHome => cliHome({ '.gitconfig': daemon.config });
  const run = (...args: string[]) => home.run(args, { env });
  const lockOf = (of: CliHome) => JSON.parse(readFileSync(join(of.skillsDir, 'telos-lock.json'), 'utf8'));

  it('takes a folder of a git repository, and the owner into the name of one that is called skills', async () => {
    commitFiles(join(folder.path, 'git/acme/skills.git'), {
      ...files,
      'more/pack/skills/gamma/SKILL.md': skill('gamma'),
    });
    const listed = await run('install', `git+${daemon.base}acme/skills.git//more/pack@main`, '--list');
    match(listed.stdout, /It holds 1 skill .*for agent '(?:acme-)?skills'|gamma/, listed.stderr);
    match(
      (await run('install', `git+${daemon.base}acme/skills.git`, '--yes')).stdout,
      /'acme-skills' with 2/,
    );
    const part = await run(
      'install',
      `git+${daemon.base}acme/skills.git//more/pack`,
      '--as',
      'part',
      '--yes',
    );
    match(part.stdout, /'part' with 1 skill/, part.stderr);
    match((await run('verify')).stdout, /part: same/);
    match(
      (await run('install', `git+${daemon.base}acme/skills.git//../x`, '--yes')).stderr,
      /is not the address/,
    );
  });

  it('has in place of the links of a plugin what they lead to in its catalogue, and no file outside', async () => {
    folder.add({
      'linked/.claude-plugin/marketplace.json': JSON.stringify({
        name: 'm',
        plugins: [{ name: 'dock', source: './plugins/dock' }],
      }),
      'linked/plugins/dock/.claude-plugin/plugin.json': '{"name": "dock"}',
      'linked/shared/alpha/SKILL.md': skill('alpha'),
      'linked/shared/alpha/deep/note.md': 'Note\n',
    });
    const dock = join(folder.path, 'linked/plugins/dock');
    mkdirSync(join(dock, 'skills'));
    symlinkSync('../../../shared/alpha', join(dock, 'skills/alpha'));
    symlinkSync('/etc/hostname', join(dock, 'host.txt'));
    symlinkSync('../dock', join(dock, 'round'));
    const { code, stdout, stderr } = await run(
      'install',
      `${join(folder.path, 'linked')}#dock`,
      '--yes',
      '--allow',
      'high',
    );
    equal(code, 0, stdout + stderr);
    const there = join(home.skillsDir, 'dock');
    equal(readFileSync(join(there, 'skills/alpha/deep/note.md'), 'utf8'), 'Note\n');
    ok(!existsSync(join(there, 'host.txt')) && !existsSync(join(there, 'round')));
    match(stdout + stderr, /host\.txt/);
  });

  it('says where the agent works, and so does the list of agents', async () => {
    folder.add({
      'superpowers/skills/fix/SKILL.md': skill('fix'),
      'superpowers/commands/fix.md': 'Fix it.',
      'superpowers/package.json': '{}',
      'vault/skills/note/SKILL.md': skill('note'),
      'vault/agent.toml': '',
    });
    match((await run('install', join(folder.path, 'superpowers'))).stderr, /^Works in: this folder$/m);
    match((await run('install', join(folder.path, 'vault'))).stderr, /^Works in: \/.*\/vault$/m);
    match((await run('install', 'github:acme/tools', '--yes')).stderr, /^Works in: this folder$/m);
    const { stdout } = await run('agents');
    match(stdout, /^superpowers .* Works in: this folder$/m);
    match(stdout, /^vault .* Works in: \/.*\/vault$/m);
  });

  it('names each skill that is installed and cannot run yet, with what it lacks and what to do', async () => {
    const needs = (id: string): string =>
      `---\nname: ${id}\ndescription: d\nmetadata:\n  openclaw:\n    requires:\n      bins: [no-such-program]\n---\nx`;
    folder.add({
      'lacking/skills/fine/SKILL.md': skill('fine'),
      ...Object.fromEntries(['a', 'b', 'c', 'd'].map(id => [`lacking/skills/${id}/SKILL.md`, needs(id)])),
    });
    const { code, stderr } = await run('install', join(folder.path, 'lacking'));
    equal(code, 0);
    match(stderr, /^a is not ready: it needs no-such-program\. [A-Z].*\.$/m);
    match(stderr, /^1 more are not ready: telos list-skills --agent lacking$/m);
    equal(/fine is not ready/.test(stderr), false);
  });

  it('names the MCP servers of a plugin, and those that cannot start, where it is installed and listed', async () => {
    const servers = { own: { command: 'node' }, far: { type: 'ws', url: 'wss://mcp.example.org' } };
    folder.add({
      'plug/skills/fix/SKILL.md': skill('fix'),
      'plug/.mcp.json': JSON.stringify({ mcpServers: servers }),
      'odd/skills/fix/SKILL.md': skill('fix'),
      'odd/plugin.json': JSON.stringify({ name: 'odd', mcpServers: './missing.json' }),
    });
    const plug = await run('install', join(folder.path, 'plug'));
    match(plug.stderr, /^MCP servers, once you accept the agent: own$/m);
    match(plug.stderr, /\.mcp\.json: the MCP server 'far' is ignored: its type is "ws"/);
    const odd = await run('install', join(folder.path, 'odd'), '--yes');
    match(odd.stderr, /names MCP servers in \.\/missing\.json, which is not there/);
    const listed = await run('mcp', 'list');
    match(listed.stdout, /^own +plug +not reviewed/m);
    match(listed.stderr, /missing\.json, which is not there/);
    match(listed.stderr, /'far' is ignored/);
    equal((await run('uninstall', 'plug', '--yes')).code, 0);
    doesNotMatch((await run('mcp', 'list')).stderr, /No agent has an MCP server/);
    commitFiles(join(folder.path, 'git/plug.git'), {
      'skills/fix/SKILL.md': skill('fix'),
      '.mcp.json': JSON.stringify(servers),
    });
    const far = await run('install', `git+${daemon.base}plug.git`, '--yes');
    match(far.stderr, /MCP servers: own \(node\) not started: \.mcp\.json: the MCP server 'far'/);
  });

  it('takes a name with a space as one name, wherever several are taken', async () => {
    equal((await run('install', 'github:acme/tools', '--as', 'Telos 2', '--yes')).code, 0);
    match((await run('verify', 'Telos 2')).stdout, /^Telos 2: same/);
    const update = await run('update', 'Telos 2');
    equal(update.code, 0, update.stderr);
    match(update.stderr, /^Telos 2: .* is the newest version/m);
    doesNotMatch(update.stderr, /differ/);
    const [skillFile] = readdirSync(join(home.skillsDir, 'Telos 2'), {
      recursive: true,
      encoding: 'utf8',
    }).filter(path => path.endsWith('SKILL.md'));
    rmSync(join(home.skillsDir, 'Telos 2', skillFile ?? ''));
    const lacking = await run('update', 'Telos 2');
    match(lacking.stderr, /files here differ from it: .*SKILL\.md \(missing\)/);
    match((await run('export', 'Telos 2', '--to', 'out')).stderr, /not 'Telos 2'/);
  });

  const forms: readonly [string, () => string, string][] = [
    ['a folder', () => join(folder.path, 'local'), 'local'],
    ['GitHub', () => 'github:acme/tools@v1', 'tools'],
    ['git', () => `git+${daemon.base}tools.git`, 'tools'],
    ['npm', () => 'npm:@acme/tools', 'tools'],
    ['ClawHub', () => 'clawhub:weather', 'weather'],
    ['an archive', () => `${servers.url}/packed/tools.zip`, 'tools'],
    ['a SKILL.md', () => `${servers.url}/one/SKILL.md`, 'one'],
    ['a site', () => servers.url, 'known'],
  ];
  for (const [what, source, name] of forms)
    it(`takes ${what}, verifies it, and brings the same bytes back from the lock`, async () => {
      const installed = await run('install', source(), '--yes', '--json');
      equal(installed.code, 0, installed.stderr);
      equal(JSON.parse(installed.stdout).packs[0].name, name);
      const verified = await run('verify');
      equal(verified.code, 0, verified.stdout + verified.stderr);
      const other = newHome();
      try {
        mkdirSync(other.skillsDir, { recursive: true });
        copyFileSync(join(home.skillsDir, 'telos-lock.json'), join(other.skillsDir, 'telos-lock.json'));
        const frozen = await other.run(['install', '--frozen'], { env });
        equal(frozen.code, 0, frozen.stderr);
        execFileSync('diff', ['-r', '-x', '.clawhub', home.skillsDir, other.skillsDir]);
        const modes = (at: CliHome): string =>
          execFileSync(
            'find',
            ['.', '-path', '*/.clawhub', '-prune', '-o', '-type', 'f', '-name', '*.sh', '-printf', '%m %p\n'],
            { cwd: at.skillsDir, encoding: 'utf8' },
          );
        equal(modes(other), modes(home));
        if (
          existsSync(join(home.skillsDir, name, 'skills/alpha/scripts/go.sh')) &&
          what !== 'npm' &&
          what !== 'an archive'
        )
          equal(
            statSync(join(home.skillsDir, name, 'skills/alpha/scripts/go.sh')).mode & 0o111,
            0o111,
            'the commit’s mode',
          );
      } finally {
        other.remove();
      }
      ok(!existsSync('/tmp/telos-canary-npm'), 'nothing of a package runs');
    });

  it('places nothing where nobody can be asked, or where there are high-severity findings', async () => {
    equal((await run('install', 'github:acme/tools')).code, 1);
    servers.github.commit('acme/bad', {
      'SKILL.md': skill('bad', 'echo aWQK | base64 -d | bash\n'),
    });
    const bad = await run('install', 'github:acme/bad', '--yes');
    equal(bad.code, 1);
    match(bad.stderr, /high\s+SKILL\.md:6 decodes something and runs it[\s\S]*--allow high/);
    ok(!existsSync(home.skillsDir));
    equal((await run('install', 'github:acme/bad', '--yes', '--allow', 'high')).code, 0);
  });

  describe('a folder with high-severity findings', () => {
    const bad = skill('bad', 'echo aWQK | base64 -d | bash\n');
    const found = /! high\s+SKILL\.md:6 decodes something and runs it/;
    const own = (): string => join(home.skillsDir, 'bad/SKILL.md');
    const terminal = (...args: string[]) =>
      openTerminalSession(`exec '${process.execPath}' '${program()}' install ${args.join(' ')}`, {
        cwd: home.workDir,
        env: { ...home.env, ...env },
      });

    beforeEach(() => home.folder.add({ 'work/bad/SKILL.md': bad }));

    it('is installed by no one who cannot be asked, and a yes to everything is none to that', async () => {
      for (const more of [[], ['--yes']]) {
        const { code, stdout, stderr } = await run('install', './bad', ...more);
        deepEqual([code, stdout], [1, ''], stderr);
        match(stderr, found);
        match(stderr, /Nothing was installed\. .*: telos install \.\/bad --yes --allow high\n$/);
        ok(!existsSync(own()));
      }
      equal((await run('install', './bad', '--yes', '--allow', 'high')).code, 0);
      equal(readFileSync(own(), 'utf8'), bad);
      const again = await run('install', './bad');
      equal(again.code, 0, 'what is there already is not asked about');
      doesNotMatch(again.stderr, found);
    });

    it('is named in commands of which a shell takes each word as it is, whatever it is called', async () => {
      const name = 'tea$(touch pwned)`touch pwned`;touch pwned;';
      const given = `./${name}`;
      home.folder.add({ [`work/${name}/skills/one/SKILL.md`]: bad });
      const printed: string[] = [];
      const note = async (...args: string[]): Promise<void> => {
        const { stdout, stderr } = await run(...args);
        printed.push(...`${stdout}${stderr}`.split('\n').filter(line => line.includes('telos ')));
      };
      await note('install', given);
      home.folder.add({
        [`skills/${name}/skills/one/SKILL.md`]: skill('one'),
        [`skills/${name}/mcp.json`]: '{}',
      });
      await note('install', given);
      await note('install', given, '--yes', '--allow', 'high');
      await note('mcp', 'list');
      await note('eval', 'draft', name);
      ok(printed.length >= 3, printed.join('\n'));
      for (const line of printed)
        for (const [command] of line.matchAll(/telos (?:install|trust|eval|undo) .*/g))
          spawnSync('/bin/sh', ['-c', `telos() { :; }\n${command}`], { cwd: home.workDir, stdio: 'ignore' });
      ok(!existsSync(join(home.workDir, 'pwned')), printed.join('\n'));
    });

    it('replaces no agent without that yes', async () => {
      home.folder.add({ 'skills/bad/SKILL.md': skill('bad') });
      for (const more of [['--yes'], ['--allow', 'high'], ['--yes', '--as', 'bad']]) {
        const { code, stderr } = await run('install', './bad', ...more);
        equal(code, 1, stderr);
        match(stderr, found);
        match(stderr, /telos install \.\/bad --yes --allow high\b/);
        equal(readFileSync(own(), 'utf8'), skill('bad'));
      }
      equal((await run('install', './bad', '--yes', '--allow', 'high')).code, 0);
      equal(readFileSync(own(), 'utf8'), bad);
    });

    for (const answer of ['y', 'n'])
      it(`is asked about on a terminal, which does as it is told: ${answer}`, async () => {
        const session = terminal('./bad', '--yes');
        await session.shows(/decodes something and runs it[\s\S]*Install agent 'bad' anyway\? \[y\/N\]/);
        await session.answers(
          `${answer}\n`,
          answer === 'y' ? /Installed agent 'bad'/ : /Nothing was installed/,
        );
        equal(await session.ended(), answer === 'y' ? 0 : 1);
        equal(existsSync(own()), answer === 'y');
      });
  });

  describe('the same bytes from another source', () => {
    const sourceOf = (name: string): string => lockOf(home).packs[name].source;
    const lockText = (): string => readFileSync(join(home.skillsDir, 'telos-lock.json'), 'utf8');

    beforeEach(async () => {
      commitFiles(join(folder.path, 'git/same.git'), files, { scripts: ['skills/alpha/scripts/go.sh'] });
      servers.github.commit('acme/same', files, { tag: 'v1', scripts: ['skills/alpha/scripts/go.sh'] });
      equal((await run('install', 'github:acme/same@v1', '--yes')).code, 0);
    });

    it('are not taken for those that are there: it says from where to where, and what to type', async () => {
      const before = lockText();
      const there = `git+${daemon.base}same.git`;
      for (const more of [[], ['--yes'], ['--yes', '--json']]) {
        const { code, stderr } = await run('install', there, ...more);
        equal(code, 2, stderr);
        match(stderr, /'same' .* came from github:acme\/same@v1.* this one comes from git\+.*same\.git/);
        match(stderr, /Nothing was changed\./);
        ok(stderr.includes(`telos install ${there} --as same`), stderr);
        equal(lockText(), before);
      }
      equal((await run('install', there, '--as', 'same')).code, 1, 'no one can be asked');
      equal(lockText(), before);
      const moved = await run('install', there, '--as', 'same', '--yes');
      equal(moved.code, 0, moved.stderr);
      match(moved.stderr, /From now on, updates come from git\+.*same\.git instead of github:acme\/same@v1/);
      equal(sourceOf('same'), there);
      equal((await run('install', there)).code, 0, 'from the same source no one is asked');
    });

    it('in another version are named', async () => {
      const { code, stdout, stderr } = await run('install', 'github:acme/same');
      equal(code, 0, stderr);
      match(stdout, /^Agent 'same' is installed already and is the same\n$/);
      match(stderr, /From now on, updates come from github:acme\/same instead of github:acme\/same@v1/);
      equal(sourceOf('same'), 'github:acme/same');
    });
  });

  it('says which address cannot be reached, and what to do', async () => {
    for (const [address, why] of [
      [
        'http://127.0.0.1:1/x/SKILL.md',
        /^http:\/\/127\.0\.0\.1:1\/x\/SKILL\.md cannot be reached: nothing answers there\./,
      ],
      [
        'https://no-such-host.invalid/x/SKILL.md',
        /^https:\/\/no-such-host\.invalid\/x\/SKILL\.md cannot be reached: (?:no server has this name|its name cannot be looked up)\./,
      ],
    ] as const) {
      const { code, stderr } = await run('install', address, '--yes');
      equal(code, 1, stderr);
      match(stderr, why);
      match(stderr, /Check the address and the network, then try again\. Nothing was installed\.\n$/);
      doesNotMatch(stderr, /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/);
    }
    match(
      (await run('install', 'git+https://no-such-host.invalid/x.git', '--yes')).stderr,
      /^git cannot read https:\/\/no-such-host\.invalid\/x\.git: .*\. Check the address and the network, then try again\. Nothing was installed\.\n$/,
    );
  });

  it('names what to say more exactly, and installs nothing', async () => {
    const plugins = [
      { name: 'one', source: './one' },
      { name: 'two', source: './two' },
      { name: 'out', source: '../up' },
    ];
    const catalogue = { name: 'm', owner: { name: 'a' }, plugins };
    servers.github.commit('acme/market', {
      '.claude-plugin/marketplace.json': JSON.stringify(catalogue),
      'one/skills/x/SKILL.md': skill('x'),
      'two/SKILL.md': skill('y'),
    });
    const several = await run('install', 'github:acme/market', '--yes');
    equal(several.code, 2);
    match(several.stderr, /telos install github:acme\/market#one\n/);
    equal((await run('install', 'github:acme/market#one', '--yes')).code, 0);
    const out = await run('install', 'github:acme/market#out', '--yes');
    equal(out.code, 1);
    match(out.stderr, /leads out of the catalogue/);
    for (const source of [
      'gihub:a/b',
      'github:a/b;touch x',
      'clawhub:../../etc',
      'npm:--flag',
      'git+https://-oProxy/x.git',
      'ext::sh -c id',
      '',
    ])
      equal((await run('install', source, '--yes')).code, 2, source);
    match((await run('install', 'gihub:a/b')).stderr, /Did you mean github:/);
  });

  it('installs the one that is named of a folder that is a pack itself', async () => {
    const plugins = [{ name: 'two', source: './plugins/two' }];
    home.folder.add({
      'whole/.claude-plugin/marketplace.json': JSON.stringify({ name: 'm', owner: { name: 'a' }, plugins }),
      'whole/skills/alpha/SKILL.md': skill('alpha'),
      'whole/skills/beta/SKILL.md': skill('beta'),
      'whole/plugins/two/skills/gamma/SKILL.md': skill('gamma'),
    });
    const whole = join(home.folder.path, 'whole');
    const idsOf = async (): Promise<string[]> => {
      const { stdout } = await run('list-skills', '--json');
      return (JSON.parse(stdout) as { skill: string }[]).map(({ skill: id }) => id);
    };
    equal((await run('install', `${whole}#two`, '--yes')).code, 0);
    deepEqual(await idsOf(), ['gamma']);
    const none = await run('install', `${whole}#nothing`, '--yes');
    deepEqual([none.code, await idsOf()], [2, ['gamma']]);
    match(none.stderr, /It has nothing called 'nothing'/);
  });

  it('installs one plugin of a catalogue in a folder by its name, also from a folder with the mark in its own', async () => {
    const plugins = ['one', 'two'].map(name => ({ name, source: `./${name}` }));
    home.folder.add({
      'market/.claude-plugin/marketplace.json': JSON.stringify({ name: 'm', owner: { name: 'a' }, plugins }),
      'market/one/skills/x/SKILL.md': skill('x'),
      'market/two/skills/y/SKILL.md': skill('y'),
      'c#two/SKILL.md': skill('sharp'),
    });
    const market = join(home.folder.path, 'market');
    const several = await run('install', market, '--yes');
    equal(several.code, 2);
    deepEqual(
      several.stderr.split('\n').slice(1, 3),
      ['one', 'two'].map(name => `  telos install ${market}#${name}`),
    );
    equal((await run('install', `${market}#two`, '--yes')).code, 0);
    equal(readFileSync(join(home.skillsDir, 'two/skills/y/SKILL.md'), 'utf8'), skill('y'));
    equal((await run('verify')).code, 0);
    equal((await run('install', join(home.folder.path, 'c#two'), '--yes')).code, 0);
    equal((await run('install', `${market}#three`, '--yes')).code, 2);
  });

  it('names the MCP servers that a catalogue alone has as not started, and never says that there are none', async () => {
    servers.github.commit('acme/servers', {
      '.claude-plugin/marketplace.json': JSON.stringify({
        name: 'm',
        owner: { name: 'a' },
        plugins: [
          { name: 'db', source: './db', strict: false, mcpServers: { store: { command: 'node' } } },
          { name: 'web', source: './web', mcpServers: ['./servers.json', './.mcp.json'] },
        ],
      }),
      'db/skills/x/SKILL.md': skill('x'),
      'web/skills/y/SKILL.md': skill('y'),
      'web/.mcp.json': JSON.stringify({ mcpServers: { page: { command: 'node' } } }),
    });
    const db = await run('install', 'github:acme/servers#db', '--yes');
    equal(db.code, 0);
    match(db.stderr, /MCP servers: not started: store: only the catalogue names it/);
    const web = await run('install', 'github:acme/servers#web', '--yes');
    match(web.stderr, /MCP servers: page \(node\).*not started: \.\/servers\.json: only the catalogue/);
  });

  it('reads a catalogue that was fetched alone, and waits once when a site asks for it', async () => {
    servers.github.commit('acme/far', { 'SKILL.md': skill('far') });
    const plugins = [
      { name: 'near', source: './near' },
      { name: 'far', source: { source: 'github', repo: 'acme/far' } },
      { name: 'wheel', source: { source: 'pip', package: 'wheel' } },
    ];
    servers.answers.set(
      '/alone/marketplace.json',
      JSON.stringify({ name: 'm', owner: { name: 'a' }, plugins }),
    );
    const alone = `${servers.url}/alone/marketplace.json`;
    match(
      (await run('install', `${alone}#near`, '--yes')).stderr,
      /is next to marketplace\.json, which was fetched alone/,
    );
    match(
      (await run('install', `${alone}#wheel`, '--yes')).stderr,
      /comes from "pip", which Telos does not install/,
    );
    equal((await run('install', `${alone}#far`, '--yes')).code, 0);
    equal(readFileSync(join(home.skillsDir, 'far/SKILL.md'), 'utf8'), skill('far'));
    let asked = 0;
    servers.answers.set('/busy/waits/SKILL.md', (_request, response) => {
      if (asked++ === 0) response.writeHead(429, { 'retry-after': '0' }).end();
      else response.end(skill('waits'));
    });
    servers.answers.set(
      '/busy/later/SKILL.md',
      (_request, response) => void response.writeHead(429, { 'retry-after': '3600' }).end(),
    );
    const waited = await run('install', `${servers.url}/busy/waits/SKILL.md`, '--yes');
    deepEqual([waited.code, asked], [0, 2]);
    const later = await run('install', `${servers.url}/busy/later/SKILL.md`, '--yes');
    equal(later.code, 1);
    match(later.stderr, /asks to wait 3600 seconds before the next request/);
  });

  it('says what ClawHub says, and no option overrides its word on malware', async () => {
    servers.clawhub.skills.set('mal', [
      {
        owner: 'eve',
        latest: '1.0.0',
        versions: {},
        moderation: { isMalwareBlocked: true, summary: 'steals keys' },
      },
    ]);
    servers.clawhub.skills.set('dup', [
      { owner: 'eve', latest: '1.0.0', versions: {} },
      { owner: 'bob', latest: '1.0.0', versions: {} },
    ]);
    const at = { owner: 'eve', latest: '1.0.0', versions: { '1.0.0': { 'SKILL.md': skill('x') } } };
    servers.clawhub.skills.set('held', [{ ...at, refuses: [423, 'The scan is pending.'] }]);
    servers.clawhub.skills.set('gone', [{ ...at, refuses: [410, 'It was revoked.'] }]);
    servers.clawhub.skills.set('odd', [
      { ...at, moderation: { isSuspicious: true, summary: 'dynamic code' } },
    ]);
    const of = async (source: string, code: number, says: RegExp): Promise<void> => {
      const result = await run(
        'install',
        source,
        '--yes',
        ...(source.endsWith('mal') ? ['--allow', 'high'] : []),
      );
      equal(result.code, code, source);
      match(result.stderr, says);
    };
    await of('clawhub:mal', 1, /malware \(steals keys\)/);
    await of('clawhub:dup', 2, /telos install clawhub:@bob\/dup/);
    await of('clawhub:held', 1, /try again later: The scan is pending/);
    await of('clawhub:gone', 1, /revoked it: It was revoked/);
    await of('clawhub:odd', 1, /high\s+ClawHub: dynamic code/);
    ok(!existsSync(home.skillsDir));
  });

  it('sees one changed byte, one changed digit of the lock, and keeps to the old commit', async () => {
    const first = servers.github.commit('acme/moving', files, { tag: 'v9' });
    await run('install', 'github:acme/moving', '--yes');
    const file = join(home.skillsDir, 'moving/skills/beta/SKILL.md');
    const lock = join(home.skillsDir, 'telos-lock.json');
    const [text, whole] = [readFileSync(file, 'utf8'), readFileSync(lock, 'utf8')];
    servers.github.commit('acme/moving', {
      ...files,
      'skills/beta/SKILL.md': skill('beta', 'New: https://new.example\n'),
    });
    equal((await run('install', '--frozen')).code, 0);
    equal(lockOf(home).packs.moving.resolved.commit, first);
    const { digest, resolved } = lockOf(home).packs.moving;
    for (const hash of [
      digest,
      resolved.commit,
      lockOf(home).packs.moving.files['skills/beta/SKILL.md'].slice(7),
    ]) {
      writeFileSync(lock, whole.replaceAll(hash, (hash[0] === '0' ? '1' : '0') + hash.slice(1)));
      equal((await run('install', '--frozen')).code, 1, hash);
      equal(readFileSync(file, 'utf8'), text);
    }
    writeFileSync(lock, whole);
    writeFileSync(file, `${text}x`);
    const edited = await run('verify');
    equal(edited.code, 1);
    match(edited.stdout, /moving: edited[\s\S]*edited: skills\/beta\/SKILL\.md/);
    const refused = await run('update', 'moving', '--yes');
    equal(refused.code, 1);
    match(
      refused.stderr,
      /\+New: https:\/\/new\.example[\s\S]*edited here, so nothing was changed: skills\/beta\/SKILL\.md/,
    );
    equal(readFileSync(file, 'utf8'), `${text}x`);
    equal((await run('update', 'moving', '--yes', '--force')).code, 0);
    match(readFileSync(file, 'utf8'), /new\.example/);
    equal((await run('verify')).code, 0);
    equal((await run('undo', '--yes')).code, 0, 'the edited folder comes back');
    equal(readFileSync(file, 'utf8'), `${text}x`);
    equal(lockOf(home).packs.moving.resolved.commit, first, 'with its entry in the lock file');
  });

  it('only looks with --list and --dry-run', async () => {
    servers.github.commit('acme/fresh', files);
    await run('install', 'github:acme/fresh', '--yes');
    const times = (): string =>
      execFileSync('find', ['.', '-name', '.cache', '-prune', '-o', '-type', 'f', '-printf', '%T@ %p\n'], {
        cwd: home.folder.path,
        encoding: 'utf8',
      });
    const before = times();
    servers.github.commit('acme/fresh', { ...files, 'skills/alpha/SKILL.md': skill('alpha', 'More.\n') });
    const update = await run('update', '--dry-run');
    match(update.stderr, /\+More\./);
    equal((await run('install', 'github:acme/fresh', '--dry-run')).code, 0);
    equal((await run('install', 'clawhub:weather', '--list')).code, 0);
    equal(times(), before);
  });

  it('passes a pinned pack over, and says where each came from', async () => {
    await run('install', 'clawhub:weather', '--yes', '--pin');
    servers.clawhub.skills.get('weather')![0]!.latest = '1.3.0';
    servers.clawhub.skills.get('weather')![0]!.versions['1.3.0'] = {
      'SKILL.md': skill('weather', 'Better.\n'),
    };
    match((await run('update')).stderr, /weather: pinned to 1\.2\.0/);
    const [agent] = JSON.parse((await run('agents', '--json')).stdout);
    deepEqual([agent.source, agent.version, agent.state], ['clawhub:weather', '1.2.0', 'same, pinned']);
    match(
      (await run('trust', 'weather')).stdout,
      /From: clawhub:weather, version 1\.2\.0, installed \d{4}-\d\d-\d\d; no file edited since/,
    );
    await run('unpin', 'weather');
    equal((await run('update', '--yes')).code, 0);
    match(readFileSync(join(home.skillsDir, 'weather/SKILL.md'), 'utf8'), /Better/);
    writeFileSync(join(home.skillsDir, 'weather/SKILL.md'), 'edited');
    match((await run('trust', 'weather')).stdout, /edited since: SKILL\.md/);
  });

  it('never sends a token elsewhere, nor follows to this machine', async () => {
    const other = await sourceServers();
    try {
      const target = `${other.url}/stolen.tar.gz`;
      servers.answers.set(
        '/there.tar.gz',
        (_request, response) => void response.writeHead(302, { location: target }).end(),
      );
      const redirected = await run('install', `${servers.url}/there.tar.gz`, '--yes');
      equal(redirected.code, 1);
      match(redirected.stderr, /redirects to a refused address/);
      servers.answers.set(
        '/inner.tar.gz',
        (_request, response) =>
          void response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end(),
      );
      equal((await run('install', `${servers.url}/inner.tar.gz`, '--yes')).code, 1);
      equal(other.seen.length, 0);
      const commit = servers.github.commit('acme/private', files);
      const archive = `/codeload/acme/private/tar.gz/${commit}`;
      servers.answers.set(
        `/api/repos/acme/private/tarball/${commit}`,
        (_request, response) => void response.writeHead(302, { location: other.url + archive }).end(),
      );
      other.answers.set(archive, servers.github.archive('acme/private', commit) ?? '');
      const before = servers.seen.length;
      env = { ...env, GITHUB_TOKEN: 'secret-token', TELOS_GITHUB_DOWNLOAD_URL: `${other.url}/codeload` };
      const { code, stdout, stderr } = await run('install', 'github:acme/private', '--yes');
      equal(code, 0, stderr);
      doesNotMatch(stdout + stderr, /secret-token/);
      doesNotMatch(readFileSync(join(home.skillsDir, 'telos-lock.json'), 'utf8'), /secret-token/);
      ok(servers.seen.slice(before).every(({ token }) => token === 'Bearer secret-token'));
      deepEqual(
        other.seen.map(({ path, token }) => [path, token]),
        [[archive, undefined]],
      );
    } finally {
      await other.close();
    }
  });

  it('puts single skills into a project, with a lock file to commit', async () => {
    const result = await run('install', 'github:acme/tools#beta', '--project', '--yes');
    equal(result.code, 0, result.stderr);
    equal(readFileSync(join(home.workDir, '.agents/skills/beta/SKILL.md'), 'utf8'), skill('beta'));
    ok(existsSync(join(home.workDir, 'telos-lock.json')) && !existsSync(home.skillsDir));
    execFileSync('rm', ['-rf', join(home.workDir, '.agents')]);
    equal((await run('verify')).code, 1);
    equal((await run('install')).code, 0);
    equal((await run('verify')).code, 0);
  });

  describe('without a source', () => {
    const own = (path: string): string => join(home.skillsDir, 'tools', path);
    const edited = `${skill('beta')}mine\n`;
    const { 'skills/beta/SKILL.md': beta } = files;

    beforeEach(async () => {
      equal((await run('install', 'github:acme/tools@v1', '--yes')).code, 0);
      equal((await run('install', 'npm:@acme/tools', '--as', 'other', '--yes')).code, 0);
      execFileSync('rm', ['-r', join(home.skillsDir, 'other')]);
    });
    function edit(): void {
      writeFileSync(own('skills/beta/SKILL.md'), edited);
      mkdirSync(own('skills/gamma'));
      writeFileSync(own('skills/gamma/SKILL.md'), skill('gamma'));
    }
    const isEdited = (): boolean =>
      readFileSync(own('skills/beta/SKILL.md'), 'utf8') === edited &&
      existsSync(own('skills/gamma/SKILL.md'));

    it('brings back what is missing, and leaves what was edited by hand unless it is told otherwise', async () => {
      edit();
      for (const args of [['install'], ['install', '--frozen'], ['install', '--json']]) {
        execFileSync('rm', ['-rf', join(home.skillsDir, 'other')]);
        const { code, stdout, stderr } = await run(...args);
        equal(code, 1, stderr);
        ok(isEdited(), args.join(' '));
        ok(existsSync(join(home.skillsDir, 'other/skills/beta/SKILL.md')), 'the others go on');
        match(stderr, /Agent tools already exists: .*\nIt was installed from github:acme\/tools@v1 on /);
        match(stderr, /Removed:\n {2}skills\/gamma\/ \(files: 1\) \(not from the install\)/);
        match(stderr, /Changed:\n {2}skills\/beta\/SKILL\.md \(edited since the install\)/);
        const command = `${args.filter(one => one !== '--json').join(' ')} --yes`;
        match(
          stderr,
          new RegExp(`Nothing was changed\\. To replace it without being asked: telos ${command}`),
        );
        if (args.includes('--json'))
          deepEqual(
            JSON.parse(stdout).packs.map(({ name, state }: Record<string, string>) => [name, state]),
            [
              ['other', 'restored'],
              ['tools', 'left'],
            ],
          );
        else match(stdout, /^other: restored\ntools: not as the lock file says, and left as it is\n$/);
      }
      const { code, stdout, stderr } = await run('install', '--yes');
      equal(code, 0, stderr);
      equal(stdout, 'other: as the lock file says\ntools: restored\n');
      equal(readFileSync(own('skills/beta/SKILL.md'), 'utf8'), beta);
      ok(!existsSync(own('skills/gamma')));
      const [, id = ''] = /To bring it back: telos undo ([\da-f]{8})/.exec(stderr) ?? [];
      equal((await run('undo', id, '--yes')).code, 0);
      ok(isEdited());
    });

    it('is brought back by an update too, and an uninstall says that its folder is gone', async () => {
      const uninstalled = await run('uninstall', 'other', '--yes');
      equal(uninstalled.code, 1);
      match(
        uninstalled.stderr,
        /The folder of agent 'other' is gone, and .*telos-lock\.json still lists it\. Update it/,
      );
      const { code, stdout, stderr } = await run('update', '--yes');
      equal(code, 0, stderr);
      match(stdout, /Updated other to /);
      match(stderr, /tools: .* is the newest version/);
      ok(existsSync(join(home.skillsDir, 'other/skills/beta/SKILL.md')));
      equal((await run('uninstall', 'other', '--yes')).code, 0);
    });

    it('only says what it would do with --dry-run and --list', async () => {
      edit();
      const lock = readFileSync(join(home.skillsDir, 'telos-lock.json'), 'utf8');
      for (const args of [['--dry-run'], ['--list'], ['--dry-run', '--frozen'], ['--dry-run', '--yes']]) {
        const { code, stdout, stderr } = await run('install', ...args);
        equal(code, 0, stderr);
        equal(stdout, 'other: would be restored\ntools: would be replaced, after a yes\n', args.join(' '));
        match(stderr, /Changed:\n {2}skills\/beta\/SKILL\.md \(edited since the install\)/);
        ok(isEdited() && !existsSync(join(home.skillsDir, 'other')), args.join(' '));
      }
      const { stdout } = await run('install', '--dry-run', '--json');
      deepEqual(
        JSON.parse(stdout).packs.map(({ name, state }: Record<string, string>) => [name, state]),
        [
          ['other', 'missing'],
          ['tools', 'different'],
        ],
      );
      equal(readFileSync(join(home.skillsDir, 'telos-lock.json'), 'utf8'), lock);
      equal((await run('install')).code, 1);
      equal((await run('install', '--yes')).code, 0);
      const { stdout: whole } = await run('install', '--dry-run');
      equal(whole, 'other: as the lock file says\ntools: as the lock file says\n');
    });

    it('brings back single files that are missing, since nothing of the person goes', async () => {
      execFileSync('rm', ['-r', own('skills/beta')]);
      const { code, stderr } = await run('install');
      equal(code, 0, stderr);
      equal(readFileSync(own('skills/beta/SKILL.md'), 'utf8'), beta);
    });

    it('replaces what came from elsewhere, or was made by hand, only by its name', async () => {
      execFileSync('rm', ['-r', join(home.skillsDir, 'tools')]);
      mkdirSync(own('skills/beta'), { recursive: true });
      writeFileSync(own('skills/beta/SKILL.md'), edited);
      const refused = await run('install', '--yes');
      equal(refused.code, 1);
      match(refused.stderr, /It was made by hand/);
      match(
        refused.stderr,
        /did not come from where the lock file says, so it is replaced only by name: telos install --yes --as tools\. Nothing/,
      );
      equal(readFileSync(own('skills/beta/SKILL.md'), 'utf8'), edited);
      equal((await run('install', '--yes', '--as', 'tools')).code, 0);
      equal(readFileSync(own('skills/beta/SKILL.md'), 'utf8'), beta);
    });

    for (const answer of ['y', 'n'])
      it(`asks on a terminal, and does as it is told: ${answer}`, async () => {
        edit();
        const session = openTerminalSession(`exec '${process.execPath}' '${program()}' install`, {
          cwd: home.workDir,
          env: { ...home.env, ...env },
        });
        await session.shows(/edited since the install[\s\S]*Replace agent 'tools'\? \[y\/N\]/);
        await session.answers(`${answer}\n`, answer === 'y' ? /tools: restored/ : /left as it is/);
        equal(await session.ended(), answer === 'y' ? 0 : 1);
        equal(isEdited(), answer === 'n');
      });
  });

  it('turns skills-lock.json into a lock file', async () => {
    const skills = {
      alpha: {
        source: 'acme/tools',
        sourceType: 'github',
        ref: 'v1',
        skillPath: 'skills/alpha/SKILL.md',
        computedHash: 'x',
      },
    };
    home.folder.add({ 'work/skills-lock.json': JSON.stringify({ version: 1, skills }) });
    const result = await run('install', '--from-skills-lock', '--yes');
    equal(result.code, 0, result.stderr);
    equal(lockOf(home).packs.alpha.source, 'github:acme/tools/skills/alpha@v1');
  });
});
