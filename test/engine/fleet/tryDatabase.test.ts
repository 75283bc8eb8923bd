/** What a database for a look is started with: no program that a run could have put on the PATH. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { rememberWorkFolder } from '../../../src/engine/skills/workFolders.ts';
import { startTryDatabase } from '../../../src/fleet/tryDatabase.ts';
import { programPlaces } from '../../../src/packs/sources/gitSource.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('a database for a look', function () {
  before(function () {
    if (process.platform === 'win32') this.skip();
  });
  this.timeout(20_000);

  it('is made without programs of a folder in which an agent has worked', async () => {
    const folder = tempFolder();
    const at = (path: string): string => join(folder.path, path);
    try {
      // As the user postgres, where that one runs it in place of root.
      chmodSync(folder.path, 0o755);
      folder.add({
        'work/bin/id': `#!/bin/sh\n: > '${at('started')}'\nexec /usr/bin/id "$@"\n`,
        // It starts others itself, by their names.
        'native/bin/initdb': '#!/bin/sh\necho "PATH is $PATH" >&2\nexit 1\n',
      });
      for (const path of ['work/bin/id', 'native/bin/initdb']) chmodSync(at(path), 0o755);
      const env = { PATH: [at('work/bin'), process.env['PATH']].join(delimiter), HOME: at('home') };
      const config = loadConfig({ env, home: at('home'), cwd: at('native') });
      rememberWorkFolder(config, at('work'), 'other');
      const failure = await startTryDatabase(at('native'), config.dataDir, programPlaces(config)).then(
        () => '',
        error => String(error),
      );
      assert.match(failure, /PostgreSQL did not start: .*PATH is .*\/bin/);
      assert.ok(!failure.includes(at('work/bin')), failure);
      assert.equal(existsSync(at('started')), false);
    } finally {
      folder.remove();
    }
  });
});
