/** What addresses of the form vscode://telos.telos/PATH do: each path has one answer, and any other is told to be none. */
import * as vscode from 'vscode';
import { plainLabel } from './plainLabel.ts';

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
