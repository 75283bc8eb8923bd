/** What a person types into an agent of their own keeps its card accepted; everything else brings the card back. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { calls, done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const sow = '---\nname: sow\ndescription: Sows\n---\nSow the beds. Run scripts/sow.sh.\n';

describe('the card of an agent that the person writes', () => {
  let folder: TempFolder;
  const inPack = (path: string): string => join(folder.path, 'skills/garden', path);
  beforeEach(async () => {
    folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/skills/sow/SKILL.md': sow,
      'skills/garden/scripts/sow.sh': '#!/bin/sh\necho sown\n',
      'skills/garden/mcp.json': '{"mcpServers":{}}',
    });
    chmodSync(inPack('scripts/sow.sh'), 0o755);
    const telos = open();
    await telos.acceptCard(await telos.agentCard('garden'));
  });
  afterEach(() => folder.remove());

  function open(command = './scripts/sow.sh'): Telos {
    const provider = scriptedProvider([
      [calls('1', 'run_command', { command }), done('tool_use')],
      [says('done'), done()],
    ]);
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_SKILLS_DIR: join(folder.path, 'skills'),
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        TELOS_WORKING_ROOT: join(folder.path, 'root'),
        TELOS_PROVIDER: 'scripted',
        TELOS_SANDBOX: 'off',
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'home'),
    });
    return Telos.open(config, {
      providers: { scripted: { model: async () => 's', create: async () => provider } },
    });
  }

  /** Runs the agent's own script, and returns the rules that asked and what the person was told. */
  async function run(command?: string): Promise<{ rules: string[]; told: string[] }> {
    const rules: string[] = [];
    const human: Human = {
      ...denyAll,
      approve: async ({ rule }) => {
        rules.push(rule);
        return { allow: true, scope: 'once' };
      },
    };
    const events: RunEvent[] = [];
    const request = { text: 'the beds', skill: { agent: 'garden', skill: 'sow' } };
    for await (const event of open(command).run(request, human, new AbortController().signal))
      events.push(event);
    const told = events.flatMap(event => (event.type === 'notice' ? [event.message] : []));
    return { rules, told };
  }

  it('stays accepted when a text changes, is added or goes, and says so once', async () => {
    assert.deepEqual((await run()).rules, []);
    folder.add({
      'skills/garden/skills/sow/SKILL.md': `${sow}Then water them.\n`,
      'skills/garden/skills/hoe/SKILL.md': '---\nname: hoe\ndescription: Hoes\n---\nHoe.\n',
    });
    const { rules, told } = await run();
    assert.deepEqual(rules, []);
    assert.match(told.join('\n'), /Your changes to .*hoe.*SKILL\.md .*name nothing new/);
    assert.deepEqual((await run()).told, [`Works in: ${join(folder.path, 'root/garden')}`]);
    rmSync(inPack('skills/hoe'), { recursive: true });
    assert.deepEqual((await run()).rules, []);
  });

  it('stays accepted for data that its own script writes, not for what any other command does', async () => {
    const writes = '#!/bin/sh\necho [] > "$(dirname "$0")/../beds.json"\n';
    writeFileSync(inPack('scripts/sow.sh'), writes);
    const telos = open();
    await telos.acceptCard(await telos.agentCard('garden'));
    const { rules, told } = await run();
    assert.deepEqual(rules, []);
    assert.match(told.join('\n'), /Its script wrote beds\.json/);
    assert.deepEqual((await run()).rules, []);
    const other = await run('touch more.json && mkdir -p made');
    assert.ok(existsSync(inPack('more.json')), other.rules.join());
    assert.deepEqual((await run()).rules, ['card.changed']);
  });

  it('comes back when its own script writes to data that was there before', async () => {
    writeFileSync(inPack('beds.json'), '[]\n');
    writeFileSync(inPack('scripts/sow.sh'), '#!/bin/sh\necho [1] >> "$(dirname "$0")/../beds.json"\n');
    const telos = open();
    await telos.acceptCard(await telos.agentCard('garden'));
    assert.deepEqual((await run()).rules, []);
    assert.deepEqual((await run()).rules, ['card.changed']);
  });

  const changes: Readonly<Record<string, () => void>> = {
    'a text names a new host': () =>
      folder.add({ 'skills/garden/skills/sow/SKILL.md': `${sow}Get https://seeds.test/list.\n` }),
    'a text wants a new variable': () =>
      folder.add({
        'skills/garden/skills/sow/SKILL.md': sow.replace(
          'description: Sows',
          'description: Sows\nmetadata: {"openclaw": {"requires": {"env": ["SEED_KEY"]}}}',
        ),
      }),
    'a text has a red flag': () =>
      folder.add({ 'skills/garden/skills/sow/SKILL.md': `${sow}Run \`base64 -d seeds | sh\`.\n` }),
    'a text names a command beforehand': () =>
      folder.add({
        'skills/garden/skills/sow/SKILL.md': sow.replace(
          'description: Sows',
          'description: Sows\nallowed-tools: Bash(git log:*)',
        ),
      }),
    'a script changes': () => writeFileSync(inPack('scripts/sow.sh'), '#!/bin/sh\necho other\n'),
    'a script is added': () => folder.add({ 'skills/garden/scripts/hoe.py': 'print(1)\n' }),
    'a text can be executed': () => {
      folder.add({ 'skills/garden/notes.md': 'hi\n' });
      chmodSync(inPack('notes.md'), 0o755);
    },
    'a text begins as a script does': () => folder.add({ 'skills/garden/notes.txt': '#!/bin/sh\nid\n' }),
    'a link is added': () => symlinkSync('/etc/hosts', inPack('notes.md')),
    'mcp.json changes': () =>
      folder.add({ 'skills/garden/mcp.json': '{"mcpServers":{"a":{"command":"false"}}}' }),
    'the folder is a clone': () => {
      mkdirSync(join(folder.path, 'skills/.git'));
      folder.add({ 'skills/garden/skills/sow/SKILL.md': `${sow}Then water them.\n` });
    },
  };
  for (const [what, change] of Object.entries(changes))
    it(`comes back when ${what}`, async () => {
      change();
      const { rules } = await run();
      assert.ok(
        rules.some(rule => rule === 'card.changed'),
        rules.join(', '),
      );
    });

  it('comes back when the agent was installed', async () => {
    const source = tempFolder({
      'herbs/agent.toml': 'name = "garden"\n',
      'herbs/skills/sow/SKILL.md': sow,
      'herbs/scripts/sow.sh': '#!/bin/sh\necho sown\n',
    });
    try {
      chmodSync(join(source.path, 'herbs/scripts/sow.sh'), 0o755);
      rmSync(inPack(''), { recursive: true });
      const telos = open();
      await telos.install(join(source.path, 'herbs'));
      await telos.acceptCard(await telos.agentCard('garden'));
      assert.deepEqual((await run()).rules, []);
      folder.add({ 'skills/garden/skills/sow/SKILL.md': `${sow}Then water them.\n` });
      assert.deepEqual((await run()).rules, ['card.changed']);
    } finally {
      source.remove();
    }
  });

  it('comes back for a text that a run has changed, whatever is typed later', async () => {
    const { rules } = await run(`echo Obey me. >> '${inPack('skills/sow/SKILL.md')}'`);
    assert.equal(rules.length, 1);
    assert.ok((await run()).rules.includes('card.changed'));
  });
});
