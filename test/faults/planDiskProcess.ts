/** `node planDiskProcess.ts FOLDER`, where mounts are its own: carries out a plan on a small disk, which is full again and again. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PlanWorld } from './planWorld.ts';

export interface DiskReport {
  /** How often a runner ended because of it. */
  times: number;
  /** Ends that did not name the reason. */
  silent: string[];
  problems: string[];
}

const disk = join(process.argv[2] ?? '', 'disk');
mkdirSync(disk);
execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=777', 'none', disk]);
process.env['TMPDIR'] = disk;
const balloon = join(disk, 'balloon');

/** Leaves so many bytes free. */
function fill(room: number): void {
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(balloon, Buffer.alloc(Math.max(0, bavail * bsize - room)));
}

const world = await PlanWorld.make(6, 1);
const report: DiskReport = { times: 0, silent: [], problems: [] };
// Full at once, a little later, and in the middle of a story.
for (const room of [0, 8, 40, 80, 160, 320, 640]) {
  fill(room * 1024);
  const ended = await world.start().report;
  rmSync(balloon);
  const said = [
    ...world.problems.splice(0),
    ...(ended?.end.kind === 'rest' && ended.end.phase !== 'done' ? [JSON.stringify(ended.end)] : []),
  ];
  if (said.length === 0) continue;
  report.times++;
  if (!/disk is full|[Nn]o space/.test(said.join())) report.silent.push(`${room} KB: ${said.join()}`);
  world.noteKill();
}
const last = await world.start({}).report;
if (last?.end.kind !== 'rest' || last.end.phase !== 'done') report.problems.push(JSON.stringify(last?.end));
world.verify();
report.problems.push(...world.problems);
console.log(JSON.stringify(report));
world.remove();
