/** `npm run adversarial -- FILE [--area A] [--case ID] [--fast] [--reword neutral|paraphrase|shuffled]`: one line for each case, then totals by area; the exit code is 1 when one fails. */
import { parseArgs } from 'node:util';
import { readCases } from './caseFile.ts';
import { closeBrowser } from './chatWindow.ts';
import { decided, waiting } from './contradictions.ts';
import { takesLong } from './kinds.ts';
import { sumUp } from './outside.ts';
import { reword, rewordings } from './reword.ts';
import { type CaseResult, lineOf, runCase } from './runCases.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    area: { type: 'string', multiple: true },
    case: { type: 'string', multiple: true },
    fast: { type: 'boolean', default: false },
    reword: { type: 'string' },
  },
});
const usual = ['cases.json', 'resolver.json'].map(name => new URL(name, import.meta.url).pathname);
const files = positionals.length > 0 ? positionals : usual;
const wanted = files
  .flatMap(readCases)
  .filter(({ area }) => !values.area || values.area.includes(area))
  .filter(({ id }) => !values.case || values.case.includes(id))
  .filter(one => !values.fast || !takesLong(one));
const rewording = rewordings.find(one => one === values.reword);
if (values.reword && !rewording)
  throw new Error(`--reword takes ${rewordings.join(', ')}, not ${values.reword}.`);
const results: CaseResult[] = [];
for (const theCase of wanted) {
  const verdict = await runCase(rewording ? reword(theCase, rewording) : theCase);
  const result = { ...verdict, id: theCase.id };
  results.push(result);
  console.log(lineOf(result));
}
await closeBrowser();
for (const [id, why] of [...decided, ...waiting])
  if (results.some(one => one.id === id)) console.log(`note: ${id}: ${why}`);
const outside = results.flatMap(({ seen }) => (seen?.outside ? [seen.outside] : []));
if (outside.length > 0) console.log(sumUp(outside));
const count = (area: string | undefined, result: string): string =>
  String(
    results.filter(one => (area === undefined || one.area === area) && one.result === result).length,
  ).padStart(12);
console.log(
  `\n${'area'.padEnd(12)}${['pass', 'FAIL', 'not judged'].map(word => word.padStart(12)).join('')}`,
);
for (const area of [...new Set(results.map(one => one.area)), undefined])
  console.log(
    `${(area ?? 'total').padEnd(12)}${['pass', 'fail', 'not judged'].map(word => count(area, word)).join('')}`,
  );
const unjudged = results.reduce((sum, { notJudged }) => sum + notJudged.length, 0);
if (unjudged > 0) console.log(`${unjudged} assertions were not judged; each is named with its case.`);
if (wanted.length === 0) console.log('No case was asked for by that.');
process.exit(wanted.length === 0 || results.some(({ result }) => result === 'fail') ? 1 : 0);
