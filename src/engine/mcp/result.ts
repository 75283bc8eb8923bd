/** Reads an MCP server's tool listings, progress messages and results. Results become text, images, and a line for the rest. */

import { isDeepStrictEqual } from 'node:util';
import type { ImageBlock, ToolResult } from '@telos/protocol/run';
import { shortened } from '@telos/protocol/text';
import { byteCount, escapeInvisible } from '../files/plainText.ts';
import { isDeeper, withinDepth } from '../jsonDepth.ts';
import type { McpToolListing } from './tools.ts';

/** Image types that models accept, by the first characters of their base64. */
const imageTypes = {
  iVBORw0KGgo: 'image/png',
  '/9j/': 'image/jpeg',
  R0lGOD: 'image/gif',
  UklGR: 'image/webp',
};
/** The smallest limit of the providers, in base64 characters. A larger image would make the whole turn fail. */
const maxImageSize = 5 * 1024 * 1024;
const maxImages = 20;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns the tool result for `whole`, the unchecked result of `tools/call`. Structured content is included unless the texts
 * have the same content, as servers should write it for models. Parts that are nested too deeply are left out.
 * Source: the tools page of the Model Context Protocol, 2025-11-25.
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

/** Upper bound for searching structured content in texts: the number of its parts times the characters of the texts. */
const mostSearched = 50_000_000;

/** Returns true if the texts hold the same JSON, or contain each text and number of it. */
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

/**
 * Returns the listed tool in a list, or an empty list if it cannot be used. A broken listing affects no other. Tools that run
 * only as a task are left out, because a model's turn cannot call them. So are those of `tooDeepTools`.
 */
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

/** Returns the names of listed tools whose schemas are nested too deeply to be read or sent to a model. */
export function tooDeepTools(listed: readonly unknown[]): string[] {
  return listed.map(fieldsOf).flatMap(({ name, inputSchema }) => {
    return typeof name === 'string' && isDeeper(inputSchema) ? [name] : [];
  });
}

/** Longest message of a progress that is shown, in characters. */
const longestProgress = 200;

/** Returns a call's progress as its server reports it: one line of text, and the share that is done if the server says it. */
export function progressOf({
  progress,
  total,
  message = '',
}: {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}): [message: string, share?: number] {
  const count = total === undefined ? `${progress}` : `${progress} of ${total}`;
  const words = shortened(escapeInvisible(message.slice(0, 2 * longestProgress).trim()), longestProgress);
  const text = words ? `${words} (${count})` : count;
  return total !== undefined && total > 0 ? [text, Math.min(1, Math.max(0, progress / total))] : [text];
}

/** Returns the text of a block. An image that a model can take is added to `images` and has no text. */
function partOf(block: Fields, images: ImageBlock[]): string {
  const mime = wordOf(block['mimeType']) || 'of unknown type';
  switch (block['type']) {
    case 'text':
      return wordOf(block['text']);
    case 'image': {
      const data = wordOf(block['data']);
      if (taken(data, images)) return '';
      return `[an image, ${mime}, ${sizeOf(data)}, not shown: the model cannot read it]`;
    }
    case 'audio':
      return `[sound, ${mime}, ${sizeOf(wordOf(block['data']))}, not played: the model cannot hear it]`;
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
 * Adds an image to `images` and returns true if a model can take it. The type that the server names is ignored: providers
 * refuse the whole request if an image's type is wrong. They also refuse base64 with line breaks or in a data address.
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
