/** Defines the tools that write a file, and that edit one place so it need not be written whole again. */

import { basename } from 'node:path';
import { replaceFile } from '../files/atomicWrite.ts';
import { openRegularFile } from '../files/paths.ts';
import { byteCount, grouped, looksBinary } from '../files/plainText.ts';
import { orProblem, pathProperty, shownPath, targetOf, writeLimit } from './targets.ts';
import { type Tool, type ToolContext, toolError } from './tool.ts';

export const editFileTool: Tool = {
  definition: {
    name: 'edit_file',
    description:
      'Replaces a piece of a text file in the working folder by another. old_text must stand in the file exactly, blanks and line breaks included, and only once, unless replace_all is true.',
    inputSchema: {
      type: 'object',
      properties: {
        path: pathProperty('The file to change.'),
        old_text: {
          type: 'string',
          description: 'The text that is there now, with enough around it to be the only one.',
        },
        new_text: { type: 'string', description: 'The text that is to stand there; empty to delete.' },
        replace_all: { type: 'boolean', description: 'Replace it wherever it stands; false when left out.' },
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
    return toolError('old_text is empty. Give the text that is to be replaced; write_file makes a new file.');
  if (oldText === newText) return toolError('old_text and new_text are the same. Nothing was changed.');
  const pieces = read.text.split(oldText);
  const count = pieces.length - 1;
  const name = basename(path);
  if (count === 0)
    return toolError(
      `old_text does not stand in ${name}. It must be the same to the character: read the file again.`,
    );
  if (count > 1 && input['replace_all'] !== true)
    return toolError(
      `old_text stands ${count} times in ${name}. Give more of what is around it, or set replace_all to true.`,
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
  const { handle, size } = await openRegularFile(path);
  try {
    if (size > writeLimit)
      return {
        problem: `The file has ${grouped(size)} bytes; at most ${grouped(writeLimit)} can be edited.`,
      };
    const bytes = await handle.readFile();
    const text = bytes.toString('utf8');
    if (looksBinary(bytes) || !Buffer.from(text, 'utf8').equals(bytes))
      return { problem: `${basename(path)} is no UTF-8 text, so it cannot be edited. Nothing was changed.` };
    return { text };
  } finally {
    await handle.close();
  }
}

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
