/** In which order lists offer skills, and what they say against one. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { rankedSkills, SkillMemory } from '../../../src/extension/skills/skillRanking.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const skill = (more = ''): string => `---\ndescription: Does it\n${more}---\nDo it.\n`;
const needing = (name: string): string =>
  skill(`metadata: {"openclaw": {"requires": {"bins": ["${name}"]}}}\n`);
const day = 24 * 60 * 60 * 1000;

class Kept {
  readonly #values = new Map<string, unknown>();
  get<Value>(key: string, otherwise: Value): Value {
    return (this.#values.get(key) as Value | undefined) ?? otherwise;
  }
  async update(key: string, value: unknown): Promise<void> {
    this.#values.set(key, value);
  }
}

describe('the order of skills', () => {
  let folder: TempFolder;
  let memory: SkillMemory;
  beforeEach(() => {
    memory = new SkillMemory(new Kept());
    folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/skills/a-lacking/SKILL.md': needing('a-program-that-nobody-has'),
      'skills/garden/skills/b-broken/SKILL.md': '---\ndescription: [unclosed\n---\nDo it.\n',
      'skills/garden/skills/c-plain/SKILL.md': skill(),
      'skills/garden/skills/d-used/SKILL.md': skill(),
      'work/.claude/skills/e-here/SKILL.md': skill(),
    });
  });
  afterEach(() => folder.remove());

  async function offered(): Promise<string[]> {
    const config = loadConfig({
      env: { PATH: process.env['PATH'], TELOS_SKILLS_DIR: join(folder.path, 'skills') },
      home: folder.path,
      cwd: join(folder.path, 'work'),
      workspaceFolders: [{ name: 'work', path: join(folder.path, 'work') }],
    });
    const ranked = await rankedSkills(Telos.open(config), memory);
    return ranked.map(({ ref, note }) => `${ref.skill}${note && ` (${note})`}`);
  }

  it('puts the workspace first, then what is in use, then what is ready, and a defect last with a word on it', async () => {
    await memory.noteRun({ agent: 'garden', skill: 'd-used' });
    assert.deepEqual(await offered(), [
      'e-here',
      'd-used',
      'c-plain',
      'a-lacking (needs a-program-that-nobody-has)',
      'b-broken (has a problem)',
    ]);
  });

  it('puts a favorite first until it is none any more', async () => {
    const ref = { agent: 'garden', skill: 'c-plain' };
    await memory.setFavorite(ref, true);
    assert.equal((await offered())[0], 'c-plain');
    await memory.setFavorite(ref, false);
    assert.equal((await offered())[0], 'e-here');
  });

  it('counts runs, and older ones less', async () => {
    const [often, lately] = [
      { agent: 'garden', skill: 'often' },
      { agent: 'garden', skill: 'lately' },
    ];
    const now = Date.now();
    for (let run = 0; run < 4; run++) await memory.noteRun(often, now - 30 * day + run);
    await memory.noteRun(lately, now);
    assert.ok(memory.weight(lately, now) > memory.weight(often, now));
    for (let run = 0; run < 2; run++) await memory.noteRun(often, now - run - 1);
    assert.ok(memory.weight(often, now) > memory.weight(lately, now));
  });
});
