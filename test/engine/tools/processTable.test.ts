/** Where there is no /proc, processes are listed and ended by programs of the system, never by one of that name on the PATH. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { findProgram } from '../../../src/engine/tools/programPath.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('processes on systems without /proc', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  /** Runs a script in a Node that takes itself for another system, with a program of that name first on its PATH. */
  function on(platform: string, planted: string, script: string): string {
    folder.add({ [`bin/${planted}`]: `#!/bin/sh\n: > '${join(folder.path, 'started')}'\n` });
    chmodSync(join(folder.path, 'bin', planted), 0o755);
    const tools = new URL('../../../src/engine/tools/', import.meta.url);
    const pretend = `Object.defineProperty(process, 'platform', { value: '${platform}' }); const tools = '${tools}';`;
    const PATH = [join(folder.path, 'bin'), process.env['PATH']].join(delimiter);
    const args = ['--no-warnings', '--input-type=module', '-e', pretend + script];
    return execFileSync(process.execPath, args, { encoding: 'utf8', env: { ...process.env, PATH } }).trim();
  }
  const wasStarted = (): boolean => existsSync(join(folder.path, 'started'));

  it('are listed by the ps of the system', function () {
    const listed = on(
      'darwin',
      'ps',
      "const { processTable } = await import(tools + 'processTable.ts'); const { rows } = await processTable(); console.log(rows.some(({ pid }) => pid === process.pid));",
    );
    assert.equal(wasStarted(), false);
    if (findProgram('ps', { env: { PATH: '/usr/bin:/bin' } }) === undefined) this.skip();
    assert.equal(listed, 'true');
  });

  it('are ended by the taskkill of the system', () => {
    on(
      'win32',
      'taskkill',
      "const { endProcessTree } = await import(tools + 'processTree.ts'); await endProcessTree({ pid: 999999999 });",
    );
    assert.equal(wasStarted(), false);
  });
});
