/** `npm run adversarial [-- FILE...] [--only ID or area] [--fast] [--bare] [--reword neutral|paraphrase|shuffled]`: one line for each case, then totals by area. */
import { suiteOptions } from '../harness/options.ts';
import { finish, lineOf, type Result } from '../harness/report.ts';
import { readAttempts } from './box/attempt.ts';
import { runBox } from './box/runBox.ts';
import { readCases } from './caseFile.ts';
import { closeBrowser } from './chatWindow.ts';
import { contradictions, decided } from './contradictions.ts';
import { takesLong } from './kinds.ts';
import { type Outside, sumUp } from './outside.ts';
import { reword, rewordings } from './reword.ts';
import { runCase } from './runCases.ts';

const { files, isWanted, flags, values } = suiteOptions(['fast', 'bare'], ['reword']);
const usual = ['cases.json', 'resolver.json'].map(name => new URL(name, import.meta.url).pathname);
const wanted = (files.length > 0 ? files : usual)
  .flatMap(readCases)
  .filter(({ id, area, input }) => isWanted(id, area, input.kind))
  .filter(one => !flags.has('fast') || !takesLong(one));
const rewording = rewordings.find(one => one === values.get('reword'));
if (values.has('reword') && !rewording)
  throw new Error(`--reword takes ${rewordings.join(', ')}, not ${values.get('reword')}.`);
const results: Result[] = [];
const outside: Outside[] = [];
for (const theCase of flags.has('bare') ? [] : wanted) {
  const result = await runCase(rewording ? reword(theCase, rewording) : theCase, theCase.id);
  results.push(result);
  if (result.seen?.outside) outside.push(result.seen.outside);
  console.log(lineOf(result));
}
await closeBrowser();
const attempts = (files.length > 0 ? [] : readAttempts()).filter(({ id, area }) =>
  isWanted(`box-${id}`, `box ${area}`, 'box'),
);
const said = outside.length > 0 ? [sumUp(outside)] : [];
if (attempts.length > 0) {
  const onResult = (result: Result): void => console.log(lineOf(result));
  const box = await runBox(attempts, { bare: flags.has('bare'), onResult });
  results.push(...box.results);
  said.push(box.summary);
}
finish(results, [...decided, ...contradictions], said);
process.exit();
