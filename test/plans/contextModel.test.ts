/** Questions about a project over the wire of real providers: what is sent, what is kept with Gemini, and what never leaves. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type Config, loadConfig } from '../../src/engine/config.ts';
import { logPath, readLog } from '../../src/engine/records/logFile.ts';
import { ProjectContext } from '../../src/plans/contextAnswer.ts';
import { contextModel } from '../../src/plans/contextModel.ts';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { listen, type ReceivedRequest, sendJson } from '../fakes/loopback.ts';
import { startOpenaiServer } from '../fakes/openaiServer.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const { signal } = new AbortController();
const key = 'test-key-0123456789abcdef';

describe('context over the wire', () => {
  let folder: TempFolder;
  let config: (env: Record<string, string>) => Config;
  beforeEach(() => {
    folder = tempFolder({ 'work/about.md': 'The bakery opens at six.', 'work/menu.pdf': '%PDF-1.4 menu' });
    config = env =>
      loadConfig({
        env: { TELOS_DATA_DIR: join(folder.path, 'data'), OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1', ...env },
        home: folder.path,
        cwd: join(folder.path, 'work'),
      });
  });
  afterEach(() => folder.remove());

  const open = (settings: Config): ProjectContext =>
    new ProjectContext([join(folder.path, 'work')], () => contextModel(settings));

  it('sends documents as blocks before the question, without secrets, and counts the cost', async () => {
    const server = await startAnthropicServer({ turns: [{ text: ['At six.'] }] });
    try {
      folder.add({ 'work/leak.md': `Our key is ${key}.`, 'work/.env': 'SECRET=very-secret-value' });
      const settings = config({ ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: server.url });
      const context = open(settings);
      assert.equal(
        await context.answerQuestion('When does the bakery open, and what is its key?', signal),
        'At six.',
      );
      const { body } = server.requests[0] ?? {};
      const [pdf, material, question] = body.messages[0].content;
      assert.deepEqual(
        [pdf.type, pdf.title, pdf.source.media_type],
        ['document', 'menu.pdf', 'application/pdf'],
      );
      assert.match(material.text, /opens at six/);
      assert.match(question.text, /When does/);
      assert.doesNotMatch(JSON.stringify(body), new RegExp(`${key}|very-secret-value`));
      const { records } = await readLog(logPath(settings.dataDir));
      const written = JSON.stringify(records);
      assert.match(written, /"door":"context"/);
      assert.doesNotMatch(written, /At six|bakery/);
    } finally {
      await server.close();
    }
  });

  it('sends them as files to servers that speak like OpenAI, and none to a model on this machine', async () => {
    const server = await startOpenaiServer({ turns: [{ text: ['At six.'] }], other: () => ({ data: [] }) });
    try {
      await open(config({ OPENAI_API_KEY: key, OPENAI_BASE_URL: server.url })).answerQuestion(
        'When?',
        signal,
      );
      const [file] = server.requests[0]?.body.messages.at(-1).content ?? [];
      assert.equal(file.type, 'file');
      assert.equal(file.file.filename, 'menu.pdf');
      assert.match(file.file.file_data, /^data:application\/pdf;base64,/);
      await open(config({ TELOS_PROVIDER: 'ollama', OLLAMA_BASE_URL: server.url })).answerQuestion(
        'When?',
        signal,
      );
      const sent = JSON.stringify(server.requests[1]?.body);
      assert.doesNotMatch(sent, /"file"/);
      assert.match(sent, /Not read, .*menu\.pdf/);
    } finally {
      await server.close();
    }
  });

  it('stops at the budget before it asks', async () => {
    const server = await startAnthropicServer({ turns: [{ text: ['x'] }] });
    try {
      const settings = config({
        ANTHROPIC_API_KEY: key,
        ANTHROPIC_BASE_URL: server.url,
        TELOS_MAX_TOKENS_PER_DAY: '0',
      });
      await assert.rejects(open(settings).answerQuestion('When?', signal), /limit|budget/i);
      assert.equal(server.requests.length, 0);
    } finally {
      await server.close();
    }
  });

  describe('with Gemini', () => {
    let requests: ReceivedRequest[];
    let server: Awaited<ReturnType<typeof listen>>;
    const paths = (): string[] => requests.map(({ method, path }) => `${method} ${path}`);
    beforeEach(async () => {
      requests = [];
      server = await listen(async (request, response) => {
        requests.push(request);
        if (request.path.endsWith('/chat/completions')) return sendJson(response, 500, {});
        if (request.method === 'DELETE') return sendJson(response, 200, {});
        if (request.path === '/v1beta/cachedContents')
          return sendJson(response, 200, { name: 'cachedContents/abc123' });
        sendJson(response, 200, {
          candidates: [{ content: { parts: [{ text: 'At ' }, { text: 'six.' }] } }],
          usageMetadata: { promptTokenCount: 1200, cachedContentTokenCount: 1100, candidatesTokenCount: 3 },
        });
      });
      folder.add({ 'work/long.md': 'Bread is baked every day. '.repeat(400) });
    });
    afterEach(() => server.close());
    const gemini = (): Config =>
      config({
        GEMINI_API_KEY: key,
        GEMINI_BASE_URL: `${server.address}/v1beta/openai`,
        TELOS_MODEL: 'gemini-2.5-flash',
      });

    it('keeps the whole project there once, asks it by name, and removes it at the end', async () => {
      const settings = gemini();
      const context = open(settings);
      assert.equal(await context.answerQuestion('When does it open?', signal), 'At six.');
      await context.answerQuestion('Which bread is sold?', signal);
      await context.close();
      assert.deepEqual(paths(), [
        'POST /v1beta/cachedContents',
        'POST /v1beta/models/gemini-2.5-flash:generateContent',
        'POST /v1beta/models/gemini-2.5-flash:generateContent',
        'DELETE /v1beta/cachedContents/abc123',
      ]);
      assert.match(requests[0]?.body.contents[0].parts[0].text, /opens at six[\s\S]*Bread is baked/);
      const asked = JSON.stringify(requests[1]?.body);
      assert.match(asked, /cachedContents\/abc123/);
      assert.doesNotMatch(asked, /Bread is baked/);
      assert.ok(
        requests.every(({ headers, path }) => headers['x-goog-api-key'] === key && !path.includes(key)),
      );
      const { records } = await readLog(logPath(settings.dataDir));
      assert.match(JSON.stringify(records), /1100/);
    });

    it('asks as usual where it keeps nothing, and does not try again', async () => {
      const usual = await startOpenaiServer({ turns: [{ text: ['At six.'] }], other: () => undefined });
      try {
        // The address of the chat is that of the cache with /openai behind it, so one server has to be both.
        const context = open(config({ GEMINI_API_KEY: key, GEMINI_BASE_URL: usual.url }));
        assert.equal(await context.answerQuestion('When does it open?', signal), 'At six.');
        assert.equal(await context.answerQuestion('Which bread is sold?', signal), 'At six.');
        await context.close();
        assert.equal(usual.requests.length, 2);
        assert.deepEqual(
          usual.others.map(({ path }) => path),
          ['/v1/cachedContents'],
        );
      } finally {
        await usual.close();
      }
    });
  });
});
