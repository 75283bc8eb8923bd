/** A whole Telos whose model is written in the test: each request gets the turn that a function returns for it. */
import type { Config } from '../../src/engine/config.ts';
import type { CompletionRequest, Provider } from '../../src/engine/core/ports.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { ScriptedTurn } from './scriptedProvider.ts';

/** A request as the model gets it. */
export interface AskedModel {
  /** Names of the offered tools. */
  tools: string[];
  system: string;
  /** The text of the first message. */
  words: string;
  /** The text and the tool results of the last message. */
  last: string;
  /** Number of the model's own messages so far. */
  turn: number;
}

/** `answer` may take its time, so that a step can run out of it. */
export function scriptedTelos(
  config: Config,
  answer: (asked: AskedModel, index: number) => ScriptedTurn | Promise<ScriptedTurn>,
): { telos: Telos; asked: AskedModel[] } {
  const asked: AskedModel[] = [];
  const provider: Provider = {
    name: 'scripted',
    model: 'script',
    async *streamCompletion(request, signal) {
      const one = askedOf(request);
      asked.push(one);
      const gone = new Promise<never>((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
      );
      gone.catch(() => undefined);
      for (const event of await Promise.race([answer(one, asked.length - 1), gone])) {
        signal.throwIfAborted();
        if (event instanceof Error) throw event;
        yield event;
      }
    },
  };
  const scripted = { model: async () => 'script', create: async () => provider };
  const telos = Telos.open({ ...config, provider: 'scripted' }, { providers: { scripted } });
  return { telos, asked };
}

function askedOf({ system, messages, tools }: CompletionRequest): AskedModel {
  return {
    tools: tools.map(({ name }) => name),
    system,
    words: textOf(messages[0]?.content),
    last: textOf(messages.at(-1)?.content),
    turn: messages.filter(({ role }) => role === 'assistant').length,
  };
}

function textOf(content: CompletionRequest['messages'][number]['content'] = ''): string {
  if (typeof content === 'string') return content;
  return content
    .map(block => {
      if (block.type === 'text') return block.text;
      return block.type === 'tool_result' ? textOf(block.content) : '';
    })
    .join('\n');
}
