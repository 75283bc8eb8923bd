/** A run without a chosen skill over the wire: it finds and reads skills, works in its folder, and asks for the rest like a skill. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ConfigOverrides, loadConfig } from '../../../src/engine/config.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { describeRoute } from '../../../src/protocol/describe.ts';
import type { RunEvent, ToolResultBlock } from '../../../src/protocol/run.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { startOpenaiServer } from '../../fakes/openaiServer.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const calls = [
  { name: 'run_command', input: { command: "find .claude/skills -name 'SKILL.md'" } },
  { name: 'list_directory', input: { path: '~/.claude/skills' } },
  { name: 'read_file', input: { path: '~/.claude/skills/tides/SKILL.md' } },
  { name: 'run_command', input: { command: 'rm ../secret.txt' } },
  { name: 'run_command', input: { command: 'cat ../secret.txt' } },
  { name: 'write_file', input: { path: 'made.txt', content: 'x' } },
];

/** In the order of the calls. */
function resultsIn(events: readonly RunEvent[]): ToolResultBlock[] {
  const end = events.at(-1);
  const contents = end?.type === 'run_end' ? end.messages.map(message => message.content) : [];
  return contents
    .flatMap(content => (typeof content === 'string' ? [] : content))
    .filter(block => block.type === 'tool_result');
}

describe('runWithoutSkill', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'work/.claude/skills/tides/SKILL.md': 'PROJECT',
      'home/.claude/skills/tides/SKILL.md': 'USER',
      'secret.txt': 'SECRET',
    });
  });
  afterEach(() => folder.remove());

  async function ask(
    env: Record<string, string>,
    more: ConfigOverrides = {},
    human: Human = denyAll,
    text = 'When is $tides?',
  ) {
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        ...env,
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'work'),
      ...more,
    });
    const events: RunEvent[] = [];
    const request = { text, withoutSkill: true };
    for await (const event of Telos.open(config).run(request, human, new AbortController().signal))
      events.push(event);
    return events;
  }

  const providers = {
    async anthropic() {
      const server = await startAnthropicServer({ turns: [{ toolCalls: calls }, { text: ['At noon.'] }] });
      const env = { ANTHROPIC_API_KEY: 'k-0123456789', ANTHROPIC_BASE_URL: server.url };
      return { server, env: { ...env, TELOS_PROVIDER: 'anthropic' } };
    },
    async openai() {
      const server = await startOpenaiServer({ turns: [{ toolCalls: calls }, { text: ['At noon.'] }] });
      const env = { OPENAI_API_KEY: 'k-0123456789', OPENAI_BASE_URL: server.url };
      return { server, env: { ...env, TELOS_PROVIDER: 'openai' } };
    },
    async gemini() {
      const server = await startOpenaiServer({ turns: [{ toolCalls: calls }, { text: ['At noon.'] }] });
      const env = { GEMINI_API_KEY: 'k-0123456789', GEMINI_BASE_URL: server.url };
      return { server, env: { ...env, TELOS_PROVIDER: 'gemini' } };
    },
  };

  for (const [name, start] of Object.entries(providers)) {
    it(`tells ${name} where skills are, lets it work in its folder, and refuses the rest without ending the turn`, async () => {
      const { server, env } = await start();
      try {
        const events = await ask(env);
        const routed = events.find(event => event.type === 'routed');
        assert.ok(routed);
        assert.equal(describeRoute(routed.agent, routed.skill, routed.reason), 'no skill');
        const sent = JSON.stringify(server.requests[0]?.body);
        for (const place of ['work', 'home'])
          assert.ok(sent.includes(join(folder.path, place, '.claude', 'skills')));
        assert.match(sent, /project skills override user skills/);
        assert.match(sent, /User request: When is \$tides\?/);
        assert.match(sent, /"write_file"[\s\S]*"edit_file"/);
        assert.doesNotMatch(sent, /"(list_skills|load_skill)"/);

        const results = resultsIn(events);
        assert.deepEqual(
          results.map(result => result.is_error),
          [false, false, false, true, true, false],
        );
        assert.deepEqual(
          results.slice(0, 3).map(({ content }) => content),
          ['.claude/skills/tides/SKILL.md', 'tides', 'USER'],
        );
        assert.ok(existsSync(join(folder.path, 'secret.txt')));
        assert.doesNotMatch(JSON.stringify(results), /SECRET/);
        assert.ok(existsSync(join(folder.path, 'work', 'made.txt')));

        const end = events.at(-1);
        assert.ok(end?.type === 'run_end' && end.outcome === 'completed');
      } finally {
        await server.close();
      }
    });
  }

  it('runs without any folder of skills, and says nothing of skills then', async () => {
    const { server, env } = await providers.anthropic();
    try {
      const roots = {
        project: '',
        user: join(folder.path, 'absent'),
        builtin: join(folder.path, 'secret.txt'),
      };
      const end = (await ask(env, { skillRoots: roots })).at(-1);
      assert.ok(end?.type === 'run_end' && end.outcome === 'completed');
      assert.doesNotMatch(JSON.stringify(server.requests[0]?.body.system), /SKILL\.md/);
    } finally {
      await server.close();
    }
  });

  /** Skills as people write them: the name says half, the description the rest. */
  const manySkills = (count: number): Record<string, string> =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [
        `skills/pack-${at % 8}/skills/helper-${at}/SKILL.md`,
        `---\nname: helper-${at}\ndescription: ${at === 39 ? 'Converts a recipe to metric units' : `Does the useful thing number ${at}`}, when a user wants it done, with tables, sources and a summary of all that was changed on the way.\n---\nDo it.\n`,
      ]),
    );

  it('sends at most 9 KB for a small question, tools included, however many skills there are', async () => {
    for (const count of [0, 40, 400]) {
      folder.add(manySkills(count));
      for (const [name, start] of Object.entries(providers)) {
        const { server, env } = await start();
        try {
          const skills = { ...env, TELOS_SKILLS_DIR: join(folder.path, 'skills') };
          await ask(
            skills,
            {},
            denyAll,
            'Convert this recipe for four to metric units, and do it with tables',
          );
          const { body } = server.requests[0] ?? {};
          const size = Buffer.byteLength(JSON.stringify(body));
          assert.ok(size <= 9 * 1024, `${name}, ${count} skills: ${size} bytes`);
          if (count > 0)
            assert.match(
              JSON.stringify(body?.messages),
              /- pack-7:helper-39: Converts a recipe to metric units/,
              'the one that fits is there, wherever it stands in the list',
            );
        } finally {
          await server.close();
        }
      }
    }
  });

  it('names each of 40 skills to the model, and has those that fit looked up without a question', async () => {
    folder.add(manySkills(40));
    const lookup = { name: 'use_skill', input: { skill: '?', request: 'metric units' } };
    const vain = { name: 'use_skill', input: { skill: '?', request: 'zzyzx' } };
    const use = { name: 'use_skill', input: { skill: 'helper-39', request: 'Convert it.' } };
    const server = await startAnthropicServer({
      turns: [{ toolCalls: [lookup, vain] }, { toolCalls: [use] }, { text: ['Done.'] }, { text: ['Done.'] }],
    });
    try {
      const asked: string[] = [];
      const human: Human = {
        ...denyAll,
        async approve({ tool }) {
          asked.push(tool);
          return { allow: true, scope: 'once' };
        },
      };
      const env = { ANTHROPIC_API_KEY: 'k-0123456789', ANTHROPIC_BASE_URL: server.url };
      const skills = { ...env, TELOS_PROVIDER: 'anthropic', TELOS_SKILLS_DIR: join(folder.path, 'skills') };
      const events = await ask(skills, {}, human);
      const system = JSON.stringify(server.requests[0]?.body.system);
      for (let at = 0; at < 40; at++) assert.match(system, new RegExp(`\\bhelper-${at}\\b`));
      const [found, nothing, used] = resultsIn(events).map(({ content }) => String(content));
      assert.match(
        found ?? '',
        /^No skill was used[\s\S]*\n- pack-7:helper-39: Converts a recipe to metric units, when/,
      );
      assert.match(nothing ?? '', /No skill shares a word/);
      assert.match(used ?? '', /helper-39 is done/);
      assert.deepEqual(asked, []);
    } finally {
      await server.close();
    }
  });

  it('is allowed always what it was allowed so, in its folder and for itself alone', async () => {
    const asked: string[] = [];
    folder.add({ 'notes.txt': 'x' });
    const always: Human = {
      ...denyAll,
      async approve({ subject, scopes }) {
        asked.push(subject);
        return { allow: true, scope: scopes.includes('always') ? 'always' : 'once' };
      },
    };
    const read = { name: 'read_file', input: { path: '../notes.txt' } };
    const again = async (more: ConfigOverrides = {}) => {
      const server = await startAnthropicServer({ turns: [{ toolCalls: [read] }, { text: ['Read.'] }] });
      const env = { ANTHROPIC_API_KEY: 'k-0123456789', ANTHROPIC_BASE_URL: server.url };
      await ask({ ...env, TELOS_PROVIDER: 'anthropic' }, more, always);
      await server.close();
      return asked.length;
    };
    assert.equal(await again(), 1);
    assert.equal(await again(), 1);
    assert.match(
      readFileSync(join(folder.path, 'config', 'policy.toml'), 'utf8'),
      /agent = "telos"\npack = ".*work"/,
    );
    folder.add({ 'work/other/x.md': '' });
    read.input.path = '../../notes.txt';
    assert.equal(await again({ cwd: join(folder.path, 'work', 'other') }), 2, 'another folder asks anew');
  });

  it('does not take a home folder for its working folder', async () => {
    const { server, env } = await providers.anthropic();
    try {
      const home = join(folder.path, 'home');
      const events = await ask(env, { cwd: home, workingRoot: join(home, 'work') });
      const routed = events.find(event => event.type === 'routed');
      assert.equal(routed?.workingDir, join(home, 'work'));
      assert.ok(existsSync(join(home, 'work', 'made.txt')));
    } finally {
      await server.close();
    }
  });
});
