/** The tree *Plans* over files that anybody may have written: what it shows of them, what it refuses, and that it follows them. */
import assert from 'node:assert/strict';
import { mkdir, readFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { PlanComments } from '../../../src/extension/editor/planComments.ts';
import { PlanFiles } from '../../../src/extension/editor/planReview.ts';
import { type PlansNode, PlansTree } from '../../../src/extension/editor/plansTree.ts';
import { Journal } from '../../../src/plans/journal.ts';
import { MachineSeal } from '../../../src/plans/machineSeal.ts';
import { PlanFolder } from '../../../src/plans/planFolder.ts';
import type { PlanEvent } from '../../../src/protocol/plan.ts';
import { until } from './editor.ts';

describe('the tree of plans', () => {
  const workspace = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '';
  const plans = join(workspace, '.telos', 'plans');
  const seal = new MachineSeal(process.env['TELOS_DATA_DIR'] ?? '');
  let tree: PlansTree;
  let view: { badge?: vscode.ViewBadge };
  let changes = 0;

  beforeEach(async () => {
    view = {};
    const changed = new vscode.EventEmitter<void>();
    changed.event(() => changes++);
    const log = vscode.window.createOutputChannel('Plans', { log: true });
    tree = new PlansTree(view as vscode.TreeView<PlansNode>, changed, log, async () => seal);
    await tree.children();
  });

  afterEach(async () => {
    tree.dispose();
    await rm(join(workspace, '.telos'), { recursive: true, force: true });
  });

  async function made(
    name: string,
    events: readonly PlanEvent[],
    stories: readonly string[],
  ): Promise<PlanFolder> {
    const folder = await PlanFolder.create(workspace, name, 'Sell **bread**', seal);
    for (const [index, text] of stories.entries()) await folder.write(`prds/0${index + 1}.md`, text);
    await noted(folder, ...events);
    return folder;
  }

  async function noted(folder: PlanFolder, ...events: readonly PlanEvent[]): Promise<void> {
    const journal = await Journal.open(folder.journal, seal);
    for (const event of events) await journal.append(event);
    await journal.close();
  }

  /** What a person reads of each row, from the top. */
  async function rows(): Promise<string[]> {
    const shown = (node: PlansNode): string => {
      const { label, description } = tree.item(node);
      return `${label} | ${description}`;
    };
    const found: string[] = [];
    for (const plan of await tree.children()) {
      found.push(shown(plan));
      for (const child of await tree.children(plan)) found.push(`- ${shown(child)}`);
    }
    return found;
  }

  const story = (id: string, title: string, more = ''): string =>
    `---\nid: ${id}\n${more}---\n# ${title}\n\n## Acceptance criteria\n\n- [ ] 1. It is so\n`;
  const started: PlanEvent = {
    type: 'runner_started',
    base: 'a'.repeat(40),
    branch: 'telos/shop',
    slots: 1,
    limits: {},
    pid: 1,
  };
  const attempt = (id: string, number: number): PlanEvent => ({
    type: 'attempt_started',
    story: id,
    item: 1,
    attempt: number,
    slot: 1,
    parent: 'a'.repeat(40),
    role: 'coder',
  });

  it('shows names of others literally: no link, no icon, nothing that turns the line around', async () => {
    const title = 'Sell [bread](command:workbench.action.quit) $(flame) \u202Edaerb\u001B[31m **now**';
    await made('shop', [{ type: 'stories_written', stories: ['US-001'] }], [story('US-001', title)]);
    await until(async () => (await rows()).length === 2);
    const [plan, row = ''] = await rows();
    assert.equal(plan, 'shop | approve to start · 0/1');
    assert.ok(row.includes('US-001 Sell [bread] (command:'), row);
    assert.doesNotMatch(row, /\u202E|\u001B|\$\(/);
    const [node] = await tree.children();
    const [child] = await tree.children(node);
    for (const item of [tree.item(node!), tree.item(child!)]) {
      assert.equal(typeof item.tooltip, 'string');
      assert.doesNotMatch(String(item.tooltip), /\u202E|\u001B/);
    }
  });

  it('reads no plan through a link, and says of one whose journal is a link that it cannot be read', async () => {
    const outside = join(workspace, 'outside');
    try {
      await made('shop', [], []);
      await rename(join(plans, 'shop'), outside);
      await symlink(outside, join(plans, 'linked'));
      await mkdir(join(plans, 'half'));
      await symlink(join(outside, 'journal.jsonl'), join(plans, 'half', 'journal.jsonl'));
      await made('sound', [], []);
      await tree.refresh();
      assert.deepEqual(await rows(), ['half | cannot be read', 'sound | interview']);
    } finally {
      await rm(outside, { recursive: true, force: true });
    }
  });

  it('shows what is whole of a journal that was cut, and that its runner is gone', async () => {
    const events = [
      started,
      { type: 'phase', phase: 'running' } as const,
      attempt('US-001', 1),
      attempt('US-001', 2),
    ];
    const { journal } = await made('shop', events, [story('US-001', 'Bread')]);
    const text = await readFile(journal, 'utf8');
    await truncate(journal, text.length - 20);
    await until(async () => (await rows())[1] === '- US-001 Bread | interrupted · attempt 1');
    assert.equal((await rows())[0], 'shop | interrupted · 0/1');
  });

  it('follows a plan as its journal grows, and counts what waits for the person', async () => {
    const stories = [story('US-001', 'Bread'), story('US-002', 'Cake', 'depends_on: [US-001]\n')];
    const folder = await made('shop', [started, { type: 'phase', phase: 'paused' }], stories);
    await until(async () => (await rows())[2] === '- US-002 Cake | blocked');
    const before = changes;
    const question = { id: 'US-001-1', story: 'US-001', text: 'Rye or wheat?', choices: ['rye'] };
    await noted(folder, { type: 'question_parked', question });
    await until(async () => (await rows())[1] === '- Rye or wheat? | US-001');
    assert.ok(changes > before);
    assert.equal(view.badge?.value, 1);
    await noted(folder, { type: 'question_answered', id: 'US-001-1', text: 'rye', by: 'cli' });
    await noted(folder, { type: 'story_passed', story: 'US-001', items: [1], commit: 'b'.repeat(40) });
    await until(async () => (await rows())[0] === 'shop | paused · 1/2');
    assert.deepEqual((await rows()).slice(1), ['- US-001 Bread | passed', '- US-002 Cake | ready']);
    assert.equal(view.badge, undefined);
  });

  it('takes a new story file, a plan.json that is wrong, and a plan that goes away', async () => {
    const folder = await made('shop', [], [story('US-001', 'Bread')]);
    await until(async () => (await rows()).length === 2);
    await writeFile(folder.path('prds', '02.md'), story('US-002', 'Cake'));
    await until(async () => (await rows()).length === 3);
    await writeFile(folder.path('plan.json'), '{');
    await rm(folder.dir, { recursive: true });
    await until(async () => (await rows()).length === 0);
  });

  it('has what is wrong with the file of a story at its line in the Problems panel, and what can be done above its title', async () => {
    const nothing = { keys: () => [], get: () => undefined, update: async () => undefined };
    const comments = new PlanComments(tree, nothing as unknown as vscode.Memento);
    const files = new PlanFiles(tree, comments);
    const text = story('US-001', 'Bread', 'checks: npm test\ndepends_on: [US-009]\n');
    const { dir } = await made('shop', [], [`${text}- [~] 2. half\n`]);
    // The extension's own view may have found the same.
    const found = (): string[] => {
      const all = vscode.languages.getDiagnostics(vscode.Uri.file(join(dir, 'prds', '01.md')));
      return [...new Set(all.map(({ range, message }) => `${range.start.line + 1}: ${message}`))].sort();
    };
    try {
      await until(() => found().length === 3);
      assert.deepEqual(found(), [
        '11: "- [~] 2. half" is not read as a box; write [ ] or [x].',
        '3: checks is not read; write check.',
        '4: US-001 depends on US-009, which is not there, so it cannot begin. Correct its depends_on.',
      ]);
      const document = await vscode.workspace.openTextDocument(join(dir, 'prds', '01.md'));
      const lenses = files
        .provideCodeLenses(document)
        .map(({ range, command }) => [range.start.line + 1, command?.title]);
      assert.deepEqual(lenses, [
        [6, 'blocked'],
        [6, 'Run to Here'],
        [6, 'Skip...'],
      ]);
    } finally {
      files.dispose();
      comments.dispose();
    }
  });
});
