/**
 * Lets each writer write where it cannot: `node writersProcess.ts <full|readonly|permission> <folder>`. For the first two it mounts a small disk in
 * the folder, so it must have mounts of its own. Prints what came of it as JSON.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Human, StreamEvent } from '../../src/engine/core/ports.ts';
import { logPath } from '../../src/engine/records/logFile.ts';
import { RunHistory } from '../../src/engine/records/runHistory.ts';
import type { RunEvent } from '../../src/protocol/run.ts';
import { calls, done, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { type Elsewhere, type EngineWorld, engineWorld } from './engineWorld.ts';

export type DiskFault = 'full' | 'readonly' | 'permission';

export interface WriterReport {
  writer: string;
  /** Everything that a person or the model was told of it. */
  told: string[];
  isOldWhole: boolean;
  /** Names that were not there before. */
  leftovers: string[];
}

interface Writer {
  name: string;
  /** Below the disk, with what is in it; the first one is the old file. */
  files: Record<string, string>;
  elsewhere?: (disk: string) => Elsewhere;
  /** Before the disk has its fault. */
  prepare?: (world: EngineWorld) => Promise<void>;
  /** Below this folder files may stay that are only as long as there was room. */
  grows?: string;
  /** Returns what was told. */
  write(world: EngineWorld, disk: string): Promise<string[]>;
}

const [fault = 'full', root = ''] = process.argv.slice(2) as [DiskFault, string];
const nobody = 65_534;
const old = 'old text\n'.repeat(300);
const fresh = 'new text\n'.repeat(100_000);
const always: Human = {
  approve: async ({ scopes }) => ({ allow: true, scope: scopes.includes('always') ? 'always' : 'once' }),
  ask: async questions => questions.map(() => ''),
};
const logDay = logPath('log');
/** Written at their end, which needs no right in their folder. */
const appended = [logDay, 'named/runs/old.jsonl'];
const skillText = '---\ndescription: Does it\n---\nDo it.\n';

/** Exactly a block of the disk long, so that not one byte more fits into it. */
const keptRun = `${JSON.stringify({ type: 'run', version: 1, runId: 'old', door: 'cli', startedAt: '2026-01-01T00:00:00Z', request: 'go', pid: 1 }).padEnd(4095)}\n`;

const writers: readonly Writer[] = [
  {
    name: 'log',
    files: {
      [logDay]: `${JSON.stringify({ ts: '2026-01-01T00:00:00Z', event: 'tool_call', tool: 'x', is_error: false, run_id: 'old', call_id: 'c' })}\n`,
    },
    elsewhere: disk => ({ dataDir: join(disk, 'log') }),
    write: async world => about(logDay, await longRun(world)),
    grows: 'log/',
  },
  {
    name: 'file of a run',
    files: { 'kept/runs/old.jsonl': old },
    elsewhere: disk => ({ dataDir: join(disk, 'kept') }),
    write: async world => about('kept/runs', await longRun(world)),
    grows: 'kept/',
  },
  {
    name: 'name of a run',
    files: { 'named/runs/old.jsonl': keptRun },
    elsewhere: disk => ({ dataDir: join(disk, 'named') }),
    write: ({ dataDir }) => thrownBy(() => new RunHistory(dataDir).rename('old', 'another name')),
  },
  {
    name: 'old content of a written file',
    files: { 'changes/changes/old/index.jsonl': old },
    elsewhere: disk => ({ dataDir: join(disk, 'changes') }),
    prepare: async ({ workDir }) => writeFileSync(join(workDir, 'notes.md'), fresh),
    write: async world => about('cannot be undone', await rewriting(world, 'less\n')),
    grows: 'changes/',
  },
  {
    name: 'undo of a run',
    files: { 'undone/notes.md': 'less\n' },
    elsewhere: disk => ({ workDir: join(disk, 'undone') }),
    async prepare(world) {
      writeFileSync(join(world.workDir, 'notes.md'), old);
      await rewriting(world, 'less\n');
    },
    async write(world) {
      const { changes } = world.open(() => scriptedProvider([]));
      return thrownBy(async () => changes.undo((await changes.latest()) ?? ''));
    },
  },
  {
    name: 'write_file',
    files: { 'write/notes.md': old },
    elsewhere: disk => ({ workDir: join(disk, 'write') }),
    write: world =>
      run(world, [
        [calls('a', 'write_file', { path: 'notes.md', content: fresh }), done('tool_use')],
        [says('Done.'), done()],
      ]),
  },
  {
    name: 'edit_file',
    files: { 'edit/notes.md': old },
    elsewhere: disk => ({ workDir: join(disk, 'edit') }),
    write: world =>
      run(world, [
        [
          calls('a', 'edit_file', {
            path: 'notes.md',
            old_text: 'old',
            new_text: fresh.slice(0, 20_000),
            replace_all: true,
          }),
          done('tool_use'),
        ],
        [says('Done.'), done()],
      ]),
  },
  {
    name: 'recording',
    files: { 'recording/run.jsonl': old },
    write: (world, disk) => run(world, [[says(fresh), done()]], join(disk, 'recording/run.jsonl')),
  },
  {
    name: 'policy.toml',
    files: {
      'config/policy.toml': '[[allow]]\nagent = "*"\ntool = "run_command"\nargv = ["git", "status"]\n',
    },
    elsewhere: disk => ({ configDir: join(disk, 'config') }),
    // With its card accepted, the agent is asked about each host.
    prepare: acceptCard,
    // Nobody answers there, which is told too.
    write: async world =>
      about(
        'Your answer holds for this call only',
        await run(world, [
          [calls('a', 'fetch_url', { url: 'http://127.0.0.1:9/' }), done('tool_use')],
          [says('Done.'), done()],
        ]),
      ),
  },
  {
    name: 'install',
    files: { 'skills/mine/skills/one/SKILL.md': skillText, 'skills/mine/big.txt': old },
    elsewhere: disk => ({ skillsDir: join(disk, 'skills') }),
    async write(world) {
      const source = join(world.path, 'source/mine');
      mkdirSync(join(source, 'skills/one'), { recursive: true });
      writeFileSync(join(source, 'skills/one/SKILL.md'), `${skillText}Another way.\n`);
      writeFileSync(join(source, 'big.txt'), fresh);
      return thrownBy(async () => {
        const telos = world.open(() => scriptedProvider([]));
        return telos.install(source, { agreed: (await telos.planInstall(source)).token });
      });
    },
  },
  {
    name: "an agent's accepted card",
    files: { 'card/policy.toml': '' },
    elsewhere: disk => ({ dataDir: join(disk, 'card'), configDir: join(disk, 'card') }),
    write: world => thrownBy(() => acceptCard(world)),
  },
  {
    name: 'agents.toml',
    files: { 'toml/agents.toml': `# Mine.\n[agents.gone]\nmode = "installed"\n${'# A line.\n'.repeat(500)}` },
    elsewhere: disk => ({ configDir: join(disk, 'toml') }),
    async prepare({ dataDir }) {
      mkdirSync(join(dataDir, 'agents/gone/skills/one'), { recursive: true });
      writeFileSync(join(dataDir, 'agents/gone/skills/one/SKILL.md'), skillText);
    },
    write: world => thrownBy(() => world.open(() => scriptedProvider([])).uninstall('gone')),
  },
  {
    name: 'a first agents.toml',
    files: { 'first/policy.toml': '' },
    elsewhere: disk => ({ configDir: join(disk, 'first') }),
    write: world => thrownBy(() => world.open(() => scriptedProvider([])).init()),
  },
  {
    name: 'a new skill',
    files: { 'skills2/mine/skills/one/SKILL.md': skillText },
    elsewhere: disk => ({ skillsDir: join(disk, 'skills2') }),
    write: world => thrownBy(() => world.open(() => scriptedProvider([])).addSkill('mine', 'two')),
  },
];

/** More to write down than the disk has room for, in several steps. */
const longRun = (world: EngineWorld): Promise<string[]> =>
  run(world, [
    [calls('a', 'list_directory', {}), done('tool_use')],
    [calls('b', 'list_directory', {}), done('tool_use')],
    [says(fresh), done()],
  ]);

const rewriting = (world: EngineWorld, content: string): Promise<string[]> =>
  run(world, [
    [calls('a', 'write_file', { path: 'notes.md', content }), done('tool_use')],
    [says('Done.'), done()],
  ]);

/** The log and the file of a run lie on one disk, and each says what is wrong with it. */
const about = (place: string, told: readonly string[]): string[] => told.filter(text => text.includes(place));

async function acceptCard(world: EngineWorld): Promise<void> {
  const telos = world.open(() => scriptedProvider([]));
  await telos.acceptCard(await telos.agentCard('kairos'));
}

/** One run; what it says of failures. */
async function run(world: EngineWorld, turns: StreamEvent[][], recordTo?: string): Promise<string[]> {
  const telos = world.open(() => scriptedProvider(turns));
  const request = {
    text: 'go',
    skill: { agent: 'kairos', skill: 'kickoff' },
    ...(recordTo ? { recordTo } : {}),
  };
  const told: string[] = [];
  for await (const event of telos.run(request, always, new AbortController().signal))
    told.push(...failureIn(event));
  return told;
}

function failureIn(event: RunEvent): string[] {
  // Where it works is said at the start of each run, whatever comes of it.
  if (event.type === 'notice') return event.message.startsWith('Works in: ') ? [] : [event.message];
  if (event.type === 'tool_end' && event.result.isError) return [event.result.content];
  if (event.type === 'run_end' && event.error) return [event.error.message];
  return [];
}

async function thrownBy(action: () => Promise<unknown>): Promise<string[]> {
  try {
    await action();
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

function namesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
}

const isFile = (path: string): boolean => statSync(path).isFile();

function makeUnwritable(disk: string, worlds: readonly EngineWorld[]): void {
  if (fault === 'readonly') execFileSync('mount', ['-o', 'remount,ro', disk]);
  if (fault === 'full') {
    // A little less each time, until not one byte more goes in.
    const filler = openSync(join(disk, 'filler'), 'w');
    for (let size = 64 * 1024; size >= 1; ) {
      try {
        writeSync(filler, Buffer.alloc(size));
      } catch {
        size = Math.floor(size / 2);
      }
    }
    closeSync(filler);
  }
  if (fault === 'permission') {
    const isRoot = process.getuid?.() === 0;
    for (const name of ['', ...namesBelow(disk)]) {
      const path = join(disk, name);
      if (isRoot) chownSync(path, nobody, nobody);
      chmodSync(path, statSync(path).isDirectory() ? 0o555 : appended.includes(name) ? 0o444 : 0o644);
    }
    if (isRoot) {
      // What belongs to the run itself stays writable.
      execFileSync('chown', ['-R', `${nobody}:${nobody}`, ...worlds.map(world => world.path)]);
      process.setgid?.(nobody);
      process.setuid?.(nobody);
    }
  }
}

const disk = join(root, 'disk');
mkdirSync(disk);
if (fault !== 'permission') execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'none', disk]);
for (const [path, text] of writers.flatMap(writer => Object.entries(writer.files))) {
  mkdirSync(dirname(join(disk, path)), { recursive: true });
  writeFileSync(join(disk, path), text);
}
const worlds = writers.map(writer => engineWorld({}, writer.elsewhere?.(disk)));
for (const [index, writer] of writers.entries()) await writer.prepare?.(worlds[index]!);
makeUnwritable(disk, worlds);
const reports: WriterReport[] = [];
for (const [index, writer] of writers.entries()) {
  const before = namesBelow(disk);
  const told = await writer.write(worlds[index]!, disk);
  // A log may have got the beginning of a record; all else is what it was.
  const isWhole = ([path, text]: [string, string]): boolean => {
    const now = readFileSync(join(disk, path), 'utf8');
    return path === logDay ? now.startsWith(text) : now === text;
  };
  const isLeft = (name: string): boolean =>
    !before.includes(name) && isFile(join(disk, name)) && !(writer.grows && name.startsWith(writer.grows));
  const leftovers = namesBelow(disk).filter(isLeft);
  reports.push({
    writer: writer.name,
    told,
    isOldWhole: Object.entries(writer.files).every(isWhole),
    leftovers,
  });
}
for (const world of worlds) world.remove();
if (fault === 'permission') {
  // Who made it must be able to remove it.
  for (const name of ['', ...namesBelow(disk)])
    if (statSync(join(disk, name)).isDirectory()) chmodSync(join(disk, name), 0o755);
}
console.log(JSON.stringify(reports));
