/** The npm that installs a database for a look is the person's. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { runNpm } from '../../src/cli/workerTry.ts';
import { loadConfig } from '../../src/engine/config.ts';
import { rememberWorkFolder } from '../../src/engine/skills/workFolders.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

describe('npm for a database for a look', function () {
  this.timeout(20_000);

  it('comes from no folder in which an agent has worked, nor does what it starts (not on Windows)', async function () {
    if (process.platform === 'win32') this.skip();
    const folder = tempFolder();
    const at = (path: string): string => join(folder.path, path);
    try {
      const note = (name: string, more = ''): string =>
        `#!/bin/sh\necho ${name} >> '${at('started')}'\n${more}`;
      folder.add({
        'work/bin/npm': note('planted'),
        'work/bin/helper': note('planted'),
        'mine/helper': note('helper'),
        'mine/npm': note('"npm $*"', 'helper\nexit 3\n'),
      });
      for (const path of ['work/bin/npm', 'work/bin/helper', 'mine/helper', 'mine/npm'])
        chmodSync(at(path), 0o755);
      mkdirSync(at('cwd'));
      const env = {
        PATH: [at('work/bin'), at('mine'), process.env['PATH']].join(delimiter),
        HOME: at('home'),
      };
      const config = loadConfig({ env, home: at('home'), cwd: at('cwd') });
      rememberWorkFolder(config, at('work'), 'other');
      assert.equal(await runNpm(['install', 'a b'], at('cwd'), config), 3);
      assert.equal(readFileSync(at('started'), 'utf8'), 'npm install a b\nhelper\n');
      const none = { ...config, env: { ...env, PATH: at('work/bin') } };
      assert.equal(await runNpm(['install'], at('cwd'), none), null);
      assert.doesNotMatch(readFileSync(at('started'), 'utf8'), /planted/);
    } finally {
      folder.remove();
    }
  });
});
