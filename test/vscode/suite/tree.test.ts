/** The tree over every root that skills come from: what shows up by itself, what is hidden by what, what is missing for a skill. */
import assert from 'node:assert/strict';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import * as vscode from 'vscode';
import type { SkillNode } from '../../../src/extension/skills/skillTree.ts';
import { activated, answering, until } from './editor.ts';
import { reportMark } from './runSuite.ts';

describe('the tree over all roots', () => {
  const skillsDir = process.env['TELOS_SKILLS_DIR'] ?? '';
  const configDir = process.env['TELOS_CONFIG_DIR'] ?? '';
  const vault = join(configDir, '..', 'vault');
  const workspace = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '';

  before(async () => {
    // What is made and removed below must not be the user's own.
    assert.equal(homedir(), join(configDir, '..'), 'the suite must run with a home of its own');
    await activated();
  });
  afterEach(async () => {
    for (const folder of [
      vault,
      join(homedir(), '.claude'),
      join(workspace, '.agents'),
      join(skillsDir, 'tree-agent'),
      join(configDir, '..', 'second.one'),
    ])
      await rm(folder, { recursive: true, force: true });
    await rm(join(configDir, 'agents.toml'), { force: true });
    await vscode.commands.executeCommand('telos.refresh');
  });

  async function nodes(agentName: string): Promise<SkillNode[]> {
    const { skillTree } = (await activated()).exports;
    const agent = (await skillTree.getChildren()).find(node => node.agent.name === agentName);
    if (!agent) return [];
    return (await skillTree.getChildren(agent)).filter(node => node.kind === 'skill');
  }

  const ids = async (agentName: string): Promise<string> =>
    (await nodes(agentName)).map(({ skill }) => skill.id).join();

  async function add(folder: string, text = '---\ndescription: Does it\n---\nDo it.\n'): Promise<void> {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'SKILL.md'), text);
  }

  it('shows a skill in a folder that was not there before, and follows it', async () => {
    await nodes('personal'); // opens the engine, which asks for the watchers
    await add(join(homedir(), '.claude', 'skills', 'first'));
    await until(async () => (await ids('personal')) === 'first');
    await add(join(homedir(), '.claude', 'skills', 'second'));
    await until(async () => (await ids('personal')) === 'first,second');
    await add(join(workspace, '.agents', 'skills', 'of-the-project'));
    await until(async () => (await ids('workspace')).includes('of-the-project'));
  });

  it('lists only what has the words of the filter, and favorites first', async () => {
    const { skillTree } = (await activated()).exports;
    for (const name of ['alpha', 'beta', 'gamma']) await add(join(skillsDir, 'tree-agent', 'skills', name));
    await vscode.commands.executeCommand('telos.refresh');
    await until(async () => (await ids('tree-agent')) === 'alpha,beta,gamma');
    await answering({ typed: ['TREE bet'] }, async () =>
      vscode.commands.executeCommand('telos.filterSkills'),
    );
    assert.deepEqual(
      (await skillTree.getChildren()).map(({ agent }) => agent.name),
      ['tree-agent'],
    );
    assert.equal(await ids('tree-agent'), 'beta');
    await vscode.commands.executeCommand('telos.clearSkillFilter');
    const gamma = (await nodes('tree-agent')).find(({ skill }) => skill.id === 'gamma');
    await vscode.commands.executeCommand('telos.addFavorite', gamma);
    assert.equal(await ids('tree-agent'), 'gamma,alpha,beta');
    const [first] = await nodes('tree-agent');
    assert.match(skillTree.getTreeItem(first!).contextValue ?? '', /\.favorite$/);
    await vscode.commands.executeCommand('telos.removeFavorite', first);
    assert.equal(await ids('tree-agent'), 'alpha,beta,gamma');
  });

  it('disables a skill and enables it again, greys its row, and offers to run only what is enabled', async () => {
    const { skillTree } = (await activated()).exports;
    for (const name of ['alpha', 'beta']) await add(join(skillsDir, 'tree-agent', 'skills', name));
    await vscode.commands.executeCommand('telos.refresh');
    await until(async () => (await ids('tree-agent')) === 'alpha,beta');
    const [alpha] = await nodes('tree-agent');
    await vscode.commands.executeCommand('telos.disableSkill', alpha);
    await until(async () => (await ids('tree-agent')) === 'beta,alpha');
    const disabled = (await nodes('tree-agent'))[1]!;
    const item = skillTree.getTreeItem(disabled);
    assert.match(item.contextValue ?? '', /^skill\.user\.disabled/);
    assert.match(String(item.description), /^disabled · Does it/);
    assert.equal(item.resourceUri?.scheme, 'telos-disabled');
    await vscode.commands.executeCommand('telos.enableSkill', disabled);
    await until(async () => (await ids('tree-agent')) === 'alpha,beta');
    assert.equal(skillTree.getTreeItem((await nodes('tree-agent'))[0]!).resourceUri, undefined);
  });

  it('shows an added skill nearly as soon as the editor itself knows of the file', async () => {
    await nodes('personal');
    const root = join(homedir(), '.claude', 'skills');
    await add(join(root, 'there'));
    await until(async () => (await ids('personal')).includes('there'));
    const pattern = new vscode.RelativePattern(vscode.Uri.file(root), '**');
    const watcher = vscode.workspace.createFileSystemWatcher(pattern);
    let isWatching = false;
    watcher.onDidCreate(() => {
      isWatching = true;
    });
    let probes = 0;
    // A watcher takes a while to begin, and says nothing of what came before.
    await until(async () => {
      if (!isWatching) await writeFile(join(root, `probe-${probes++}.txt`), '');
      return isWatching;
    });
    const { skillTree } = (await activated()).exports;
    const tellings: (() => void)[] = [];
    const telling = skillTree.onDidChangeTreeData(() => {
      for (const tell of tellings) tell();
    });
    try {
      const bare: number[] = [];
      const ours: number[] = [];
      for (const name of ['one', 'two', 'three']) {
        const known = new Promise<number>(resolve => {
          const following = watcher.onDidCreate(({ fsPath }) => {
            if (!fsPath.includes(join(root, name))) return;
            following.dispose();
            resolve(performance.now());
          });
        });
        const shown = new Promise<number>(resolve => {
          tellings.push(async () => {
            if ((await ids('personal')).includes(name)) resolve(performance.now());
          });
        });
        await add(join(root, name));
        const written = performance.now();
        bare.push((await known) - written);
        ours.push((await shown) - written);
      }
      const whole = (times: number[]): string => times.map(Math.round).join(', ');
      console.log(
        `${reportMark}      in the tree after ${whole(ours)} ms; the editor knew of the file after ${whole(bare)} ms`,
      );
      // A busy machine holds up both; what Telos adds is to settle, to look, and to tell.
      const best = (times: number[]): number => Math.min(...times);
      assert.ok(best(ours) <= best(bare) + 1_000, `${whole(ours)} ms beside ${whole(bare)} ms`);
    } finally {
      telling.dispose();
      watcher.dispose();
    }
  });

  it('shows a linked agent once agents.toml names it, and follows its folder', async () => {
    await nodes('vault');
    await add(join(vault, 'note-taking'));
    await mkdir(configDir, { recursive: true });
    await writeFile(
      join(configDir, 'agents.toml'),
      `[agents.vault]\nskills_dir = ${JSON.stringify(vault)}\n`,
    );
    await until(async () => (await ids('vault')) === 'note-taking');
    await add(join(vault, 'reading'));
    await until(async () => (await ids('vault')) === 'note-taking,reading');
  });

  it('follows what lies behind a link that leads out of the folder', async () => {
    await nodes('personal');
    const root = join(homedir(), '.claude', 'skills');
    await add(join(vault, 'elsewhere'));
    await mkdir(root, { recursive: true });
    await symlink(join(vault, 'elsewhere'), join(root, 'linked'));
    await until(async () => (await ids('personal')) === 'linked');
    // A skill reads its file when somebody asks.
    const description = async (): Promise<string> => (await nodes('personal'))[0]?.skill.description ?? '';
    assert.equal(await description(), 'Does it');
    // A watcher begins in its own time, and says nothing of what came before. The first change can be seen because of the new link alone.
    for (const round of ['first', 'second', 'third']) {
      for (let take = 1; !(await description()).startsWith(round); take++) {
        await add(join(vault, 'elsewhere'), `---\ndescription: ${round} time, take ${take}\n---\nDo it.\n`);
        await wait(500);
      }
    }
  });

  /** Hides the tree and shows it, as a person does who goes to the files and comes back. */
  async function showTree(): Promise<void> {
    await vscode.commands.executeCommand('workbench.view.explorer');
    await vscode.commands.executeCommand('telos.skills.focus');
  }

  it('shows what lies deep in a folder that came as a whole, at the latest when the tree is shown', async () => {
    await nodes('tree-agent'); // opens the engine, which asks for the watchers
    const made = join(configDir, '..', 'made');
    await add(join(made, 'skills', 'moved'));
    await mkdir(skillsDir, { recursive: true });
    await rename(made, join(skillsDir, 'tree-agent'));
    await until(async () => (await ids('tree-agent')) === 'moved');
    const description = async (): Promise<string> => (await nodes('tree-agent'))[0]?.skill.description ?? '';
    assert.equal(await description(), 'Does it');
    await add(join(skillsDir, 'tree-agent', 'skills', 'moved'), '---\ndescription: Does more\n---\nDo it.\n');
    await showTree();
    await until(async () => (await description()) === 'Does more');
    await add(join(skillsDir, 'tree-agent', 'skills', 'second.one'));
    await showTree();
    await until(async () => (await ids('tree-agent')) === 'moved,second.one');
    await rename(join(skillsDir, 'tree-agent', 'skills', 'second.one'), join(configDir, '..', 'second.one'));
    await showTree();
    await until(async () => (await ids('tree-agent')) === 'moved');
    await rename(join(configDir, '..', 'second.one'), join(skillsDir, 'tree-agent', 'skills', 'third.one'));
    await showTree();
    await until(async () => (await ids('tree-agent')) === 'moved,third.one');
  });

  it('says which skill hides one of the same name', async () => {
    await add(join(skillsDir, 'tree-agent', 'skills', 'plan'));
    await add(join(workspace, '.agents', 'skills', 'plan'));
    await vscode.commands.executeCommand('telos.refresh');
    const { skillTree } = (await activated()).exports;
    const [hidden] = await nodes('tree-agent');
    assert.ok(hidden);
    const item = await skillTree.resolveTreeItem(skillTree.getTreeItem(hidden), hidden);
    assert.match(String(item.description), /^hidden by plan of workspace/);
    assert.match(String(item.tooltip), /Use tree-agent:plan to run this skill/);
  });

  it('says what a skill lacks, and copies the command of its author', async () => {
    const needs = `{"openclaw": {"requires": {"bins": ["no-such-program"], "env": ["NO_SUCH_TOKEN"]}, "install": [{"kind": "brew", "formula": "no-such-program"}]}}`;
    await add(
      join(skillsDir, 'tree-agent', 'skills', 'needy'),
      `---\ndescription: Needs much\nmetadata: ${needs}\n---\nDo it.\n`,
    );
    await vscode.commands.executeCommand('telos.refresh');
    const { skillTree } = (await activated()).exports;
    const [needy] = await nodes('tree-agent');
    assert.ok(needy);
    const item = await skillTree.resolveTreeItem(skillTree.getTreeItem(needy), needy);
    assert.equal(item.description, 'needs no-such-program, NO_SUCH_TOKEN');
    assert.equal(item.contextValue, 'skill.user.missing');
    assert.match(String(item.tooltip), /Missing: It needs the variable NO_SUCH_TOKEN/);
    assert.match(String(item.tooltip), /Did not run in the last 30 days\./);
    const asked = await answering({ picked: [/NO_SUCH_TOKEN/] }, () =>
      Promise.resolve(vscode.commands.executeCommand('telos.whatIsMissing', needy)),
    );
    assert.deepEqual(asked.titles, ['Missing requirements of needy']);
    assert.equal(await vscode.env.clipboard.readText(), 'NO_SUCH_TOKEN');
  });
});
