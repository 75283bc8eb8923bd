/** Shows in the status bar which model the next run uses, and whether one is active now. */

import { describeDay, formatCost } from '@telos/protocol/usage';
import * as vscode from 'vscode';
import type { CurrentTelos } from './currentTelos.ts';
import { describeError, describeMessage, plainLabel } from './labels.ts';

/**
 * The status bar item. A click chooses the model. While runs are active, it lists them so that one can be stopped; while
 * a question waits, it opens the question.
 */
export class StatusBar implements vscode.Disposable {
  readonly #item: vscode.StatusBarItem;
  readonly #current: CurrentTelos;
  readonly #following: vscode.Disposable;
  /** Empty until the model is known. */
  #model = '';
  #why = '';
  #hasModel = true;
  #running = 0;
  /** Cost of the runs that ended today, and of those that are active. In US dollars. */
  #dayCost = 0;
  #runningCost = 0;
  #day = '';
  /** Where commands run. Empty until it is known. */
  #commands = '';
  #waiting = 0;

  constructor(current: CurrentTelos) {
    this.#current = current;
    this.#item = vscode.window.createStatusBarItem('telos.model', vscode.StatusBarAlignment.Right, 100);
    this.#item.name = vscode.l10n.t('Telos Model');
    this.#following = vscode.Disposable.from(
      // Until Telos has been opened, it has not been used and there is nothing to show.
      current.onDidOpen(() => void this.update()),
      current.onDidChange(() => {
        if (this.#model !== '') void this.update();
      }),
    );
  }

  /** The text of the item, for tests. */
  get text(): string {
    return this.#item.text;
  }

  /** Reads which model the next run will use. */
  async update(): Promise<void> {
    try {
      const choice = await (await this.#current.openTelos()).provider();
      const { name, model, why, sentences, recording, isUnset = false } = choice;
      this.#hasModel = !isUnset;
      this.#model = isUnset
        ? vscode.l10n.t('No model')
        : recording
          ? vscode.l10n.t('Recording')
          : plainLabel(model, 40);
      const said = describeMessage({ message: why, ...(sentences && { sentences }) });
      this.#why = plainLabel(recording ? said : `${name}/${model}. ${said}`);
    } catch (error) {
      this.#model = vscode.l10n.t('No model');
      this.#hasModel = false;
      this.#why = plainLabel(describeError(error), 500);
    }
    await Promise.all([this.#readDay(), this.#readBox()]);
    this.#draw();
  }

  /** Shows how many runs are active, how many questions wait for the person, and the cost so far. In US dollars. */
  sayRunning(running: number, waiting: number, cost: number): void {
    const hasEnded = running < this.#running;
    this.#running = running;
    this.#waiting = waiting;
    this.#runningCost = cost;
    this.#draw();
    if (hasEnded) void this.#readDay().then(() => this.#draw());
  }

  /** Reads the day's usage. A day that cannot be read does not keep the model from being shown. */
  async #readDay(): Promise<void> {
    try {
      const today = await (await this.#current.openTelos()).today();
      this.#dayCost = today.cost;
      const [first = '', ...more] = describeDay(today, vscode.l10n.t);
      this.#day = [first.charAt(0).toUpperCase() + first.slice(1), ...more].join(', ');
    } catch {
      this.#dayCost = 0;
      this.#day = '';
    }
  }

  /** Reads whether commands run in a box. */
  async #readBox(): Promise<void> {
    const { l10n } = vscode;
    try {
      const { wanted, state } = await (await this.#current.openTelos()).box();
      if (!state) this.#commands = l10n.t('Commands run without a sandbox, as the setting says.');
      else if (state.works) this.#commands = l10n.t('Commands run in a sandbox.');
      else {
        const first =
          wanted === 'required'
            ? l10n.t('Commands do not run, since no sandbox works here: {0}', state.why)
            : l10n.t('Commands are asked about, since no sandbox works here: {0}', state.why);
        const { mend = '' } = state;
        const next =
          mend === '' || mend.includes('\n') ? l10n.t('Doctor says more.') : l10n.t('To fix it: {0}', mend);
        this.#commands = plainLabel(`${first} ${next}`, 500);
      }
    } catch {
      this.#commands = '';
    }
  }

  dispose(): void {
    this.#following.dispose();
    this.#item.dispose();
  }

  #draw(): void {
    if (this.#model === '') return;
    const total = this.#dayCost + this.#runningCost;
    const cost = total > 0 ? formatCost(total) : '';
    this.#item.command = this.#command();
    this.#item.backgroundColor =
      this.#waiting > 0 ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    const facts = [
      this.#question(),
      this.#model,
      cost,
      this.#running > 1 ? vscode.l10n.t('{0} runs', this.#running) : '',
    ];
    this.#item.text = `${this.#icon()} ${facts.filter(Boolean).join(' · ')}`;
    const states = [
      this.#running === 0 ? vscode.l10n.t('Telos runs skills with this model; click to choose another.') : '',
      this.#waiting > 0 ? vscode.l10n.t('Telos waits for your answer; click to show the question.') : '',
      this.#waiting === 0 && this.#running === 1
        ? vscode.l10n.t('Telos runs a skill; click to stop it.')
        : '',
      this.#waiting === 0 && this.#running > 1
        ? vscode.l10n.t('Telos runs {0} skills; click to stop one.', this.#running)
        : '',
    ];
    this.#item.tooltip = [...states, this.#day, this.#why, this.#commands].filter(Boolean).join('\n');
    this.#item.accessibilityInformation = {
      label: [
        'Telos',
        this.#question(),
        this.#running > 0 ? vscode.l10n.t('running') : '',
        vscode.l10n.t('model {0}', this.#model),
        cost ? vscode.l10n.t('{0} today', cost) : '',
      ]
        .filter(Boolean)
        .join(', '),
      role: 'button',
    };
    this.#item.show();
  }

  #command(): string {
    if (this.#waiting > 0) return 'telos.showQuestion';
    return this.#running > 0 ? 'telos.showRunning' : 'telos.chooseModel';
  }

  /** Returns how many questions wait, or nothing if none does. */
  #question(): string {
    if (this.#waiting > 1) return vscode.l10n.t('{0} questions', this.#waiting);
    return this.#waiting === 1 ? vscode.l10n.t('1 question') : '';
  }

  #icon(): string {
    if (this.#waiting > 0) return '$(bell-dot)';
    if (this.#running > 0) return '$(loading~spin)';
    return this.#hasModel ? '$(hubot)' : '$(warning)';
  }
}
