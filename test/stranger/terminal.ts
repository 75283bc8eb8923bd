/** A newcomer on a terminal, with an empty home folder: types the commands of README and docs, and nothing else. */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { openTerminalSession, type TerminalSession } from '../cli/screen.ts';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { sourceServers } from '../fakes/sourceServers.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { copied, copiedBlock, type Step } from './steps.ts';

const key = 'sk-ant-good-0123456789';
const writes = (path: string, content: string): AnthropicTurn => ({
  text: [`I write ${path}.`],
  toolCalls: [{ name: 'write_file', input: { path, content } }],
});
const haiku = 'Two notes and a list\nwait on the desk for the rain\nthe printer is warm\n';

/** Answers that a model gives here, by a word of the request. */
function answers(said: string, done: number): AnthropicTurn {
  if (said.includes('haiku')) return [writes('haiku.md', haiku)][done] ?? { text: ['It is in haiku.md.'] };
  if (said.includes('kickoff'))
    return [writes('today.md', '# Today\n')][done] ?? { text: ['Your plan is in today.md.'] };
  return { text: ['Done.'] };
}

/** Returns the steps, with pictures in `pictures`. */
export async function onTerminal(tarball: string, pictures: string): Promise<Step[]> {
  const said = ({ body }: { body?: { messages?: { role: string }[] } }): AnthropicTurn => {
    const messages = body?.messages ?? [];
    return answers(JSON.stringify(messages), messages.filter(({ role }) => role === 'assistant').length);
  };
  const [model, sources] = await Promise.all([startAnthropicServer({ key, turns: said }), sourceServers()]);
  const folder = tempFolder({ 'home/.keep': '', 'home/work/tasks.md': '# Tasks\n', 'tmp/.keep': '' });
  const home = join(folder.path, 'home');
  sources.github.commit('anthropics/skills', {
    'skills/haiku-notes/SKILL.md':
      '---\nname: haiku-notes\ndescription: Writes a haiku about notes\n---\nWrite it.\n',
  });
  const env = {
    HOME: home,
    TMPDIR: join(folder.path, 'tmp'),
    PATH: `${join(home, '.local/bin')}:${dirname(process.execPath)}:${process.env['PATH']}`,
    // As for everybody who has Node from elsewhere than the system.
    npm_config_prefix: join(home, '.local'),
    ANTHROPIC_BASE_URL: model.url,
    OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1',
    ...sources.env,
  };
  const steps: Step[] = [];
  const step = async (
    name: string,
    lines: readonly string[],
    act: Act = async () => 0,
    cwd = home,
  ): Promise<string> => {
    const began = performance.now();
    let clicks = 0;
    let shown = '';
    for (const line of lines) {
      const session = openTerminalSession(line, { cwd, env });
      try {
        clicks += await act(session, line);
        const code = await over(session);
        shown += `$ ${line}\n${session.screen.text.trim()}\n\n`;
        assert.equal(code, 0, shown);
      } finally {
        session.child.kill('SIGKILL');
      }
    }
    const seconds = (performance.now() - began) / 1000;
    const picture = join(pictures, `terminal-${steps.length + 1}.png`);
    steps.push({ on: 'terminal', name, seconds, clicks, picture });
    await draw(shown, picture, [[folder.path, '']]);
    return shown;
  };
  try {
    const place = dirname(tarball);
    const [install = ''] = copied('README.md', 'npm install --global');
    assert.ok(
      install.endsWith(basename(tarball)),
      `${install} installs another file than ${basename(tarball)}.`,
    );
    await step('Install from the packed file', [install], async () => 0, place);
    const demo = await step('First answer without a key', copied('README.md', 'telos demo'));
    assert.match(demo, /Your plan is in today\.md/);
    steps[1]!.seconds += steps[0]!.seconds;

    const work = join(home, 'work');
    const withKey = copied('README.md', 'telos key', 'telos init --sample', 'telos "run daily kickoff"');
    const answered = await step('First answer with a key', withKey, givesKey, work);
    assert.match(answered, /Your plan is in today\.md/);
    const own = await step(
      'First skill of one’s own',
      [copiedBlock('README.md', 'telos "write a haiku"')],
      undefined,
      work,
    );
    assert.match(own, /haiku \(me\)/);
    assert.equal(readFileSync(join(work, 'haiku.md'), 'utf8'), haiku);
    const installed = await step(
      'First install from a repository',
      copied('docs/skills.md', 'telos install github:anthropics/skills#haiku-notes --yes'),
    );
    assert.match(installed, /haiku-notes/);
    const plan = await step('First plan', copied('README.md', 'telos plan demo'));
    assert.match(plan, /4 of 4 stories passed/);
    return steps;
  } finally {
    await Promise.all([model.close(), sources.close()]);
    folder.remove();
  }
}

/** The longest that a command may take before it counts as one that never ends, in milliseconds. */
const longestMs = 240_000;

/** Resolves with the exit code once the command has ended. */
async function over({ child }: TerminalSession): Promise<number | null> {
  if (child.exitCode === null) await once(child, 'close', { signal: AbortSignal.timeout(longestMs) });
  return child.exitCode;
}

/** Does what the command asks for, and returns how many answers that took. */
type Act = (session: TerminalSession, line: string) => Promise<number>;

const givesKey: Act = async (session, line) => {
  if (!line.startsWith('telos key')) return 0;
  await session.shows('API key for anthropic');
  session.type(`${key}\r`);
  await session.shows(/The key works|Which model|model/);
  session.type('\r');
  return 2;
};

/** Draws a screen as a picture, without the names of this machine. */
async function draw(
  text: string,
  file: string,
  hidden: readonly (readonly [string, string])[],
): Promise<void> {
  mkdirSync(dirname(file), { recursive: true });
  const shown = hidden.reduce((all, [from, to]) => all.replaceAll(from, to), text);
  const page = await (await sharedChromium()).newPage({ viewport: { width: 960, height: 400 } });
  try {
    await page.setContent(
      '<pre style="margin:0;padding:16px;background:#1e1e1e;color:#ddd;font:14px monospace"></pre>',
    );
    await page.locator('pre').evaluate((pre, words) => pre.append(words), shown);
    await page.screenshot({ path: file, fullPage: true });
  } finally {
    await page.close();
  }
}
