/** Works on an attempt for someone else's plan: in a clone of its own, within what the owner of this machine allowed and accepted. */

import { type Config, withoutPassword } from '@telos/engine/config';
import { reasonOf, TelosError } from '@telos/engine/errors';
import { mapStrings, redactor, secretsIn } from '@telos/engine/policy';
import { boxState, type Human } from '@telos/engine/run';
import {
  type AttemptEnd,
  type AttemptParts,
  AttemptScene,
  buildStoryOn,
  checkAndReview,
  failed,
  goOnWith,
  hasTests,
  joinSides,
  type Runs,
  Slots,
} from '@telos/plans/executor';
import {
  boundLines,
  describeBound,
  digestOf,
  foldPlan,
  PlanBudget,
  type PlanState,
  shortened,
} from '@telos/plans/state';
import type { JournalLine, PlanEvent } from '@telos/protocol/plan';
import { beginningOf } from '@telos/protocol/text';
import type { WorkEnd } from './storyJobs.ts';
import {
  orderRef,
  type ReadOrder,
  readOrderFile,
  readStoryOrder,
  type StoryOrder,
  workRef,
} from './storyOrder.ts';
import { isWorkerCardAccepted, noteWaitingCard } from './workerCards.ts';
import { WorkerClone } from './workerClone.ts';

/** Why a worker does not do a job, in one sentence. */
class Refusal extends Error {}

export interface StoryWorkerParts {
  /** The owner's own. */
  config: Config;
  /** Addresses of the repositories that the owner allowed. */
  repositories: readonly string[];
  /** Opened for each job, so that what was spent today counts. */
  open(): Runs;
  /** Says something to the owner. */
  log(line: string): void;
  /** Says an unexpected error, on this machine alone. */
  failed(error: unknown): void;
}

/** `proof` is that of the order. */
export type StoryAnswer = { proof: string; end: WorkEnd } | { refused: string };

/** Gives facts to the plan that asked, with the order's proof. */
type Tell = (proven: { proof: string; facts: readonly PlanEvent[] }) => Promise<void>;

/** The person of the plan has no say over this machine, and its owner is not asked during a job. */
const guest: Human = {
  isAway: true,
  approve: async () => ({
    allow: false,
    reason: 'No person can be asked on this worker. Do it another way.',
  }),
  ask: async () => [],
};

export class StoryWorker {
  readonly #parts: StoryWorkerParts;
  readonly #clones = new Map<string, Promise<WorkerClone>>();

  constructor(parts: StoryWorkerParts) {
    this.#parts = parts;
  }

  /** Returns the answer to an order, which is not trusted. `tell` is called with the facts as they come. Throws the abort reason on abort. */
  async answer(given: unknown, tell: Tell, signal: AbortSignal): Promise<StoryAnswer> {
    const { config, failed: say } = this.#parts;
    const redact = redactor(secretsIn(config.env)).text;
    try {
      const order = readStoryOrder(given);
      if (!order) throw new Refusal('The job is not one that this version of Telos knows.');
      const { proof, end } = await this.#work(
        order,
        ({ proof, facts }) => tell({ proof, facts: mapStrings(facts, redact) }),
        signal,
      );
      return { proof, end: mapStrings(end, redact) };
    } catch (error) {
      signal.throwIfAborted();
      const isFull = /No space left|disk is full/.test(reasonOf(error));
      const isOurs = !isFull && (error instanceof Refusal || error instanceof TelosError);
      if (!isOurs) say(error);
      const failed = 'The job failed there; the worker says why on its own terminal.';
      const why = isFull ? 'The disk of the worker is full.' : isOurs ? error.message : failed;
      return { refused: beginningOf(redact(why), 500) };
    }
  }

  async close(): Promise<void> {
    for (const clone of this.#clones.values()) await clone.then(one => one.close()).catch(() => undefined);
  }

  async #work(order: StoryOrder, tell: Tell, signal: AbortSignal): Promise<{ proof: string; end: WorkEnd }> {
    const clone = await this.#cloneFor(order);
    await clone.remote.fetch([orderRef(order)], signal);
    if ((await clone.git.tip(orderRef(order))) !== order.commit)
      throw new Refusal(
        `The remote ${clone.remote.shown} has another order for ${order.story} than the database.`,
      );
    const file = await readOrderFile(clone.git, order);
    await this.#refuseUnaccepted(order, file);
    const slot = clone.takeSlot();
    try {
      const { proof } = file;
      const say = (facts: readonly PlanEvent[]): Promise<void> => tell({ proof, facts });
      return { proof, end: await this.#attempt(order, file, { clone, slot }, say, signal) };
    } finally {
      clone.giveBack(slot);
    }
  }

  /** Only the address that the owner has given is ever used. */
  #cloneFor({ repository }: StoryOrder): Promise<WorkerClone> {
    const { repositories, config, log } = this.#parts;
    const url = repositories.find(one => withoutPassword(one) === repository);
    if (url === undefined)
      throw new Refusal(
        repositories.length === 0
          ? 'This worker does no stories: its owner has allowed no repository.'
          : `The owner of this worker has not allowed the repository ${beginningOf(repository, 200)}.`,
      );
    const known = this.#clones.get(url) ?? WorkerClone.open(url, config.env, log);
    this.#clones.set(url, known);
    known.catch(() => this.#clones.delete(url));
    return known;
  }

  /** Throws Refusal unless the owner has accepted the plan's card, and the story needs nothing that is not on it. */
  async #refuseUnaccepted(
    { plan, repository }: StoryOrder,
    { card, settings, story, roles }: ReadOrder,
  ): Promise<void> {
    const { config, log } = this.#parts;
    const left = boundLines(settings, [story], roles).find(line => !card.includes(line));
    if (left !== undefined)
      throw new Refusal(
        `The story ${story.id} needs what the permissions of its plan do not name: ${describeBound(left)}`,
      );
    if (isWorkerCardAccepted(config, card)) return;
    const digest = digestOf(card);
    await noteWaitingCard(config, { digest, plan, repository, lines: card, roles });
    log(
      `The plan ${plan} of ${repository} brings commands that you have not accepted. Look at them: telos worker accept ${digest}`,
    );
    throw new Refusal(
      `The owner of this worker has not approved the permissions ${digest.slice(0, 12)} of the plan ${plan}.`,
    );
  }

  /** Throws Refusal where no command of a story would run, before a model is paid for it. */
  async #refuseWithoutBox(): Promise<void> {
    const { config, log } = this.#parts;
    const { wanted, state } = await boxState(config);
    if (wanted !== 'required' || !state || state.works) return;
    const mend = state.mend === undefined ? '' : ` To fix it: ${state.mend}`;
    log(`Stories are built in a sandbox, and none works here: ${state.why}${mend}`);
    throw new Refusal(`This worker does no stories, since no sandbox for commands works there: ${state.why}`);
  }

  async #attempt(
    order: StoryOrder,
    file: ReadOrder,
    { clone, slot }: { clone: WorkerClone; slot: number },
    tell: (facts: readonly PlanEvent[]) => Promise<void>,
    signal: AbortSignal,
  ): Promise<WorkEnd> {
    const { story, parent, previous, sides } = file;
    // What was copied and linked from the person's checkout is not here.
    const settings = { ...file.settings, slot: { ...file.settings.slot, copy: [], link: [] } };
    const folder = clone.planFolder(slot, order.plan);
    await folder.write(file.prd.path, file.prd.text);
    await folder.write('plan.md', file.plan.text);
    await folder.write('interview.md', file.plan.interview);
    const { git } = clone;
    const journal = new JobJournal(file.journal, tell, async commit => {
      await clone.remote.push(new Map([[workRef(order), commit]]), undefined, signal);
    });
    const state = (): PlanState => foldPlan(journal.lines, [story]);
    const preflight = file.journal.find(line => line.type === 'preflight');
    const checks = preflight?.type === 'preflight' ? preflight.checks : [];
    const runs = this.#parts.open();
    const parts: AttemptParts = {
      folder,
      journal,
      git,
      settings,
      base: file.base,
      roles: file.roles,
      state,
      env: clone.env,
      runs,
      human: guest,
      isUnattended: true,
      isGuest: true,
      others: file.plan.others,
      slots: await Slots.open(folder, git, settings, runs.config.env),
      atBase: new Map(
        checks.flatMap(({ command, ...result }) => (command === undefined ? [] : [[command, result]])),
      ),
      hadTests: await hasTests(git, file.base),
      budget: new PlanBudget(() => file.limits, state),
    };
    const own = state().story(story.id);
    if (!own?.open || own.open.attempt !== order.attempt)
      throw new Refusal(`The order for ${story.id} is not for its attempt ${order.attempt}.`);
    await this.#refuseWithoutBox();
    if (previous !== undefined) await git.setRef(workRef({ ...order, attempt: order.attempt - 1 }), previous);
    const scene = new AttemptScene(parts, { story: own, attempt: order.attempt, slot: slot - 1 }, signal);
    scene.parent = parent;
    const end = await throughWork(scene, file, sides).catch(error => failed(scene, error));
    await journal.written();
    return this.#endOf(scene, end, order, clone);
  }

  async #endOf(
    scene: AttemptScene,
    end: AttemptEnd | undefined,
    order: StoryOrder,
    { remote }: WorkerClone,
  ): Promise<WorkEnd> {
    if (!end) return { details: scene.approval?.text ?? '' };
    const { status, details, fatal } = end;
    const { code } = fatal ?? {};
    // The owner's limit, and a key that is refused here, say nothing of other workers.
    const isOwn = code === 'auth' || code === 'config' || (code === 'budget' && !scene.parts.budget.over());
    const left = scene.kept ? undefined : await keepLeft(scene);
    if (left !== undefined) {
      const soon = AbortSignal.timeout(lastPushMs);
      await remote.push(new Map([[workRef(order), left]]), undefined, soon).catch(() => undefined);
    }
    scene.signal.throwIfAborted();
    if (fatal && isOwn) throw new Refusal(fatal.message);
    const { message = '', remedy, retryAfterMs } = fatal ?? {};
    return {
      status,
      details,
      ...(left !== undefined && { left }),
      ...(fatal && {
        fatal: {
          code: fatal.code,
          message,
          ...(remedy && { remedy }),
          ...(retryAfterMs !== undefined && { retryAfterMs }),
        },
      }),
    };
  }
}

/** How long work that was cut off may take to be kept, in milliseconds. */
const lastPushMs = 4_000;

/** Returns how the attempt ends unless its work is kept and approved. */
async function throughWork(
  scene: AttemptScene,
  { snapshot }: ReadOrder,
  sides: ReadOrder['sides'],
): Promise<AttemptEnd | undefined> {
  const { slots } = scene.parts;
  const { open } = scene.call.story;
  if (open?.snapshot) {
    if (open.snapshot.commit !== snapshot)
      throw new Refusal(`The order for ${scene.key} leaves out its work.`);
    const ended = await goOnWith(scene, open, open.snapshot);
    return ended ?? (scene.approval ? undefined : checkAndReview(scene));
  }
  scene.slot = await slots.openSlot(scene.call.slot + 1, scene.parent);
  const ended = await (sides ? joinSides(scene, sides) : buildStoryOn(scene));
  return ended ?? checkAndReview(scene);
}

/** Keeps what lies in the slot of an attempt that was cut off. Returns its commit, or undefined if there is none. */
async function keepLeft({ slot, parts, parent, story, call }: AttemptScene): Promise<string | undefined> {
  if (!slot) return undefined;
  const ref = `refs/telos/${parts.folder.name}/${story.id}/a${call.attempt}`;
  const order = { ref, parent, message: `${story.id}: attempt ${call.attempt}, not finished` };
  return (await parts.slots.snapshot(slot, order).catch(() => undefined))?.commit;
}

/** The journal of a job: the lines of the plan's own about the story, then the facts of the job, which are sent as they come. */
class JobJournal {
  readonly lines: JournalLine[];
  readonly #tell: (facts: readonly PlanEvent[]) => Promise<void>;
  readonly #push: (commit: string) => Promise<void>;
  #waiting: PlanEvent[] = [];
  #last: Promise<void> = Promise.resolve();

  constructor(
    before: readonly JournalLine[],
    tell: (facts: readonly PlanEvent[]) => Promise<void>,
    push: (commit: string) => Promise<void>,
  ) {
    this.lines = [...before];
    this.#tell = tell;
    this.#push = push;
  }

  async append(event: PlanEvent): Promise<JournalLine> {
    // Work that was not pushed does not count, so it is not mentioned before.
    if (event.type === 'snapshot') await this.#push(event.commit);
    const line = {
      seq: (this.lines.at(-1)?.seq ?? 0) + 1,
      ts: new Date().toISOString(),
      ...shortened(event),
    };
    this.lines.push(line);
    this.#waiting.push(shortened(event));
    const written = this.#last.then(() => this.#flush());
    this.#last = written;
    await written;
    return line;
  }

  written(): Promise<void> {
    return this.#last.catch(() => undefined);
  }

  async #flush(): Promise<void> {
    const facts = this.#waiting;
    this.#waiting = [];
    if (facts.length > 0) await this.#tell(facts);
  }
}
