/** Two windows and a command line change one file at once: every change is in it afterwards. */
import assert from 'node:assert/strict';
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createWhole } from '../../../src/engine/files/atomicWrite.ts';
import { editShared, parseToml } from '../../../src/engine/files/settingsFile.ts';
import { removeAgentEntry, setAgentValue } from '../../../src/engine/skills/agentsToml.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('files that several windows change', () => {
  let folder: TempFolder;
  let file: string;
  beforeEach(() => {
    folder = tempFolder();
    file = join(folder.path, 'config/agents.toml');
  });
  afterEach(() => folder.remove());

  it('keep every change of those who ask at once, and nothing beside them', async () => {
    const lines = Array.from({ length: 20 }, (_, index) => `line ${index}\n`);
    await Promise.all(lines.map(line => editShared(file, text => text + line)));
    assert.deepEqual(readFileSync(file, 'utf8').split('\n').sort(), ['', ...lines.map(l => l.trim())].sort());
    assert.deepEqual(readdirSync(join(folder.path, 'config')), ['agents.toml']);
  });

  it('are changed as somebody saved them meanwhile without asking', async () => {
    folder.add({ 'config/agents.toml': 'old\n' });
    let calls = 0;
    await editShared(file, text => {
      if (calls++ === 0) writeFileSync(file, 'saved by hand\n');
      return `${text}added\n`;
    });
    assert.deepEqual([calls, readFileSync(file, 'utf8')], [2, 'saved by hand\nadded\n']);
  });

  it('are not written by one whose turn another has taken meanwhile, but changed anew', async () => {
    folder.add({ 'config/agents.toml': 'old\n' });
    let calls = 0;
    await editShared(file, text => {
      if (calls++ === 0) writeFileSync(`${file}.lock`, 'of another process');
      // The other one is done before the second turn begins.
      if (calls === 1) setImmediate(() => rmSync(`${file}.lock`));
      return `${text}added\n`;
    });
    assert.deepEqual([calls, readFileSync(file, 'utf8')], [2, 'old\nadded\n']);
    assert.deepEqual(readdirSync(join(folder.path, 'config')), ['agents.toml']);
  });

  it('are free again after a change that failed', async () => {
    const fails = editShared(file, () => {
      throw new Error('broken');
    });
    await assert.rejects(fails, /broken/);
    await editShared(file, () => 'fine');
    assert.equal(readFileSync(file, 'utf8'), 'fine');
  });

  it('lose no entry of agents.toml when packs come and go', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `a${index}`);
    const entries = names.map(name => `[agents.${name}]\nmode = "installed"\n`);
    folder.add({ 'config/agents.toml': `# Mine.\n${entries.join('\n')}` });
    chmodSync(file, 0o640);
    const linked = join(folder.path, 'linked.toml');
    symlinkSync(file, linked);
    await Promise.all([
      ...names.slice(0, 6).map(name => removeAgentEntry(file, name)),
      ...names.slice(0, 3).map(name => removeAgentEntry(file, name)),
      ...names.slice(6).map(name => setAgentValue(file, name, 'description', `of ${name}`)),
    ]);
    const text = readFileSync(file, 'utf8');
    assert.ok(text.startsWith('# Mine.\n'), text);
    for (const name of names.slice(0, 6)) assert.ok(!text.includes(`[agents.${name}]`), name);
    for (const name of names.slice(6)) assert.ok(text.includes(`description = "of ${name}"`), name);
    await removeAgentEntry(linked, 'a6');
    assert.ok(!readFileSync(file, 'utf8').includes('a6'));
    assert.equal(statSync(file).mode & 0o777, 0o640);
  });

  it('change one setting of a skill, beside the others and what a person wrote around them', async () => {
    folder.add({
      'config/agents.toml': '# Mine.\n[agents.a]\nmode = "installed"\n\n[agents.b]\nmode = "linked"\n',
    });
    const set = (agent: string, key: string, value: string | number | undefined, ...below: string[]) =>
      setAgentValue(file, agent, key, value, below);
    await set('a', 'model', 'm "1"', 'skills', 'one');
    await set('a', 'max_cost', 0.5, 'skills', 'one');
    await set('a', 'effort', 'low', 'skills', 'two words');
    await set('a', 'working_dir', '/w');
    await set('c', 'effort', 'high', 'skills', 'one');
    await set('c', 'working_dir', '/c');
    await set('a', 'model', undefined, 'skills', 'one');
    await set('d', 'model', undefined, 'skills', 'one');
    const text = readFileSync(file, 'utf8');
    assert.ok(text.startsWith('# Mine.\n[agents.a]\n'), text);
    assert.deepEqual(structuredClone(parseToml(text)), {
      agents: {
        a: {
          mode: 'installed',
          working_dir: '/w',
          skills: { one: { max_cost: 0.5 }, 'two words': { effort: 'low' } },
        },
        b: { mode: 'linked' },
        c: { working_dir: '/c', skills: { one: { effort: 'high' } } },
      },
    });
  });

  it('are made once, by the first who comes', async () => {
    const made = await Promise.all(['one', 'two', 'three'].map(text => createWhole(file, text)));
    assert.equal(made.filter(Boolean).length, 1);
    assert.equal(readFileSync(file, 'utf8'), ['one', 'two', 'three'][made.indexOf(true)]);
    assert.deepEqual(readdirSync(join(folder.path, 'config')), ['agents.toml']);
  });
});
