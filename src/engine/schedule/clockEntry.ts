/** Writes the entries that make the system's scheduler call Telos, as text: nothing here touches the machine. */

import { join } from 'node:path';
import { beginningOf } from '@telos/protocol/text';
import { shellWord } from '../files/plainText.ts';
import { cronText, isEvery, parseRule, type Times } from './rule.ts';
import type { ClockKind, Schedule } from './schedules.ts';

/** How the scheduler starts Telos. */
export interface Caller {
  /** Absolute paths of Node and of the command line. */
  program: readonly string[];
  /** Variables that the scheduler does not know, such as PATH. */
  env: Readonly<Record<string, string>>;
  home: string;
  dataDir: string;
  /** Number of the user, for launchd. */
  uid: number;
}

export interface ClockEntry {
  kind: ClockKind;
  /** Files to write, by absolute path. */
  files: Readonly<Record<string, string>>;
  /** Lines of the crontab, with a comment before and after. */
  lines?: readonly string[];
  /** Commands that make the scheduler read the entry, in order, and those that make it forget it, before the files are deleted. */
  start: readonly (readonly string[])[];
  stop: readonly (readonly string[])[];
  /** What else the person should know, as a sentence. */
  note?: string;
}

/** Returns the whole entry as it is shown before it is written. */
export const shownEntry = ({ files, lines = [], start }: ClockEntry): string =>
  [
    ...Object.entries(files).map(([path, text]) => `${path}:\n${indented(text)}`),
    ...(lines.length > 0 ? [`crontab:\n${indented(lines.join('\n'))}`] : []),
    ...(start.length > 0 ? [`Then: ${start.map(words => words.join(' ')).join(' && ')}`] : []),
  ].join('\n');

const indented = (text: string): string => text.trimEnd().replace(/^/gm, '    ');

/** What a clock calls, after the program. */
export const dueWords = ({ id }: Schedule): string[] => ['schedule', 'due', id];
/** Returns one line, so that a request cannot add lines to the entry. */
export const titleOf = ({ request }: Schedule): string =>
  `Telos: ${beginningOf(request.replace(/[\p{C}\p{Z}]+/gu, ' '), 80)}`;

// ---- systemd ----

/** Returns the units of a timer of the user's systemd. */
export function systemd(schedule: Schedule, { program, env, home }: Caller): ClockEntry {
  const folder = join(env['XDG_CONFIG_HOME'] ?? join(home, '.config'), 'systemd', 'user');
  const unit = `telos-${schedule.id}`;
  const quoted = (text: string): string => `"${text.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%')}"`;
  const argument = (text: string): string => quoted(text).replaceAll('$', '$$$$');
  const service = [
    '[Unit]',
    `Description=${titleOf(schedule).replaceAll('%', '%%').replaceAll('\\', '\\\\')}`,
    '',
    '[Service]',
    'Type=oneshot',
    ...Object.entries(env).map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`),
    `ExecStart=${[...program, ...dueWords(schedule)].map(argument).join(' ')}`,
    '',
  ];
  const timer = [
    '[Unit]',
    `Description=${titleOf(schedule).replaceAll('%', '%%').replaceAll('\\', '\\\\')}`,
    '',
    '[Timer]',
    ...parseRule(schedule.at)
      .flatMap(calendarLines)
      .map(line => `OnCalendar=${line}`),
    'AccuracySec=1s',
    `Persistent=${schedule.missed === 'once'}`,
    '',
    '[Install]',
    'WantedBy=timers.target',
    '',
  ];
  const files = {
    [join(folder, `${unit}.service`)]: service.join('\n'),
    [join(folder, `${unit}.timer`)]: timer.join('\n'),
  };
  const call = (...words: string[]): string[] => ['systemctl', '--user', ...words];
  return {
    kind: 'systemd',
    files,
    start: [call('daemon-reload'), call('enable', '--now', `${unit}.timer`)],
    stop: [call('disable', '--now', `${unit}.timer`), call('daemon-reload')],
    note: 'It runs while you are logged in. To run it also at other times: loginctl enable-linger',
  };
}

const weekdayNames = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** Returns the entry in systemd's words: two lines where a day and a weekday are named, of which cron wants one. */
export function calendarLines(times: Times): string[] {
  const list = (field: 'minutes' | 'hours' | 'days' | 'months'): string =>
    isEvery(times, field) ? '*' : times[field].map(value => String(value).padStart(2, '0')).join(',');
  const clock = `${list('hours')}:${list('minutes')}:00`;
  const weekdays = times.weekdays.map(day => weekdayNames[day]).join(',');
  const onWeekdays = `${weekdays} *-${list('months')}-* ${clock}`;
  const onDays = `*-${list('months')}-${list('days')} ${clock}`;
  if (isEvery(times, 'weekdays')) return [onDays];
  return isEvery(times, 'days') ? [onWeekdays] : [onWeekdays, onDays];
}

// ---- cron ----

/** Returns lines of the user's crontab. */
export function cron(schedule: Schedule, { program, env }: Caller): ClockEntry {
  const call = [
    ...Object.entries(env).map(([name, value]) => `${name}=${shellWord(value)}`),
    ...[...program, ...dueWords(schedule)].map(shellWord),
    '>/dev/null 2>&1',
  ];
  // cron takes a percent sign for a line break.
  const command = call.join(' ').replaceAll('%', '\\%');
  const [begin, end] = marks(schedule.id);
  return {
    kind: 'cron',
    files: {},
    lines: [
      begin,
      ...parseRule(schedule.at).map(times => `${cronText(times)} ${command}`),
      ...(schedule.missed === 'once' ? [`@reboot ${command}`] : []),
      end,
    ],
    start: [],
    stop: [],
  };
}

const marks = (id: string): [string, string] => [
  `# Telos schedule ${id}: begin`,
  `# Telos schedule ${id}: end`,
];

/** Returns the crontab with `lines` in place of the schedule's own, or without them. All other lines stay as they are. */
export function crontabWith(crontab: string, id: string, lines: readonly string[]): string {
  const [begin, end] = marks(id);
  const rows = crontab.split('\n');
  const from = rows.indexOf(begin);
  const to = rows.indexOf(end, from);
  if (from >= 0 && to >= from) rows.splice(from, to - from + 1, ...lines);
  else if (lines.length > 0) rows.splice(rows.at(-1) === '' ? rows.length - 1 : rows.length, 0, ...lines);
  const text = rows.join('\n');
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}
