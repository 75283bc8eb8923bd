/** Reads when something is to run, such as `weekdays 08:30`, and finds the next such time. All times are local. */
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';

/** The times of one line of cron. Each list is sorted. Sunday is 0, January is 1. */
export interface Times {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: readonly number[];
  readonly months: readonly number[];
  readonly weekdays: readonly number[];
}

/** A time is meant if it is one of any of the entries. */
export type Rule = readonly Times[];

const span = (first: number, last: number, step = 1): number[] =>
  Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, index) => first + index * step);

const all = {
  minutes: span(0, 59),
  hours: span(0, 23),
  days: span(1, 31),
  months: span(1, 12),
  weekdays: span(0, 6),
} as const;

type Field = keyof typeof all;
const fieldNames = Object.keys(all) as Field[];

const weekdayNames = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** True if the entry means every value of the field. */
export const isEvery = (times: Times, field: Field): boolean => times[field].length === all[field].length;

/** Returns the rule that the words mean. Throws TelosError `config` with examples if they mean none, or a time that never comes. */
export function parseRule(text: string): Rule {
  const words = text.trim().toLowerCase().replace(/\s+/g, ' ');
  const rule = everyFew(words) ?? atTimes(words) ?? cronLine(words);
  if (!rule) throw new TelosError('config', [sentence("'{0}' is not a time.", text), examples]);
  if (!nextTime(rule, new Date()))
    throw new TelosError('config', [sentence("'{0}' never comes.", text), examples]);
  return rule;
}

const examples = sentence(
  'Examples: "weekdays 08:30", "daily 7:00,19:00", "mon,thu 18:15", "monthly 1 9:00", "every 15 minutes", "every 2 hours", or five fields of cron.',
);

/** Reads `every 15 minutes` and `every 2 hours`. */
function everyFew(words: string): Rule | undefined {
  if (words === 'hourly') return everyFew('every hour');
  const [, count = '1', unit = ''] = /^every (?:(\d{1,2}) )?(minute|hour)s?$/.exec(words) ?? [];
  const of = unit === 'minute' ? 60 : 24;
  const step = Number(count);
  if (unit === '' || step < 1 || step >= of) return undefined;
  if (of % step !== 0)
    throw new TelosError('config', [
      unit === 'minute'
        ? sentence("'{0}' does not divide an hour.", words)
        : sentence("'{0}' does not divide a day.", words),
      sentence(
        'Take one of {0}.',
        span(1, of - 1)
          .filter(each => of % each === 0)
          .join(', '),
      ),
    ]);
  if (unit === 'minute') return [{ ...all, minutes: span(0, 59, step) }];
  return [{ ...all, minutes: [0], hours: span(0, 23, step) }];
}

/** Reads days and the times on them: `weekdays 08:30`, `mon,thu 18:15`, `monthly 1 9:00`. */
function atTimes(words: string): Rule | undefined {
  const [, onDays = '', clock = ''] =
    /^(?:every )?(monthly .*?|\D+?)(?: at)? (\d[\d:.,amp ]*)$/.exec(words) ?? [];
  const days = daysOf(onDays.replace(/^on /, ''));
  const times = clock
    .split(/ ?, ?/)
    .map(each => /^(\d{1,2})(?:[:.](\d{2}))? ?(am|pm)?$/.exec(each))
    .map(found => found && timeOf(found));
  if (!days || times.some(time => !time)) return undefined;
  return times.map(time => ({ ...all, ...days, hours: [time!.hour], minutes: [time!.minute] }));
}

function timeOf([, hours = '', minutes, half]: RegExpExecArray):
  | { hour: number; minute: number }
  | undefined {
  if (minutes === undefined && !half) return undefined;
  const written = Number(hours);
  if (half && (written < 1 || written > 12)) return undefined;
  const hour = half ? (written % 12) + (half === 'pm' ? 12 : 0) : written;
  const minute = Number(minutes ?? 0);
  return hour < 24 && minute < 60 ? { hour, minute } : undefined;
}

function daysOf(words: string): Partial<Times> | undefined {
  if (/^(?:daily|day)$/.test(words)) return {};
  if (/^weekdays?$/.test(words)) return { weekdays: span(1, 5) };
  if (/^weekends?$/.test(words)) return { weekdays: [0, 6] };
  const [, day] = /^monthly (?:on )?(?:the )?(\d{1,2})(?:st|nd|rd|th)?$/.exec(words) ?? [];
  if (day !== undefined) return Number(day) >= 1 && Number(day) <= 31 ? { days: [Number(day)] } : undefined;
  const short = words.replace(/ and | ?, ?/g, ',').replace(/([a-z]{3})[a-z]*/g, '$1');
  const weekdays = /^[a-z,-]+$/.test(short) ? valuesOf(short, 'weekdays') : undefined;
  return weekdays && { weekdays };
}

/** Reads five fields as cron does. */
function cronLine(words: string): Rule | undefined {
  const fields = words.split(' ');
  if (fields.length !== fieldNames.length) return undefined;
  const read = fieldNames.map((name, index) => [name, valuesOf(fields[index]!, name)] as const);
  if (read.some(([, values]) => !values)) return undefined;
  const times = Object.fromEntries(read) as unknown as Times;
  // Every day of the month, or of the week, is enough where all of them are written out.
  const isWrittenOut = ([index, field]: [number, Field]): boolean =>
    isEvery(times, field) && !fields[index]!.startsWith('*');
  const anyDay = [[2, 'days'] as [number, Field], [4, 'weekdays'] as [number, Field]].some(isWrittenOut);
  return [anyDay ? { ...times, days: all.days, weekdays: all.weekdays } : times];
}

/** Returns the values of a field such as `1-5` or `mon,thu`, or undefined if it has other ones. */
function valuesOf(text: string, field: Field): number[] | undefined {
  const [lowest, highest] = [all[field][0]!, field === 'weekdays' ? 7 : all[field].at(-1)!];
  const found = new Set<number>();
  for (const part of text.split(',')) {
    const [, from = '', to, step] =
      /^(\*|\d{1,2}|[a-z]{3})(?:-(\d{1,2}|[a-z]{3}))?(?:\/(\d{1,2}))?$/.exec(part) ?? [];
    const first = from === '*' ? lowest : numberOf(from, field);
    const end = to === undefined ? undefined : numberOf(to, field);
    const last =
      from === '*' || (to === undefined && step !== undefined) ? all[field].at(-1)! : (end ?? first);
    if (
      first === undefined ||
      last === undefined ||
      (to !== undefined && (end === undefined || from === '*'))
    )
      return undefined;
    if (first < lowest || last > highest || Number(step ?? 1) < 1) return undefined;
    // `fri-mon` goes over the end of the week.
    const upTo = last < first && field === 'weekdays' ? last + 7 : last;
    if (upTo < first) return undefined;
    for (const value of span(first, upTo, Number(step ?? 1)))
      found.add(field === 'weekdays' ? value % 7 : value);
  }
  return [...found].sort((one, other) => one - other);
}

function numberOf(text: string, field: Field): number | undefined {
  if (/^\d/.test(text)) return Number(text);
  const names = field === 'weekdays' ? weekdayNames : field === 'months' ? monthNames : [];
  const index = names.indexOf(text);
  return index < 0 ? undefined : index + all[field][0]!;
}

/** Returns the entry as a line of cron. */
export const cronText = (times: Times): string =>
  fieldNames.map(name => (isEvery(times, name) ? '*' : times[name].join(','))).join(' ');

/** True on a day that the entry means. As in cron, of a day and a weekday that are both named one is enough. */
function isDay(times: Times, date: Date): boolean {
  if (!times.months.includes(date.getMonth() + 1)) return false;
  const isOfMonth = times.days.includes(date.getDate());
  const isOfWeek = times.weekdays.includes(date.getDay());
  return isEvery(times, 'days') || isEvery(times, 'weekdays') ? isOfMonth && isOfWeek : isOfMonth || isOfWeek;
}

/** A leap day may be eight years away. */
const mostDays = 366 * 9;
const aMinute = 60_000;

/**
 * Returns the first time of the rule after `after`, or undefined if none comes within nine years. A time that the clock leaves out
 * when it is put forward is an hour later; one that it shows twice when it is put back is the first of the two. What runs in every
 * hour runs in each of them.
 */
export function nextTime(rule: Rule, after: Date): Date | undefined {
  const times = rule.flatMap(each => {
    const next = isEvery(each, 'hours') ? nextOfEveryHour(each, after) : nextOfDay(each, after);
    return next ? [next.getTime()] : [];
  });
  return times.length > 0 ? new Date(Math.min(...times)) : undefined;
}

function nextOfDay(times: Times, after: Date): Date | undefined {
  // A time that was left out may be on the next day.
  const [year, month, day] = [after.getFullYear(), after.getMonth(), after.getDate() - 1];
  for (let offset = 0; offset < mostDays; offset++) {
    if (!isDay(times, new Date(year, month, day + offset, 12))) continue;
    const found = times.hours
      .flatMap(hour => times.minutes.map(minute => new Date(year, month, day + offset, hour, minute)))
      .filter(date => date > after);
    if (found.length > 0) return found.reduce((one, other) => (other < one ? other : one));
  }
  return undefined;
}

function nextOfEveryHour(times: Times, after: Date): Date | undefined {
  const start = Math.floor(after.getTime() / aMinute) * aMinute + aMinute;
  const end = start + mostDays * 24 * 60 * aMinute;
  for (let at = start; at < end; ) {
    const date = new Date(at);
    if (!isDay(times, date)) {
      at = Math.max(
        at + aMinute,
        new Date(date.getFullYear(), date.getMonth(), date.getDate() + 1).getTime(),
      );
      continue;
    }
    if (times.minutes.includes(date.getMinutes())) return date;
    at += aMinute;
  }
  return undefined;
}
