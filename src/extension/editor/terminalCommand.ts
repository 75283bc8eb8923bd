/** Writes small scripts that start the command line which the extension brings: `Telos: Install 'telos' Command in PATH`, and one for a clock. */

import { lstat, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { loadText } from '@telos/engine/files';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { plainLabel } from '../base/labels.ts';

/** The editor's memory of the extension's version for which the script was written. */
const versionKey = 'telos.terminalCommand';
/** Stands in every such script, so that no other file is taken for one. */
const mark = "Starts the command line of Telos. Written by 'Telos: Install telos Command in PATH'.";

type Context = Pick<
  vscode.ExtensionContext,
  'extension' | 'extensionUri' | 'globalState' | 'globalStorageUri'
>;

const isWindows = process.platform === 'win32';

/** Returns the path of the script in a folder that shells commonly have on their PATH. */
const commandFile = (): string =>
  isWindows
    ? join(process.env['LOCALAPPDATA'] ?? homedir(), 'Telos', 'telos.cmd')
    : join(homedir(), '.local', 'bin', 'telos');

/** Returns the path of the script that a clock calls. It stays the same when an update moves the extension. */
const clockFile = ({ globalStorageUri }: Context): string =>
  join(globalStorageUri.fsPath, isWindows ? 'telos.cmd' : 'telos');

/** Returns the script. It runs on the Node of the editor, so none has to be installed. */
function scriptFor({ extensionUri }: Context): string {
  const cli = vscode.Uri.joinPath(extensionUri, 'dist', 'cli.js').fsPath;
  if (isWindows) {
    const [program, file] = [process.execPath, cli].map(path => `"${path.replaceAll('%', '%%')}"`);
    return `@rem ${mark}\r\n@set ELECTRON_RUN_AS_NODE=1\r\n@${program} ${file} %*\r\n`;
  }
  const [program, file] = [process.execPath, cli].map(path => `'${path.replaceAll("'", `'\\''`)}'`);
  return `#!/bin/sh\n# ${mark}\nELECTRON_RUN_AS_NODE=1 exec ${program} ${file} "$@"\n`;
}

/** Writes the script after a yes if another program has its name, and says what is left to do. */
export async function installCommand(context: Context): Promise<void> {
  const file = commandFile();
  if (!(await mayReplace(file))) return;
  await writeScript(file, scriptFor(context));
  await context.globalState.update(versionKey, context.extension.packageJSON.version);
  const folder = dirname(file);
  if ((process.env['PATH'] ?? '').split(delimiter).includes(folder)) {
    acknowledge(vscode.l10n.t('Installed. Type {0} in a new terminal.', 'telos'));
    return;
  }
  const line = isWindows ? `setx PATH "%PATH%;${folder}"` : `export PATH="$HOME/.local/bin:$PATH"`;
  const copy = vscode.l10n.t('Copy');
  const answer = await vscode.window.showInformationMessage(
    vscode.l10n.t(
      'Installed as {0}. Its folder is not on your PATH; add it with: {1}',
      plainLabel(file, 300),
      line,
    ),
    { modal: true },
    copy,
  );
  if (answer === copy) await vscode.env.clipboard.writeText(line);
}

/** Writes the script for a clock, and returns its path. Rejects if it cannot be written. */
export async function writeClockScript(context: Context): Promise<string> {
  const file = clockFile(context);
  await writeScript(file, scriptFor(context));
  await context.globalState.update(versionKey, context.extension.packageJSON.version);
  return file;
}

/** Writes the scripts again if the extension was updated since, which moves the files that it starts. */
export async function updateCommand(context: Context): Promise<void> {
  const { version } = context.extension.packageJSON;
  const written = context.globalState.get<string>(versionKey);
  if (written === undefined || written === version) return;
  for (const file of [commandFile(), clockFile(context)])
    if (await isOwnScript(file)) await writeScript(file, scriptFor(context));
  await context.globalState.update(versionKey, version);
}

async function mayReplace(file: string): Promise<boolean> {
  const there = await lstat(file).catch(() => undefined);
  if (!there || (await isOwnScript(file))) return true;
  const replace = vscode.l10n.t('Replace');
  const question = vscode.l10n.t('Replace {0}?', plainLabel(file, 300));
  const detail = vscode.l10n.t('Another program has this name. It is removed.');
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, replace)) === replace;
}

/** Returns true for a script that was written here. A link is none. */
async function isOwnScript(file: string): Promise<boolean> {
  const there = await lstat(file).catch(() => undefined);
  if (!there?.isFile() || there.size > 10_000) return false;
  return (await loadText(file)).includes(mark);
}

/** Replaces the file itself, never what a link in its place leads to. */
async function writeScript(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const beside = `${file}.${process.pid}.new`;
  try {
    await writeFile(beside, text, { mode: 0o755, flag: 'wx' });
    await rename(beside, file);
  } finally {
    await rm(beside, { force: true });
  }
}
