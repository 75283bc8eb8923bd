/** `npm run ordinary`: runs ordinary commands outside of the box and in it, and prints what differs. */
import { suiteOptions } from '../../harness/options.ts';
import { finish, judged, lineOf, type Result } from '../../harness/report.ts';
import { commands, differing, openBench } from './ordinaryCommands.ts';

const { isWanted } = suiteOptions();
const bench = await openBench();
const results: Result[] = [];
for (const command of [...commands, ...differing].filter(({ id, area }) => isWanted(id, area))) {
  const result = { ...(await judged(() => bench.judge(command))), id: command.id, area: command.area };
  results.push(result);
  if (result.result !== 'pass') console.log(lineOf(result));
}
bench.close();
finish(results, [], bench.finding.works ? [] : [`No box works here: ${bench.finding.why}`]);
