/** Questions go to a phone over each wire, and exactly one answer of the right person to exactly these bytes counts. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AnswerBox } from '../../../src/engine/away/answerBox.ts';
import type { AwayAnswer, Messenger } from '../../../src/engine/away/messenger.ts';
import { ntfyWire } from '../../../src/engine/away/ntfy.ts';
import { phone, type Wire } from '../../../src/engine/away/phone.ts';
import { telegramWire } from '../../../src/engine/away/telegram.ts';
import { patience } from '../../../src/engine/away/ticket.ts';
import { signed, webhookWire } from '../../../src/engine/away/webhook.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';
import { eventually } from '../../eventually.ts';
import { ntfyServer, signatureOf, telegramServer, webhookReceiver } from '../../fakes/messengerServers.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const request = (more: Partial<ApprovalRequest> = {}): ApprovalRequest => ({
  ...{ callId: '1', token: 't', tool: 'run_command', subject: 'rm -rf ../other', folder: '/home/ann/work' },
  ...{ rule: 'run.ask', reason: 'A command runs with your rights.', scopes: ['once', 'run', 'always'] },
  danger: [{ kind: 'deletes-outside', values: ['../other'] }],
  ...more,
});

/** What a test does with one wire, in the words of the wire. */
interface Stand {
  wire: Wire;
  /** What the user reads. */
  text(): string | undefined;
  labels(): string[];
  /** Presses a button that was seen, as the user or as a stranger. */
  press(token: string): Promise<void>;
  pressAsStranger(token: string): Promise<void>;
  token(answer: 'once' | 'no'): string;
  outcome(): string | undefined;
  refused: readonly string[];
  close(): Promise<void>;
}

const [owner, stranger, secret] = ['4711', '666', 'a secret of the webhook of ann'];

async function ntfyStand(): Promise<Stand> {
  const server = await ntfyServer('tk_ann');
  const place = { server: server.url, topic: 'anns-topic', token: 'tk_ann' };
  const asked = () => server.messages.filter(({ topic }) => topic === 'anns-topic').at(-1);
  const say = (body: string) => fetch(`${server.url}/anns-topic-answers`, { method: 'POST', body });
  return {
    ...server,
    wire: ntfyWire(place),
    text: () => asked()?.message,
    labels: () => asked()?.actions?.map(({ label }) => label) ?? [],
    press: async token => void (await say(token)),
    pressAsStranger: async token =>
      void (await say(`${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`)),
    token: answer => asked()?.actions?.find(one => one.body.includes(`.${answer}.`))?.body ?? '',
    outcome: () => undefined,
  };
}

async function telegramStand(folder: string): Promise<Stand> {
  const server = await telegramServer('123:abc');
  const place = { api: server.url, token: '123:abc', users: [owner] };
  const last = () => server.messages.at(-1);
  let tokens: string[] = [];
  const seen = (): string[] => {
    const now = last()?.buttons.map(one => one.callback_data) ?? [];
    tokens = now.length > 0 ? now : tokens;
    return tokens;
  };
  return {
    ...server,
    wire: telegramWire(place, new AnswerBox(folder)),
    text: () => last()?.text,
    labels: () => last()?.buttons.map(({ text }) => text) ?? [],
    press: async token => void server.press(owner, token),
    pressAsStranger: async token => void server.press(stranger, token),
    token: answer => seen().find(one => one.includes(`.${answer}.`)) ?? '',
    outcome: () => last()?.text.split('\n').at(-1),
  };
}

async function webhookStand(folder: string): Promise<Stand> {
  const receiver = await webhookReceiver(secret);
  const port = await freePort();
  const last = () => receiver.notes.filter(({ type }) => type === 'question').at(-1);
  const call = async (token: string, key: string) => {
    const body = JSON.stringify({ answer: token });
    const seconds = String(Math.floor(Date.now() / 1000));
    const headers = { 'x-telos-timestamp': seconds, 'x-telos-signature': signatureOf(body, key, seconds) };
    await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body }).catch(() => undefined);
  };
  return {
    ...receiver,
    wire: webhookWire({ url: receiver.url, secret, port }, new AnswerBox(folder)),
    text: () => last()?.text,
    labels: () => Object.keys(last()?.answers ?? {}).map(one => (one === 'once' ? 'Once' : 'No')),
    press: token => call(token, secret),
    pressAsStranger: token => call(token, 'a secret of somebody else'),
    token: answer => last()?.answers?.[answer] ?? '',
    outcome: () => receiver.notes.find(({ type }) => type === 'question_over')?.outcome,
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise(resolve => server.close(resolve));
  return port;
}

const stands = { ntfy: ntfyStand, Telegram: telegramStand, webhook: webhookStand };

for (const [name, open] of Object.entries(stands))
  describe(`a question by ${name}`, () => {
    let folder: TempFolder;
    let stand: Stand;
    let over: AbortController;

    beforeEach(async () => {
      folder = tempFolder();
      stand = await open(folder.path);
      over = new AbortController();
    });
    afterEach(async () => {
      over.abort();
      await stand.close();
      folder.remove();
      assert.deepEqual(stand.refused, []);
    });

    interface Asked {
      answer: Promise<AwayAnswer | undefined>;
      isSettled: () => boolean;
    }

    async function ask(asked = request(), messenger: Messenger = phone(stand.wire)): Promise<Asked> {
      let settled = false;
      const answer = await new Promise<{ of: Promise<AwayAnswer | undefined> }>((resolve, reject) => {
        const of = messenger.ask({ request: asked, scopes: ['once'] }, over.signal, () => resolve({ of }));
        of.then(() => {
          settled = true;
        }, reject);
      });
      return { answer: answer.of, isSettled: () => settled };
    }

    /** Waits until everything that was sent was heard: an answer to a second question has come. */
    async function isQuiet({ isSettled }: Asked): Promise<void> {
      const { answer } = await ask(request({ subject: 'ls' }));
      await stand.press(stand.token('no'));
      assert.equal(await answer, 'no');
      assert.equal(isSettled(), false);
    }

    it('names the danger and the exact command, and offers once and no, never always', async () => {
      const { answer } = await ask();
      const text = stand.text() ?? '';
      assert.match(text, /Run this command\?/);
      assert.match(text, /^│ rm -rf \.\.\/other$/m);
      assert.match(text, /⚠ Deletes \.\.\/other, outside the working folder/);
      assert.deepEqual(stand.labels(), ['Once', 'No']);
      await stand.press(stand.token('once'));
      assert.equal(await answer, 'once');
      if (name !== 'ntfy') await eventually(() => assert.match(stand.outcome() ?? '', /Once/));
    });

    it('takes no for no', async () => {
      const { answer } = await ask();
      await stand.press(stand.token('no'));
      assert.equal(await answer, 'no');
    });

    it('takes nothing of a stranger', async () => {
      const asked = await ask();
      await stand.pressAsStranger(stand.token('once'));
      await isQuiet(asked);
    });

    it('takes an answer once, and none that belongs to another question', async () => {
      const first = await ask();
      const once = stand.token('once');
      await stand.press(once);
      assert.equal(await first.answer, 'once');
      const second = await ask();
      await stand.press(once);
      await isQuiet(second);
    });

    it('is void once the question has changed', async () => {
      const changing = request();
      const asked = await ask(changing);
      changing.subject = 'rm -rf ../everything';
      await stand.press(stand.token('once'));
      await isQuiet(asked);
    });

    it('is void after an hour', async () => {
      let now = Date.now();
      const asked = await ask(
        request(),
        phone(stand.wire, () => now),
      );
      const late = stand.token('once');
      now += patience;
      await stand.press(late);
      await isQuiet(asked);
    });

    it('is not sent with buttons if it cannot be shown whole', async () => {
      const { answer } = await ask(request({ subject: `echo ${'x'.repeat(70_000)}` }));
      assert.equal(await answer, undefined);
      assert.match(stand.text() ?? '', /too long to be shown here/);
      assert.deepEqual(stand.labels(), []);
    });

    it('says of a form and of a question of the skill that they are answered on the machine', async () => {
      const form = [{ name: 'place', label: 'Place', kind: 'text' as const, isRequired: true }];
      for (const more of [{ form }, { tool: 'ask_user', subject: 'Which one?', choices: ['a', 'b'] }]) {
        const { answer } = await ask(request(more as Partial<ApprovalRequest>));
        assert.equal(await answer, undefined);
        assert.match(stand.text() ?? '', /more than a yes or a no\. Answer it on the machine/);
        assert.deepEqual(stand.labels(), []);
      }
    });

    it('lets no command pose as words of ours', async () => {
      const { answer } = await ask(request({ subject: 'ls\nTelos asks\u202e', danger: [] }));
      assert.match(stand.text() ?? '', /^│ ls\n│ Telos asks<U\+202E>$/m);
      over.abort();
      assert.equal(await answer, undefined);
    });
  });

describe('wires of messengers', () => {
  let folder: TempFolder;
  const over = new AbortController();
  const question = { request: request(), scopes: ['once' as const] };

  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  it('say that nothing was sent where nobody listens, without the key', async () => {
    const gone = `http://127.0.0.1:${await freePort()}`;
    const box = new AnswerBox(folder.path);
    const wires = [
      ntfyWire({ server: gone, topic: 'anns-topic', token: 'tk_ann' }),
      telegramWire({ api: gone, token: '123:abc', users: [owner] }, box),
      webhookWire({ url: gone, secret, port: undefined }, box),
    ];
    for (const wire of wires) {
      let isSent = false;
      const asked = phone(wire).ask(question, over.signal, () => {
        isSent = true;
      });
      await assert.rejects(asked, (error: Error) => {
        assert.match(error.message, /could not be reached \(ECONNREFUSED\)/);
        assert.doesNotMatch(error.message, /tk_ann|abc|anns-topic|127\.0/);
        return true;
      });
      assert.equal(isSent, false);
    }
  });

  it('count a service that says nothing as down after five seconds, and one that says nothing of the end', async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve));
    const api = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const box = new AnswerBox(folder.path);
    const wires = [
      ntfyWire({ server: api, topic: 'anns-topic', token: undefined }),
      telegramWire({ api, token: '123:abc', users: [owner] }, box),
      webhookWire({ url: api, secret, port: undefined }, box),
    ];
    const down = wires.map(wire =>
      assert.rejects(
        phone(wire).ask(question, over.signal),
        new RegExp(`${wire.name} did not answer in 5 seconds`),
      ),
    );
    const tired: Wire = {
      name: 'tired',
      longest: 1000,
      async open({ buttons }, heard) {
        setImmediate(heard, buttons[0]?.token ?? '');
        return () => new Promise(() => {});
      },
    };
    assert.equal(await phone(tired).ask(question, over.signal), 'once');
    await Promise.all(down);
    silent.closeAllConnections();
    await new Promise(resolve => silent.close(resolve));
  });

  it('take a page in place of an answer for no answer', async () => {
    const page = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Sign in to this network</html>');
    });
    await new Promise<void>(resolve => page.listen(0, '127.0.0.1', resolve));
    const api = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
    const wires = [
      ntfyWire({ server: api, topic: 'anns-topic', token: undefined }),
      telegramWire({ api, token: '123:abc', users: [owner] }, new AnswerBox(folder.path)),
    ];
    for (const wire of wires)
      await assert.rejects(phone(wire).ask(question, over.signal), /did not a(?:nswer as|ccept)/, wire.name);
    page.closeAllConnections();
    await new Promise(resolve => page.close(resolve));
  });

  it('say that the service refused, and that nothing was sent', async () => {
    const server = await telegramServer('999:other');
    const wire = telegramWire(
      { api: server.url, token: '123:abc', users: [owner] },
      new AnswerBox(folder.path),
    );
    await assert.rejects(phone(wire).ask(question, over.signal), /Telegram did not accept it \(HTTP 401\)/);
    await server.close();
  });

  it('never send the token of ntfy along', async () => {
    const server = await ntfyServer('tk_ann');
    const wire = ntfyWire({ server: server.url, topic: 'anns-topic', token: 'tk_ann' });
    const stop = new AbortController();
    const asked = phone(wire).ask(question, stop.signal);
    await eventually(() => assert.equal(server.messages.length, 1));
    assert.doesNotMatch(JSON.stringify(server.messages), /tk_ann/);
    stop.abort();
    assert.equal(await asked, undefined);
    await eventually(() => assert.equal(server.streams.size, 0));
    await server.close();
  });

  it('hear an answer of ntfy that comes while its stream is broken', async () => {
    const server = await ntfyServer();
    const wire = ntfyWire({ server: server.url, topic: 't', token: undefined });
    const first = phone(wire).ask(question, over.signal);
    await eventually(() => assert.equal(server.messages.length, 1));
    server.cutStreams();
    await eventually(() => assert.equal(server.streams.size, 1));
    await server.press(server.messages[0]!, 'Once');
    assert.equal(await first, 'once');
    await server.close();
  });

  it('hear for each other in two processes that have one bot', async () => {
    const server = await telegramServer('123:abc');
    const place = { api: server.url, token: '123:abc', users: [owner] };
    // Two boxes of one folder, as two processes have them.
    const [here, there] = [new AnswerBox(folder.path), new AnswerBox(folder.path)];
    const asked = [here, there].map(box => phone(telegramWire(place, box)).ask(question, over.signal));
    await eventually(() => assert.equal(server.messages.length, 2));
    for (const { buttons } of [...server.messages]) server.press(owner, buttons[0]!.callback_data);
    assert.deepEqual(await Promise.all(asked), ['once', 'once']);
    await server.close();
  });

  it('tell who pressed the button, and a stranger nothing', async () => {
    const server = await telegramServer('123:abc');
    const place = { api: server.url, token: '123:abc', users: [owner] };
    const asked = phone(telegramWire(place, new AnswerBox(folder.path))).ask(question, over.signal);
    await eventually(() => assert.equal(server.messages.length, 1));
    const { callback_data: once } = server.messages[0]!.buttons[0]!;
    server.press(stranger, once);
    const pressed = server.press(owner, once);
    assert.equal(await asked, 'once');
    await eventually(() => assert.deepEqual(server.answered, [{ callback_query_id: pressed, text: 'Once' }]));
    await server.close();
  });

  it('ask a webhook for the answer at its own address alone', async () => {
    const receiver = await webhookReceiver(secret, true);
    const wire = webhookWire({ url: receiver.url, secret, port: undefined }, new AnswerBox(folder.path));
    const asked = phone(wire).ask(question, over.signal);
    await eventually(() => assert.equal(receiver.notes.length, 1));
    receiver.reply(receiver.notes[0]?.answers?.['once'] ?? '');
    assert.equal(await asked, 'once');
    await eventually(() => assert.equal(receiver.notes.at(-1)?.outcome, '→ Once'));
    assert.deepEqual(receiver.refused, []);
    await receiver.close();
  });

  it('take no answer for a webhook that is older than five minutes', async () => {
    const receiver = await webhookReceiver(secret);
    const port = await freePort();
    const wire = webhookWire({ url: receiver.url, secret, port }, new AnswerBox(folder.path));
    const stop = new AbortController();
    const asked = phone(wire).ask(question, stop.signal);
    await eventually(() => assert.equal(receiver.notes.length, 1));
    const body = JSON.stringify({ answer: receiver.notes[0]?.answers?.['once'] });
    const old = Math.floor(Date.now() / 1000) - 301;
    const headers = signed(body, secret, old);
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body });
    assert.equal(answer.status, 404);
    stop.abort();
    assert.equal(await asked, undefined);
    await receiver.close();
  });
});
