/** Cases on what the chat view draws, what it asks its host for, and what the editor shows of hostile names. */
import { readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { readToHost } from '../../../src/extension/chatMessages.ts';
import { chatPage } from '../../../src/extension/chatPage.ts';
import { openableFile, openableLink } from '../../../src/extension/openTarget.ts';
import { PendingApprovals } from '../../../src/extension/pendingApprovals.ts';
import { plainLabel } from '../../../src/extension/plainLabel.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';
import { runAgent } from '../agentRun.ts';
import { fieldsOf, textsOf } from '../caseFile.ts';
import { type ChatWindow, openChat, showAnswer } from '../chatWindow.ts';
import type { Seen } from '../judge.ts';
import type { World } from '../world.ts';

/** What an answer may consist of; everything else in it has come from hostile text. */
const drawn =
  'p,strong,em,del,code,pre,span,ul,ol,li,table,thead,tbody,tr,th,td,a,h1,h2,h3,h4,h5,h6,blockquote,hr,br,div,section,button,input';

const noRequest = 'any network request from the webview (canary on 127.0.0.1:$PORT sees 0 hits)';

export async function webviewMarkdown(world: World): Promise<Seen> {
  const { input } = world;
  const pieces = input['chunks'] ? textsOf(input['chunks']) : [String(input['markdown'])];
  const chat = await openChat();
  try {
    await showAnswer(chat, pieces);
    const whole = pieces.join('');
    return whole.length > 1_000_000 ? await seenOfLong(chat) : await seenOf(world, chat, whole);
  } finally {
    await chat.close();
  }
}

export async function seenOf(world: World, chat: ChatWindow, markdown: string): Promise<Seen> {
  const { page, strayed } = chat;
  await delay(150); // what loads by itself has had its time
  const first = await page.evaluate(allowed => {
    const answer = [...document.querySelectorAll('.markdown')];
    const nodes = answer.flatMap(element => [...element.querySelectorAll('*')]);
    return {
      text: answer.map(element => (element as HTMLElement).innerText).join('\n'),
      strange: nodes.filter(node => !node.matches(allowed)).map(node => node.outerHTML),
      handlers: nodes.flatMap(node => node.getAttributeNames()).filter(name => /^on|^src|^style$/.test(name)),
      links: answer
        .flatMap(element => [...element.querySelectorAll('a')])
        .map(link => link.getAttribute('href')),
      loaded: document.querySelectorAll('img, iframe, object, embed, base, link:not([rel=stylesheet])')
        .length,
      pollution: 'hit' in window,
    };
  }, drawn);
  const bySelf = (await chat.posted()).filter(({ type }) => type !== 'ready');
  for (const link of await page.locator('.markdown a').all()) {
    await link.click();
    await link.click({ button: 'middle' });
  }
  await delay(50);
  const opened = (await chat.posted()).flatMap(message =>
    message.type === 'open_link' ? [openableLink(message.url)] : [],
  );
  const expected =
    /!?\[([^\]]+)\]/.exec(markdown)?.[1] ?? /[\w<].{0,7}/.exec(markdown.replace(/^```\w+\n/, ''))?.[0];
  const isPlain = first.strange.length + first.handlers.length + first.loaded === 0;
  const harmless = opened.every(url => url === undefined || /^(https?|mailto):/.test(url));
  return {
    decision: isPlain ? 'render' : 'execute',
    facts: {
      'safe text visible': first.text.includes(expected ?? '\0') || first.text,
      [noRequest.replace('$PORT', String(world.port))]: world.knocks.length > 0,
      [noRequest]: world.knocks.length > 0,
      'script execution':
        bySelf.length > 0 || first.pollution || strayed.some(one => one.startsWith('dialog')),
      navigation: strayed.length > 0 || !harmless,
      ...(await richFacts(chat, opened)),
    },
  };
}

async function richFacts(
  { page }: ChatWindow,
  opened: readonly (string | undefined)[],
): Promise<Seen['facts']> {
  const found = await page.evaluate(() =>
    [':is(h1,h2,h3,h4,h5,h6)', 'ul li', 'table td', 'pre code', 'a[href="https://example.com"]'].filter(
      part => document.querySelector(`.markdown ${part}`) === null,
    ),
  );
  // The host hands an address to the editor, which asks before it opens one.
  const byHost = /openableLink\(url\);\s*if \(link\) await vscode\.env\.openExternal\(/.test(extensionText());
  return {
    'heading, list, table, code, link all present': found.length === 0 || found.join(),
    "clicking the link goes through the extension's open-external prompt":
      byHost && opened.length > 0 && opened.every(url => url === 'https://example.com/'),
  };
}

async function seenOfLong({ page }: ChatWindow): Promise<Seen> {
  const more = page.locator('.markdown').getByRole('button', { name: /show (all|more)/i });
  await more
    .first()
    .waitFor({ timeout: 5000 })
    .catch(() => undefined);
  const isCollapsed = (await more.count()) > 0;
  const longest = await page.evaluate(() => (window as unknown as { longest: number }).longest);
  const sentence = "UI thread never blocked > 200 ms; collapsed with 'show more'";
  return {
    decision: 'render',
    facts: {
      [sentence]: (isCollapsed && longest <= 200) || `blocked for ${longest} ms, collapsed: ${isCollapsed}`,
    },
  };
}

const extensionSource = fileURLToPath(new URL('../../../src/extension', import.meta.url));

/** All of the extension's own code as text. */
const extensionText = (): string =>
  readdirSync(extensionSource, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(name => readFileSync(join(extensionSource, name), 'utf8'))
    .join('\n');

export async function webviewHtml(): Promise<Seen> {
  const parts = {
    cspSource: 'https://view.example',
    scriptUri: 'https://view.example/a.js',
    styleUri: 'https://view.example/a.css',
  };
  const pages = [chatPage(parts), chatPage(parts)];
  const policies = pages.map(
    page => /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)?.[1] ?? '',
  );
  const directives = new Map(
    policies[0]!.split(';').map(one => {
      const [name = '', ...values] = one.trim().split(/\s+/);
      return [name, values.join(' ')] as const;
    }),
  );
  const values = [...directives.values()].map(value => value.replaceAll(parts.cspSource, ''));
  const nonces = policies.map(policy => /'nonce-([^']+)'/.exec(policy)?.[1] ?? '');
  const bits = Buffer.from(nonces[0]!, 'base64').length * 8;
  const source = extensionText();
  const roots = [...source.matchAll(/localResourceRoots: \[([^\]]*)\]/g)].map(match => match[1]!.trim());
  const is = (name: string, value: string): boolean => directives.get(name) === value;
  return {
    decision: 'render',
    facts: {
      "meta CSP starts with default-src 'none'": policies[0]!.startsWith("default-src 'none';"),
      'img-src is cspSource and data: only': is('img-src', `${parts.cspSource} data:`),
      'no https:, http:, * in any directive': !values.some(value => /https?:|\*/.test(value)),
      'script-src nonce only, >= 128 bits, new per load':
        is('script-src', `'nonce-${nonces[0]}'`) && bits >= 128 && nonces[0] !== nonces[1],
      'no unsafe-inline in script-src, no unsafe-eval': !/unsafe-/.test(
        directives.get('script-src') ?? 'unsafe-',
      ),
      "form-action 'none'; base-uri 'none'; connect-src absent or 'none'":
        (is('form-action', "'none'") && is('base-uri', "'none'") && !directives.has('connect-src')) ||
        policies[0]!,
      // The folder of the view's built files, which lies in `dist`; `media` holds nothing that the view needs.
      'localResourceRoots is the media folder only':
        (roots.length > 0 && roots.every(root => root === 'built')) || roots.join(' and '),
      'enableCommandUris not set': !source.includes('enableCommandUris'),
    },
  };
}

export async function webviewMessage(world: World): Promise<Seen> {
  const message = fieldsOf(world.input['message']);
  return message['type'] === 'approve' ? guessedApproval(world) : openedFile(world, message);
}

/** A real run asks, and the view answers in every way but the right one, then in the right one twice. */
async function guessedApproval(world: World): Promise<Seen> {
  const given = world.input['message'];
  let request: ApprovalRequest | undefined;
  const answers: boolean[] = [];
  const yes = { allow: true, scope: 'once' } as const;
  const file = join(world.out, 'approved');
  const pending = new PendingApprovals(asked => {
    request = asked;
    for (const guess of ['guessed', asked.callId, 'toolu_0', '0', '1', '', asked.tool])
      answers.push(pending.answer(guess, yes));
    setTimeout(() => {
      answers.push(pending.answer(asked.token, yes), pending.answer(asked.token, yes));
    }, 20);
  });
  const command = `echo x >> '${file}'`;
  const run = await runAgent(world, [{ name: 'run_command', input: { command } }], { human: pending });
  const token = (request as ApprovalRequest | undefined)?.token ?? '';
  const bits = /^[\w-]+$/.test(token) ? token.length * 6 : 0;
  const once =
    world.read(file) === 'x\n' && answers.join() === 'false,false,false,false,false,false,false,true,false';
  const sentence = 'unknown or already-settled request ids ignored; ids >= 128-bit random; one use';
  return {
    decision: readToHost(given) === undefined ? 'deny' : 'allow',
    facts: {
      [sentence]:
        (once && bits >= 128) || `${answers}, ${bits} bits of chance, ${JSON.stringify(run.results)}`,
    },
  };
}

/** The message as the case has it, and the one by which this view opens files. */
async function openedFile(world: World, message: object): Promise<Seen> {
  const path = String(fieldsOf(message)['path']);
  const folders = [world.work, world.pack];
  const opened = [
    await openableFile(path, folders, world.work),
    await openableFile(join(world.work, path), folders, undefined),
    await openableFile(join(world.home, '.ssh/id_rsa'), folders, world.work),
    await openableFile(join(homedir(), '.ssh/id_rsa'), folders, world.work),
  ].filter(Boolean);
  const own = await openableFile('a.txt', folders, world.work);
  const ignored = readToHost(message) === undefined;
  return {
    decision: ignored && opened.length === 0 ? 'deny' : 'allow',
    facts: {
      'only files the run touched or workspace files':
        own === join(world.work, 'a.txt') && opened.length === 0,
    },
  };
}

/** As VS Code finds links in a notification. */
const notificationLink = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: "([^"]+)")?\)/gi;

export async function notification(world: World): Promise<Seen> {
  const text = String(world.input['text']);
  const shown = plainLabel(text);
  if (!notificationLink.test(text)) throw new Error('the case holds no link');
  notificationLink.lastIndex = 0;
  const literal = shown.includes('Fix') && shown.includes('command:workbench.action.terminal.new');
  return {
    decision: 'render',
    facts: {
      'link syntax broken up; literal text shown': (!notificationLink.test(shown) && literal) || shown,
    },
  };
}

/** What becomes of a text in the two ways in which the extension gives texts of others to hovers: plain, or with every sign escaped. */
export async function markdownString(world: World): Promise<Seen> {
  const text = String(world.input['text']);
  const { outputFiles } = await build({
    entryPoints: [join(extensionSource, 'native/plainMarkdown.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    logLevel: 'silent',
    plugins: [
      {
        name: 'editor',
        setup(plugins) {
          plugins.onResolve({ filter: /^vscode$/ }, () => ({ path: 'vscode', namespace: 'editor' }));
          plugins.onLoad({ filter: /.*/, namespace: 'editor' }, () => ({
            contents: 'export class MarkdownString { constructor(value) { this.value = value; } }',
          }));
        },
      },
    ],
  });
  const code = Buffer.from(outputFiles[0]!.contents).toString('base64');
  const { plainMarkdown } = await import(`data:text/javascript;base64,${code}`);
  const made = plainMarkdown(text);
  const source = extensionText();
  const switches =
    /isTrusted\s*[:=]\s*(?!\(|=)(?:true|\{)|supportHtml\s*[:=]\s*true|supportThemeIcons\s*[:=]\s*true/;
  const makers = [...source.matchAll(/new vscode\.MarkdownString\(([^;]*?)\)[,;]/g)].map(match => match[1]!);
  const ownWords = makers.every(words =>
    /^(escapeMarkdown\(text\)|says|`\*\*\$\{known\.name\}.*)/.test(words),
  );
  const escaped = !/(?<!\\)[$[\]()]/.test(made.value) && !made.isTrusted && !made.supportHtml;
  const sentence = 'isTrusted false, supportHtml false, supportThemeIcons false; appendText for data';
  const holds = escaped && !switches.test(source) && ownWords && makers.length > 0;
  return {
    decision: 'render',
    facts: { [sentence]: holds || `${made.value} ${switches.exec(source)?.[0]} ${makers.join(' | ')}` },
  };
}
