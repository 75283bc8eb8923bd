/** What the text of a skill has run before a model reads it: decided like any command, with what it prints in its place. */
import { deepEqual, doesNotMatch, match } from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('commands in the text of a skill', function () {
  this.timeout(30_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome({ 'work/tide.txt': 'High at noon, $1 and !`pwd`\n' });
  });
  afterEach(() => home.remove());

  /** Runs a skill with this text. Returns the request as the model read it, and what the user saw. */
  const readOf = async (body: string, words: string, ...more: string[]) => {
    home.folder.add({ 'skills/quay/skills/tides/SKILL.md': `---\ndescription: Tells tides\n---\n${body}` });
    const server = await startAnthropicServer({ turns: [{ text: ['Done.'] }] });
    try {
      const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
      const { stdout, stderr } = await home.run([...more, words], { env });
      const body = server.requests[0]?.body as { messages: { content: { text: string }[] }[] } | undefined;
      const first = body?.messages[0];
      return { read: first?.content.map(({ text }) => text).join('\n') ?? '', said: stdout + stderr };
    } finally {
      await server.close();
    }
  };

  it('run before the model reads it, with the words of the user, and are shown', async () => {
    const { read, said } = await readOf(
      'Now: !`cat $1`\nBranches:\n```!\ncat tide.txt |\n  wc -l\n```\nGo on.\n',
      '/tides tide.txt',
      '--yes',
    );
    match(read, /^Now: High at noon, \$1 and !`pwd`\nBranches:\n1\nGo on\.\n/);
    match(said, /→ \w+ cat tide\.txt/);
    deepEqual(
      (await home.log()).flatMap(record => ('tool' in record ? [record.tool] : [])),
      ['run_command', 'run_command'],
    );
  });

  it('are decided like any other: one that is denied does not run, and the model reads that', async () => {
    const { read } = await readOf('State: !`touch made.txt && rm -rf ~/x`\n', '/tides');
    match(read, /^State: \[This command did not print what the skill expects: [^\n]*[Dd]enied/);
    deepEqual(existsSync(join(home.workDir, 'made.txt')), false);
  });

  it('are those of the author alone, and no examples', async () => {
    const body =
      'Do $ARGUMENTS.\n```md\nWrite !`pwd` there.\n```\nThe form is `` !`pwd` ``, or x!`pwd`.\n```!\npwd\n';
    const { read, said } = await readOf(body, '/tides !`cat tide.txt`');
    match(
      read,
      /^Do !`cat tide\.txt`\.\n```md\nWrite !`pwd` there\.\n```\nThe form is `` !`pwd` ``, or x!`pwd`\.\n```!\npwd\n/,
    );
    doesNotMatch(said, /→/);
  });
});
