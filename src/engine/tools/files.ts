/** Defines the tools that read, write and edit a file and list a folder, confined to the run's folders. */

import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import type { ToolResult } from '../../protocol/run.ts';
import { grouped } from '../../protocol/text.ts';
import { replaceFile } from '../files/atomicWrite.ts';
import { mediaTypeOf, mostBytes } from '../files/attachedFile.ts';
import { openFolder, readRegularFile, readWholeFile, smallFile } from '../files/openFile.ts';
import { describeFileError, PathProblem } from '../files/paths.ts';
import {
  byteCount,
  decodeUtf8,
  describeBinary,
  escapeInvisible,
  looksBinary,
  withoutPartialEnd,
} from '../files/plainText.ts';
import { readFileLines } from './fileLines.ts';
import {
  isUnmadeWorkingDir,
  orProblem,
  pathProperty,
  readableFolders,
  shownPath,
  type Tool,
  type ToolContext,
  targetOf,
  toolError,
  writeLimit,
} from './tool.ts';

/** Bytes of one read. */
const readLimit = 256 * 1024;
/** Names of one listing. */
const listLimit = 2000;

export const readFileTool: Tool = {
  definition: {
    name: 'read_file',
    description:
      'Reads a text file and returns its content; a picture or a PDF is shown to a model that takes such files. At most the first 256 KiB are returned, with a note of the whole size. The file must lie in the working folder, where the user stands, or in the folder of the skill or its agent; anything else needs the approval of the user.',
    inputSchema: {
      type: 'object',
      properties: {
        path: pathProperty('The file to read.'),
        offset: { type: 'number', description: 'The first line to read, counted from 1; 1 when left out.' },
        limit: { type: 'number', description: 'How many lines to read; all when left out.' },
      },
      required: ['path'],
      additionalProperties: false,
    },
  },
  access: 'read',
  execute: (input, context) =>
    orProblem(context, async () => {
      const path = await targetOf(input['path'], context, readableFolders(context));
      if (input['offset'] !== undefined || input['limit'] !== undefined)
        return readLines(input, path, context);
      return readText(path, context);
    }),
};

export const listDirectoryTool: Tool = {
  definition: {
    name: 'list_directory',
    description:
      'Lists the names in a folder, sorted, one per line, hidden ones included; at most 2,000. Without a path it lists the working folder.',
    inputSchema: {
      type: 'object',
      properties: { path: pathProperty('The folder to list; the working folder if omitted.') },
      required: [],
      additionalProperties: false,
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
  { offset, limit }: Readonly<Record<string, unknown>>,
  path: string,
  { signal }: ToolContext,
): Promise<ToolResult> {
  const first = Math.max(1, Math.floor(Number(offset ?? 1)));
  const last = limit === undefined ? Number.POSITIVE_INFINITY : first + Math.floor(Number(limit)) - 1;
  const how = { limit: readLimit, numbered: false, checkTime: () => signal.throwIfAborted() };
  const { text } = await readFileLines(path, { first, last }, how);
  return { content: text || `(no lines: the file has fewer than ${grouped(first)})`, isError: false };
}

async function readText(path: string, context: ToolContext): Promise<ToolResult> {
  const { bytes, size } = readRegularFile(path, readLimit);
  if (looksBinary(bytes) || mediaTypeOf(bytes) !== undefined)
    return readMedia({ path, bytes, size }, context);
  if (size <= readLimit) return { content: decodeUtf8(bytes), isError: false };
  const shown = withoutPartialEnd(bytes);
  const note = `[Cut: these are the first ${grouped(shown.length)} of ${grouped(size)} bytes of the file.]`;
  return { content: `${decodeUtf8(shown)}\n\n${note}`, isError: false };
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

export const editFileTool: Tool = {
  definition: {
    name: 'edit_file',
    description:
      'Replaces text in a file of the working folder. old_text must match exactly, including spaces and line breaks, and occur only once unless replace_all is true.',
    inputSchema: {
      type: 'object',
      properties: {
        path: pathProperty('The file to change.'),
        old_text: {
          type: 'string',
          description: 'The current text, with enough context to occur only once.',
        },
        new_text: { type: 'string', description: 'The new text; empty to delete.' },
        replace_all: { type: 'boolean', description: 'Replaces every occurrence; false if omitted.' },
      },
      required: ['path', 'old_text', 'new_text'],
      additionalProperties: false,
    },
  },
  access: 'write',
  execute: (input, context) => orProblem(context, () => edit(input, context)),
};

async function edit(input: Readonly<Record<string, unknown>>, context: ToolContext) {
  const path = await targetOf(input['path'], context, [context.workingDir]);
  const read = await readWhole(path);
  if ('problem' in read) return toolError(read.problem);
  const { oldText, newText } = asInFile(read.text, String(input['old_text']), String(input['new_text']));
  if (oldText === '')
    return toolError('old_text is empty. Give the text to replace; write_file creates a new file.');
  if (oldText === newText) return toolError('old_text and new_text are the same. Nothing was changed.');
  const pieces = read.text.split(oldText);
  const count = pieces.length - 1;
  const name = basename(path);
  if (count === 0)
    return toolError(`old_text was not found in ${name}; it must match exactly. Read the file again.`);
  if (count > 1 && input['replace_all'] !== true)
    return toolError(
      `old_text occurs ${count} times in ${name}. Give more context, or set replace_all to true.`,
    );
  // Calculated before the text is joined, which could take more memory than there is.
  const size =
    Buffer.byteLength(read.text) + count * (Buffer.byteLength(newText) - Buffer.byteLength(oldText));
  if (size > writeLimit)
    return toolError(
      `The file would have ${grouped(size)} bytes; at most ${grouped(writeLimit)} can be written. Nothing was changed.`,
    );
  const bytes = Buffer.from(pieces.join(newText), 'utf8');
  const { existed: _, ...changed } = await replaceFile(path, bytes, context.changes);
  const times = count === 1 ? 'one place' : `${count} places`;
  return {
    content: `Changed ${times} of ${await shownPath(path, context)}.`,
    isError: false,
    ...changed,
  };
}

/**
 * Adapts line breaks to the file. A model writes one kind regardless of the file, and text that looked the same to it must
 * match.
 */
function asInFile(text: string, oldText: string, newText: string): { oldText: string; newText: string } {
  const unix = (part: string): string => part.replaceAll('\r\n', '\n');
  const windows = (part: string): string => unix(part).replaceAll('\n', '\r\n');
  const found = [oldText, windows(oldText), unix(oldText)].find(part => text.includes(part)) ?? oldText;
  const endsLikeWindows = found.includes('\n') ? found.includes('\r\n') : text.includes('\r\n');
  return { oldText: found, newText: endsLikeWindows ? windows(newText) : unix(newText) };
}

/** Reads the whole text, byte order mark and line ends included. Only text that can be written back exactly is accepted. */
async function readWhole(path: string): Promise<{ text: string } | { problem: string }> {
  const { bytes: start, size } = readRegularFile(path, smallFile + 1);
  if (size > writeLimit)
    return { problem: `The file has ${grouped(size)} bytes; at most ${grouped(writeLimit)} can be edited.` };
  const bytes = start.length > smallFile ? await readWholeFile(path) : start;
  const text = bytes.toString('utf8');
  if (looksBinary(bytes) || !Buffer.from(text, 'utf8').equals(bytes))
    return { problem: `${basename(path)} is not UTF-8 text, so it cannot be edited. Nothing was changed.` };
  return { text };
}

export const writeFileTool: Tool = {
  definition: {
    name: 'write_file',
    description:
      'Writes a whole text file in the working folder: creates it and the folders it needs, or replaces its content. At most 16 MiB.',
    inputSchema: {
      type: 'object',
      properties: {
        path: pathProperty('The file to write.'),
        content: { type: 'string', description: 'The complete new content of the file.' },
      },
      required: ['path', 'content'],
      additionalProperties: false,
    },
  },
  access: 'write',
  execute: (input, context) =>
    orProblem(context, async () => {
      const bytes = Buffer.from(String(input['content']), 'utf8');
      if (bytes.length > writeLimit)
        return toolError(
          `The content has ${grouped(bytes.length)} bytes; at most ${grouped(writeLimit)} (16 MiB) can be written in one call. Nothing was written. Write less, or several files.`,
        );
      const path = await targetOf(input['path'], context, [context.workingDir]);
      const { existed, ...changed } = await replaceFile(path, bytes, context.changes);
      const done = `${existed ? 'Overwrote' : 'Created'} ${await shownPath(path, context)} (${byteCount(bytes.length)}).`;
      return { content: done, isError: false, ...changed };
    }),
};
