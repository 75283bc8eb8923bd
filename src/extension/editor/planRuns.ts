/**
 * Runs plans for this window: opens the engine that each one needs, keeps what works on one now, in the window or in a process of its
 * own, and ends with the window what runs in it.
 */

import { Interruption } from '@telos/engine/errors';
import type { Telos } from '@telos/engine/telos';
import { Plan } from '@telos/plans/plan';
import { isDemoProject, type PlanRunEnd } from '@telos/plans/run';
import * as vscode from 'vscode';
import type { ChatStage } from '../base/chatWork.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import type { AskModel } from './newPlan.ts';
import type { PlanNode } from './planItem.ts';
import type { PlansTree } from './plansTree.ts';
import { pickHuman } from './quickPickHuman.ts';
import type { WorkersAccess } from './workers.ts';

interface Running {
  controller: AbortController;
  done: Promise<unknown>;
  /** It runs in a process of its own, which this window does not end. */
  isApart?: boolean;
}

/** What of a plan is run. */
export interface Extent {
  /** Restarts failed stories. */
  isRetry: boolean;
  /** The last story that is worked on; all are if it is missing. */
  until: string | undefined;
  /** How to reach the workers that work on the stories. Undefined if this machine does. */
  workers: WorkersAccess | undefined;
}

const nothing = (): void => undefined;

export class PlanRuns {
  readonly #current: CurrentTelos;
  readonly #tree: PlansTree;
  readonly #extensionUri: vscode.Uri;
  readonly #memory: vscode.Memento;
  /** By the folder of its plan. */
  readonly #running = new Map<string, Running>();
  #isOver = false;

  constructor(
    current: CurrentTelos,
    tree: PlansTree,
    { extensionUri, memory }: { extensionUri: vscode.Uri; memory: vscode.Memento },
  ) {
    this.#current = current;
    this.#tree = tree;
    this.#extensionUri = extensionUri;
    this.#memory = memory;
  }

  /** Returns how to reach the workers, or undefined if the person does not say it. */
  async workers(): Promise<WorkersAccess | undefined> {
    const { config } = await this.#current.openTelos();
    return (await import('./workers.ts')).workersAccess(this.#current.secrets, config);
  }

  /** Where the programs of plans run. */
  async env(): Promise<Readonly<Record<string, string | undefined>>> {
    return (await this.#current.openTelos()).config.env;
  }

  /** The engine as it is set up now: settings and keys may have changed since the plan was listed. The demo is played. */
  async telosIn(repo: string): Promise<Telos> {
    const telos = await this.#current.openTelos();
    if (!isDemoProject(repo)) return telos;
    return (await import('./planDemo.ts')).playingTelos(telos, this.#extensionUri);
  }

  async plan({ folder }: PlanNode): Promise<Plan> {
    return new Plan(folder, { runs: await this.telosIn(folder.repo), human: pickHuman, by: 'editor' });
  }

  /** Makes a plan with that goal. Throws TelosError `config` if its folder cannot be made. */
  async create(repo: string, goal: string): Promise<Plan> {
    return Plan.create(repo, goal, { runs: await this.telosIn(repo), human: pickHuman, by: 'editor' });
  }

  /** Whether this window works on the plan, or has started the process that does. */
  has({ folder }: Pick<PlanNode, 'folder'>): boolean {
    return this.#running.has(folder.dir);
  }

  /** Returns how to ask a model for one step of the plan, with a bar above the view. *Stop Plan* ends it. */
  asking({ folder }: Plan, stage: ChatStage | undefined): AskModel {
    return async (what, ask) => {
      const controller = new AbortController();
      stage?.say(what);
      const done = ask(AbortSignal.any([controller.signal, ...(stage ? [stage.signal] : [])]));
      this.#running.set(folder.dir, { controller, done });
      try {
        const bar = { location: { viewId: 'telos.plans' } };
        const window = { location: vscode.ProgressLocation.Window, title: what };
        void vscode.window.withProgress(bar, () => done.then(nothing, nothing));
        void vscode.window.withProgress(window, () => done.then(nothing, nothing));
        return await done;
      } catch (error) {
        throw controller.signal.aborted || stage?.signal.aborted ? new Interruption() : error;
      } finally {
        this.#running.delete(folder.dir);
        await this.#tree.refresh(folder.dir);
      }
    };
  }

  /** Works on the stories until the plan rests. Returns how that ended; undefined if a second press came while the first was looking. */
  async run(plan: Plan, extent: Extent): Promise<PlanRunEnd | undefined> {
    const { dir, repo } = plan.folder;
    const [settings, telos] = await Promise.all([plan.folder.settings(), this.telosIn(repo)]);
    const { noteHere, runApart, runHere, runsApart } = await import('./planStart.ts');
    const controller = new AbortController();
    const wanted = { settings, ...extent };
    const isApart = extent.workers !== undefined || (await runsApart(telos, settings));
    if (this.#running.has(dir)) return undefined;
    if (!isApart) void noteHere(this.#memory, dir, true);
    const done = isApart
      ? runApart(plan, telos, this.#extensionUri, wanted)
      : runHere(plan, wanted, controller.signal);
    this.#running.set(dir, { controller, done, isApart });
    try {
      return await done;
    } finally {
      this.#running.delete(dir);
      if (!isApart && !this.#isOver) void noteHere(this.#memory, dir, false);
    }
  }

  /**
   * Resolves when a plan whose window has ended can go on: the models that it asks are there. False if it runs by then, or if this
   * window ends.
   */
  async canGoOn(node: PlanNode): Promise<boolean> {
    const { modelsAreThere } = await import('./planStart.ts');
    await modelsAreThere(await this.#current.openTelos(), await node.folder.settings());
    return !this.#isOver && !this.has(node);
  }

  /** Stops what this window works on, as if it were closed. Returns false if it does not. */
  stop({ folder }: PlanNode): boolean {
    const here = this.#running.get(folder.dir);
    if (!here || here.isApart) return false;
    here.controller.abort();
    return true;
  }

  /** Ends what runs in this window. What was done is kept, and the next window goes on with it. */
  async end(): Promise<void> {
    this.#isOver = true;
    const here = [...this.#running.values()].filter(({ isApart }) => !isApart);
    for (const { controller } of here) controller.abort(new Interruption());
    await Promise.allSettled(here.map(({ done }) => done));
  }
}
