/** Undoing what a run has written, with the real tools and real files. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { hasUndo } from '../../../src/engine/changes/changeHistory.ts';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import type { WriteKeeper } from '../../../src/engine/files/atomicWrite.ts';
import { ownerHere } from '../../../src/engine/files/liveProcess.ts';
import { editFileTool, writeFileTool } from '../../../src/engine/tools/writeFiles.ts';
import { eventually } from '../../eventually.ts';
import { skipBecause } from '../../skipBecause.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

describe('changes of a run', () => {
  let run: TemporaryRun;
  let store: ChangeStore;
  let data: string;
  let changes: WriteKeeper;

  beforeEach(() => {
    run = temporaryRun();
    data = join(run.root, 'data');
    store = new ChangeStore({ dataDir: data, configDir: join(run.root, 'config') });
    changes = store.keeper('run-1')!;
  });
  afterEach(() => run.remove());

  const write = async (path: string, content: string, keeper = changes) => {
    const result = await writeFileTool.execute({ path, content }, { ...run.context, changes: keeper });
    assert.equal(result.isError, false, result.content);
    return result;
  };
  const inWork = (path: string): string => join(run.work, path);
  const blocked = async (): Promise<unknown> => {
    const result = await store.undo('run-1');
    return result.outcome === 'refused' ? result.blocked.map(({ path, state }) => [path, state]) : result;
  };

  it('names the runs of a time, the latest first, and none from before', async () => {
    await write('one.txt', '1');
    await new Promise(resolve => setTimeout(resolve, 5));
    await write('two.txt', '2', store.keeper('run-2')!);
    const { at } = await store.of('run-2');
    assert.deepEqual(await store.since((await store.of('run-1')).at), ['run-2', 'run-1']);
    assert.deepEqual(await store.since(at), ['run-2']);
    assert.deepEqual(await store.since(new Date(Date.parse(at) + 1).toISOString()), []);
  });

  it('brings back every byte and the mode, and takes away what was created with its folders', async () => {
    const contents = {
      'bytes.bin': Buffer.from([0, 0xff, 0xfe, 10, 13, 0x80]),
      'no-end.txt': Buffer.from('no line break at the end'),
      'windows.txt': Buffer.from('\uFEFFone\r\ntwo\r\n'),
      'empty.txt': Buffer.alloc(0),
    };
    for (const [name, bytes] of Object.entries(contents)) run.put(`work/${name}`, bytes);
    chmodSync(inWork('windows.txt'), 0o2751);
    for (const name of Object.keys(contents)) await write(name, 'other\n');
    await write('new/deep/file.md', 'made');
    await write('new/other.md', 'made');
    chmodSync(inWork('empty.txt'), 0o600);
    const result = await store.undo('run-1');
    assert.ok(result.outcome === 'undone', result.outcome);
    for (const [name, bytes] of Object.entries(contents))
      assert.ok(readFileSync(inWork(name)).equals(bytes), name);
    assert.equal(statSync(inWork('windows.txt')).mode & 0o7777, 0o2751);
    assert.equal(statSync(inWork('empty.txt')).mode & 0o7777, 0o600, 'what was set since stays');
    assert.deepEqual(readdirSync(run.work).sort(), Object.keys(contents).sort());
    assert.deepEqual(result.folders, [inWork('new/deep'), inWork('new')]);
    assert.equal(result.removed.length, 2);
  });

  it('leaves the other names of a file, its owner, its group and its further attributes as they are, and so do writes', async () => {
    const isRoot = process.getuid?.() === 0;
    const names = ['two-names.txt', 'attributes.txt', 'only-ours.txt'];
    for (const name of names) {
      run.put(`work/${name}`, 'one\n');
      chmodSync(inWork(name), 0o640);
      if (isRoot) chownSync(inWork(name), 4242, 4343);
    }
    linkSync(inWork('two-names.txt'), join(run.root, 'second.txt'));
    const attribute = `import os; os.setxattr(${JSON.stringify(inWork('attributes.txt'))}, "user.note", b"kept")`;
    if (process.platform === 'linux') execFileSync('python3', ['-c', attribute]);
    const read = `import os, json; print(json.dumps([os.getxattr(n, "user.note").decode() if "user.note" in os.listxattr(n) else None for n in ${JSON.stringify(names.map(inWork))}]))`;
    const facts = (): unknown => [
      process.platform === 'linux'
        ? JSON.parse(execFileSync('python3', ['-c', read], { encoding: 'utf8' }))
        : [],
      names.map(name => {
        const { uid, gid, mode, nlink } = statSync(inWork(name));
        return { uid, gid, mode, nlink };
      }),
    ];
    const before = facts();
    await write('two-names.txt', 'two\n');
    await write('attributes.txt', 'two, and longer\n');
    const edit = { path: 'only-ours.txt', old_text: 'one', new_text: 'two' };
    await editFileTool.execute(edit, { ...run.context, changes });
    assert.deepEqual(facts(), before);
    assert.equal(readFileSync(join(run.root, 'second.txt'), 'utf8'), 'two\n');
    assert.equal(readFileSync(inWork('attributes.txt'), 'utf8'), 'two, and longer\n');
    assert.equal((await store.undo('run-1')).outcome, 'undone');
    assert.deepEqual(facts(), before);
    for (const name of names) assert.equal(readFileSync(inWork(name), 'utf8'), 'one\n');
    assert.equal(readFileSync(join(run.root, 'second.txt'), 'utf8'), 'one\n');
    assert.deepEqual(readdirSync(run.work).sort(), [...names].sort());
  });

  it('leaves the list of rights of a file as it is, also where the folder has one for new files', async function () {
    const acl = (...args: readonly string[]): string => execFileSync('setfacl', args, { encoding: 'utf8' });
    const rights = (name: string): string =>
      execFileSync('getfacl', ['--omit-header', '--numeric', '--absolute-names', inWork(name)], {
        encoding: 'utf8',
      });
    const names = ['listed.txt', 'plain.txt', 'narrow.txt'];
    for (const name of names) run.put(`work/${name}`, 'one\n');
    try {
      acl('-m', 'u:4242:rw,g:4343:r', inWork('listed.txt'));
      acl('-m', 'u:4242:rwx,m::r', inWork('narrow.txt'));
      acl('-d', '-m', 'u:4444:rwx', run.work);
    } catch {
      return skipBecause(this, 'setfacl is not here, or not for these files');
    }
    const before = names.map(rights);
    assert.match(before[0]!, /user:4242:rw-/);
    for (const name of names) await write(name, 'two\n');
    assert.deepEqual(names.map(rights), before);
    assert.equal((await store.undo('run-1')).outcome, 'undone');
    assert.deepEqual(names.map(rights), before);
  });

  it('leaves the list of rights that a file of this process got since it was last written', async function () {
    const rights = (): string =>
      execFileSync('getfacl', ['--omit-header', '--absolute-names', inWork('a.md')], { encoding: 'utf8' });
    await write('a.md', 'one\n');
    await write('a.md', 'two\n');
    try {
      execFileSync('setfacl', ['-m', 'u:4242:rw', inWork('a.md')]);
    } catch {
      return skipBecause(this, 'setfacl is not here, or not for these files');
    }
    const before = rights();
    for (const text of ['three\n', 'four\n']) {
      await write('a.md', text);
      assert.equal(readFileSync(inWork('a.md'), 'utf8'), text);
      assert.equal(rights(), before);
    }
  });

  it('names the files that two runs have written in turn, and those of a run whose earlier one is undone', async () => {
    const other = store.keeper('run-2')!;
    run.put('work/a.md', 'v0');
    run.put('work/b.md', 'v0');
    await write('a.md', 'one');
    await write('a.md', 'v0', other);
    await write('a.md', 'one again');
    await write('b.md', 'one');
    assert.deepEqual(await store.writtenInTurn('run-1'), [inWork('a.md')]);
    assert.deepEqual(await store.writtenInTurn('run-2'), [inWork('a.md')]);
    assert.equal((await store.undo('run-1')).outcome, 'undone');
    assert.deepEqual(await store.writtenInTurn('run-2'), [inWork('a.md')]);
  });

  it('names no file of runs that came one after the other and are undone from the last on', async () => {
    const other = store.keeper('run-2')!;
    run.put('work/a.md', 'v0');
    await write('a.md', 'one');
    await new Promise(passed => setTimeout(passed, 5));
    await write('a.md', 'two', other);
    assert.deepEqual(await store.writtenInTurn('run-2'), []);
    assert.deepEqual(await store.writtenInTurn('run-1'), [inWork('a.md')]);
    assert.equal((await store.undo('run-2')).outcome, 'undone');
    assert.deepEqual(await store.writtenInTurn('run-1'), []);
    assert.equal((await store.undo('run-1')).outcome, 'undone');
    assert.equal(readFileSync(inWork('a.md'), 'utf8'), 'v0');
  });

  it('goes back to what was there before the first of several writes, and says that it is undone', async () => {
    const file = run.put('work/a.md', 'first\n');
    await write('a.md', 'second\n');
    const context = { ...run.context, changes };
    const edit = { path: 'a.md', old_text: 'second', new_text: 'third\nfourth' };
    assert.deepEqual((await editFileTool.execute(edit, context)).changedLines, { added: 2, removed: 1 });
    assert.equal((await store.undo('run-1')).outcome, 'undone');
    assert.equal(readFileSync(file, 'utf8'), 'first\n');
    assert.equal((await store.undo('run-1')).outcome, 'already_undone');
    assert.deepEqual(store.undoneAmong(['run-1', 'run-2']), ['run-1']);
  });

  it('changes nothing where a file was edited, deleted or replaced since, and names each', async () => {
    for (const name of ['kept', 'edited', 'deleted', 'linked', 'foldered']) run.put(`work/${name}`, 'old');
    for (const name of ['kept', 'edited', 'deleted', 'linked', 'foldered', 'created'])
      await write(name, 'by run');
    writeFileSync(inWork('edited'), 'by me ');
    writeFileSync(inWork('created'), 'by me ');
    for (const name of ['deleted', 'linked', 'foldered']) rmSync(inWork(name));
    const outside = run.put('outside/secret', 'by run');
    symlinkSync(outside, inWork('linked'));
    mkdirSync(inWork('foldered'));
    assert.deepEqual(await blocked(), [
      [inWork('edited'), 'edited'],
      [inWork('deleted'), 'deleted'],
      [inWork('linked'), 'replaced'],
      [inWork('foldered'), 'replaced'],
      [inWork('created'), 'edited'],
    ]);
    assert.equal(readFileSync(inWork('kept'), 'utf8'), 'by run');
    const others = await store.undo('run-1', { others: true });
    assert.deepEqual(others.outcome === 'undone' && others.restored, [inWork('kept')]);
    assert.equal(readFileSync(inWork('kept'), 'utf8'), 'old');
    assert.equal(readFileSync(outside, 'utf8'), 'by run');
    assert.equal(readFileSync(inWork('edited'), 'utf8'), 'by me ');
  });

  it('follows no link that a folder has become', async () => {
    run.put('work/folder/a', 'old');
    await write('folder/a', 'by run');
    const outside = run.put('outside/a', 'by run');
    rmSync(inWork('folder'), { recursive: true });
    symlinkSync(join(run.root, 'outside'), inWork('folder'));
    assert.deepEqual(await blocked(), [[inWork('folder/a'), 'replaced']]);
    assert.equal(readFileSync(outside, 'utf8'), 'by run');
  });

  it('leaves folders that hold something else by now', async () => {
    await write('new/deep/a', 'by run');
    run.put('work/new/mine', 'mine');
    await store.undo('run-1');
    assert.deepEqual(readdirSync(inWork('new')), ['mine']);
  });

  it('knows an edit between two writes of the run', async () => {
    run.put('work/a', 'old');
    await write('a', 'by run');
    writeFileSync(inWork('a'), 'by me');
    await write('a', 'by run again');
    assert.deepEqual(await blocked(), [[inWork('a'), 'edited']]);
  });

  it('finds the last run that has something to undo, not one that wrote what was there', async () => {
    assert.equal(await store.latest(), undefined);
    await write('a', 'same');
    await new Promise(resolve => setTimeout(resolve, 5));
    await write('a', 'same', store.keeper('run-2'));
    assert.equal(await store.latest(), 'run-1');
    assert.equal((await store.undo('run-1')).outcome, 'undone');
    assert.deepEqual(readdirSync(run.work), []);
    assert.equal(hasUndo(await store.of('run-2')), false, 'the file is gone, but not by its change');
    assert.equal(await store.latest(), 'run-2', 'where there is nothing, the last one says so');
  });

  it('keeps what another run wrote with the run that replaces it', async () => {
    const other = store.keeper('run-2')!;
    run.put('work/a', 'old');
    const [one, two] = ['a', 'b'].map(letter => letter.repeat(300_000));
    await Promise.all([write('a', one!), write('a', two!, other)]);
    const [first, second] =
      readFileSync(inWork('a'), 'utf8') === two ? ['run-1', 'run-2'] : ['run-2', 'run-1'];
    assert.equal((await store.undo(first)).outcome, 'refused');
    assert.equal((await store.undo(second)).outcome, 'undone');
    assert.equal(readFileSync(inWork('a'), 'utf8'), first === 'run-1' ? one : two);
    assert.equal((await store.undo(first)).outcome, 'undone');
    assert.equal(readFileSync(inWork('a'), 'utf8'), 'old');
  });

  it('does without lines of its index that are cut or edited, and without bytes that are not the ones it kept', async () => {
    run.put('work/a', 'old');
    await write('a', 'by run');
    const victim = run.put('outside/victim', 'by run');
    const index = join(data, 'changes/run-1/index.jsonl');
    const line = JSON.parse(readFileSync(index, 'utf8'));
    for (const path of ['../a', `${run.work}/../outside/victim`, '/tmp/x\0', join(data, 'x'), 7])
      appendFileSync(index, `${JSON.stringify({ ...line, path })}\n`);
    appendFileSync(index, `${JSON.stringify({ ...line, before: { ...line.before, sha256: '../../a' } })}\n`);
    appendFileSync(index, `${JSON.stringify({ ...line, made: '/' })}`.slice(0, 60));
    const { files } = await store.of('run-1');
    assert.deepEqual(
      files.map(({ path, state }) => [path, state]),
      [[inWork('a'), 'ready']],
    );
    writeFileSync(join(data, 'changes/run-1', line.before.sha256), 'bad');
    assert.deepEqual(await blocked(), [[inWork('a'), 'not_kept']]);
    assert.deepEqual([readFileSync(victim, 'utf8'), readFileSync(inWork('a'), 'utf8')], ['by run', 'by run']);
    await assert.rejects(store.undo('../run-1'), /No changes are stored/);
  });

  it('lets the run write where nothing can be kept, and says so once', async () => {
    run.put('work/a', 'old');
    run.put('work/b', 'old');
    run.put('data/changes', 'no folder');
    await write('a', 'by run');
    await write('b', 'by run');
    assert.match(changes.takeProblem() ?? '', /^This run cannot be undone completely: .*The run continues/);
    assert.equal(changes.takeProblem(), undefined);
    assert.equal(readFileSync(inWork('a'), 'utf8'), 'by run');
  });

  it('says which file is too large to be kept, and undoes nothing without it', async () => {
    truncateSync(run.put('work/large'), 64 * 1024 * 1024 + 1);
    await write('large', 'by run');
    assert.match(changes.takeProblem() ?? '', /large \(67,108,865 bytes\) is too large/);
    assert.deepEqual(await blocked(), [[inWork('large'), 'not_kept']]);
  });

  it('tells that commands ran, and which run was the last to change something', async () => {
    await write('a', 'one');
    const other = store.keeper('run-2')!;
    other.noteCommand();
    await write('b', 'two', other);
    assert.equal((await store.of('run-1')).ranCommands, false);
    changes.noteCommand();
    changes.noteCommand();
    assert.equal((await store.of('run-1')).ranCommands, true);
    assert.equal((await store.of('run-2')).ranCommands, true);
    store.keeper('run-3')!.noteCommand();
    assert.equal(await store.latest(), 'run-2');
    assert.deepEqual((await store.find('run')).sort(), ['run-1', 'run-2']);
  });

  it('undoes no run that goes on', async () => {
    const thisRun = { pid: process.pid, owner: ownerHere() };
    const began = { type: 'run', version: 1, runId: 'run-1', door: 'cli', request: '', ...thisRun };
    run.put(
      'data/runs/run-1.jsonl',
      `${JSON.stringify({ ...began, startedAt: new Date().toISOString() })}\n`,
    );
    await write('a', 'by run');
    await assert.rejects(store.undo('run-1'), /This run is still active\. Stop it first/);
    assert.equal(readFileSync(inWork('a'), 'utf8'), 'by run');
  });

  it('gives up what is older than a month, and nothing that another process has just begun', async () => {
    await write('a', 'one');
    const old = join(data, 'changes/run-1');
    const then = new Date(Date.now() - 31 * 24 * 60 * 60 * 1000);
    for (const name of readdirSync(old)) utimesSync(join(old, name), then, then);
    // A run of another window that has only just made its folder, and one that never put anything into it.
    mkdirSync(join(data, 'changes/run-3'));
    mkdirSync(join(data, 'changes/run-4'));
    utimesSync(join(data, 'changes/run-4'), then, then);
    const later = new ChangeStore({ dataDir: data, configDir: join(run.root, 'config') });
    await write('b', 'two', later.keeper('run-2')!);
    const left = (): string[] => readdirSync(join(data, 'changes')).sort();
    await eventually(() => assert.deepEqual(left(), ['run-2', 'run-3']), 8_000);
  });
});
