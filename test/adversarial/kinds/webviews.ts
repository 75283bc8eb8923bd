/** Cases on what the chat view draws, what it asks its host for, and what the editor shows of hostile names. */
import { readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { plainLabel } from '../../../src/extension/base/labels.ts';
import { webviewPage } from '../../../src/extension/base/webviewPage.ts';
import { openableFile, openableLink, readToHost } from '../../../src/extension/chat/chatMessages.ts';
import { PendingApprovals } from '../../../src/extension/chat/chatRuns.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';
import { runAgent } from '../agentRun.ts';
import { fieldsOf, textsOf } from '../caseFile.ts';
import { type ChatWindow, openChat, showAnswer } from '../chatWindow.ts';
import { applying, check, inTime, type Seen } from '../checks.ts';
import type { World } from '../world.ts';

/** What an answer may consist of; everything else in it has come from hostile text. */
const drawn =
  'p,strong,em,del,code,pre,span,ul,ol,li,table,thead,tbody,tr,th,td,a,h1,h2,h3,h4,h5,h6,blockquote,hr,br,div,section,button,input';

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
    // A diagram is the page's own: a picture without an address, drawn in a frame that may reach nothing.
    const isDiagram = (node: Element): boolean =>
      node.matches(
        '.diagram, .diagram > img[alt][src^="data:image/svg+xml"], .diagram-frame[sandbox="allow-scripts"]',
      );
    const nodes = answer
      .flatMap(element => [...element.querySelectorAll('*')])
      .filter(node => !isDiagram(node));
    return {
      text: answer.map(element => (element as HTMLElement).innerText).join('\n'),
      strange: nodes.filter(node => !node.matches(allowed)).map(node => node.outerHTML),
      handlers: nodes.flatMap(node => node.getAttributeNames()).filter(name => /^on|^src|^style$/.test(name)),
      links: answer
        .flatMap(element => [...element.querySelectorAll('a')])
        .map(link => link.getAttribute('href')),
      loaded: [
        ...document.querySelectorAll('img, iframe, object, embed, base, link:not([rel=stylesheet])'),
      ].filter(node => !isDiagram(node)).length,
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
  const words = wordsOf(markdown);
  const isPlain = first.strange.length + first.handlers.length + first.loaded === 0;
  const harmless = opened.every(url => url === undefined || /^(https?|mailto):/.test(url));
  return {
    decision: isPlain ? 'render' : 'execute',
    checks: applying(
      check('network', 'nothing is loaded', world.knocks.length === 0 || world.knocks.join()),
      check(
        'end',
        'no script runs',
        bySelf.length === 0 && !first.pollution && !strayed.some(one => one.startsWith('dialog')),
      ),
      check(
        'network',
        'the page stays, and no link leads to a command',
        (strayed.length === 0 && harmless) || [...strayed, ...opened].join(),
      ),
      words.length > 0 &&
        check('shown', 'the words are shown', words.some(word => first.text.includes(word)) || first.text),
      ...(await ofParts(chat, markdown, opened)),
    ),
  };
}

/** Words that are seen whatever becomes of the marks around them: the label of a link, else any. */
function wordsOf(markdown: string): string[] {
  const label = /!?\[([^\]]+)\][([]/.exec(markdown)?.[1];
  const text = markdown.replace(/^```\w+$/gm, '').replace(/^\[[^\]]+\]:.*$/gm, '');
  return label?.match(/\w+/g) ?? text.match(/\w+/g) ?? [];
}

/** The parts of plain Markdown are drawn as such. */
async function ofParts(
  { page }: ChatWindow,
  markdown: string,
  opened: readonly (string | undefined)[],
): Promise<Seen['checks']> {
  // Raw HTML changes how the marks beside it are read.
  const isPure = !/<[a-z!/]|\\/i.test(markdown);
  const marks: [RegExp, string][] = [
    [/^#{1,6} \w/m, ':is(h1,h2,h3,h4,h5,h6)'],
    [/^[-*] \w/m, 'ul li'],
    [/^\|.*\|\n\|[-| :]+\|$/m, 'table td'],
    [/^```\w*\n[\s\S]+\n```$/m, 'pre code'],
    [/(?<!!)\[\w+\]\(https:\/\/[^\s)]+\)/, 'a[href^="https://"]'],
  ];
  const wanted = marks.filter(([mark]) => isPure && mark.test(markdown)).map(([, part]) => part);
  const missing = await page.evaluate(
    parts => parts.filter(part => document.querySelector(`.markdown ${part}`) === null),
    wanted,
  );
  const target = /(?<!!)\[\w+\]\((https:\/\/[^\s)]+)\)/.exec(markdown)?.[1];
  // The host hands an address to the editor, which asks before it opens one.
  const byHost = /openableLink\(url\);\s*if \(link\) await vscode\.env\.openExternal\(/.test(extensionText());
  return applying(
    wanted.length > 0 &&
      check(
        'shown',
        'headings, lists, tables, code and links are drawn',
        missing.length === 0 || missing.join(),
      ),
    isPure &&
      target &&
      check(
        'network',
        'a link is opened by the editor, which asks',
        byHost && opened.length > 0 && opened.every(url => url === new URL(target).href),
      ),
  );
}

async function seenOfLong({ page }: ChatWindow): Promise<Seen> {
  const more = page.locator('.markdown').getByRole('button', { name: /show (all|more)/i });
  await more
    .first()
    .waitFor({ timeout: 5000 })
    .catch(() => undefined);
  const isCollapsed = (await more.count()) > 0;
  const longest = await page.evaluate(() => (window as unknown as { longest: number }).longest);
  return {
    decision: 'render',
    checks: [
      check('time', 'the view is never held for more than 200 ms', longest <= inTime(200) || `${longest} ms`),
      check('shown', 'the answer is collapsed, and the rest can be asked for', isCollapsed),
    ],
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
  const pages = [webviewPage(parts), webviewPage(parts)];
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
    checks: [
      check(
        'shown',
        'the policy starts with nothing allowed',
        policies[0]!.startsWith("default-src 'none';"),
      ),
      check('network', 'images come from the view alone', is('img-src', `${parts.cspSource} data:`)),
      check('network', 'no directive names the network', !values.some(value => /https?:|\*/.test(value))),
      check(
        'end',
        'scripts need a nonce of 128 bits, new for each page',
        is('script-src', `'nonce-${nonces[0]}'`) && bits >= 128 && nonces[0] !== nonces[1],
      ),
      check(
        'end',
        'nothing unsafe is allowed to scripts',
        !/unsafe-/.test(directives.get('script-src') ?? 'unsafe-'),
      ),
      check(
        'network',
        'no form, no base and no connection',
        (is('form-action', "'none'") && is('base-uri', "'none'") && !directives.has('connect-src')) ||
          policies[0]!,
      ),
      // The folder of the view's built files, which lies in `dist`; `media` holds nothing that the view needs.
      check(
        'files',
        'the view reads its own built files alone',
        (roots.length > 0 && roots.every(root => root === 'built')) || roots.join(' and '),
      ),
      check('end', 'commands are no links', !source.includes('enableCommandUris')),
    ],
  };
}

export async function webviewMessage(world: World): Promise<Seen> {
  const message = fieldsOf(world.input['message']);
  if (message['type'] === 'approve') return guessedApproval(world);
  return typeof message['path'] === 'string' ? openedFile(world, message) : strangeMessage(world);
}

/** Any other message: what the host does not know it ignores, and an address that it knows is one of the web. */
async function strangeMessage(world: World): Promise<Seen> {
  const read = readToHost(world.input['message']);
  const url = fieldsOf(world.input['message'])['url'];
  const opened = typeof url === 'string' ? openableLink(url) : undefined;
  const isWeb = opened === undefined || /^(https?|mailto):/.test(opened);
  return {
    decision: read === undefined || (typeof url === 'string' && opened === undefined) ? 'deny' : 'allow',
    checks: [check('network', 'no link leads to a command or a file', isWeb || opened)],
  };
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
  return {
    decision: readToHost(given) === undefined ? 'deny' : 'allow',
    checks: [
      check(
        'files',
        'a guess does nothing, and an answer counts once',
        once || `${answers}, ${JSON.stringify(run.results)}`,
      ),
      check('shown', 'what is answered cannot be guessed', bits >= 128 || `${bits} bits of chance`),
    ],
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
    checks: [
      check('files', 'files of the run are opened', own === join(world.work, 'a.txt')),
      check('files', 'no others are', opened.length === 0 || opened.join()),
    ],
  };
}

/** As VS Code finds links in a notification. */
const notificationLink = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: "([^"]+)")?\)/gi;

export async function notification(world: World): Promise<Seen> {
  const text = String(world.input['text']);
  const shown = plainLabel(text);
  const words = text.match(/\w{3,}/g) ?? [];
  const literal = words.every(word => shown.includes(word));
  return {
    decision: 'render',
    checks: [
      check('shown', 'nothing in it is a link', !new RegExp(notificationLink).test(shown) || shown),
      check('shown', 'its words are shown', literal || shown),
      check('shown', 'nothing in it is an icon', !/(?<!\\)\$\([\w-]+\)/.test(shown) || shown),
    ],
  };
}

/** What becomes of a text in the two ways in which the extension gives texts of others to hovers: plain, or with every sign escaped. */
export async function markdownString(world: World): Promise<Seen> {
  const text = String(world.input['text']);
  const { outputFiles } = await build({
    entryPoints: [join(extensionSource, 'base/labels.ts')],
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
            contents: '',
          }));
        },
      },
    ],
  });
  const code = Buffer.from(outputFiles[0]!.contents).toString('base64');
  const { escapeMarkdown } = await import(`data:text/javascript;base64,${code}`);
  const made: string = escapeMarkdown(text);
  const source = extensionText();
  const switches =
    /isTrusted\s*[:=]\s*(?!\(|=)(?:true|\{)|supportHtml\s*[:=]\s*true|supportThemeIcons\s*[:=]\s*true/;
  const makers = [...source.matchAll(/new vscode\.MarkdownString\(([^;]*?)\)[,;]/g)].map(match => match[1]!);
  const ownWords = makers.every(words =>
    /^(escapeMarkdown\(text\)|says|`\*\*\$\{known\.name\}.*)/.test(words),
  );
  const escaped = !/(?<!\\)[$[\]()]/.test(made);
  return {
    decision: 'render',
    checks: [
      check('shown', 'each sign of it is escaped', escaped || made),
      check(
        'end',
        'no such text is trusted, holds HTML or icons',
        !switches.test(source) || String(switches.exec(source)?.[0]),
      ),
      check(
        'shown',
        'no other text of others is made so',
        (ownWords && makers.length > 0) || makers.join(' | '),
      ),
    ],
  };
}
