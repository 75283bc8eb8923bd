/** Implements `@telos` in the editor's own Chat view. It routes and runs there, and streams its answer. */

import type { RunRequest } from '@telos/engine/run';
import type { Selection } from '@telos/protocol/attachment';
import { describeRoute, withHookNotice } from '@telos/protocol/describe';
import type { RunEvent } from '@telos/protocol/run';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, describeMessage, escapeMarkdown, plainLabel } from '../base/labels.ts';
import { descriptionOf, pickableSkills } from '../skills/skillFiles.ts';
import { describeEnd, type NativeRuns } from './editorRuns.ts';
import { pickHuman } from './quickPickHuman.ts';

type Routed = Extract<RunEvent, { type: 'routed' }>;

/** Must match package.json. */
const participantId = 'telos.telos';

/** People do not read longer lists in a chat. The tree and the lists can be searched. */
const mostListed = 100;

export function registerChatParticipant(
  current: CurrentTelos,
  runs: NativeRuns,
  icon: vscode.Uri,
): vscode.Disposable {
  const participant = vscode.chat.createChatParticipant(
    participantId,
    async (request, _context, stream, token) => {
      try {
        return await answer(current, runs, request, stream, token);
      } catch (error) {
        return {
          errorDetails: {
            message: plainLabel(describeError(error), 2_000),
          },
        };
      }
    },
  );
  participant.iconPath = icon;
  return participant;
}

async function answer(
  current: CurrentTelos,
  runs: NativeRuns,
  request: vscode.ChatRequest,
  stream: vscode.ChatResponseStream,
  token: vscode.CancellationToken,
): Promise<vscode.ChatResult> {
  const words = request.prompt.trim();
  if (request.command === 'plan') return plan(words, stream);
  if (request.command === 'list' || words === '') return list(current, stream);
  if (request.command === 'route') return route(current, words, stream, token);
  const text = request.command === 'run' ? named(words) : words;
  const asked = await withReferences(text, request.references);
  let routed = '';
  let runId = '';
  const changed = new Set<string>();
  const end = await runs.run(asked, pickHuman, token, event => {
    show(withHookNotice(event, vscode.l10n.t), stream);
    if (event.type === 'run_start') runId = event.runId;
    if (event.type === 'routed') routed = routingLine(event);
    if (event.type === 'tool_end') for (const file of event.result.changedFiles ?? []) changed.add(file);
  });
  sayAtEnd(routed, changed, stream);
  if (changed.size > 0) {
    stream.button({
      command: 'telos.showChanges',
      title: vscode.l10n.t('Show Changes'),
      arguments: [{ runId }],
    });
  }
  stream.button({ command: 'telos.openLog', title: vscode.l10n.t('Open Log') });
  const problem = describeEnd(end);
  if (problem === undefined || end.outcome === 'cancelled') return { metadata: { outcome: end.outcome } };
  return { metadata: { outcome: end.outcome }, errorDetails: { message: plainLabel(problem, 2_000) } };
}

/** Begins a plan. Its questions come as a form, which only Telos's own chat can show. */
async function plan(goal: string, stream: vscode.ChatResponseStream): Promise<vscode.ChatResult> {
  stream.markdown(plainMarkdown(vscode.l10n.t('Telos asks in its own chat what it must know for the plan.')));
  await vscode.commands.executeCommand('telos.newPlan', { goal });
  return {};
}

/** Marks the first word after `/run` as the skill's name. With a slash, or as `agent:skill`, the words need no mark. */
const named = (words: string): string => (/^[/$]|^\S+:\S/.test(words) ? words : `/${words}`);

async function list(current: CurrentTelos, stream: vscode.ChatResponseStream): Promise<vscode.ChatResult> {
  const skills = await pickableSkills(await (await current.openTelos()).agents());
  if (skills.length === 0) {
    stream.markdown(vscode.l10n.t('There are no skills yet.'));
    stream.button({ command: 'telos.newSkill', title: vscode.l10n.t('New Skill...') });
    stream.button({ command: 'telos.addSamplePack', title: vscode.l10n.t('Add Sample Pack') });
    return {};
  }
  const lines = skills.slice(0, mostListed).map(({ agent, skill }) => {
    const [name, of, what] = [skill.id, agent.name, descriptionOf(skill)].map(part =>
      escapeMarkdown(plainLabel(part)),
    );
    return `- ${vscode.l10n.t('**{0}** of {1}: {2}', name ?? '', of ?? '', what ?? '')}`;
  });
  stream.markdown(lines.join('\n'));
  if (skills.length > mostListed)
    stream.markdown(`\n\n… ${vscode.l10n.t('and {0} more', skills.length - mostListed)}`);
  return {};
}

async function route(
  current: CurrentTelos,
  words: string,
  stream: vscode.ChatResponseStream,
  token: vscode.CancellationToken,
): Promise<vscode.ChatResult> {
  const controller = new AbortController();
  const cancelling = token.onCancellationRequested(() => controller.abort());
  try {
    const telos = await current.openTelos();
    const match = await telos.route({ text: words }, controller.signal);
    if (match.notice)
      stream.markdown(plainMarkdown(`${vscode.l10n.t('Note: ')}${plainLabel(match.notice, 400)}\n\n`));
    if (match.skill) {
      const why = describeRoute(match.agent.name, match.skill.id, match.reason, vscode.l10n.t);
      stream.markdown(plainMarkdown(plainLabel(vscode.l10n.t('Would run {0}. Nothing was run.', why), 400)));
      stream.button({
        command: 'telos.previewRouting',
        title: vscode.l10n.t('Pick Another...'),
        arguments: [words],
      });
    } else {
      const names = match.suggestions
        .slice(0, mostListed)
        .map(ref => vscode.l10n.t('{0} of {1}', ref.skill, ref.agent));
      stream.markdown(
        plainMarkdown(plainLabel(vscode.l10n.t('No skill fits. Choose from: {0}', names.join(', ')), 4_000)),
      );
    }
    return {};
  } finally {
    cancelling.dispose();
  }
}

/** Adds the person's attachments: the first part of a file as the selection, whole files by their paths. */
async function withReferences(
  text: string,
  references: readonly vscode.ChatPromptReference[],
): Promise<RunRequest> {
  const files: string[] = [];
  let selection: Selection | undefined;
  for (const { value } of references) {
    if (value instanceof vscode.Uri) files.push(value.fsPath);
    else if (value instanceof vscode.Location) {
      if (selection) files.push(`${value.uri.fsPath}:${value.range.start.line + 1}`);
      else selection = await selectionAt(value);
    }
  }
  return {
    text: files.length > 0 ? `${text}\n\nAttached files:\n${files.join('\n')}` : text,
    ...(selection && { selection }),
  };
}

async function selectionAt({ uri, range }: vscode.Location): Promise<Selection> {
  const document = await vscode.workspace.openTextDocument(uri);
  return {
    file: uri.scheme === 'file' ? uri.fsPath : document.fileName,
    text: document.getText(range),
    line: range.start.line + 1,
    language: document.languageId,
  };
}

/** Repeats the routing and the written files at the end. The Chat view folds everything before the last answer. */
function sayAtEnd(routed: string, changed: ReadonlySet<string>, stream: vscode.ChatResponseStream): void {
  if (routed) stream.markdown(`\n\n${emphasized(routed)}`);
  if (changed.size === 0) return;
  stream.markdown('\n\nChanged: ');
  for (const file of changed) {
    stream.anchor(vscode.Uri.file(file));
    stream.markdown(' ');
  }
}

function routingLine({ agent, skill, reason, provider, model, recording }: Routed): string {
  const by = recording ? vscode.l10n.t('a recorded run of {0}', recording.model) : `${provider}/${model}`;
  return plainLabel(`${describeRoute(agent, skill, reason, vscode.l10n.t)} · ${by}`, 400);
}

/** Returns the text as a value for the editor, shown literally. */
const plainMarkdown = (text: string): vscode.MarkdownString =>
  new vscode.MarkdownString(escapeMarkdown(text));

const emphasized = (text: string): string => `*${escapeMarkdown(text)}*`;

function show(event: RunEvent, stream: vscode.ChatResponseStream): void {
  switch (event.type) {
    case 'routed':
      stream.markdown(`${emphasized(routingLine(event))}\n\n`);
      return;
    case 'text':
      // A string is not trusted, so command links in a model's text do not work.
      stream.markdown(event.text);
      return;
    case 'step':
      stream.progress(plainLabel(event.detail));
      return;
    case 'tool_start':
      stream.markdown('\n\n');
      stream.progress(plainLabel(`${event.call.name} ${JSON.stringify(event.call.input)}`, 160));
      return;
    case 'tool_progress':
      stream.progress(plainLabel(`${event.name}: ${event.message}`, 160));
      return;
    case 'approval_request':
      stream.progress(
        plainLabel(
          vscode.l10n.t('Waits for your answer: {0}', `${event.request.tool} ${event.request.subject}`),
          160,
        ),
      );
      return;
    case 'notice':
      stream.markdown(
        plainMarkdown(
          `\n\n${event.level === 'warning' ? vscode.l10n.t('Note: ') : ''}${describeMessage(event)}\n\n`,
        ),
      );
      return;
    case 'retry':
      stream.progress(
        plainLabel(vscode.l10n.t('Tries again in {0} s: {1}', Math.ceil(event.waitMs / 1000), event.why)),
      );
      return;
    default:
      return;
  }
}
