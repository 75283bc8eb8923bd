/** Provides the language models that other extensions bring, without a key. The editor itself asks for consent. */

import { TelosError } from '@telos/engine/errors';
import type {
  CompletionRequest,
  FrontendProvider,
  Provider,
  StreamEvent,
  TokenCount,
} from '@telos/engine/providers';
import { untilAborted } from '@telos/engine/run';
import type { ToolCall } from '@telos/protocol/run';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';

/** The provider's name in the settings. */
export const lmProviderName = 'vscode';

/** The longest time for counting tokens at the end of a turn. In milliseconds. */
const countingPatienceMs = 2_000;

/** A model's abilities beyond the editor's published types. Missing in editors that do not report them. */
type Capabilities = { supportsImageToText?: boolean; supportsToolCalling?: boolean };
const capabilitiesOf = (model: vscode.LanguageModelChat): Capabilities =>
  (model as { capabilities?: Capabilities }).capabilities ?? {};

/** Returns a model's name in settings and in the chat. An id is only unique within its vendor. */
export const lmModelName = ({ vendor, id }: vscode.LanguageModelChat): string => `${vendor}/${id}`;

/** Returns all models of the editor, those that take tools first. */
export async function lmModels(): Promise<vscode.LanguageModelChat[]> {
  const models = await vscode.lm.selectChatModels();
  const takesTools = (model: vscode.LanguageModelChat): boolean =>
    capabilitiesOf(model).supportsToolCalling !== false;
  return [...models.filter(takesTools), ...models.filter(model => !takesTools(model))];
}

export const lmProvider: FrontendProvider = {
  async model() {
    const [first] = await lmModels();
    return first && lmModelName(first);
  },
  async create(wanted) {
    const models = await lmModels();
    const model =
      wanted === undefined
        ? models[0]
        : (models.find(each => lmModelName(each) === wanted) ??
          models.find(each => each.id === wanted || each.family === wanted));
    if (model) return providerOf(model);
    const known = models.map(lmModelName).join(', ');
    throw new TelosError(
      'config',
      known
        ? vscode.l10n.t(
            "The editor has no language model '{0}', only {1}. Choose one with “Telos: Choose Model...”.",
            wanted ?? '',
            known,
          )
        : vscode.l10n.t(
            'The editor has no language model. Install or sign in to an extension that brings one, or set the key of another provider.',
          ),
    );
  },
};

/** Returns the provider for one model of the editor. */
export function providerOf(model: vscode.LanguageModelChat): Provider {
  return {
    name: lmProviderName,
    model: lmModelName(model),
    contextWindow: model.maxInputTokens,
    quota: { whose: `${model.vendor} in the editor`, roundsBeforeAsking: roundsBeforeAsking() },
    media: async () => (capabilitiesOf(model).supportsImageToText === false ? [] : ['image']),
    streamCompletion: (request, signal) => streamCompletion(model, request, signal),
  };
}

const roundsBeforeAsking = (): number =>
  vscode.workspace.getConfiguration('telos').get<number>('vscode.roundsBeforeAsking') ?? 10;

const usedKey = 'telos.editorModelUsed';

/** Returns the same provider with a notice about the quota before its first use. */
export function lmProviderWithMemory(memory: vscode.Memento): FrontendProvider {
  return {
    ...lmProvider,
    async create(wanted) {
      const provider = await lmProvider.create(wanted);
      if (memory.get(usedKey)) return provider;
      return {
        ...provider,
        notice: vscode.l10n.t(
          '{0} is a model of the editor, and its answers count against your quota there. The setting telos.vscode.roundsBeforeAsking controls when a long run asks before it continues.',
          provider.model,
        ),
        streamCompletion(request, signal) {
          void memory.update(usedKey, true);
          return provider.streamCompletion(request, signal);
        },
      };
    },
  };
}

async function* streamCompletion(
  model: vscode.LanguageModelChat,
  request: CompletionRequest,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent> {
  const { fromLmCall, toLmMessages, toLmTools } = await import('./lmMessages.ts');
  signal.throwIfAborted();
  const { supportsImageToText, supportsToolCalling } = capabilitiesOf(model);
  if (request.tools.length > 0 && supportsToolCalling === false) {
    throw new Error(`${lmModelName(model)} takes no tools.`); // the loop reports this and asks again without tools
  }
  const source = new vscode.CancellationTokenSource();
  const cancel = (): void => source.cancel();
  signal.addEventListener('abort', cancel);
  try {
    const messages = toLmMessages(request, supportsImageToText !== false);
    const tools = toLmTools(request.tools);
    const justification = vscode.l10n.t('Telos runs your skill with this model.');
    const sent = model.sendRequest(messages, { justification, tools }, source.token);
    // A model's extension may react slowly to a cancellation.
    const { stream } = await untilAborted(sent, signal);
    const answer: vscode.LanguageModelChatMessage = vscode.LanguageModelChatMessage.Assistant([]);
    let stopReason = 'end_turn';
    for await (const part of whileNotAborted(stream, signal)) {
      const event = eventOf(part, fromLmCall);
      if (!event) continue;
      answer.content.push(part as vscode.LanguageModelTextPart | vscode.LanguageModelToolCallPart);
      if (event.type === 'tool_call') stopReason = 'tool_use';
      yield event;
    }
    const usage = await countTokens(model, messages, answer, signal);
    yield { type: 'done', stopReason, ...(usage && { usage }) };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw explain(error, lmModelName(model));
  } finally {
    signal.removeEventListener('abort', cancel);
    source.cancel(); // leaves no request open when the listener has stopped
    source.dispose();
  }
}

/** Returns undefined for parts that the API may add, such as data that only the model's own extension understands. */
function eventOf(
  part: unknown,
  callOf: (part: vscode.LanguageModelToolCallPart) => ToolCall,
): StreamEvent | undefined {
  if (part instanceof vscode.LanguageModelTextPart) {
    return part.value ? { type: 'text', text: part.value } : undefined;
  }
  if (part instanceof vscode.LanguageModelToolCallPart) return { type: 'tool_call', call: callOf(part) };
  return undefined;
}

/**
 * Counts a turn's tokens. The API does not report them, but most models can count. Returns undefined if this one cannot
 * or takes too long.
 */
async function countTokens(
  model: vscode.LanguageModelChat,
  asked: readonly vscode.LanguageModelChatMessage[],
  answer: vscode.LanguageModelChatMessage,
  signal: AbortSignal,
): Promise<TokenCount | undefined> {
  const patience = AbortSignal.any([signal, AbortSignal.timeout(countingPatienceMs)]);
  const count = async (message: vscode.LanguageModelChatMessage): Promise<number> =>
    model.countTokens(message);
  try {
    const counted = Promise.all([...asked.map(count), answer.content.length > 0 ? count(answer) : 0]);
    const counts = await untilAborted(counted, patience);
    const outputTokens = counts.at(-1) ?? 0;
    const inputTokens = counts.slice(0, -1).reduce((sum, each) => sum + each, 0);
    return inputTokens > 0
      ? { inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 }
      : undefined;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

async function* whileNotAborted<Value>(
  values: AsyncIterable<Value>,
  signal: AbortSignal,
): AsyncGenerator<Value> {
  const iterator = values[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await untilAborted(iterator.next(), signal);
    if (done) return;
    yield value;
  }
}

function explain(error: unknown, model: string): TelosError {
  if (error instanceof TelosError) return error;
  const said = error instanceof Error ? error.message : String(error);
  // An error that is not text in the other extension arrives in this form.
  const reason = said === '' || said === '[object Object]' ? vscode.l10n.t('it gave no reason.') : said;
  switch (error instanceof vscode.LanguageModelError ? error.code : '') {
    case vscode.LanguageModelError.NoPermissions.name:
      return new TelosError(
        'auth',
        vscode.l10n.t(
          'Telos may not use {0}: the consent is missing. Send the request again and allow it when the editor asks. ({1})',
          model,
          reason,
        ),
        { cause: error },
      );
    case vscode.LanguageModelError.Blocked.name:
      return new TelosError(
        'rate_limit',
        vscode.l10n.t(
          '{0} does not answer at the moment: {1} Wait a while, or pick another model with “Telos: Choose Model...”.',
          model,
          reason,
        ),
        { cause: error },
      );
    case vscode.LanguageModelError.NotFound.name:
      return new TelosError(
        'config',
        vscode.l10n.t(
          'The editor has no model {0} any more. Pick another with “Telos: Choose Model...”. ({1})',
          model,
          reason,
        ),
        { cause: error },
      );
    default:
      return new TelosError('provider', vscode.l10n.t('{0} could not answer: {1}', model, reason), {
        cause: error,
      });
  }
}

/** Refreshes after models come or go, because the next run may then use another one. */
export function registerLmModels(current: CurrentTelos): vscode.Disposable {
  let known: string | undefined;
  return vscode.lm.onDidChangeChatModels(async () => {
    // Asking for the models can itself be reported as a change.
    const names = (await lmModels()).map(lmModelName).join();
    if (names === known) return;
    known = names;
    await current.refresh();
  });
}
