/** Chats in the editor area, each with its own conversation, so that several runs go on side by side. */
import * as vscode from 'vscode';
import { type ChatDesk, ChatSurface } from './chatSurface.ts';
import { keptIdOf } from './conversation.ts';
import { plainLabel } from './plainLabel.ts';

/** Also named in package.json. */
const panelType = 'telos.chatPanel';

/** One chat, and the editor that shows it; its run outlives the editor. */
class ChatPanel {
  readonly surface: ChatSurface;
  readonly #desk: ChatDesk;
  readonly #panels: ChatPanels;
  #panel: vscode.WebviewPanel | undefined;

  constructor(desk: ChatDesk, panels: ChatPanels) {
    this.#desk = desk;
    this.#panels = panels;
    this.surface = new ChatSurface(desk, {
      isVisible: () => this.#panel?.visible === true,
      focus: async () => this.focus(),
      changed: () => this.#label(),
    });
  }

  get isActive(): boolean {
    return this.#panel?.active === true;
  }

  /** An editor that was closed while its run goes on is opened again. */
  focus(): void {
    if (this.#panel) this.#panel.reveal();
    else this.show(newEditor());
  }

  show(panel: vscode.WebviewPanel): void {
    this.#panel = panel;
    const subscriptions = vscode.Disposable.from(
      this.surface.attach(panel.webview),
      panel.onDidChangeViewState(() => {
        // A hidden page is thrown away; the one that comes back asks for everything.
        if (!panel.visible) this.surface.chat.hide();
        this.#panels.changed();
      }),
      panel.onDidDispose(() => {
        subscriptions.dispose();
        this.#panel = undefined;
        this.#panels.changed();
        const { chat } = this.surface;
        if (chat.isWorking) this.#goOnUnseen();
        else if (chat.isRunning) chat.close();
        else this.#panels.remove(this);
      }),
    );
    this.#label();
  }

  #label(): void {
    const { title, isRunning, waiting } = this.surface.chat;
    this.#panels.changed();
    if (!this.#panel) {
      if (!isRunning) this.#panels.remove(this);
      return;
    }
    this.#panel.title = plainLabel(title, 40) || 'Telos';
    this.#panel.iconPath = this.#icon(isRunning, waiting);
  }

  #icon(isRunning: boolean, waiting: number): vscode.IconPath {
    if (waiting > 0) return new vscode.ThemeIcon('bell-dot');
    if (isRunning) return new vscode.ThemeIcon('loading~spin');
    const picture = (theme: string): vscode.Uri =>
      vscode.Uri.joinPath(this.#desk.extensionUri, 'media', `icon-${theme}.svg`);
    return { light: picture('light'), dark: picture('dark') };
  }

  /** An editor cannot be kept from closing, and a run may have taken long already. */
  #goOnUnseen(): void {
    const question = vscode.l10n.t(
      '“{0}” runs on, although its editor is closed.',
      plainLabel(this.surface.chat.title, 60),
    );
    const [show, stop] = [vscode.l10n.t('Show'), vscode.l10n.t('Stop')];
    void vscode.window.showInformationMessage(question, show, stop).then(answer => {
      if (answer === show) this.focus();
      if (answer === stop) this.surface.chat.stop();
    });
  }
}

/** All of them. */
export class ChatPanels implements vscode.WebviewPanelSerializer {
  readonly #desk: ChatDesk;
  readonly #all = new Set<ChatPanel>();

  constructor(desk: ChatDesk) {
    this.#desk = desk;
  }

  open(): ChatPanel {
    const one = new ChatPanel(this.#desk, this);
    this.#all.add(one);
    one.show(newEditor());
    return one;
  }

  /** `state` is what the page of an earlier window has kept. */
  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: unknown): Promise<void> {
    const one = new ChatPanel(this.#desk, this);
    this.#all.add(one);
    const id = typeof state === 'object' && state !== null && 'id' in state ? state.id : undefined;
    if (typeof id === 'string') one.surface.restore({ conversationId: keptIdOf(id) });
    one.show(panel);
  }

  get active(): ChatPanel | undefined {
    return [...this.#all].find(one => one.isActive);
  }

  remove(one: ChatPanel): void {
    if (!this.#all.delete(one)) return;
    this.#desk.chats.remove(one.surface);
  }

  /** For the `when` clauses of package.json. */
  changed(): void {
    const isRunning = this.active?.surface.chat.canStop === true;
    void vscode.commands.executeCommand('setContext', 'telos.panelRunning', isRunning);
  }
}

/** `Telos: Open Chat in Editor`, the buttons in the editor's title, and the editors that a reloaded window had. */
export function registerChatPanels(desk: ChatDesk): { panels: ChatPanels; registration: vscode.Disposable } {
  const panels = new ChatPanels(desk);
  const registration = vscode.Disposable.from(
    vscode.window.registerWebviewPanelSerializer(panelType, panels),
    vscode.commands.registerCommand('telos.openChatInEditor', () => {
      panels.open();
    }),
    vscode.commands.registerCommand('telos.stopEditorChat', () => panels.active?.surface.chat.stop()),
    vscode.commands.registerCommand('telos.newEditorConversation', () =>
      panels.active?.surface.chat.startOver(),
    ),
  );
  return { panels, registration };
}

function newEditor(): vscode.WebviewPanel {
  return vscode.window.createWebviewPanel(panelType, 'Telos', vscode.ViewColumn.Active);
}
