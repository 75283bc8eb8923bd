/** A skill that a person has disabled: it is found by no request and offered by no list, until it is enabled again. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { pickableSkills } from '../../../src/extension/skills/skillFiles.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const skill = (description: string): string => `---\ndescription: ${description}\n---\nDo it.\n`;
const { signal } = new AbortController();

describe('a disabled skill', () => {
  let folder: TempFolder;
  const watering = { agent: 'garden', skill: 'water-plants' };

  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/skills/water-plants/SKILL.md': skill('Waters the tomatoes and the roses'),
      'skills/garden/skills/mow-lawn/SKILL.md': skill('Mows the lawn'),
      'work/.claude/skills/mow-lawn/SKILL.md': skill('Mows the lawn of this project'),
    });
  });
  afterEach(() => folder.remove());

  /** Each call opens Telos anew, as another window or the command line does. */
  const open = (): Telos =>
    Telos.open(
      loadConfig({
        env: { TELOS_SKILLS_DIR: join(folder.path, 'skills') },
        home: folder.path,
        cwd: join(folder.path, 'work'),
        workspaceFolders: [{ name: 'work', path: join(folder.path, 'work') }],
      }),
    );
  const found = async (text: string): Promise<string | undefined> => {
    const { agent, skill: chosen } = await open().route({ text }, signal);
    return chosen && `${agent.name}:${chosen.id}`;
  };

  it('is found neither by its name nor by its words, and runs if it is addressed in full', async () => {
    const requests = ['run water-plants', '/water-plants', '$water-plants', 'the tomatoes and the roses'];
    for (const text of requests) assert.equal(await found(text), 'garden:water-plants', text);
    await open().setSkillDisabled(watering, true);
    for (const text of requests) assert.equal(await found(text), undefined, text);
    assert.equal(await found('garden:water-plants'), 'garden:water-plants');
    const { suggestions } = (await open().route({ text: 'xyzzy' }, signal)) as {
      suggestions: readonly { skill: string }[];
    };
    assert.ok(suggestions.length > 0 && suggestions.every(each => each.skill !== 'water-plants'));
    await open().setSkillDisabled(watering, false);
    for (const text of requests) assert.equal(await found(text), 'garden:water-plants', text);
  });

  it('is in no list, and stays with its agent', async () => {
    const telos = open();
    await telos.setSkillDisabled(watering, true);
    const offered = await pickableSkills(await telos.agents());
    assert.deepEqual(
      offered.map(each => each.skill.id),
      ['mow-lawn', 'mow-lawn'],
    );
    const garden = (await telos.agents()).find(({ name }) => name === 'garden');
    assert.deepEqual(
      garden?.skills.map(({ id, isDisabled = false, modelInvocable }) => [id, isDisabled, modelInvocable]),
      [
        ['mow-lawn', false, true],
        ['water-plants', true, true],
      ],
    );
  });

  it('gives way to the skill that it hid', async () => {
    assert.equal(await found('run mow-lawn'), 'work:mow-lawn');
    await open().setSkillDisabled({ agent: 'work', skill: 'mow-lawn' }, true);
    assert.equal(await found('run mow-lawn'), 'garden:mow-lawn');
  });

  it('says which file is broken, and overwrites nothing in it', async () => {
    const telos = open();
    await telos.setSkillDisabled(watering, true);
    const file = join(telos.config.dataDir, 'skills', 'disabled.json');
    writeFileSync(file, '{"water');
    assert.equal(await found('run water-plants'), 'garden:water-plants');
    await assert.rejects(telos.setSkillDisabled(watering, true), /disabled\.json is not a list of skills/);
  });
});
