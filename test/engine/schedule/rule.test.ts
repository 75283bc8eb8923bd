import assert from 'node:assert/strict';
import { CronExpressionParser } from 'cron-parser';
import { cronText, nextTime, parseRule, type Rule } from '../../../src/engine/schedule/rule.ts';

const zones = ['Europe/Berlin', 'America/New_York', 'Australia/Sydney', 'Asia/Kolkata', 'UTC'];

describe('a rule of time', () => {
  const before = process.env['TZ'];
  const inZone = (zone: string | undefined): void => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
  };
  afterEach(() => inZone(before));

  const lines = (text: string): string[] => parseRule(text).map(cronText);

  it('is read as people write it', () => {
    assert.deepEqual(lines('weekdays 08:30'), ['30 8 * * 1,2,3,4,5']);
    assert.deepEqual(lines('Every weekday at 8.30'), ['30 8 * * 1,2,3,4,5']);
    assert.deepEqual(lines('daily 7:00, 19:30'), ['0 7 * * *', '30 19 * * *']);
    assert.deepEqual(lines('every day at 9am'), ['0 9 * * *']);
    assert.deepEqual(lines('every day at 12 am'), ['0 0 * * *']);
    assert.deepEqual(lines('mon,thu 18:15'), ['15 18 * * 1,4']);
    assert.deepEqual(lines('Monday and Thursday 18:15'), ['15 18 * * 1,4']);
    assert.deepEqual(lines('fri-mon 6:00pm'), ['0 18 * * 0,1,5,6']);
    assert.deepEqual(lines('weekends 10:00'), ['0 10 * * 0,6']);
    assert.deepEqual(lines('monthly 1 9:00'), ['0 9 1 * *']);
    assert.deepEqual(lines('monthly on the 1st at 9:00'), ['0 9 1 * *']);
    assert.deepEqual(lines('every 15 minutes'), ['0,15,30,45 * * * *']);
    assert.deepEqual(lines('every 2 hours'), ['0 0,2,4,6,8,10,12,14,16,18,20,22 * * *']);
    assert.deepEqual(lines('hourly'), ['0 * * * *']);
    assert.deepEqual(lines('*/20 8-10 * jan-mar mon'), ['0,20,40 8,9,10 * 1,2,3 1']);
    assert.deepEqual(lines('0 8 * * 7'), ['0 8 * * 0']);
  });

  it('is refused with examples where it means no time, or one that never comes', () => {
    for (const text of [
      '',
      'soon',
      'daily',
      'daily 8',
      'daily 25:00',
      'daily 13pm',
      'mun 8:00',
      'every 0 minutes',
      '61 * * * *',
      '5-1 * * * *',
      '* * * *',
      'monthly 32 8:00',
      'daily 8:00; rm -rf /',
    ])
      assert.throws(() => parseRule(text), /is not a time\. Examples: "weekdays 08:30"/, text);
    assert.throws(() => parseRule('0 8 30 2 *'), /never comes/);
    assert.throws(
      () => parseRule('every 7 hours'),
      /does not divide a day\. Take one of 1, 2, 3, 4, 6, 8, 12\./,
    );
  });

  it('is an hour later where the clock is put forward, and once where it is put back', () => {
    inZone('Europe/Berlin');
    const rule = parseRule('daily 2:30');
    const times = (from: string, count: number, of = rule): string[] => {
      const found: string[] = [];
      for (let at = new Date(from); found.length < count; ) {
        at = nextTime(of, at)!;
        found.push(at.toISOString().slice(5, 16));
      }
      return found;
    };
    assert.deepEqual(times('2026-03-28T12:00Z', 2), ['03-29T01:30', '03-30T00:30']);
    assert.deepEqual(times('2026-10-24T12:00Z', 2), ['10-25T00:30', '10-26T01:30']);
    assert.deepEqual(times('2026-10-25T00:00Z', 3, parseRule('every 30 minutes')), [
      '10-25T00:30',
      '10-25T01:00',
      '10-25T01:30',
    ]);
  });

  it('gives the times of another reader of cron, for ten thousand rules over ten years', function () {
    this.timeout(120_000);
    const random = seeded(20_261_123);
    const differences: string[] = [];
    for (let index = 0; index < 10_000; index++) {
      const zone = zones[index % zones.length]!;
      inZone(zone);
      const line = randomLine(random);
      let rule: Rule;
      try {
        rule = parseRule(line);
      } catch {
        assert.throws(() => CronExpressionParser.parse(line, { tz: zone }).next(), line);
        continue;
      }
      // Half of them begin in the hours around a change of the clock.
      const from = random() < 0.5 ? anyTime(random) : aroundChange(random);
      const reference = CronExpressionParser.parse(line, { currentDate: from, tz: zone });
      for (let [step, at] = [0, from]; step < 5; step++) {
        const expected = reference.next().toDate();
        const found = nextTime(rule, at);
        if (found?.getTime() !== expected.getTime())
          differences.push(
            `${zone} ${line} after ${at.toISOString()}: ${found?.toISOString()}, not ${expected.toISOString()}`,
          );
        at = expected;
      }
    }
    assert.deepEqual(differences.slice(0, 10), []);
  });
});

const anyTime = (random: () => number): Date =>
  new Date(Date.UTC(2026, 0, 1) + Math.floor(random() * 10 * 365.25 * 24 * 60) * 60_000);

/** Clocks change on Sundays of March, April, October and November. */
const aroundChange = (random: () => number): Date => {
  const year = 2026 + Math.floor(random() * 10);
  const month = [2, 3, 9, 10][Math.floor(random() * 4)]!;
  const sundays = Array.from({ length: 28 }, (_, day) => day + 1).filter(
    day => new Date(Date.UTC(year, month, day)).getUTCDay() === 0,
  );
  const day = random() < 0.3 ? 31 : sundays[Math.floor(random() * sundays.length)]!;
  return new Date(Date.UTC(year, month, day, -14, Math.floor(random() * 48 * 60)));
};

/** Returns a line of cron, of which some have lists, ranges and steps. */
function randomLine(random: () => number): string {
  const within = (first: number, last: number): number => first + Math.floor(random() * (last - first + 1));
  const field = (first: number, last: number, star: number): string => {
    if (random() < star) return '*';
    const kind = random();
    if (kind < 0.5) return String(within(first, last));
    if (kind < 0.7) return [...new Set([within(first, last), within(first, last)])].join(',');
    if (kind < 0.85) return `*/${within(2, Math.max(2, Math.floor(last / 2)))}`;
    const start = within(first, last);
    return `${start}-${within(start, last)}`;
  };
  return [field(0, 59, 0.05), field(0, 23, 0.2), field(1, 31, 0.7), field(1, 12, 0.8), field(0, 6, 0.6)].join(
    ' ',
  );
}

/** Returns numbers from 0 to 1 that are the same in each run (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
