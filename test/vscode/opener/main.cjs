/** A second extension beside Telos: does the two clicks with which a user opens the tree and the chat. */
const vscode = require('vscode');

exports.activate = async () => {
  await vscode.commands.executeCommand('telos.skills.focus');
  await vscode.commands.executeCommand('telos.chat.focus');
};
