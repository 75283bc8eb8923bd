/** A skill is the same work on every model: the same run through each provider's own wire format, wherever the network cuts it. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import { allowAll } from '../../src/engine/human.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { RunEvent } from '../../src/protocol/run.ts';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { startOpenaiServer } from '../fakes/openaiServer.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const toolCalls = [
  { id: 'call_1', name: 'read_file', input: { path: 'täglich.md' } },
  { id: 'call_2', name: 'write_file', input: { path: 'out/plan.md', content: 'eins\n"zwei" 👋🏽\n' } },
];
const text = ['Grüße', ' 👋🏽, ', 'ich lese.'];
const lastText = ['Fertig', ': plan.md'];

/** `chunkBytes` cuts every answer into pieces of that many bytes. */
const providers: Readonly<
  Record<string, (chunkBytes: number) => Promise<{ server: FakeServer; env: Record<string, string> }>>
> = {
  anthropic: async chunkBytes => {
    const server = await startAnthropicServer({
      turns: [
        { text, toolCalls, chunkBytes },
        { text: lastText, chunkBytes },
      ],
    });
    return { server, env: { ANTHROPIC_API_KEY: 'key-for-tests', ANTHROPIC_BASE_URL: server.url } };
  },
  openai: async chunkBytes =>
    openaiLike(chunkBytes, url => ({ OPENAI_API_KEY: 'key-for-tests', OPENAI_BASE_URL: url })),
  gemini: async chunkBytes =>
    openaiLike(chunkBytes, url => ({ GEMINI_API_KEY: 'key-for-tests', GEMINI_BASE_URL: url })),
  openrouter: async chunkBytes =>
    openaiLike(chunkBytes, url => ({ OPENROUTER_API_KEY: 'key-for-tests', OPENROUTER_BASE_URL: url })),
  ollama: async chunkBytes => openaiLike(chunkBytes, url => ({ OLLAMA_BASE_URL: url })),
};

async function openaiLike(chunkBytes: number, env: (url: string) => Record<string, string>) {
  const server = await startOpenaiServer({
    turns: [
      { text, toolCalls, chunkBytes },
      { text: lastText, chunkBytes },
    ],
  });
  return { server, env: env(server.url) };
}

describe('one skill on every provider', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'skills/kairos/skills/kickoff/SKILL.md':
        '---\ndescription: Plans the day\n---\nRead täglich.md, write out/plan.md.',
      'skills/kairos/agent.toml': 'working_dir = "."',
      'work/täglich.md': 'Aufgaben',
    });
  });
  afterEach(() => folder.remove());

  async function run(provider: string, chunkBytes: number): Promise<readonly unknown[]> {
    const { server, env } = await providers[provider]!(chunkBytes);
    try {
      const config = loadConfig({
        env: {
          ...env,
          TELOS_PROVIDER: provider,
          TELOS_SKILLS_DIR: join(folder.path, 'skills'),
          PATH: process.env['PATH'],
        },
        home: join(folder.path, 'home'),
        cwd: join(folder.path, 'work'),
      });
      rmSync(join(folder.path, 'work/out'), { recursive: true, force: true });
      const events: RunEvent[] = [];
      for await (const event of Telos.open(config).run(
        { text: 'kickoff' },
        allowAll,
        new AbortController().signal,
      ))
        events.push(event);
      assert.equal(readFileSync(join(folder.path, 'work/out/plan.md'), 'utf8'), 'eins\n"zwei" 👋🏽\n');
      return comparable(events);
    } finally {
      await server.close();
    }
  }

  it('gives the same events, whole or cut into single bytes', async function () {
    this.timeout(20_000);
    const wanted = await run('anthropic', 100_000);
    assert.deepEqual(
      wanted.filter(event => Array.isArray(event)).map(event => (event as unknown[])[0]),
      ['run_start', 'routed', 'text', 'tool_start', 'tool_start', 'tool_end', 'tool_end', 'text', 'run_end'],
    );
    for (const provider of Object.keys(providers)) {
      for (const chunkBytes of [100_000, 7, 1]) {
        assert.deepEqual(
          await run(provider, chunkBytes),
          wanted,
          `${provider}, ${chunkBytes} bytes at a time`,
        );
      }
    }
  });
});

/** What must be equal: everything but times, names of models, token counts, and how text was cut. */
function comparable(events: readonly RunEvent[]): unknown[] {
  const result: unknown[][] = [];
  for (const event of events) {
    const last = result.at(-1);
    if (event.type === 'text' && last?.[0] === 'text') last[1] += event.text;
    else if (event.type === 'text') result.push(['text', event.text]);
    else if (event.type === 'routed') result.push(['routed', event.agent, event.skill, event.reason.rule]);
    else if (event.type === 'tool_start') result.push(['tool_start', event.call.name, event.call.input]);
    else if (event.type === 'tool_end')
      result.push(['tool_end', event.name, event.result.isError, event.result.content]);
    else if (event.type === 'run_start') result.push(['run_start', event.text]);
    else if (event.type === 'run_end')
      result.push(['run_end', event.outcome, event.rounds, event.toolCalls, event.messages.length]);
  }
  return result;
}
