import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { chooseAndRun } from '../../src/cli/interactiveCommand.ts';
import { readLine } from '../../src/cli/keyboard.ts';
import type { RequestOptions } from '../../src/cli/requestCommand.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { loadConfig } from '../../src/engine/config.ts';
import { logPath } from '../../src/engine/records/logFile.ts';
import { Telos } from '../../src/engine/telos.ts';
import { type FakeServer, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const same = (text: string): string => text;

describe('telos alone on a terminal', () => {
  let folder: TempFolder;
  let server: FakeServer;

  beforeEach(async () => {
    folder = tempFolder({
      'skills/gmail/skills/check-email/SKILL.md': '---\ndescription: Reads mail\n---\nRead.',
      'skills/kairos/agent.toml': 'name = "kairos"\ndescription = "plans"\nworking_dir = "."\n',
      'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Morning\n---\nPlan the day.',
      'skills/kairos/skills/quiet/SKILL.md': '---\ndescription: X\nuser-invocable: false\n---\nB',
      'skills/kairos/skills/shutdown/SKILL.md': '---\ndescription: Evening\u202e\n---\nB',
    });
    server = await startAnthropicServer({ turns: [{ text: ['All done'] }] });
  });
  afterEach(async () => {
    await server.close();
    folder.remove();
  });

  /** Types one answer at each question; after the last the input ends. */
  async function typing(answers: readonly string[], options: RequestOptions = {}) {
    const config = loadConfig({
      env: {
        TELOS_SKILLS_DIR: join(folder.path, 'skills'),
        ANTHROPIC_API_KEY: 'test-key-0123456789',
        ANTHROPIC_BASE_URL: server.url,
      },
      home: folder.path,
      cwd: folder.path,
    });
    let out = '';
    let side = '';
    const terminal: Terminal = {
      out: text => {
        out += text;
      },
      say: line => {
        side += `${line}\n`;
      },
      endLine: () => {},
      flush: () => {},
      outWidth: undefined,
      sayWidth: 80,
      canAsk: true,
      surroundings: process,
      style: { dim: same, bold: same, red: same, yellow: same },
    };
    const left = [...answers];
    const code = await chooseAndRun(Telos.open(config), options, terminal, (prompt, signal) => {
      side += `${prompt}\n`;
      const [input, output] = [new PassThrough(), new PassThrough()];
      const answer = left.shift();
      input.end(answer === undefined ? '' : `${answer}\n`);
      return readLine(prompt, signal, input, output);
    });
    return { code, out, side, unread: left };
  }

  it('lists agents, then skills, and runs the chosen one after y', async () => {
    const { code, out, side } = await typing(['2', 'KICKOFF', 'y']);
    assert.deepEqual([code, out], [0, 'All done']);
    assert.equal(
      side.replace(/Done in .*\n/, 'Done\n').replace(/(?<=Works in: ).*[/\\]/, ''),
      [
        ' 1. gmail   Reads mail',
        ' 2. kairos  plans',
        'Which agent? [number or name, or what you want to do; q = quit] ',
        ' 1. kickoff   Morning',
        ' 2. shutdown  Evening\\u202e',
        'Which skill? [number or name, or what you want to do; q = quit] ',
        'Run kickoff of kairos? [y = run, d = dry run, q = quit, or what you want it to do] ',
        'kickoff (kairos): chosen by you',
        'Works in: kairos',
        'Done',
        '',
      ].join('\n'),
    );
    assert.match(JSON.stringify(server.requests[0]?.body.messages), /Plan the day/);
    const [log = ''] = readFileSync(logFileIn(folder), 'utf8').split('\n');
    assert.equal((JSON.parse(log) as { skill: string }).skill, 'kickoff');
  });

  it('takes words at each question for a request', async () => {
    for (const answers of [
      ['run daily kickoff'],
      ['kairos', 'run kickoff now'],
      ['2', '1', 'run it early'],
    ]) {
      const { code, side } = await typing(answers);
      assert.equal(code, 0, side);
      assert.match(side, /kickoff \(kairos\)/);
      assert.match(
        JSON.stringify(server.requests.at(-1)?.body.messages),
        new RegExp(`request: ${answers.at(-1)}`),
      );
    }
  });

  it('says with d what would run, and asks again', async () => {
    const { code, out } = await typing(['kairos', '1', 'd', 'd', 'q']);
    assert.equal(code, 0);
    assert.equal(out, 'Would run kickoff (kairos): chosen by you\n'.repeat(2));
    assert.equal(server.requests.length, 0);
  });

  it('asks again for what is not in the list, and stops at q and at the end of the input', async () => {
    const { side, unread } = await typing(['9', '', 'nope', 'q', 'never']);
    assert.match(
      side,
      /There is no agent '9'; enter 1 to 2, a name, or at least two words.*\n[\s\S]*no agent 'nope'/,
    );
    assert.equal(side.match(/Which agent/g)?.length, 4);
    assert.deepEqual(unread, ['never']);
    for (const answers of [['1', 'Q'], ['1', '1', 'no'], ['1', '1', 'q'], ['1'], []])
      assert.equal((await typing(answers)).code, 0);
    assert.equal(server.requests.length, 0);
  });

  it('offers default_agent of agents.toml for Enter', async () => {
    folder.add({ '.config/telos/agents.toml': '[defaults]\ndefault_agent = "kairos"\n' });
    const { side } = await typing(['', 'kickoff', 'q']);
    assert.match(side, /what you want to do; Enter = kairos, q = quit\]/);
    assert.match(side, / 1\. kickoff/);
  });

  it('starts with the skills of --agent, and names the agents there are when it is none', async () => {
    const { code, side } = await typing(['1', 'y'], { agent: 'gmail' });
    assert.equal(code, 0);
    assert.ok(side.startsWith(' 1. check-email  Reads mail\nWhich skill?'), side);
    const none = await typing([], { agent: 'nope' });
    assert.equal(none.code, 1);
    assert.match(none.side, /Agent 'nope' not found. Available agents: gmail, kairos/);
  });
});

function logFileIn({ path }: TempFolder): string {
  return logPath(join(path, '.local/share/telos'));
}
