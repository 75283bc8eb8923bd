/** Types every command of README and docs as a reader does: page by page, in their order, each page in a home of its own. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { type Page, readPages, root, shellBlocks } from '../docs/pages.ts';
import { type AnthropicTurn, type ReceivedRequest, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { botToken, DiscordServer } from '../fakes/discordServer.ts';
import { type GitDaemon, gitDaemon } from '../fakes/gitDaemon.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { commitFiles, type SourceServers, sourceServers } from '../fakes/sourceServers.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { answersOf, approves, calls, once, type StepModel, writes } from '../plan/planWorld.ts';
import { program } from './cliProcess.ts';

/** How a command is typed that does not simply end with 0. */
interface Particular {
  command: RegExp;
  /** The test that shows it. Here it would fetch, build, or take minutes. */
  shownBy?: string;
  /** It leaves nothing behind and depends on nothing: once on one page is enough. */
  once?: boolean;
  /** It goes on until Ctrl-C, which is typed once it has said this. */
  goesOn?: RegExp;
  /** Typed as its answers. */
  input?: string;
  /** What a reader then sees. */
  says?: RegExp;
}

const key = 'sk-ant-good-0123456789';
const particulars: readonly Particular[] = [
  { command: /^npm (?:ci|test)$/, shownBy: '.ci/run' },
  { command: /^npm start$/, shownBy: 'test/e2e/start.test.ts' },
  { command: /^npm (?:pack|install )/, shownBy: 'test/cli/package.test.ts' },
  { command: /^telos worker --try$/, shownBy: 'test/fleet/try.test.ts' },
  { command: /^telos notify test$/, shownBy: 'test/cli/notifyCommand.test.ts' },
  { command: /^telos key/, input: `${key}\n` },
  { command: /^telos chat$/, input: '/help\n' },
  { command: /^telos bot$/, goesOn: /is ready/ },
  { command: /^telos (?:context-server|acp)/, input: '' },
  { command: /^telos --provider azure/, shownBy: 'test/engine/providers/azure.test.ts' },
  { command: /^telos --provider bedrock/, shownBy: 'test/engine/providers/bedrock.test.ts' },
  { command: /^telos --provider vertex/, shownBy: 'test/engine/providers/vertex.test.ts' },
  { command: /--help$|^telos (?:help|--version)|^npx .*--version/, once: true },
  { command: /^telos demo/, once: true, says: /Your plan is in `today\.md`/ },
  { command: /^telos --dry-run "run daily kickoff"/, says: /Would run kickoff \(kairos\)/ },
  { command: /^telos doctor$/, says: /Settings:[\s\S]*Folders:/ },
  { command: /^telos "write a haiku"/, says: /haiku \(me\)/ },
  { command: /^telos plan doctor/, says: /^(?!.*Stops plans)/s },
  { command: /^telos plan demo/, once: true, says: /done, 4 of 4 stories passed/ },
  { command: /^telos plan run/, says: /done, (\d) of \1 stories? passed/ },
  { command: /^telos plan quick/, says: /done, 1 of 1 stor/ },
  { command: /^telos eval$/, says: /0 failed/ },
  { command: /^telos mcp list --start/, says: /clock.*\b1 tool/ },
  { command: /^telos install .*--list/, says: /haiku-notes/ },
  { command: /^telos schedule list/, says: /weekdays 08:30/ },
  { command: /^telos undo --list/, says: /\S/ },
];

/** A server of the reader's, with one tool. */
const clock = `import { createInterface } from 'node:readline';
import { createHash } from 'node:crypto';
const tools = [{ name: 'now', description: 'Says the time', inputSchema: { type: 'object' } }];
const frontmatter = { name: 'tell-time', description: 'Says what time it is' };
const text = '---\\nname: tell-time\\ndescription: Says what time it is\\n---\\nSay it.\\n';
const uri = 'skill://tell-time/SKILL.md';
const digest = 'sha256:' + createHash('sha256').update(text).digest('hex');
const capabilities = { tools: {}, resources: {}, extensions: { 'io.modelcontextprotocol/skills': {} } };
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities, serverInfo: { name: 'clock', version: '1' } }),
  'skills/list': () => ({ skills: [{ uri, frontmatter, resources: [{ uri, digest, size: text.length }] }] }),
  'resources/read': () => ({ contents: [{ uri, text }] }),
  'tools/list': () => ({ tools }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method]?.(params) ?? {} }));
}
`;

const project = {
  'tasks.md': '# Tasks\n\n- exercise sheet, to the printer on Friday\n',
  'notes/today.md': 'The workshop is close.\n',
};

const haikuNotes =
  '---\nname: haiku-notes\ndescription: Writes a haiku about notes\n---\nWrite it into haiku.md.\n';

/** What the reader of a page has made before, as the page says. */
const readersFiles: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'docs/messengers.md': { 'home/.config/telos/config.toml': '[discord]\nowners = ["123456789012345678"]\n' },
};

/** The recorded run of the sample's first eval, as turns of a model. */
const kickoff: AnthropicTurn[] = readFileSync(
  join(root, 'media/demo/skills/kairos/skills/kickoff/evals/recordings/1.with_skill.a-scripted-demo.1.jsonl'),
  'utf8',
)
  .trim()
  .split('\n')
  .slice(1)
  .map(line => {
    const { events } = JSON.parse(line);
    const ofType = (type: string) => events.filter((event: { type: string }) => event.type === type);
    const text = ofType('text').map((event: { text: string }) => event.text);
    const toolCalls = ofType('tool_call').map(
      (event: { call: { name: string; input: unknown } }) => event.call,
    );
    return { ...(text.length > 0 && { text }), ...(toolCalls.length > 0 && { toolCalls }) };
  });

/** The word that the page of a plan says, which is also its file. */
const wordIn = ({ body }: ReceivedRequest): string =>
  /a page that says (\w+)/i.exec(JSON.stringify(body?.messages ?? ''))?.[1] ?? 'hello';
const storyOf = (word: string) => ({
  title: 'A greeting',
  description: 'As a reader, I want a greeting.',
  depends_on: [],
  touches: [`${word}.txt`],
  criteria: [`${word}.txt says ${word}`],
  checks: [{ name: 'greets', command: `test -f ${word}.txt` }],
});
const plans: StepModel = {
  plan: (turn, seen, request) => {
    const text = `# A page that says ${wordIn(request)}\n\n## North Star\nA greeting.\n`;
    return once(calls('submit_plan', { text }))(turn, seen, request);
  },
  split: (turn, seen, request) => once(calls('submit_story', storyOf(wordIn(request))))(turn, seen, request),
  coder: (turn, seen, request) =>
    once(writes({ [`${wordIn(request)}.txt`]: 'hello\n' }))(turn, seen, request),
  reviewer: once(approves()),
};

describe('the commands of README and docs', function () {
  this.timeout(240_000);
  let folder: TempFolder;
  let model: FakeServer;
  let keys: Server;
  let sources: SourceServers;
  let discord: DiscordServer;
  let repositories: TempFolder;
  let git: GitDaemon;
  const typed = new Set<string>();

  before(async () => {
    const { turns } = answersOf(plans);
    const answer = (request: ReceivedRequest): AnthropicTurn => {
      const planned = turns(request);
      if (Object.keys(planned).length > 0) return planned;
      const said = JSON.stringify(request.body?.messages ?? '');
      const done = (request.body?.messages ?? []).filter(
        ({ role }: { role: string }) => role === 'assistant',
      ).length;
      if (said.includes('run daily kickoff')) return kickoff[done] ?? { text: ['Done.'] };
      if (said.includes('Plan my day')) return { text: ['Tell me three things, and I make the list.'] };
      return { text: ['Done.'] };
    };
    [model, sources, discord] = await Promise.all([
      startAnthropicServer({ turns: answer }),
      sourceServers(),
      DiscordServer.start(),
    ]);
    keys = createServer(({ headers }, response) => {
      response.writeHead(headers['x-api-key'] === key ? 200 : 401, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ data: [{ id: 'claude-haiku-5-5' }] }));
    });
    await new Promise<void>(resolve => keys.listen(0, '127.0.0.1', resolve));
    repositories = tempFolder({});
    commitFiles(join(repositories.path, 'team/skills.git'), { 'skills/haiku-notes/SKILL.md': haikuNotes });
    git = await gitDaemon(repositories.path);
    sources.github.commit('anthropics/skills', {
      'skills/haiku-notes/SKILL.md': haikuNotes,
      'skills/other/SKILL.md': '---\nname: other\ndescription: Does something else\n---\nDo it.\n',
    });
  });
  after(async () => {
    keys.closeAllConnections();
    keys.close();
    await Promise.all([model.close(), sources.close(), discord.close(), git.close()]);
    repositories.remove();
  });
  afterEach(() => folder.remove());

  /** A home with a project in git, in which `telos` is on the PATH. Returns the variables of its shell. */
  function open(page: Page): Record<string, string> {
    const shim = (file: string): string => `#!/bin/sh\nexec '${process.execPath}' '${file}' "$@"\n`;
    const dist = dirname(program());
    folder = tempFolder({
      'tmp/.keep': '',
      'home/.gitconfig': `[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n${git.config}`,
      'bin/telos': shim(program()),
      'bin/npx': `#!/bin/sh\nname=$1\nshift\n[ "$name" = telos-agent ] && exec '${process.execPath}' '${join(dist, 'agent.js')}' "$@"\nexec '${process.execPath}' '${program()}' "$@"\n`,
      'bin/crontab':
        '#!/bin/sh\nif [ "$1" = -l ]; then [ -f "$HOME/table" ] && cat "$HOME/table"; else cat > "$HOME/table"; fi\n',
      'home/servers/clock.mjs': clock,
      ...Object.fromEntries(Object.entries(project).map(([path, text]) => [`home/project/${path}`, text])),
      ...readersFiles[page.path],
    });
    for (const name of ['telos', 'npx', 'crontab']) spawn('chmod', ['755', join(folder.path, 'bin', name)]);
    const hasKey = !/^telos key/m.test(page.text);
    return {
      HOME: join(folder.path, 'home'),
      TMPDIR: join(folder.path, 'tmp'),
      PATH: `${join(folder.path, 'bin')}:${process.env['PATH']}`,
      ANTHROPIC_BASE_URL: model.url,
      ...(hasKey && { ANTHROPIC_API_KEY: key }),
      OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1',
      DISCORD_BOT_TOKEN: botToken,
      TELOS_DISCORD_API: discord.url,
      TELOS_ROUTING_MODE: 'local',
      ...sources.env,
    };
  }

  /** Types one command, and resolves with all that it said. */
  async function type(script: string, env: Record<string, string>): Promise<string> {
    const bare = script.replace(/\s+#.*$/, '');
    const { goesOn, input, says = /^/ } = particulars.find(({ command }) => command.test(bare)) ?? {};
    const { port } = keys.address() as AddressInfo;
    const asked = /^telos key/.test(bare) ? { ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` } : {};
    const child = spawn('sh', ['-ec', goesOn ? `exec ${script}` : script], {
      cwd: join(folder.path, 'home/project'),
      env: { ...env, ...asked },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    child.stdin?.end(input);
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (goesOn?.test(said)) child.kill('SIGINT');
      });
    const code = await new Promise<number | null>(resolve => child.once('close', resolve));
    if (goesOn) assert.match(said, goesOn, script);
    else assert.equal(code, 0, `${script}\n${said}`);
    assert.match(said, says, `${script}\n${said}`);
    return said;
  }

  /** A block with a document in it is typed whole up to the line after its end. */
  const commandsIn = (page: Page): string[] =>
    shellBlocks(page).flatMap(block =>
      (block.match(/^.*<<'(\w+)'\n[\s\S]*?^\1$|^.+$/gm) ?? []).filter(line => !line.startsWith('#')),
    );

  for (const page of readPages()) {
    const commands = commandsIn(page);
    if (commands.length === 0) continue;
    it(`of ${page.path} all do as it says, in their order`, async () => {
      const env = open(page);
      for (const script of commands) {
        const bare = script.replace(/\s+#.*$/, '');
        const { shownBy, once: isOnce } = particulars.find(({ command }) => command.test(bare)) ?? {};
        if (shownBy) assert.ok(existsSync(join(root, shownBy)), shownBy);
        if (shownBy || (isOnce && typed.has(bare))) continue;
        await type(script, env);
        typed.add(bare);
      }
    });
  }
});
