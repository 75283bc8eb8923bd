import assert from 'node:assert/strict';
import { type McpServer, serverOf } from '../../../src/engine/mcp/config.ts';
import { portableServers } from '../../../src/packs/export/portableServers.ts';

/** Returns what others get of one server of a pack in `/pack`. */
function exported(entry: object) {
  const server = serverOf(entry) as McpServer;
  const { portable, withVariables, notes, refused } = portableServers(
    new Map([['s', server]]),
    '/pack',
    path => path === 'run.py',
  );
  return { portable: portable['s'], withVariables: withVariables['s'], notes: notes.length, refused };
}

describe('MCP servers for other hosts', () => {
  const refusals: readonly [entry: object, why: RegExp][] = [
    [{ url: 'http://mcp.test/mcp' }, /'s' is reached by http, which other hosts refuse/],
    [{ url: `https://\${HOST}/mcp` }, /has a variable in its address/],
    [{ url: 'https://me:pass@mcp.test/' }, /has a password in its address/],
    [{ command: '/usr/local/bin/tool' }, /starts a program outside of the pack/],
    [{ command: '../tool' }, /starts a program outside of the pack/],
    [{ command: '~/tool' }, /starts a program outside of the pack/],
    [{ command: `\${TOOL}` }, /has a variable in its command/],
    [{ command: 'node', cwd: '/elsewhere' }, /works in a folder outside of the pack/],
  ];
  for (const [entry, why] of refusals)
    it(`refuses ${JSON.stringify(entry)}`, () => {
      const { portable, refused } = exported(entry);
      assert.equal(portable, undefined);
      assert.match(refused.join(), why);
    });

  it('takes http on this machine', () =>
    assert.deepEqual(exported({ url: 'http://127.0.0.1:3000/mcp' }).refused, []));

  it('writes paths of the pack as each host reads them', () => {
    const { portable, withVariables } = exported({
      command: './bin/go',
      args: ['run.py', '/pack/data', '/etc'],
      cwd: 'work',
    });
    assert.deepEqual(portable, {
      type: 'stdio',
      command: './bin/go',
      args: ['run.py', `\${PLUGIN_ROOT}/data`, '/etc'],
      cwd: './work',
    });
    assert.deepEqual(withVariables, {
      command: `\${CLAUDE_PLUGIN_ROOT}/bin/go`,
      args: [`\${CLAUDE_PLUGIN_ROOT}/run.py`, `\${CLAUDE_PLUGIN_ROOT}/data`, '/etc'],
    });
  });

  it('leaves a server with variables in its arguments to the hosts that replace them', () => {
    const { portable, withVariables, notes } = exported({ command: 'node', args: ['--key', `\${KEY}`] });
    assert.equal(portable, undefined);
    assert.deepEqual(withVariables, { command: 'node', args: ['--key', `\${KEY}`] });
    assert.equal(notes, 1);
  });
});
