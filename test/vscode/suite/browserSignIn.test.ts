/** A sign-in at an MCP server as the editor makes it: the browser comes back by an address of the extension, and what it gets lies in the secret storage. */

import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { loadConfig } from '../../../src/engine/config.ts';
import { allowAll } from '../../../src/engine/human.ts';
import { Telos } from '../../../src/engine/telos.ts';
import {
  BrowserSignIn,
  registerUriHandler,
  type SignInEditor,
  signInPath,
} from '../../../src/extension/browserSignIn.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { calls, done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type SignInServers, startSignInServers } from '../../fakes/signInServers.ts';
import { activated } from './editor.ts';

const skillsDir = process.env['TELOS_SKILLS_DIR'] ?? '';
const pack = join(skillsDir, 'sign-in-agent');
const inDesktop = vscode.env.uiKind === vscode.UIKind.Desktop;

describe('the sign-in in the browser', () => {
  let servers: SignInServers;
  let kept: Map<string, string>;
  let said: string[];
  let handler: vscode.UriHandler | undefined;
  const { showWarningMessage, registerUriHandler: register } = vscode.window;

  before(async () => {
    await activated();
    servers = await startSignInServers();
    kept = new Map();
    await mkdir(join(pack, 'skills', 'call'), { recursive: true });
    await writeFile(join(pack, 'skills', 'call', 'SKILL.md'), '---\ndescription: Calls\n---\nCall it.\n');
    await writeFile(
      join(pack, 'mcp.json'),
      JSON.stringify({ mcpServers: { guarded: { url: servers.url } } }),
    );
    Object.assign(vscode.window, {
      showWarningMessage: async (text: string) => void said.push(text),
      registerUriHandler: (given: vscode.UriHandler) => {
        handler = given;
        return { dispose: () => undefined };
      },
    });
  });
  beforeEach(() => {
    said = [];
    servers.expire();
    kept.clear();
  });
  after(async () => {
    Object.assign(vscode.window, { showWarningMessage, registerUriHandler: register });
    await servers.close();
    await rm(pack, { recursive: true });
  });

  /** With the addresses of the editor, and a browser that does at once what `open` does. */
  function signingIn(open: SignInEditor['open'], more: Partial<SignInEditor> = {}): BrowserSignIn {
    const secrets = {
      get: async (name: string) => kept.get(name),
      store: async (name: string, value: string) => void kept.set(name, value),
      delete: async (name: string) => void kept.delete(name),
    };
    const signIn = new BrowserSignIn(secrets as unknown as vscode.SecretStorage, { open, ...more });
    registerUriHandler({ [signInPath]: (_query, written) => signIn.answer(written) });
    return signIn;
  }

  /** As the editor gives an address to the extension: on the desktop with its escapes undone, in a browser as it was sent. */
  async function comeBack(query: URLSearchParams, isDesktop = inDesktop): Promise<void> {
    const parts = { scheme: 'vscode', authority: 'telos.telos', path: signInPath, query: `${query}` };
    const sent = vscode.Uri.from(parts);
    await handler?.handleUri(
      isDesktop ? vscode.Uri.parse(`vscode://telos.telos${signInPath}?${query}`) : sent,
    );
  }

  async function run(signIn: BrowserSignIn, signal = new AbortController().signal): Promise<RunEvent[]> {
    const model = scriptedProvider([
      [calls('1', 'headers', {}), done('tool_use')],
      [says('done'), done()],
    ]);
    const config = loadConfig({ variables: { TELOS_PROVIDER: 'scripted' } });
    const providers = { scripted: { model: async () => 'script', create: async () => model } };
    const events: RunEvent[] = [];
    const skill = { agent: 'sign-in-agent', skill: 'call' };
    for await (const event of Telos.open(config, { providers, signIn }).run(
      { text: 'go', skill },
      allowAll,
      signal,
    ))
      events.push(event);
    return events;
  }

  const browsing =
    (isDesktop = inDesktop) =>
    async (url: string): Promise<boolean> => {
      await comeBack((await servers.browse(url)).searchParams, isDesktop);
      return true;
    };
  const browses = browsing();
  const textOf = (events: RunEvent[]): string => JSON.stringify(events);

  it('comes back by the address of the extension, and keeps what it was given', async () => {
    const opened: URL[] = [];
    const signIn = signingIn(url => {
      opened.push(new URL(url));
      return browses(url);
    });
    assert.match(textOf(await run(signIn)), /Bearer \[redacted\]/);
    const back = decodeURIComponent(opened[0]?.searchParams.get('redirect_uri') ?? '');
    assert.match(back, /telos\.telos.*\/mcp\/callback/);
    assert.equal(kept.size, 1);
    assert.deepEqual(said, []);
  });

  for (const isDesktop of [true, false])
    it(`reads what comes back ${isDesktop ? 'on the desktop' : 'in a browser'}, whatever the code contains`, async () => {
      const signIn = signingIn(browsing(isDesktop), { isDesktop });
      assert.match(textOf(await run(signIn)), /Bearer \[redacted\]/);
      assert.equal(kept.size, 1);
      assert.deepEqual(said, []);
    });

  it('names itself by a document that is set, with the address that such a document lists, but not in a browser', async () => {
    const document = 'https://garden.example/telos.json';
    const set = (value: string | undefined) =>
      vscode.workspace.getConfiguration('telos').update('mcp.clientDocument', value, true);
    const inBrowser = signingIn(browsing(false), { isDesktop: false });
    const signIn = signingIn(browsing(true), { isDesktop: true });
    assert.equal(await signIn.clientDocument(), undefined);
    await set(document);
    try {
      assert.equal(await signIn.clientDocument(), document);
      assert.match(await signIn.redirectUrl(), /^[\w-]+:\/\/telos\.telos\/mcp\/callback$/);
      assert.equal(await inBrowser.clientDocument(), undefined);
      servers.faults.takesDocuments = true;
      servers.know(document, await signIn.redirectUrl());
      assert.match(textOf(await run(signIn)), /Bearer \[redacted\]/);
      assert.match([...kept.values()].join(), /"client_id":"https:\/\/garden\.example\/telos\.json"/);
    } finally {
      delete servers.faults.takesDocuments;
      await set(undefined);
    }
  });

  it('takes no answer that nobody waits for, and the right one only once', async () => {
    let answer = new URLSearchParams();
    const signIn = signingIn(async url => {
      await comeBack(new URLSearchParams({ code: 'stolen', state: 'guessed' }));
      answer = (await servers.browse(url)).searchParams;
      await comeBack(answer);
      await comeBack(answer);
      return true;
    });
    assert.match(textOf(await run(signIn)), /Bearer \[redacted\]/);
    assert.equal(said.length, 2);
    assert.match(said[0] ?? '', /was not waiting for/);
    // Whoever has sent the person there chose its words.
    assert.doesNotMatch(said.join(), /stolen|guessed|code\+/);
  });

  it('ends with the run, and when nobody comes back', async () => {
    const control = new AbortController();
    const left = signingIn(async () => {
      control.abort();
      return true;
    });
    const events = await run(left, control.signal);
    assert.match(textOf(events.slice(-1)), /"outcome":"cancelled"/);
    assert.match(textOf(await run(signingIn(async () => true, { patienceMs: 50 }))), /no one has signed in/);
    assert.match(textOf(await run(signingIn(async () => false))), /the browser could not be opened/);
    for (const secret of servers.given) assert.ok(![...kept.values()].join().includes(secret), secret);
  });
});
