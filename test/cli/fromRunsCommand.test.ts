/** A habit on the terminal: the line below the third answer, the skill that a model writes of it, and what is refused. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AnthropicTurn, type FakeServer, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('telos skill from-runs', function () {
  this.timeout(60_000);
  let home: CliHome;
  let server: FakeServer;
  let turns: AnthropicTurn[];

  beforeEach(async () => {
    turns = [];
    server = await startAnthropicServer({ turns: () => turns.shift() ?? { text: ['Done.'] } });
    home = cliHome({ 'config/.env': 'ANTHROPIC_API_KEY=test-key-0123456789\n' });
  });
  afterEach(async () => {
    await server.close();
    home.remove();
  });
  const telos = (words: string[], env: Record<string, string> = {}) =>
    home.run(words, { env: { ANTHROPIC_BASE_URL: server.url, ...env } });
  const writes = (path: string): AnthropicTurn => ({
    toolCalls: [{ name: 'write_file', input: { path, content: '# Release notes\n' } }],
  });
  const release = async (version: string, env?: Record<string, string>) => {
    turns = [writes(`notes-${version}.md`)];
    const done = await telos(['ask', `Write the release notes for ${version}`, '--yes'], env);
    assert.equal(done.code, 0, done.stderr);
    return done.stderr;
  };
  const skill = (body: string): AnthropicTurn => ({
    toolCalls: [
      {
        name: 'write_skill',
        input: { description: 'Writes release notes of a version', body, why: 'Writes notes.' },
      },
    ],
  });

  it('is offered below the third answer, lists what is done often, and keeps what passes', async () => {
    assert.doesNotMatch(await release('1.0'), /often/);
    assert.doesNotMatch(await release('1.1'), /often/);
    assert.match(
      await release('1.2'),
      /You do this often\. Save it as the skill release-notes: telos skill from-runs release-notes /,
    );
    const listed = await telos(['skill', 'from-runs', '--list']);
    assert.match(listed.stdout, /^release-notes {2}3 times, such as: Write the release notes for 1\.2\n$/);

    const asked = await telos(['skill', 'from-runs']);
    assert.equal(asked.code, 1);
    assert.match(
      asked.stderr,
      /reads these runs, writes the skill release-notes.*costs.*\nNothing was written\./s,
    );
    assert.ok(!existsSync(join(home.skillsDir, 'release-notes')));

    turns = [
      skill('Write the notes of the version to `notes-VERSION.md`.'),
      writes('notes-1.2.md'),
      { text: ['Done.'] },
      writes('notes-1.1.md'),
      { text: ['Done.'] },
    ];
    const kept = await telos(['skill', 'from-runs', '--yes']);
    assert.equal(kept.code, 0, kept.stderr);
    assert.match(kept.stdout, /name: release-notes\ndescription: "Writes release notes of a version"/);
    assert.match(kept.stderr, /2 evals from your own runs passed\.\nIt gets no permissions/);
    assert.match(readFileSync(join(home.skillsDir, 'release-notes/SKILL.md'), 'utf8'), /notes-VERSION/);
    const again = await telos(['eval', 'release-notes']);
    assert.equal(again.code, 0, `${again.stdout}${again.stderr}`);
  });

  it('keeps nothing whose evals do not pass', async () => {
    for (const version of ['1.0', '1.1', '1.2']) await release(version);
    turns = [skill('Say that the notes are there.')];
    const refused = await telos(['skill', 'from-runs', '--yes']);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /its evals do not pass, so it is not offered\..*notes-1/);
    assert.ok(!existsSync(join(home.skillsDir, 'release-notes')));
  });

  it('looks at nothing if that is off, and says what to do if nothing is done often', async () => {
    for (const version of ['1.0', '1.1', '1.2'])
      assert.doesNotMatch(await release(version, { TELOS_SUGGEST_SKILLS: 'off' }), /often/);
    const none = await telos(['skill', 'from-runs', 'water-plants']);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /nothing often that is called 'water-plants'\. `telos skill from-runs --list`/);
  });
});
