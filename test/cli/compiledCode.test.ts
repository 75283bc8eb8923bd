import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('compiled code of the command line', () => {
  let home: CliHome;
  beforeEach(() => {
    home = cliHome({ 'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Morning\n---\nPlan.\n' });
  });
  afterEach(() => home.remove());

  const folder = (): string => join(home.folder.path, 'cache/telos/compiled');
  const kept = (part: string): string[] =>
    readdirSync(folder())
      .filter(name => name.startsWith(`${part}-`))
      .map(name => join(folder(), name));
  const env = (): Record<string, string> => ({ XDG_CACHE_HOME: join(home.folder.path, 'cache') });
  const version = () => home.runProcess(['--version'], { env: env() });

  it('is kept for the next start, for its user alone, and made anew with what is used for the first time', async () => {
    const first = await version();
    const [start = ''] = kept('commandLine');
    assert.equal(statSync(start).mode & 0o777, 0o600);
    const [before, made] = [statSync(start).size, statSync(start).ino];
    assert.deepEqual(await version(), first);
    assert.equal(statSync(start).ino, made, 'what is kept is used');

    const server = await startAnthropicServer({ turns: [{ text: ['Good morning.'] }] });
    try {
      const more = { env: { ...env(), ANTHROPIC_API_KEY: 'key-0123456789', ANTHROPIC_BASE_URL: server.url } };
      const { stdout } = await home.runProcess(['run', 'kickoff'], more);
      assert.match(stdout, /Good morning\./);
    } finally {
      await server.close();
    }
    assert.equal(kept('anthropic').length, 1);
    assert.ok(statSync(start).size > before, 'the functions of a run are in it');
  });

  it('is of use after a run that goes far', async () => {
    const rounds = 25;
    const turns = Array.from({ length: rounds }, () => ({
      text: ['Looking.'],
      toolCalls: [{ name: 'list_directory', input: {} }],
    }));
    const server = await startAnthropicServer({ turns: [...turns, { text: ['Done.'] }] });
    try {
      const more = { ANTHROPIC_API_KEY: 'key-0123456789', ANTHROPIC_BASE_URL: server.url };
      const limits = { TELOS_MAX_ROUNDS: String(2 * rounds) };
      const { stdout } = await home.runProcess(['run', 'kickoff'], { env: { ...env(), ...more, ...limits } });
      assert.match(stdout, /Done\./);
    } finally {
      await server.close();
    }
    const [start = ''] = kept('commandLine');
    const made = statSync(start).ino;
    await version();
    assert.equal(statSync(start).ino, made, 'what is kept is used');
  });

  it('does not matter when it is damaged, belongs to another program, or cannot be kept', async () => {
    const first = await version();
    const [start = ''] = kept('commandLine');
    for (const damage of ['', 'no code', readFileSync(start).subarray(0, 5000)]) {
      writeFileSync(start, damage);
      assert.deepEqual(await version(), first);
      assert.ok(statSync(start).size > 100_000, 'it is made anew');
    }
    writeFileSync(join(home.folder.path, 'closed'), '');
    const closed = { XDG_CACHE_HOME: join(home.folder.path, 'closed') };
    assert.deepEqual(await home.runProcess(['--version'], { env: closed }), first);
  });

  it('is that of its own code, also when another version has a file of that name and length', async () => {
    const root = fileURLToPath(new URL('../..', import.meta.url));
    // Each version lies in a folder of its own, as the one that was installed before and the one that is installed now.
    const made = (version: string): Record<string, string> => {
      const build = `
        import { splitForCache } from ${JSON.stringify(join(root, 'compiledBuild.mjs'))};
        const text = 'function say(){return "${version}"}export{say as s};';
        console.log(JSON.stringify(splitForCache('start-SAMENAME.js', text)));`;
      const { code, shim } = JSON.parse(
        execFileSync(process.execPath, ['--input-type=module', '--eval', build], { encoding: 'utf8' }),
      );
      return {
        [`${version}/start-SAMENAME.js`]: shim,
        [`${version}/start-SAMENAME.code`]: code,
        [`${version}/package.json`]: '{"type":"module"}',
        [`${version}/compiledCode.js`]: readFileSync(join(root, 'dist/chunks/cli/compiledCode.js'), 'utf8'),
        [`${version}/main.js`]: 'import { s } from "./start-SAMENAME.js"; console.log(s());',
      };
    };
    home.folder.add({ ...made('one'), ...made('two') });
    const say = (version: string): string =>
      execFileSync(process.execPath, [join(home.folder.path, version, 'main.js')], {
        encoding: 'utf8',
        env: { ...process.env, ...env() },
      });
    assert.deepEqual([say('one'), say('two'), say('two'), say('one')], ['one\n', 'two\n', 'two\n', 'one\n']);
  });

  it('is removed at an age of a month, when newer code is kept', async () => {
    await version();
    const [start = ''] = kept('commandLine');
    const [old, recent] = ['OLDONE', 'RECENT'].map(hash =>
      join(folder(), `commandLine-${hash}.code-v24-x64`),
    ) as [string, string];
    for (const file of [old, recent]) writeFileSync(file, 'code');
    const longAgo = new Date(Date.now() - 31 * 24 * 60 * 60 * 1000);
    utimesSync(old, longAgo, longAgo);
    await version();
    assert.ok(existsSync(old), 'a start that keeps nothing looks at nothing');
    writeFileSync(start, '');
    await version();
    assert.deepEqual([old, recent, start].map(existsSync), [false, true, true]);
  });

  it("is not kept where Node's own cache is turned off", async () => {
    await home.runProcess(['--version'], { env: { ...env(), NODE_DISABLE_COMPILE_CACHE: '1' } });
    assert.equal(existsSync(folder()), false);
  });
});
