/** Shows that work goes on, with a button to cancel it. */

import * as vscode from 'vscode';

/** Returns what the work returns. Throws its errors, among them a `CancellationError` after the button was pressed. */
export function inProgress<Result>(
  title: string,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const task = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  return Promise.resolve(
    vscode.window.withProgress(task, async (_progress, token) => {
      const stop = new AbortController();
      token.onCancellationRequested(() => stop.abort(new vscode.CancellationError()));
      return work(stop.signal);
    }),
  );
}
