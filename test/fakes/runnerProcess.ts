/** Takes a plan as a runner of its own process: `node runnerProcess.ts FOLDER REPO`. Prints what it got, and holds it until its input ends. */
import { PlanFolder } from '../../src/plans/planFolder.ts';
import { takeRunner } from '../../src/plans/runnerLock.ts';

const [dir = '', repo = ''] = process.argv.slice(2);
const taken = await takeRunner(new PlanFolder(dir, repo), 'cli');
console.log(JSON.stringify(taken.kind === 'busy' ? { busy: taken.runner.pid } : { taken: process.pid }));
process.stdin.resume();
process.stdin.on('end', async () => {
  if (taken.kind === 'taken') await taken.lock.release();
  process.exit();
});
