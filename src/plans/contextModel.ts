/** Chooses the model that answers questions about a project: any provider, counted against the budgets like everything else. */

import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { redactor, secretsIn } from '@telos/engine/policy';
import { type CompletionRequest, createProvider, Models, type Provider } from '@telos/engine/providers';
import { countedCall } from '@telos/engine/run';
import { sentence } from '@telos/protocol/text';
import type { ContextModel, ContextQuestion } from './contextAnswer.ts';

/** Returns the model of the settings. Throws the errors of `chooseProvider`. */
export async function contextModel(config: Config): Promise<ContextModel> {
  const choice = await new Models(config).choice();
  const usual = await createProvider(config, choice);
  const key = config.env['GEMINI_API_KEY'];
  const cache =
    choice.name === 'gemini' && key
      ? new (await import('./geminiCache.ts')).GeminiCache({ apiKey: key, ...choice }, usual)
      : undefined;
  const redact = redactor(secretsIn(config.env)).text;
  return {
    // Models on the person's own machine seldom see, and fail if they are shown something.
    sees: choice.name !== 'ollama' && !choice.recording,
    async ask(question, whole, signal) {
      const provider = cache ? cache.holding(() => redact(whole())) : usual;
      return wordsOf(provider, requestOf(question, redact), config, signal);
    },
    close: async () => cache?.close(),
  };
}

const requestOf = (
  { rules, material, question, files, maxTokens }: ContextQuestion,
  redact: (text: string) => string,
): CompletionRequest => ({
  system: rules,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: `<material>\n${redact(material)}\n</material>` },
        { type: 'text', text: redact(question) },
      ],
    },
  ],
  tools: [],
  maxTokens,
  attached: files,
});

async function wordsOf(
  provider: Provider,
  request: CompletionRequest,
  config: Config,
  signal: AbortSignal,
): Promise<string> {
  let text = '';
  for await (const event of countedCall(provider, request, config, signal)) {
    if (event.type === 'text') text += event.text;
    if (event.type === 'done' && event.stopReason === 'refusal')
      throw new TelosError('provider', [
        sentence('The model declined to answer.'),
        sentence('Ask in other words.'),
      ]);
  }
  return text;
}
