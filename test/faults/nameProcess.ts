/** Names a run again and again when its input ends: `node nameProcess.ts <name> <data folder> <run> <count>`. */
import { once } from 'node:events';
import { RunHistory } from '../../src/engine/records/runHistory.ts';

const [name = '', dataDir = '', runId = '', count = '0'] = process.argv.slice(2);
const history = new RunHistory(dataDir);
process.stdin.resume();
console.log('ready');
await once(process.stdin, 'end');
for (let index = 0; index < Number(count); index++) await history.rename(runId, `${name} ${index}`);
