/**
 * The slots of workers: gives them attempts as orders, takes their facts into the journal, and puts on the plan's branch what they have
 * kept. Only here is anything put on that branch.
 */

import { TelosError } from '@telos/engine/errors';
import { atMost } from '@telos/engine/run';
import {
  type AttemptCall,
  type AttemptEnd,
  type AttemptParts,
  AttemptScene,
  endAttempt,
  failed,
  noteConflict,
  noteStart,
  putOnBranch,
  type Sides,
  type StorySlots,
  takeVerdict,
} from '@telos/plans/executor';
import { foldStory, noProgress, type OpenAttempt } from '@telos/plans/state';
import type { PlanLimits } from '@telos/protocol/plan';
import type { PlanPusher } from './planPusher.ts';
import { isFactOfWork, workEnd, workFact } from './storyFacts.ts';
import type { JobEnd, JobTalk, StoryJobs } from './storyJobs.ts';
import { orderRef, workRef, writeOrder } from './storyOrder.ts';

export interface WorkerSlotsParts extends AttemptParts {
  jobs: StoryJobs;
  pusher: PlanPusher;
  limits: PlanLimits;
}

/** The one work tree here, in which the merged work of all is checked. */
const ownSlot = 1;
/** A job that so many workers have left is begun again. */
const mostGiven = 6;

export class WorkerSlots implements StorySlots {
  readonly canHold = false;
  readonly #parts: WorkerSlotsParts;
  readonly #inTurn = atMost(1);
  /** Attempts that have come back from their workers. */
  #worked = 0;

  constructor(parts: WorkerSlotsParts) {
    this.#parts = parts;
  }

  /** What is only put on the branch keeps no worker busy. */
  room(chosen: number): number {
    return Math.min(chosen, this.#parts.jobs.room()) + this.#worked;
  }

  async run(call: AttemptCall, signal: AbortSignal): Promise<void> {
    const scene = new AttemptScene(this.#parts, call, signal);
    await endAttempt(scene, await this.#through(scene).catch(error => failed(scene, error)));
  }

  async close(): Promise<void> {
    const { jobs, pusher } = this.#parts;
    await Promise.all([jobs.close(), pusher.last()]);
  }

  async #through(scene: AttemptScene): Promise<AttemptEnd> {
    const { git } = scene.parts;
    if (!scene.call.story.open) {
      scene.parent = await scene.branchTip();
      await noteStart(scene, scene.call.slot + 1);
    }
    let sides: Sides | undefined;
    for (let conflicts = 1; ; conflicts++) {
      const ended = await this.#haveWorked(scene, sides);
      if (ended) return ended;
      this.#worked++;
      const end = await this.#inTurn(() => this.#putOnBranch(scene)).finally(() => this.#worked--);
      scene.slot = undefined;
      this.#parts.pusher.branchMoved();
      if ('status' in end) return end;
      await noteConflict(scene, end, scene.call.slot + 1);
      Object.assign(scene, { kept: undefined, approval: undefined, results: [] });
      const { files, tree, parent } = end;
      sides = { files, count: conflicts, sides: await git.commitTree(tree, [parent], 'both sides\n') };
    }
  }

  async #putOnBranch(scene: AttemptScene): ReturnType<typeof putOnBranch> {
    const { slots } = scene.parts;
    scene.slot = (await slots.find(ownSlot)) ?? (await slots.openSlot(ownSlot, scene.work.commit));
    return putOnBranch(scene);
  }

  /** Has a worker come to kept work that is approved. Returns how the attempt ends otherwise. */
  async #haveWorked(scene: AttemptScene, sides: Sides | undefined): Promise<AttemptEnd | undefined> {
    for (let count = 0; count < mostGiven; count++) {
      const known = await this.#takeKept(scene);
      if (known !== 'open') return known;
      const end = await this.#jobOf(scene, sides, count === 0);
      if (end.kind === 'refused') {
        const details = `No worker takes ${scene.story.id}. ${end.why}`;
        return { status: 'interrupted', details, fatal: new TelosError('config', details) };
      }
      if (end.kind === 'ended') return this.#ended(scene, end.end, end.worker);
      await this.#fetchLeft(scene);
      if (openOf(scene)?.snapshot) continue;
      const details = `The worker ${end.worker} ${end.why} before its work was kept.`;
      return { status: 'interrupted', details };
    }
    return { status: 'interrupted', details: `${mostGiven} workers have left it.` };
  }

  /** Gets what is known to be kept. Returns how the attempt ends by that, undefined if it is approved, or that it is open. */
  async #takeKept(scene: AttemptScene): Promise<AttemptEnd | undefined | 'open'> {
    const open = openOf(scene);
    if (!open?.snapshot) return 'open';
    const { git } = scene.parts;
    const { commit, tree } = open.snapshot;
    if ((await git.tip(commit)) === undefined) await this.#fetch(scene);
    const parent = (await git.tip(commit)) && (await git.read(['log', '-1', '--format=%T %P', commit]));
    if (parent !== `${tree} ${scene.parent}`) {
      const what = parent
        ? 'is not made for what the plan gave it'
        : 'was not pushed to the remote, so it does not count';
      return {
        status: 'error',
        details: `The work that ${open.job?.worker ?? 'a worker'} says it has kept ${what}.`,
      };
    }
    const { files } = await git.difference(scene.parent, commit);
    if (files.some(({ path }) => path.split('/')[0]?.toLowerCase() === '.telos'))
      return {
        status: 'error',
        details: 'The work of a worker has files of plans, which only this plan writes.',
      };
    scene.kept = open.snapshot;
    if (!open.verdict) return 'open';
    const denied = takeVerdict(scene, open, open.snapshot);
    if (denied) return denied;
    const left = scene.checks.filter(
      ({ name }) => !scene.results.some(result => result.name === name && result.exitCode === 0),
    );
    if (open.verdict.tree === tree && left.length === 0) return undefined;
    return {
      status: 'error',
      details: 'A worker says that the work is approved, without all of its checks.',
    };
  }

  async #ended(scene: AttemptScene, given: unknown, worker: string): Promise<AttemptEnd | undefined> {
    const end = workEnd(given);
    const wrong = `What the database has of ${scene.key} was not written for it by a worker.`;
    if (!end) return { status: 'interrupted', details: wrong, fatal: new TelosError('config', wrong) };
    const known = await this.#takeKept(scene);
    if (end.status === undefined) return known === 'open' ? { status: 'error', details: wrong } : known;
    if (!scene.kept && end.left !== undefined) await this.#fetchLeft(scene);
    const { status, details, fatal } = end;
    const { code = 'internal', message = '', ...more } = fatal ?? {};
    return {
      status,
      details,
      ...(fatal && { fatal: new TelosError(code, `${worker}: ${message}`, more) }),
    };
  }

  #fetch({ parts, named, signal }: AttemptScene): Promise<void> {
    return this.#parts.pusher.remote.fetch([workRef({ plan: parts.folder.name, ...named })], signal);
  }

  /** Gets work that was not kept as such, so that it is not lost. */
  async #fetchLeft(scene: AttemptScene): Promise<void> {
    const { git, slots, folder } = scene.parts;
    const ref = workRef({ plan: folder.name, ...scene.named });
    if (scene.kept) return;
    await this.#fetch(scene).catch(() => scene.signal.throwIfAborted());
    const commit = await git.tip(ref);
    if (commit !== undefined && scene.parent) await slots.savePatch(scene.key, scene.parent, commit);
  }

  /** Gives the job, or goes on with the one that a runner before has given. */
  async #jobOf(scene: AttemptScene, sides: Sides | undefined, isFirst: boolean): Promise<JobEnd> {
    const { jobs, pusher, journal } = this.#parts;
    const { signal, named, story, parts } = scene;
    const before = isFirst ? openOf(scene)?.job : undefined;
    const talk: JobTalk = {
      given: async ({ key, worker }) => {
        await scene.note({ type: 'job_given', ...named, job: key, worker });
      },
      facts: async facts => {
        const events = facts.flatMap(fact => workFact(fact, named.story, named.attempt) ?? []);
        await Promise.all(events.map(event => scene.note(event)));
      },
    };
    if (before) return jobs.find(before, factsSince(scene, before.key), talk, signal);
    const number =
      journal.lines.filter(line => line.type === 'job_given' && line.story === story.id).length + 1;
    const name = `${story.id}-a${named.attempt}-${number}`;
    const { limits } = this.#parts;
    const commit = await writeOrder(scene, { limits, sides, proof: jobs.proof(name) });
    const order = {
      format: 'telos-story-order' as const,
      repository: pusher.remote.shown,
      plan: parts.folder.name,
      ...named,
      number,
      commit,
    };
    const ref = orderRef({ ...order, replyTo: '' });
    await pusher.push(new Map([[ref, commit]]), signal);
    try {
      return await jobs.give(name, order, talk, signal);
    } finally {
      pusher.forget(ref);
    }
  }
}

/** Returns what the journal knows now of the attempt. */
function openOf({ parts, named }: AttemptScene): OpenAttempt | undefined {
  const progress = noProgress();
  for (const line of parts.journal.lines)
    if ('story' in line && line.story === named.story) foldStory(progress, line);
  return progress.open;
}

/** Returns how many facts of a job the journal has. */
function factsSince({ parts, story }: AttemptScene, job: string): number {
  const { lines } = parts.journal;
  const start = lines.findLastIndex(line => line.type === 'job_given' && line.job === job);
  return lines.slice(start + 1).filter(line => {
    const about =
      line.type === 'question_parked' ? line.question.story : 'story' in line ? line.story : undefined;
    return isFactOfWork(line) && about === story.id;
  }).length;
}
