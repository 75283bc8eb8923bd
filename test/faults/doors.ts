/** Two windows and two command lines that change the same folders at the same moment: whether anything is lost. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { cliHome } from '../cli/cliProcess.ts';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { commandLines } from './doorLines.ts';
import { type Door, problemsAfter, roundsOf, seedFiles, turnOf } from './doorsWorld.ts';
import type { Extent, Figure } from './figure.ts';

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export async function doorFigures(extent: Extent): Promise<Figure[]> {
  const [windowRounds, lineRounds] = extent === 'whole' ? [15, 8] : [3, 1];
  const window = (name: string): Door => ({ name, isWindow: true, rounds: windowRounds });
  const line = (name: string): Door => ({ name, isWindow: false, rounds: lineRounds });
  const lines = extent === 'whole' ? [line('c1'), line('c2')] : [line('c1')];
  const doors = [window('w1'), window('w2'), ...lines];
  const home = cliHome(seedFiles(doors));
  const server = await startAnthropicServer({ turns: turnOf });
  home.env['ANTHROPIC_API_KEY'] = 'key-for-tests-0123456789';
  home.env['ANTHROPIC_BASE_URL'] = server.url;
  home.env['TELOS_ROUTING_MODE'] = 'name';
  const windows: ChildProcess[] = [];
  try {
    for (const { name, rounds } of doors.filter(({ isWindow }) => isWindow))
      windows.push(fork(script('doorProcess.ts'), [name, String(rounds), home.folder.path, server.url]));
    await Promise.all(windows.map(window => once(window, 'message')));
    const said = windows.map(window => once(window, 'message') as Promise<[string[]]>);
    for (const window of windows) window.send('begin');
    const rows = lines.map(door => commandLines(door, home.folder.path, home.workDir, home.env));
    const told = [
      ...(await Promise.all(said)).flatMap(([problems]) => problems),
      ...(await Promise.all(rows)).flat(),
    ];
    const lost = await problemsAfter(home.folder.path, doors, 'engine');
    const problems = [...told, ...lost];
    const rounds = doors.flatMap(roundsOf).length;
    return [
      {
        name: `two windows and ${lines.length} rows of command lines on the same folders`,
        value: `${problems.length} lost, broken or complained of${problems[0] ? ` (${problems.slice(0, 5).join('; ')})` : ''}; ${rounds} rounds, each with a run, a review, two installs, an install over an older pack and an uninstall; those of windows also with a rule granted and one revoked`,
        limit: 'nothing',
        met: problems.length === 0,
      },
    ];
  } finally {
    for (const window of windows) window.kill('SIGKILL');
    await server.close();
    home.remove();
  }
}
