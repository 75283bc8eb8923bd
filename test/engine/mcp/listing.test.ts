/** Lists of servers end, however odd the server, and a server that is downloaded first has the time for it. */
import assert from 'node:assert/strict';
import { listed } from '../../../src/engine/mcp/offers.ts';
import { limitsFor, usualLimits } from '../../../src/engine/mcp/servers.ts';

describe('a listing of a server', () => {
  async function all(
    next: (cursor: unknown) => string | undefined,
  ): Promise<{ items: unknown[]; hasMore: boolean }> {
    const pages = listed(
      async ({ cursor }) => ({ tools: [cursor ?? 'first'], nextCursor: next(cursor) }),
      'tools',
    );
    const items: unknown[] = [];
    for (;;) {
      const { value, done } = await pages.next();
      if (done) return { items, hasMore: value };
      items.push(...value);
    }
  }

  it('ends where its pages lead back to one that was read', async () => {
    assert.deepEqual(await all(() => 'same'), { items: ['first', 'same'], hasMore: false });
    const circle = (cursor: unknown) => (cursor === 'a' ? 'b' : 'a');
    assert.deepEqual(await all(circle), { items: ['first', 'a', 'b'], hasMore: false });
  });

  it('goes on while there are new pages, up to a limit', async () => {
    let count = 0;
    const endless = await all(() => String(++count));
    assert.deepEqual([endless.items.length, endless.hasMore], [50, true]);
  });
});

describe('the time in which a server starts', () => {
  const start = (command: string, limits = usualLimits) =>
    limitsFor({ type: 'stdio', command, args: [], env: {} }, limits).connectMs;

  it('is a minute where it may be downloaded first', () => {
    for (const command of ['npx', 'npx.cmd', '/usr/bin/uvx', 'C:\\bin\\docker.exe'])
      assert.equal(start(command), 60_000, command);
    for (const command of ['node', 'my-npx', 'docker-server']) assert.equal(start(command), 15_000, command);
    assert.equal(start('npx', { ...usualLimits, connectMs: 5 }), 5);
  });
});
