/** The chat as the editor shows it: the webview in the secondary sidebar, and what its messages may have the editor do. */
import * as vscode from 'vscode';
import { TelosError } from '../engine/errors.ts';
import type { RunRequest, Telos } from '../engine/telos.ts';
import type { ApprovalRequest } from '../protocol/run.ts';
import type { ChatInfo, ToHost, ToWebview } from '../protocol/webview.ts';
import { Chat } from './chat.ts';
import { readToHost } from './chatMessages.ts';
import { chatPage } from './chatPage.ts';
import { insertAtCursor, openNewFile } from './codeTarget.ts';
import type { CurrentTelos } from './currentTelos.ts';
import { openableFile, openableLink } from './openTarget.ts';
import { descriptionOf, pickableSkills } from './pickableSkills.ts';
import { plainLabel } from './plainLabel.ts';
import type { StatusBar } from './statusBar.ts';

const viewId = 'telos.chat';
/** The view shows one line of each, and with thousands of skills each line counts. In characters. */
const maxListedDescription = 160;

export class ChatView implements vscode.WebviewViewProvider {
  readonly #extensionUri: vscode.Uri;
  readonly #current: CurrentTelos;
  readonly #log: vscode.LogOutputChannel;
  readonly #chat: Chat;
  #view: vscode.WebviewView | undefined;

  constructor(
    extensionUri: vscode.Uri,
    current: CurrentTelos,
    log: vscode.LogOutputChannel,
    status: StatusBar,
  ) {
    this.#extensionUri = extensionUri;
    this.#current = current;
    this.#log = log;
    this.#chat = new Chat({
      post: message => this.#post(message),
      openTelos: () => current.openTelos(),
      readInfo: () => this.#readInfo(),
      isTrusted: () => vscode.workspace.isTrusted,
      runningChanged: running => {
        sayRunning(running);
        status.sayRunning(running);
      },
      approvalAsked: request => this.#notifyHidden(request),
    });
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    const { webview } = view;
    const built = vscode.Uri.joinPath(this.#extensionUri, 'dist', 'webview');
    webview.options = {
      enableScripts: true,
      localResourceRoots: [built, vscode.Uri.joinPath(this.#extensionUri, 'media')],
    };
    const asset = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(built, name)).toString();
    const subscriptions = vscode.Disposable.from(
      webview.onDidReceiveMessage(message => void this.#receive(message)),
      view.onDidChangeVisibility(() => {
        // A hidden page is thrown away; the one that comes back asks for everything.
        if (!view.visible) this.#chat.hide();
      }),
      view.onDidDispose(() => {
        subscriptions.dispose();
        if (this.#view !== view) return;
        this.#view = undefined;
        this.#chat.hide();
      }),
    );
    webview.html = chatPage({
      cspSource: webview.cspSource,
      scriptUri: asset('main.js'),
      styleUri: asset('main.css'),
    });
  }

  /** Brings the chat to the front and runs a request in it, which takes nothing from what was said there before. */
  async submitInFront(request: RunRequest): Promise<void> {
    this.#chat.submit({ ...request, goesOn: 'from_start' });
    await this.focus();
  }

  /** The same, and a run that is going on gives way to it. */
  async submitInstead(request: RunRequest): Promise<void> {
    await this.#chat.submitInstead(request);
    await this.focus();
  }

  async focus(): Promise<void> {
    await vscode.commands.executeCommand(`${viewId}.focus`);
  }

  async startOver(): Promise<void> {
    await this.#chat.startOver();
    await this.focus();
  }

  stop(): void {
    this.#chat.stop();
  }

  async updateInfo(): Promise<void> {
    await this.#chat.updateInfo();
  }

  /** Aborts every run and waits for its end. */
  async end(): Promise<void> {
    await this.#chat.end();
  }

  #post(message: ToWebview): void {
    // Not awaited: a hidden view never answers, and what is lost is asked for by its number.
    this.#view?.webview.postMessage(message).then(undefined, error => this.#log.error(error));
  }

  async #receive(value: unknown): Promise<void> {
    const message = readToHost(value);
    if (!message) {
      this.#log.warn(`The chat view sent a message that is not known: ${plainLabel(describe(value), 300)}`);
      return;
    }
    try {
      await this.#act(message);
    } catch (error) {
      this.#log.error(`The chat view's message '${message.type}' failed.`, error);
    }
  }

  async #act(message: ToHost): Promise<void> {
    switch (message.type) {
      case 'ready':
        return this.#chat.show(message.id, message.have);
      case 'submit': {
        const { text, skill, withoutSkill, anew } = message;
        const request = {
          text,
          ...(skill && { skill }),
          ...(withoutSkill && { withoutSkill }),
          ...(anew && { goesOn: 'anew' as const }),
        };
        return message.instead ? this.#chat.submitInstead(request) : this.#chat.submit(request);
      }
      case 'resend':
        return this.#chat.resend(message.runId, message.text);
      case 'unqueue':
        return this.#chat.unqueue(message.id);
      case 'run_queued':
        return this.#chat.runQueued(message.id);
      case 'choose_skill':
        return this.#chooseSkill();
      case 'pick_skill':
        return vscode.commands.executeCommand('telos.previewRouting', message.text);
      case 'stop':
        return this.#chat.stop();
      case 'new_conversation':
        return this.#chat.startOver();
      case 'approve':
        if (!this.#chat.answer(message.callId, message.decision)) {
          this.#log.warn(`An answer came for a card that does not wait: ${plainLabel(message.callId)}`);
        }
        return;
      case 'open_link':
        return this.#openLink(message.url);
      case 'open_file':
        return this.#openFile(message.path);
      case 'copy':
        return vscode.env.clipboard.writeText(message.text);
      case 'insert_code':
        return insertAtCursor(message.text);
      case 'new_file':
        return openNewFile(message.text, message.language);
      case 'command':
        return vscode.commands.executeCommand(message.command);
    }
  }

  /** Puts the skill of the next request into the chip over the textbox. */
  async #chooseSkill(): Promise<void> {
    const agents = await (await this.#current.openTelos()).agents();
    const byWords = { label: 'Let Telos pick', description: 'by what you say', ref: null };
    const items = (await pickableSkills(agents)).map(({ agent, skill }) => ({
      label: plainLabel(skill.id),
      description: plainLabel(agent.name),
      detail: plainLabel(descriptionOf(skill)),
      ref: { agent: agent.name, skill: skill.id },
    }));
    const picked = await vscode.window.showQuickPick([byWords, ...items], {
      title: 'Skill for your next request',
      matchOnDescription: true,
      matchOnDetail: true,
    });
    if (picked) this.#post({ type: 'next_skill', skill: picked.ref });
    await this.focus();
  }

  async #openLink(url: string): Promise<void> {
    const link = openableLink(url);
    if (link) await vscode.env.openExternal(vscode.Uri.parse(link, true));
    else this.#log.warn(`A link was not opened, only http, https and mailto are: ${plainLabel(url)}`);
  }

  async #openFile(path: string): Promise<void> {
    const file = await openableFile(path, await this.#openableFolders(), this.#chat.workingDir);
    if (file) {
      await vscode.commands.executeCommand('vscode.open', vscode.Uri.file(file));
      return;
    }
    this.#log.warn(`A file was not opened: ${plainLabel(path, 1_000)}`);
    void vscode.window.showWarningMessage(
      `${plainLabel(path)} is gone, or lies outside the workspace, the working folders and the skills.`,
    );
  }

  async #openableFolders(): Promise<string[]> {
    const telos = await this.#current.openTelos();
    const agents = await telos.agents();
    return [
      ...(vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath),
      ...(this.#chat.workingDir ? [this.#chat.workingDir] : []),
      telos.config.skillsDir,
      ...agents.flatMap(agent => [agent.workingDir, agent.packDir, ...agent.skills.map(({ dir }) => dir)]),
    ];
  }

  async #readInfo(): Promise<ChatInfo> {
    const trusted = vscode.workspace.isTrusted;
    try {
      const telos = await this.#current.openTelos();
      const [choice, agents] = await Promise.all([this.#choice(telos), telos.agents()]);
      const skills = (await pickableSkills(agents)).map(({ agent, skill }) => ({
        agent: agent.name,
        skill: skill.id,
        description: plainLabel(descriptionOf(skill), maxListedDescription),
      }));
      return { provider: choice.name, model: choice.model, recording: choice.recording, skills, trusted };
    } catch (error) {
      this.#log.error('What the chat shows about models and skills could not be read.', error);
      return { provider: 'not available', model: '', recording: false, skills: [], trusted };
    }
  }

  /** A provider that is not set up does not keep the skills from being shown; the run says what is missing. */
  async #choice(telos: Telos): Promise<{ name: string; model: string; recording: boolean }> {
    try {
      return await telos.provider();
    } catch (error) {
      this.#log.warn(error instanceof TelosError ? error.message : String(error));
      return { name: 'not set up', model: '', recording: false };
    }
  }

  #notifyHidden({ tool, subject }: ApprovalRequest): void {
    if (this.#view?.visible) return;
    const question = `Telos wants your approval for ${plainLabel(tool, 60)}: ${plainLabel(subject, 120)}`;
    void vscode.window.showInformationMessage(question, 'Show').then(async answer => {
      if (answer === 'Show') await this.focus();
    });
  }
}

/** The chat's view and the commands that belong to it. */
export function registerChatView(
  context: vscode.ExtensionContext,
  current: CurrentTelos,
  log: vscode.LogOutputChannel,
  status: StatusBar,
): { chat: ChatView; registration: vscode.Disposable } {
  const chat = new ChatView(context.extensionUri, current, log, status);
  // The window may remember a run of an extension host that has ended since.
  sayRunning(false);
  const registration = vscode.Disposable.from(
    vscode.window.registerWebviewViewProvider(viewId, chat),
    current.onDidChange(() => void chat.updateInfo()),
    vscode.commands.registerCommand('telos.stop', () => chat.stop()),
    vscode.commands.registerCommand('telos.newConversation', () => chat.startOver()),
  );
  return { chat, registration };
}

/** For the `when` clauses of package.json. */
function sayRunning(running: boolean): void {
  void vscode.commands.executeCommand('setContext', 'telos.running', running);
}

function describe(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeof value;
  }
}
