/** Files that an earlier version wrote are read by this one: runs, changes, logs, rules, permissions, packs, schedules and a plan. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { skipBecause } from '../skipBecause.ts';
import { type CliResult, callCli } from './cliProcess.ts';

/** Paths with their text, and a stream of `git fast-export` for the folder `work`. */
interface Earlier {
  root: string;
  files: Record<string, string | { base64: string }>;
  repository: string;
}
const earlier = JSON.parse(
  readFileSync(new URL('../fixtures/earlier/november.json', import.meta.url), 'utf8'),
) as Earlier;
const { root } = earlier;
const work = join(root, 'work');

describe('files of an earlier version', () => {
  beforeEach(function () {
    // The names of some files are made of the paths of others.
    if (process.platform !== 'linux') skipBecause(this, 'its paths are those of Linux');
    rmSync(root, { recursive: true, force: true });
    for (const [path, held] of Object.entries(earlier.files)) {
      const place = join(root, path);
      mkdirSync(dirname(place), { recursive: true });
      writeFileSync(place, typeof held === 'string' ? held : Buffer.from(held.base64, 'base64'));
    }
    const git = (args: string[], input?: string): void => {
      execFileSync('git', args, { cwd: work, input, stdio: ['pipe', 'ignore', 'pipe'] });
    };
    git(['init', '-q', '-b', 'main']);
    git(['fast-import', '--quiet'], earlier.repository);
    git(['reset', '-q']);
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const telos = (...args: string[]): Promise<CliResult> =>
    callCli(work, { HOME: join(root, 'home'), PATH: process.env['PATH'] }, args);
  const said = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await telos(...args);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const text = (path: string): string => readFileSync(join(work, path), 'utf8');

  it('are its runs, with their titles, and one is shown whole', async () => {
    const titles = (await said('runs')).split('\n').slice(1).filter(Boolean);
    assert.equal(titles.length, 12);
    assert.match(titles[11] ?? '', /cab54888\s+tidy\s+completed\s+\$0\.0001\s+\/tidy make a new file/);
    assert.match(await said('runs', 'show', 'cab54888'), /write_file[\s\S]*new\.md[\s\S]*Done: written\./);
  });

  it('are the rules, the permissions and the pack that the user accepted', async () => {
    const rules = await said('policy', 'list');
    assert.match(rules, /garden\s+its permissions: 1 scripts/);
    assert.match(rules, /me\s+allow write_file: \/tmp\/telos-earlier\/outside\/a\.txt/);
    assert.match(await said('trust', 'garden'), /^Agent garden \(reviewed, unchanged since\)/);
    assert.match(await said('verify'), /^garden: same/);
    assert.match(await said('schedule', 'list'), /tidy-make-a-new-file\s+me:tidy\s+weekdays 08:30/);
  });

  it('are the changes of its runs, which are taken back to the byte', async () => {
    for (const id of ['15bb5c5b', 'cab54888']) await said('undo', id, '--yes');
    assert.equal(text('notes.md'), 'one\n');
    assert.deepEqual(
      ['new.md', 'made.txt', 'd'].filter(name => existsSync(join(work, name))),
      [],
    );
  });

  it('are a plan, which goes on with what its user has accepted', async () => {
    const shown = await said('plan', 'show', 'files');
    assert.match(shown, /files: needs you, 1 of 2 stories passed/);
    assert.match(shown, /US-001\s+passed\s+Add a page\s+65e7ec45/);
    await said('plan', 'accept', 'US-002', '--plan', 'files');
    const { stdout, stderr } = await telos('plan', 'run', 'files', '--unattended');
    assert.match(await said('plan', 'show', 'files'), /US-002\s+accepted by you/, stdout + stderr);
  });
});
