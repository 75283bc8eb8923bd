/** What the model is sent when a conversation fills its context: old results left out, a summary, and everything kept. */
import assert from 'node:assert/strict';
import { loadConfig } from '../../../src/engine/config.ts';
import { PromptTooLong, TelosError } from '../../../src/engine/core/errors.ts';
import { addText, blocksOf } from '../../../src/engine/core/messages.ts';
import type { Budget, CompletionRequest, Provider, StreamEvent } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { RunMemory } from '../../../src/engine/policy/decision.ts';
import { changeContext, compact } from '../../../src/engine/run/compact.ts';
import { ContextMeter } from '../../../src/engine/run/contextMeter.ts';
import { sentMessages } from '../../../src/engine/run/contextView.ts';
import { newRun } from '../../../src/engine/run/request.ts';
import type { Tool } from '../../../src/engine/tools/tool.ts';
import type { Message, RunEvent } from '../../../src/protocol/run.ts';
import { loopRun } from '../../fakes/loopRun.ts';
import { calls, done, says } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { seeded } from '../../faults/figure.ts';

/** Compares without printing a whole prompt. */
const has = (text: string, what: RegExp): void => assert.ok(what.test(text), String(what));

const textOf = (messages: readonly Message[]): string => JSON.stringify(messages);

describe('the context of a model', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({ 'work/.k': '' });
  });
  afterEach(() => folder.remove());

  /** A model that reads a page in each round, then answers. `summary` answers the question for one. */
  function reader(
    rounds: number,
    summary: (request: CompletionRequest) => StreamEvent[],
    maximum = Number.POSITIVE_INFINITY,
  ): Provider & { requests: CompletionRequest[] } {
    const requests: CompletionRequest[] = [];
    let asked = 0;
    return {
      name: 'scripted',
      model: 'script',
      requests,
      async *streamCompletion(request) {
        requests.push(structuredClone({ ...request }));
        await Promise.resolve();
        const tokens = Math.ceil(JSON.stringify(request).length / 4);
        if (tokens > maximum) throw new PromptTooLong('provider', 'prompt is too long');
        const usage = { inputTokens: tokens, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };
        if (request.isAside) {
          for (const event of summary(request)) yield event.type === 'done' ? { ...event, usage } : event;
          return;
        }
        asked++;
        if (asked > rounds) yield says('all read');
        else yield calls(`c${asked}`, 'read_file', { path: `p${asked}` });
        yield { type: 'done', stopReason: asked > rounds ? 'end_turn' : 'tool_use', usage };
      },
    };
  }

  const pages = (size: number): Tool => ({
    definition: {
      name: 'read_file',
      description: '',
      inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
    },
    access: 'read',
    execute: async ({ path }) => ({
      content: `begin ${path} ${'x'.repeat(size)} end ${path}`,
      isError: false,
    }),
  });

  async function run(
    provider: Provider,
    {
      size = 8_000,
      window,
      before = [],
      secrets = [] as string[],
      budget,
      maxRounds = 400,
      mail,
    }: Partial<Options> = {},
  ): Promise<{ events: RunEvent[]; end: Extract<RunEvent, { type: 'run_end' }> }> {
    const path = folder.path;
    const folders = { workingDir: `${path}/work`, packDir: path, skillDir: path, commandDir: path };
    const config = loadConfig({ env: {}, home: path, cwd: path });
    const run = newRun({ text: 'read' }, denyAll, config);
    run.redact.learn(secrets);
    run.messages.push(...before, { role: 'user', content: 'SKILL TEXT. Read all the pages.' });
    const spec = {
      provider,
      human: denyAll,
      system: 'S',
      tools: [pages(size)],
      priceOf: () => 'unknown' as const,
      window,
      redact: run.redact.text,
      maxRounds,
      budget,
      mail,
      context: { ...folders, env: {} },
      policy: { ...folders, home: path, protectedDirs: [], memory: new RunMemory() },
    };
    const events: RunEvent[] = [];
    for await (const event of loopRun(run, spec, new AbortController().signal)) events.push(event);
    const end = events.at(-1);
    assert.ok(end?.type === 'run_end');
    return { events, end };
  }

  interface Options {
    size: number;
    window: number;
    before: Message[];
    secrets: string[];
    budget: Budget;
    maxRounds: number;
    mail: () => Promise<string[]>;
  }

  const noSummary = (): StreamEvent[] => assert.fail('no summary is needed');
  const said = (events: readonly RunEvent[]): string[] =>
    events.flatMap(event => (event.type === 'notice' ? [event.message] : []));

  it('leaves out old results before the context is full, and says what was there and how to read it again', async () => {
    const provider = reader(12, noSummary);
    const { events, end } = await run(provider, { window: 20_000 });
    assert.equal(end.outcome, 'completed');
    const last = textOf(provider.requests.at(-1)!.messages);
    has(last, /8,016 characters that read_file returned for \{\\"path\\":\\"p1\\"\}\. Call read_file again/);
    has(last, /begin p1 x/);
    has(last, /x end p1"/);
    // The latest two results are as they were.
    assert.ok(last.includes('x'.repeat(8_000)));
    for (const { messages } of provider.requests) assert.ok(textOf(messages).length / 4 < 20_000);
    assert.match(said(events).join('\n'), /the model is no longer sent \d+ old tool results/);
    // What is kept has all of them.
    assert.equal(textOf(end.messages).split('x'.repeat(8_000)).length - 1, 12);
  });

  it('says once, where room is made since a longer prompt costs more, how all that the model takes is sent', async () => {
    const of = (model: string) => ({ ...reader(30, () => [says('notes'), done()]), name: 'openai', model });
    const said = async (model: string, window: number) => {
      const { events } = await run(of(model), { size: 60_000, window });
      return events.flatMap(event =>
        event.type === 'notice' && event.message.includes('TELOS_CONTEXT_WINDOW') ? event.message : [],
      );
    };
    assert.deepEqual(await said('gpt-6-sol', 272_000), [
      'Longer prompts of gpt-6-sol cost more, so it is sent 272000 tokens at most. TELOS_CONTEXT_WINDOW=full allows 1050000.',
    ]);
    assert.deepEqual(await said('gpt-6-sol', 250_000), [], 'the user has set it');
    assert.deepEqual(await said('gpt-5.4-mini', 272_000), [], 'it takes no more');
  });

  it('sends the same beginning between two steps', async () => {
    const provider = reader(30, noSummary);
    await run(provider, { window: 40_000 });
    const texts = provider.requests.map(({ messages }) => textOf(messages).slice(0, -1));
    let shared = 0;
    let all = 0;
    for (let round = 1; round < texts.length; round++) {
      const [before, now] = [texts[round - 1]!, texts[round]!];
      let same = 0;
      while (same < before.length && before[same] === now[same]) same++;
      shared += same;
      all += now.length;
    }
    assert.ok(shared / all > 0.8, `${shared / all}`);
  });

  it('has the model summarize when results alone do not make enough room, and keeps the words of the person', async () => {
    const provider = reader(200, request => {
      const facts = [...new Set(textOf(request.messages).match(/FACT-\d+/g))];
      return [says(`Summary: ${facts.join(' ')} ${'notes '.repeat(100)}`), done()];
    });
    const before: Message[] = [
      { role: 'user', content: 'FIRST WORDS' },
      { role: 'assistant', content: 'FACT-1' },
    ];
    const { events, end } = await run(provider, { window: 12_000, size: 2_500, before });
    assert.equal(end.outcome, 'completed');
    const compacted = events.filter(event => event.type === 'compacted');
    assert.ok(compacted.length > 0);
    for (const { tokensBefore, tokensAfter } of compacted) assert.ok(tokensAfter < tokensBefore);
    const last = textOf(provider.requests.at(-1)!.messages);
    for (const kept of ['FIRST WORDS', 'SKILL TEXT', 'FACT-1', 'it is a note'])
      assert.ok(last.includes(kept), kept);
    assert.equal(textOf(end.messages).split('begin p').length - 1, 200);
    for (const { messages } of provider.requests) assert.ok(textOf(messages).length / 4 < 12_000);
  });

  it('has each call of what is sent with its result, and no two of the person in a row', async () => {
    const provider = reader(60, () => [says('summary'), done()]);
    await run(provider, { window: 8_000, size: 3_000 });
    for (const { messages } of provider.requests) {
      const blocks = messages.flatMap(blocksOf);
      const asked = blocks.flatMap(block => (block.type === 'tool_use' ? [block.id] : []));
      const answered = blocks.flatMap(block => (block.type === 'tool_result' ? [block.tool_use_id] : []));
      assert.deepEqual(answered, asked);
      for (const [index, { role }] of messages.entries())
        assert.equal(role, index % 2 === 0 ? 'user' : 'assistant');
    }
  });

  for (const [name, answer] of [
    ['is refused', [says('No.'), done('refusal')]],
    ['is empty', [says('  '), done()]],
  ] as const)
    it(`only leaves out results, and says so, if the summary ${name}`, async () => {
      const provider = reader(40, () => [...answer]);
      const { events, end } = await run(provider, { window: 12_000, size: 2_500 });
      assert.equal(end.outcome, 'completed');
      assert.equal(events.filter(({ type }) => type === 'compacted').length, 0);
      assert.match(
        said(events).join('\n'),
        /wrote no summary of the conversation\. Only old tool results are left out\./,
      );
      assert.equal(provider.requests.filter(({ isAside }) => isAside).length, 1);
    });

  it('makes room and asks once more if the server says that the prompt is too long', async () => {
    const provider = reader(30, () => [says('summary'), done()], 12_000);
    const { events, end } = await run(provider, { size: 6_000 });
    assert.equal(end.outcome, 'completed');
    assert.match(said(events).join('\n'), /no longer sent/);
  });

  it('leaves out a result that has just come only if the server has refused the prompt', async () => {
    const refusing = reader(1, noSummary, 9_000);
    const { events, end } = await run(refusing, { size: 60_000 });
    assert.equal(end.outcome, 'completed', end.error?.message);
    assert.match(said(events).join(), /no longer sent 1 old tool result\./);
    has(textOf(refusing.requests.at(-1)!.messages), /60,016 characters that read_file returned/);
    const full = reader(1, () => [says('summary'), done()]);
    const kept = await run(full, { size: 60_000, window: 8_000 });
    assert.doesNotMatch(said(kept.events).join(), /no longer sent/);
  });

  it('ends with the error of the server if there is nothing to leave out', async () => {
    const provider = reader(3, () => [says('summary'), done()], 10);
    const { end } = await run(provider);
    assert.equal(end.outcome, 'failed');
    assert.match(end.error?.message ?? '', /prompt is too long/);
    assert.equal(provider.requests.length, 1);
  });

  it('ends at the budget that is reached before a summary, and does not call that a failed summary', async () => {
    let [checks, atSummary] = [0, 0];
    const summarize = (): StreamEvent[] => {
      atSummary ||= checks;
      return [says('summary'), done()];
    };
    const upTo = (most: number): Budget =>
      ({
        check: async () => {
          if (++checks >= most) throw new TelosError('budget', 'The limit is reached.');
          return [];
        },
        add: () => [],
      }) as Partial<Budget> as Budget;
    const settings = { window: 8_000, size: 3_000 };
    await run(reader(60, summarize), { ...settings, budget: upTo(Number.POSITIVE_INFINITY) });
    assert.ok(atSummary > 1);
    checks = 0;
    const provider = reader(60, () => assert.fail('asks no more'));
    const { events, end } = await run(provider, { ...settings, budget: upTo(atSummary) });
    assert.deepEqual([end.outcome, end.error?.message], ['budget', 'The limit is reached.']);
    assert.doesNotMatch(said(events).join(), /could not be summarized/);
  });

  it('hides a secret that the model writes into its summary', async () => {
    const secret = 'sk-planted-0123456789abcdef';
    const provider = reader(60, () => [says(`The key is ${secret}.`), done()]);
    const { events } = await run(provider, { window: 8_000, size: 3_000, secrets: [secret] });
    assert.ok(events.some(event => event.type === 'compacted' && event.summary === 'The key is [redacted].'));
    assert.ok(!provider.requests.some(({ messages }) => textOf(messages).includes(secret)));
  });

  it('sends everything again once a compaction is undone', () => {
    const words: Message[] = [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'three' },
      { role: 'assistant', content: 'four' },
    ];
    const step: Message = {
      role: 'user',
      content: 'SUM',
      context: { kind: 'compacted', kept: 1, words: 1_000 },
    };
    const compacted = sentMessages([...words, step]);
    assert.equal(compacted.length, 2);
    assert.match(textOf(compacted), /one.*three.*SUM.*four/);
    assert.doesNotMatch(textOf(compacted), /two/);
    const back: Message = { role: 'user', content: '', context: { kind: 'restored' } };
    assert.deepEqual(sentMessages([...words, step, back]), words);
    assert.match(textOf(sentMessages([...words, step, back, step])), /SUM/);
  });

  it('names pictures and documents of the person in their place once they were compacted away', () => {
    const image = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgoA' } as const;
    const pdf = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0' } as const;
    const material: Message['content'] = [
      { type: 'text', text: 'Look.' },
      { type: 'image', source: image },
      { type: 'document', title: 'beds.pdf', source: pdf },
    ];
    const sent = textOf(
      sentMessages([
        { role: 'user', content: material },
        { role: 'assistant', content: 'two' },
        { role: 'user', content: 'SUM', context: { kind: 'compacted', kept: 0, words: 1_000 } },
      ]),
    );
    has(sent, /Look\.\\n\\n\[an image\]\\n\\n\[a PDF: beds\.pdf\]/);
    assert.doesNotMatch(sent, /iVBORw|JVBERi/);
  });

  it('keeps of the words of the person the first and the latest, no more than have room', () => {
    const words = Array.from({ length: 9 }, (_, at) => `<${at}> ${'w'.repeat(396)}`);
    const sent = sentMessages([
      ...words.flatMap((content): Message[] => [
        { role: 'user', content },
        { role: 'assistant', content: 'ok' },
      ]),
      { role: 'user', content: 'SUM', context: { kind: 'compacted', kept: 0, words: 1_300 } },
    ]);
    assert.deepEqual(textOf(sent).match(/<\d>/g), ['<0>', '<7>', '<8>']);
  });

  it('says that there is nothing to undo, to summarize or to leave out, and changes nothing', async () => {
    const words: Message[] = [
      { role: 'user', content: 'SKILL' },
      { role: 'assistant', content: 'Done.' },
    ];
    const provider = reader(0, () => [says('SUM'), done()]);
    const room = {
      spec: { provider, messages: [...words] },
      meter: new ContextMeter(1_000_000),
      request: (sent: readonly Message[]) => ({ system: '', messages: sent, tools: [], maxTokens: 1_000 }),
      used: () => [],
    };
    const signal = new AbortController().signal;
    const told: string[] = [];
    for await (const event of changeContext(room, { kind: 'restore' }, signal))
      told.push(event.type === 'notice' ? event.message : event.type);
    for await (const event of compact(room, { focus: '', keep: 1_000 }, signal))
      told.push(event.type === 'notice' ? event.message : event.type);
    assert.deepEqual(told, [
      'This conversation has no compaction to undo.',
      'There is nothing to summarize yet.',
    ]);
    assert.deepEqual([room.spec.messages, provider.requests.length], [words, 0]);
    const before: Message[] = [
      { role: 'user', content: 'word '.repeat(9_000) },
      { role: 'assistant', content: 'word '.repeat(9_000) },
    ];
    const full = reader(0, () => [says('SUM'), done()]);
    const { events } = await run(full, { window: 12_000, before });
    assert.ok(events.some(({ type }) => type === 'compacted'));
    assert.doesNotMatch(said(events).join(), /no longer sent/);
  });

  it('tells no parts of a prompt whose tokens were not counted, and estimates the next as before', () => {
    const meter = new ContextMeter(1_000);
    assert.deepEqual([meter.limit, new ContextMeter().limit], [750, undefined]);
    assert.ok((new ContextMeter(1_000_000).limit ?? 0) > 900_000);
    const request = {
      system: 'S',
      messages: [{ role: 'user', content: 'word '.repeat(99) }],
      tools: [],
    } as const;
    const before = meter.tokensOf(request);
    const none = { inputTokens: 0, outputTokens: 9, cacheReadTokens: 0, cacheWriteTokens: 0 };
    assert.equal(meter.counted(request, none), undefined);
    assert.equal(meter.tokensOf(request), before);
    assert.ok(before > 0);
    const [use] = [meter.counted(request, { ...none, inputTokens: 1 })];
    assert.deepEqual([use?.window, use?.tokens.conversation, use && 'read' in use], [1_000, 1, false]);
  });

  it('leaves out one of two results that came together, and sends the other whole', () => {
    const use = (id: string) => ({ type: 'tool_use', id, name: 'read_file', input: { path: id } }) as const;
    const result = (id: string) =>
      ({ type: 'tool_result', tool_use_id: id, content: `${id} `.repeat(2_000), is_error: false }) as const;
    const sent = sentMessages([
      { role: 'assistant', content: [use('beds'), use('paths')] },
      { role: 'user', content: [result('beds'), result('paths')] },
      { role: 'user', content: '', context: { kind: 'trimmed', calls: ['beds'] } },
    ]);
    const [beds, paths] = blocksOf(sent[1]!);
    has(JSON.stringify(beds), /characters that read_file returned/);
    assert.deepEqual(paths, result('paths'));
  });

  it('never sends half an emoji of a result that is left out, or of what it was asked for', () => {
    for (let shift = 0; shift < 4; shift++) {
      const emoji = 'x'.repeat(shift) + '👍🏽'.repeat(2_000);
      const use = { type: 'tool_use', id: 'a', name: 'read_file', input: { path: emoji } } as const;
      const result = { type: 'tool_result', tool_use_id: 'a', content: emoji, is_error: false } as const;
      const sent = sentMessages([
        { role: 'assistant', content: [use] },
        { role: 'user', content: [result] },
        { role: 'user', content: '', context: { kind: 'trimmed', calls: ['a'] } },
      ]);
      const [note] = blocksOf(sent[1]!);
      assert.ok(note?.type === 'tool_result' && typeof note.content === 'string');
      assert.ok(note.content.isWellFormed() && note.content.length < 1_500);
      assert.doesNotMatch(note.content, /👍(?!🏽)|(?<!👍)🏽/u);
    }
  });

  it('has the words of the person that were said in the last round, whichever limit ends the run', async () => {
    for (const limit of ['round_limit', 'budget']) {
      let [asked, checked] = [0, 0];
      const budget: Budget = {
        check: async () => {
          if (limit === 'budget' && ++checked === 4) throw new TelosError('budget', 'Used up.');
          return [];
        },
        add: () => [],
      };
      const mail = async () => (++asked === 4 ? ['Water them.'] : []);
      const { end } = await run(reader(9, noSummary), {
        maxRounds: limit === 'budget' ? 9 : 3,
        mail,
        budget,
      });
      assert.deepEqual([end.outcome, end.rounds], [limit, 3]);
      has(textOf(end.messages.slice(-1)), /The person says: Water them\./);
    }
  });

  it('forgets no block of any conversation: each is in the prompt, or was in the question for a summary that counts', async () => {
    for (let seed = 1; seed <= 150; seed++) await forgetsNothing(seed);
  });

  it('tells the parts of what was sent, which add up to the count of the provider', async () => {
    const provider = reader(2, noSummary);
    const { events } = await run(provider, { window: 100_000 });
    const uses = events.flatMap(event => (event.type === 'usage' && event.context ? [event] : []));
    assert.equal(uses.length, 3);
    for (const { usage, context } of uses) {
      assert.equal(
        Object.values(context!.tokens).reduce((sum, part) => sum + part, 0),
        usage.inputTokens,
      );
      assert.equal(context!.window, 100_000);
    }
    assert.ok(uses[2]!.context!.tokens.tools > uses[0]!.context!.tokens.tools + 3_000);
  });
});

/** Makes any conversation, with runs that were stopped, words in between, and compactions that are undone. After each step nothing is lost. */
async function forgetsNothing(seed: number): Promise<void> {
  const random = seeded(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const messages: Message[] = [{ role: 'user', content: 'SKILL' }];
  const marks: string[] = [];
  const counting: string[] = [];
  let question = '';
  const provider: Provider = {
    name: 'x',
    model: 'x',
    async *streamCompletion(request) {
      await Promise.resolve();
      question = textOf(request.messages);
      yield says('summary');
      yield done();
    },
  };
  const room = {
    spec: { provider, messages },
    meter: new ContextMeter(1_000_000),
    request: (sent: readonly Message[]) => ({ system: '', messages: sent, tools: [], maxTokens: 1_000 }),
    used: () => [],
  };
  const signal = new AbortController().signal;
  const marked = (): string => {
    marks.push(`<${marks.length}>`);
    return `${marks.at(-1)} ${'word '.repeat(below(200))}`;
  };
  const open = (): boolean => messages.findLast(({ context }) => !context)?.role === 'user';
  const steps = [
    () => void messages.push({ role: 'user', content: marked() }),
    () => addText(messages, marked()),
    () => {
      if (open()) messages.push({ role: 'assistant', content: [{ type: 'text', text: marked() }] });
    },
    round,
    round,
    () => {
      const calls = messages
        .flatMap(blocksOf)
        .flatMap(block => (block.type === 'tool_use' ? [block.id] : []));
      messages.push({
        role: 'user',
        content: '',
        context: { kind: 'trimmed', calls: calls.slice(0, below(9)) },
      });
    },
    async () => {
      for await (const { type } of compact(room, { focus: '', keep: below(1_200) }, signal))
        if (type === 'compacted') counting.push(question);
    },
    async () => {
      for await (const { type } of changeContext(room, { kind: 'restore' }, signal))
        if (type === 'compaction_undone') counting.pop();
    },
  ];
  function round(): void {
    if (!open()) return;
    const text = { type: 'text', text: marked() } as const;
    const ids = Array.from({ length: 1 + below(3) }, () => `c${marks.length}-${random()}`);
    const use = ids.map(
      id => ({ type: 'tool_use', id, name: 'read_file', input: { path: marked() } }) as const,
    );
    messages.push({ role: 'assistant', content: [text, ...use] });
    const content = ids.map(
      id => ({ type: 'tool_result', tool_use_id: id, content: marked(), is_error: false }) as const,
    );
    messages.push({ role: 'user', content: [...content] });
  }
  for (let count = 0; count < 60; count++) {
    await steps[below(steps.length)]!();
    const sent = sentMessages(messages);
    const known = [textOf(sent), ...counting].join();
    assert.deepEqual(
      marks.filter(mark => !known.includes(mark)),
      [],
      `seed ${seed}, step ${count}`,
    );
    const calls = sent.flatMap(blocksOf).flatMap(block => (block.type === 'tool_use' ? [block.id] : []));
    const results = sent
      .flatMap(blocksOf)
      .flatMap(block => (block.type === 'tool_result' ? [block.tool_use_id] : []));
    assert.deepEqual(results, calls, `seed ${seed}, step ${count}`);
  }
}
