/**
 * Shows what a link vscode://telos.telos/run?skill=…&agent=…&text=… would run, and where that comes from. Only the
 * person can run it.
 */

import { randomUUID } from 'node:crypto';
import type { RunRequest } from '@telos/engine/run';
import type { Telos } from '@telos/engine/telos';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { visibleText } from '../base/labels.ts';
import { descriptionOf, type PickableSkill, pickableSkills } from '../skills/skillFiles.ts';
import { untrustedMessage } from './editorRuns.ts';

const scheme = 'telos-link';

/** More than a person reads before agreeing. In characters. */
const longestText = 4_000;
const longestName = 200;
const mostListed = 20;

export interface LinkPreview {
  lines: readonly string[];
  /** The request that runs if the person agrees. Undefined if nothing can run. */
  request?: RunRequest;
}

/** Handles the path `/run`, and owns the document in which a link is shown. */
export class RunLink implements vscode.Disposable, vscode.TextDocumentContentProvider {
  readonly #current: CurrentTelos;
  readonly #chat: { submitInFront(request: RunRequest): Promise<void> };
  readonly #registration = vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  readonly #shown = new Map<string, string>();
  readonly #closing = vscode.workspace.onDidCloseTextDocument(({ uri }) =>
    this.#shown.delete(uri.toString()),
  );

  constructor(current: CurrentTelos, chat: { submitInFront(request: RunRequest): Promise<void> }) {
    this.#current = current;
    this.#chat = chat;
  }

  provideTextDocumentContent(uri: vscode.Uri): string | undefined {
    return this.#shown.get(uri.toString());
  }

  /** Shows the link. Its request runs only after the person has pressed Run. */
  async preview(query: URLSearchParams): Promise<void> {
    const { lines, request } = await linkPreview(await this.#current.openTelos(), query);
    const uri = vscode.Uri.from({ scheme, path: '/Link', query: randomUUID() });
    this.#shown.set(uri.toString(), `${lines.join('\n')}\n`);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: false });
    if (!request) return;
    const run = vscode.l10n.t('Run');
    // Not awaited: the person reads first, and may close it without an answer.
    void vscode.window
      .showWarningMessage(
        vscode.l10n.t('A link asks Telos to run what is shown. Nothing has run yet.'),
        run,
        vscode.l10n.t('Not Now'),
      )
      .then(answer => {
        if (answer === run) void this.#chat.submitInFront(request);
      });
  }

  dispose(): void {
    this.#registration.dispose();
    this.#closing.dispose();
  }
}

async function linkPreview(telos: Telos, query: URLSearchParams): Promise<LinkPreview> {
  const [name, agentName, text] = ['skill', 'agent', 'text'].map(key => query.get(key)?.trim() ?? '') as [
    string,
    string,
    string,
  ];
  const heading = [
    vscode.l10n.t('A link from outside the editor asks Telos to run something. Nothing has run.'),
    '',
  ];
  const words = ['', vscode.l10n.t('Request:'), '', ...quoted(text)];
  const refuse = (why: string): LinkPreview => ({ lines: [...heading, why, ...words] });
  if (name.length > longestName || agentName.length > longestName || text.length > longestText) {
    return {
      lines: [
        ...heading,
        vscode.l10n.t(
          'The link has more than {0} characters, which is too long to review. It was not run.',
          longestText,
        ),
      ],
    };
  }
  if (name === '' && text === '')
    return refuse(vscode.l10n.t('The link names no skill and no words, so there is nothing to run.'));
  const matches = await matching(telos, name, agentName);
  if (matches.length === 0)
    return refuse(vscode.l10n.t('There is no {0} here. Nothing runs.', wanted(name, agentName)));
  if (name !== '' && matches.length > 1) {
    return refuse(
      vscode.l10n.t(
        'Several agents have a skill {0}, and the link does not say which: {1}. Nothing runs.',
        visibleText(name),
        names(matches),
      ),
    );
  }
  const what = name === '' ? await byWords(telos, text, agentName) : describeSkill(matches[0]!);
  if (!vscode.workspace.isTrusted) return refuse([...what, '', untrustedMessage].join('\n'));
  return {
    lines: [...heading, ...what, ...words],
    request: requestOf(text, agentName, name === '' ? undefined : matches[0]),
  };
}

async function matching(telos: Telos, name: string, agentName: string): Promise<PickableSkill[]> {
  const all = await pickableSkills(await telos.agents());
  return all.filter(
    ({ agent, skill }) =>
      (agentName === '' || agent.name === agentName) &&
      (name === '' || skill.id === name || `${agent.name}:${skill.id}` === name),
  );
}

function requestOf(text: string, agentName: string, found: PickableSkill | undefined): RunRequest {
  if (found) return { text, skill: { agent: found.agent.name, skill: found.skill.id } };
  return { text, ...(agentName !== '' && { agent: agentName }) };
}

const wanted = (name: string, agentName: string): string => {
  const agent = vscode.l10n.t('agent {0}', visibleText(agentName));
  if (name === '') return agentName === '' ? vscode.l10n.t('skill') : agent;
  const skill = vscode.l10n.t('skill {0}', visibleText(name));
  return agentName === '' ? skill : vscode.l10n.t('{0} of {1}', skill, agent);
};

const names = (matches: readonly PickableSkill[]): string =>
  matches.map(({ agent, skill }) => visibleText(`${agent.name}:${skill.id}`)).join(', ');

function describeSkill({ agent, skill }: PickableSkill): string[] {
  return [
    vscode.l10n.t('Skill: {0} of agent {1}', visibleText(skill.id), visibleText(agent.name)),
    vscode.l10n.t('File: {0}', visibleText(skill.file)),
    vscode.l10n.t('Says: {0}', visibleText(descriptionOf(skill)).replaceAll('\n', ' ')),
  ];
}

/** Finds skills with the index on this machine. No model reads a link's words before the person has. */
async function byWords(telos: Telos, text: string, agentName: string): Promise<string[]> {
  const ranking = await telos.ranking({ text, ...(agentName !== '' && { agent: agentName }) });
  const fits = ranking
    .slice(0, mostListed)
    .map(
      ({ agent, skill }) =>
        `  ${vscode.l10n.t('{0} of {1}', visibleText(skill.id), visibleText(agent.name))}`,
    );
  const first =
    agentName === ''
      ? vscode.l10n.t('The link names no skill, so Telos chooses one based on its text.')
      : vscode.l10n.t(
          'The link names no skill, so Telos chooses one of agent {0} based on its text.',
          visibleText(agentName),
        );
  return fits.length > 0
    ? [first, vscode.l10n.t('Matching skills, best match first:'), ...fits]
    : [first, vscode.l10n.t('No matching skills.')];
}

const quoted = (text: string): string[] =>
  text === ''
    ? [`  ${vscode.l10n.t('(no text)')}`]
    : visibleText(text)
        .split('\n')
        .map(line => `  | ${line}`);
