/**
 * Rules of a schedule around the changes of one zone's clock: `TZ=<zone> node clockProcess.ts <zone> <seed> <changes> <rules>`; tells its
 * parent which times differ from those of a reader that goes minute by minute, and reads the clock from another source.
 */
import { nextTime, parseRule } from '../../src/engine/schedule/rule.ts';
import { seeded } from './figure.ts';
import { type Dice, diceOf } from './randomModel.ts';

export interface ClockReport {
  changes: number;
  rules: number;
  times: number;
  wrong: string[];
}

/** What a clock on the wall shows, as if it were of a zone without changes. In minutes since 1970. */
type Wall = number;

interface MadeRule {
  words: string;
  /** Whether it means what the wall shows. */
  means(wall: Wall): boolean;
  /** It means minutes of each hour, however often the clock shows that hour. */
  isOfEveryHour?: boolean;
}

const aMinute = 60_000;
const aDay = 24 * 60;
/** Days before and after a change that are looked at. */
const daysAround = 5;
const timesEach = 6;

const [zone = '', seed = 0, changes = 0, rules = 0] = process.argv
  .slice(2)
  .map((text, at) => (at === 0 ? text : Number(text))) as [string, number, number, number];
const clock = new Intl.DateTimeFormat('en-u-ca-iso8601-hc-h23', {
  timeZone: zone,
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
});

const dice = diceOf(seeded(seed));
const report: ClockReport = { changes: 0, rules: 0, times: 0, wrong: [] };
const all = changesOf(zone, 2026, 2036);
for (let count = 0; count < changes; count++) {
  const change = dice.oneOf(all);
  const first = change - daysAround * aDay;
  const walls = Array.from({ length: 2 * daysAround * aDay }, (_, at) => wallAt(first + at));
  report.changes++;
  for (let made = 0; made < rules; made++) compare(ruleOf(dice), first, walls);
}
process.send?.(report, () => process.exit());

/** Compares some times of the rule, from anywhere within four days around the change. */
function compare({ words, means, isOfEveryHour }: MadeRule, first: number, walls: readonly Wall[]): void {
  const rule = parseRule(words);
  report.rules++;
  const due = isOfEveryHour ? everyTime(walls, means) : timesOnce(walls, means);
  let at = dice.below(walls.length / 2 - aDay) + aDay * 2;
  for (let count = 0; count < timesEach; count++) {
    const expected = due.find(one => one > at);
    if (expected === undefined) return;
    const found = nextTime(rule, new Date((first + at) * aMinute));
    report.times++;
    if (found?.getTime() !== (first + expected) * aMinute) {
      const [from, wanted] = [at, expected].map(one => new Date((first + one) * aMinute).toISOString());
      report.wrong.push(`${zone}, ${words}, after ${from}: ${found?.toISOString()}, not ${wanted}`);
      return;
    }
    at = expected;
  }
}

function everyTime(walls: readonly Wall[], means: (wall: Wall) => boolean): number[] {
  return walls.flatMap((wall, at) => (means(wall) ? [at] : []));
}

/**
 * Each time on the wall once: the first time that it is shown. What is left out comes when it would have come without the change. Returns
 * the minutes, in order.
 */
function timesOnce(walls: readonly Wall[], means: (wall: Wall) => boolean): number[] {
  const due = new Set<number>();
  let highest = walls[0]! - 1;
  for (const [at, wall] of walls.entries()) {
    for (let left = highest + 1; left < wall; left++) if (means(left)) due.add(at + left - highest - 1);
    if (wall > highest && means(wall)) due.add(at);
    highest = Math.max(highest, wall);
  }
  return [...due].sort((one, other) => one - other);
}

/** Returns what the clock shows at a minute since 1970. */
function wallAt(minute: number): Wall {
  const parts = Object.fromEntries(
    clock.formatToParts(minute * aMinute).map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 0, day = 0, hour = 0, minute: minutes = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minutes) / aMinute;
}

/** Returns the first minutes with another offset than the minute before, from January of one year up to that of another. */
function changesOf(name: string, from: number, to: number): number[] {
  const offset = (minute: number): number => wallAt(minute) - minute;
  const found: number[] = [];
  const end = Date.UTC(to, 0) / aMinute;
  for (let day = Date.UTC(from, 0) / aMinute; day < end; day += aDay) {
    if (offset(day) === offset(day + aDay)) continue;
    let [before, after] = [day, day + aDay];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (offset(middle) === offset(day)) before = middle;
      else after = middle;
    }
    found.push(after);
  }
  if (found.length === 0) throw new Error(`The clock of ${name} is never changed.`);
  return found;
}

/** Any rule that comes often enough, most in the hours in which clocks are changed, and how it is written. */
function ruleOf(of: Dice): MadeRule {
  const minuteOf = (wall: Wall): number => wall % 60;
  const hourOf = (wall: Wall): number => Math.floor(wall / 60) % 24;
  const weekdayOf = (wall: Wall): number => new Date(wall * aMinute).getUTCDay();
  const hour = of.oneIn(4) ? of.below(24) : of.oneOf([23, 0, 1, 2, 3, 4]);
  const minute = of.oneOf([0, 15, 30, 45, of.below(60)]);
  const at = `${hour}:${String(minute).padStart(2, '0')}`;
  const isAt = (wall: Wall): boolean => hourOf(wall) === hour && minuteOf(wall) === minute;
  return of.oneOf<() => MadeRule>([
    () => ({ words: `daily ${at}`, means: isAt }),
    () => ({
      words: `weekdays ${at}`,
      means: wall => isAt(wall) && weekdayOf(wall) >= 1 && weekdayOf(wall) <= 5,
    }),
    () => ({ words: `sun,mon ${at}`, means: wall => isAt(wall) && weekdayOf(wall) <= 1 }),
    () => ({
      words: `daily ${at},${(hour + 1) % 24}:05`,
      means: wall => isAt(wall) || (hourOf(wall) === (hour + 1) % 24 && minuteOf(wall) === 5),
    }),
    () => {
      const step = of.oneOf([2, 3, 4, 6, 8, 12]);
      return {
        words: `every ${step} hours`,
        means: wall => hourOf(wall) % step === 0 && minuteOf(wall) === 0,
      };
    },
    () => {
      const step = of.oneOf([5, 10, 15, 20, 30]);
      return {
        words: `every ${step} minutes`,
        means: wall => minuteOf(wall) % step === 0,
        isOfEveryHour: true,
      };
    },
    () => ({
      words: `${minute} ${hour},${(hour + 1) % 24} * * *`,
      means: wall => minuteOf(wall) === minute && [hour, (hour + 1) % 24].includes(hourOf(wall)),
    }),
    () => ({
      words: `*/20 ${Math.min(hour, 21)}-${Math.min(hour, 21) + 2} * * *`,
      means: wall => {
        const begin = Math.min(hour, 21);
        return minuteOf(wall) % 20 === 0 && hourOf(wall) >= begin && hourOf(wall) <= begin + 2;
      },
    }),
    () => ({
      words: `${minute} * * * sun`,
      means: wall => minuteOf(wall) === minute && weekdayOf(wall) === 0,
      isOfEveryHour: true,
    }),
  ])();
}
