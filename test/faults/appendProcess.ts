/** Appends records to a log when its input ends: `node appendProcess.ts <name> <file> <count> <bytes>`. */
import { once } from 'node:events';
import { appendRecord } from '../../src/engine/records/logFile.ts';

const [name = '', file = '', count = '0', bytes = '0'] = process.argv.slice(2);
const content = name.slice(-1).repeat(Number(bytes));
process.stdin.resume();
console.log('ready');
await once(process.stdin, 'end');
for (let index = 0; index < Number(count); index++) {
  appendRecord(file, {
    ts: new Date().toISOString(),
    event: 'skill_end',
    duration_s: 1,
    rounds: 1,
    tool_calls: 0,
    error: null,
    outcome: 'completed',
    cost: 0,
    agent: 'kairos',
    skill: 'kickoff',
    run_id: `${name}-${index}`,
    input_tokens: 0,
    output_tokens: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    messages: [{ role: 'user', content }],
  });
}
