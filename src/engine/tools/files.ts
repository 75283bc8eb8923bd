/** Defines the tools that read a file and list a folder, confined to the run's folders. */

import { type FileHandle, readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import type { ToolResult } from '../../protocol/run.ts';
import { describeFileError, openFolder, openRegularFile, PathProblem } from '../files/paths.ts';
import {
  decodeUtf8,
  describeBinary,
  escapeInvisible,
  grouped,
  looksBinary,
  withoutPartialEnd,
} from '../files/plainText.ts';
import { isUnmadeWorkingDir, orProblem, pathProperty, readableFolders, targetOf } from './targets.ts';
import type { Tool } from './tool.ts';

/** Bytes of one read. */
const readLimit = 256 * 1024;
/** Names of one listing. */
const listLimit = 2000;

export const readFileTool: Tool = {
  definition: {
    name: 'read_file',
    description:
      'Reads a text file and returns its content. At most the first 256 KiB are returned, with a note of the whole size. The file must lie in the working folder or in the folder of the skill or its agent; anything else needs the approval of the user.',
    inputSchema: {
      type: 'object',
      properties: { path: pathProperty('The file to read.') },
      required: ['path'],
      additionalProperties: false,
    },
  },
  access: 'read',
  execute: (input, context) =>
    orProblem(context, async () => {
      const path = await targetOf(input['path'], context, readableFolders(context));
      const { handle, size } = await openRegularFile(path);
      try {
        return await readText(handle, size, path);
      } finally {
        await handle.close();
      }
    }),
};

export const listDirectoryTool: Tool = {
  definition: {
    name: 'list_directory',
    description:
      'Lists the names in a folder, sorted, one per line, hidden ones included; at most 2,000. Without a path it lists the working folder.',
    inputSchema: {
      type: 'object',
      properties: { path: pathProperty('The folder to list; the working folder when left out.') },
      required: [],
      additionalProperties: false,
    },
  },
  access: 'read',
  execute: (input, context) =>
    orProblem(context, async () => {
      const path = await targetOf(input['path'] ?? '.', context, readableFolders(context));
      if (await isUnmadeWorkingDir(path, context))
        return { content: '(empty: the working folder is created at the first write)', isError: false };
      return { content: listing(await namesIn(path)), isError: false };
    }),
};

async function readText(handle: FileHandle, size: number, path: string): Promise<ToolResult> {
  // One byte more than the file's size. A read that does not fill it has reached the end, without a second read.
  const buffer = Buffer.allocUnsafe(Math.min(readLimit, size + 1));
  let filled = 0;
  for (let isWhole = false; !isWhole && filled < buffer.length; ) {
    const wanted = buffer.length - filled;
    const { bytesRead } = await handle.read(buffer, filled, wanted, filled);
    filled += bytesRead;
    isWhole = bytesRead < wanted;
  }
  const bytes = buffer.subarray(0, filled);
  if (looksBinary(bytes)) return { content: describeBinary(basename(path), bytes, size), isError: false };
  if (size <= readLimit) return { content: decodeUtf8(bytes), isError: false };
  const shown = withoutPartialEnd(bytes);
  const note = `[Cut: these are the first ${grouped(shown.length)} of ${grouped(size)} bytes of the file.]`;
  return { content: `${decodeUtf8(shown)}\n\n${note}`, isError: false };
}

async function namesIn(path: string): Promise<string[]> {
  const { handle, anchor } = await openFolder(path);
  try {
    return await readdir(anchor);
  } catch (error) {
    throw new PathProblem('unusable', describeFileError(error, path));
  } finally {
    await handle.close();
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
