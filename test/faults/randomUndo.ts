/**
 * Runs that change files at random, with tools and with commands, and in between a person who types, undoes, undoes the rest, restores and
 * undoes the restore. After each step the rules of undo hold.
 */
import { lstatSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Provider, StreamEvent } from '../../src/engine/core/ports.ts';
import { allowAll } from '../../src/engine/human.ts';
import { Conversation } from '../../src/engine/run/conversation.ts';
import type { Telos } from '../../src/engine/telos.ts';
import { calls, done, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { engineWorld } from './engineWorld.ts';
import { type Extent, type Figure, inLanes, seeded } from './figure.ts';
import type { Given } from './measurements.ts';
import { type Dice, diceOf } from './randomModel.ts';

const names = ['f.txt', 'd/g.txt', 'h.txt'] as const;
/** What the person types, by which it is known again. */
const typed = /^TYPED\d+$/;
const stepsEach = 9;

type State = Readonly<Record<string, string>>;

export async function undoFigures(extent: Extent, { seed }: Given): Promise<Figure[]> {
  const sequences = extent === 'whole' ? 200 : 12;
  const found: string[] = [];
  const did = new Map<string, number>();
  await inLanes(
    Array.from({ length: sequences }, (_, at) => seed * 1_000 + at),
    4,
    async one => {
      const sequence = new UndoSequence(one, did);
      try {
        await sequence.play();
      } finally {
        sequence.remove();
      }
      found.push(...sequence.problems.map(problem => `sequence ${one}: ${problem}`));
    },
  );
  const steps = [...did]
    .sort()
    .map(([what, count]) => `${count} ${what}`)
    .join(', ');
  return [
    {
      name: 'undo and restore at random: rules that are broken',
      value: `seed ${seed}: ${sequences} sequences (${steps}): ${found.length}${found.length > 0 ? ` (${found.slice(0, 2).join('; ')})` : ''}`,
      limit: 'none',
      met: found.length === 0 && (did.get('undo: undone') ?? 0) > 0,
    },
  ];
}

class UndoSequence {
  readonly problems: string[] = [];
  readonly #dice: Dice;
  readonly #did: Map<string, number>;
  readonly #world = engineWorld();
  readonly #telos: Telos;
  readonly #conversation = new Conversation();
  readonly #runs: string[] = [];
  readonly #log: string[] = [];
  #script: readonly (readonly StreamEvent[])[] = [];
  #version = 0;

  constructor(seed: number, did: Map<string, number>) {
    this.#dice = diceOf(seeded(seed));
    this.#did = did;
    this.#telos = this.#world.open((): Provider => scriptedProvider(this.#script));
  }

  async play(): Promise<void> {
    const steps = [
      ...Array<() => Promise<void>>(4).fill(() => this.#run()),
      ...Array<() => Promise<void>>(2).fill(() => this.#type()),
      ...Array<() => Promise<void>>(2).fill(() => this.#undo()),
      () => this.#restore(),
    ];
    for (let count = 0; count < stepsEach && this.problems.length === 0; count++)
      await this.#dice.oneOf(steps)();
  }

  remove(): void {
    this.#world.remove();
  }

  /** A run, sometimes undone at once: then everything is as before it. */
  async #run(): Promise<void> {
    const before = this.#state();
    const actions = Array.from({ length: 1 + this.#dice.below(3) }, (_, at) => this.#action(`c${at}`));
    this.#script = [...actions.map(action => [action, done('tool_use')]), [says('Done.'), done()]];
    const skill = { agent: 'kairos', skill: 'kickoff' };
    const request = this.#conversation.next({ text: 'work', ...(this.#conversation.isEmpty && { skill }) });
    let runId = '';
    for await (const event of this.#telos.run(request, allowAll, new AbortController().signal)) {
      this.#conversation.note(event);
      if (event.type === 'run_start') runId = event.runId;
    }
    this.#runs.push(runId);
    const inputs = actions.map(action => JSON.stringify(action.type === 'tool_call' && action.call.input));
    this.#note('run', inputs.join());
    if (!this.#dice.oneIn(3)) return;
    const outcome = await outcomeOf(this.#telos.changes.undo(runId));
    this.#note(`undo at once: ${outcome}`);
    if (outcome === 'undone') this.#expect(before, 'undo right after a run does not give what was there');
    if (outcome === 'refused') this.#tell('undo right after a run is refused');
  }

  #action(id: string): StreamEvent & { type: 'tool_call' } {
    const path = this.#dice.oneOf(names);
    const content = `v${++this.#version}`;
    const command = (line: string) => calls(id, 'run_command', { command: line });
    return this.#dice.oneOf([
      () => calls(id, 'write_file', { path, content }),
      () => command(`mkdir -p d; echo ${content} > ${path}`),
      () => command(`mkdir -p d; echo ${content} >> ${path}`),
      () => command(`rm -f ${path}`),
      () => command(`rm -rf d`),
      () => command(`[ ! -f ${path} ] || chmod 600 ${path}`),
      () => command(`mkdir -p d; ln -sfn ${content} ${path}`),
    ])() as StreamEvent & { type: 'tool_call' };
  }

  async #type(): Promise<void> {
    const name = this.#dice.oneOf(['f.txt', 'h.txt']);
    const path = join(this.#world.workDir, name);
    // A person who types into a link writes elsewhere.
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) rmSync(path);
    writeFileSync(path, `TYPED${++this.#version}`);
    this.#note('typed', name);
  }

  async #undo(): Promise<void> {
    if (this.#runs.length === 0) return;
    const before = this.#state();
    const others = this.#dice.oneIn(2);
    const at = this.#dice.below(this.#runs.length);
    const outcome = await outcomeOf(this.#telos.changes.undo(this.#runs[at]!, { others }));
    this.#note(`undo${others ? ' of the rest' : ''}: ${outcome}`, `run ${at}`);
    this.#keepsTyped(before);
    if (outcome !== 'undone') this.#expect(before, `an undo that is ${outcome} changes something`);
  }

  /** Takes back some of the latest runs, and undoes that. */
  async #restore(): Promise<void> {
    if (this.#runs.length === 0) return;
    const before = this.#state();
    const runs = this.#runs.slice(this.#dice.below(this.#runs.length));
    let id = '';
    const restored = this.#telos.changes.restore(runs).then(result => {
      if (result.outcome === 'restored') id = result.id;
      return result;
    });
    const outcome = await outcomeOf(restored);
    this.#note(`restore: ${outcome}`, `the last ${runs.length}`);
    this.#keepsTyped(before);
    if (outcome !== 'restored') return this.#expect(before, `a restore that is ${outcome} changes something`);
    if (this.#dice.oneIn(3)) return;
    const undone = await outcomeOf(this.#telos.changes.undo(id));
    this.#note(`undo of the restore: ${undone}`);
    if (undone === 'undone') this.#expect(before, 'a restore and its undo do not give what was there');
    else this.#tell(`the undo of a restore is ${undone}`);
  }

  #state(): State {
    const entry = (name: string): string => {
      const path = join(this.#world.workDir, name);
      const stats = lstatSync(path, { throwIfNoEntry: false });
      if (!stats) return 'none';
      if (stats.isSymbolicLink()) return `link to ${readlinkSync(path)}`;
      return stats.isFile() ? `${(stats.mode & 0o777).toString(8)} ${readFileSync(path, 'utf8')}` : 'folder';
    };
    return Object.fromEntries(names.map(name => [name, entry(name)]));
  }

  /** A mode that a run has changed is no word of the person. */
  #keepsTyped(before: State): void {
    const after = this.#state();
    const words = (entry = ''): string => entry.replace(/^\d+ /, '');
    for (const name of names)
      if (typed.test(words(before[name])) && words(after[name]) !== words(before[name]))
        this.#tell(`what the person typed into ${name} is lost: ${after[name]}`);
  }

  #expect(wanted: State, otherwise: string): void {
    const now = this.#state();
    const other = names.filter(name => now[name] !== wanted[name]);
    if (other.length > 0)
      this.#tell(`${otherwise}: ${other.map(name => `${name} is ${now[name]}, was ${wanted[name]}`).join()}`);
  }

  #tell(problem: string): void {
    this.problems.push(`${problem} (${this.#log.slice(-6).join(' | ')})`);
  }

  #note(what: string, more = ''): void {
    this.#did.set(what, (this.#did.get(what) ?? 0) + 1);
    this.#log.push(`${what} ${more}`.trim());
    if (/thrown: |, but /.test(what)) this.#tell('something interfered');
  }
}

/** Returns the outcome, or that it threw. One that something interfered with says so. */
async function outcomeOf(result: Promise<{ outcome: string; problem?: string }>): Promise<string> {
  try {
    const { outcome, problem } = await result;
    return problem === undefined ? outcome : `${outcome}, but ${problem}`;
  } catch (error) {
    const message = (error as Error).message;
    return /^No changes are stored/.test(message) ? 'about nothing' : `thrown: ${message.slice(0, 60)}`;
  }
}
