/** Implements the task type `telos`: a skill as a task in tasks.json. A key or another task can start it. */
import * as vscode from 'vscode';
import { describeRoute, type RunEvent } from '../../protocol/run.ts';
import { describeError, describeTold, plainLabel } from '../base/labels.ts';
import { describeEnd, type NativeRuns } from './editorRuns.ts';
import { pickHuman } from './quickPickHuman.ts';

/** Must match package.json. The values in tasks.json may still be of any type. */
interface SkillTask extends vscode.TaskDefinition {
  request?: unknown;
}

export function registerSkillTask(runs: NativeRuns): vscode.Disposable {
  return vscode.tasks.registerTaskProvider('telos', {
    provideTasks: () => [],
    resolveTask: task => skillTask(runs, task.definition, task.scope ?? vscode.TaskScope.Workspace),
  });
}

function skillTask(
  runs: NativeRuns,
  definition: SkillTask,
  scope: vscode.WorkspaceFolder | vscode.TaskScope,
): vscode.Task {
  // A task without a request reports that itself. If no task were returned, the editor would say that none is provided.
  const request = typeof definition.request === 'string' ? definition.request.trim() : '';
  const execution = new vscode.CustomExecution(async () => new SkillTerminal(runs, request));
  // An empty list of matchers. If it were missing, the editor would ask what to look for in the output.
  return new vscode.Task(definition, scope, plainLabel(request, 60) || 'telos', 'telos', execution, []);
}

const noRequest = (): string =>
  vscode.l10n.t(
    'This task does not say what to run. Add a "request" to it in tasks.json, as you would say it in the chat.',
  );

class SkillTerminal implements vscode.Pseudoterminal {
  readonly #runs: NativeRuns;
  readonly #request: string;
  readonly #wrote = new vscode.EventEmitter<string>();
  readonly #closed = new vscode.EventEmitter<number>();
  readonly #stop = new vscode.CancellationTokenSource();
  readonly onDidWrite = this.#wrote.event;
  readonly onDidClose = this.#closed.event;

  constructor(runs: NativeRuns, request: string) {
    this.#runs = runs;
    this.#request = request;
  }

  open(): void {
    void this.#run();
  }

  /** Called when the person closes the terminal or ends the task. */
  close(): void {
    this.#stop.cancel();
  }

  handleInput(data: string): void {
    if (data === '\u0003') this.#stop.cancel();
  }

  async #run(): Promise<void> {
    let code = 1;
    try {
      if (this.#request === '') throw new Error(noRequest());
      const show = (event: RunEvent): void => this.#show(event);
      const end = await this.#runs.run({ text: this.#request }, pickHuman, this.#stop.token, show);
      const problem = describeEnd(end);
      this.#write(`\n${problem ?? ''}\n`);
      code = problem === undefined ? 0 : 1;
    } catch (error) {
      this.#write(`${describeError(error)}\n`);
    } finally {
      this.#closed.fire(code);
      this.#stop.dispose();
    }
  }

  #show(event: RunEvent): void {
    if (event.type === 'routed') {
      this.#write(`${describeRoute(event.agent, event.skill, event.reason, vscode.l10n.t)}\n\n`);
    } else if (event.type === 'text') {
      this.#write(event.text);
    } else if (event.type === 'tool_start') {
      const { name, input } = event.call;
      this.#write(`\n> ${plainLabel(`${name} ${JSON.stringify(input)}`, 160)}\n`);
    } else if (event.type === 'notice') {
      this.#write(`\n${describeTold(event)}\n`);
    }
  }

  /** Writes text without control characters except line feeds and tabs. A model's text must not steer the terminal. */
  #write(text: string): void {
    const harmless = text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '');
    this.#wrote.fire(harmless.replaceAll('\n', '\r\n'));
  }
}
