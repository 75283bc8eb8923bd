/**
 * Tests a user's folder that an agent's files chose. It is on the card and asked about until the card is accepted.
 * A link cannot lead to another folder.
 */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { decide } from '../../../src/engine/policy/decide.ts';
import { type Decision, type PolicyContext, runPolicy } from '../../../src/engine/policy/decision.ts';
import { recordAnswer } from '../../../src/engine/policy/grants.ts';
import { discoverAgents, type FileAgent } from '../../../src/engine/skills/discover.ts';
import { describeCard } from '../../../src/protocol/agentCard.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('a folder that an agent chose', () => {
  let folder: TempFolder;
  let agent: FileAgent;
  let context: PolicyContext;
  const at = (path: string): string => join(folder.path, path);

  beforeEach(() => {
    folder = tempFolder({
      'home/.skills/p/skills/s/SKILL.md': '---\ndescription: d\n---\nGo.\n',
      'home/Documents/a.md': 'private',
      'home/cwd/x': '',
    });
    begin('~/Documents');
  });
  afterEach(() => folder.remove());

  /** Begins a new run of the pack, with the working folder that the pack names then. */
  function begin(workingDir?: string, cwd = 'home/cwd', called = 'p'): void {
    if (workingDir !== undefined)
      folder.add({ 'home/.skills/p/agent.toml': `working_dir = ${JSON.stringify(workingDir)}\n` });
    const config = loadConfig({ env: { PATH: '' }, home: at('home'), cwd: at(cwd) });
    const found = discoverAgents(config).find(({ name }) => name === called);
    assert.ok(found);
    agent = found;
    const { workingDir: work, packDir, skills } = agent;
    const folders = { workingDir: work, packDir, skillDir: skills[0]!.dir, commandDir: packDir };
    context = runPolicy(config, agent, folders);
  }

  const about = (name: string, path: string): Promise<Decision> =>
    decide({ id: '1', name, input: { path, content: '', old_text: 'a', new_text: 'b' } }, context);
  const short = async (name: string, path: string): Promise<string> => {
    const { action, rule } = await about(name, path);
    return `${action} ${rule}`;
  };
  const card = async () => context.reviews!.cardOf(agent);
  const accept = async () => context.reviews!.accept(agent, await card(), new Date());

  it('is asked about with the card, for every tool that reads or writes there', async () => {
    for (const tool of ['read_file', 'list_directory', 'search_files', 'glob', 'write_file', 'edit_file']) {
      const decision = await about(tool, 'a.md');
      assert.equal(decision.action, 'ask', tool);
      assert.ok(decision.action === 'ask' && decision.card?.folders[0]?.path === at('home/Documents'), tool);
      assert.match(decision.reason, /files use the folder .*Documents, which you have not approved/, tool);
      assert.deepEqual(decision.toAllow, { kind: 'review_agent', agent: 'p' });
    }
    assert.match(await short('read_file', at('home/.skills/p/skills/s/SKILL.md')), /^allow/);
    const looking = { id: '1', name: 'run_command', input: { command: `cat ${at('home/Documents/a.md')}` } };
    assert.equal((await decide(looking, context)).action, 'ask');
    assert.equal((await decide(looking, { ...context, role: 'read-only' })).action, 'deny');
  });

  it('is asked about by the names that editors and other agents obey, also where its own folder has such a name', async () => {
    folder.add({ 'home/.skills/p/.vscode/.gitkeep': '' });
    begin(at('home/.skills/p/.vscode'));
    await accept();
    assert.equal(await short('write_file', 'tasks.json'), 'ask write.executed');
    begin('~/obsidian/telos/p/notes');
    assert.equal(await short('write_file', 'main.js'), 'allow write.working-dir');
    for (const name of ['.vscode', '.husky', 'venv']) {
      folder.add({
        [`home/.skills/${name}/skills/s/SKILL.md`]: '---\ndescription: d\n---\nGo.\n',
        [`home/.skills/${name}/agent.toml`]: '',
      });
      begin(undefined, 'home/cwd', name);
      assert.equal(await short('write_file', 'pre-commit'), 'ask write.executed', name);
      assert.match(await short('read_file', 'pre-commit'), /^allow/, name);
    }
  });

  it('is free once the card is accepted, which one answer does, and stays so in the next run', async () => {
    const question = await about('write_file', 'b.md');
    assert.ok(question.action === 'ask');
    const call = { id: '1', name: 'write_file', input: { path: 'b.md', content: '' } };
    assert.deepEqual(await recordAnswer(call, question, 'once', context), {});
    assert.equal(await short('write_file', 'b.md'), 'ask card.new');
    assert.deepEqual(await recordAnswer(call, question, 'always', context), {});
    begin();
    assert.equal(await short('read_file', 'a.md'), 'allow read.own-folders');
    assert.equal(await short('write_file', 'b.md'), 'allow write.working-dir');
    assert.equal(await short('read_file', '.env'), 'ask read.sensitive');
    assert.equal(await short('write_file', '.git/config'), 'ask write.executed');
  });

  it('is what the yes was said to: another one, by agent.toml or by a link, is asked about again', async () => {
    await accept();
    begin('~/Pictures');
    assert.equal(await short('write_file', 'b.md'), 'ask card.changed');
    begin('~/Documents');
    assert.equal(await short('write_file', 'b.md'), 'allow write.working-dir');
    renameSync(at('home/Documents'), at('home/moved'));
    mkdirSync(at('home/work'));
    symlinkSync('work', at('home/Documents'));
    const question = await about('write_file', 'b.md');
    assert.ok(question.action === 'ask' && question.card);
    assert.deepEqual(question.card.changes, [
      { path: at('home/Documents'), change: 'removed' },
      { path: at('home/work'), change: 'added' },
    ]);
    const shown = question.card;
    rmSync(at('home/Documents'));
    symlinkSync('moved', at('home/Documents'));
    await assert.rejects(
      context.reviews!.accept(agent, shown, new Date()),
      /changed while you reviewed its permissions/,
    );
  });

  it('is named on the card, as is every other working folder', async () => {
    const lines = describeCard(await card());
    assert.ok(lines.includes(`Working folder: ${at('home/Documents')}`));
    assert.ok(lines.includes(`  reads and writes in ${at('home/Documents')} without asking again`));
    begin('.');
    const here = describeCard(await card());
    assert.ok(here.includes(`Working folder: ${at('home/cwd')}`));
    assert.ok(here.includes('Folders that its files choose: none'));
    begin('/');
    assert.match(
      describeCard(await card()).join('\n'),
      /telos\/p\n {2}The pack wants to work in '\/', which is a whole disk, so it works in its own folder instead/,
    );
  });

  it('is none where it is the folder of the call, its own, or the user’s choice', async () => {
    for (const own of ['.', './', '~/obsidian/telos/p', '~/obsidian/telos/p/deep/er']) {
      begin(own);
      assert.equal(await short('write_file', 'b.md'), 'allow write.working-dir', own);
      assert.equal(await short('read_file', 'b.md'), 'allow read.own-folders', own);
    }
    begin('~/Documents');
    folder.add({ 'home/.config/telos/agents.toml': '[agents.p]\nworking_dir = "~/Documents"\n' });
    begin();
    assert.equal(await short('write_file', 'b.md'), 'allow write.working-dir');
    for (const other of [
      '~/obsidian/telos/other',
      '~/obsidian/telos',
      '~/obsidian/telos/pp',
      'out',
      '~/x',
      '/srv/x/y',
    ]) {
      folder.add({ 'home/.config/telos/agents.toml': '' });
      begin(other);
      assert.equal(await short('write_file', 'b.md'), 'ask card.new', other);
    }
  });

  it('is asked about where its own folder, or one below, has become a link', async () => {
    folder.add({ 'home/.skills/p/agent.toml': '' });
    mkdirSync(at('home/obsidian/telos'), { recursive: true });
    begin();
    assert.equal(await short('write_file', 'b.md'), 'allow write.working-dir');
    symlinkSync('../../Documents', at('home/obsidian/telos/p'));
    assert.equal(await short('write_file', 'b.md'), 'ask card.new');
    assert.equal(await short('read_file', 'a.md'), 'ask card.new');
    rmSync(at('home/obsidian/telos/p'));
    begin('~/obsidian/telos/p/below');
    mkdirSync(at('home/obsidian/telos/p'));
    symlinkSync('../../../Documents', at('home/obsidian/telos/p/below'));
    assert.equal(await short('read_file', 'a.md'), 'ask card.new');
    // Nothing changes if the root itself is the user's link.
    rmSync(at('home/obsidian'), { recursive: true });
    mkdirSync(at('cloud/telos'), { recursive: true });
    symlinkSync('../cloud', at('home/obsidian'));
    begin('~/obsidian/telos/p');
    assert.equal(await short('write_file', 'b.md'), 'allow write.working-dir');
  });

  it('is asked about where a skill is a link out of its pack, and free where the user has linked the pack or the skill', async () => {
    rmSync(at('home/.skills/p/skills/s'), { recursive: true });
    folder.add({
      'home/src/other/SKILL.md': '---\ndescription: d\n---\nGo.\n',
      'home/src/other/plan.md': 'private',
    });
    symlinkSync('../../../src/other', at('home/.skills/p/skills/s'));
    begin('.');
    assert.equal(await short('read_file', at('home/src/other/plan.md')), 'ask card.new');
    assert.ok(describeCard(await card()).includes(`  reads in ${at('home/src/other')} without asking again`));
    await accept();
    assert.equal(await short('read_file', at('home/src/other/plan.md')), 'allow read.own-folders');
    assert.match(await short('write_file', at('home/src/other/plan.md')), /^ask/);
    renameSync(at('home/.skills/p'), at('home/src/p'));
    rmSync(at('home/src/p/skills/s'));
    folder.add({ 'home/src/p/skills/s/SKILL.md': '---\ndescription: d\n---\nGo.\n' });
    symlinkSync('../src/p', at('home/.skills/p'));
    begin();
    assert.equal(await short('read_file', at('home/src/p/skills/s/SKILL.md')), 'allow read.own-folders');
    assert.deepEqual((await card()).folders, []);
  });

  it('goes by a rule of the user as well', async () => {
    const rule = (tool: string): string =>
      `[[allow]]\nagent = "p"\ntool = "${tool}"\npath = "${at('home/Documents')}/**"\n`;
    folder.add({ 'home/.config/telos/policy.toml': rule('read_file') + rule('write_file') });
    assert.equal(await short('read_file', 'a.md'), 'allow policy.allow:1');
    assert.equal(await short('write_file', 'b.md'), 'allow policy.allow:5');
    assert.equal(await short('read_file', '.env'), 'ask read.sensitive');
  });

  it('is covered by no card of an earlier version', async () => {
    begin('.');
    await accept();
    const [review] = await context.reviews!.list();
    assert.deepEqual(review?.folders, []);
    const { readdirSync, readFileSync, writeFileSync } = await import('node:fs');
    const file = at(`home/.config/telos/reviews/${readdirSync(at('home/.config/telos/reviews'))[0]}`);
    const { folders: _none, ...older } = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify(older));
    assert.equal((await context.reviews!.stateOf(agent)).state, 'reviewed');
    begin('~/Documents');
    assert.equal(await short('write_file', 'b.md'), 'ask card.changed');
  });
});
