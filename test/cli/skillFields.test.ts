/** Each field of a skill that docs/skill-fields.md promises, in a run as a person calls it. */
import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type AnthropicTurn, type FakeServer, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

interface Body {
  model: string;
  system: unknown;
  messages: { role: string; content: unknown }[];
  tools: { name: string }[];
}

const page = readFileSync(new URL('../../docs/skill-fields.md', import.meta.url), 'utf8');

describe('a field of a skill', function () {
  this.timeout(30_000);
  let home: CliHome;
  let server: FakeServer;
  let turns: AnthropicTurn[];
  beforeEach(async () => {
    turns = [];
    server = await startAnthropicServer({ turns: () => turns.shift() ?? { text: ['Moored.'] } });
    home = cliHome({
      'skills/harbour/.claude-plugin/plugin.json': '{"name": "harbour"}',
      'skills/harbour/agents/pilot.md':
        '---\ndescription: Reads charts\ntools: Read, Grep\ndisallowedTools: Grep\nmodel: opus\n---\nPILOT TEXT\n',
    });
  });
  afterEach(async () => {
    await server.close();
    home.remove();
  });
  const skill = (fields: string, body = 'SHIP TEXT $ARGUMENTS'): void =>
    void home.folder.add({
      'skills/harbour/skills/ship/SKILL.md': `---\n${fields}\n---\n${body}\n`,
    });
  const run = async (...words: string[]) => {
    const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
    const { code, stdout, stderr } = await home.run(words, { env });
    return { code, said: stdout + stderr, bodies: server.requests.map(({ body }) => body as Body) };
  };
  const toolsOf = (body: Body | undefined): string[] =>
    (body?.tools ?? []).map(({ name }) => name).filter(name => /file|command|glob|url|directory/.test(name));

  const tests: Record<string, () => Promise<void>> = {
    async description() {
      skill('description: Ships a crate');
      match((await home.run(['list-skills'])).stdout, /ship +Ships a crate/);
    },
    async name() {
      skill('name: sail\ndescription: D');
      const { bodies, said } = await run('/sail a crate');
      match(JSON.stringify(bodies[0]) ?? said, /SHIP TEXT a crate/);
    },
    async triggers() {
      skill('description: D\ntriggers:\n  - heave the anchor');
      match((await home.run(['route', 'heave the anchor'])).stdout, /ship/);
    },
    async 'argument-hint'() {
      skill('description: Ships a crate\nargument-hint: [crate]');
      match((await home.run(['list-skills'])).stdout, /ship +\[crate\] Ships a crate/);
      const listed = JSON.parse((await home.run(['list-skills', '--json'])).stdout) as object[];
      deepEqual(
        listed.flatMap(each => ('argumentHint' in each ? [each.argumentHint] : [])),
        ['[crate]'],
      );
    },
    async arguments() {
      skill('description: D\narguments: [crate, quay]', 'From $quay: $crate.');
      match(JSON.stringify((await run('/ship "two boxes" north')).bodies[0]), /From north: two boxes\./);
    },
    async 'allowed-tools'() {
      skill('description: D\nallowed-tools: Bash(git log:*)');
      deepEqual(JSON.parse((await home.run(['trust', 'harbour', '--json'])).stdout).commands, ['git log *']);
    },
    async 'disallowed-tools'() {
      skill('description: D\ndisallowed-tools: Bash, WebFetch');
      const tools = toolsOf((await run('/ship')).bodies[0]);
      deepEqual(
        [tools.includes('run_command'), tools.includes('fetch_url'), tools.includes('read_file')],
        [false, false, true],
      );
    },
    async model() {
      const modelFor = async (model: string) => {
        skill(`description: D\nmodel: ${model}`);
        const { bodies, said } = await run('/ship');
        return [bodies.at(-1)?.model, /not a model of/.test(said)];
      };
      const [usual] = await modelFor('inherit');
      match(String(usual), /haiku/);
      deepEqual(await modelFor('haiku'), [usual, false]);
      match(String((await modelFor('Opus'))[0]), /^claude-opus-/);
      match(String((await modelFor('sonnet[1m]'))[0]), /^claude-sonnet-/);
      deepEqual(await modelFor('claude-opus-4-6'), ['claude-opus-4-6', false]);
      deepEqual(await modelFor('gpt-5.4'), [usual, true]);
      deepEqual(await modelFor('openai:gpt-5.4'), [usual, false]);
    },
    async 'model: inherit'() {
      const step = { toolCalls: [{ name: 'use_skill', input: { skill: 'harbour:mate', request: 'Look.' } }] };
      const modelOf = async (model: string) => {
        turns = [step, { text: ['Rocks.'] }, { text: ['Done.'] }];
        home.folder.add({
          'skills/harbour/agents/mate.md': `---\ndescription: Helps\n${model}---\nMATE TEXT\n`,
        });
        const { bodies } = await run('/ship');
        return bodies.at(-2)?.model;
      };
      skill('description: D\nmodel: opus');
      match(String(await modelOf('model: inherit\n')), /opus/);
      match(String(await modelOf('')), /opus/);
      match(String(await modelOf('model: haiku\n')), /haiku/);
    },
    async effort() {
      skill('description: D\nmodel: claude-opus-4-6\neffort: high');
      const thinks = JSON.stringify((await run('/ship')).bodies[0]);
      match(thinks, /"effort":"high"|"budget_tokens"/);
      skill('description: D\neffort: enormous');
      match(
        (await run('/ship')).said,
        /effort is "enormous" in the settings of the skill, so it is not used/,
      );
    },
    async max_rounds() {
      skill('description: D\nmax_rounds: 1');
      turns = [{ toolCalls: [{ name: 'list_directory', input: { path: '.' } }] }, { text: ['Two.'] }];
      await run('/ship');
      equal(server.requests.length, 1);
    },
    async 'context: fork'() {
      skill('description: D\ncontext: fork');
      home.folder.add({ 'skills/harbour/skills/talk/SKILL.md': '---\ndescription: T\n---\nTALK TEXT\n' });
      turns = [{ text: ['Said before.'] }, { text: ['Moored at nine.'] }, { text: ['Yes.'] }];
      await run('/talk');
      const [, apart] = (await run('--continue', '/ship a crate')).bodies;
      match(JSON.stringify(apart), /SHIP TEXT a crate/);
      doesNotMatch(JSON.stringify(apart), /Said before|TALK TEXT/);
      const { bodies } = await run('--continue', 'and then?');
      const after = JSON.stringify(bodies[2]?.messages);
      match(after, /TALK TEXT.*Said before.*ship a crate.*Moored at nine.*and then\?/);
      doesNotMatch(after, /SHIP TEXT/);
    },
    async agent() {
      skill('description: D\ncontext: fork\nagent: pilot');
      const { bodies } = await run('/ship');
      match(JSON.stringify(bodies[0]?.system), /PILOT TEXT/);
      match(JSON.stringify(bodies[0]?.messages), /SHIP TEXT/);
      match(String(bodies[0]?.model), /opus/);
      deepEqual(toolsOf(bodies[0]), ['read_file']);
      skill('description: D\ncontext: fork\nagent: Explore\nmodel: haiku');
      const explored = (await run('/ship')).bodies.at(-1);
      equal(
        toolsOf(explored).some(name => /write|edit|command/.test(name)),
        false,
      );
      match(String(explored?.model), /haiku/);
      skill('description: D\ncontext: fork\nagent: nobody');
      match((await run('/ship')).said, /Its agent nobody is unknown\./);
    },
    async 'disable-model-invocation'() {
      skill('description: Moors a boat at the quay\ndisable-model-invocation: true');
      equal((await home.run(['route', 'moor a boat at the quay'])).stdout.includes('Routes to'), false);
      match(JSON.stringify((await run('/ship')).bodies[0]), /SHIP TEXT/);
    },
    async 'user-invocable'() {
      skill('description: Moors a boat at the quay\nuser-invocable: false');
      match((await home.run(['route', 'moors a boat at the quay'])).stdout, /ship/);
    },
    async hooks() {
      skill('description: D\nhooks:\n  Stop:\n    - hooks: [{ type: command, command: ./moor.sh }]');
      match((await home.run(['hooks'])).stdout, /harbour:ship +Stop .*\.\/moor\.sh/);
    },
    async tools() {
      turns = [
        { toolCalls: [{ name: 'use_skill', input: { skill: 'harbour:pilot', request: 'Look.' } }] },
        { text: ['Rocks.'] },
      ];
      skill('description: D');
      deepEqual(toolsOf((await run('/ship')).bodies[1]), ['read_file']);
    },
    async paths() {
      skill('description: D\npaths: "**/*.ts"');
      match((await home.run(['lint', '--verbose'])).stdout, /`paths` is not used here\./);
    },
  };

  const fields = [...page.matchAll(/^\| `([^`]+)`/gm)].map(([, field = '']) => field);
  it('has a test for each row of the table, and a row for each test', () =>
    deepEqual(fields.toSorted(), Object.keys(tests).sort()));
  for (const [field, test] of Object.entries(tests)) it(`${field} means what the table says`, test);
});
