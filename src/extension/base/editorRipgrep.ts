/** Finds the ripgrep that the editor ships for its own search. A skill's searches then need no other one. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Returns the absolute path of ripgrep, or undefined if the editor ships none, as in a browser. `appRoot` is the folder
 * of the editor's application.
 */
export function editorRipgrep(
  appRoot: string,
  platform: NodeJS.Platform = process.platform,
  architecture: string = process.arch,
): string | undefined {
  const file = platform === 'win32' ? 'rg.exe' : 'rg';
  const packages = [
    ['@vscode', 'ripgrep-universal', 'bin', `${platform}-${architecture}`],
    ['@vscode', 'ripgrep', 'bin'],
  ];
  // Programs cannot be started from inside the archive, so they are kept next to it.
  const folders = ['node_modules', 'node_modules.asar.unpacked'];
  return folders
    .flatMap(folder => packages.map(parts => join(appRoot, folder, ...parts, file)))
    .find(path => existsSync(path));
}
