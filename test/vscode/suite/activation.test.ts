import assert from 'node:assert/strict';
import * as vscode from 'vscode';

describe('activation', () => {
  it('makes every command of the manifest available', async () => {
    const telos = vscode.extensions.getExtension('telos.telos');
    assert.ok(telos, 'the extension telos.telos is not there');
    await telos.activate();
    const known = new Set(await vscode.commands.getCommands(true));
    const declared: { command: string }[] = telos.packageJSON.contributes.commands;
    assert.ok(declared.length > 0);
    assert.deepEqual(
      declared.map(one => one.command).filter(command => !known.has(command)),
      [],
    );
  });
});
