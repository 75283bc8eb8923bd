import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { send, take } from '../../src/plans/inbox.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

describe('the inbox of a plan', () => {
  let temporary: TempFolder;
  let folder: PlanFolder;
  beforeEach(() => {
    temporary = tempFolder();
    folder = new PlanFolder(join(temporary.path, 'plan'), temporary.path);
    mkdirSync(folder.dir);
  });
  afterEach(() => temporary.remove());

  it('hands out what was sent, in its order, until it is done', async () => {
    assert.deepEqual(await take(folder, () => false), []);
    const ids: string[] = [];
    for (const text of ['one', 'two', 'three']) ids.push(await send(folder, { kind: 'tell', text }, 'cli'));
    const first = await take(folder, () => false);
    assert.deepEqual(
      first.map(({ id, command, by }) => [id, command.kind === 'tell' && command.text, by]),
      ids.map((id, index) => [id, ['one', 'two', 'three'][index], 'cli']),
    );
    await first[0]?.done();
    const second = await take(folder, id => id === ids[1]);
    assert.deepEqual(
      second.map(({ id }) => id),
      [ids[2]],
    );
    assert.equal(readdirSync(folder.path('inbox')).length, 1);
  });

  it('puts aside what is no command, and says so once', async () => {
    await send(folder, { kind: 'pause' }, 'editor');
    const bad: Record<string, string> = {
      a: '{',
      b: '{"command":{"kind":"launch"}}',
      c: '{"command":{"kind":"budget","add":{"maxCost":-5}}}',
      d: '{"command":{"kind":"tell","text":7}}',
      e: '{"command":{"kind":"__proto__"}}',
      f: '{"command":{"kind":"parallel","slots":1000}}',
    };
    for (const [name, text] of Object.entries(bad)) writeFileSync(folder.path('inbox', `${name}.json`), text);
    const outside = join(temporary.path, 'outside.json');
    writeFileSync(outside, '{"command":{"kind":"stop","when":"now"}}');
    symlinkSync(outside, folder.path('inbox', 'g.json'));
    const said: string[] = [];
    const commands = await take(
      folder,
      () => false,
      sentence => said.push(sentence),
    );
    assert.deepEqual(
      commands.map(({ command }) => command.kind),
      ['pause'],
    );
    assert.equal(said.length, 7);
    assert.equal(
      (
        await take(
          folder,
          () => false,
          sentence => said.push(sentence),
        )
      ).length,
      1,
    );
    assert.equal(said.length, 7);
  });
});
