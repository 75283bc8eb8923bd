/** A run, seen from outside, starts no program that another run could have written. */
import assert from 'node:assert/strict';
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

  /** Runs the agent with calls of the model that obey an attacker; no one is asked. */
  async function run(calls: { name: string; input: Record<string, string> }[], env: Record<string, string>) {
    const model = await startAnthropicServer({ turns: [{ toolCalls: calls }, { text: ['Done.'] }] });
    try {
      const whole = { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'key-for-a-test', ...env };
      return await home.run(['run kickoff'], { env: whole });
    } finally {
      await model.close();
    }
  }

  beforeEach(async () => {
    home = cliHome({
      'skills/kairos/skills/kickoff/SKILL.md':
        '---\ndescription: M\n---\nRun scripts/go.sh and scripts/x.mjs',
      'skills/kairos/scripts/go.sh': 'tool; rg --version; git --version\n',
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
    { name: 'run_command', input: { command: 'rg alpha' } },
    { name: 'run_command', input: { command: 'ls' } },
  ];
  const names = ['tool', 'rg', 'git', 'node', 'ls', 'sh'];

  it('is neither overwritten nor started unasked', async () => {
    for (const name of names) planted(`root/kairos/bin/${name}`);
    const env = {
      TELOS_WORKING_ROOT: at('root'),
      PATH: [at('root/kairos/bin'), process.env['PATH']].join(delimiter),
    };
    const write = { name: 'write_file', input: { path: 'bin/tool', content: '#!/bin/sh\n' } };
    await run(
      [write, { name: 'write_file', input: { path: 'bin/new', content: '#!/bin/sh\n' } }, ...calls],
      env,
    );
    assert.match(readFileSync(at('root/kairos/bin/tool'), 'utf8'), /planted/);
    assert.equal(existsSync(at('root/kairos/bin/new')), false);
    assert.equal(existsSync(at('proof')), false);
  });

  it('is not started by a later run that works elsewhere', async () => {
    for (const name of names) planted(`before/kairos/bin/${name}`);
    await run([], { TELOS_WORKING_ROOT: at('before') });
    const PATH = [at('before/kairos/bin'), process.env['PATH']].join(delimiter);
    await run(calls, { TELOS_WORKING_ROOT: at('root'), PATH });
    assert.equal(existsSync(at('proof')), false);
  });
});
