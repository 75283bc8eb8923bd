/** Goes on where a server refuses a request for one tool or one picture, which would otherwise end the conversation for good. */
import { type Sentence, sentence, spoken } from '@telos/protocol/text';
import { PromptTooLong, TelosError } from '../core/errors.ts';
import type { CompletionRequest, Provider, StreamEvent, ToolDefinition } from '../core/ports.ts';
import { Refused } from './failures.ts';
import { mediaIn, withoutMedia } from './media.ts';

/** Characters of a conversation from which its length may be what a server refuses. */
const longFrom = 40_000;

/**
 * Returns the provider, which sends a refused request again without the part that the server names, and no later one with it. A longer request
 * than any that was taken, refused for no such part, becomes PromptTooLong, since servers say that in many words.
 */
export function withoutRefusedParts(provider: Provider): Provider {
  const tools = new Set<string>();
  /** What is sent of a picture that was refused. */
  const media = new Set<string>();
  let most = Number.POSITIVE_INFINITY;
  let taken: CompletionRequest | undefined;

  const fitted = (request: CompletionRequest): CompletionRequest => ({
    ...request,
    tools: request.tools.filter(({ name }) => !tools.has(name)).slice(0, most),
    messages: media.size === 0 ? request.messages : request.messages.map(each => withoutMedia(each, media)),
  });

  /** Notes what is refused, and returns what the person is told. Undefined if the refusal is about something else. */
  const leaveOut = (words: string, sent: CompletionRequest): readonly Sentence[] | undefined => {
    const tool = toolIn(words, sent.tools);
    if (tool) {
      tools.add(tool.name);
      return [sentence('The server refuses the tool {0}, which is left out.', tool.name)];
    }
    const few = mostTools(words, sent.tools.length);
    if (few !== undefined) {
      most = few;
      const [first = '', last = ''] = [sent.tools[few]?.name, sent.tools.at(-1)?.name];
      return [
        sentence('The server takes {0} tools at most.', few),
        sentence('The {0} from {1} to {2} are left out.', sent.tools.length - few, first, last),
      ];
    }
    const pictures = picturesIn(words, sent.messages);
    if (pictures.length === 0) return undefined;
    for (const data of pictures) media.add(data);
    return [sentence('The server refuses a picture or document, which is left out.')];
  };

  return {
    ...provider,
    async *streamCompletion(request, signal): AsyncGenerator<StreamEvent> {
      for (let attempt = 1; ; attempt++) {
        const sent = fitted(request);
        try {
          yield* provider.streamCompletion(sent, signal);
          // A run adds to its messages where they are.
          taken = { ...sent, messages: [...sent.messages] };
          return;
        } catch (error) {
          if (!isRefusal(error)) throw error;
          const said = leaveOut(error.message, sent);
          if (!said) throw mayBeTooLong(sent, taken) ? tooLong(error) : error;
          const sentences = [...said, ...(error.sentences ?? [])];
          yield { type: 'retry', attempt, waitMs: 0, why: spoken(sentences), sentences };
        }
      }
    },
  };
}

/** Also after several tries. */
const isRefusal = (error: unknown): error is TelosError =>
  error instanceof Refused || (error instanceof TelosError && error.cause instanceof Refused);

const tooLong = ({ code, sentences, message }: TelosError): PromptTooLong =>
  new PromptTooLong(code, sentences ?? message);

/** Returns true also for the first request of a conversation that goes on: what was taken of it before is not known here. */
function mayBeTooLong(sent: CompletionRequest, taken: CompletionRequest | undefined): boolean {
  if (!taken && !sent.messages.some(({ role }) => role === 'assistant')) return false;
  const length = lengthOf(sent);
  return length > longFrom && length > (taken ? lengthOf(taken) : 0);
}

const lengthOf = ({ system, messages, tools }: CompletionRequest): number =>
  JSON.stringify([system, messages, tools]).length;

/** Returns the tool that a refusal names: by its place in the request, or by its name in quotes. */
function toolIn(words: string, tools: readonly ToolDefinition[]): ToolDefinition | undefined {
  const [, declared] = /\bfunction_?declarations\W{1,6}(\d+)/i.exec(words) ?? [];
  const [, listed] = /\btools\W{1,6}(\d+)/i.exec(words) ?? [];
  const at = declared ?? listed;
  if (at !== undefined) return tools[Number(at)];
  if (!/schema|parameter|function|tool/i.test(words)) return undefined;
  return tools.find(({ name }) =>
    [`'${name}'`, `"${name}"`, `\`${name}\``].some(quoted => words.includes(quoted)),
  );
}

/** Returns how many tools a server takes that refuses this many. Undefined if a refusal is about something else. */
function mostTools(words: string, count: number): number | undefined {
  if (!/\b(?:tools|functions|function_?declarations)\b/i.test(words)) return undefined;
  const most = [...words.matchAll(/(?:max\w*|most|limit\w*|up to|exceed\w*|>)\D{0,40}?(\d{1,4})\b/gi)];
  return most.map(([, number]) => Number(number)).find(number => number > 0 && number < count);
}

/** Returns the data of the pictures that a refusal is about: those of the message that it names, else the latest, which were not there before. */
function picturesIn(words: string, messages: CompletionRequest['messages']): readonly string[] {
  if (!/image|picture|\bdocuments?\b|\bpdf\b|inline_?data/i.test(words)) return [];
  const [, at] = /\bmessages\W{1,3}(\d+)/i.exec(words) ?? [];
  const named = at === undefined ? [] : mediaIn(messages[Number(at)]);
  if (named.length > 0) return named;
  return mediaIn(messages.findLast(each => mediaIn(each).length > 0));
}
