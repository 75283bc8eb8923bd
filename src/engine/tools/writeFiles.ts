/** Defines the tools that write and edit a file, confined to the working folder. A file keeps its encoding and its line ends. */
import { basename } from 'node:path';
import { grouped } from '@telos/protocol/text';
import { replaceFile } from '../files/atomicWrite.ts';
import { readRegularFile, readWholeFile, smallFile } from '../files/openFile.ts';
import { PathProblem } from '../files/paths.ts';
import { byteCount } from '../files/plainText.ts';
import {
  decodeText,
  encodeText,
  endsLinesLikeWindows,
  formName,
  formOf,
  plainForm,
  type TextForm,
  Unencodable,
} from '../files/textEncoding.ts';
import {
  orProblem,
  pathProperty,
  shownPath,
  type Tool,
  type ToolContext,
  targetOf,
  toolError,
  writeLimit,
} from './tool.ts';

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
  const { oldText, newText } = asInFile(read, String(input['old_text']), String(input['new_text']));
  if (oldText === '')
    return toolError('old_text is empty. Give the text to replace; write_file creates a new file.');
  if (oldText === newText) return toolError('old_text and new_text are the same. Nothing was changed.');
  const pieces = read.text.split(oldText);
  const count = pieces.length - 1;
  const name = basename(path);
  if (count === 0) return toolError(notFound(name, read, oldText));
  if (count > 1 && input['replace_all'] !== true)
    return toolError(
      `old_text occurs ${count} times in ${name}. Give more context, or set replace_all to true.`,
    );
  if (writesLoss(String(input['new_text']), String(input['old_text'])))
    return toolError(
      `new_text holds U+FFFD, which stands for a character that reading lost. Nothing was changed. Write the character itself.`,
    );
  // Calculated before the text is joined, which could take more memory than there is.
  const size = read.bytes.length + count * (sizeIn(newText, read.form) - sizeIn(oldText, read.form));
  if (size > writeLimit)
    return toolError(
      `The file would have ${grouped(size)} bytes; at most ${grouped(writeLimit)} can be written. Nothing was changed.`,
    );
  const bytes = encoded(pieces.join(newText), read.form, name);
  if (typeof bytes === 'string') return toolError(bytes);
  const { existed: _, ...changed } = await replaceFile(path, bytes, context.changes);
  const times = count === 1 ? 'one place' : `${count} places`;
  const kept = read.form.encoding === 'utf-8' ? '' : ` It is still ${formName(read.form)}.`;
  return {
    content: `Changed ${times} of ${await shownPath(path, context)}.${kept}`,
    isError: false,
    ...changed,
  };
}
/**
 * Adapts line breaks to the file. A model writes one kind regardless of the file, and text that looked the same to it must
 * match.
 */
function asInFile(file: WholeText, oldText: string, newText: string): { oldText: string; newText: string } {
  const unix = (part: string): string => part.replaceAll('\r\n', '\n');
  const windows = (part: string): string => unix(part).replaceAll('\n', '\r\n');
  const mac = (part: string): string => unix(part).replaceAll('\n', '\r');
  const [old, fresh] = [inForm(oldText, file.form), inForm(newText, file.form)];
  const found = [old, windows(old), unix(old), mac(old)].find(part => file.text.includes(part)) ?? old;
  const lineEnds = lineEnd.exec(found)?.[0] ?? lineEnd.exec(file.text)?.[0];
  const adapt = lineEnds === '\r\n' ? windows : lineEnds === '\r' ? mac : unix;
  return { oldText: found, newText: adapt(fresh) };
}

const lineEnd = /\r\n|\n|\r/;

/** A whole file as text that can be written back exactly: of a mixed one, each character is a byte. */
interface WholeText {
  bytes: Buffer;
  text: string;
  form: TextForm;
}

/** Reads the whole file, line ends included, without its byte order mark. */
async function readWhole(path: string): Promise<WholeText | { problem: string }> {
  const { bytes: start, size } = readRegularFile(path, smallFile + 1);
  if (size > writeLimit)
    return { problem: `The file has ${grouped(size)} bytes; at most ${grouped(writeLimit)} can be edited.` };
  const bytes = start.length > smallFile ? await readWholeFile(path) : start;
  const form = formOf(bytes);
  const name = basename(path);
  if (!form) return { problem: `${name} is not text, so it cannot be edited. Nothing was changed.` };
  if (form.encoding !== 'mixed') {
    const text = decodeText(bytes, form);
    if (encodeText(text, form).equals(bytes)) return { bytes, text, form };
  }
  if (form.encoding.startsWith('utf-16'))
    return { problem: `${name} is broken ${formName(form)}, so it cannot be edited. Nothing was changed.` };
  return { bytes, text: bytes.toString('latin1'), form: { encoding: 'mixed', mark: false } };
}

const inForm = (text: string, { encoding }: TextForm): string =>
  encoding === 'mixed' ? Buffer.from(text, 'utf8').toString('latin1') : text;

function sizeIn(text: string, { encoding }: TextForm): number {
  if (encoding === 'utf-8') return Buffer.byteLength(text);
  return encoding.startsWith('utf-16') ? text.length * 2 : text.length;
}

/** Returns the bytes, or why the file cannot have the text. */
function encoded(text: string, form: TextForm, name: string): Buffer | string {
  if (form.encoding === 'mixed') return Buffer.from(text, 'latin1');
  try {
    return encodeText(text, form);
  } catch (error) {
    if (!(error instanceof Unencodable)) throw error;
    return `${name} is ${formName(form)}, which has no '${error.character}'. Nothing was changed. Leave the character out, or write the whole file with write_file, which makes it UTF-8.`;
  }
}

const replacement = '\ufffd';

function notFound(name: string, { form }: WholeText, oldText: string): string {
  if (oldText.includes(inForm(replacement, form)))
    return `old_text was not found in ${name}: it holds U+FFFD, which stands for bytes that are no text. Give only the text around them.`;
  return `old_text was not found in ${name}; it must match exactly. Read the file again.`;
}

/** Whether the text would write U+FFFD, which reading shows for what it cannot read, where none was before. */
const writesLoss = (text: string, before: string): boolean =>
  text.includes(replacement) && !before.includes(replacement);

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
      const content = String(input['content']);
      const size = Buffer.byteLength(content);
      if (size > writeLimit)
        return toolError(
          `The content has ${grouped(size)} bytes; at most ${grouped(writeLimit)} (16 MiB) can be written in one call. Nothing was written. Write less, or several files.`,
        );
      const path = await targetOf(input['path'], context, [context.workingDir]);
      const before = await wholeBefore(path);
      if (before && writesLoss(content, before.text))
        return toolError(
          `content holds U+FFFD, which stands for a character that reading ${basename(path)} lost. Nothing was written. Change the file with edit_file, which keeps such characters.`,
        );
      const { bytes, kept } = inFormOf(before, content);
      const { existed, ...changed } = await replaceFile(path, bytes, context.changes);
      const done = `${existed ? 'Overwrote' : 'Created'} ${await shownPath(path, context)} (${byteCount(bytes.length)}).`;
      return { content: done + kept, isError: false, ...changed };
    }),
};

/** Returns the text that is to be replaced. Undefined if there is none that could be read. */
async function wholeBefore(path: string): Promise<WholeText | undefined> {
  try {
    const before = await readWhole(path);
    return 'problem' in before ? undefined : before;
  } catch (error) {
    if (error instanceof PathProblem) return undefined;
    throw error;
  }
}

/** Returns the content in the form and with the line ends of the file that it replaces, and a sentence on what was kept. */
function inFormOf(before: WholeText | undefined, content: string): { bytes: Buffer; kept: string } {
  const isWindows = before !== undefined && endsLinesLikeWindows(before.text);
  const lines = isWindows ? content.replace(/\r?\n/g, '\r\n') : content;
  const ends = lines === content ? '' : ' Its line ends stay CRLF.';
  const form = before === undefined || before.form.encoding === 'mixed' ? plainForm : before.form;
  const text = form.mark ? lines.replace(/^\ufeff/, '') : lines;
  const stays = form.encoding !== 'utf-8' || form.mark ? ` It is still ${formName(form)}.` : '';
  try {
    return { bytes: encodeText(text, form), kept: stays + ends };
  } catch (error) {
    if (!(error instanceof Unencodable)) throw error;
    const now = ` It was ${formName(form)}, which has no '${error.character}', and is UTF-8 now.`;
    return { bytes: encodeText(text, plainForm), kept: now + ends };
  }
}
