/** A command that closes a folder, or gives one a name that no path leads to, sees and changes no more than others in the box. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { itAsUser } from '../changes/asUser.ts';
import { type Boxed, boxedRun, itBoxed } from './boxed.ts';

const asUser = itAsUser(import.meta.filename);

/** A test with a real box of an ordinary user. */
function closedTo(title: string, test: (run: Boxed) => Promise<void>): void {
  if (process.getuid?.() === 0) asUser(title, async () => undefined);
  else
    itBoxed(title, async run => {
      try {
        await test(run);
      } finally {
        execFileSync('chmod', ['-R', 'u+rwX', run.root]);
      }
    });
}

describe('a folder that is closed', function () {
  this.timeout(60_000);

  closedTo('is hidden from a command that could enter it or open it again', async run => {
    run.put('work/conf/.env', 'SECRET');
    run.put('work/conf/keys/id_rsa', 'SECRET');
    run.put('work/open.txt', 'open');
    for (const mode of [0o311, 0o600, 0o000]) {
      chmodSync(join(run.work, 'conf'), mode);
      const { out } = await run.sh('cat open.txt conf/.env conf/keys/id_rsa; chmod 755 conf; cat conf/.env');
      assert.equal(out, 'open', mode.toString(8));
      assert.equal(statSync(join(run.work, 'conf')).mode & 0o777, mode);
    }
    chmodSync(join(run.work, 'conf'), 0o755);
    chmodSync(join(run.work, 'conf/keys'), 0o311);
    assert.equal((await run.sh('cat conf/keys/id_rsa')).out, '');
    chmodSync(join(run.work, 'conf/keys'), 0o755);
    assert.equal((await run.sh('ls conf')).out, 'keys', 'what can be listed is there');
  });

  closedTo('keeps commands from being run if it is the working folder', async run => {
    run.put('work/.env', 'SECRET');
    chmodSync(run.work, 0o311);
    const { code, out, err } = await run.sh('cat .env');
    assert.deepEqual([code, out], [undefined, '']);
    assert.match(err, /The folder \S+work cannot be listed.*chmod u\+rx.*Nothing was run/);
    assert.equal(statSync(run.work).mode & 0o777, 0o311);
  });

  closedTo('is not changed in a repository', async run => {
    execFileSync('git', ['init', '-q', run.work]);
    run.put('work/.git/modules/m/config', '[core]\n');
    run.put('work/.git/modules/m/HEAD', 'ref: refs/heads/main\n');
    chmodSync(join(run.work, '.git/modules'), 0o311);
    await run.sh('chmod 755 .git/modules; echo evil >> .git/modules/m/config; echo 1 > .git/ORIG_HEAD');
    assert.equal(readFileSync(join(run.work, '.git/modules/m/config'), 'utf8'), '[core]\n');
    assert.ok(existsSync(join(run.work, '.git/ORIG_HEAD')));
    chmodSync(join(run.work, '.git'), 0o311);
    await run.sh('chmod 755 .git; echo evil >> .git/config; echo evil > .git/hooks/pre-commit');
    assert.doesNotMatch(readFileSync(join(run.work, '.git/config'), 'utf8'), /evil/);
    assert.ok(!existsSync(join(run.work, '.git/hooks/pre-commit')));
  });

  closedTo('is one as well whose name is not UTF-8', async run => {
    const strange = Buffer.from('caf\xe9', 'latin1');
    const at = (folder: string, ...names: string[]): Buffer =>
      Buffer.concat([
        Buffer.from(`${folder}/`),
        strange,
        Buffer.from(names.map(name => `/${name}`).join('')),
      ]);
    mkdirSync(join(run.work, 'sub'));
    mkdirSync(at(join(run.work, 'sub')));
    // A name that looks the same leads to something else.
    mkdirSync(join(run.work, 'sub/caf\ufffd'));
    writeFileSync(at(join(run.work, 'sub'), '.env'), 'SECRET');
    assert.equal((await run.sh('cat sub/caf*/.e*; chmod 755 sub; cat sub/*/.env')).out, '');
    renameSync(at(join(run.work, 'sub')), at(run.work));
    const { code, err } = await run.sh('cat caf*/.e*');
    assert.equal(code, undefined);
    assert.match(err, /work contains caf.*, whose name is not UTF-8.*Nothing was run/);
    renameSync(at(run.work), join(run.work, 'cafe'));
    writeFileSync(Buffer.concat([Buffer.from(`${run.work}/`), strange]), 'text');
    assert.equal((await run.sh('cat caf*')).out, 'text', 'a file without a meaning');
  });

  closedTo('ends no watch over a repository', async run => {
    execFileSync('git', ['init', '-q', run.work]);
    const repository = join(run.work, '.git');
    for (const script of [
      'mkdir -p d/x; touch d/x/y; chmod 300 d; mv d .git/commondir; sleep 0.5',
      'mkdir -p d/x; touch d/x/y; chmod 000 d/x; mv d .git/commondir; chmod 000 .git; chmod 311 .',
      'echo x > .git/commondir; chmod 500 .git',
    ]) {
      const { note, code } = await run.sh(script);
      assert.equal(code, 0, script);
      assert.match(note ?? '', /commondir was removed/, script);
      chmodSync(run.work, 0o755);
      chmodSync(repository, 0o755);
      assert.deepEqual(
        readdirSync(repository).filter(name => /commondir|removed/.test(name)),
        [],
        script,
      );
    }
  });

  closedTo('is not shown if it is another folder that a command reads', async run => {
    run.put('pack/.env', 'SECRET');
    chmodSync(run.pack, 0o311);
    const inWork = boxedRun(run.finding, { commandDir: run.work }, run);
    assert.equal((await inWork.sh(`cat ${run.pack}/.env; echo over`)).out, 'over');
  });
});
