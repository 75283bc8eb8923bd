/**
 * What the box costs a command: the same line with it and without, in turn, in one folder with a repository, beside what bubblewrap alone
 * adds to the same line of a shell.
 */
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandBox } from '../../src/engine/box/commandBox.ts';
import { findBox } from '../../src/engine/box/findBox.ts';
import { boxNetwork } from '../../src/engine/box/forwarder.ts';
import { ChangeStore } from '../../src/engine/changes/changeStore.ts';
import { denyAll } from '../../src/engine/human.ts';
import { unseen } from '../../src/engine/run/commandChanges.ts';
import { landLayer } from '../../src/engine/run/landLayer.ts';
import { runLine } from '../../src/engine/tools/command.ts';
import type { AskHost, CommandLayer, CommandStart, ToolContext } from '../../src/engine/tools/tool.ts';
import { alternate, type Figure, figureLine, median } from './measure.ts';

const runsPerSide = 101;
/** How often the box may take what bubblewrap alone takes. */
const limit = 2.2;

/** The least that bubblewrap needs for namespaces of its own over the files that are there. */
const barest = [
  '--unshare-all',
  '--ro-bind',
  '/',
  '/',
  '--proc',
  '/proc',
  '--dev',
  '/dev',
  '--die-with-parent',
];

/** Starts the program, and returns after how long it has ended, in milliseconds. */
async function started(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const start = performance.now();
  const child = spawn(program, args, { env, stdio: 'ignore' });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`${program} ended with ${code}.`);
  return performance.now() - start;
}

/** Returns how much longer a command takes in the box. Returns nothing where no box works, and says why. */
export async function boxFigures(): Promise<Figure[]> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'telos-bench-box-')));
  try {
    for (const name of ['home', 'work/src', 'work/.vscode', 'data', 'config'])
      mkdirSync(join(root, name), { recursive: true });
    for (const name of ['.env', 'package.json', 'src/a.js', '.vscode/tasks.json'])
      writeFileSync(join(root, 'work', name), '{}');
    const work = join(root, 'work');
    execFileSync('git', ['init', '-q', work]);
    const folders = { workingDir: work, packDir: work, skillDir: work, commandDir: work };
    const env = { HOME: join(root, 'home'), PATH: process.env['PATH'] ?? '' };
    const finding = await findBox({ ...folders, env });
    if (!finding.works || finding.kind !== 'bubblewrap') {
      console.log(`(no figure of the sandbox: ${finding.works ? 'it is not bubblewrap' : finding.why})`);
      return [];
    }
    const config = { home: env.HOME, env: {}, dataDir: join(root, 'data'), configDir: join(root, 'config') };
    const box = commandBox({
      finding,
      config,
      folders,
      conversation: 'bench',
      network: boxNetwork({}),
      sharesNetwork: true,
    });
    const context = { ...folders, env, signal: new AbortController().signal };
    const askHost: AskHost = async () => 'Denied: nobody is here.';
    const changes = new ChangeStore(config).keeper(randomUUID())!;
    const policy = { ...context, home: env.HOME, protectedDirs: [] };
    const call = { id: 'bench', name: 'run_command', input: {} };
    /** What a command in the box writes goes into a layer, which lands when it has ended. */
    const timed = async (more: Partial<ToolContext>): Promise<number> => {
      let layer: CommandLayer | undefined;
      const enclosing = more.box && {
        box: {
          enclose: async (line: CommandStart, ask?: AskHost) => {
            const enclosed = await box.enclose(line, ask, true);
            layer = enclosed.layer;
            return enclosed;
          },
        },
      };
      const start = performance.now();
      const end = await runLine('true', { ...context, ...more, ...enclosing });
      if ('refusal' in end || end.code !== 0) throw new Error('The command did not run.');
      if (layer)
        await unseen(landLayer(call, layer, { human: denyAll, policy }, changes.layered(), context.signal));
      return performance.now() - start;
    };
    const { ours, bare } = await alternate(
      runsPerSide,
      () => timed({ box }),
      () => timed({}),
    );
    const [boxed, plain] = [median(ours), median(bare)];
    const led = await alternate(
      runsPerSide,
      () => timed({ box, askHost }),
      () => timed({ box }),
    );
    const way = median(led.ours) - median(led.bare);
    const alone = await alternate(
      runsPerSide,
      () => started(finding.program, [...barest, '/bin/sh', '-c', 'true'], env),
      () => started('/bin/sh', ['-c', 'true'], env),
    );
    const added = median(alone.ours) - median(alone.bare);
    console.log(
      `(a command: ${plain.toFixed(1)} ms; the same in the sandbox: ${boxed.toFixed(1)} ms; its way to hosts: ${way.toFixed(1)} ms more)`,
    );
    const name = 'what the box adds to a command';
    return [{ name, unit: 'ms', ours: boxed + way - plain, bare: added, limit }];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

if (import.meta.main) for (const figure of await boxFigures()) console.log(figureLine(figure));
