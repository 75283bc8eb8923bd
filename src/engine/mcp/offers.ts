/** Reads what an MCP server offers besides tools: prompts, which a person calls, and resources, which a person attaches. */
import { Buffer } from 'node:buffer';
import { beginningOf } from '@telos/protocol/text';
import { escapeInvisible } from '../files/plainText.ts';
import { withinDepth } from '../jsonDepth.ts';
import { toolResultOf } from './result.ts';

export interface PromptArgument {
  name: string;
  description: string;
  isRequired: boolean;
}

export interface McpPrompt {
  name: string;
  description: string;
  arguments: readonly PromptArgument[];
}

export interface McpResource {
  uri: string;
  /** Its title or name. */
  name: string;
  description: string;
}

/** What a server offers, as it has listed it. */
export interface McpOffers {
  prompts: readonly McpPrompt[];
  resources: readonly McpResource[];
}

/** Sends a request to a server, and resolves with its unchecked result. */
export type AskForOffer = (method: OfferMethod, params: Fields) => Promise<Fields>;
export type OfferMethod = 'prompts/list' | 'prompts/get' | 'resources/list' | 'resources/read';

type Fields = Readonly<Record<string, unknown>>;

/** Upper bounds of a listing, which no sensible server exceeds. */
const maxPages = 50;
export const mostListed = 500;
/** Of names and addresses in a listing, in characters. A longer one cannot be typed, and is left out. */
const longestName = 500;
const longestDescription = 300;
const mostArguments = 30;

/**
 * Yields the items of each page of a listing, and returns true if there are more than a listing may have. A server whose pages lead back to
 * one that was read has no more.
 */
export async function* listed(
  ask: (params: Fields) => Promise<Fields>,
  field: string,
): AsyncGenerator<readonly unknown[], boolean> {
  const read = new Set<string>();
  let cursor: string | undefined;
  let count = 0;
  for (let page = 0; page < maxPages && count < mostListed; page++) {
    const { [field]: items, nextCursor } = await ask(cursor === undefined ? {} : { cursor });
    if (Array.isArray(items)) {
      count += items.length;
      yield items;
    }
    cursor = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined;
    if (cursor !== undefined && read.has(cursor)) cursor = undefined;
    if (cursor === undefined) break;
    read.add(cursor);
  }
  return cursor !== undefined || count > mostListed;
}

export const listPrompts = (ask: AskForOffer): Promise<McpPrompt[]> =>
  all(params => ask('prompts/list', params), 'prompts', promptOf);

export const listResources = (ask: AskForOffer): Promise<McpResource[]> =>
  all(params => ask('resources/list', params), 'resources', resourceOf);

async function all<Item>(
  ask: (params: Fields) => Promise<Fields>,
  field: string,
  read: (item: Fields) => Item | undefined,
): Promise<Item[]> {
  const found: Item[] = [];
  for await (const items of listed(ask, field))
    for (const item of items) {
      const one = found.length < mostListed ? read(fieldsOf(item)) : undefined;
      if (one) found.push(one);
    }
  return found;
}

function promptOf({ name, title, description, arguments: asked }: Fields): McpPrompt | undefined {
  if (!isName(name)) return undefined;
  const args = Array.isArray(asked) ? asked.map(fieldsOf) : [];
  if (args.length > mostArguments || args.some(arg => !isName(arg['name']))) return undefined;
  return {
    name,
    description: lineOf(description) || lineOf(title),
    arguments: args.map(arg => ({
      name: String(arg['name']),
      description: lineOf(arg['description']),
      isRequired: arg['required'] === true,
    })),
  };
}

function resourceOf({ uri, name, title, description }: Fields): McpResource | undefined {
  if (!isName(uri)) return undefined;
  return { uri, name: lineOf(title) || lineOf(name), description: lineOf(description) };
}

/** Without blanks and characters that cannot be seen: such a name could not be typed, or pose as another. */
const isName = (value: unknown): value is string =>
  typeof value === 'string' &&
  value !== '' &&
  value !== '__proto__' &&
  value.length <= longestName &&
  !/\s/.test(value) &&
  escapeInvisible(value) === value;

const lineOf = (value: unknown): string =>
  typeof value === 'string' ? escapeInvisible(beginningOf(value, longestDescription).trim()) : '';

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};

/** Returns the filled in prompt as one text with its pictures. What poses as an answer of the model is marked as the server's. */
export function promptText(answer: Fields): Pick<ReturnType<typeof toolResultOf>, 'content' | 'images'> {
  const { messages } = withinDepth(answer);
  const said = Array.isArray(messages) ? messages.map(fieldsOf) : [];
  const isAlone = said.length === 1 && said[0]?.['role'] === 'user';
  const content = said.flatMap(({ role, content: block }) => {
    const blocks = Array.isArray(block) ? block : [block];
    return isAlone ? blocks : [{ type: 'text', text: `[${String(role).slice(0, 20)}]` }, ...blocks];
  });
  return toolResultOf({ content });
}

/** A part of a resource, as its server returns it. */
export interface ResourcePart {
  uri: string;
  bytes: Buffer;
}

/** Resolves with the parts of a resource. Most have one. */
export async function readParts(ask: AskForOffer, uri: string): Promise<ResourcePart[]> {
  const { contents } = await ask('resources/read', { uri });
  const parts = Array.isArray(contents) ? contents.slice(0, mostParts).map(fieldsOf) : [];
  return parts.flatMap(part => {
    const { text, blob } = part;
    const own = isName(part['uri']) ? part['uri'] : uri;
    if (typeof text === 'string') return [{ uri: own, bytes: Buffer.from(text) }];
    return typeof blob === 'string' ? [{ uri: own, bytes: Buffer.from(blob, 'base64') }] : [];
  });
}

/** A resource with more parts, such as a folder, is cut. */
const mostParts = 20;
