import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

describe('the start environment', () => {
  it('keeps keys from those who look at the process, and for the process itself (on Linux)', function () {
    if (process.platform !== 'linux') this.skip();
    const module = new URL('../../src/cli/cliConfig.ts', import.meta.url).href;
    const script = `
      const { hideStartEnvironment } = await import(${JSON.stringify(module)});
      const { readFileSync } = await import('node:fs');
      const { execFileSync } = await import('node:child_process');
      hideStartEnvironment(name => /KEY/.test(name));
      const child = execFileSync('sh', ['-c', 'printf %s "$SOME_KEY"']).toString();
      console.log(JSON.stringify({ own: process.env.SOME_KEY, child, seen: readFileSync('/proc/self/environ', 'latin1') }));`;
    const env = { PATH: process.env['PATH'], SOME_KEY: 'k=1-geheim-ä', EMPTY_KEY: '', OTHER: 'plain' };
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { env });
    const { own, child, seen } = JSON.parse(output.toString());
    assert.deepEqual([own, child], [env.SOME_KEY, env.SOME_KEY]);
    assert.match(seen, /\0?SOME_KEY=x{13}\0/);
    assert.ok(seen.includes('OTHER=plain\0'));
    assert.ok(!seen.includes('geheim'));
  });
});
