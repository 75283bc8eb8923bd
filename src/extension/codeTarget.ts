/** Where a code block of an answer goes when the person says so: to the cursor of the editor, or into a new document. */
import * as vscode from 'vscode';

/** What a fence calls some languages; the editor has its own names for them. */
const fenceNames: Readonly<Record<string, string>> = {
  bash: 'shellscript',
  sh: 'shellscript',
  shell: 'shellscript',
  zsh: 'shellscript',
  js: 'javascript',
  jsx: 'javascriptreact',
  ts: 'typescript',
  tsx: 'typescriptreact',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  md: 'markdown',
  yml: 'yaml',
  'c++': 'cpp',
  'c#': 'csharp',
  cs: 'csharp',
  ps1: 'powershell',
};

/** In place of what is selected in `editor`. Where there is none, the text goes into a new document. */
export async function insertAtCursor(editor: vscode.TextEditor | undefined, text: string): Promise<void> {
  if (!editor) {
    await openNewFile(text, '');
    return;
  }
  const code = text.replace(/\n$/, '');
  const done = await editor.edit(edit => {
    for (const selection of editor.selections) edit.replace(selection, code);
  });
  if (!done) {
    void vscode.window.showWarningMessage(
      vscode.l10n.t('The code was not inserted: the editor does not let its text be changed.'),
    );
    return;
  }
  await vscode.window.showTextDocument(editor.document, editor.viewColumn);
}

/** An unsaved document; in plain text where the editor does not know the language. */
export async function openNewFile(text: string, language: string): Promise<void> {
  const wanted = fenceNames[language.toLowerCase()] ?? language.toLowerCase();
  const known = await vscode.languages.getLanguages();
  const document = await vscode.workspace.openTextDocument({
    content: text,
    ...(known.includes(wanted) ? { language: wanted } : {}),
  });
  await vscode.window.showTextDocument(document);
}
