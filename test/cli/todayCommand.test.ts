import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Journal, readJournal } from '../../src/plans/journal.ts';
import { MachineSeal } from '../../src/plans/machineSeal.ts';
import type { PlanEvent } from '../../src/protocol/plan.ts';
import { type AnthropicTurn, type FakeServer, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';
import { openTerminalSession, type TerminalSession } from './screen.ts';

const skill = (words: string): string => `---\ndescription: ${words}\n---\nDo it.`;
const files = {
  'skills/kairos/agent.toml': 'name = "kairos"\ndescription = "plans"\nworking_dir = "."\n',
  'skills/kairos/skills/kickoff/SKILL.md': skill('Morning plan'),
  'skills/kairos/skills/sweep/SKILL.md': skill('Sweep the floor'),
};
const question = 'May US-001 use run_command for this? npm publish\nIt reaches the network.';

/** A night: a schedule that wrote a file, one that asked, and a plan whose story waits for an answer. */
describe('telos today', function () {
  this.timeout(60_000);
  let home: CliHome;
  let server: FakeServer;
  let turns: AnthropicTurn[];
  let env: Record<string, string>;
  let session: TerminalSession | undefined;

  beforeEach(async () => {
    turns = [];
    server = await startAnthropicServer({ turns: () => turns.shift() ?? { text: ['Done.'] } });
    home = cliHome({ ...files, 'config/.env': 'ANTHROPIC_API_KEY=test-key-0123456789\n' });
    env = { ANTHROPIC_BASE_URL: server.url };
  });
  afterEach(async () => {
    session?.child.kill('SIGKILL');
    session = undefined;
    await server.close();
    home.remove();
  });

  const telos = (...words: string[]) => home.run(words, { env });
  const schedule = async (request: string): Promise<void> => {
    const added = await telos(
      'schedule',
      'add',
      request,
      '--at',
      'daily 3:00',
      '--scheduler',
      'none',
      '--yes',
    );
    assert.equal(added.code, 0, added.stderr);
  };
  const planDir = () => join(home.workDir, '.telos', 'plans', 'bakery');
  const seal = () => new MachineSeal(home.dataDir);
  const note = async (by: MachineSeal, ...events: readonly PlanEvent[]): Promise<void> => {
    await by.ready();
    mkdirSync(join(planDir(), 'prds'), { recursive: true });
    const journal = await Journal.open(join(planDir(), 'journal.jsonl'), by);
    for (const event of events) await journal.append(event);
    await journal.close();
  };
  const asked: readonly PlanEvent[] = [
    { type: 'plan_created', name: 'bakery', goal: 'Sell bread' },
    { type: 'phase', phase: 'needs_you' },
    { type: 'question_parked', question: { id: 'US-001-1', text: question, choices: ['yes', 'no'] } },
  ];
  const night = async (): Promise<void> => {
    await telos('trust', 'kairos', '--yes');
    await schedule('run daily kickoff');
    await schedule('sweep the floor');
    turns = [{ toolCalls: [{ name: 'write_file', input: { path: 'today.md', content: '# Today\n' } }] }];
    assert.equal((await telos('schedule', 'run', 'run-daily-kickoff')).code, 0);
    turns = [{ toolCalls: [{ name: 'run_command', input: { command: 'curl https://example.org/x' } }] }];
    assert.equal((await telos('schedule', 'run', 'sweep-the-floor')).code, 3);
    await note(seal(), ...asked);
  };

  it('says in one line that nothing ran and nothing waits', async () => {
    const { code, stdout, stderr } = await telos('today');
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^Nothing ran since \d{4}-\d\d-\d\d 18:00 while you were away, and nothing waits for you\.\n$/,
    );
  });

  it('lists what ran with what it changed, and what waits with its command', async () => {
    await night();
    const { code, stdout, stderr } = await telos('today');
    assert.equal(code, 3);
    assert.match(stdout, /run-daily-kickoff: completed/);
    const [, run = ''] = /Changed \S*today\.md\. Undo: telos undo (\w{8})/.exec(stdout) ?? [];
    assert.match(stdout, /sweep-the-floor: needs you/);
    assert.match(stdout, /plan bakery: /);
    assert.match(stdout, /Waiting for you: 2\n/);
    assert.match(
      stderr,
      /The plan bakery in .*\n {2}May US-001 use run_command for this\? npm publish.*reaches the network/,
    );
    assert.match(stderr, /telos plan answer US-001-1 "…" --plan bakery/);
    assert.match(
      stderr,
      /\? run_command: curl https:\/\/example\.org\/x[\s\S]*telos schedule run sweep-the-floor/,
    );

    assert.equal((await telos('undo', run, '--yes')).code, 0);
    assert.ok(!existsSync(join(home.workDir, 'today.md')));
    const later = await telos('today');
    assert.doesNotMatch(later.stdout, /Undo:/);
    const page = JSON.parse((await telos('today', '--json')).stdout);
    assert.deepEqual(
      page.decisions.map(({ kind }: { kind: string }) => kind),
      ['question', 'schedule'],
    );
  });

  it('asks one key for each, and gives the answer to the plan', async () => {
    await night();
    session = openTerminalSession(`exec '${process.execPath}' '${program()}' today`, {
      cwd: home.workDir,
      env: { ...home.env, ...env },
    });
    await session.shows(/1 of 2: The plan bakery[\s\S]*y yes · n no · any other key: later/);
    await session.answers(
      'y',
      /The answer is kept for the plan[\s\S]*2 of 2: The schedule sweep-the-floor[\s\S]*later/,
    );
    await session.answers('s', /not shown again/);
    const again = await telos('today');
    assert.equal(again.code, 3, 'the answer is read when the plan runs');
    assert.match(again.stderr, /1 of 1: The plan bakery in .*: needs you\.\n {2}telos plan run bakery\n/);
  });

  it('takes Enter for no answer, whatever words a model has put into the choices', async () => {
    await note(seal(), asked[0]!, {
      type: 'question_parked',
      question: { id: 'US-001-2', text: 'Ship it?', choices: ['\rship it', 'no'] },
    });
    session = openTerminalSession(`exec '${process.execPath}' '${program()}' today`, {
      cwd: home.workDir,
      env: { ...home.env, ...env },
    });
    await session.shows(/Ship it\?[\s\S]*1 .*ship it · 2 no · any other key: later/);
    session.type('\r');
    assert.equal(await session.ended(), 3);
    assert.ok(!existsSync(join(planDir(), 'inbox')));
  });

  it('shows nothing of a plan that came with a repository', async () => {
    const other = new MachineSeal(join(home.workDir, '..', 'other'));
    await note(other, ...asked);
    assert.equal((await readJournal(join(planDir(), 'journal.jsonl'), seal())).length, 0);
    const { code, stdout } = await telos('today');
    assert.deepEqual([code, /Nothing ran/.test(stdout)], [0, true]);
  });

  it('says what cannot be read, and never that nothing waits then', async () => {
    await night();
    home.folder.add({ 'data/schedules/broken.json': '{' });
    const { stdout, stderr } = await telos('today');
    assert.match(stderr, /broken/);
    assert.doesNotMatch(stdout, /nothing waits/);
    assert.match((await telos('today', '--hours', 'soon')).stderr, /--hours takes a number/);
    assert.equal(readFileSync(join(home.workDir, 'today.md'), 'utf8'), '# Today\n');
  });
});
