import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Agent } from '../../../src/engine/skills/agent.ts';
import {
  chatCopy,
  folderInChat,
  isChatCopy,
  withLocation,
  withoutLocation,
} from '../../../src/packs/export/chatLocations.ts';
import { isPlugin } from '../../../src/packs/export/manifests.ts';

describe('the folders of plugins in VS Code’s chat', () => {
  it('gain a folder once, and lose that one alone', () => {
    const others = { '/other': false };
    const both = withLocation(others, '/kairos');
    assert.deepEqual(both, { '/other': false, '/kairos': true });
    assert.equal(withLocation(both ?? {}, '/kairos'), undefined);
    assert.deepEqual(withoutLocation(both ?? {}, '/kairos'), others);
    assert.equal(withoutLocation(others, '/kairos'), undefined);
  });

  it('use a folder again that was switched off', () =>
    assert.deepEqual(withLocation({ '/kairos': false }, '/kairos'), { '/kairos': true }));

  it('tell agents of one name apart, and what is not a copy', () => {
    const [one, other] = ['/project/.agents', '/other/.agents'].map(packDir => ({ name: 'team', packDir }));
    const copy = chatCopy(one!, '/data');
    assert.notEqual(copy, chatCopy(other!, '/data'));
    assert.equal(folderInChat(one!, '/data', { [copy]: true }), copy);
    assert.equal(folderInChat(other!, '/data', { [copy]: true }), undefined);
    assert.equal(folderInChat(one!, '/data', { '/project/.agents': true }), '/project/.agents');
    assert.equal(folderInChat(one!, '/data', { [copy]: false }), undefined);
    assert.ok(isChatCopy(copy, '/data'));
    for (const path of [
      '/data',
      '/data/chat-plugins',
      `${copy}/skills`,
      `${copy}/..`,
      `${copy}/../../../x`,
      '/x/y/z',
    ])
      assert.ok(!isChatCopy(path, '/data'), path);
  });

  it('use an own folder that is a plugin, but not one of a project or with a skill that VS Code drops', () => {
    const packDir = mkdtempSync(join(tmpdir(), 'telos-plugin-'));
    const write = (path: string, text: string): void => {
      mkdirSync(dirname(join(packDir, path)), { recursive: true });
      writeFileSync(join(packDir, path), text);
    };
    const dir = join(packDir, 'skills', 'plan');
    const agent = {
      name: 'team',
      source: 'user',
      packDir,
      skills: [{ id: 'plan', dir, file: join(dir, 'SKILL.md') }],
    } as unknown as Agent;
    try {
      write('skills/plan/SKILL.md', '---\nname: plan\ndescription: Plans the week\n---\nPlan.\n');
      assert.equal(isPlugin(agent), false);
      write('plugin.json', '{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"}');
      assert.equal(isPlugin(agent), true);
      assert.equal(isPlugin({ ...agent, source: 'project' }), false);
      write('skills/plan/SKILL.md', '---\nname: other\ndescription: Plans the week\n---\nPlan.\n');
      assert.equal(isPlugin(agent), false);
      write('plugin.json', '{');
      assert.equal(isPlugin(agent), false);
    } finally {
      rmSync(packDir, { recursive: true });
    }
  });
});
