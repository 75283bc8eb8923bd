import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { clockEntry } from '../../../src/engine/schedule/clock.ts';
import {
  type Caller,
  calendarLines,
  crontabWith,
  shownEntry,
} from '../../../src/engine/schedule/clockEntry.ts';
import { nextTime, parseRule } from '../../../src/engine/schedule/rule.ts';
import type { ClockKind, Schedule } from '../../../src/engine/schedule/schedules.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';
import { skipBecause } from '../../skipBecause.ts';

const schedule = (clock: ClockKind, more: Partial<Schedule> = {}): Schedule => ({
  version: 1,
  id: 'run-kickoff',
  request: 'run kickoff',
  skill: { agent: 'kairos', skill: 'kickoff' },
  at: 'weekdays 08:30',
  cwd: '/work',
  digest: 'd',
  missed: 'once',
  clock,
  since: '2026-01-01T00:00:00.000Z',
  failures: 0,
  ...more,
});
const caller: Caller = {
  program: ['/usr/bin/node', "/opt/it's 100%/cli.js"],
  env: { PATH: '/usr/bin:/o p"t/$HOME', TELOS_MODEL: '50%' },
  home: '/home/ada',
  dataDir: '/home/ada/.local/share/telos',
  uid: 1000,
};
const textOf = async (clock: ClockKind, more?: Partial<Schedule>): Promise<string> =>
  Object.values((await clockEntry(schedule(clock, more), caller)).files).join('\n');

/** The program with which systemd itself reads units and times, where the machine has one. */
const analyze = (...words: string[]) =>
  spawnSync('systemd-analyze', words, { encoding: 'utf8', timeout: 20_000 });
const hasSystemd = analyze('--version').status === 0;

describe('the entry in a clock', () => {
  it('calls the schedule with the very words and variables, whatever signs they have', async () => {
    const { lines = [] } = await clockEntry(schedule('cron'), {
      ...caller,
      program: ['/bin/echo', "it's 100%"],
    });
    assert.equal(lines.length, 4);
    const command = (lines[1] ?? '')
      .replace('30 8 * * 1,2,3,4,5 ', '')
      .replaceAll('\\%', '%')
      .replace(' >/dev/null 2>&1', '');
    const { stdout } = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8' });
    assert.equal(stdout, "it's 100% schedule due run-kickoff\n");
    const shown = shownEntry(await clockEntry(schedule('cron'), caller));
    for (const line of lines.slice(0, 1)) assert.ok(shown.includes(line));
  });

  it('has no line of the request, and takes no line break of a variable', async () => {
    const request = 'run\n[Service]\nExecStart=/bin/evil\u2028x %h \\';
    for (const clock of ['systemd', 'cron', 'launchd', 'task-scheduler'] as const)
      assert.doesNotMatch(
        await textOf(clock, { request }),
        /^\[Service\]\nExecStart=\/bin\/evil|^ExecStart=\/bin/m,
      );
    await assert.rejects(
      clockEntry(schedule('cron'), { ...caller, env: { PATH: '/a\n* * * * * evil' } }),
      /has a line break/,
    );
  });

  it('is one that systemd accepts, at the times of the rule', async () => {
    const text = await textOf('systemd');
    assert.match(text, /OnCalendar=Mon,Tue,Wed,Thu,Fri \*-\*-\* 08:30:00\n/);
    assert.match(
      text,
      /ExecStart="\/usr\/bin\/node" "\/opt\/it's 100%%\/cli\.js" "schedule" "due" "run-kickoff"\n/,
    );
    assert.match(text, /Environment="PATH=\/usr\/bin:\/o p\\"t\/\$HOME"\n/);
    assert.match(text, /Persistent=true/);
    assert.match(await textOf('systemd', { missed: 'skip' }), /Persistent=false/);
  });

  it('is one that systemd itself finds nothing wrong with', async function () {
    if (!hasSystemd) return skipBecause(this, 'systemd-analyze is not here');
    const folder = tempFolder();
    const entry = await clockEntry(schedule('systemd', { request: '50% \\ "x"' }), {
      ...caller,
      program: [process.execPath],
    });
    const paths = Object.entries(entry.files).map(([path, content]) => {
      writeFileSync(join(folder.path, basename(path)), content);
      return join(folder.path, basename(path));
    });
    const { stderr } = analyze('--user', 'verify', ...paths);
    folder.remove();
    assert.doesNotMatch(stderr, /run-kickoff\.(?:service|timer):/);
  });

  it('comes at the same times in systemd’s own reading', function () {
    if (!hasSystemd) return skipBecause(this, 'systemd-analyze is not here');
    this.timeout(60_000);
    for (const at of [
      'weekdays 08:30',
      'daily 7:00, 19:30',
      'sun 3:05',
      'monthly 31 9:00',
      'every 15 minutes',
      'every 2 hours',
      '5 4 1,15 * fri',
      '*/20 8-10 * jan-mar mon',
      '0 0 29 2 *',
    ]) {
      const rule = parseRule(at);
      const times = rule.flatMap(calendarLines).map(line => {
        const { stdout } = analyze('calendar', line);
        const [, local] = /Next elapse: \w+ (\S+ \S+)/.exec(stdout) ?? [];
        return new Date(`${local?.replace(' ', 'T')}`).getTime();
      });
      assert.equal(Math.min(...times), nextTime(rule, new Date())?.getTime(), at);
    }
  });

  it('lies in the crontab among other lines, which stay to the byte', () => {
    const others = '# mine\n0 1 * * * backup\n\n';
    const lines = ['# Telos schedule a: begin', '1 2 * * * x', '# Telos schedule a: end'];
    const written = crontabWith(others, 'a', lines);
    assert.equal(written, `${others}${lines.join('\n')}\n`);
    assert.equal(crontabWith(written, 'a', lines), written);
    assert.equal(crontabWith(written, 'a', []), others);
    assert.equal(crontabWith(others, 'a', []), others);
    assert.equal(crontabWith('', 'a', lines), `${lines.join('\n')}\n`);
    assert.equal(crontabWith('no newline', 'a', lines), `no newline\n${lines.join('\n')}\n`);
    assert.equal(crontabWith(written, 'b', []), written);
  });

  it('names days to launchd where it knows them, and each time to the Task Scheduler', async () => {
    const text = await textOf('launchd', { at: 'mon,thu 18:15' });
    const dates = text.match(/<dict><key>Weekday.*<\/dict>/g);
    assert.deepEqual(dates, [
      '<dict><key>Weekday</key><integer>1</integer><key>Hour</key><integer>18</integer><key>Minute</key><integer>15</integer></dict>',
      '<dict><key>Weekday</key><integer>4</integer><key>Hour</key><integer>18</integer><key>Minute</key><integer>15</integer></dict>',
    ]);
    assert.match(text, /<string>\/opt\/it&#39;s 100%\/cli\.js<\/string>/);
    assert.doesNotMatch(await textOf('launchd', { at: '5 4 1 * fri' }), /<key>(?:Day|Weekday)</);
    const task = await textOf('task-scheduler', { at: 'daily 7:00, 19:30' });
    assert.deepEqual(task.match(/T\d\d:\d\d:00/g), ['T07:00:00', 'T19:30:00']);
    assert.match(await textOf('task-scheduler', { at: 'hourly' }), /<Interval>PT1H</);
  });
});
