/** What a run may do in each mode: a plan changes nothing, a review asks about each write, and prohibitions hold in all. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type {
  ApprovalDecision,
  ApprovalRequest,
  JsonObject,
  RunEvent,
  RunMode,
} from '../../../src/protocol/run.ts';
import { runModes } from '../../../src/protocol/run.ts';
import { calls, done, type ScriptedProvider, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

type Call = readonly [tool: string, input: JsonObject];

describe('modes of a run', () => {
  let folder: TempFolder;
  let sandbox: string | undefined;
  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows\n---\nSow.',
      'root/garden/plan.md': 'peas\n',
    });
  });
  afterEach(() => folder.remove());
  const beds = (): string => join(folder.path, 'root/garden');
  const inBeds = (name: string): string => join(beds(), name);

  function open(provider: ScriptedProvider): Telos {
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_SKILLS_DIR: join(folder.path, 'skills'),
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        TELOS_WORKING_ROOT: join(folder.path, 'root'),
        TELOS_PROVIDER: 'scripted',
        ...(sandbox !== undefined && { TELOS_SANDBOX: sandbox }),
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'home'),
    });
    return Telos.open(config, {
      providers: { scripted: { model: async () => 's', create: async () => provider } },
    });
  }

  /** Runs the calls in one turn each. `answer` is a yes for this once if it is missing. */
  async function run(
    mode: RunMode,
    wanted: readonly Call[],
    answer: ApprovalDecision = { allow: true, scope: 'once' },
  ) {
    const turns = wanted.map(([tool, input], index) => [calls(`${index}`, tool, input), done('tool_use')]);
    const provider = scriptedProvider([...turns, [says('done'), done()]]);
    const telos = open(provider);
    const asked: ApprovalRequest[] = [];
    const human: Human = {
      ...denyAll,
      approve: async request => {
        asked.push(request);
        return answer;
      },
    };
    const events: RunEvent[] = [];
    const request = { text: 'the beds', skill: { agent: 'garden', skill: 'sow' }, mode };
    for await (const event of telos.run(request, human, new AbortController().signal)) events.push(event);
    const ends = events.flatMap(event => (event.type === 'tool_end' ? [event] : []));
    return { events, ends, asked, provider, rules: asked.map(({ rule }) => rule) };
  }

  /** Accepts the card of the agent as it is now. */
  async function acceptCard(): Promise<void> {
    const telos = open(scriptedProvider([[says('done'), done()]]));
    await telos.acceptCard(await telos.agentCard('garden'));
  }

  it('plans without a change, whatever rules allow, asks nothing and starts no server', async () => {
    const started = join(folder.path, 'started');
    folder.add({
      'skills/garden/mcp.json': JSON.stringify({
        mcpServers: {
          beds: { command: process.execPath, args: ['-e', `require('fs').writeFileSync('${started}', '')`] },
        },
      }),
      'config/policy.toml': '[[allow]]\nagent = "garden"\ntool = "run_command"\nargv = ["touch", "made"]\n',
    });
    const { events, ends, asked, provider } = await run('plan', [
      ['read_file', { path: 'plan.md' }],
      ['run_command', { command: 'ls', cwd: beds() }],
      ['write_file', { path: 'plan.md', content: 'beans\n' }],
      ['edit_file', { path: 'plan.md', old_text: 'peas', new_text: 'beans' }],
      ['run_command', { command: 'touch made', cwd: beds() }],
      ['Bash', { command: 'echo x > made' }],
    ]);
    assert.deepEqual(asked, []);
    assert.deepEqual(
      ends.map(({ name, result, policy }) => [name, result.isError, policy?.rule]),
      [
        ['read_file', false, 'read.own-folders'],
        ['run_command', false, 'run.read-only'],
        ['write_file', true, 'mode.plan'],
        ['edit_file', true, 'mode.plan'],
        ['run_command', true, 'mode.plan'],
        ['run_command', true, 'mode.plan'],
      ],
    );
    assert.match(ends[2]!.result.content, /only plans.*another mode/s);
    assert.equal(readFileSync(inBeds('plan.md'), 'utf8'), 'peas\n');
    assert.ok(!existsSync(inBeds('made')) && !existsSync(started));
    const [first] = provider.requests;
    assert.match(first!.system, /Answer with the plan/);
    assert.ok(!first!.tools.some(tool => /write|edit/.test(tool)) && first!.tools.includes('fetch_url'));
    const [start] = events;
    assert.equal(start?.type === 'run_start' && start.mode, 'plan');
  });

  it('reviews each write with its lines, though the folder or a rule allows it, and offers no always', async () => {
    folder.add({
      'config/policy.toml': `[[allow]]\nagent = "garden"\ntool = "write_file"\npath = "${beds()}/**"\n`,
    });
    const writes: Call[] = [
      ['write_file', { path: 'plan.md', content: 'beans\n' }],
      ['edit_file', { path: 'plan.md', old_text: 'beans', new_text: 'corn' }],
      ['write_file', { path: 'new.md', content: 'x\n' }],
    ];
    const { asked, rules } = await run('review', writes);
    assert.deepEqual(rules, ['mode.review', 'mode.review', 'mode.review']);
    assert.match(asked[0]?.diff ?? '', /-peas\n\+beans/);
    assert.match(asked[1]?.diff ?? '', /-beans\n\+corn/);
    assert.deepEqual(asked[0]?.scopes, ['once', 'run']);
    assert.equal(readFileSync(inBeds('plan.md'), 'utf8'), 'corn\n');
    assert.deepEqual((await run('default', writes.slice(0, 1))).rules, []);
  });

  it('writes nothing that the review denies, and asks once more for another file only after a yes for the run', async () => {
    const denied = await run('review', [['write_file', { path: 'plan.md', content: 'beans\n' }]], {
      allow: false,
      reason: 'no',
    });
    assert.equal(denied.ends[0]?.result.isError, true);
    assert.equal(readFileSync(inBeds('plan.md'), 'utf8'), 'peas\n');
    const forRun = await run(
      'review',
      ['plan.md', 'plan.md', 'other.md'].map(path => ['write_file', { path, content: `${path}\n` }]),
      { allow: true, scope: 'run' },
    );
    assert.deepEqual(
      forRun.asked.map(({ subject }) => subject),
      [inBeds('plan.md'), inBeds('other.md')],
    );
  });

  it('asks in a review about each command that does more than look', async () => {
    await acceptCard();
    const commands: Call[] = [
      `cat ${beds()}/plan.md`,
      `sort ${beds()}/plan.md > ${beds()}/sorted.md`,
      `cp ${beds()}/plan.md ${beds()}/copy.md`,
    ].map(command => ['run_command', { command }]);
    const { rules, asked } = await run('review', commands);
    assert.deepEqual(rules, ['run.command', 'run.command']);
    assert.match(asked[0]?.subject ?? '', /sorted/);
  });

  it('asks in a review about a command that the card names', async () => {
    folder.add({
      'skills/garden/skills/sow/SKILL.md':
        '---\nname: sow\ndescription: Sows\nallowed-tools: Bash(tee:*)\n---\nSow with `tee beds.md`.',
    });
    await acceptCard();
    const command: Call = ['run_command', { command: 'tee beds.md', cwd: beds() }];
    const usual = await run('default', [command], { allow: false, reason: 'no' });
    assert.deepEqual([usual.rules, usual.ends[0]?.policy?.rule], [[], 'card.command']);
    assert.deepEqual((await run('review', [command], { allow: false, reason: 'no' })).rules, ['mode.review']);
  });

  it('asks in the sandbox about no folder or command of an own skill, but about the network and what leaves it', async () => {
    folder.add({
      'skills/garden/agent.toml': `name = "garden"\nworking_dir = "${join(folder.path, 'shed')}"\n`,
      'shed/list.md': 'rake\n',
    });
    const shed = join(folder.path, 'shed');
    const wanted: Call[] = [
      ['write_file', { path: 'list.md', content: 'spade\n' }],
      ['run_command', { command: 'echo hoe >> list.md && sleep 0.01', cwd: shed }],
    ];
    const no: ApprovalDecision = { allow: false, reason: 'no' };
    assert.deepEqual((await run('default', wanted, no)).rules, ['card.new', 'run.command']);
    const { rules, ends } = await run('sandbox', wanted, no);
    assert.deepEqual(rules, []);
    assert.ok(ends.every(({ result }) => !result.isError));
    assert.equal(readFileSync(join(shed, 'list.md'), 'utf8'), 'spade\nhoe\n');
    const beyond: Call[] = [
      ['fetch_url', { url: 'https://example.com/' }],
      ['write_file', { path: join(folder.path, 'elsewhere.md'), content: 'x' }],
      ['run_command', { command: 'git push --force', cwd: shed }],
    ];
    assert.deepEqual((await run('sandbox', beyond, no)).rules, [
      'fetch.public',
      'write.outside',
      'run.command',
    ]);
  });

  it("asks in the sandbox with the card of a stranger's skill, and where no sandbox works", async () => {
    const command: Call = ['run_command', { command: 'echo x > a && sleep 0.01', cwd: beds() }];
    const no: ApprovalDecision = { allow: false, reason: 'no' };
    sandbox = 'off';
    assert.deepEqual((await run('sandbox', [command], no)).rules, ['run.command']);
    sandbox = undefined;
    folder.add({
      'skills/garden/.git/HEAD': 'ref: refs/heads/main\n',
      'skills/garden/agent.toml': `name = "garden"\nworking_dir = "${join(folder.path, 'shed')}"\n`,
    });
    assert.deepEqual((await run('sandbox', [['write_file', { path: 'a', content: 'x' }]], no)).rules, [
      'card.new',
    ]);
  });

  it('holds the floor and prohibitions in each mode', async () => {
    folder.add({
      'config/policy.toml': `[[deny]]\nagent = "garden"\ntool = "*"\npath = "${beds()}/**"\n`,
    });
    for (const mode of runModes) {
      const { ends, asked } = await run(mode, [
        ['read_file', { path: 'plan.md' }],
        ['read_file', { path: join(folder.path, 'config/policy.toml') }],
        ['run_command', { command: 'rm -rf /' }],
      ]);
      assert.deepEqual(asked, [], mode);
      const rules = ends.map(({ policy }) => policy?.rule ?? '');
      assert.match(rules[0]!, /^policy\.deny/, mode);
      assert.match(rules[1]!, /^floor\./, mode);
      assert.match(rules[2]!, /^floor\./, mode);
    }
  });
});
