/** What a skill from elsewhere meets when it runs: its folders, its tools, and what it is told about this machine. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { calls, done, type ScriptedTurn, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('a prepared run', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  async function run(
    skill: string,
    words: string,
    turns: readonly ScriptedTurn[] = [[says('ok'), done()]],
    env: Record<string, string> = {},
  ) {
    folder.add({ 'skills/pack/skills/one/SKILL.md': skill });
    const config = loadConfig({
      env: {
        TELOS_SKILLS_DIR: join(folder.path, 'skills'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_PROVIDER: 'scripted',
        PATH: '',
        ...env,
      },
      home: folder.path,
      cwd: folder.path,
    });
    const provider = scriptedProvider(turns);
    const scripted = { model: async () => 'script', create: async () => provider };
    const asked: string[] = [];
    const human = {
      ...denyAll,
      approve: async ({ subject }: { subject: string }) => {
        asked.push(subject);
        return { allow: false, reason: 'no' } as const;
      },
    };
    const { signal } = new AbortController();
    const events: RunEvent[] = [];
    const telos = Telos.open(config, { providers: { scripted } });
    const named = { text: words, skill: { agent: 'pack', skill: 'one' } };
    for await (const event of telos.run(named, human, signal)) events.push(event);
    const [request] = provider.requests;
    const [first] = request?.messages ?? [];
    return {
      asked,
      rounds: events.find(event => event.type === 'run_end')?.rounds,
      notices: events.flatMap(event => (event.type === 'notice' ? event.message : [])),
      results: events.flatMap(event => (event.type === 'tool_end' ? event.result.content : [])),
      system: request?.system ?? '',
      tools: request?.tools ?? [],
      message: String(first?.content),
    };
  }

  it('offers all tools, names the files beside the skill and puts its folder in', async () => {
    folder.add({ 'skills/pack/skills/one/scripts/go.py': 'print()' });
    const dir = join(folder.path, 'skills/pack/skills/one');
    const { tools, system, message, notices } = await run(
      '---\ndescription: d\n---\nRun {baseDir}/scripts/go.py on $ARGUMENTS',
      'my file',
    );
    assert.deepEqual(tools.sort(), [
      ...[
        'ask_user',
        'edit_file',
        'fetch_url',
        'glob',
        'list_directory',
        'read_file',
        'read_output',
        'run_command',
        'search_files',
        'stop_command',
        'update_todos',
        'write_file',
      ],
    ]);
    assert.ok(message.startsWith(`Run ${dir}/scripts/go.py on my file\n`), message);
    assert.doesNotMatch(message, /User request/);
    assert.ok(system.includes(`The skill's own folder is ${dir},`), system);
    assert.match(system, /- scripts\/go\.py \(7 bytes\)/);
    assert.match(system, /Grep, .* are search_files/);
    assert.equal(notices.length, 1);
    assert.match(notices[0] ?? '', /^Works in: .*telos\/pack$/);
  });

  it('says before the run, to the person and to the model, what is missing', async () => {
    const { notices, system } = await run(
      '---\ndescription: d\nmetadata: {"openclaw":{"requires":{"bins":["ffmpeg"]},"install":[{"kind":"brew","formula":"ffmpeg"}]}}\n---\nB',
      'go',
    );
    assert.match(
      notices.join(),
      /ffmpeg, which is not on the PATH\. Install it; the author gives: brew install ffmpeg/,
    );
    assert.match(system, /ffmpeg, which is not on the PATH/);
    assert.match(system, /install nothing unless the person asks/);
  });

  it('takes the number of rounds from the person, else from the skill, else from its agent, else 20', async () => {
    const circles: ScriptedTurn[] = [[calls('1', 'list_directory', {}), done('tool_use')]];
    const skill = '---\ndescription: d\n---\nB';
    const rounds = async (text: string, env = {}) => (await run(text, 'go', circles, env)).rounds;
    assert.equal(await rounds(skill), 20);
    folder.add({ 'skills/pack/agent.toml': 'max_rounds = 4' });
    assert.equal(await rounds(skill), 4);
    const longer = skill.replace('d\n', 'd\nmax_rounds: 30\n');
    assert.equal(await rounds(longer), 30);
    assert.equal(await rounds(longer, { TELOS_MAX_ROUNDS: '2' }), 2);
    assert.equal(await rounds(skill.replace('d\n', 'd\nmax_rounds: 900\n')), 4);
  });

  it('takes no tool away for `allowed-tools`, and those that `disallowed-tools` names', async () => {
    const text = (more: string) => `---\ndescription: d\n${more}---\nB`;
    const all = await run(text(''), 'go');
    assert.deepEqual((await run(text('allowed-tools: Read, Bash(git *)\n'), 'go')).tools, all.tools);
    const { tools, results, asked, system } = await run(
      text('allowed-tools: Read\ndisallowed-tools: Write, Bash(git push *)\n'),
      'go',
      [
        [
          calls('1', 'run_command', { command: 'true; /usr/bin/git push origin' }),
          calls('2', 'run_command', { command: 'git status -u' }),
          calls('3', 'write_file', { path: 'a', content: 'b' }),
          done('tool_use'),
        ],
        [says('ok'), done()],
      ],
    );
    assert.deepEqual(
      tools,
      all.tools.filter(name => name !== 'write_file'),
    );
    assert.doesNotMatch(system, /write_file/);
    assert.deepEqual(asked, ['git status -u']);
    assert.match(results[0] ?? '', /skill\.disallowed-tools.*`git push \*`/);
    assert.match(results[2] ?? '', /Unknown tool: write_file/);
  });
});
