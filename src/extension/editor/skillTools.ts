/** Offers skills where the editor itself runs things: as tools of its chat models, and as tasks. */

import { describeRoute, withHookNotice } from '@telos/protocol/describe';
import type { MarkdownStream } from '@telos/protocol/markdownStream';
import type { RunEvent, SkillRef } from '@telos/protocol/run';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, describeMessage, escapeMarkdown, plainLabel } from '../base/labels.ts';
import { descriptionOf, type PickableSkill, pickableSkills } from '../skills/skillFiles.ts';
import { describeEnd, type NativeRuns, untrustedMessage } from './editorRuns.ts';
import { pickHuman } from './quickPickHuman.ts';

/** Must match package.json. The input comes from a model, so every field may be missing or of another type. */
interface ListInput {
  agent?: unknown;
}

interface RunInput extends ListInput {
  skill?: unknown;
  request?: unknown;
}

export function registerSkillTools(current: CurrentTelos, runs: NativeRuns): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.lm.registerTool<ListInput>('telos_listSkills', {
      prepareInvocation: () => ({ invocationMessage: vscode.l10n.t('Lists the skills of Telos') }),
      invoke: async ({ input }) => textResult(await listed(current, words(input.agent))),
    }),
    vscode.lm.registerTool<RunInput>('telos_runSkill', {
      prepareInvocation: async ({ input }) => prepared(await found(current, input), words(input.request)),
      invoke: async ({ input }, token) => {
        const { agent, skill } = await found(current, input);
        const ref = { agent: agent.name, skill: skill.id };
        return textResult(await answerOf(runs, ref, words(input.request), token));
      },
    }),
  );
}

const words = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

async function listed(current: CurrentTelos, agentName: string): Promise<string> {
  const agents = await (await current.openTelos()).agents();
  const skills = await pickableSkills(agents.filter(({ name }) => agentName === '' || name === agentName));
  if (skills.length === 0) return 'There are no skills. A person can add one with "Telos: New Skill...".';
  return skills
    .map(({ agent, skill }) => plainLabel(`${agent.name}:${skill.id}: ${descriptionOf(skill)}`, 400))
    .join('\n');
}

/**
 * Returns the one skill that the input names: as `skill` with or without its agent, or as `agent:skill`. Errors are for
 * the model.
 */
async function found(current: CurrentTelos, input: RunInput): Promise<PickableSkill> {
  if (!vscode.workspace.isTrusted) throw new Error(untrustedMessage);
  const name = words(input.skill);
  const agentName = words(input.agent);
  const all = await pickableSkills(await (await current.openTelos()).agents());
  const matches = all.filter(
    ({ agent, skill }) =>
      (skill.id === name && (agentName === '' || agent.name === agentName)) ||
      `${agent.name}:${skill.id}` === name,
  );
  const [match] = matches;
  if (matches.length === 1 && match) return match;
  const names = (matches.length > 1 ? matches : all).map(({ agent, skill }) => `${agent.name}:${skill.id}`);
  const problem =
    matches.length > 1 ? `Several agents have a skill '${name}'` : `There is no skill '${name}'`;
  throw new Error(plainLabel(`${problem}. Name one of these: ${names.join(', ')}`, 2_000));
}

function prepared({ agent, skill }: PickableSkill, request: string): vscode.PreparedToolInvocation {
  const name = plainLabel(`${skill.id} of ${agent.name}`);
  const asked =
    request === ''
      ? vscode.l10n.t('It gets no further input.')
      : vscode.l10n.t('Request: {0}', plainLabel(request, 1_000));
  return {
    invocationMessage: vscode.l10n.t('Runs the skill {0}', name),
    confirmationMessages: {
      title: vscode.l10n.t('Run the skill {0}?', name),
      message: new vscode.MarkdownString(
        escapeMarkdown(
          `${plainLabel(descriptionOf(skill))}\n\n${asked}\n\n${vscode.l10n.t("The skill uses Telos's own model and tools; what is risky is asked about again.")}`,
        ),
      ),
    },
  };
}

/** Returns the model's words. An incomplete run is an error for the calling agent, with the answer so far. */
async function answerOf(
  runs: NativeRuns,
  skill: SkillRef,
  text: string,
  token: vscode.CancellationToken,
): Promise<string> {
  let answer = '';
  const end = await runs.run({ text, skill }, pickHuman, token, event => {
    if (event.type === 'text') answer += event.text;
    if (event.type === 'tool_start' && answer !== '') answer += '\n\n';
  });
  const problem = describeEnd(end);
  if (problem !== undefined) throw new Error([problem, answer.trim()].filter(Boolean).join('\n\n'));
  return answer.trim() || `The skill ${skill.skill} of ${skill.agent} is done and said nothing.`;
}

const textResult = (text: string): vscode.LanguageModelToolResult =>
  new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(text)]);

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
  #markdown: MarkdownStream | undefined;
  readonly onDidWrite = this.#wrote.event;
  readonly onDidClose = this.#closed.event;

  constructor(runs: NativeRuns, request: string) {
    this.#runs = runs;
    this.#request = request;
  }

  /** The dimensions are missing as long as the terminal is not shown. */
  open(dimensions: vscode.TerminalDimensions | undefined): void {
    void this.#run(dimensions?.columns ?? usualColumns);
  }

  /** Called when the person closes the terminal or ends the task. */
  close(): void {
    this.#stop.cancel();
  }

  handleInput(data: string): void {
    if (data === '\u0003') this.#stop.cancel();
  }

  async #run(columns: number): Promise<void> {
    let code = 1;
    try {
      const { markdownStream } = await import('@telos/protocol/markdownStream');
      this.#markdown = markdownStream({ width: columns, styled: true });
      if (this.#request === '') throw new Error(noRequest());
      const show = (event: RunEvent): void => this.#show(withHookNotice(event, vscode.l10n.t));
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
      this.#fire(this.#markdown?.add(harmless(event.text)) ?? '');
    } else if (event.type === 'tool_start') {
      const { name, input } = event.call;
      this.#write(`\n> ${plainLabel(`${name} ${JSON.stringify(input)}`, 160)}\n`);
    } else if (event.type === 'notice') {
      this.#write(`\n${describeMessage(event)}\n`);
    }
  }

  /** Writes text that is not part of the answer. */
  #write(text: string): void {
    this.#fire((this.#markdown?.end() ?? '') + harmless(text));
  }

  #fire(text: string): void {
    this.#wrote.fire(text.replaceAll('\n', '\r\n'));
  }
}

const usualColumns = 80;

/** Returns text without control characters except line feeds and tabs. A model's text must not steer the terminal. */
const harmless = (text: string): string => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '');
