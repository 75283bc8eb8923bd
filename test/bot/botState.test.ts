/** What the bot keeps between two starts. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { BotState } from '../../src/bot/botState.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

describe('the state of the bot', () => {
  let folder: TempFolder;
  let failures: string[];
  const at = (path: string): string => join(folder.path, path);
  const open = (dataDir: string): BotState => new BotState(dataDir, why => failures.push(why));
  beforeEach(() => {
    folder = tempFolder();
    failures = [];
  });
  afterEach(() => folder.remove());

  it('is not written through a link in its place, which is said', async () => {
    folder.add({ 'elsewhere/profile': 'mine\n', 'data/.keep': '' });
    symlinkSync(at('elsewhere/profile'), at('data/discord.json'));
    const state = open(at('data'));
    state.goesOn('c1', 'r1');
    await state.settled();
    assert.equal(readFileSync(at('elsewhere/profile'), 'utf8'), 'mine\n');
    assert.match(failures.join('\n'), /could not be saved: .*discord\.json is a link/);
  });

  it('is kept where the data folder itself is a link, and where it is not there yet', async () => {
    mkdirSync(at('real'));
    symlinkSync(at('real'), at('linked'));
    for (const dir of ['linked', 'new/data']) {
      const state = open(at(dir));
      state.goesOn('c1', 'r1');
      await state.settled();
      assert.equal(open(at(dir)).runIn('c1'), 'r1', dir);
    }
    assert.deepEqual(failures, []);
  });
});
