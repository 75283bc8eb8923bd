/** Shows skills that carry evals in the Testing view, once there is one. What finds and runs them loads when the view is opened first. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { realPlace } from '@telos/engine/files';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, t } from '../base/labels.ts';
import { isSkillFile } from '../skills/skillFiles.ts';
import { EvalOutcomes, registerEvalLenses } from './evalLenses.ts';
import type { EvalHow } from './evalTestRuns.ts';

/** What Telos has in the Testing view. */
interface EvalView extends vscode.Disposable {
  controller: vscode.TestController;
  /** Plays recordings, and measures requests. */
  playing: vscode.TestRunProfile;
  /** Runs the evals with the model that is set, and keeps the recordings. */
  recording: vscode.TestRunProfile;
}

/** Adds Telos to the Testing view when the first skill with evals is seen: it would show an empty view to everybody else. */
export class EvalTests implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #log: vscode.LogOutputChannel;
  readonly #following: vscode.Disposable;
  readonly #outcomes = new EvalOutcomes();
  #view: EvalView | undefined;

  constructor(current: CurrentTelos, log: vscode.LogOutputChannel) {
    this.#current = current;
    this.#log = log;
    const look = (): void => void this.#look().catch(error => log.error(describeError(error)));
    this.#following = vscode.Disposable.from(
      current.onDidOpen(look),
      current.onDidChange(look),
      registerEvalLenses(current, this.#outcomes, (file, records) => this.#runFile(file, records)),
    );
  }

  /** Undefined while no skill has evals. */
  get view(): EvalView | undefined {
    return this.#view;
  }

  dispose(): void {
    this.#following.dispose();
    this.#view?.dispose();
  }

  async #look(): Promise<void> {
    if (this.#view || !vscode.workspace.isTrusted) return;
    const agents = await (await this.#current.openTelos()).agents();
    const isTested = agents.some(({ skills }) => skills.some(({ dir }) => existsSync(join(dir, 'evals'))));
    if (isTested) this.#view ??= registerEvalTests(this.#current, this.#log, this.#outcomes);
  }

  /** Runs all items of a skill's file. Throws if the skill is not among those that Telos lists. */
  async #runFile(file: string, records: boolean): Promise<void> {
    await this.#look();
    const view = this.#view;
    const { token } = new vscode.CancellationTokenSource();
    await view?.controller.refreshHandler?.(token);
    const real = realPlace(file) ?? file;
    const item = [...(view?.controller.items ?? [])]
      .map(([, each]) => each)
      .find(({ uri }) => uri && (realPlace(uri.fsPath) ?? uri.fsPath) === real);
    if (!view || !item)
      throw new TelosError(
        'config',
        t('Only skills that Telos lists can be tested. Add this one to your skills first.'),
      );
    const profile = records ? view.recording : view.playing;
    await profile.runHandler(new vscode.TestRunRequest([item], undefined, profile), token);
  }
}

/** Returns what is registered. Nothing is looked for before the view asks. */
function registerEvalTests(
  current: CurrentTelos,
  log: vscode.LogOutputChannel,
  outcomes: EvalOutcomes,
): EvalView {
  const controller = vscode.tests.createTestController('telos.evals', 'Telos');
  const work = () => import('./evalTestRuns.ts');
  const accessTo = async (config: Config) =>
    (await import('./workers.ts')).workersAccess(current.secrets, config);
  let isShown = false;
  const fill = async (): Promise<void> => {
    isShown = true;
    try {
      // In a folder that is not trusted nothing runs.
      if (!vscode.workspace.isTrusted) return controller.items.replace([]);
      await (await work()).fillItems(controller, (await current.openTelos()).config);
    } catch (error) {
      log.error('The evals of the skills could not be listed.', error as Error);
    }
  };
  controller.resolveHandler = async item => {
    if (!item) await fill();
  };
  controller.refreshHandler = fill;
  const runWith =
    (how: EvalHow) =>
    async (request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> => {
      try {
        if (!isShown) await fill();
        const telos = await current.openTelos();
        const workers = how === 'workers' ? await accessTo(telos.config) : undefined;
        if (how === 'workers' && !workers) return;
        const run = { controller, telos, request, how, outcomes, ...(workers && { workers }) };
        await (await work()).runItems(run, token);
      } catch (error) {
        void vscode.window.showErrorMessage(describeError(error));
      }
    };
  const { Run } = vscode.TestRunProfileKind;
  const playing = controller.createRunProfile(t('Run Evals'), Run, runWith('play'), true);
  const recording = controller.createRunProfile(t('Run and Record Evals'), Run, runWith('record'), false);
  controller.createRunProfile(t('Run Evals on Workers'), Run, runWith('workers'), false);
  const following = vscode.Disposable.from(
    current.onDidChange(() => isShown && void fill()),
    vscode.workspace.onDidSaveTextDocument(({ uri }) => {
      if (isShown && (isSkillFile(uri.path) || /\/evals\/(?:evals|trigger)\.json$/.test(uri.path)))
        void fill();
    }),
  );
  return {
    controller,
    playing,
    recording,
    dispose: () => vscode.Disposable.from(following, controller).dispose(),
  };
}
