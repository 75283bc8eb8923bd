/** The part of the command lines where several doors work on the same folders. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Door, roundsOf } from './doorsWorld.ts';

const program = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

/** What a person does at a terminal while windows work on the same folders, see `seedFiles`; what went wrong, in sentences. */
export async function commandLines(
  door: Door,
  home: string,
  workDir: string,
  env: NodeJS.ProcessEnv,
): Promise<string[]> {
  const problems: string[] = [];
  const source = (name: string): string => join(home, 'sources', name);
  for (const key of roundsOf(door)) {
    const lines = [
      [`round ${key} kickoff`, '--agent', 'kairos', '--yes'],
      ['trust', `own-${key}`, '--yes'],
      ['install', source(`pack-${key}`)],
      ['install', source('same')],
      ['install', source(`told-${key}`), '--yes'],
      ['uninstall', `old-${key}`, '--yes'],
    ];
    const results = lines.map(async line => {
      const child = spawn(process.execPath, [program, ...line], {
        cwd: workDir,
        env,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let stderr = '';
      child.stderr.on('data', piece => {
        stderr += piece;
      });
      const [code] = (await once(child, 'close')) as [number | null];
      if (code !== 0) problems.push(`telos ${line.join(' ')} ended with ${code}: ${stderr.slice(-300)}`);
    });
    await Promise.all(results);
  }
  return problems;
}
