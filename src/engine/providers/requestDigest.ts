/** Digests what a model is sent, so that a recording knows whether it still answers the same request. */
import { createHash } from 'node:crypto';
import type { ContentBlock, Message } from '@telos/protocol/run';
import type { CompletionRequest } from '../core/ports.ts';
import { canonicalJson } from '../files/lockText.ts';
import { mapStrings } from '../redact.ts';

/** The parts of a request that can change by themselves. `request` is the first message, with the skill's text; `results` all after it. */
export const requestParts = ['instructions', 'tools', 'request', 'results', 'limits'] as const;
export type RequestPart = (typeof requestParts)[number];

export interface RequestDigests {
  /** SHA-256 of the whole request, hexadecimal. */
  requestSha256: string;
  parts: Readonly<Record<RequestPart, string>>;
}

/** Folders that are elsewhere on another machine or in the next run, each with the name that is digested in its place. */
export type Places = Readonly<Record<string, string | undefined>>;

/**
 * Returns the digests of a request to a model. The paths of `places`, the date and the ids of calls are left out, since they differ in
 * each run, and so are the name under which the skill is installed and what the command tool says of the box of this machine.
 */
export function digestsOf(request: CompletionRequest, model: string, places: Places): RequestDigests {
  const { system, tools, maxTokens } = request;
  const [first, ...later] = withPlainIds(request.messages);
  const withPlaces = placeNamer(places);
  const digest = (value: unknown): string => sha256(canonicalJson(mapStrings(value, withPlaces)));
  const parts: Record<RequestPart, string> = {
    instructions: digest(withPlaces(system).replace(installedAs, '')),
    tools: digest(tools.map(tool => (tool.name === 'run_command' ? tool.name : tool))),
    request: digest(first && withoutDate(first)),
    results: digest(later),
    limits: digest([model, maxTokens]),
  };
  return { requestSha256: sha256(requestParts.map(name => parts[name]).join('\n')), parts };
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * Returns a function that puts names for paths in a text, the longest path first, since folders lie in each other. Line ends count as
 * one, since Git may change them.
 */
function placeNamer(places: Places): (text: string) => string {
  const known = Object.entries(places)
    .flatMap(([name, path]) => (path ? [{ path, name: `<${name}>` }] : []))
    .sort((a, b) => b.path.length - a.path.length);
  return text =>
    known.reduce((changed, { path, name }) => changed.replaceAll(path, name), text.replaceAll('\r\n', '\n'));
}

/** How the skill was installed: another person may have it under another name, or by itself. */
const installedAs = / of the agent "[^"\n]*"(?= for a person)|, in the pack <\w+>(?=;)/g;

const date = /^Current date\/time: .*$/m;

const withoutDate = ({ content, ...message }: Message): Message => ({
  ...message,
  content:
    typeof content === 'string'
      ? content.replace(date, '')
      : content.map(block =>
          block.type === 'text' ? { ...block, text: block.text.replace(date, '') } : block,
        ),
});

/** Returns the messages with the ids of calls counted, and without thoughts: those are sealed for one model and one conversation. */
function withPlainIds(messages: readonly Message[]): Message[] {
  const ids = new Map<string, string>();
  const plain = (id: string): string => {
    const known = ids.get(id) ?? `call-${ids.size + 1}`;
    ids.set(id, known);
    return known;
  };
  const blockOf = (block: ContentBlock): ContentBlock[] => {
    switch (block.type) {
      case 'thinking':
      case 'redacted_thinking':
        return [];
      case 'tool_use':
        return [{ ...block, id: plain(block.id) }];
      case 'tool_result':
        return [{ ...block, tool_use_id: plain(block.tool_use_id) }];
      default:
        return [block];
    }
  };
  return messages.map(({ role, content }) => ({
    role,
    content: typeof content === 'string' ? content : content.flatMap(blockOf),
  }));
}
