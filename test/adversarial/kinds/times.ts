/** Cases on clocks: odd zones, midnight in the middle of a run, a clock that is set back, and an hour that comes twice. */

import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { AnthropicTurn } from '../../fakes/anthropicServer.ts';
import { type Fields, fieldsOf } from '../caseFile.ts';
import { CannotJudge, check, type Seen } from '../checks.ts';
import { type CliRun, runCli, turnsFor } from '../cliRun.ts';
import { clockAt } from '../clock.ts';
import type { World } from '../world.ts';
import { filesBelow } from './files.ts';

interface Logged {
  file: string;
  record: Fields;
}

function logged(world: World): Logged[] {
  return filesBelow(join(world.data, 'logs'))
    .sort()
    .flatMap(file =>
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map(line => ({ file: basename(file), record: fieldsOf(JSON.parse(line)) })),
    );
}

const promptOf = ({ requests }: CliRun): string => JSON.stringify(requests[0]?.body?.messages ?? '');

export function time(world: World): Promise<Seen> {
  const { input } = world;
  if (input['prior']) return repeatedHour(world);
  if (input['run_from']) return midnight(world);
  if (input['clock_jump']) return clockJump(world);
  return zone(world);
}

async function zone(world: World): Promise<Seen> {
  const { tz, now } = world.input;
  const env = { TZ: String(tz), ...clockAt(String(now), { stands: true }) };
  const prompt = promptOf(await runCli(world, ['one'], [{ text: ['done'] }], { env }));
  const ts = logged(world).map(({ record }) => String(record['ts']));
  const local = localTime(String(now), String(tz));
  return {
    decision: 'any',
    checks: [
      check(
        'model',
        'the model is told the local time with its zone',
        prompt.includes(`Current date/time: ${local.words}`) || prompt.slice(0, 300),
      ),
      check(
        'records',
        'each record has the local time with its offset',
        (ts.length === 2 &&
          ts.every(one => one.startsWith(local.iso) && one.replace(/Z$/, '+00:00').endsWith(local.offset))) ||
          ts.join(),
      ),
    ],
  };
}

/** A moment as clocks of a zone show it. */
function localTime(now: string, timeZone: string): { words: string; iso: string; offset: string } {
  const parts = (timeZoneName: 'short' | 'longOffset'): Record<string, string> =>
    Object.fromEntries(
      new Intl.DateTimeFormat('en-US', {
        timeZone,
        hourCycle: 'h23',
        year: 'numeric',
        month: '2-digit',
        day: '2-digit',
        hour: '2-digit',
        minute: '2-digit',
        second: '2-digit',
        timeZoneName,
      })
        .formatToParts(new Date(now))
        .map(({ type, value }) => [type, value]),
    );
  const { year, month, day, hour, minute, second, timeZoneName: zone } = parts('short');
  const offset = parts('longOffset')['timeZoneName']!.replace('GMT', '') || '+00:00';
  return {
    words: `${year}-${month}-${day} ${hour}:${minute}:${second} ${zone}`,
    iso: `${year}-${month}-${day}T${hour}:${minute}:${second}`,
    offset,
  };
}

/** The clock of the run jumps when the model is asked for the first time. */
function jumpingClock(world: World, now: string, by: number) {
  const file = join(world.home, 'the-model-was-asked');
  const env = { TZ: 'UTC', ...clockAt(now, { jump: { file, by } }) };
  const answers =
    (...turns: AnthropicTurn[]) =>
    (_request: unknown, index: number): AnthropicTurn => {
      writeFileSync(file, '');
      return turns[index] ?? {};
    };
  return { env, answers };
}

/** The model takes so long that the day ends while it thinks. */
async function midnight(world: World): Promise<Seen> {
  const { env, answers } = jumpingClock(world, '2026-11-20T23:59:00.000Z', 60_000);
  await runCli(world, ['one'], answers({ text: ['done'] }), { env });
  const all = logged(world);
  const places = all.map(({ file, record }) => `${file} ${record['event']}`).join(', ');
  const own = all.every(({ file, record }) => String(record['ts']).startsWith(file.replace('.jsonl', '')));
  const oneRun = new Set(all.map(({ record }) => record['run_id'])).size === 1;
  const wanted = '2026-11-20.jsonl skill_start, 2026-11-21.jsonl skill_end';
  return {
    decision: 'any',
    checks: [
      check('records', 'each record is in the file of its own date', (places === wanted && own) || places),
      check('records', 'the records of a run belong together', oneRun),
    ],
  };
}

/** The clock jumps while the run waits to try again. */
async function clockJump(world: World): Promise<Seen> {
  const [, sign = '-', count = '1', unit = 'h'] =
    /([+-]?)\s*(\d+)\s*(ms|s|min|h|d)/.exec(String(world.input['clock_jump'])) ?? [];
  const by =
    Number(count) *
    { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 }[unit]! *
    (sign === '-' ? -1 : 1);
  const { env, answers } = jumpingClock(world, '2026-11-20T12:00:00.000Z', by);
  const turns = answers({ status: 429, headers: { 'retry-after': '2' } }, { text: ['done'] });
  const run = await runCli(world, ['one'], turns, { env });
  const all = logged(world).map(({ record }) => record);
  const end = all.find(record => record['event'] === 'skill_end');
  const start = all.find(record => record['event'] === 'skill_start');
  const passed = Date.parse(String(end?.['ts'])) - Date.parse(String(start?.['ts']));
  if (!(Math.abs(passed - by) < 120_000)) throw new CannotJudge('the clock did not jump');
  const lasted = Number(end?.['duration_s']);
  const [first, second] = run.requests;
  const waited = (second?.arrivedAt ?? 0) - (first?.arrivedAt ?? 0);
  return {
    decision: 'any',
    checks: [
      check('records', 'the run lasts as long as it lasts', (lasted >= 2 && lasted < 120) || `${lasted} s`),
      check(
        'time',
        'the pause before another try is as long as it should be',
        (waited >= 1990 && waited < 60_000) || `${waited} ms`,
      ),
      check('end', 'the run ends well', run.exitCode === 0 || run.stderr),
    ],
  };
}

/** Two runs at the two half past twos write what the model names after the time that it was told. */
async function repeatedHour(world: World): Promise<Seen> {
  const { tz, now, prior } = world.input;
  const prompts: string[] = [];
  for (const [moment, content] of [
    [prior, 'first hour'],
    [now, 'second hour'],
  ]) {
    const env = { TZ: String(tz), ...clockAt(String(moment), { stands: true }) };
    const call = { name: 'write_file', input: { path: '2026-10-25 0230.md', content } };
    prompts.push(promptOf(await runCli(world, ['one'], turnsFor([call]), { env })));
  }
  const told = prompts.map(prompt => /Current date\/time: ([^"\\]*)/.exec(prompt)?.[1]);
  const kept = filesBelow(world.data).some(
    file =>
      !file.includes('/logs/') &&
      !file.includes('/runs/') &&
      readFileSync(file, 'utf8').includes('first hour'),
  );
  const records = logged(world).length;
  const wanted = [prior, now].map(moment => localTime(String(moment), String(tz)).words);
  return {
    decision: 'any',
    checks: [
      check('model', 'the two hours are told apart', told.join() === wanted.join() || told.join()),
      check('files', 'what is written over is kept for undo', kept),
      check('records', 'both runs are recorded', records === 6 || `${records} records`),
    ],
  };
}
