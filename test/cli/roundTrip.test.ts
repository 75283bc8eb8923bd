import { deepEqual, equal, match } from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type GitDaemon, gitDaemon } from '../fakes/gitDaemon.ts';
import { commitFiles } from '../fakes/sourceServers.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

const skill = (name: string, more = ''): string =>
  `---\nname: ${name}\ndescription: Does ${name}.\n---\n# ${name}\n${more}`;
const root$ = '$'.concat('{PLUGIN_ROOT}');
const go = '#!/bin/sh\necho go\n';

/** Packs in the shapes in which people publish them. */
const packs: Readonly<Record<string, { files: Record<string, string>; scripts?: string[] }>> = {
  'a pack of several skills, with scripts, Windows line ends and other scripts': {
    files: {
      'skills/count-words/SKILL.md': skill('count-words', 'Zähle Wörter 数える 🧮.\r\nSecond line.\r\n'),
      'skills/count-words/scripts/go.sh': go,
      'skills/count-words/references/table.csv': 'a;b\n1;2\n',
      'skills/plan-day/SKILL.md': `\ufeff${skill('plan-day')}`,
      'skills/plan-day/assets/empty.txt': '',
      LICENSE: 'MIT License\n',
    },
    scripts: ['skills/count-words/scripts/go.sh'],
  },
  'a pack for Telos, with a folder, servers and variables': {
    files: {
      'agent.toml': 'name = "tools"\ndescription = "Plans"\nworking_dir = "~/notes"\n',
      'mcp.json': JSON.stringify({
        mcpServers: {
          notes: { command: 'node', args: ['server.js'], env: { KEY: '$'.concat('{NOTES_KEY}') } },
        },
      }),
      'server.js': 'process.exit();\n',
      'skills/take-note/SKILL.md': skill('take-note'),
    },
  },
  'a plugin of agent-plugins.org': {
    files: {
      'plugin.json': JSON.stringify({
        $schema: 'https://agent-plugins.org/schemas/1.0.0/plugin.schema.json',
        name: 'tools',
      }),
      'mcp.json': JSON.stringify({
        $schema: 'https://agent-plugins.org/schemas/1.0.0/mcp.schema.json',
        mcpServers: { notes: { type: 'stdio', command: './bin/serve', args: [root$], cwd: './bin' } },
      }),
      'bin/serve': go,
      'skills/take-note/SKILL.md': skill('take-note'),
    },
    scripts: ['bin/serve'],
  },
};

/** Returns every file below a folder with its mode and digest. */
const filesIn = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map(path => [path, statSync(join(folder, path))] as const)
      .filter(([, stats]) => stats.isFile())
      .map(([path, { mode }]): [string, string] => [
        path,
        `${mode & 0o111} ${createHash('sha256')
          .update(readFileSync(join(folder, path)))
          .digest('hex')}`,
      ])
      .sort(),
  );

describe('a pack that goes around', function () {
  this.timeout(120_000);
  let folder: TempFolder;
  let daemon: GitDaemon;
  let homes: CliHome[];
  before(async () => {
    folder = tempFolder({ 'git/.keep': '' });
    daemon = await gitDaemon(join(folder.path, 'git'));
  });
  after(async () => {
    await daemon.close();
    folder.remove();
  });
  beforeEach(() => {
    homes = [0, 1].map(() => cliHome({ '.gitconfig': daemon.config }));
  });
  afterEach(() => {
    for (const home of homes) home.remove();
  });
  const run = async (home: CliHome, ...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await home.run(words);
    equal(code, 0, `${words.join(' ')}: ${stdout}${stderr}`);
    return stdout;
  };

  for (const [what, { files, scripts }] of Object.entries(packs))
    it(`is the same after git, install, export and install: ${what}`, async () => {
      const [first, second] = homes as [CliHome, CliHome];
      const repository = `tools${createHash('sha256').update(what).digest('hex').slice(0, 6)}`;
      commitFiles(join(folder.path, 'git', `${repository}.git`), files, scripts ? { scripts } : {});
      await run(first, 'install', `git+${daemon.base}${repository}.git`, '--as', 'tools', '--yes');
      match(await run(first, 'verify'), /^tools: same/);
      const out = join(first.workDir, 'dist');
      await run(first, 'export', 'tools', '--to', out);
      await run(second, 'install', join(out, 'tools'), '--yes');
      match(await run(second, 'verify'), /^(?:tools: same|Nothing is locked)/);
      const [before, after] = homes.map(({ skillsDir }) => filesIn(join(skillsDir, 'tools/skills')));
      deepEqual(after, before);
      const cards = await Promise.all(
        homes.map(async home => JSON.parse((await home.run(['trust', 'tools', '--json'])).stdout)),
      );
      for (const part of ['servers', 'variables', 'scripts', 'hosts'] as const)
        deepEqual(cards[1][part], cards[0][part], part);
      await run(second, 'lint');
      // The same again, on another day.
      const again = join(first.workDir, 'again');
      await run(first, 'export', 'tools', '--to', again);
      deepEqual(filesIn(again), filesIn(out));
    });

  it('is the same plugin with its commands, roles, servers and hooks, and its skills for the published client', async () => {
    const [first, second] = homes as [CliHome, CliHome];
    const claude = '$'.concat('{CLAUDE_PLUGIN_ROOT}');
    const hooks = {
      PreToolUse: [
        { matcher: 'Write', hooks: [{ type: 'command', command: `sh ${claude}/hooks/guard.sh` }] },
      ],
    };
    const files = {
      '.claude-plugin/plugin.json': JSON.stringify({
        ...{ name: 'desk', description: 'Keeps a desk', version: '1.2.0' },
        mcpServers: { notes: { command: 'node', args: [`${claude}/server.mjs`] } },
        hooks: { Stop: [{ hooks: [{ type: 'command', command: 'true' }] }] },
      }),
      'skills/tidy/SKILL.md': skill('tidy', `Run ${claude}/scripts/go.sh.\n`),
      'skills/count/SKILL.md': skill('count'),
      'commands/ship.md': '---\ndescription: Ships\nargument-hint: "[what]"\n---\nShip $ARGUMENTS.\n',
      'commands/dock/moor.md': 'Moors a boat.\n',
      'agents/pilot.md':
        '---\nname: pilot\ndescription: Reads charts\ntools: Read\nmodel: inherit\n---\nYou read.\n',
      'hooks/hooks.json': JSON.stringify({ hooks }),
      'hooks/guard.sh': 'exit 0\n',
      'scripts/go.sh': go,
      'server.mjs': 'process.exit();\n',
    };
    commitFiles(join(folder.path, 'git/desk.git'), files, { scripts: ['scripts/go.sh'] });
    await run(first, 'install', `git+${daemon.base}desk.git`, '--yes');
    const out = join(first.workDir, 'dist');
    await run(first, 'export', 'desk', '--to', out);
    await run(second, 'install', join(out, 'desk'), '--yes');
    const factsOf = async (home: CliHome): Promise<unknown> => {
      const listed = JSON.parse(await run(home, 'list-skills', '--json')) as Record<string, unknown>[];
      const card = JSON.parse((await home.run(['trust', 'desk', '--json'])).stdout);
      return {
        skills: listed.map(({ skill: id, description, argumentHint }) => [id, description, argumentHint]),
        servers: card.servers.map(({ name }: { name: string }) => name),
        card: [card.hooks, card.commands, card.scripts],
        hooks: await run(home, 'hooks'),
      };
    };
    const before = await factsOf(first);
    deepEqual(await factsOf(second), before);
    match(JSON.stringify(before), /"count".*"moor".*"pilot".*"ship".*"tidy".*"notes".*guard\.sh/);
    const project = join(first.workDir, 'project');
    mkdirSync(project);
    const client = join(
      dirname(createRequire(import.meta.url).resolve('skills/package.json')),
      'bin/cli.mjs',
    );
    const env = {
      PATH: process.env['PATH'],
      HOME: first.folder.path,
      CI: '1',
      DISABLE_TELEMETRY: '1',
      DO_NOT_TRACK: '1',
    };
    const call = [client, 'add', join(out, 'desk'), '-y', '-s', '*', '-a', 'codex'];
    execFileSync(process.execPath, call, { cwd: project, env, stdio: 'pipe' });
    deepEqual(readdirSync(join(project, '.agents/skills')).sort(), ['count', 'tidy']);
    for (const name of ['count', 'tidy'])
      equal(
        readFileSync(join(project, `.agents/skills/${name}/SKILL.md`), 'utf8'),
        files[`skills/${name}/SKILL.md` as 'skills/tidy/SKILL.md'],
      );
  });

  it('becomes an extension that the packager of VS Code takes, with its skills in it', async () => {
    const [home] = homes as [CliHome];
    home.folder.add({
      'skills/travels/skills/pack-bag/SKILL.md': skill('pack-bag'),
      'skills/travels/skills/pack-bag/go.sh': go,
    });
    chmodSync(join(home.skillsDir, 'travels/skills/pack-bag/go.sh'), 0o755);
    const out = join(home.workDir, 'dist');
    await run(home, 'export', 'travels', '--to', out, '--as', 'vscode');
    const vsce = createRequire(import.meta.url).resolve('@vscode/vsce/vsce');
    const file = join(home.workDir, 'travels.vsix');
    const call = [vsce, 'package', '--allow-missing-repository', '--skip-license', '--out', file];
    execFileSync(process.execPath, call, { cwd: join(out, 'travels'), encoding: 'utf8', stdio: 'pipe' });
    const unpacked = join(home.workDir, 'unpacked');
    mkdirSync(unpacked);
    execFileSync('unzip', ['-q', file, '-d', unpacked]);
    const { contributes } = JSON.parse(readFileSync(join(unpacked, 'extension/package.json'), 'utf8'));
    const [{ path }] = contributes.chatSkills;
    deepEqual(
      readFileSync(join(unpacked, 'extension', path)),
      readFileSync(join(home.skillsDir, 'travels/skills/pack-bag/SKILL.md')),
    );
  });
});
