/** `telos install` and `telos update` are killed at random moments: the old pack is there or the new one, whole, and `verify` says so. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type SourceServers, sourceServers } from '../fakes/sourceServers.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

/** How often each is killed; more with TELOS_NIGHTLY. */
const kills = process.env['TELOS_NIGHTLY'] ? 100 : 4;
const filesOf = (version: string): Record<string, string> => ({
  'skills/s/SKILL.md': `---\nname: s\ndescription: ${version}\n---\nB\n`,
  ...Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`skills/s/references/${at}.md`, version])),
});

describe('a process that is killed at a random moment while it', function () {
  this.timeout(kills * 20_000);
  let servers: SourceServers;
  let home: CliHome;
  let env: Record<string, string>;
  beforeEach(async () => {
    servers = await sourceServers();
    home = cliHome({ 'temporary/.keep': '' });
    env = { ...servers.env, TMPDIR: join(home.folder.path, 'temporary') };
    servers.github.commit('acme/tools', filesOf('one'));
  });
  afterEach(async () => {
    home.remove();
    await servers.close();
  });

  const install = ['install', 'github:acme/tools', '--yes'];
  /** Returns the version that the folder holds as a whole, or undefined if there is none. */
  const versionThere = (): string | undefined => {
    const folder = join(home.skillsDir, 'tools/skills/s/references');
    if (!existsSync(join(home.skillsDir, 'tools'))) return undefined;
    const texts = readdirSync(folder).map(name => readFileSync(join(folder, name), 'utf8'));
    equal(texts.length, 60);
    const [version = ''] = texts;
    deepEqual(new Set(texts), new Set([version]));
    ok(readFileSync(join(folder, '../SKILL.md'), 'utf8').includes(`description: ${version}`));
    return version;
  };

  /** Kills the command again and again, each time in the same world, and returns what was there afterwards. */
  async function killed(command: readonly string[]): Promise<Set<string | undefined>> {
    const copy = `${home.folder.path}.before`;
    const bring = (from: string, to: string): void => {
      rmSync(to, { recursive: true, force: true });
      equal(spawnSync('cp', ['-a', from, to], { stdio: 'inherit' }).status, 0);
    };
    bring(home.folder.path, copy);
    try {
      const started = performance.now();
      const whole = await home.run(command, { env });
      equal(whole.code, 0, whole.stderr);
      const lasts = performance.now() - started;
      const seen = new Set([versionThere()]);
      for (let at = 0; at < kills; at++) {
        bring(copy, home.folder.path);
        const { child, result } = home.start(command, { env });
        // Most of the time goes by before anything is written.
        await pause(lasts * (0.3 + 0.8 * Math.random()));
        child.kill('SIGKILL');
        await result;
        const { code, stdout, stderr } = await home.run(['verify', '--json'], { env });
        const version = versionThere();
        seen.add(version);
        const states = JSON.parse(stdout).packs.map((pack: { state: string }) => pack.state);
        deepEqual(states, version === undefined ? [] : ['same'], stderr);
        equal(code, version === undefined ? 1 : 0);
        const again = await home.run(['list-skills', '--json'], { env });
        equal(again.stdout.includes('"s"'), version !== undefined, again.stderr);
      }
      return seen;
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }

  it('installs', async () => {
    for (const version of await killed(install)) ok([undefined, 'one'].includes(version), version);
  });

  it('updates', async () => {
    equal((await home.run(install, { env })).code, 0);
    servers.github.commit('acme/tools', filesOf('two'));
    const seen = await killed(['update', 'tools', '--yes']);
    ok(seen.has('two'));
    for (const version of seen) ok(['one', 'two'].includes(version ?? ''), version);
  });
});
