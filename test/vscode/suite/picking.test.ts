/** Choosing by lists: the model, a skill by its rank, and what is said and stored of it. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { activated, answering, scriptModels, until } from './editor.ts';

const settings = () => vscode.workspace.getConfiguration('telos');
const command = (name: string, ...values: unknown[]) =>
  Promise.resolve(vscode.commands.executeCommand(name, ...values));

describe('choosing a model', () => {
  afterEach(async () => {
    for (const name of ['provider', 'model', 'effort', 'openai.baseUrl', 'ollama.baseUrl']) {
      await settings().update(name, undefined, vscode.ConfigurationTarget.Global);
    }
    await scriptModels([], []);
  });

  it('lists the models of the editor and what is not set up, and keeps the choice as settings', async () => {
    const { status } = (await activated()).exports;
    await scriptModels([{ id: 'plain' }, { id: 'other' }], []);
    const asked = await answering({ picked: ['Model other'] }, () => command('telos.chooseModel'));
    assert.deepEqual(asked.titles, ['Choose Model']);
    const [labels = []] = asked.lists;
    assert.ok(labels.indexOf('VS Code') < labels.indexOf('Model plain'), labels.join());
    for (const label of ['Anthropic', 'OpenAI', 'Gemini', 'OpenRouter', 'Ollama', 'Recording']) {
      assert.ok(labels.indexOf(label) > labels.indexOf('Not set up'), label);
    }
    assert.deepEqual([settings().get('provider'), settings().get('model')], ['vscode', 'telos-lm/other']);
    await until(() => status.text.includes('telos-lm/other'));
    await answering({ picked: [/Automatic/] }, () => command('telos.chooseModel'));
    assert.deepEqual([settings().get('provider'), settings().get('model')], ['auto', '']);
    await until(() => status.text.includes('telos-lm/plain'));
  });

  it('asks how much a model is to think that can be told, and keeps it for that model', async () => {
    const server = createServer((_, response) => response.end('{"data":[{"id":"gpt-5.4"},{"id":"gpt-4o"}]}'));
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    try {
      const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
      await settings().update('openai.baseUrl', address, vscode.ConfigurationTarget.Global);
      await settings().update('effort', { '*': 'low' }, vscode.ConfigurationTarget.Global);
      const choose = (...picked: string[]) => answering({ picked }, () => command('telos.chooseModel'));
      const asked = await choose('gpt-5.4', 'High');
      assert.deepEqual(asked.titles, ['Choose Model', 'gpt-5.4']);
      assert.deepEqual(settings().get('effort'), { '*': 'low', 'gpt-5.4': 'high' });
      assert.deepEqual((await choose('gpt-4o')).titles, ['Choose Model']);
      await choose('gpt-5.4', 'Model Default');
      assert.deepEqual(settings().get('effort'), { '*': 'low' });
    } finally {
      server.close();
    }
  });

  it('says in the status bar when no model can be had', async () => {
    const { status } = (await activated()).exports;
    await settings().update('provider', 'anthropic', vscode.ConfigurationTarget.Global);
    await until(() => /warning.*No model/.test(status.text));
  });
});

describe('configuring a skill', () => {
  it('keeps what is chosen in the agents.toml of the person, and shows it the next time', async () => {
    await activated();
    const [agent, skill] = [{ name: 'set-agent' }, { id: 'one' }];
    const configDir = process.env['TELOS_CONFIG_DIR'] ?? join(process.env['HOME'] ?? '', '.config', 'telos');
    const file = join(configDir, 'agents.toml');
    const before = await readFile(file, 'utf8').catch(() => undefined);
    try {
      const node = { kind: 'skill', agent, skill };
      const typed = { picked: ['Effort of its model', 'High', /dollars/], typed: ['0.5'] };
      const asked = await answering(typed, () => command('telos.configureSkill', node));
      assert.equal(asked.titles[0], `Configure ${skill.id}`);
      const text = await readFile(file, 'utf8');
      assert.match(text, /effort = "high"/);
      assert.match(text, /max_cost = 0\.5/);
      await answering({ picked: ['Effort of its model', 'Model Default'] }, () =>
        command('telos.configureSkill', node),
      );
      assert.doesNotMatch(await readFile(file, 'utf8'), /effort/);
    } finally {
      if (before === undefined) await rm(file, { force: true });
      else await writeFile(file, before);
    }
  });
});

describe('previewing the routing', () => {
  const skillsDir = process.env['TELOS_SKILLS_DIR'] ?? '';
  const dataDir = process.env['TELOS_DATA_DIR'] ?? '';
  const pack = join(skillsDir, 'routing-agent');
  const add = async (name: string, description: string): Promise<void> => {
    await mkdir(join(pack, 'skills', name), { recursive: true });
    await writeFile(
      join(pack, 'skills', name, 'SKILL.md'),
      `---\ndescription: ${description}\n---\nTalk about ${name}.\n`,
    );
  };

  before(async () => {
    await activated();
    await add('tide-table', 'Looks up when the tide is high at a harbour');
    await add('bird-calls', 'Names birds by their calls in the garden');
    await scriptModels([{ id: 'plain' }], []);
    await settings().update('routing.mode', 'local', vscode.ConfigurationTarget.Global);
    await command('telos.refresh');
  });
  after(async () => {
    await settings().update('routing.mode', undefined, vscode.ConfigurationTarget.Global);
    await scriptModels([], []);
    await rm(pack, { recursive: true });
    await command('telos.refresh');
  });

  it('shows what would run and the ranking, runs nothing, and runs what is picked with the same words', async () => {
    await scriptModels(undefined, [
      [{ call: { id: 'c1', name: 'list_directory', input: { path: '.' } } }],
      [{ text: 'High at noon.' }],
    ]);
    const words = 'when is the tide high at the harbour';
    const asked = await answering({ typed: [words] }, () => command('telos.previewRouting'));
    assert.deepEqual(asked.titles, ['Preview Routing', `Skills for “${words}”`]);
    const [labels = []] = asked.lists;
    assert.deepEqual(labels.slice(0, 4), [
      'Would run',
      '$(arrow-right) tide-table',
      'Matching skills, best match first',
      'tide-table',
    ]);
    assert.ok(labels.indexOf('bird-calls') > labels.indexOf('All others'), labels.join());
    assert.equal(((await command('telos-lm.requests')) as unknown[]).length, 0);

    await answering({ picked: ['bird-calls'] }, () => command('telos.previewRouting', words));
    await until(async () => ((await command('telos-lm.requests')) as unknown[]).length === 2);
    const [first, second] = (await command('telos-lm.requests')) as {
      messages: unknown[];
      tools: string[];
    }[];
    assert.match(JSON.stringify(first?.messages), /Talk about bird-calls.*when is the tide high/s);
    assert.ok(first?.tools.includes('read_file'));
    assert.match(JSON.stringify(second?.messages.at(-1)), /"result":"c1"/);
    await until(async () => (await logged()).includes('bird-calls'));
    assert.match(await logged(), /telos-lm\/plain/);
  });

  async function logged(): Promise<string> {
    const folder = join(dataDir, 'logs');
    const names = await readdir(folder).catch(() => []);
    return (await Promise.all(names.map(name => readFile(join(folder, name), 'utf8')))).join('');
  }
});
