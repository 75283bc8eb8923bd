import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { listDirectoryTool, listing, readFileTool } from '../../../src/engine/tools/files.ts';
import { writeFileTool } from '../../../src/engine/tools/writeFiles.ts';
import type { ToolResult } from '../../../src/protocol/run.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

describe('file tools', () => {
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
  });
  afterEach(() => run.remove());
  const read = (path: string, approvedSubject?: string): Promise<ToolResult> =>
    readFileTool.execute({ path }, withApproval(approvedSubject));
  const write = (path: string, content: string, approvedSubject?: string): Promise<ToolResult> =>
    writeFileTool.execute({ path, content }, withApproval(approvedSubject));
  const list = (path?: string): Promise<ToolResult> =>
    listDirectoryTool.execute(path === undefined ? {} : { path }, run.context);
  const withApproval = (approvedSubject?: string) =>
    approvedSubject === undefined ? run.context : { ...run.context, approvedSubject };

  describe('read_file', () => {
    it('reads in the working folder, the pack and the skill, and takes off the byte order mark', async () => {
      run.put('work/a.txt', '\ufeffgrüße\n');
      const inSkill = run.put('pack/skills/one/b.txt', 'b');
      const inPack = run.put('pack/c.txt', 'c');
      assert.deepEqual(await read('a.txt'), { content: 'grüße\n', isError: false });
      assert.equal((await read(inSkill)).content, 'b');
      assert.equal((await read(inPack)).content, 'c');
    });

    it('refuses everything else unless exactly that was approved', async () => {
      const secret = run.put('outside/secret.txt', 'SECRET');
      symlinkSync(secret, join(run.work, 'link'));
      for (const path of [secret, 'link', '../outside/secret.txt']) {
        const refused = await read(path);
        assert.equal(refused.isError, true);
        assert.match(refused.content, /outside this workspace/);
        assert.doesNotMatch(refused.content, /SECRET/);
        assert.equal((await read(path, secret)).content, 'SECRET');
      }
      run.put('outside/other.txt', 'OTHER');
      assert.equal((await read('../outside/other.txt', secret)).isError, true);
    });

    it('is bound to what was approved when a link is turned meanwhile', async () => {
      run.put('work/a.txt', 'a');
      const approved = run.put('work/b.txt', 'b');
      assert.equal((await read('a.txt', approved)).isError, true);
    });

    it('cuts at 256 KiB, at a whole character, and says the exact size', async () => {
      run.put('work/big.txt', `x${'ü'.repeat(200_000)}`);
      const { content, isError } = await read('big.txt');
      assert.equal(isError, false);
      assert.match(content, /\[Cut: these are the first 262,143 of 400,001 bytes of the file\.\]$/);
      assert.doesNotMatch(content, /\ufffd/);
    });

    it('reads the head of a huge file without taking in the rest', async () => {
      truncateSync(run.put('work/huge.log', `${'line\n'.repeat(60_000)}`), 5 * 1024 ** 3);
      assert.match((await read('huge.log')).content, /262,144 of 5,368,709,120 bytes/);
    });

    it('says binary instead of dumping it', async () => {
      run.put('work/a.bin', Buffer.from([...Array(256).keys()]));
      const { content, isError } = await read('a.bin');
      assert.equal(isError, false);
      assert.match(content, /^\[a\.bin: binary, 256 bytes, .* 00 01 02 03/);
    });

    it('says what is not there, is a folder, or is a pipe', async () => {
      mkdirSync(join(run.work, 'folder'));
      execFileSync('mkfifo', [join(run.work, 'pipe')]);
      for (const [path, expected] of [
        ['none', /does not exist/],
        ['folder', /is a folder.*list_directory/],
        ['pipe', /not a regular file/],
        ['/proc/self/environ', /never opened/],
        ['a\0b', /NUL/],
      ] as const) {
        const result = await read(path, path === '/proc/self/environ' ? path : undefined);
        assert.equal(result.isError, true, path);
        assert.match(result.content, expected);
      }
    });

    it('throws the reason of an abort', async () => {
      const reason = new Error('stopped');
      await assert.rejects(
        readFileTool.execute({ path: 'a' }, { ...run.context, signal: AbortSignal.abort(reason) }),
        error => error === reason,
      );
    });

    it('never follows a link that another process puts there while it reads', async () => {
      const secret = run.put('outside/secret.txt', 'SECRET');
      run.put('work/a.txt', 'fine');
      const swapper = spawn(
        process.execPath,
        [
          '-e',
          `const fs = require('node:fs'); process.chdir(${JSON.stringify(run.work)});
           process.on('disconnect', () => process.exit()); process.send('ready');
           (function swap() { for (let i = 0; i < 50; i++) {
             fs.symlinkSync(${JSON.stringify(secret)}, 'l'); fs.renameSync('l', 'a.txt');
             fs.writeFileSync('f', 'fine'); fs.renameSync('f', 'a.txt'); } setImmediate(swap); })();`,
        ],
        { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] },
      );
      await new Promise(ready => swapper.once('message', ready));
      const seen = new Set<string>();
      // On a busy machine, the file may be another one at every look for a while.
      const isSeen = (): boolean => [...seen].some(content => content.includes('fine'));
      for (let round = 0; round < 40 || (!isSeen() && round < 4000); round++)
        for (const { content } of await Promise.all(Array.from({ length: 10 }, () => read('a.txt'))))
          seen.add(content.replaceAll(run.root, ''));
      swapper.disconnect();
      await new Promise(gone => swapper.once('exit', gone));
      assert.ok(![...seen].some(content => content.includes('SECRET')));
      assert.ok(isSeen(), [...seen].join());
    });
  });

  describe('write_file', () => {
    it('creates the file with its folders, says so, and names it as changed', async () => {
      const result = await write('reports/a/b.md', 'hé');
      const file = join(run.work, 'reports/a/b.md');
      assert.deepEqual(result, {
        content: 'Created reports/a/b.md (3 bytes).',
        isError: false,
        changedFiles: [file],
      });
      assert.equal(readFileSync(file, 'utf8'), 'hé');
      assert.equal(statSync(join(run.work, 'reports')).mode & 0o022, 0);
    });

    it('creates the working folder itself', async () => {
      rmdirSync(run.work);
      assert.equal((await write('a.md', 'x')).isError, false);
      assert.equal(readFileSync(join(run.work, 'a.md'), 'utf8'), 'x');
    });

    it('overwrites in one step, keeps the mode and leaves nothing beside', async () => {
      const file = run.put('work/run.sh', 'old');
      chmodSync(file, 0o750);
      assert.equal((await write('run.sh', 'x')).content, 'Overwrote run.sh (1 byte).');
      assert.equal(statSync(file).mode & 0o777, 0o750);
      assert.deepEqual(readdirSync(run.work), ['run.sh']);
    });

    it('writes nothing outside the working folder, by no way', async () => {
      symlinkSync(run.outside, join(run.work, 'out'));
      symlinkSync(join(run.home, '.bashrc'), join(run.work, 'settings.json'));
      for (const path of [
        '../esc.txt',
        'out/x.md',
        'settings.json',
        join(run.pack, 'x'),
        '~/x',
        `${run.work}-evil/x`,
      ])
        assert.equal((await write(path, 'x')).isError, true, path);
      for (const folder of [run.outside, run.home]) assert.deepEqual(readdirSync(folder), []);
      assert.equal(existsSync(join(run.root, 'esc.txt')), false);
      assert.equal(existsSync(`${run.work}-evil`), false);
    });

    it('writes elsewhere when exactly that target was approved', async () => {
      symlinkSync(join(run.home, '.bashrc'), join(run.work, 'settings.json'));
      const target = join(run.home, '.bashrc');
      const { content } = await write('settings.json', 'x', target);
      assert.equal(content, `Created ${target} (1 byte).`);
      assert.equal(readFileSync(target, 'utf8'), 'x');
    });

    it('refuses more than 16 MiB, folders, pipes and read-only files', async () => {
      assert.match((await write('big', 'y'.repeat(16 * 1024 ** 2 + 1))).content, /16,777,217 bytes.*16 MiB/);
      mkdirSync(join(run.work, 'folder'));
      assert.match((await write('folder', 'x')).content, /is a folder/);
      execFileSync('mkfifo', [join(run.work, 'pipe')]);
      assert.match((await write('pipe', 'x')).content, /not a regular file/);
      chmodSync(run.put('work/fixed', 'old'), 0o444);
      assert.match((await write('fixed', 'x')).content, /read-only/);
      assert.equal(readFileSync(join(run.work, 'fixed'), 'utf8'), 'old');
      writeFileSync(join(run.work, 'plain'), '');
      assert.match((await write('plain/x', 'x')).content, /not a folder|exists/);
      assert.deepEqual(readdirSync(run.work).sort(), ['fixed', 'folder', 'pipe', 'plain']);
    });

    it('leaves one whole content when two calls write the same file', async () => {
      const contents = ['a'.repeat(100_000), 'b'.repeat(100_000)];
      await Promise.all(contents.map(content => write('note.md', content)));
      assert.ok(contents.includes(readFileSync(join(run.work, 'note.md'), 'utf8')));
    });
  });

  describe('list_directory', () => {
    it('lists the working folder by default, sorted, hidden names too', async () => {
      for (const file of ['.k', 'z', 'a/x']) run.put(`work/${file}`);
      assert.deepEqual(await list(), { content: '.k\na\nz', isError: false });
      assert.equal((await list('a')).content, 'x');
    });

    it('says that a folder is empty, not there yet, or no folder', async () => {
      assert.equal((await list()).content, '(empty)');
      assert.equal((await list('none')).isError, true);
      run.put('work/file');
      assert.equal((await list('file')).isError, true);
      assert.equal((await list(run.outside)).isError, true);
      run.remove();
      assert.deepEqual([(await list()).isError, (await list('sub')).isError], [false, true]);
    });

    it('stops at 2,000 names and says how many there are', () => {
      const names = Array.from({ length: 2001 }, (_, index) => String(12_000 - index));
      const lines = listing(names).split('\n');
      assert.equal(lines.length, 2001);
      assert.equal(lines[0], '10000');
      assert.equal(lines.at(-1), '[Cut: these are the first 2,000 of 2,001 names in this folder.]');
    });

    it('shows control characters of a name instead of obeying them', async () => {
      run.put('work/odd/a\nb\u001b[2J\u202ec.txt');
      assert.equal((await list('odd')).content, 'a\\u{a}b\\u{1b}[2J\\u{202e}c.txt');
    });
  });
});
