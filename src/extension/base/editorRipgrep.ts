/** Finds the ripgrep that an editor brings for its own search, so that a skill's searches need no other one. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** `appRoot` is where the editor's application lies. Absolute; undefined where there is none, as in a browser's editor. */
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
  // Programs cannot be started out of the archive, so they are kept beside it.
  const folders = ['node_modules', 'node_modules.asar.unpacked'];
  return folders
    .flatMap(folder => packages.map(parts => join(appRoot, folder, ...parts, file)))
    .find(path => existsSync(path));
}
