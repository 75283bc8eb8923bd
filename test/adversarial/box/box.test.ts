/** The attempts to leave the box (with `TELOS_NIGHTLY=1` all of them), and the proof that one which succeeds is seen. */
import assert from 'node:assert/strict';
import { skipBecause } from '../../skipBecause.ts';
import { readAttempts } from './attempt.ts';
import { reasonForNoBox } from './ownMachine.ts';
import { runBox } from './runBox.ts';

/** What shows for each area, and for each way of looking, that nothing is overlooked. */
const shown = [
  'files-read-absolute',
  'files-write-append',
  'files-read-environ',
  'files-read-open-folder',
  'links-swap-folder',
  'links-rename-work',
  'secrets-read-renamed',
  'secrets-move-away',
  'processes-signal-end',
  'processes-memory-write',
  'processes-limits',
  'processes-shared-memory',
  'leftovers-daemon',
  'sockets-docker',
  'sockets-abstract',
  'sockets-in-work',
  'network-metadata',
  'network-six',
  'network-name',
  'kernel-key-planted',
  'kernel-mount',
  'kernel-setuid-planted',
  'kernel-hostname',
  'terminal-write',
  'terminal-size',
  'planted-hook',
  'repository-objects-emptied',
  'repository-object-forged',
  'planted-mcp',
  'planted-python-cache',
  'telos-config-secrets',
  'telos-data-write',
];

/** What the kernel and bubblewrap hold by themselves. Of it, the day tries what is in `shown`; the night tries all. */
const heldByOthers = ['kernel', 'leftovers', 'network', 'processes', 'sockets', 'terminal'];

const nightly = process.env['TELOS_NIGHTLY'] === '1';

describe('the box', () => {
  const attempts = readAttempts();
  const tried = attempts.filter(
    ({ id, area }) => nightly || !heldByOthers.includes(area) || shown.includes(id),
  );
  const noBox = reasonForNoBox();

  it('is attacked in at least 120 ways, each with a name of its own', () => {
    assert.ok(attempts.length >= 120, `${attempts.length} attempts`);
    assert.equal(new Set(attempts.map(({ id }) => id)).size, attempts.length);
  });

  it('lets nothing out', async function () {
    const { results, summary } = await runBox(tried);
    console.log(`      ${summary}`);
    const failed = results.filter(({ result }) => result === 'fail');
    assert.deepEqual(
      failed.map(({ id, problems }) => `${id}: ${problems.join('; ')}`),
      [],
    );
    if (noBox !== undefined) skipBecause(this, noBox);
  });

  it('is missed where it is missing', async function () {
    const wanted = attempts.filter(({ id }) => shown.includes(id));
    assert.equal(wanted.length, shown.length);
    const { results, summary } = await runBox(wanted, { bare: true });
    if (results.some(({ result }) => result === 'not judged')) return skipBecause(this, summary);
    const unseen = results.filter(({ result }) => result !== 'pass');
    // Some need the rights of the system's administrator.
    assert.deepEqual(process.getuid?.() === 0 ? unseen : [], []);
  });
});
