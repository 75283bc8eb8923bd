import assert from 'node:assert/strict';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { Diagnostic } from '../../../src/engine/files/settingsFile.ts';
import { existingSkillRoots } from '../../../src/engine/skills/findSkills.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('existingSkillRoots', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'work/.claude/skills/one/SKILL.md': '',
      'home/.claude/skills/two/SKILL.md': '',
      'builtin/x': '',
    });
  });
  afterEach(() => folder.remove());

  const rootsOf = (env: Record<string, string>, cwd = 'work') => {
    const at = (name: string): string => join(folder.path, name);
    const config = loadConfig({ env, home: at('home'), cwd: at(cwd), builtinSkillsDir: at('builtin') });
    return existingSkillRoots(config).map(({ kind, path }) => [kind, path.replace(`${folder.path}/`, '')]);
  };

  it('puts the project over the user over what is built in', () => {
    assert.deepEqual(rootsOf({}), [
      ['project', 'work/.claude/skills'],
      ['user', 'home/.claude/skills'],
      ['builtin', 'builtin'],
    ]);
  });

  it('goes by the variables, for which empty means none', () => {
    const env = {
      TRANSACTOID_AGENT_SKILLS_PROJECT_DIR: '../builtin',
      TRANSACTOID_AGENT_SKILLS_USER_DIR: '',
      TRANSACTOID_AGENT_SKILLS_BUILTIN_DIR: '~/.claude',
    };
    assert.deepEqual(rootsOf(env), [
      ['project', 'builtin'],
      ['builtin', 'home/.claude'],
    ]);
  });

  it('takes none of a project over a link that leads out of it, but one that the user has named', () => {
    const at = (name: string): string => join(folder.path, name);
    folder.add({ 'clone/x': '' });
    mkdirSync(at('clone/.claude'));
    symlinkSync(folder.path, at('clone/.claude/skills'));
    const rest = [
      ['user', 'home/.claude/skills'],
      ['builtin', 'builtin'],
    ];
    assert.deepEqual(rootsOf({}, 'clone'), rest);
    const diagnostics: Diagnostic[] = [];
    const config = loadConfig({ env: {}, home: at('home'), cwd: at('clone') });
    existingSkillRoots(config, diagnostics);
    assert.deepEqual(
      diagnostics.map(({ code, file }) => [code, file]),
      [['project-outside', at('clone/.claude/skills')]],
    );
    assert.deepEqual(rootsOf({ TRANSACTOID_AGENT_SKILLS_PROJECT_DIR: at('clone/../work') }, 'clone')[0], [
      'project',
      'work',
    ]);
    // At home it is the user's own, wherever it leads.
    rmSync(at('home/.claude/skills'), { recursive: true });
    symlinkSync(at('builtin'), at('home/.claude/skills'));
    assert.deepEqual(rootsOf({}, 'home'), [['project', 'home/.claude/skills']]);
  });

  it('leaves out what is no folder, and a second name for one', () => {
    symlinkSync(join(folder.path, 'work/.claude/skills'), join(folder.path, 'again'));
    const env = {
      TRANSACTOID_AGENT_SKILLS_USER_DIR: join(folder.path, 'again'),
      TRANSACTOID_AGENT_SKILLS_BUILTIN_DIR: join(folder.path, 'builtin', 'x'),
    };
    assert.deepEqual(rootsOf(env), [['project', 'work/.claude/skills']]);
    assert.deepEqual(rootsOf(env, 'absent'), [['user', 'again']]);
  });
});
