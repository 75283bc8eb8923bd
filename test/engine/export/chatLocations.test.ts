import assert from 'node:assert/strict';
import { withLocation, withoutLocation } from '../../../src/engine/export/chatLocations.ts';

describe('the folders of plugins in VS Code’s chat', () => {
  it('gain a folder once, and lose that one alone', () => {
    const others = { '/other': false };
    const both = withLocation(others, '/kairos');
    assert.deepEqual(both, { '/other': false, '/kairos': true });
    assert.equal(withLocation(both ?? {}, '/kairos'), undefined);
    assert.deepEqual(withoutLocation(both ?? {}, '/kairos'), others);
    assert.equal(withoutLocation(others, '/kairos'), undefined);
  });

  it('use a folder again that was switched off', () =>
    assert.deepEqual(withLocation({ '/kairos': false }, '/kairos'), { '/kairos': true }));
});
