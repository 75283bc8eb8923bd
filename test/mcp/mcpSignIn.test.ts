/** A sign-in from the first refusal to the call, with servers that speak over real sockets and a browser that only follows one redirect. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import type { Human } from '../../src/engine/core/ports.ts';
import type { SignInPort } from '../../src/engine/human.ts';
import { allowAll } from '../../src/engine/human.ts';
import { McpSignIn } from '../../src/engine/mcp/signIn.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { ApprovalRequest, RunEvent } from '../../src/protocol/run.ts';
import { listen, sendJson } from '../fakes/loopback.ts';
import { calls, done, type ScriptedProvider, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { type SignInFaults, type SignInServers, startSignInServers } from '../fakes/signInServers.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const note = 'note-0123456789';
const clientSecret = 'client-secret-0123456789';
const redirect = 'vscode://telos.telos/mcp/callback';

describe('the sign-in at an MCP server', () => {
  let folder: TempFolder;
  let servers: SignInServers;
  let secrets: Map<string, string>;
  let visited: URL[];
  let asked: ApprovalRequest[];

  beforeEach(async () => {
    servers = await startSignInServers();
    secrets = new Map();
    visited = [];
    asked = [];
    folder = tempFolder({
      'skills/post/agent.toml': 'working_dir = "."',
      'skills/post/skills/send/SKILL.md': '---\ndescription: Sends post\n---\nSend it.\n',
      'work/.keep': '',
    });
    server();
  });
  afterEach(async () => {
    await servers.close();
    folder.remove();
  });

  /** Entry of mcp.json. */
  function server(url = servers.url, headers: object = { 'x-note': `\${NOTE}` }, more: object = {}): void {
    folder.add({
      'skills/post/mcp.json': JSON.stringify({ mcpServers: { mail: { url, headers, ...more } } }),
    });
  }

  const port = (visit?: SignInPort['visit']): SignInPort => ({
    redirectUrl: async () => redirect,
    visit: async (url, state, signal) => {
      visited.push(new URL(url));
      return visit ? visit(url, state, signal) : (await servers.browse(url)).searchParams;
    },
    read: async name => secrets.get(name),
    write: async (name, value) => {
      if (value === undefined) secrets.delete(name);
      else secrets.set(name, value);
    },
  });

  const human = (refuse?: string): Human => ({
    ...allowAll,
    approve: async (request, signal) => {
      asked.push(request);
      if (request.rule === refuse) return { allow: false, reason: 'Not now' };
      return allowAll.approve(request, signal);
    },
  });

  interface Ran {
    events: RunEvent[];
    model: ScriptedProvider;
    /** All that was shown, and all that was kept of it. */
    shown: string;
  }

  async function run({
    signIn = port(),
    nowhere = false,
    person = human(),
    signal = new AbortController().signal,
    onEvent = (_event: RunEvent): void => undefined,
  } = {}): Promise<Ran> {
    const model = scriptedProvider([
      [calls('1', 'headers', {}), done('tool_use')],
      [says('Sent with note-01234'), says('56789.'), done()],
    ]);
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        NOTE: note,
        CLIENT_SECRET: clientSecret,
        TELOS_PROVIDER: 'scripted',
        TELOS_SKILLS_DIR: join(folder.path, 'skills'),
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        TELOS_ROUTING_MODE: 'local',
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'work'),
    });
    const telos = Telos.open(config, {
      providers: { scripted: { model: async () => 'script', create: async () => model } },
      ...(nowhere ? {} : { signIn }),
    });
    const events: RunEvent[] = [];
    const request = { text: 'go', skill: { agent: 'post', skill: 'send' } };
    for await (const event of telos.run(request, person, signal)) {
      events.push(event);
      onEvent(event);
    }
    const kept = readdirSync(folder.path, { recursive: true, encoding: 'utf8' })
      .filter(name => name.startsWith('data') && /\.\w+$/.test(name))
      .map(name => readFileSync(join(folder.path, name), 'utf8'));
    assert.ok(kept.length > 0);
    return { events, model, shown: [JSON.stringify(events), JSON.stringify(asked), ...kept].join('\n') };
  }

  const noticesOf = ({ events }: Ran): string =>
    events.flatMap(event => (event.type === 'notice' ? [event.message] : [])).join('\n');
  const resultOf = ({ events }: Ran): string =>
    events.flatMap(event => (event.type === 'tool_end' ? [event.result.content] : [])).join('\n');
  const signIns = (): ApprovalRequest[] => asked.filter(({ rule }) => rule === 'mcp.authorize');
  const paths = (what: keyof SignInServers['seen']): string[] => servers.seen[what].map(one => one.what);

  /** Nothing that was given out is in it, nor what a variable of mcp.json holds. */
  function assertClean({ shown, model }: Ran): void {
    const read = JSON.stringify(model.requests);
    for (const secret of [...servers.given, note]) {
      assert.ok(secret.length > 10);
      assert.ok(!shown.includes(secret), `${secret} was shown`);
      assert.ok(!read.includes(secret), `${secret} was told to the model`);
    }
  }

  it('asks, opens the page, and the run goes on with the server', async () => {
    const ran = await run();
    assert.match(resultOf(ran), /"authorization":"Bearer \[redacted\]"/);
    assert.match(resultOf(ran), /"x-note":"\[redacted\]"/);
    const [question, ...more] = signIns();
    assert.deepEqual(more, []);
    assert.match(question?.subject ?? '', new RegExp(`${servers.page}$`));
    assert.match(question?.reason ?? '', /'mail'/);
    assert.match(question?.reason ?? '', /\bpost\b/);
    assert.deepEqual(question?.scopes, ['once']);
    assert.equal(visited.length, 1);
    assert.equal(visited[0]?.origin, servers.page);
    assert.equal(visited[0]?.searchParams.get('code_challenge_method'), 'S256');
    assert.equal(ran.events.at(-1)?.type, 'run_end');
    assertClean(ran);
  });

  it('asks only once, and renews what has expired without a question', async () => {
    await run();
    servers.expire();
    const again = await run();
    assert.match(resultOf(again), /Bearer/);
    assert.equal(visited.length, 1);
    assert.equal(signIns().length, 1);
    assert.equal(paths('authorization').filter(what => what === 'POST /register').length, 1);
    assertClean(again);
  });

  it('asks again when a renewal is refused', async () => {
    await run();
    servers.expire();
    servers.faults.refusesRefresh = true;
    const again = await run();
    assert.match(resultOf(again), /Bearer/);
    assert.equal(visited.length, 2);
    assert.equal(signIns().length, 2);
    assertClean(again);
  });

  for (const [when, staleReads] of [
    ['before', 1],
    ['while it asks for the same', 2],
  ] as const) {
    it(`goes on with what another window has got ${when}`, async () => {
      const signIn = port();
      await run({ signIn });
      const [[name, before] = ['', '']] = [...secrets];
      servers.expire();
      await run({ signIn });
      const after = secrets.get(name) ?? '';
      assert.notEqual(before, after);
      // This window has read what the other one has used up.
      let reads = 0;
      const late: SignInPort = {
        ...signIn,
        read: async place => (reads++ < staleReads ? before : signIn.read(place)),
      };
      const ran = await run({ signIn: late });
      assert.match(resultOf(ran), /Bearer/);
      assert.equal(visited.length, 1);
      if (staleReads === 1) assert.equal(secrets.get(name), after);
    });
  }

  it('hides what the variables hold also where no server is reached', async () => {
    const ran = await run({ person: human('card.new') });
    assert.deepEqual(paths('mcp'), []);
    assertClean(ran);
  });

  it('adds a token to no request that goes elsewhere', async () => {
    await run();
    const seen: (string | undefined)[] = [];
    const elsewhere = await listen(async ({ headers }, response) => {
      seen.push(headers['authorization']);
      sendJson(response, 200, {});
    });
    try {
      const access = new McpSignIn(port(), 'post', servers, () => undefined);
      await access.fetch(elsewhere.address);
      await access.fetch(servers.url);
      assert.deepEqual(seen, [undefined]);
      assert.match(servers.seen.mcp.at(-1)?.authorization ?? '', /^Bearer access-/);
    } finally {
      await elsewhere.close();
    }
  });

  it('leaves the server out when the person refuses', async () => {
    const ran = await run({ person: human('mcp.authorize') });
    assert.match(noticesOf(ran), /without the MCP server 'mail'.*Not now/s);
    assert.deepEqual(visited, []);
    assert.ok(!paths('authorization').includes('POST /register'));
    assert.equal(secrets.size, 0);
  });

  const failing: readonly [name: string, faults: SignInFaults, notice: RegExp][] = [
    ['what comes back belongs to another one', { state: 'a-state-of-somebody-else' }, /another sign-in/],
    ['the person says no on the page', { denies: true }, /refused: You have said no\./],
  ];
  for (const [name, faults, notice] of failing) {
    it(`leaves the server out when ${name}`, async () => {
      Object.assign(servers.faults, faults);
      const ran = await run();
      assert.match(noticesOf(ran), notice);
      assert.equal(visited.length, 1);
      assert.ok(!paths('authorization').includes('POST /token'));
      assertClean(ran);
    });
  }

  it('takes no answer that comes from another authorization server', async () => {
    const ran = await run({
      signIn: port(async url => {
        const { searchParams: answer } = await servers.browse(url);
        answer.set('iss', 'https://elsewhere.example');
        return answer;
      }),
    });
    assert.match(noticesOf(ran), /another sign-in/);
    assert.ok(!paths('authorization').includes('POST /token'));
  });

  it('takes no answer without its sender where the server promises to name itself', async () => {
    const ran = await run({
      signIn: port(async url => {
        const { searchParams: answer } = await servers.browse(url);
        answer.delete('iss');
        return answer;
      }),
    });
    assert.match(noticesOf(ran), /another sign-in/);
    assert.ok(!paths('authorization').includes('POST /token'));
  });

  it('goes nowhere with an authorization server that calls itself another one, also on the same host', async () => {
    for (const issuer of ['http://127.0.0.1:9', `${servers.page}/tenants/other`]) {
      servers.faults.issuer = issuer;
      const ran = await run();
      assert.match(noticesOf(ran), /calls itself/);
      assert.deepEqual([visited, signIns()], [[], []]);
    }
  });

  it('goes nowhere with an authorization server that does not say that it protects codes with S256', async () => {
    for (const pkce of [null, [], ['plain']]) {
      servers.faults.pkce = pkce;
      const ran = await run();
      assert.match(noticesOf(ran), /PKCE \(S256\)/);
      assert.deepEqual([visited, signIns()], [[], []]);
    }
  });

  it('reads no description of an authorization server that is larger than a megabyte', async () => {
    servers.faults.padding = 2 * 1024 * 1024;
    await run();
    assert.deepEqual([visited, signIns()], [[], []]);
  });

  const unsafe: readonly [name: string, faults: SignInFaults][] = [
    ['a page without https', { page: 'http://example.com' }],
    ['a page of another kind', { page: 'file://' }],
    ['the metadata of a cloud', { tokens: 'http://169.254.169.254' }],
    ["a network of the person's", { tokens: 'https://10.0.0.1' }],
  ];
  for (const [name, faults] of unsafe) {
    it(`does not ask for a sign-in that leads to ${name}`, async () => {
      Object.assign(servers.faults, faults);
      const ran = await run();
      assert.match(noticesOf(ran), /'mail' is not available .*its sign-in leads to/);
      assert.deepEqual([visited, signIns()], [[], []]);
    });
  }

  it('names every origin that it speaks with', async () => {
    servers.faults.tokens = 'http://127.0.0.1:9';
    await run();
    assert.match(signIns()[0]?.reason ?? '', /http:\/\/127\.0\.0\.1:9\b/);
  });

  it('sends a token to no other server, whatever mcp.json says later', async () => {
    await run();
    const seen: (string | undefined)[] = [];
    const elsewhere = await listen(async ({ headers }, response) => {
      seen.push(headers['authorization']);
      sendJson(response, 401, {});
    });
    try {
      server(`${elsewhere.address}/mcp`, {});
      await run();
      assert.ok(seen.length > 0);
      assert.deepEqual([...new Set(seen)], [undefined]);
    } finally {
      await elsewhere.close();
    }
  });

  it('sends a token along with no redirect', async () => {
    await run();
    const seen: (string | undefined)[] = [];
    const elsewhere = await listen(async ({ headers }, response) => {
      seen.push(headers['authorization']);
      sendJson(response, 401, {});
    });
    servers.faults.redirect = `${elsewhere.address}/mcp`;
    try {
      const ran = await run();
      assert.match(noticesOf(ran), /not followed/);
      assert.deepEqual(seen, []);
    } finally {
      await elsewhere.close();
    }
  });

  it('ends with a cancellation and waits for nobody, while the person is at the page', async function () {
    // Minutes would pass until it gives up.
    this.timeout(60_000);
    const control = new AbortController();
    const signIn = port(
      (_url, _state, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          control.abort();
        }),
    );
    const { events } = await run({ signIn, signal: control.signal });
    const end = events.at(-1);
    assert.ok(end?.type === 'run_end' && end.outcome === 'cancelled');
  });

  it('signs in over the older of the two ways as well, and renews there', async () => {
    server(servers.sseUrl, undefined, { type: 'sse' });
    const ran = await run();
    assert.match(resultOf(ran), /"authorization":"Bearer \[redacted\]"/);
    assert.match(resultOf(ran), /"x-note":"\[redacted\]"/);
    servers.expire();
    assert.match(resultOf(await run()), /Bearer/);
    assert.equal(visited.length, 1);
    assertClean(ran);
  });

  describe('where clients are known beforehand', () => {
    const secretly = { oauth: { clientId: 'telos-desk', clientSecret: `\${CLIENT_SECRET}` } };
    beforeEach(() => {
      servers.faults.registersNobody = true;
    });
    const registrations = (): string[] => paths('authorization').filter(what => what === 'POST /register');

    it('says how to name one, and asks nobody', async () => {
      const ran = await run();
      assert.match(
        noticesOf(ran),
        /does not issue client ids; .*.*vscode:\/\/telos\.telos\/mcp\/callback .*"oauth"/,
      );
      assert.deepEqual([visited, signIns()], [[], []]);
    });

    it('uses the one of mcp.json, and renews with it', async () => {
      servers.know('telos-desk', redirect);
      server(undefined, undefined, { oauth: { clientId: 'telos-desk' } });
      assert.match(resultOf(await run()), /Bearer/);
      assert.equal(visited[0]?.searchParams.get('client_id'), 'telos-desk');
      servers.expire();
      assert.match(resultOf(await run()), /Bearer/);
      assert.equal(visited.length, 1);
      assert.deepEqual(registrations(), []);
    });

    it('uses it where others could register, too', async () => {
      servers.faults.registersNobody = false;
      servers.know('telos-desk', redirect);
      server(undefined, undefined, { oauth: { clientId: 'telos-desk' } });
      assert.match(resultOf(await run()), /Bearer/);
      assert.deepEqual(registrations(), []);
    });

    it('sends its secret to the authorization server alone, and shows it nowhere', async () => {
      servers.know('telos-desk', redirect, clientSecret);
      server(undefined, undefined, secretly);
      const ran = await run();
      assert.match(resultOf(ran), /Bearer/);
      servers.expire();
      assert.match(resultOf(await run()), /Bearer/);
      assert.equal(visited.length, 1);
      assert.ok(!ran.shown.includes(clientSecret));
      assert.ok(!JSON.stringify([...secrets, visited, servers.seen.mcp]).includes(clientSecret));
      assertClean(ran);
    });

    describe('by the address of a document', () => {
      const document = 'https://garden.example/telos.json';
      const named = (address: string | undefined): SignInPort => ({
        ...port(),
        clientDocument: async () => address,
      });

      it('uses it where such are taken, renews with it, and takes another one that is set later', async () => {
        servers.faults.takesDocuments = true;
        for (const address of [document, `${document}?2`]) servers.know(address, redirect);
        assert.match(resultOf(await run({ signIn: named(document) })), /Bearer/);
        assert.equal(visited[0]?.searchParams.get('client_id'), document);
        servers.expire();
        assert.match(resultOf(await run({ signIn: named(`${document}?2`) })), /Bearer/);
        assert.equal(visited.length, 1);
        servers.expire();
        servers.faults.refusesRefresh = true;
        assert.match(resultOf(await run({ signIn: named(`${document}?2`) })), /Bearer/);
        assert.equal(visited[1]?.searchParams.get('client_id'), `${document}?2`);
        assert.deepEqual(registrations(), []);
      });

      it('registers where none are taken, and keeps to the client of mcp.json', async () => {
        servers.faults.registersNobody = false;
        assert.match(resultOf(await run({ signIn: named(document) })), /Bearer/);
        assert.equal(registrations().length, 1);
        servers.faults.takesDocuments = true;
        servers.know('telos-desk', redirect);
        secrets.clear();
        server(undefined, undefined, { oauth: { clientId: 'telos-desk' } });
        assert.match(resultOf(await run({ signIn: named(document) })), /Bearer/);
        assert.equal(visited[1]?.searchParams.get('client_id'), 'telos-desk');
      });

      it('asks nobody if the address is not one that a server may take', async () => {
        servers.faults.takesDocuments = true;
        for (const address of [
          'http://garden.example/telos.json',
          'https://garden.example/',
          'https://me@garden.example/a',
          'none',
        ]) {
          const ran = await run({ signIn: named(address) });
          assert.match(noticesOf(ran), /client id document is not https with a path/, address);
        }
        assert.deepEqual([visited, signIns()], [[], []]);
        // Where no document is taken, and for a renewal, it does not matter.
        servers.faults.takesDocuments = false;
        servers.faults.registersNobody = false;
        assert.match(resultOf(await run({ signIn: named('none') })), /Bearer/);
        servers.expire();
        servers.faults.takesDocuments = true;
        assert.match(resultOf(await run({ signIn: named('none') })), /Bearer/);
        assert.equal(visited.length, 1);
      });
    });

    it('says that a wrong one is refused', async () => {
      servers.know('telos-desk', redirect, 'another-secret');
      server(undefined, undefined, secretly);
      const ran = await run();
      assert.match(noticesOf(ran), /its sign-in failed/);
      assert.ok(!ran.shown.includes(clientSecret));
    });

    it('takes it to no other authorization server later', async () => {
      servers.know('telos-desk', redirect, clientSecret);
      server(undefined, undefined, secretly);
      await run();
      const [[name, text] = ['', '{}']] = [...secrets];
      const kept = JSON.parse(text);
      secrets.set(name, JSON.stringify({ known: { ...kept.known, issuer: 'https://before.example' } }));
      const ran = await run();
      assert.match(noticesOf(ran), /belongs to https:\/\/before\.example/);
      assert.equal(visited.length, 1);
    });
  });

  describe('when a call wants more rights', () => {
    const tokenRequests = (): number => paths('authorization').filter(what => what === 'POST /token').length;
    const callsSeen = (): number => servers.seen.mcp.filter(({ body }) => body.includes('tools/call')).length;

    it('asks once more, says what for, and makes the call again', async () => {
      await run();
      servers.faults.callScope = 'post:send';
      const ran = await run();
      assert.match(resultOf(ran), /^\{.*Bearer/);
      assert.equal(signIns().length, 2);
      assert.match(signIns()[1]?.reason ?? '', /once more, for more rights \(post:send\), at http/);
      assert.equal(visited[1]?.searchParams.get('scope'), 'post:send');
      const shown = ran.events.map(({ type }) => type);
      assert.ok(shown.indexOf('tool_start') < shown.lastIndexOf('approval_request'));
      assert.ok(shown.lastIndexOf('approval_response') < shown.indexOf('tool_end'));
      assertClean(ran);
      // What was given is kept for the next run, with what had been given before.
      servers.faults.callScope = 'post:read';
      await run();
      assert.equal(visited[2]?.searchParams.get('scope'), 'post:send post:read');
      await run();
      assert.equal(visited.length, 3);
    });

    it('asks only once in a run, whatever comes of it', async () => {
      await run();
      const before = [tokenRequests(), callsSeen()];
      Object.assign(servers.faults, { callScope: 'post:send', givesScope: 'nothing' });
      const ran = await run();
      assert.match(resultOf(ran), /failed: .*HTTP 403/);
      assert.equal(visited.length, 2);
      assert.deepEqual([tokenRequests(), callsSeen()], [before[0]! + 1, before[1]! + 2]);
    });

    it('goes on with an error that says so when the person refuses', async () => {
      await run();
      servers.faults.callScope = 'post:send';
      const ran = await run({ person: human('mcp.authorize') });
      assert.match(resultOf(ran), /failed: .*Not now/);
      assert.match(noticesOf(ran), /without more rights at the MCP server 'mail'/);
      assert.equal(visited.length, 1);
      assert.equal(ran.events.at(-1)?.type, 'run_end');
    });

    it('goes on with an error that says so when it fails', async () => {
      await run();
      Object.assign(servers.faults, { callScope: 'post:send', denies: true });
      const ran = await run();
      assert.match(resultOf(ran), /sign-in for more rights failed: .*You have said no/);
    });

    it('asks over the older of the two ways as well', async () => {
      server(servers.sseUrl, undefined, { type: 'sse' });
      await run();
      servers.faults.callScope = 'post:send';
      assert.match(resultOf(await run()), /^\{.*Bearer/);
      assert.equal(visited.length, 2);
    });
  });

  it('says where it could be made, where nobody can make it', async () => {
    const ran = await run({ nowhere: true });
    assert.match(noticesOf(ran), /requires a sign-in .*only an editor can ask.*"headers"/);
    assert.deepEqual([visited, signIns()], [[], []]);
  });
});
