/**
 * Keeps the tools of servers out of the requests of a run where they would take too much room. The model finds them with `search_tools` and
 * calls them with `use_tool`, so that all requests of the run have the same tools, which a provider keeps in its cache.
 */
import type { JsonObject, ToolCall } from '@telos/protocol/run';
import { beginningOf } from '@telos/protocol/text';
import { eachWord, stem } from '../routing/language.ts';
import { type Tool, toolError } from '../tools/tool.ts';

/** Share of the window that the definitions of servers' tools may take, and the window where it is not known, in tokens. */
const mostShare = 0.1;
const usualWindow = 128_000;
/** Characters of a definition that are about a token. */
const perToken = 4;
/** More tools some providers refuse. */
const mostTools = 128;
/** Tools that one search returns, and characters of what it returns. */
const mostFound = 8;
const mostCharacters = 24_000;

const searchName = 'search_tools';
const useName = 'use_tool';

export const searchNames: ReadonlySet<string> = new Set([searchName, useName]);

export class ToolSearch {
  readonly #most: number;
  readonly #isServers: (name: string) => boolean;
  #all: readonly Tool[] = [];
  #hides = false;
  /** `search_tools` and `use_tool`, for the tools of the run. */
  readonly tools: readonly Tool[];

  /** `window` is in tokens. `isServers` says whether a server has a tool, by its name in the run. */
  constructor(window: number | undefined, isServers: (name: string) => boolean) {
    this.#most = (window ?? usualWindow) * mostShare;
    this.#isServers = isServers;
    this.tools = [
      {
        definition: searchDefinition,
        access: 'read',
        execute: async ({ query }) => this.#found(String(query)),
      },
      {
        definition: useDefinition,
        access: 'read',
        // A call of a tool that is there becomes a call of that tool before it is decided on.
        execute: async ({ name }) =>
          toolError(`There is no tool '${String(name)}'. ${searchName} finds tools.`),
      },
    ];
  }

  /** Returns the tools that a request has. Once tools are hidden, they stay so until the run ends. */
  shown(all: readonly Tool[]): readonly Tool[] {
    this.#all = all;
    const theirs = all.filter(tool => this.#isTheirs(tool));
    const size = theirs.reduce((sum, { definition }) => sum + JSON.stringify(definition).length, 0);
    const count = all.length - this.tools.length;
    this.#hides ||= theirs.length > 0 && (size / perToken > this.#most || count > mostTools);
    return all.filter(tool => (this.#hides ? !this.#isTheirs(tool) : !searchNames.has(tool.definition.name)));
  }

  /** Returns the call that `use_tool` means, or the call itself. */
  meant(written: ToolCall): ToolCall {
    const { name, input } = written.input;
    const isFor = written.name === useName && written.problem === undefined && typeof name === 'string';
    if (!isFor || !this.#all.some(({ definition }) => definition.name === name)) return written;
    return { ...written, name, input: argumentsIn(input) };
  }

  #isTheirs({ definition: { name } }: Tool): boolean {
    return !searchNames.has(name) && this.#isServers(name);
  }

  #found(query: string) {
    const theirs = this.#all.filter(tool => this.#isTheirs(tool));
    const found = bestFor(query, theirs);
    if (found.length === 0) {
      const names = theirs.map(({ definition }) => definition.name).join(', ');
      const content = `No tool fits these words. These tools are there: ${beginningOf(names, mostCharacters)}`;
      return { content, isError: false };
    }
    const texts = found.map(({ definition: { name, description, inputSchema } }) =>
      [`${name}: ${description}`, `input: ${JSON.stringify(inputSchema)}`].join('\n'),
    );
    const content = beginningOf(`Call one with ${useName}.\n\n${texts.join('\n\n')}`, mostCharacters);
    return { content, isError: false };
  }
}

const searchDefinition = {
  name: searchName,
  description: `Finds tools of the connected servers by what they do. They are not listed otherwise. Returns names and inputs; ${useName} calls one.`,
  inputSchema: {
    type: 'object',
    properties: { query: { type: 'string', description: 'What the tool is to do, in a few English words.' } },
    required: ['query'],
    additionalProperties: false,
  },
};

const useDefinition = {
  name: useName,
  description: `Calls a tool that ${searchName} has found.`,
  inputSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', description: 'The name of the tool.' },
      input: { type: 'object', description: 'Its input, as its schema says.' },
    },
    required: ['name', 'input'],
    additionalProperties: false,
  },
};

/** Returns the arguments, which some models write as text. */
function argumentsIn(input: unknown): JsonObject {
  if (typeof input === 'string') {
    try {
      return argumentsIn(JSON.parse(input));
    } catch {
      return {};
    }
  }
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? (input as JsonObject) : {};
}

/** How much more a word of the name counts than one of the description, and one of an input. */
const weights = { name: 3, description: 1, input: 0.5 };

/** Returns the tools whose words fit the query best, best first: the rarer a word among all tools, the more it counts. */
function bestFor(query: string, tools: readonly Tool[]): readonly Tool[] {
  const documents = tools.map(tool => ({ tool, words: wordsOf(tool) }));
  const wanted = stems(query);
  const rarity = new Map(
    [...wanted].map(word => {
      const count = documents.filter(({ words }) => words.has(word)).length;
      return [word, count === 0 ? 0 : Math.log(1 + tools.length / count)];
    }),
  );
  return documents
    .map(({ tool, words }) => ({
      tool,
      score: [...wanted].reduce((sum, word) => sum + (words.get(word) ?? 0) * (rarity.get(word) ?? 0), 0),
    }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, mostFound)
    .map(({ tool }) => tool);
}

/** Returns the weight of each word of a tool, with diminishing returns. */
function wordsOf({ definition: { name, description, inputSchema } }: Tool): ReadonlyMap<string, number> {
  const words = new Map<string, number>();
  const add = (text: string, weight: number): void => {
    for (const word of stems(text)) words.set(word, (words.get(word) ?? 0) + weight);
  };
  add(name.replaceAll('_', ' '), weights.name);
  add(description, weights.description);
  add(
    Object.keys((inputSchema['properties'] ?? {}) as object)
      .join(' ')
      .replaceAll('_', ' '),
    weights.input,
  );
  for (const [word, weight] of words) words.set(word, weight / (weight + 1));
  return words;
}

function stems(text: string): ReadonlySet<string> {
  const found = new Set<string>();
  eachWord(text, true, word => found.add(stem(word)));
  return found;
}
