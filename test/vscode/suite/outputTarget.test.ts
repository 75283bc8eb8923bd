/** *Run Skill on Selection* and *on File*: what the skill says goes where the person wants it. */
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { activated, answering, scriptModels, until } from './editor.ts';

const skillsDir = process.env['TELOS_SKILLS_DIR'] ?? '';
const pack = join(skillsDir, 'target-agent');

describe('where an answer goes', () => {
  before(async () => {
    await activated();
    await mkdir(join(pack, 'skills', 'shout'), { recursive: true });
    await writeFile(join(pack, 'skills', 'shout', 'SKILL.md'), '---\ndescription: Shouts\n---\nShout.\n');
    await scriptModels([{ id: 'plain' }], []);
    await vscode.commands.executeCommand('telos.refresh');
  });
  after(async () => {
    await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
    await scriptModels([], []);
    await rm(pack, { recursive: true });
    await vscode.commands.executeCommand('telos.refresh');
  });

  async function selectedWord(): Promise<vscode.TextEditor> {
    const document = await vscode.workspace.openTextDocument({
      content: 'one two three',
      language: 'plaintext',
    });
    const selection = new vscode.Selection(0, 4, 0, 7);
    const editor = await vscode.window.showTextDocument(document, { selection });
    // The editor tells of its cursor in its own time.
    await until(() => vscode.window.activeTextEditor === editor && editor.selection.isEqual(selection));
    return editor;
  }

  const run = (target: RegExp, command = 'telos.runSkillOnSelection', ...values: unknown[]) =>
    answering({ picked: ['shout', target], typed: [''] }, async () => {
      await vscode.commands.executeCommand(command, ...values);
    });

  it('takes the place of the selection, or stands after it', async () => {
    for (const [target, wanted] of [
      [/Replace/, 'one TWO three'],
      [/Insert/, 'one two\n\nTWO\n three'],
    ] as const) {
      await scriptModels(undefined, [[{ text: 'TWO' }]]);
      const { document } = await selectedWord();
      await run(target);
      assert.equal(document.getText().replaceAll('\r', ''), wanted);
      await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
    }
  });

  it('goes to a new document or the clipboard; the target used last is on top', async () => {
    await scriptModels(undefined, [[{ text: 'TWO' }]]);
    await selectedWord();
    await run(/New Document/);
    assert.equal(vscode.window.activeTextEditor?.document.getText(), 'TWO');
    await scriptModels(undefined, [[{ text: 'FILE' }]]);
    const file = vscode.Uri.file(join(pack, 'skills', 'shout', 'SKILL.md'));
    const asked = await run(/Clipboard/, 'telos.runSkillOnFile', file);
    assert.match(asked.lists[1]?.[0] ?? '', /New Document/);
    assert.ok(!asked.lists[1]?.some(label => /Replace|Insert/.test(label)));
    assert.equal(await vscode.env.clipboard.readText(), 'FILE');
    const requests = (await vscode.commands.executeCommand('telos-lm.requests')) as { messages: unknown[] }[];
    assert.ok(JSON.stringify(requests[0]?.messages).includes(file.fsPath));
  });

  it('touches nothing when the selected text has changed meanwhile', async () => {
    await scriptModels(undefined, [[{ text: 'TWO' }]]);
    const editor = await selectedWord();
    await answering({ picked: ['shout', /Replace/], typed: [''] }, async () => {
      const running = vscode.commands.executeCommand('telos.runSkillOnSelection');
      await editor.edit(change => change.insert(new vscode.Position(0, 0), 'zero '));
      await running;
    });
    assert.equal(editor.document.getText(), 'zero one two three');
    assert.equal(vscode.window.activeTextEditor?.document.getText(), 'TWO');
  });
});
