/** The three file tools, held in the run's folders whatever a path says. */
import { type FileHandle, lstat, readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, isAbsolute, relative } from 'node:path';
import type { ToolResult } from '../../protocol/run.ts';
import {
  describeFileError,
  errorCode,
  folderHolding,
  isInside,
  openFolder,
  openRegularFile,
  PathProblem,
  resolvePath,
} from './paths.ts';
import {
  byteCount,
  decodeUtf8,
  describeBinary,
  escapeInvisible,
  grouped,
  looksBinary,
  withoutPartialEnd,
} from './plainText.ts';
import { replaceFile } from './replaceFile.ts';
import { type RunFolders, type Tool, type ToolContext, toolError } from './tool.ts';

/** Bytes of one read. */
const readLimit = 256 * 1024;
/** Bytes of one write. */
export const writeLimit = 16 * 1024 * 1024;
/** Names of one listing. */
const listLimit = 2000;

export const pathProperty = (what: string) => ({
  type: 'string',
  description: `${what} Relative to the working folder, absolute, or starting with ~.`,
});

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

export const writeFileTool: Tool = {
  definition: {
    name: 'write_file',
    description:
      'Writes a text file in the working folder, whole: it is created with the folders it needs, or its old content is replaced. At most 16 MiB.',
    inputSchema: {
      type: 'object',
      properties: {
        path: pathProperty('The file to write.'),
        content: { type: 'string', description: 'The whole new content of the file.' },
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

export const readableFolders = (folders: RunFolders): string[] => [
  folders.workingDir,
  folders.packDir,
  folders.skillDir,
  ...(folders.alsoReadable ?? []),
];

export const homeOf = (context: ToolContext): string =>
  context.env['HOME'] ?? context.env['USERPROFILE'] ?? homedir();

/**
 * The real path that a call may touch. An approval binds the call to exactly what was shown; without one it stays in `folders`.
 * Throws PathProblem.
 */
export async function targetOf(
  given: unknown,
  context: ToolContext,
  folders: readonly string[],
): Promise<string> {
  const home = homeOf(context);
  const path = await resolvePath(String(given), context.workingDir, home);
  if (context.approvedSubject !== undefined) {
    if (path === context.approvedSubject) return path;
    throw new PathProblem(
      'unusable',
      `${String(given)} now means ${path}, but ${context.approvedSubject} was checked. Nothing was done.`,
    );
  }
  if ((await folderHolding(path, folders, home)) !== undefined) return path;
  throw new PathProblem(
    'unusable',
    `${path} is outside working_dir (${context.workingDir}) and has not been approved. Use a path inside it.`,
  );
}

export async function orProblem(
  context: ToolContext,
  action: () => Promise<ToolResult>,
): Promise<ToolResult> {
  context.signal.throwIfAborted();
  try {
    return await action();
  } catch (error) {
    if (error instanceof PathProblem) return toolError(error.message);
    throw error;
  }
}

async function readText(handle: FileHandle, size: number, path: string): Promise<ToolResult> {
  // One byte more than there is: a read that does not fill it has come to the end, and needs no second one to know.
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

export async function shownPath(path: string, context: ToolContext): Promise<string> {
  const root = await resolvePath(context.workingDir, context.workingDir, homeOf(context));
  const way = relative(root, path);
  return isInside(root, path) && !isAbsolute(way) ? way : path;
}

async function isUnmadeWorkingDir(path: string, context: ToolContext): Promise<boolean> {
  const root = await resolvePath(context.workingDir, context.workingDir, homeOf(context));
  if (path !== root) return false;
  return lstat(root).then(
    () => false,
    error => errorCode(error) === 'ENOENT',
  );
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

/** The names as the model sees them, sorted and at most 2,000. Exported for its test, which needs no folder of that size. */
export function listing(names: readonly string[]): string {
  if (names.length === 0) return '(empty)';
  const shown = [...names].sort().slice(0, listLimit).map(escapeInvisible);
  if (names.length > listLimit)
    shown.push(
      `[Cut: these are the first ${grouped(listLimit)} of ${grouped(names.length)} names in this folder.]`,
    );
  return shown.join('\n');
}
