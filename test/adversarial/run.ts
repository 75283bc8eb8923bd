/** `npm run adversarial [-- FILE...] [--only ID or area] [--fast] [--reword neutral|paraphrase|shuffled]`: one line for each case, then totals by area. */
import { suiteOptions } from '../harness/options.ts';
import { finish, lineOf } from '../harness/report.ts';
import { readCases } from './caseFile.ts';
import { closeBrowser } from './chatWindow.ts';
import { contradictions, decided } from './contradictions.ts';
import { takesLong } from './kinds.ts';
import { sumUp } from './outside.ts';
import { reword, rewordings } from './reword.ts';
import { type CaseResult, runCase } from './runCases.ts';

const { files, isWanted, flags, values } = suiteOptions(['fast'], ['reword']);
const usual = ['cases.json', 'resolver.json'].map(name => new URL(name, import.meta.url).pathname);
const wanted = (files.length > 0 ? files : usual)
  .flatMap(readCases)
  .filter(({ id, area, input }) => isWanted(id, area, input.kind))
  .filter(one => !flags.has('fast') || !takesLong(one));
const rewording = rewordings.find(one => one === values.get('reword'));
if (values.has('reword') && !rewording)
  throw new Error(`--reword takes ${rewordings.join(', ')}, not ${values.get('reword')}.`);
const results: CaseResult[] = [];
for (const theCase of wanted) {
  const verdict = await runCase(rewording ? reword(theCase, rewording) : theCase);
  const result = { ...verdict, id: theCase.id };
  results.push(result);
  console.log(lineOf(result));
}
await closeBrowser();
const outside = results.flatMap(({ seen }) => (seen?.outside ? [seen.outside] : []));
finish(results, [...decided, ...contradictions], outside.length > 0 ? [sumUp(outside)] : []);
process.exit();
