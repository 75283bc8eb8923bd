/** A reader that leaves a run stops it, also while a command goes on. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { allowAll } from '../../../src/engine/human.ts';
import { logPath } from '../../../src/engine/records/logFile.ts';
import { calls, done, says } from '../../fakes/scriptedProvider.ts';
import { scriptedTelos } from '../../fakes/scriptedTelos.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('a reader that leaves a run', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const begin = async () => {
    folder.add({ 'skills/me/skills/s/SKILL.md': '---\ndescription: d\n---\nWork.\n', 'work/a.txt': 'a' });
    const cwd = join(folder.path, 'work');
    const env = {
      TELOS_SKILLS_DIR: join(folder.path, 'skills'),
      TELOS_DATA_DIR: join(folder.path, 'data'),
      PATH: process.env['PATH'],
    };
    const config = loadConfig({ env, home: folder.path, cwd });
    const { telos } = scriptedTelos(config, ({ turn }) =>
      turn === 0
        ? [calls('c1', 'run_command', { command: 'echo begun; sleep 5; touch late' }), done('tool_use')]
        : [says('Done.'), done('end_turn')],
    );
    const signal = new AbortController().signal;
    const request = { text: 'go', skill: { agent: 'me', skill: 's' } };
    return { cwd, events: telos.run(request, allowAll, signal)[Symbol.asyncIterator]() };
  };

  it('ends its command while it waits for what comes next, and has it recorded as cancelled', async () => {
    const { cwd, events } = await begin();
    for (let one = await events.next(); !one.done && one.value.type !== 'tool_output'; )
      one = await events.next();
    const next = events.next();
    await events.return?.();
    await next;
    assert.equal((await events.next()).done, true);
    assert.ok(!existsSync(join(cwd, 'late')));
    const log = readFileSync(logPath(join(folder.path, 'data')), 'utf8');
    assert.match(log, /"outcome":"cancelled"/);
  });
});
