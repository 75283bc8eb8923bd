/**
 * Lets the person sign in to an MCP server in their own browser, and handles the return to the editor. The credentials
 * are kept in the secret storage.
 */

import type { SignInPort } from '@telos/engine/run';
import * as vscode from 'vscode';
import { plainLabel } from './base/labels.ts';

/** The path of the address to which the browser returns. */
export const signInPath = '/mcp/callback';

/** Long enough for two factors or a forgotten password. In milliseconds. */
const patienceMs = 5 * 60_000;

/** The parts of the editor that a sign-in needs. */
export interface SignInEditor {
  secrets: Pick<vscode.SecretStorage, 'get' | 'store' | 'delete'>;
  /** Resolves to false if no browser was opened. */
  open(url: string): Thenable<boolean>;
  patienceMs: number;
  /** False for an editor in a browser. */
  isDesktop: boolean;
}

export class BrowserSignIn implements SignInPort {
  readonly #editor: SignInEditor;
  /** Waiting sign-ins by the state that the browser brings back. Each is answered once. */
  readonly #waiting = new Map<string, (answer: URLSearchParams) => void>();

  constructor(secrets: vscode.SecretStorage, editor: Partial<SignInEditor> = {}) {
    const isDesktop = vscode.env.uiKind === vscode.UIKind.Desktop;
    this.#editor = { secrets, open: openBrowser, patienceMs, isDesktop, ...editor };
  }

  async redirectUrl(): Promise<string> {
    const own = vscode.Uri.parse(`${vscode.env.uriScheme}://telos.telos${signInPath}`);
    // A document lists this address alone, while the editor's own differs from window to window.
    if (await this.clientDocument()) return own.toString(true);
    return (await vscode.env.asExternalUri(own)).toString(true);
  }

  async clientDocument(): Promise<string | undefined> {
    // In a browser, the editor has another address each time.
    if (!this.#editor.isDesktop) return undefined;
    return vscode.workspace.getConfiguration('telos').get<string>('mcp.clientDocument')?.trim() || undefined;
  }

  async visit(url: string, state: string, signal: AbortSignal): Promise<URLSearchParams> {
    signal.throwIfAborted();
    const given = new AbortController();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.#editor.patienceMs);
    const stop = AbortSignal.any([signal, given.signal, late.signal]);
    const coming = new Promise<URLSearchParams>((resolve, reject) => {
      this.#waiting.set(state, resolve);
      stop.addEventListener('abort', () => reject(whyNot(signal, late.signal)), { once: true });
    });
    // It may reject before anything listens.
    coming.catch(() => undefined);
    const title = vscode.l10n.t('Waiting for you to sign in at {0} in your browser', new URL(url).origin);
    const shown = { location: vscode.ProgressLocation.Notification, cancellable: true, title };
    try {
      return await vscode.window.withProgress(shown, async (_progress, cancelled) => {
        cancelled.onCancellationRequested(() => given.abort());
        const opening = Promise.resolve(this.#editor.open(url)).then(opened => {
          if (!opened) throw new Error(vscode.l10n.t('the browser could not be opened'));
          return coming;
        });
        return Promise.race([coming, opening]);
      });
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(state);
    }
  }

  /** Handles the browser's return. On the desktop, the editor has already unescaped `query`; in a browser, it is as sent. */
  async answer(query: string): Promise<void> {
    const sent = this.#editor.isDesktop ? query.replaceAll('%', '%25').replaceAll('+', '%2B') : query;
    const answer = new URLSearchParams(sent);
    const state = answer.get('state') ?? '';
    const taken = this.#waiting.get(state);
    this.#waiting.delete(state);
    if (taken) return taken(answer);
    void vscode.window.showWarningMessage(
      vscode.l10n.t('Telos received a sign-in that it was not waiting for and ignored it.'),
    );
  }

  async read(name: string): Promise<string | undefined> {
    return this.#editor.secrets.get(name);
  }

  async write(name: string, value: string | undefined): Promise<void> {
    await (value === undefined ? this.#editor.secrets.delete(name) : this.#editor.secrets.store(name, value));
  }
}

function whyNot(signal: AbortSignal, late: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  return new Error(
    late.aborted
      ? vscode.l10n.t('no one has signed in within five minutes')
      : vscode.l10n.t('you canceled the sign-in'),
  );
}

/** Opens the address as text. `Uri` loses the difference between the address's own `&` and one inside a value. */
export function openBrowser(url: string): Thenable<boolean> {
  return vscode.env.openExternal(url as unknown as vscode.Uri);
}

/**
 * Handlers by path, such as `/run`. An address can come from anywhere, so a handler may show something but never runs
 * it. `written` is the query as the editor passes it, which on the desktop is already unescaped.
 */
export type UriAnswers = Readonly<Record<string, (query: URLSearchParams, written: string) => Promise<void>>>;

export function registerUriHandler(answers: UriAnswers): vscode.Disposable {
  return vscode.window.registerUriHandler({
    handleUri: async ({ path, query }) => {
      const answer = Object.hasOwn(answers, path) ? answers[path] : undefined;
      if (answer) return answer(new URLSearchParams(query), query);
      void vscode.window.showWarningMessage(
        vscode.l10n.t(
          'Telos does not know the address {0}. Known: {1}.',
          plainLabel(path, 80),
          Object.keys(answers).join(', '),
        ),
      );
    },
  });
}
