/** The status bar's word on Telos: which model the next run uses, and whether one runs now. */
import * as vscode from 'vscode';
import type { CurrentTelos } from './currentTelos.ts';
import { plainLabel } from './plainLabel.ts';

/** A click on it chooses the model. */
export class StatusBar implements vscode.Disposable {
  readonly #item: vscode.StatusBarItem;
  readonly #current: CurrentTelos;
  readonly #following: vscode.Disposable;
  /** Empty until it is known. */
  #model = '';
  #why = '';
  #running = false;

  constructor(current: CurrentTelos) {
    this.#current = current;
    this.#item = vscode.window.createStatusBarItem('telos.model', vscode.StatusBarAlignment.Right, 100);
    this.#item.name = 'Telos Model';
    this.#item.command = 'telos.chooseModel';
    this.#following = vscode.Disposable.from(
      // Nobody has used Telos before it was opened, and then there is nothing to say.
      current.onDidOpen(() => void this.update()),
      current.onDidChange(() => {
        if (this.#model !== '') void this.update();
      }),
    );
  }

  /** What the item says, for tests. */
  get text(): string {
    return this.#item.text;
  }

  /** Asks which model the next run will use. */
  async update(): Promise<void> {
    try {
      const { name, model, why, recording } = await (await this.#current.openTelos()).provider();
      this.#model = recording ? 'Recording' : plainLabel(model, 40);
      this.#why = plainLabel(`${name}/${model}. ${why}`);
    } catch (error) {
      this.#model = 'No model';
      this.#why = plainLabel(error instanceof Error ? error.message : String(error), 500);
    }
    this.#draw();
  }

  sayRunning(running: boolean): void {
    this.#running = running;
    this.#draw();
  }

  dispose(): void {
    this.#following.dispose();
    this.#item.dispose();
  }

  #draw(): void {
    if (this.#model === '') return;
    const icon = this.#running ? '$(loading~spin)' : this.#model === 'No model' ? '$(warning)' : '$(hubot)';
    this.#item.text = `${icon} ${this.#model}`;
    const state = this.#running
      ? 'Telos runs a skill.'
      : 'Telos runs skills with this model; click to choose another.';
    this.#item.tooltip = [state, this.#why].filter(Boolean).join('\n');
    this.#item.accessibilityInformation = {
      label: `Telos, ${this.#running ? 'running, ' : ''}model ${this.#model}`,
      role: 'button',
    };
    this.#item.show();
  }
}
