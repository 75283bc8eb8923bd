/** Installs, uninstalls or undoes in a process that is killed right before its n-th change of the file system. Arguments: folder, action, n. */
import fs from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';

const [folder = '', action = '', at = ''] = process.argv.slice(2);
let left = Number(at);

function counting(holder: object, name: string): void {
  const methods = holder as Record<string, (...values: unknown[]) => unknown>;
  const original = methods[name]!;
  methods[name] = (...values) => {
    const isChange = name !== 'open' || /[wax]/.test(String(values[1]));
    if (isChange && --left === 0) process.kill(process.pid, 'SIGKILL');
    return original.apply(holder, values);
  };
}
for (const name of ['mkdir', 'rename', 'rm', 'unlink', 'writeFile', 'open', 'link', 'symlink'])
  counting(promises, name);
for (const name of ['renameSync', 'rmSync', 'unlinkSync', 'mkdirSync']) counting(fs, name);
syncBuiltinESMExports();

// No more than is needed: it is started some hundred times.
const { loadConfig } = await import('../../../src/engine/config.ts');
const config = loadConfig({ env: {}, home: join(folder, 'home'), cwd: folder });
if (action === 'install') {
  const { installPack } = await import('../../../src/engine/skills/install.ts');
  const { planInstall } = await import('../../../src/engine/skills/planInstall.ts');
  await installPack('p', config, { agreed: (await planInstall('p', config)).token });
} else if (action === 'uninstall') {
  const { uninstallPack } = await import('../../../src/engine/skills/install.ts');
  await uninstallPack('p', config);
} else {
  const { ReplacedFolders } = await import('../../../src/engine/files/replacedFolders.ts');
  const folders = new ReplacedFolders(config);
  await folders.undo((await folders.list())[0]!.id, { force: true });
}
