/** The version before this one is read by the person's git. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import { skillCalled } from '../../src/engine/skills/catalog.ts';
import { discoverAgents } from '../../src/engine/skills/discover.ts';
import { rememberWorkFolder } from '../../src/engine/skills/workFolders.ts';
import { previousVersion } from '../../src/evals/earlierVersion.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

describe('the version of a skill before this one', function () {
  before(function () {
    if (process.platform === 'win32') this.skip();
  });
  this.timeout(20_000);

  it('is not asked of a git in a folder in which an agent has worked', async () => {
    const folder = tempFolder({ 'skills/notes/SKILL.md': '---\ndescription: Sums up\n---\nBefore' });
    const at = (path: string): string => join(folder.path, path);
    try {
      const git = (...args: string[]) =>
        execFileSync('git', ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.com', ...args], {
          cwd: at('skills'),
        });
      git('init', '-q');
      for (const text of ['Before', 'Now']) {
        writeFileSync(at('skills/notes/SKILL.md'), `---\ndescription: Sums up\n---\n${text}`);
        git('add', '-A');
        git('commit', '-qm', text);
      }
      folder.add({ 'work/bin/git': `#!/bin/sh\n: > '${at('started')}'\n` });
      chmodSync(at('work/bin/git'), 0o755);
      const env = {
        PATH: [at('work/bin'), process.env['PATH']].join(delimiter),
        TELOS_SKILLS_DIR: at('skills'),
      };
      const config = loadConfig({ env, home: at('home'), cwd: at('skills') });
      rememberWorkFolder(config, at('work'), 'other');
      const one = skillCalled('notes', discoverAgents(config));
      assert.ok(one);
      const version = await previousVersion(one, config, new AbortController().signal);
      try {
        assert.equal(existsSync(at('started')), false);
        assert.match(version?.from ?? '', /^commit [\da-f]{8} of /);
      } finally {
        await version?.dispose();
      }
    } finally {
      folder.remove();
    }
  });
});
