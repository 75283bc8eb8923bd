/** The layer of the next command is made beforehand. It is the same as one that is made for it. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dropLeftLayers } from '../../../src/engine/files/leftLayers.ts';
import { eventually } from '../../eventually.ts';
import { skipBecause } from '../../skipBecause.ts';
import { type Boxed, itBoxed } from './boxed.ts';

const layersOf = ({ root }: Boxed): string[] => readdirSync(join(root, 'data/box/layers'));

/** Runs a line in a layer, drops that, and returns what the line printed. */
async function dropped({ box, context, work, sh }: Boxed, line: string): Promise<string> {
  let drop: (() => Promise<void>) | undefined;
  const { out, err } = await sh(line, {
    box: {
      async enclose(start) {
        const enclosed = await box.enclose(start, undefined, true);
        drop = enclosed.layer?.drop;
        return enclosed;
      },
    },
  });
  assert.equal(err, '');
  assert.ok(drop, `no layer over ${work} of ${context.workingDir}`);
  await drop();
  return out;
}

describe('a layer that is made beforehand', () => {
  itBoxed(
    'shows what came meanwhile, holds nothing of earlier commands, and leaves nothing',
    async (run, test) => {
      if (!run.box.hasLayers) return skipBecause(test, 'no layer works here');
      writeFileSync(join(run.work, 'a'), '1');
      await dropped(run, 'echo x > a; echo y > b');
      await eventually(() => assert.equal(layersOf(run).length, 1, 'the next one'));
      const [ready] = layersOf(run);
      writeFileSync(join(run.work, 'a'), '2');
      writeFileSync(join(run.work, 'c'), '3');
      assert.equal(await dropped(run, 'cat a c; ls; chmod 700 .'), '23a\nc');
      await eventually(() => assert.ok(!layersOf(run).includes(ready ?? ''), 'it was used'));
      run.box.rest?.();
      assert.deepEqual(layersOf(run), []);
      assert.equal(readFileSync(join(run.work, 'a'), 'utf8'), '2');
    },
  );

  itBoxed(
    'is made again where another folder is in the place, and is no command that was cut off',
    async (run, test) => {
      if (!run.box.hasLayers) return skipBecause(test, 'no layer works here');
      await dropped(run, 'true');
      renameSync(run.work, `${run.work}-old`);
      mkdirSync(run.work);
      writeFileSync(join(run.work, 'other'), '');
      assert.equal(await dropped(run, 'ls'), 'other');
      assert.deepEqual(dropLeftLayers(join(run.root, 'data')), []);
      run.box.rest?.();
    },
  );
});
