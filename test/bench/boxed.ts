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

/** Few files and many: what a command costs must hardly grow with them. */
const [few, many] = [10, 30_000];
/** How much longer six writing commands may take in the larger folder. */
const manyLimit = 2;

/** Puts that many files into a folder, a hundred into each of its folders. */
function fill(folder: string, count: number): void {
  for (let at = 0; at < count; at++) {
    const place = join(folder, `d${Math.floor(at / 100)}`);
    if (at % 100 === 0) mkdirSync(place, { recursive: true });
    writeFileSync(join(place, `file${at}.txt`), `${at}`);
  }
}

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

/** Returns how long six commands of a new conversation take that each write a file, in milliseconds. */
async function sixCommands(root: string, work: string): Promise<number> {
  const place = mkdtempSync(join(root, 'six-'));
  for (const name of ['home', 'data', 'config']) mkdirSync(join(place, name));
  const folders = { workingDir: work, packDir: work, skillDir: work, commandDir: work };
  const env = { HOME: join(place, 'home'), PATH: process.env['PATH'] ?? '' };
  const finding = await findBox({ ...folders, env });
  if (!finding.works) throw new Error(finding.why);
  const config = { home: env.HOME, env: {}, dataDir: join(place, 'data'), configDir: join(place, 'config') };
  const box = commandBox({ finding, config, folders, conversation: place, network: boxNetwork({}) });
  const changes = new ChangeStore(config).keeper(randomUUID())!;
  const context = { ...folders, env, signal: new AbortController().signal };
  const policy = { ...context, home: env.HOME, protectedDirs: [] };
  const start = performance.now();
  for (let at = 0; at < 6; at++) {
    let layer: CommandLayer | undefined;
    const layered = {
      enclose: async (line: CommandStart) => {
        const enclosed = await box.enclose(line, undefined, true);
        layer = enclosed.layer;
        return enclosed;
      },
    };
    await runLine(`echo ${at} > out${at}.txt`, { ...context, box: layered });
    const call = { id: 'bench', name: 'run_command', input: {} };
    const landing = { human: denyAll, policy };
    if (layer) await unseen(landLayer(call, layer, landing, changes.layered(), context.signal));
  }
  const took = performance.now() - start;
  box.rest?.();
  rmSync(place, { recursive: true, force: true });
  return took;
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
    const [small = '', large = ''] = [few, many].map(count => {
      const folder = mkdtempSync(join(root, 'files-'));
      fill(folder, count);
      return folder;
    });
    const six = await alternate(
      9,
      () => sixCommands(root, large),
      () => sixCommands(root, small),
    );
    return [
      { name, unit: 'ms', ours: boxed + way - plain, bare: added, limit },
      {
        name: 'six writing commands among 30,000 files',
        unit: 'ms',
        ours: median(six.ours),
        bare: median(six.bare),
        limit: manyLimit,
      },
    ];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

if (import.meta.main) for (const figure of await boxFigures()) console.log(figureLine(figure));
