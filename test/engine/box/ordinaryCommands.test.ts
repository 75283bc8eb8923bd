/** Ordinary commands in a real box: some of each area, with `TELOS_NIGHTLY=1` all of them. */
import assert from 'node:assert/strict';
import { judged } from '../../harness/report.ts';
import { skipBecause } from '../../skipBecause.ts';
import { commands, differing, openBench, type Workbench } from './ordinaryCommands.ts';

const nightly = process.env['TELOS_NIGHTLY'] === '1';
/** Of each area. */
const some = 3;

describe('ordinary commands', () => {
  let bench: Workbench;
  const unjudged = new Set<string>();
  before(async () => {
    bench = await openBench();
  });
  after(() => {
    bench.close();
    for (const why of unjudged) console.log(`    not judged: ${why}`);
  });

  it('are two hundred, each with its own name', () => {
    const ids = [...commands, ...differing].map(({ id }) => id);
    assert.ok(commands.length >= 200, `${commands.length}`);
    assert.equal(new Set(ids).size, ids.length);
  });

  for (const area of new Set([...commands, ...differing].map(each => each.area)))
    it(`of ${area} do in the sandbox what they do outside of it, but where a reason is given`, async function () {
      const { finding } = bench;
      if (!finding.works) {
        assert.match(finding.why, /\w/);
        unjudged.add(`no sandbox works here: ${finding.why}`);
        return skipBecause(this, 'no sandbox works here');
      }
      const own = [...commands, ...differing].filter(each => each.area === area);
      for (const command of nightly ? own : own.slice(0, some)) {
        const { result, problems } = await judged(() => bench.judge(command));
        if (result === 'not judged') unjudged.add(`${area}: ${problems.join()}`);
        else assert.equal(result, command.why === undefined ? 'pass' : 'contradicts', problems.join('\n'));
      }
    }).timeout(nightly ? 600_000 : 60_000);
});
