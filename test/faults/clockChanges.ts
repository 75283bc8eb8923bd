/** Rules of a schedule where clocks are changed, in many zones, against a slow reader that goes minute by minute. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ClockReport } from './clockProcess.ts';
import { type Extent, type Figure, inLanes } from './figure.ts';
import type { Given } from './measurements.ts';

/** Changes at night and at midnight, of an hour and of half of one, on either half of the earth, and twice around one month. */
const zones = [
  'Europe/Berlin',
  'Europe/Dublin',
  'America/New_York',
  'America/Santiago',
  'America/St_Johns',
  'America/Havana',
  'Australia/Lord_Howe',
  'Pacific/Chatham',
  'Asia/Beirut',
  'Africa/Cairo',
  'Africa/Casablanca',
];

export async function clockFigures(extent: Extent, { seed }: Given): Promise<Figure[]> {
  const [changes, rules] = extent === 'whole' ? [6, 150] : [2, 20];
  const reports: ClockReport[] = [];
  await inLanes(zones, 2, async zone => void reports.push(await reportOf(zone, [seed, changes, rules])));
  const sum = (of: (report: ClockReport) => number): number =>
    reports.reduce((total, report) => total + of(report), 0);
  const wrong = reports.flatMap(report => report.wrong);
  return [
    {
      name: 'rules of a schedule where the clock is changed: other times than minute by minute',
      value: `seed ${seed}: ${sum(({ times }) => times)} times of ${sum(({ rules: all }) => all)} rules around ${sum(({ changes: all }) => all)} changes in ${zones.length} zones: ${wrong.length}${wrong.length > 0 ? ` (${wrong.slice(0, 3).join('; ')})` : ''}`,
      limit: 'none',
      met: wrong.length === 0 && reports.every(({ times }) => times > 0),
    },
  ];
}

/** A process keeps the zone in which it began. */
async function reportOf(zone: string, args: readonly number[]): Promise<ClockReport> {
  const program = fileURLToPath(new URL('clockProcess.ts', import.meta.url));
  const child = fork(program, [zone, ...args.map(String)], { env: { ...process.env, TZ: zone } });
  try {
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`The process in the zone ${zone} ended with ${code}.`);
    });
    const [report] = (await Promise.race([once(child, 'message'), ended])) as [ClockReport];
    return report;
  } finally {
    child.kill('SIGKILL');
  }
}
