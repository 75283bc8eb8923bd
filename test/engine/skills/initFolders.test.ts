/** A first start gets its folders; a second one changes nothing. */
import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { discover } from '../../../src/engine/skills/discover.ts';
import { initFolders } from '../../../src/engine/skills/scaffold.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('initFolders', () => {
  it('writes an agents.toml that reads well, and never over one that is there', async () => {
    const folder = tempFolder();
    const config = loadConfig({ env: {}, home: folder.path, cwd: folder.path });
    const { configFile, skillsDir, configWritten } = await initFolders(config);
    assert.deepEqual([configWritten, statSync(skillsDir).isDirectory()], [true, true]);
    assert.deepEqual(discover(config), { agents: [], defaultAgent: undefined, diagnostics: [] });
    const uncommented = readFileSync(configFile, 'utf8').replace(/^# (?=\[|\w+ = )/gm, '');
    writeFileSync(configFile, uncommented);
    assert.deepEqual(
      discover(config).agents.map(({ name, workingDir }) => [name, workingDir]),
      [['vault', join(folder.path, 'vault')]],
    );
    assert.equal((await initFolders(config)).configWritten, false);
    assert.equal(readFileSync(configFile, 'utf8'), uncommented);
    folder.remove();
  });
});
