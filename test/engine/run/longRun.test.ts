/** A run of 200 rounds, many times larger than the window, finishes in each wire format and stays in the cache; one that cannot begin says so. */
import assert from 'node:assert/strict';
import { loadConfig } from '../../../src/engine/config.ts';
import { allowAll } from '../../../src/engine/human.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import type { FakeServer, ReceivedRequest } from '../../fakes/loopback.ts';
import { startMakerServer } from '../../fakes/makerServer.ts';
import { startOpenaiServer } from '../../fakes/openaiServer.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const rounds = 200;

/** What a server caches of a request is what comes first in it, without the marks that say so. */
const written = ({ body }: ReceivedRequest): string => {
  const { tools, system, systemInstruction, instructions, messages, input, contents } = body;
  const parts = [tools, system ?? systemInstruction ?? instructions, messages ?? input ?? contents];
  return JSON.stringify(parts, (name, value) => (name === 'cache_control' ? undefined : value));
};

function sharedStart(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}

/** Returns the share of what a server has read that it had read before. */
function cachedShare(requests: readonly ReceivedRequest[]): number {
  let before = '';
  let [shared, all] = [0, 0];
  for (const request of requests) {
    const text = written(request);
    shared += sharedStart(before, text);
    all += text.length;
    before = text;
  }
  return shared / all;
}

/** Returns what the model does next: one call of many, a summary where it is asked for one, or its last words. */
function answers(): (request: ReceivedRequest) => { call?: ReturnType<typeof call>; text?: string[] } {
  let count = 0;
  return request => {
    const isAside = /answer with the summary/i.test(written(request).slice(-500));
    if (isAside) return { text: [`${count} files were read so far.`] };
    return count < rounds ? { call: call(count++) } : { text: ['All done.'] };
  };
}

const call = (index: number) => [
  { id: `call_${index}`, name: 'read_file', input: { path: `f${index}.txt` } },
];
const tokensIn = (request: ReceivedRequest): number => Math.round(written(request).length / 4);

interface Format {
  env: Record<string, string>;
  variable: string;
  start(answer: ReturnType<typeof answers>): Promise<FakeServer>;
}

/** Returns what starts a server in the own format of a maker of models. `usage` has the names of its counts. */
const maker =
  (dialect: 'responses' | 'gemini', usage: (input: number) => Record<string, number>): Format['start'] =>
  answer =>
    startMakerServer({
      dialect,
      turns: request => {
        const { call: next, text } = answer(request);
        if (!next) return { text: text ?? [] };
        return {
          thoughts: ['let me see'],
          seal: `seal ${next[0]?.id}`,
          toolCalls: next,
          usage: usage(tokensIn(request)),
        };
      },
    });

const formats: Readonly<Record<string, Format>> = {
  'Anthropic’s': {
    env: { ANTHROPIC_API_KEY: 'key-for-tests', TELOS_MODEL: 'claude-sonnet-5-5' },
    variable: 'ANTHROPIC_BASE_URL',
    start: answer =>
      startAnthropicServer({
        turns: request => {
          const { call: next, text } = answer(request);
          if (!next) return { text: text ?? [] };
          return {
            thinking: [{ thinking: 'let me see', signature: `seal ${next[0]?.id}` }],
            toolCalls: next,
            usage: { input_tokens: tokensIn(request) },
          };
        },
      }),
  },
  'chat completions': {
    env: { TELOS_PROVIDER: 'openai', TELOS_MODEL: 'm' },
    variable: 'OPENAI_BASE_URL',
    start: answer =>
      startOpenaiServer({
        turns: request => {
          const { call: next, text } = answer(request);
          if (!next) return { text: text ?? [] };
          return {
            toolCalls: next,
            usage: { prompt_tokens: tokensIn(request), completion_tokens: 20 },
          };
        },
      }),
  },
  'OpenAI’s': {
    env: { TELOS_PROVIDER: 'openai', TELOS_PROTOCOL: 'native', TELOS_MODEL: 'gpt-6-luna' },
    variable: 'OPENAI_BASE_URL',
    start: maker('responses', input => ({ input_tokens: input, output_tokens: 20 })),
  },
  'Gemini’s': {
    env: { GEMINI_API_KEY: 'key-for-tests', TELOS_PROTOCOL: 'native', TELOS_MODEL: 'gemini-3.8-flash' },
    variable: 'GEMINI_BASE_URL',
    start: maker('gemini', input => ({ promptTokenCount: input, candidatesTokenCount: 20 })),
  },
};

describe('a run and the window of its model', () => {
  let folder: TempFolder;
  before(() => {
    const files = Array.from({ length: rounds }, (_, at) => [`work/f${at}.txt`, `file ${at} `.repeat(300)]);
    folder = tempFolder({
      'skills/kairos/skills/read/SKILL.md': '---\ndescription: Reads files\n---\nRead all files.',
      'skills/kairos/skills/long/SKILL.md': `---\ndescription: Long\n---\n${'Read on and on. '.repeat(4_000)}`,
      'skills/kairos/agent.toml': 'working_dir = "."',
      ...Object.fromEntries(files),
    });
  });
  after(() => folder.remove());

  for (const [name, { env, variable, start }] of Object.entries(formats))
    it(`finishes after 200 rounds in the format of ${name}`, async function () {
      this.timeout(30_000);
      const server = await start(answers());
      try {
        const config = loadConfig({
          env: {
            ...env,
            [variable]: server.url,
            TELOS_SKILLS_DIR: `${folder.path}/skills`,
            TELOS_CONTEXT_WINDOW: '30000',
            TELOS_MAX_ROUNDS: '250',
            PATH: process.env['PATH'],
          },
          home: `${folder.path}/home`,
          cwd: `${folder.path}/work`,
        });
        const outcomes: unknown[] = [];
        for await (const event of Telos.open(config).run(
          { text: '/read' },
          allowAll,
          new AbortController().signal,
        ))
          if (event.type === 'run_end') outcomes.push([event.outcome, event.error]);
        assert.deepEqual(outcomes, [['completed', undefined]]);
        assert.ok(server.requests.length > rounds);
        const longest = Math.max(...server.requests.map(tokensIn));
        assert.ok(longest < 30_000, `${longest} tokens were sent at once`);
        const share = cachedShare(server.requests);
        assert.ok(share >= 0.89, `${share.toFixed(3)} of what was sent was there before`);
      } finally {
        await server.close();
      }
    });

  it('does not begin where the window is smaller than what it must be told, and says so', async () => {
    const server = await startOpenaiServer({ turns: [{ text: ['never'] }] });
    try {
      const config = loadConfig({
        env: {
          TELOS_PROVIDER: 'openai',
          TELOS_MODEL: 'm',
          OPENAI_BASE_URL: server.url,
          TELOS_SKILLS_DIR: `${folder.path}/skills`,
          TELOS_CONTEXT_WINDOW: '8000',
          PATH: process.env['PATH'],
        },
        home: `${folder.path}/home`,
        cwd: `${folder.path}/work`,
      });
      const ends: unknown[] = [];
      const run = Telos.open(config).run({ text: '/long' }, allowAll, new AbortController().signal);
      for await (const event of run) if (event.type === 'run_end') ends.push(event.error?.message);
      assert.match(
        ends.join(),
        /^The instructions, tools and request of this run have about [\d,]+ tokens, and m takes 8,000 in all\. Choose a model with a larger context/,
      );
      assert.equal(server.requests.length, 0);
    } finally {
      await server.close();
    }
  });
});
