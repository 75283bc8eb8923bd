/** Has the person sign in at an MCP server in their own browser, and takes the browser's way back into the editor; what is given out lies in the secret storage. */
import * as vscode from 'vscode';
import type { SignInPort } from '../engine/mcp/signIn.ts';
import { plainLabel } from './base/labels.ts';

/** The path of the address that the browser comes back to. */
export const signInPath = '/mcp/callback';

/** Two factors, a forgotten password: longer than that takes nobody who is still at it. Milliseconds. */
const patienceMs = 5 * 60_000;

/** What of the editor a sign-in needs. */
export interface SignInEditor {
  secrets: Pick<vscode.SecretStorage, 'get' | 'store' | 'delete'>;
  /** Resolves to false where no browser was opened. */
  open(url: string): Thenable<boolean>;
  patienceMs: number;
}

export class BrowserSignIn implements SignInPort {
  readonly #editor: SignInEditor;
  /** By the state that the browser brings back. Each is answered once. */
  readonly #waiting = new Map<string, (answer: URLSearchParams) => void>();

  constructor(secrets: vscode.SecretStorage, editor: Partial<SignInEditor> = {}) {
    this.#editor = { secrets, open: openBrowser, patienceMs, ...editor };
  }

  async redirectUrl(): Promise<string> {
    const own = vscode.Uri.parse(`${vscode.env.uriScheme}://telos.telos${signInPath}`);
    return (await vscode.env.asExternalUri(own)).toString(true);
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
    // It may end before anybody listens.
    coming.catch(() => undefined);
    const title = vscode.l10n.t('Waiting for you to sign in at {0} in your browser', new URL(url).origin);
    const shown = { location: vscode.ProgressLocation.Notification, cancellable: true, title };
    try {
      return await vscode.window.withProgress(shown, async (_progress, cancelled) => {
        cancelled.onCancellationRequested(() => given.abort());
        const opening = Promise.resolve(this.#editor.open(url)).then(opened => {
          if (!opened) throw new Error('no browser was opened for its sign-in');
          return coming;
        });
        return Promise.race([coming, opening]);
      });
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(state);
    }
  }

  /** The browser has come back. `query` as the editor hands it over, which has undone its escapes already. */
  async answer(query: string): Promise<void> {
    const answer = new URLSearchParams(query.replaceAll('%', '%25').replaceAll('+', '%2B'));
    const state = answer.get('state') ?? '';
    const taken = this.#waiting.get(state);
    this.#waiting.delete(state);
    if (taken) return taken(answer);
    void vscode.window.showWarningMessage(
      vscode.l10n.t('A sign-in came back that Telos does not wait for. Nothing was done with it.'),
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
    late.aborted ? 'nobody has signed in within five minutes' : 'you have cancelled its sign-in',
  );
}

/** As text: an address that went through `Uri` has lost the difference between its own `&` and one inside a value. */
function openBrowser(url: string): Thenable<boolean> {
  return vscode.env.openExternal(url as unknown as vscode.Uri);
}

/**
 * By path, such as `/run`. An address comes from anywhere, so an answer shows something at most, and never runs it. `written` is the query as the
 * editor gives it, its escapes undone.
 */
export type UriAnswers = Readonly<Record<string, (query: URLSearchParams, written: string) => Promise<void>>>;

export function registerUriHandler(answers: UriAnswers): vscode.Disposable {
  return vscode.window.registerUriHandler({
    handleUri: async ({ path, query }) => {
      const answer = Object.hasOwn(answers, path) ? answers[path] : undefined;
      if (answer) return answer(new URLSearchParams(query), query);
      void vscode.window.showWarningMessage(
        vscode.l10n.t(
          'Telos knows no address {0}. It knows {1}.',
          plainLabel(path, 80),
          Object.keys(answers).join(', '),
        ),
      );
    },
  });
}
