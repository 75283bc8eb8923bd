/** Defines the tools that read a file and list a folder, confined to the run's folders. */

import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import type { ToolResult } from '@telos/protocol/run';
import { grouped } from '@telos/protocol/text';
import { mediaTypeOf, mostBytes } from '../files/attachedFile.ts';
import { openFolder, readRegularFile } from '../files/openFile.ts';
import { describeFileError, PathProblem } from '../files/paths.ts';
import { byteCount, describeBinary, escapeInvisible, withoutPartialEnd } from '../files/plainText.ts';
import { decodeText, formNote, formOf } from '../files/textEncoding.ts';
import { readFileLines } from './fileLines.ts';
import {
  isUnmadeWorkingDir,
  orProblem,
  readableFolders,
  type Tool,
  type ToolContext,
  targetOf,
  textProperty,
} from './tool.ts';

/** Bytes of one read. */
const readLimit = 256 * 1024;
/** Names of one listing. */
const listLimit = 2000;

export const readFileTool: Tool = {
  definition: {
    name: 'read_file',
    description:
      'Returns a text file, at most 256 KiB of it; shows a picture or a PDF. Other folders than those of this run need a yes of the user.',
    inputSchema: {
      type: 'object',
      properties: {
        path: textProperty(),
        offset: { type: 'number', description: 'The first line, counted from 1.' },
        limit: { type: 'number', description: 'How many lines.' },
        numbered: { type: 'boolean', description: 'Puts its number before each line.' },
      },
      required: ['path'],
    },
  },
  access: 'read',
  execute: (input, context) =>
    orProblem(context, async () => {
      const path = await targetOf(input['path'], context, readableFolders(context));
      if (['offset', 'limit'].some(name => input[name] !== undefined) || input['numbered'] === true)
        return readLines(input, path, context);
      return readText(path, context);
    }),
};

export const listDirectoryTool: Tool = {
  definition: {
    name: 'list_directory',
    description: 'Lists the names in a folder, sorted, hidden ones included; at most 2,000.',
    inputSchema: {
      type: 'object',
      properties: { path: textProperty('The folder; the working folder if left out.') },
      required: [],
    },
  },
  access: 'read',
  execute: (input, context) =>
    orProblem(context, async () => {
      const path = await targetOf(input['path'] ?? '.', context, readableFolders(context));
      if (await isUnmadeWorkingDir(path, context))
        return { content: '(empty: the working folder is created by the first write)', isError: false };
      return { content: listing(await namesIn(path)), isError: false };
    }),
};

async function readLines(
  { offset, limit, numbered }: Readonly<Record<string, unknown>>,
  path: string,
  { signal }: ToolContext,
): Promise<ToolResult> {
  const first = Math.max(1, Math.floor(Number(offset ?? 1)));
  const last = limit === undefined ? Number.POSITIVE_INFINITY : first + Math.floor(Number(limit)) - 1;
  const how = { limit: readLimit, numbered: numbered === true, checkTime: () => signal.throwIfAborted() };
  const { text } = await readFileLines(path, { first, last }, how);
  return { content: text || `(no lines: the file has fewer than ${grouped(first)})`, isError: false };
}

async function readText(path: string, context: ToolContext): Promise<ToolResult> {
  const { bytes, size } = readRegularFile(path, readLimit);
  const form = formOf(bytes);
  if (form === undefined || mediaTypeOf(bytes) !== undefined)
    return readMedia({ path, bytes, size }, context);
  const text = decodeText(bytes, form);
  const notes = [];
  if (size > readLimit) {
    const shown = form.encoding === 'utf-8' ? withoutPartialEnd(bytes) : bytes;
    notes.push(`[Cut: these are the first ${grouped(shown.length)} of ${grouped(size)} bytes of the file.]`);
  }
  const note = formNote(form);
  if (note) notes.push(note);
  return { content: notes.length > 0 ? `${text}\n\n${notes.join('\n')}` : text, isError: false };
}

/** Returns a picture or a document for the model to see, if it takes such files, and otherwise what the file is. */
async function readMedia(
  { path, bytes, size }: { path: string; bytes: Buffer; size: number },
  { media, signal }: ToolContext,
): Promise<ToolResult> {
  const name = basename(path);
  const mediaType = mediaTypeOf(bytes);
  const content = describeBinary(name, bytes, size);
  if (mediaType === undefined) return { content, isError: false };
  const kind = mediaType === 'application/pdf' ? 'document' : 'image';
  const what = kind === 'document' ? 'a PDF' : 'an image';
  const taken = (await media?.(signal)) ?? [];
  if (!taken.includes(kind))
    return {
      content: `${content}\n[It is ${what}. This model is not known to take such files.]`,
      isError: false,
    };
  if (size > mostBytes(mediaType))
    return { content: `${content}\n[It is ${what}, and too large for a model.]`, isError: false };
  const { bytes: whole } = readRegularFile(path, mostBytes(mediaType));
  if (mediaTypeOf(whole) !== mediaType)
    throw new PathProblem('unusable', `${path} was changed while it was being read. Read it again.`);
  const data = whole.toString('base64');
  return {
    content: `[${escapeInvisible(name)}: ${what}, ${byteCount(size)}, shown to you]`,
    isError: false,
    images: [
      mediaType === 'application/pdf'
        ? {
            type: 'document',
            source: { type: 'base64', media_type: mediaType, data },
            title: escapeInvisible(name),
          }
        : { type: 'image', source: { type: 'base64', media_type: mediaType, data } },
    ],
  };
}

async function namesIn(path: string): Promise<string[]> {
  const { anchor, close } = openFolder(path);
  try {
    return await readdir(anchor);
  } catch (error) {
    throw new PathProblem('unusable', describeFileError(error, path));
  } finally {
    close();
  }
}

/**
 * Returns the names as the model sees them, sorted and at most 2,000. Exported for its test, which needs no folder of that
 * size.
 */
export function listing(names: readonly string[]): string {
  if (names.length === 0) return '(empty)';
  const shown = [...names].sort().slice(0, listLimit).map(escapeInvisible);
  if (names.length > listLimit)
    shown.push(
      `[Cut: these are the first ${grouped(listLimit)} of ${grouped(names.length)} names in this folder.]`,
    );
  return shown.join('\n');
}
