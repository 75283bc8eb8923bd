/** Writes the entries of launchd and of the Task Scheduler of Windows, both of which read XML. */
import { join } from 'node:path';
import { type Caller, type ClockEntry, dueWords, titleOf } from './clockEntry.ts';
import { isEvery, parseRule, type Times } from './rule.ts';
import { type Schedule, schedulesFolder } from './schedules.ts';

const xml = (text: string): string =>
  text.replace(/[&<>"']/g, sign => `&#${sign.charCodeAt(0)};`).replace(/\p{Cc}/gu, ' ');

/** Returns a property list that calls Telos at the rule’s times. launchd makes up for times at which the machine slept. */
export function launchd(schedule: Schedule, { program, env, home, uid }: Caller): ClockEntry {
  const label = `telos.schedule.${schedule.id}`;
  const path = join(home, 'Library', 'LaunchAgents', `${label}.plist`);
  const strings = [...program, ...dueWords(schedule)].map(word => `    <string>${xml(word)}</string>`);
  const variables = Object.entries(env).map(
    ([name, value]) => `    <key>${xml(name)}</key><string>${xml(value)}</string>`,
  );
  const dates = parseRule(schedule.at)
    .flatMap(launchdTimes)
    .map(
      fields =>
        `    <dict>${Object.entries(fields)
          .map(([name, value]) => `<key>${name}</key><integer>${value}</integer>`)
          .join('')}</dict>`,
    );
  const text = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0"><dict>',
    `  <key>Label</key><string>${label}</string>`,
    '  <key>ProgramArguments</key><array>',
    ...strings,
    '  </array>',
    '  <key>EnvironmentVariables</key><dict>',
    ...variables,
    '  </dict>',
    '  <key>StartCalendarInterval</key><array>',
    ...dates,
    '  </array>',
    '</dict></plist>',
    '',
  ].join('\n');
  return {
    kind: 'launchd',
    files: { [path]: text },
    start: [['launchctl', 'bootstrap', `gui/${uid}`, path]],
    stop: [['launchctl', 'bootout', `gui/${uid}/${label}`]],
  };
}

/** Days are left to Telos where launchd would want both of two: it is called each day then, and runs when it is due. */
function launchdTimes(times: Times): Record<string, number>[] {
  const both = !isEvery(times, 'days') && !isEvery(times, 'weekdays');
  const fields = [
    ['Month', 'months'],
    ...(both
      ? []
      : ([
          ['Day', 'days'],
          ['Weekday', 'weekdays'],
        ] as const)),
    ['Hour', 'hours'],
    ['Minute', 'minutes'],
  ] as const;
  return fields.reduce<Record<string, number>[]>(
    (found, [name, field]) =>
      isEvery(times, field)
        ? found
        : found.flatMap(each => times[field].map(value => ({ ...each, [name]: value }))),
    [{}],
  );
}

/** Calls each day at each time; Telos itself knows the days. What runs in every hour is called in each. */
export function taskScheduler(schedule: Schedule, { program, dataDir }: Caller): ClockEntry {
  const path = join(schedulesFolder(dataDir), `${schedule.id}.xml`);
  const name = `Telos\\${schedule.id}`;
  const start = schedule.since.slice(0, 'yyyy-mm-dd'.length);
  const triggers = parseRule(schedule.at).flatMap(times =>
    (isEvery(times, 'hours') ? [0] : times.hours).flatMap(each =>
      times.minutes.map(minute => {
        const at = [each, minute].map(value => String(value).padStart(2, '0')).join(':');
        const again = isEvery(times, 'hours')
          ? '<Repetition><Interval>PT1H</Interval><Duration>P1D</Duration></Repetition>'
          : '';
        return `    <CalendarTrigger>${again}<StartBoundary>${start}T${at}:00</StartBoundary><ScheduleByDay><DaysInterval>1</DaysInterval></ScheduleByDay></CalendarTrigger>`;
      }),
    ),
  );
  const [command = '', ...given] = [...program, ...dueWords(schedule)];
  const text = [
    '<?xml version="1.0"?>',
    '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">',
    `  <RegistrationInfo><Description>${xml(titleOf(schedule))}</Description></RegistrationInfo>`,
    '  <Triggers>',
    ...triggers,
    '  </Triggers>',
    `  <Settings><StartWhenAvailable>${schedule.missed === 'once'}</StartWhenAvailable><MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy></Settings>`,
    `  <Actions><Exec><Command>${xml(command)}</Command><Arguments>${xml(given.map(word => `"${word}"`).join(' '))}</Arguments></Exec></Actions>`,
    '</Task>',
    '',
  ].join('\n');
  return {
    kind: 'task-scheduler',
    files: { [path]: text },
    start: [['schtasks', '/Create', '/TN', name, '/XML', path]],
    stop: [['schtasks', '/Delete', '/TN', name, '/F']],
  };
}
