import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Schedule } from '../../src/engine/schedule/schedules.ts';
import { type AnthropicTurn, type FakeServer, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

const skill = '---\ndescription: Morning plan\n---\nWrite the plan to today.md.';
const files = {
  'skills/kairos/agent.toml': 'name = "kairos"\ndescription = "plans"\nworking_dir = "."\n',
  'skills/kairos/skills/kickoff/SKILL.md': skill,
};
const hour = 3_600_000;

/** A crontab that keeps its table in a file, as the real one does from the outside. */
const crontab = `#!/bin/sh
table="$HOME/table"
if [ "$1" = -l ]; then
  [ -f "$table" ] || { echo "no crontab for you" >&2; exit 1; }
  cat "$table"
else
  cat > "$table"
fi
`;

describe('telos schedule', function () {
  this.timeout(60_000);
  let home: CliHome;
  let server: FakeServer;
  let turns: AnthropicTurn[];
  let env: Record<string, string>;
  const key = 'test-key-0123456789';

  beforeEach(async () => {
    turns = [{ text: ['Planned.'] }];
    server = await startAnthropicServer({ turns: (_request, index) => turns[index] ?? { text: ['Done.'] } });
    home = cliHome({ ...files, 'bin/crontab': crontab, 'config/.env': `ANTHROPIC_API_KEY=${key}\n` });
    chmodSync(join(home.folder.path, 'bin/crontab'), 0o755);
    env = {
      ANTHROPIC_BASE_URL: server.url,
      PATH: `${join(home.folder.path, 'bin')}:${home.env['PATH'] ?? process.env['PATH']}`,
    };
  });
  afterEach(async () => {
    await server.close();
    home.remove();
  });

  const telos = (...words: string[]) => home.run(['schedule', ...words], { env });
  const add = (...more: string[]) =>
    telos('add', 'run daily kickoff', '--at', 'weekdays 08:30', '--scheduler', 'cron', ...more);
  const fileOf = (id: string) => join(home.dataDir, 'schedules', `${id}.json`);
  const kept = (id: string) => JSON.parse(readFileSync(fileOf(id), 'utf8')) as Schedule;
  const change = (id: string, part: Partial<Schedule>) =>
    writeFileSync(fileOf(id), JSON.stringify({ ...kept(id), ...part }));
  const table = () => readFileSync(join(home.env['HOME'] ?? '', 'table'), 'utf8');
  const clockAt = (ms: number) => new Date(ms).toTimeString().slice(0, 'hh:mm'.length);
  /** As if its time had come five minutes ago. */
  const letTimePass = (id: string) =>
    change(id, {
      at: `daily ${clockAt(Date.now() - hour / 12)}`,
      since: new Date(Date.now() - hour).toISOString(),
    });

  it('shows the exact entry and writes it only after a yes, among the lines of others', async () => {
    writeFileSync(join(home.env['HOME'] ?? '', 'table'), '0 1 * * * backup\n');
    const refused = await add();
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /Nothing was scheduled\. Use --yes/);
    assert.deepEqual([table(), existsSync(fileOf('run-daily-kickoff'))], ['0 1 * * * backup\n', false]);

    const added = await add('--yes');
    assert.equal(added.code, 0, added.stderr);
    assert.match(added.stdout, /Scheduled 'run-daily-kickoff', next \d/);
    const [other = '', ...own] = table().trimEnd().split('\n');
    assert.equal(other, '0 1 * * * backup');
    for (const line of own) assert.ok(added.stderr.includes(line), line);
    assert.match(own[1] ?? '', /^30 8 \* \* 1,2,3,4,5 /);
    assert.match(own[2] ?? '', /^@reboot /);
    assert.ok(!table().includes(key));
    assert.match((await telos('list')).stdout, /run-daily-kickoff +kairos:kickoff +weekdays 08:30 +\d/);

    assert.equal((await telos('remove', 'run-daily-kickoff')).code, 0);
    assert.deepEqual([table(), existsSync(fileOf('run-daily-kickoff'))], ['0 1 * * * backup\n', false]);
  });

  it('leaves out of its PATH where an agent works', async () => {
    const planted = join(home.workDir, 'bin');
    home.folder.add({ 'work/bin/node': '#!/bin/sh\n' });
    env = { ...env, PATH: `${planted}:${env['PATH']}` };
    assert.equal((await add('--yes')).code, 0);
    assert.ok(!table().includes(planted));
    assert.ok(table().includes(join(home.folder.path, 'bin')));
  });

  it('runs by the very line that it wrote for cron, once for each time', async () => {
    turns = [{ toolCalls: [{ name: 'write_file', input: { path: 'today.md', content: '# Today\n' } }] }];
    await home.run(['trust', 'kairos', '--yes'], { env });
    await add('--yes');
    letTimePass('run-daily-kickoff');
    const line = table()
      .split('\n')
      .find(each => each.startsWith('30 8 '));
    const command = (line ?? '').replace('30 8 * * 1,2,3,4,5 ', '').replaceAll('\\%', '%');
    const byCron = () =>
      spawnSync('/bin/sh', ['-c', command], {
        env: { HOME: home.env['HOME'] ?? '' },
        cwd: '/',
        timeout: 30_000,
      });
    await Promise.all([1, 2].map(() => home.runProcess(['schedule', 'due', 'run-daily-kickoff'], { env })));
    assert.equal(byCron().status, 0);
    assert.equal(readFileSync(join(home.workDir, 'today.md'), 'utf8'), '# Today\n');
    assert.equal(server.requests.length, 2);
    assert.equal(kept('run-daily-kickoff').last?.outcome, 'completed');
    assert.match((await home.run(['runs'])).stdout, /kickoff +completed/);
  });

  it('keeps what it asked while no one was there, and exits with 3', async () => {
    turns = [{ toolCalls: [{ name: 'run_command', input: { command: 'curl https://example.org/x' } }] }];
    await add('--yes');
    const ran = await telos('run', 'run-daily-kickoff');
    assert.equal(ran.code, 3, ran.stderr);
    assert.match(ran.stderr, /asked while no one was there.*telos runs show/);
    assert.match(ran.stderr, /\? run_command: curl https:\/\/example\.org\/x/);
    assert.match((await telos('list')).stdout, /needs you/);
  });

  it('runs nothing without its skill, after a change of its files, or without a key, and pauses after three', async () => {
    await add('--yes');
    home.folder.add({ 'skills/kairos/skills/kickoff/SKILL.md': `${skill} And delete all.` });
    for (let count = 0; count < 3; count++) {
      assert.equal((await telos('run', 'run-daily-kickoff')).code, 1);
    }
    const list = await telos('list');
    assert.match(list.stdout, /paused/);
    assert.match(
      list.stderr,
      /files of 'kairos' have changed[\s\S]*telos trust kairos[\s\S]*3 times in a row/,
    );
    assert.equal(server.requests.length, 0);
    letTimePass('run-daily-kickoff');
    assert.equal((await telos('due')).code, 0);

    await home.run(['trust', 'kairos', '--yes'], { env });
    assert.equal((await telos('resume', 'run-daily-kickoff')).code, 0);
    assert.equal((await telos('run', 'run-daily-kickoff')).code, 0);
    home.folder.add({ 'config/.env': '' });
    assert.equal((await telos('run', 'run-daily-kickoff')).code, 1);
    assert.equal(server.requests.length, 1);
    home.folder.add({ 'skills/kairos/skills/other/SKILL.md': skill });
    spawnSync('rm', ['-r', join(home.skillsDir, 'kairos/skills/kickoff')]);
    const missing = await telos('run', 'run-daily-kickoff');
    assert.match(missing.stderr, /skill kairos:kickoff is missing/);
  });

  it('does not repeat a time whose run was killed', async () => {
    let waits = true;
    await server.close();
    server = await startAnthropicServer({ turns: () => (waits ? { stallMs: 60_000 } : { text: ['Done.'] }) });
    env = { ...env, ANTHROPIC_BASE_URL: server.url };
    await add('--yes');
    letTimePass('run-daily-kickoff');
    const first = home.start(['schedule', 'due'], { env });
    while (server.requests.length === 0) await new Promise(resolve => setTimeout(resolve, 20));
    first.child.kill('SIGKILL');
    await first.result;
    waits = false;
    const dueAt = kept('run-daily-kickoff').last?.dueAt;
    await telos('due');
    assert.equal(server.requests.length, 1);
    assert.equal(kept('run-daily-kickoff').last?.dueAt, dueAt);
    assert.match((await telos('list')).stdout, /interrupted/);
  });

  it('leaves a missed time out where that was wanted', async () => {
    await add('--yes', '--missed', 'skip');
    assert.ok(!table().includes('@reboot'));
    const yesterday = new Date(Date.now() - 24 * hour);
    const at = `daily ${clockAt(Date.now() - hour)}`;
    change('run-daily-kickoff', { at, since: yesterday.toISOString() });
    assert.equal((await telos('due')).code, 0);
    assert.deepEqual([server.requests.length, kept('run-daily-kickoff').last?.outcome], [0, 'skipped']);
  });

  it('says what is wrong with a time, a request, a file and a clock, and keeps nothing', async () => {
    const wrong = await telos('add', 'run daily kickoff', '--at', 'sometimes', '--yes');
    assert.match(wrong.stderr, /'sometimes' is not a time\. Examples: "weekdays 08:30"/);
    const unknown = await telos('add', 'zzz qqq', '--at', 'daily 8:00', '--yes');
    assert.match(unknown.stderr, /No matching skill found/);
    const noClock = await telos(
      'add',
      'run daily kickoff',
      '--at',
      'daily 8:00',
      '--scheduler',
      'launchd',
      '--yes',
    );
    assert.match(noClock.stderr, /launchctl is not installed/);
    assert.match((await telos('list')).stderr, /Nothing is scheduled/);
    assert.ok(
      !existsSync(
        join(home.env['HOME'] ?? '', 'Library/LaunchAgents/telos.schedule.run-daily-kickoff.plist'),
      ),
    );
    home.folder.add({ 'data/schedules/broken.json': '{"version": 1}' });
    const broken = await telos('list');
    assert.match(broken.stderr, /broken\.json could not be read: its id is not 'broken'/);
    assert.doesNotMatch(broken.stderr, /Nothing is scheduled/);
    assert.deepEqual([broken.code, (await telos('list', '--json')).code], [1, 1]);
  });
});
