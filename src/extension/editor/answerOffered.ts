/** Passes the editor's requests on to one of Telos's models, and streams the answer back. */
import * as vscode from 'vscode';
import type { CompletionRequest, StreamEvent } from '../../engine/providers/provider.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError } from '../base/labels.ts';
import { toLmCall } from './lmMessages.ts';

/** The names that Telos uses. */
interface AskedModel {
  provider: string;
  model: string;
}

/** Streams the answer. Throws errors that the editor knows from models. A cancellation is one of them. */
export async function answerOffered(
  current: CurrentTelos,
  model: AskedModel,
  request: CompletionRequest,
  progress: vscode.Progress<vscode.LanguageModelResponsePart>,
  token: vscode.CancellationToken,
): Promise<void> {
  const controller = new AbortController();
  const cancelling = token.onCancellationRequested(() => controller.abort());
  if (token.isCancellationRequested) controller.abort();
  try {
    for await (const event of await ask(current, model, request, controller.signal)) {
      if (event.type === 'text') progress.report(new vscode.LanguageModelTextPart(event.text));
      if (event.type === 'tool_call') progress.report(toLmCall(event.call));
    }
  } catch (error) {
    if (controller.signal.aborted) throw new vscode.CancellationError();
    throw toLmError(error);
  } finally {
    cancelling.dispose();
    controller.abort(); // leaves no request open when the listener has stopped
  }
}

async function ask(
  current: CurrentTelos,
  { provider, model }: AskedModel,
  request: CompletionRequest,
  signal: AbortSignal,
): Promise<AsyncIterable<StreamEvent>> {
  const { config } = await current.openTelos();
  const [{ createProvider }, { countedCall }] = await Promise.all([
    import('../../engine/providers/create.ts'),
    import('../../engine/run/meter.ts'),
  ]);
  const choice = { name: provider, model, why: 'The editor asks.', recording: false };
  return countedCall(await createProvider(config, choice), request, config, signal);
}

function toLmError(error: unknown): vscode.LanguageModelError {
  const message = describeError(error);
  const code = error instanceof Error && 'code' in error ? error.code : '';
  if (code === 'auth') return vscode.LanguageModelError.NoPermissions(message);
  if (code === 'rate_limit' || code === 'budget') return vscode.LanguageModelError.Blocked(message);
  if (code === 'config') return vscode.LanguageModelError.NotFound(message);
  return new vscode.LanguageModelError(message);
}
