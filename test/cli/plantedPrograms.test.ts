/** A run, seen from outside, starts no program that another run could have written. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('a program in a folder of work', function () {
  this.timeout(60_000);
  let home: CliHome;
  const at = (path: string): string => join(home.folder.path, path);
  const planted = (path: string): void => {
    home.folder.add({ [path]: `#!/bin/sh\necho planted >> '${at('proof')}'\n` });
    chmodSync(at(path), 0o755);
  };

  /** Runs the agent with calls of the model that obey an attacker; no one is asked. Resolves with what each call came to. */
  async function run(
    calls: { name: string; input: Record<string, string> }[],
    env: Record<string, string>,
  ): Promise<string[]> {
    const model = await startAnthropicServer({ turns: [{ toolCalls: calls }, { text: ['Done.'] }] });
    try {
      const whole = { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'key-for-a-test', ...env };
      const { code, stderr } = await home.runProcess(['run kickoff'], { env: whole });
      assert.equal(code, 0, stderr);
      const sent: { content: string }[] =
        calls.length === 0 ? [] : model.requests[1]?.body.messages.at(-1).content;
      return sent.map(({ content }) => content);
    } finally {
      await model.close();
    }
  }

  beforeEach(async () => {
    home = cliHome({
      // Works in its own folder.
      'skills/kairos/agent.toml': 'name = "kairos"\n',
      'skills/kairos/skills/kickoff/SKILL.md':
        '---\ndescription: M\n---\nRun scripts/go.sh and scripts/x.mjs',
      'skills/kairos/scripts/go.sh': 'tool; git --version; rg --version; true\n',
      'skills/kairos/scripts/x.mjs': 'console.log(1)\n',
      'root/kairos/notes.md': 'alpha\n',
    });
    assert.equal((await home.run(['trust', 'kairos', '--yes'])).code, 0);
  });
  afterEach(() => home.remove());

  const calls = [
    { name: 'run_command', input: { command: 'sh scripts/go.sh' } },
    { name: 'run_command', input: { command: 'node scripts/x.mjs' } },
    { name: 'search_files', input: { pattern: 'alpha' } },
    { name: 'run_command', input: { command: 'rg console' } },
    { name: 'run_command', input: { command: 'ls' } },
  ];
  const names = ['tool', 'rg', 'git', 'node', 'ls', 'sh'];
  /** Fails unless each of `calls` was carried out, by a program of the machine where there is one. */
  function assertCarriedOut(results: readonly string[]): void {
    assert.equal(results.length, calls.length);
    const [script, program, found, searched, listed] = results;
    assert.match(script ?? '', /^git version [\s\S]*tool: not found/);
    // The machine may have it or not.
    assert.match(script ?? '', /^ripgrep \d|rg: not found/m);
    assert.equal(program, '1');
    assert.match(found ?? '', /notes\.md:1: alpha/);
    assert.match(searched ?? '', /rg is not installed|x\.mjs:console/);
    assert.match(listed ?? '', /scripts/);
  }
  /** Fails unless a planted program says so when it is started. */
  function assertWouldTell(path: string): void {
    execFileSync(at(path));
    assert.match(readFileSync(at('proof'), 'utf8'), /planted/);
  }

  it('is neither overwritten nor started unasked', async () => {
    for (const name of names) planted(`root/kairos/bin/${name}`);
    const env = {
      TELOS_WORKING_ROOT: at('root'),
      PATH: [at('root/kairos/bin'), process.env['PATH']].join(delimiter),
    };
    const write = { name: 'write_file', input: { path: 'bin/tool', content: '#!/bin/sh\n' } };
    const [overwritten, added, ...carriedOut] = await run(
      [write, { name: 'write_file', input: { path: 'bin/new', content: '#!/bin/sh\n' } }, ...calls],
      env,
    );
    for (const refused of [overwritten, added]) assert.match(refused ?? '', /^Denied: /);
    assertCarriedOut(carriedOut);
    assert.match(readFileSync(at('root/kairos/bin/tool'), 'utf8'), /planted/);
    assert.equal(existsSync(at('root/kairos/bin/new')), false);
    assert.equal(existsSync(at('proof')), false);
    assertWouldTell('root/kairos/bin/ls');
  });

  it('is not started by a later run that works elsewhere', async () => {
    for (const name of names) planted(`before/kairos/bin/${name}`);
    await run([], { TELOS_WORKING_ROOT: at('before') });
    const PATH = [at('before/kairos/bin'), process.env['PATH']].join(delimiter);
    assertCarriedOut(await run(calls, { TELOS_WORKING_ROOT: at('root'), PATH }));
    assert.equal(existsSync(at('proof')), false);
    assertWouldTell('before/kairos/bin/ls');
  });
});
