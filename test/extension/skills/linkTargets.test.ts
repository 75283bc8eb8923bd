import assert from 'node:assert/strict';
import { realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { linkTargets } from '../../../src/extension/skills/skillFiles.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('linkTargets', () => {
  let folder: TempFolder;
  const at = (path: string): string => join(realpathSync(folder.path), path);

  beforeEach(() => {
    folder = tempFolder({
      'skills/me/skills/plan/SKILL.md': '',
      'elsewhere/one/SKILL.md': '',
      'elsewhere/pack/skills/a/SKILL.md': '',
      'elsewhere/pack/skills/b/SKILL.md': '',
    });
  });
  afterEach(() => folder.remove());

  it('names nothing where no link leads out', () => {
    symlinkSync(at('skills/me/skills/plan'), at('skills/me/skills/other-name'));
    symlinkSync(at('skills'), at('root'));
    const dirs = ['skills/me/skills/plan', 'skills/me/skills/other-name', 'root/me/skills/plan'].map(at);
    assert.deepEqual(linkTargets([at('skills'), at('root'), at('gone')], [...dirs, at('skills/gone')]), []);
  });

  it('names the folder of a linked skill, and that of a linked pack once', () => {
    symlinkSync(at('elsewhere/one'), at('skills/me/skills/one'));
    symlinkSync('../elsewhere/pack', at('skills/pack'));
    assert.deepEqual(
      linkTargets(
        [at('skills')],
        ['skills/me/skills/one', 'skills/pack/skills/a', 'skills/pack/skills/b'].map(at),
      ),
      [
        { folder: at('elsewhere/one'), isSkill: true },
        { folder: at('elsewhere/pack'), isSkill: false },
      ],
    );
    assert.deepEqual(linkTargets([at('skills'), at('elsewhere')], [at('skills/me/skills/one')]), []);
  });
});
