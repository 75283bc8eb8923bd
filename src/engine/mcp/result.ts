/** Reads what an MCP server says: its listing of a tool, how far a call has come, and its answer as text, images, and a line for what is neither. */

import { isDeepStrictEqual } from 'node:util';
import type { ImageBlock, ToolResult } from '../../protocol/run.ts';
import { byteCount } from '../files/plainText.ts';
import { isDeeper, withinDepth } from '../jsonDepth.ts';
import type { McpToolListing } from './tools.ts';

/** What the models take, by how it begins in base64. */
const imageTypes = {
  iVBORw0KGgo: 'image/png',
  '/9j/': 'image/jpeg',
  R0lGOD: 'image/gif',
  UklGR: 'image/webp',
};
/** The smallest limit of the providers, in base64 characters; a larger image would fail the whole turn. */
const maxImageSize = 5 * 1024 * 1024;
const maxImages = 20;

type Fields = Readonly<Record<string, unknown>>;

/**
 * `whole` is the result of `tools/call` as it came; nothing in it is taken for granted. Structured content is told unless the texts say the
 * same, as servers should write it for models; what lies too deep is left out of it. Source: the tools page of the Model Context Protocol, 2025-11-25.
 */
export function toolResultOf(whole: Fields): ToolResult {
  const answer = withinDepth(whole);
  const blocks = Array.isArray(answer['content']) ? answer['content'].map(fieldsOf) : [];
  const images: ImageBlock[] = [];
  const parts = blocks.map(block => partOf(block, images)).filter(part => part !== '');
  const structured = answer['structuredContent'];
  const texts = blocks.flatMap(block => (block['type'] === 'text' ? [wordOf(block['text'])] : []));
  if (structured !== undefined && !saysTheSame(texts, structured))
    parts.push(JSON.stringify(structured, null, 2));
  const content = parts.join('\n\n') || (images.length > 0 ? '(an image)' : '(the tool returned nothing)');
  return { content, isError: answer['isError'] === true, ...(images.length > 0 ? { images } : {}) };
}

/** What a search for the parts of structured content in texts may cost: their number times the characters. */
const mostSearched = 50_000_000;

/** As the same JSON, or with every text and number of it in other words. */
function saysTheSame(texts: readonly string[], structured: unknown): boolean {
  if (texts.some(text => isDeepStrictEqual(parsed(text), structured))) return true;
  const said = texts.join('\n');
  const leaves = leavesOf(structured);
  if (said === '' || leaves.length * said.length > mostSearched) return false;
  return leaves.every(leaf => {
    if (typeof leaf === 'string') return said.includes(leaf);
    return typeof leaf === 'number' && new RegExp(`(?<![\\d.])${leaf}(?![\\d.]*\\d)`).test(said);
  });
}

function leavesOf(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [value];
  return Object.values(value).flatMap(leavesOf);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** One broken listing costs only itself. A tool that runs as a task alone cannot be called by a model's turn, and one of `tooDeepTools` not at all. */
export function listingOf(listed: unknown): McpToolListing[] {
  const { name, description, inputSchema, annotations, execution } = fieldsOf(listed);
  if (typeof name !== 'string' || name === '') return [];
  if (fieldsOf(execution)['taskSupport'] === 'required' || isDeeper(inputSchema)) return [];
  return [
    {
      name,
      description: typeof description === 'string' ? description : '',
      inputSchema: fieldsOf(inputSchema),
      readOnly: fieldsOf(annotations)['readOnlyHint'] === true,
    },
  ];
}

/** Returns the names of listed tools whose schemas nothing could walk through or send to a model. */
export function tooDeepTools(listed: readonly unknown[]): string[] {
  return listed.map(fieldsOf).flatMap(({ name, inputSchema }) => {
    return typeof name === 'string' && isDeeper(inputSchema) ? [name] : [];
  });
}

/** How far a call has come, as its server says it. */
export function progressText({
  progress,
  total,
  message,
}: {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}): string {
  const count = total === undefined ? `${progress}` : `${progress} of ${total}`;
  return message ? `${message} (${count})` : count;
}

/** The text of a block; an image that a model can take goes to `images` and has none. */
function partOf(block: Fields, images: ImageBlock[]): string {
  const mime = wordOf(block['mimeType']) || 'of unknown type';
  switch (block['type']) {
    case 'text':
      return wordOf(block['text']);
    case 'image': {
      const data = wordOf(block['data']);
      if (taken(data, images)) return '';
      return `[an image, ${mime}, ${sizeOf(data)}, which cannot be shown to a model]`;
    }
    case 'audio':
      return `[sound, ${mime}, ${sizeOf(wordOf(block['data']))}, which cannot be played to a model]`;
    case 'resource_link': {
      const notes = [wordOf(block['mimeType']), wordOf(block['description'])].filter(Boolean).join(', ');
      return `[resource ${wordOf(block['name'])}: ${wordOf(block['uri'])}${notes ? ` (${notes})` : ''}]`;
    }
    case 'resource':
      return resourceText(fieldsOf(block['resource']), images);
    default:
      return JSON.stringify(block);
  }
}

/**
 * True for an image that a model can take, which is among `images` then. What a server calls it does not count: providers refuse the whole
 * request over an image of another type than it is said to be, and over base64 with line breaks or in a data address.
 */
function taken(written: string, images: ImageBlock[]): boolean {
  if (written.length > 2 * maxImageSize || images.length >= maxImages) return false;
  const data = Buffer.from(written.replace(/^data:[^,]{0,200},/, ''), 'base64').toString('base64');
  const type = Object.entries(imageTypes).find(([beginning]) => data.startsWith(beginning))?.[1];
  if (!type || data.length > maxImageSize) return false;
  images.push({ type: 'image', source: { type: 'base64', media_type: type, data } });
  return true;
}

function resourceText(resource: Fields, images: ImageBlock[]): string {
  const uri = wordOf(resource['uri']);
  if (taken(wordOf(resource['blob']), images)) return `[resource ${uri}, an image]`;
  if (typeof resource['text'] === 'string') return `[resource ${uri}]\n${resource['text']}`;
  return `[resource ${uri}: ${wordOf(resource['mimeType']) || 'binary'}, ${sizeOf(wordOf(resource['blob']))}, not shown]`;
}

const sizeOf = (base64: string): string => byteCount(Math.floor((base64.length * 3) / 4));

const wordOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};
