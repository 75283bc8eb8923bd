/** Cases on clocks: odd zones, midnight in the middle of a run, a clock that is set back, and an hour that comes twice. */

import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { AnthropicTurn } from '../../fakes/anthropicServer.ts';
import { type Fields, fieldsOf } from '../caseFile.ts';
import { type CliRun, runCli, turnsFor } from '../cliRun.ts';
import { clockAt } from '../clock.ts';
import type { Seen } from '../judge.ts';
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
  const iso =
    ts.length === 2 && ts.every(one => one.startsWith('2026-11-20T05:45:01') && one.endsWith('+05:45'));
  return {
    decision: 'any',
    facts: {
      "prompt has 'Current date/time: 2026-11-20 09:08:07 EST'":
        prompt.includes('Current date/time: 2026-11-20 09:08:07 EST') || prompt.slice(0, 300),
      'offset zone printed in a stable form; ISO ts has +05:45':
        (prompt.includes('Current date/time: 2026-11-20 05:45:01 GMT+5:45') && iso) ||
        `${prompt.slice(0, 300)} ${ts}`,
    },
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
    facts: {
      'each record in the file of its own local date; run_id joins them':
        (places === wanted && own && oneRun) || places,
    },
  };
}

/** The clock goes back by an hour while the run waits to try again. */
async function clockJump(world: World): Promise<Seen> {
  const { env, answers } = jumpingClock(world, '2026-11-20T12:00:00.000Z', -3_600_000);
  const turns = answers({ status: 429, headers: { 'retry-after': '2' } }, { text: ['done'] });
  const run = await runCli(world, ['one'], turns, { env });
  const all = logged(world).map(({ record }) => record);
  const end = all.find(record => record['event'] === 'skill_end');
  const start = all.find(record => record['event'] === 'skill_start');
  if (!(Date.parse(String(end?.['ts'])) < Date.parse(String(start?.['ts']))))
    throw new Error('the clock did not go back');
  const lasted = Number(end?.['duration_s']);
  const [first, second] = run.requests;
  const waited = (second?.arrivedAt ?? 0) - (first?.arrivedAt ?? 0);
  const sentence = 'duration_s >= 0 (monotonic); retry timers unaffected';
  const holds = lasted >= 2 && lasted < 120 && waited >= 1990 && waited < 60_000 && run.exitCode === 0;
  return {
    decision: 'any',
    facts: { [sentence]: holds || `lasted ${lasted} s, waited ${waited} ms: ${run.stderr}` },
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
  const differ = told.join() === '2026-10-25 02:30:00 GMT+2,2026-10-25 02:30:00 GMT+1';
  const sentence = 'dated output not overwritten silently by the second 02:30';
  return {
    decision: 'any',
    facts: {
      [sentence]:
        (differ && kept && records === 6) || `told ${told}, kept for undo: ${kept}, ${records} records`,
    },
  };
}
