/** The npm package as it is published: packed for real, from a copy, so that no other build is removed meanwhile. */
import { execFile } from 'node:child_process';
import { cpSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

/** Returns the packed file, and the copy that it was built in. Both lie in the folder. */
export async function packTelos(folder: string): Promise<{ tarball: string; copy: string }> {
  const copy = join(folder, 'telos');
  const sources = readdirSync(root).filter(name => !['node_modules', 'dist', '.git', 'test'].includes(name));
  for (const name of sources) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  const path = `${join(root, 'node_modules/.bin')}:${process.env['PATH']}`;
  const { stdout } = await run(
    'npm',
    ['pack', '--ignore-scripts=false', '--json', '--pack-destination', folder],
    {
      cwd: copy,
      env: { ...process.env, PATH: path },
    },
  );
  const packed = JSON.parse(stdout.slice(stdout.search(/^[[{]$/m)));
  return { tarball: join(folder, Object.values<{ filename: string }>(packed)[0]?.filename ?? ''), copy };
}
