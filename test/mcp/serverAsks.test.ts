/** What a server asks a person in the middle of a call: forms, addresses, and what is refused before anybody is asked. */
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/engine/config.ts';
import { Telos } from '../../src/engine/telos.ts';
import { answers, readForm, readTyped, secretAskedFor } from '../../src/protocol/form.ts';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type RunEvent,
  skipped,
} from '../../src/protocol/run.ts';
import { calls, done, type ScriptedTurn, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const fake = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const no: ApprovalDecision = { allow: false, reason: 'No.' };
const form = (properties: object, more: object = {}) => ({
  message: 'Where should the beds go?',
  requestedSchema: { type: 'object', properties, ...more },
});

describe('what a server asks', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/mcp.json': JSON.stringify({
        mcpServers: { beds: { command: process.execPath, args: [fake, 'asks'] } },
      }),
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows the beds\n---\nSow.',
    });
  });
  afterEach(() => folder.remove());

  /** Runs a call that asks, and returns the server's answers, the questions that came, and the notices. */
  async function ask(
    questions: readonly object[],
    answer: (request: ApprovalRequest, signal: AbortSignal) => ApprovalDecision | Promise<ApprovalDecision>,
    opened?: string[],
    {
      said = [],
      more = {},
      leaves,
    }: {
      said?: readonly ScriptedTurn[];
      more?: Readonly<Record<string, string>>;
      /** How the server leaves before an answer. */
      leaves?: 'answers' | 'cancels' | 'exits';
    } = {},
  ) {
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_SKILLS_DIR: join(folder.path, 'skills'),
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        TELOS_PROVIDER: 'scripted',
        ...more,
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'work'),
    });
    const provider = scriptedProvider([
      [calls('1', 'ask', { questions, ...(leaves && { leaves }) }), done('tool_use')],
      ...said,
      [says('Done.'), done()],
    ]);
    const openUrl = async (url: string): Promise<boolean> => opened?.push(url) !== undefined;
    const telos = Telos.open(config, {
      providers: { scripted: { model: async () => 'script', create: async () => provider } },
      ...(opened && { openUrl }),
    });
    await telos.acceptCard(await telos.agentCard('garden'));
    const asked: ApprovalRequest[] = [];
    const human = {
      approve: async (request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision> => {
        if (request.tool === 'ask') return { allow: true, scope: 'once' };
        asked.push(request);
        return answer(request, signal);
      },
      ask: async () => [],
    };
    const events: RunEvent[] = [];
    const request = { text: 'sow', skill: { agent: 'garden', skill: 'sow' } };
    for await (const event of telos.run(request, human, new AbortController().signal)) events.push(event);
    const result = events.find(event => event.type === 'tool_end');
    // Where the agent works is the first line of each.
    const [, ...notices] = events.flatMap(event => (event.type === 'notice' ? [event.message] : []));
    const content = result?.type === 'tool_end' ? result.result.content : '';
    const answers = content.startsWith('[') ? JSON.parse(content) : content;
    return { answers, asked, notices, events, requests: provider.requests };
  }

  it('hands what a person fills in to the server, and says who asks', async () => {
    const fields = {
      place: { type: 'string', title: 'Place', minLength: 2 },
      count: { type: 'integer', minimum: 1, maximum: 9, default: 4 },
      raised: { type: 'boolean', default: true },
      soil: {
        type: 'string',
        oneOf: [
          { const: 's', title: 'Sand' },
          { const: 'c', title: 'Clay' },
        ],
      },
    };
    const content = { place: 'South', count: 4, raised: true, soil: 'c' };
    const { answers: got, asked } = await ask([form(fields, { required: ['place'] })], () => ({
      allow: true,
      scope: 'once',
      content,
    }));
    deepEqual(got, [{ action: 'accept', content }]);
    equal(asked[0]?.subject, 'Where should the beds go?');
    match(asked[0]?.reason ?? '', /MCP server 'beds' of agent garden asks this/);
    deepEqual(
      asked[0]?.form?.map(({ kind, title, isRequired }) => [kind, title, isRequired]),
      [
        ['text', 'Place', true],
        ['number', 'count', false],
        ['switch', 'raised', false],
        ['choice', 'soil', false],
      ],
    );
  });

  it('says that a form was declined where a yes fills in nothing, as that of --yes', async () => {
    const { answers: got, notices } = await ask([form({ place: { type: 'string' } })], () => ({
      allow: true,
      scope: 'once',
    }));
    deepEqual(got, [{ action: 'decline' }]);
    deepEqual(notices, ["The form of the MCP server 'beds' was declined, since it was not filled in."]);
  });

  it('sends nothing that does not fit the form, and nothing after a no', async () => {
    const one = form({ count: { type: 'integer', minimum: 1 } });
    const wrong = await ask([one], () => ({ allow: true, scope: 'once', content: { count: 0 } }));
    deepEqual(wrong.answers, [{ action: 'decline' }]);
    const more = await ask([one], () => ({ allow: true, scope: 'once', content: { count: 1, extra: 'x' } }));
    deepEqual(more.answers, [{ action: 'decline' }]);
    deepEqual((await ask([one], () => no)).answers, [{ action: 'decline' }]);
    deepEqual((await ask([one], () => ({ allow: true, scope: 'once' }))).answers, [{ action: 'decline' }]);
  });

  it('is told that a form was left open, which is no decline', async () => {
    const { answers: got } = await ask([form({ count: { type: 'integer' } })], () => skipped);
    deepEqual(got, [{ action: 'cancel' }]);
  });

  it('refuses a form that asks for a password or a key, without asking anybody', async () => {
    const {
      answers: got,
      asked,
      notices,
    } = await ask(
      [
        form({ apiKey: { type: 'string' } }),
        form({ name: { type: 'string', description: 'Your pass\u200bword' } }),
      ],
      () => ({ allow: true, scope: 'once', content: { apiKey: 'k' } }),
    );
    equal(asked.length, 0);
    match(got[0].error, /asks for a password or a key/);
    ok(notices.some(notice => /MCP server 'beds' was refused: its field “apiKey”/.test(notice)));
  });

  it('opens an address after a yes to the whole of it, and none that is not safe', async () => {
    const url = 'https://garden.example/pay?bed=1&n=2#top';
    const opened: string[] = [];
    const page = { mode: 'url', message: 'Pay here', elicitationId: 'e1', url };
    const { answers: got, asked } = await ask([page], () => ({ allow: true, scope: 'once' }), opened);
    deepEqual(got, [{ action: 'accept' }]);
    deepEqual(opened, [url]);
    equal(asked[0]?.subject, url);
    match(asked[0]?.reason ?? '', /It leads to garden\.example\. The server says: Pay here/);
    const unsafe = ['http://garden.example/', 'https://you@garden.example/', 'file:///etc/passwd'];
    for (const each of unsafe) {
      const refused = await ask([{ ...page, url: each }], () => ({ allow: true, scope: 'once' }), opened);
      equal(refused.asked.length, 0, each);
      ok(
        refused.notices.some(notice => /not safe/.test(notice)),
        `${each}: ${JSON.stringify(refused)}`,
      );
    }
    equal(opened.length, 1);
  });

  it('asks no person without end: a few refusals, or many questions, are enough', async () => {
    const many = Array.from({ length: 40 }, () => form({ ok: { type: 'boolean' } }));
    const refused = await ask(many, () => no);
    equal(refused.asked.length, 2);
    equal(refused.answers.length, 40);
    const patient = await ask(many, () => ({ allow: true, scope: 'once', content: { ok: true } }));
    equal(patient.asked.length, 10);
    deepEqual(patient.answers.at(-1), { action: 'decline' });
    equal(patient.notices.filter(notice => /asks too much/.test(notice)).length, 1);
  });

  const question = (text: string, more: object = {}) => ({
    messages: [{ role: 'user', content: { type: 'text', text } }],
    maxTokens: 100,
    ...more,
  });

  it('has the model answer after a yes to the whole text, without tools and beside the conversation', async () => {
    const long = `Which bed?${' Tell me more.'.repeat(300)}\u001b[2J`;
    const usage = { inputTokens: 7, outputTokens: 3, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const said = [[says('The south bed.'), { ...done(), usage } as const]];
    const yes = () => ({ allow: true, scope: 'once' }) as const;
    const asks = [question(long, { systemPrompt: 'You know beds.', includeContext: 'allServers' })];
    const { answers: got, asked, requests, events, notices } = await ask(asks, yes, undefined, { said });
    deepEqual(got, [
      {
        role: 'assistant',
        model: 'script',
        stopReason: 'endTurn',
        content: { type: 'text', text: 'The south bed.' },
      },
    ]);
    equal(asked[0]?.subject, `[system]\nYou know beds.\n\n[user]\n${long}`);
    deepEqual([asked[0]?.rule, asked[0]?.showsWhole, asked[0]?.scopes], ['mcp.sampling', true, ['once']]);
    match(asked[0]?.reason ?? '', /'beds' of agent garden asks script this .* up to 100 tokens/);
    deepEqual(requests[1], {
      messages: [{ role: 'user', content: long }],
      tools: [],
      system: 'You know beds.',
    });
    ok(events.some(event => event.type === 'usage' && event.usage.inputTokens === 7));
    match(notices.join('\n'), /script answered the MCP server 'beds': The south bed\./);
  });

  it('asks no model after a no, without a limit, or for what is not text alone', async () => {
    const many = Array.from({ length: 40 }, () => question('And?'));
    const refused = await ask(many, () => no);
    equal(refused.asked.length, 2);
    equal(refused.requests.length, 2);
    match(refused.answers[0].error, /rejected/);
    const patient = await ask(many, () => ({ allow: true, scope: 'once' }), undefined, {
      said: Array.from({ length: 10 }, () => [says('Yes.'), done()]),
    });
    equal(patient.asked.length, 10);
    equal(patient.requests.length, 12);
    const wrong = [
      question('x'.repeat(8_001)),
      question('x', { tools: [{ name: 'run', inputSchema: { type: 'object' } }] }),
    ];
    const told = await ask(wrong, () => ({ allow: true, scope: 'once' }));
    equal(told.asked.length, 0);
    match(told.notices.join('\n'), /too long to be looked through[\s\S]*wants tools/);
    const words = await ask(
      [
        question('x', { messages: [{ role: 'assistant', content: { type: 'text', text: 'I may.' } }] }),
        question('x', {
          messages: [{ role: 'user', content: { type: 'image', data: 'AAAA', mimeType: 'image/png' } }],
        }),
      ],
      () => ({ allow: true, scope: 'once' }),
    );
    equal(words.asked.length, 0);
    match(words.notices.join('\n'), /begin and end with a question[\s\S]*only text/);
  });

  it('counts what a server asks of the model in the budget of the run, and shows and sends no secret', async () => {
    const secret = 'sk-ant-0123456789abcdef';
    const usage = { inputTokens: 90, outputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const said = [[says(`It is ${secret}.`), { ...done(), usage } as const]];
    const more = { TELOS_MAX_TOKENS: '100', ANTHROPIC_API_KEY: secret };
    const asks = [question(`Is it ${secret}?`), question('And now?')];
    const {
      answers: got,
      asked,
      requests,
      events,
      notices,
    } = await ask(asks, () => ({ allow: true, scope: 'once' }), undefined, { said, more });
    match(got[0].content.text, /^It is \[redacted\]/);
    ok(!JSON.stringify([asked, requests, got]).includes(secret));
    match(got[1].error, /did not answer/);
    match(notices.join('\n'), /'beds' was not answered: .*100/);
    const end = events.at(-1);
    equal(end?.type === 'run_end' && end.outcome, 'budget');
  });

  for (const leaves of ['answers', 'cancels', 'exits'] as const) {
    it(`takes the question back when the server ${leaves} before the answer, and asks no model for a late yes`, async () => {
      const messages = [{ role: 'user', content: { type: 'text', text: 'Which bed?' } }];
      for (const question of [form({ place: { type: 'string' } }), { messages, maxTokens: 20 }]) {
        let answerLate = (_answer: ApprovalDecision): void => undefined;
        const late = new Promise<ApprovalDecision>(resolve => {
          answerLate = resolve;
        });
        const signals: AbortSignal[] = [];
        // A frontend that does not listen to the signal holds up nothing.
        const { events, requests } = await ask(
          [question],
          (_request, signal) => {
            signals.push(signal);
            return late;
          },
          undefined,
          { leaves, said: [[says('Done.'), done()]] },
        );
        equal(signals.length, 1);
        ok(signals[0]?.reason instanceof Error, 'the signal has aborted');
        const order = events.flatMap(({ type }) =>
          type === 'approval_response' || type === 'tool_end' || type === 'run_end' ? [type] : [],
        );
        deepEqual(order, ['approval_response', 'approval_response', 'tool_end', 'run_end']);
        answerLate({ allow: true, scope: 'once', content: { place: 'South' } });
        await wait(50);
        equal(requests.length, 2);
      }
    });
  }

  it('gives a person time: the limit of the call stands still meanwhile', async () => {
    const { answers: got } = await ask([form({ ok: { type: 'boolean' } })], async () => {
      await wait(300);
      return { allow: true, scope: 'once', content: { ok: false } };
    });
    deepEqual(got, [{ action: 'accept', content: { ok: false } }]);
  });

  it('reads every kind of field, and no form that is too large or that it does not know', () => {
    const read = (properties: object) => readForm(form(properties));
    const many = Object.fromEntries(Array.from({ length: 31 }, (_, at) => [`f${at}`, { type: 'string' }]));
    for (const wrong of [
      many,
      { a: { type: 'object' } },
      { a: { type: 'array', items: { type: 'string' } } },
      { a: { type: 'string', enum: ['x', 'x'] } },
      { a: { type: 'string', enum: [] } },
      { a: { type: 'string', oneOf: [{ const: 1 }] } },
    ])
      equal(typeof read(wrong), 'string', JSON.stringify(wrong).slice(0, 80));
    equal(typeof readForm({ ...form({}), message: 'x'.repeat(5000) }), 'string');
    const known = read({
      list: {
        type: 'array',
        items: { anyOf: [{ const: 'a', title: 'A' }, { const: 'b' }] },
        default: ['b'],
        minItems: 1,
      },
      old: { type: 'string', enum: ['x', 'y'], enumNames: ['Ex', 'Why'], default: 'y' },
      mail: { type: 'string', format: 'email', default: 'not one' },
    });
    ok(typeof known !== 'string');
    deepEqual(
      known.fields.map(field => [field.kind, field.initial]),
      [
        ['choices', ['b']],
        ['choice', 'y'],
        ['text', undefined],
      ],
    );
    ok(!answers(known.fields, { list: ['c'] }));
    ok(answers(known.fields, { list: ['a'], mail: 'a@b.example' }));
  });

  it('checks what is typed', () => {
    const field = (schema: object) => {
      const read = readForm(form({ a: schema }, { required: ['a'] }));
      ok(typeof read !== 'string');
      return read.fields[0]!;
    };
    const cases: [object, string | boolean | string[], boolean][] = [
      [{ type: 'integer' }, '4', true],
      [{ type: 'integer' }, '4.5', false],
      [{ type: 'number', minimum: 0, maximum: 1 }, '0.5', true],
      [{ type: 'number', maximum: 1 }, '1.5', false],
      [{ type: 'number' }, 'four', false],
      [{ type: 'string', minLength: 3 }, 'ab', false],
      [{ type: 'string', maxLength: 2 }, '\u{1f331}\u{1f331}', true],
      [{ type: 'string', format: 'date' }, '2026-02-30', false],
      [{ type: 'string', format: 'date' }, '2026-02-28', true],
      [{ type: 'string', format: 'date-time' }, '2026-02-28T08:00:00Z', true],
      [{ type: 'string', format: 'uri' }, 'no address', false],
      [{ type: 'string', format: 'email' }, 'a@b.example', true],
      [{ type: 'string' }, '', false],
      [{ type: 'boolean' }, false, true],
    ];
    for (const [schema, typed, isFine] of cases)
      equal(
        readTyped(field(schema), typed).problem === undefined,
        isFine,
        `${JSON.stringify(schema)} ${typed}`,
      );
  });

  it('knows what a form must not ask for, and does not take an honest one for it', () => {
    const secret = (properties: object, message = 'Please say') => {
      const read = readForm({ message, requestedSchema: { type: 'object', properties } });
      return typeof read === 'string' ? undefined : secretAskedFor(message, read.fields);
    };
    const text = { type: 'string' };
    for (const name of [
      'password',
      'userPassword',
      'api_key',
      'accessToken',
      'Passwort',
      'private-key',
      'CVV',
    ])
      ok(secret({ [name]: text }), name);
    ok(secret({ value: { ...text, title: 'Your API key' } }));
    ok(secret({ value: text }, 'Enter your password'));
    ok(secret({ pin: { type: 'integer' } }));
    for (const name of ['name', 'key', 'maxTokens', 'passenger', 'keyboard', 'compass'])
      equal(secret({ [name]: text }), undefined, name);
    equal(secret({ remember: { type: 'boolean' } }, 'Remember the password?'), undefined);
  });
});
