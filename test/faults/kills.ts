/** The built command line, killed from outside at random points of a run of twenty rounds: what stays behind, in the log and in the process table. */

import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ChangeStore } from '../../src/engine/changes/changeStore.ts';
import { type LogRecord, logPath, parseRecord } from '../../src/engine/records/logFile.ts';
import { parseLine, runsFolder } from '../../src/engine/records/runFile.ts';
import { type CliHome, cliHome } from '../cli/cliProcess.ts';
import { type AnthropicTurn, type ReceivedRequest, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type Extent, type Figure, seeded } from './figure.ts';
import { canSeeProcesses, descendantsOf, isAlive, processesWith } from './processTable.ts';

const clingingServer = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const notesText = 'Call Ada.\n'.repeat(2000);
const toolRounds = 19;
const goneLimitMs = 10_000;

export async function killFigures(extent: Extent): Promise<Figure[]> {
  const limit =
    'no unreadable record but the torn last line, no later record lost, no process left after 10 s, all shown as interrupted';
  const kills = extent === 'whole' ? 100 : 4;
  const name = `SIGKILL at ${kills} random points of a run of 20 rounds`;
  if (!canSeeProcesses)
    return [{ name, limit, value: 'processes are counted in /proc, which is not here', met: undefined }];
  const lanes = [new Lane(1), new Lane(2)];
  try {
    const share = Math.ceil(kills / lanes.length);
    await Promise.all(lanes.map(lane => lane.work(share)));
    const sum = (of: (lane: Lane) => number): number => lanes.reduce((total, lane) => total + of(lane), 0);
    const problems = lanes.flatMap(lane => lane.problems);
    const rounds = lanes.flatMap(lane => lane.rounds).sort((a, b) => a - b);
    const value = [
      `${sum(lane => lane.killed)} killed in rounds ${rounds[0]} to ${rounds.at(-1)}`,
      `${sum(lane => lane.atStart)} more before the first request`,
      `${sum(lane => lane.torn)} torn lines`,
      `${sum(lane => lane.keptLines)} lines kept in files of the runs`,
      `${sum(lane => lane.undone)} of their writes undone`,
      `${sum(lane => lane.unplaced)} files left without their name`,
      `the last process was gone after ${Math.round(Math.max(...lanes.map(lane => lane.slowestMs)))} ms`,
      `${sum(lane => lane.interrupted)} shown as interrupted`,
      `${problems.length} problems${problems[0] ? ` (${problems.slice(0, 3).join('; ')})` : ''}`,
    ].join(', ');
    return [{ name, value, limit, met: problems.length === 0 && sum(lane => lane.killed) >= kills }];
  } finally {
    for (const lane of lanes) lane.remove();
  }
}

/** One home folder with one log, in which run after run is killed. */
class Lane {
  killed = 0;
  atStart = 0;
  torn = 0;
  interrupted = 0;
  keptLines = 0;
  undone = 0;
  unplaced = 0;
  slowestMs = 0;
  readonly rounds: number[] = [];
  readonly problems: string[] = [];
  readonly #home: CliHome;
  readonly #random: () => number;
  #log = '';
  readonly #runFiles = new Set<string>();
  #round = 0;
  #onRequest: () => void = () => undefined;

  constructor(seed: number) {
    this.#random = seeded(seed);
    this.#home = cliHome({
      'skills/kairos/agent.toml': 'working_dir = "."\n',
      'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Plans the day\n---\nDo it.\n',
      // A server that neither the end of its input nor TERM ends, with a process of its own.
      'skills/kairos/mcp.json': JSON.stringify({
        mcpServers: { clinging: { command: process.execPath, args: [clingingServer, 'clings'] } },
      }),
      'work/notes.md': notesText,
    });
  }

  async work(kills: number): Promise<void> {
    const server = await startAnthropicServer({
      turns: request => this.#turn(request),
      onRequest: () => this.#onRequest(),
    });
    this.#home.env['ANTHROPIC_API_KEY'] = 'key-for-tests-0123456789';
    this.#home.env['ANTHROPIC_BASE_URL'] = server.url;
    this.#home.env['TELOS_ROUTING_MODE'] = 'name';
    try {
      const lastsMs = await this.#wholeRun();
      const most = kills * 3;
      for (let attempt = 0; this.killed < kills && attempt < most; attempt++)
        await this.#killedRun(this.#random() * lastsMs);
      for (let index = 0; index < Math.ceil(kills / 10); index++) await this.#killedRun(undefined);
      await this.#wholeRun();
      await this.#checkList();
    } finally {
      await server.close();
    }
  }

  remove(): void {
    this.#home.remove();
  }

  #turn({ body }: ReceivedRequest): AnthropicTurn {
    const round = body.messages.filter((message: { role: string }) => message.role === 'assistant').length;
    this.#round = round + 1;
    if (round === toolRounds) return { text: ['Done.'] };
    const command = 'setsid sh -c "trap \'\' TERM; sleep 61" & sleep 61 & sleep 0.1';
    const calls = [
      { name: 'read_file', input: { path: 'notes.md' } },
      { name: 'write_file', input: { path: `out/${round}.md`, content: 'w'.repeat(100_000) } },
      { name: 'run_command', input: { command } },
      {
        name: 'edit_file',
        input: { path: 'notes.md', old_text: 'Call', new_text: `Call ${round}`, replace_all: true },
      },
    ];
    return { text: ['Looking.'], toolCalls: [calls[round % calls.length]!] };
  }

  #start() {
    return this.#home.start(['kickoff', '--yes', '--agent', 'kairos']);
  }

  /** Milliseconds from the first request to the end. */
  async #wholeRun(): Promise<number> {
    let first = 0;
    this.#onRequest = () => {
      first ||= performance.now();
    };
    const { code, stderr } = await this.#start().result;
    const lasted = performance.now() - first;
    const records = this.#readOn('a run that was not killed');
    await this.#checkRunFile('a run that was not killed', true, 0);
    const end = records.find(record => record.event === 'skill_end');
    if (
      code !== 0 ||
      end?.event !== 'skill_end' ||
      end.outcome !== 'completed' ||
      end.rounds !== toolRounds + 1
    )
      this.problems.push(`a run that was not killed ended with ${code}: ${stderr.slice(-300)}`);
    return lasted;
  }

  /** Kills so many milliseconds after the first request, or at a random moment before it. */
  async #killedRun(afterMs: number | undefined): Promise<void> {
    const firstRequest = new Promise<void>(resolve => {
      this.#onRequest = resolve;
    });
    this.#round = 0;
    const { child, result } = this.#start();
    await (afterMs === undefined
      ? delay(this.#random() * 400)
      : Promise.race([firstRequest.then(() => delay(afterMs)), result]));
    const pid = child.pid ?? 0;
    const started = descendantsOf(pid);
    const round = this.#round;
    const killedAt = performance.now();
    const ended = child.exitCode !== null || !child.kill('SIGKILL');
    await result;
    const where = `killed in round ${round}`;
    await this.#untilGone(started, killedAt, where);
    const records = this.#readOn(where);
    const isOver = ended || records.some(record => record.event === 'skill_end');
    await this.#checkRunFile(where, isOver, round);
    if (isOver) return;
    if (round === 0) this.atStart++;
    else {
      this.killed++;
      this.rounds.push(round);
      if (!records.some(record => record.event === 'skill_start'))
        this.problems.push(`${where}: no start in the log`);
    }
  }

  async #untilGone(
    started: ReturnType<typeof descendantsOf>,
    killedAt: number,
    where: string,
  ): Promise<void> {
    const own = `HOME=${this.#home.folder.path}`;
    for (;;) {
      const left = [...started.filter(isAlive), ...processesWith('environ', own)];
      const passed = performance.now() - killedAt;
      if (left.length === 0) {
        this.slowestMs = Math.max(this.slowestMs, passed);
        return;
      }
      if (passed > goneLimitMs) {
        this.problems.push(`${where}: ${left.length} processes left`);
        for (const { pid } of left) process.kill(pid, 'SIGKILL');
        return;
      }
      await delay(50);
    }
  }

  /** The records that have come since the last look; what was there before must still be there. */
  #readOn(where: string): LogRecord[] {
    const file = logPath(this.#home.dataDir);
    const log = existsSync(file) ? readFileSync(file, 'utf8') : '';
    if (!log.startsWith(this.#log)) this.problems.push(`${where}: earlier records changed`);
    const lines = log.slice(this.#log.length).split('\n').filter(Boolean);
    this.#log = log;
    const records = lines.map(parseRecord);
    const broken = records.filter(record => record === undefined).length;
    this.torn += broken;
    if (broken > 1 || (broken === 1 && records.at(-1) !== undefined))
      this.problems.push(`${where}: ${broken} unreadable records before the last line`);
    return records.filter(record => record !== undefined);
  }

  /** The file of the run: what was kept can be read but for a torn last line, and only a run that is over says so. */
  async #checkRunFile(where: string, isOver: boolean, round: number): Promise<void> {
    const folder = runsFolder(this.#home.dataDir);
    const names = existsSync(folder) ? readdirSync(folder) : [];
    const fresh = names.filter(name => !this.#runFiles.has(name));
    for (const name of fresh) this.#runFiles.add(name);
    if (fresh.length !== 1) {
      if (round > 0) this.problems.push(`${where}: ${fresh.length} files of the run`);
      return;
    }
    const lines = readFileSync(join(folder, fresh[0]!), 'utf8').split('\n').map(parseLine);
    const last = lines.pop();
    const types = lines.map(line => line?.type);
    if (types.includes(undefined) || (types.length > 0 && types[0] !== 'run'))
      this.problems.push(`${where}: its file has lines that cannot be read: ${types.join(' ')}`);
    if (round > 1 && !types.includes('tool_end'))
      this.problems.push(`${where}: its file lacks the first rounds`);
    if (!isOver && (types.includes('run_end') || last?.type === 'run_end'))
      this.problems.push(`${where}: its file says that it ended`);
    this.keptLines += types.length;
    await this.#checkUndo(where, fresh[0]!.replace('.jsonl', ''), round);
  }

  /** What a killed run has written is known and can be taken back, to the byte. */
  async #checkUndo(where: string, runId: string, round: number): Promise<void> {
    const { dataDir, folder, workDir } = this.#home;
    const store = new ChangeStore({ dataDir, configDir: join(folder.path, 'config') });
    // The second round is the first that writes.
    if (round <= 2 && (await store.find(runId)).length === 0) return;
    const { outcome, changes } = await store.undo(runId);
    const left: string[] = [];
    for (const place of [workDir, join(workDir, 'out')]) {
      for (const name of existsSync(place) ? readdirSync(place) : []) {
        // Beside its place a file is put together before it gets its name.
        const isUnplaced = name.startsWith('.telos-');
        if (isUnplaced) rmSync(join(place, name));
        else if (place !== workDir) left.push(name);
        this.unplaced += Number(isUnplaced);
      }
    }
    const notes = readFileSync(join(workDir, 'notes.md'), 'utf8');
    if (outcome !== 'undone' || left.length > 0 || notes !== notesText)
      this.problems.push(
        `${where}: undoing ${changes.files.length} files was ${outcome}, and left ${left.join(' ')}`,
      );
    this.undone += changes.files.length;
  }

  /** `telos runs` as a person sees it at the next start. */
  async #checkList(): Promise<void> {
    const { stdout } = await this.#home.runProcess(['runs', '--json', '--limit', '100000']);
    const outcomes = stdout
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line).outcome as string);
    this.interrupted = outcomes.filter(outcome => outcome === 'interrupted').length;
    if (this.interrupted < this.killed)
      this.problems.push(`${this.interrupted} of ${this.killed} runs are shown as interrupted`);
    const odd = outcomes.find(outcome => outcome !== 'interrupted' && outcome !== 'completed');
    if (odd) this.problems.push(`a run is shown as ${odd}`);
  }
}
