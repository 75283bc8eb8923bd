/** A SKILL.md as the editor shows it: its problems and their fixes, and what can be done above its first line. */
import assert from 'node:assert/strict';
import { mkdir, realpath, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { lintText, mendText } from '../../../src/engine/skills/lint.ts';
import { activated, answering, until } from './editor.ts';

describe('SKILL.md in the editor', () => {
  const skillsDir = process.env['TELOS_SKILLS_DIR'] ?? '';
  const pack = join(skillsDir, 'language-agent');

  before(() => activated());
  afterEach(async () => {
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
    await rm(pack, { recursive: true, force: true, maxRetries: 5 });
    await vscode.commands.executeCommand('telos.refresh');
  });

  async function write(name: string, text: string): Promise<vscode.Uri> {
    const folder = join(pack, 'skills', name);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'SKILL.md'), text);
    return vscode.Uri.file(join(await realpath(folder), 'SKILL.md'));
  }

  async function open(name: string, text: string): Promise<vscode.TextDocument> {
    const document = await vscode.workspace.openTextDocument(await write(name, text));
    await vscode.window.showTextDocument(document);
    return document;
  }

  const problems = (uri: vscode.Uri): vscode.Diagnostic[] =>
    vscode.languages.getDiagnostics(uri).filter(({ source }) => source === 'Telos');

  /** The editor may be busy with a document that it has just opened, and then it has no fixes yet. */
  async function fixOf(
    { uri }: vscode.TextDocument,
    range: vscode.Range,
    isWanted: (title: string) => boolean,
  ): Promise<vscode.WorkspaceEdit> {
    for (;;) {
      const kind = vscode.CodeActionKind.QuickFix.value;
      const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
        'vscode.executeCodeActionProvider',
        uri,
        range,
        kind,
      );
      const edit = actions.find(({ title, edit }) => edit && isWanted(title))?.edit;
      if (edit) return edit;
      await new Promise(resolve => setTimeout(resolve, 50));
    }
  }

  it('says what is wrong, and mends it: a value without quotes, a name that is not the folder', async () => {
    const document = await open(
      'tidy',
      '---\nname: neat\ndescription: Use when: it is untidy\n---\nTidy up.\n',
    );
    await until(() => problems(document.uri).length === 2);
    for (const { message, range } of problems(document.uri)) {
      const fix = await fixOf(document, range, title => message.endsWith(title));
      assert.ok(await vscode.workspace.applyEdit(fix), message);
    }
    assert.equal(
      document.getText(),
      '---\nname: tidy\ndescription: "Use when: it is untidy"\n---\nTidy up.\n',
    );
    await until(() => problems(document.uri).length === 0);
  });

  it('mends each defect as lint --fix does', async () => {
    const body = '---\nDo it.\n';
    const defective = {
      open: '---\nname: open\ndescription: Opens\n\nDo it.\n',
      capital: `---\nName: capital\nDescription: Writes\n${body}`,
      colon: `---\nname: colon\ndescription: Use when: torn\n${body}`,
      comment: `---\nname: comment\ndescription: Mends issue #12 and others\n${body}`,
      sign: `---\nname: sign\ndescription: *all of it\n${body}`,
      quote: `---\nname: quote\ndescription: "Says it\n${body}`,
      both: `---\nname: both\nDescription: Use when: torn\n${body}`,
    };
    const differing: string[] = [];
    for (const [name, text] of Object.entries(defective)) {
      const document = await open(name, text);
      const file = document.uri.fsPath;
      const mended = mendText(text, file);
      assert.notEqual(mended, text, name);
      const wanted = (): readonly { code: string; line: number }[] =>
        lintText(document.getText(), file).filter(({ edit, severity }) => edit && severity !== 'info');
      for (let rounds = 0; wanted().length > 0 && rounds < 5; rounds++) {
        const [{ code, line } = { code: '', line: 1 }] = wanted();
        const isIt = ({ code: shown, range }: vscode.Diagnostic): boolean =>
          shown === code && range.start.line === line - 1;
        await until(() => problems(document.uri).some(isIt));
        const range = problems(document.uri).find(isIt)?.range ?? new vscode.Range(0, 0, 0, 0);
        const message = problems(document.uri).find(isIt)?.message ?? '';
        await vscode.workspace.applyEdit(await fixOf(document, range, title => message.endsWith(title)));
      }
      if (document.getText() !== mended) differing.push(`${name}: ${document.getText()}`);
      await document.save();
    }
    assert.deepEqual(differing, []);
  });

  it('closes a frontmatter that was left open', async () => {
    const document = await open('open', '---\nname: open\ndescription: Opens\n\nDo it.\n');
    await until(() => problems(document.uri).length === 1);
    const range = problems(document.uri)[0]?.range ?? new vscode.Range(0, 0, 0, 0);
    await vscode.workspace.applyEdit(await fixOf(document, range, () => true));
    assert.equal(document.getText(), '---\nname: open\ndescription: Opens\n---\n\nDo it.\n');
  });

  it('lists the problems of skills that nobody has open, until they are mended', async () => {
    const uri = await write('torn', '---\ndescription: Use when: torn\n---\nDo it.\n');
    await vscode.commands.executeCommand('telos.refresh');
    await until(() => problems(uri).length === 1);
    await write('torn', '---\ndescription: Use it\n---\nDo it.\n');
    await vscode.commands.executeCommand('telos.refresh');
    await until(() => problems(uri).length === 0);
  });

  it('runs from the line above it', async () => {
    const document = await open('lens', '---\nname: lens\ndescription: Looks\n---\nLook.\n');
    await vscode.commands.executeCommand('telos.refresh');
    const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>(
      'vscode.executeCodeLensProvider',
      document.uri,
    );
    assert.deepEqual(
      lenses.map(({ command, range }) => [command?.title, range.start.line]),
      [
        ['$(play) Run', 0],
        ['Preview Routing', 0],
      ],
    );
    const asked = await answering({}, async () => {
      const { command, arguments: values = [] } = lenses[0]?.command ?? { command: '' };
      await vscode.commands.executeCommand(command, ...values);
    });
    assert.deepEqual(asked.titles, ['Run lens']);
  });
});
