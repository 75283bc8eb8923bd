/** `TELOS_CASE_PLAN` names a file with `[{command, values}]`; what Telos exports, and what each command came to, is appended to `TELOS_CASE_REPORT`. */
const { appendFileSync, readFileSync } = require('node:fs');
const vscode = require('vscode');

exports.activate = async () => {
  const report = entry => appendFileSync(process.env.TELOS_CASE_REPORT, `${JSON.stringify(entry)}\n`);
  const plan = JSON.parse(readFileSync(process.env.TELOS_CASE_PLAN, 'utf8'));
  const telos = vscode.extensions.getExtension('telos.telos');
  const exported = await telos.activate();
  const names = value => [
    ...Object.keys(value ?? {}),
    ...Object.getOwnPropertyNames(Object.getPrototypeOf(value ?? {})),
  ];
  report({
    trusted: vscode.workspace.isTrusted,
    exports: Object.fromEntries(Object.keys(exported ?? {}).map(key => [key, names(exported[key])])),
  });
  for (const { command, values = [] } of plan) {
    const call = exported?.[command] ?? ((...given) => vscode.commands.executeCommand(command, ...given));
    try {
      void Promise.resolve(call(...values)).then(
        () => report({ command, done: true }),
        error => report({ command, error: String(error) }),
      );
    } catch (error) {
      report({ command, error: String(error) });
    }
    report({ command, called: true });
  }
};
