/** What commands see of the system is put together once. It shows them nothing that their own view does not. */
import assert from 'node:assert/strict';
import { placesOver, rootOptions } from '../../../src/engine/box/rootBase.ts';
import type { Place } from '../../../src/engine/box/view.ts';

describe('the system that all commands of a conversation see', () => {
  const usr: Place = { kind: 'read', path: '/usr' };
  const etc: Place = { kind: 'read', path: '/etc' };
  const secret: Place = { kind: 'hidden', path: '/etc/shadow', isFolder: false };
  const work: Place = { kind: 'write', path: '/work', from: '/layer' };
  const base = { root: '/data/root', places: [usr, etc, secret], mask: '/data/hidden' };

  it('leaves only what is the command’s own to be made', () => {
    assert.deepEqual(placesOver(base, [usr, etc, secret, work]), [work]);
  });

  it('is not used where it shows or hides something else than the view', () => {
    assert.equal(placesOver(base, [usr, etc, work]), undefined, 'a hidden file more');
    assert.equal(placesOver(base, [usr, work]), undefined, 'a folder more');
    const more: Place = { kind: 'hidden', path: '/usr/key', isFolder: false };
    assert.deepEqual(placesOver(base, [usr, etc, secret, more, work]), [more, work]);
  });

  it('is made again below a place that covers it, and where the view has another one', () => {
    const all: Place = { kind: 'write', path: '/etc', from: '/elsewhere' };
    assert.deepEqual(placesOver(base, [usr, all, secret]), [all, secret]);
    assert.deepEqual(placesOver(base, [usr, all]), [all], 'what is covered need not be there');
  });

  it('is put together below a folder of its own', () => {
    const link: Place = { kind: 'link', path: '/bin', to: 'usr/bin' };
    assert.deepEqual(rootOptions({ ...base, places: [usr, link, secret] }), [
      ...['--tmpfs', '/data/root', '--ro-bind', '/usr', '/data/root/usr'],
      ...['--symlink', 'usr/bin', '/data/root/bin', '--ro-bind', '/data/hidden', '/data/root/etc/shadow'],
    ]);
  });
});
