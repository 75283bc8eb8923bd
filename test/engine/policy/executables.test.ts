/**
 * Tests that writing a program asks, under any name and with any tool. A file that a run may write unasked is never run by its
 * name.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { decide } from '../../../src/engine/policy/decide.ts';
import type { PolicyContext } from '../../../src/engine/policy/decision.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

describe('a write', () => {
  let run: TemporaryRun;
  const about = async (name: string, input: Record<string, string>, env: Record<string, string> = {}) => {
    const context: PolicyContext = { ...run.context, home: run.home, protectedDirs: [], env };
    return decide({ id: '1', name, input }, context);
  };
  const short = async (...call: Parameters<typeof about>): Promise<string> => {
    const { action, rule } = await about(...call);
    return `${action} ${rule}`;
  };

  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());

  it('asks where it replaces a program, also through a link', async () => {
    chmodSync(run.put('work/scripts/deploy', 'echo\n'), 0o755);
    chmodSync(run.put('work/for-me', 'echo\n'), 0o744);
    run.put('work/notes.md', 'a\n');
    symlinkSync(join(run.work, 'scripts/deploy'), join(run.work, 'plain.md'));
    for (const path of ['scripts/deploy', 'for-me', 'plain.md']) {
      assert.equal(await short('write_file', { path, content: 'x' }), 'ask write.executed', path);
      assert.equal(
        await short('edit_file', { path, old_text: 'a', new_text: 'b' }),
        'ask write.executed',
        path,
      );
    }
    const decision = await about('write_file', { path: 'for-me', content: 'x' });
    assert.match(
      decision.action === 'ask' ? decision.reason : '',
      /for-me is a program that can be executed/,
    );
    assert.equal(await short('write_file', { path: 'notes.md', content: '#!x' }), 'allow write.working-dir');
  });

  it('asks where it puts a script on the PATH of the user', async () => {
    mkdirSync(join(run.work, 'bin'));
    symlinkSync(join(run.work, 'bin'), join(run.root, 'link'));
    for (const folder of [join(run.work, 'bin'), join(run.root, 'link'), `${join(run.work, 'bin')}/`]) {
      const env = { PATH: ['/usr/bin', folder].join(delimiter) };
      const script = { path: 'bin/new', content: '#!/bin/sh\n' };
      assert.equal(await short('write_file', script, env), 'ask write.executed', folder);
      assert.equal(
        await short('write_file', { path: 'bin/notes', content: 'x' }, env),
        'allow write.working-dir',
      );
      assert.equal(await short('write_file', { ...script, path: 'new' }, env), 'allow write.working-dir');
    }
  });

  it('asks by the name that is written as well as by the one that it leads to', async () => {
    run.put('work/text.md', 'a\n');
    for (const name of ['AGENTS.md', 'Makefile']) symlinkSync('text.md', join(run.work, name));
    assert.equal(await short('write_file', { path: 'AGENTS.md', content: 'x' }), 'ask write.executed');
    assert.equal(await short('write_file', { path: 'Makefile', content: 'x' }), 'ask write.executed');
    assert.equal(await short('write_file', { path: 'text.md', content: 'x' }), 'allow write.working-dir');
  });

  it('says who obeys the file, in one sentence', async () => {
    const decision = await about('write_file', { path: 'package.json', content: '{}' });
    const reason = decision.action === 'ask' ? decision.reason : '';
    assert.match(
      reason,
      /^Other programs \(package managers\) run or obey .*package\.json: what is written there can act later\./,
    );
  });

  it('is no way around the question about reading a secret by another name', async () => {
    run.put('work/settings/shared', 'KEY=1\n');
    symlinkSync('settings/shared', join(run.work, '.env'));
    run.put('work/.secrets/key', 'KEY=1\n');
    symlinkSync('.secrets/key', join(run.work, 'plain.txt'));
    for (const path of ['.env', 'plain.txt', '.ENV::$DATA'])
      assert.equal(await short('read_file', { path }), 'ask read.sensitive', path);
    assert.equal(await short('run_command', { command: 'cat .env' }), 'ask run.command');
    writeFileSync(join(run.work, 'a.txt'), 'a');
    assert.equal(await short('read_file', { path: 'a.txt' }), 'allow read.own-folders');
  });
});
