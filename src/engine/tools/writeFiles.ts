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
import { likeliest, linesAt, nearestLines, placesOf } from './editMatch.ts';
import {
  orProblem,
  shownPath,
  type Tool,
  type ToolContext,
  targetOf,
  textProperty,
  toolError,
  writeLimit,
} from './tool.ts';

export const editFileTool: Tool = {
  definition: {
    name: 'edit_file',
    description:
      'Replaces text in a file. Returns the changed lines, or the nearest ones if old_text is not there; then nothing is changed.',
    inputSchema: {
      type: 'object',
      properties: {
        path: textProperty(),
        old_text: textProperty('With enough context to occur once.'),
        new_text: textProperty('Empty to delete.'),
        replace_all: { type: 'boolean' },
        edits: {
          type: 'array',
          description: 'In their place: several, one after the other.',
          items: {
            type: 'object',
            properties: {
              old_text: textProperty(),
              new_text: textProperty(),
              replace_all: { type: 'boolean' },
            },
            required: ['old_text', 'new_text'],
          },
        },
      },
      required: ['path'],
    },
  },
  access: 'write',
  execute: (input, context) => orProblem(context, () => edit(input, context)),
};

interface Edit {
  oldText: string;
  newText: string;
  everywhere: boolean;
}

/** Most edits of a call. */
const mostEdits = 100;

/** Returns the edits of a call, or what is wrong with it. */
function editsOf(input: Readonly<Record<string, unknown>>): Edit[] | string {
  const { edits } = input;
  if (edits === undefined) {
    const missing = (['old_text', 'new_text'] as const).find(name => typeof input[name] !== 'string');
    if (missing) return `"${missing}" is missing. Give old_text and new_text, or edits. Nothing was changed.`;
    return [editOf(input)];
  }
  if (!Array.isArray(edits) || edits.length === 0 || edits.length > mostEdits)
    return `"edits" must be a list of 1 to ${mostEdits} edits. Nothing was changed.`;
  const isWhole = (one: unknown): one is Record<string, unknown> =>
    typeof one === 'object' &&
    one !== null &&
    ['old_text', 'new_text'].every(name => typeof (one as Record<string, unknown>)[name] === 'string');
  if (!edits.every(isWhole)) return 'Each of "edits" needs old_text and new_text. Nothing was changed.';
  return edits.map(editOf);
}

const editOf = (given: Readonly<Record<string, unknown>>): Edit => ({
  oldText: String(given['old_text']),
  newText: String(given['new_text']),
  everywhere: given['replace_all'] === true,
});

async function edit(input: Readonly<Record<string, unknown>>, context: ToolContext) {
  const edits = editsOf(input);
  if (typeof edits === 'string') return toolError(edits);
  const path = await targetOf(input['path'], context, [context.workingDir]);
  const read = await readWhole(path);
  if ('problem' in read) return toolError(read.problem);
  const name = basename(path);
  let now: Edited = { text: read.text, size: read.bytes.length, places: 0, range: [0, 0], slips: [] };
  const said: string[] = [];
  for (const [index, one] of edits.entries()) {
    const next = edited(now, one, read, name);
    if (typeof next === 'string')
      return toolError(
        edits.length === 1 ? next : `Edit ${index + 1} of ${edits.length}: ${next} Nothing was changed.`,
      );
    now = { ...next, places: now.places + next.places };
    if (next.slips.length > 0)
      said.push(`old_text differed in ${next.slips.join(', ')}; the file's own were kept.`);
    said.push(linesAt(shownForm(next.text, read), ...next.range));
  }
  const bytes = encoded(now.text, read.form, name);
  if (typeof bytes === 'string') return toolError(bytes);
  const { existed: _, ...changed } = await replaceFile(path, bytes, context.changes);
  const times = now.places === 1 ? 'one place' : `${now.places} places`;
  const kept = read.form.encoding === 'utf-8' ? '' : ` It is still ${formName(read.form)}.`;
  const first = `Changed ${times} of ${await shownPath(path, context)}.${kept}`;
  return { content: [first, ...said].join('\n'), isError: false, ...changed };
}

/** A text after an edit: `range` is where the first change stands. */
interface Edited {
  text: string;
  size: number;
  places: number;
  range: [start: number, end: number];
  slips: readonly string[];
}

/** Returns the text after an edit, or why it cannot be made. */
function edited(before: Edited, wanted: Edit, file: WholeText, name: string): Edited | string {
  const { everywhere } = wanted;
  const { oldText, newText } = asInFile({ ...file, text: before.text }, wanted.oldText, wanted.newText);
  if (oldText === '') return 'old_text is empty. Give the text to replace; write_file creates a new file.';
  if (oldText === newText) return 'old_text and new_text are the same. Nothing was changed.';
  const pieces = before.text.split(oldText);
  const count = pieces.length - 1;
  const near = count > 0 || everywhere ? undefined : likeliest(before.text, oldText, newText);
  if (count === 0 && !near) return notFound(name, { ...file, text: before.text }, oldText);
  if (count > 1 && !everywhere)
    return `old_text occurs ${count} times in ${name}, on lines ${placesOf(before.text, oldText).join(', ')}. Give more context, or set replace_all to true.`;
  if (writesLoss(wanted.newText, wanted.oldText))
    return `new_text holds U+FFFD, which stands for a character that reading lost. Nothing was changed. Write the character itself.`;
  const [old, fresh] = near ? [before.text.slice(near.start, near.end), near.fresh] : [oldText, newText];
  // Calculated before the text is joined, which could take more memory than there is.
  const size = before.size + (near ? 1 : count) * (sizeIn(fresh, file.form) - sizeIn(old, file.form));
  if (size > writeLimit)
    return `The file would have ${grouped(size)} bytes; at most ${grouped(writeLimit)} can be written. Nothing was changed.`;
  const start = near ? near.start : pieces[0]!.length;
  const text = near
    ? before.text.slice(0, start) + fresh + before.text.slice(near.end)
    : pieces.join(newText);
  return {
    text,
    size,
    places: near ? 1 : count,
    range: [start, start + fresh.length],
    slips: near?.slips ?? [],
  };
}

/** Returns a text as a reader sees it: that of a mixed file has a character for each byte. */
const shownForm = (text: string, { form }: WholeText): string =>
  form.encoding === 'mixed' ? text.replace(/[\x80-\xff]/g, '?') : text;

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

function notFound(name: string, { form, text }: WholeText, oldText: string): string {
  if (oldText.includes(inForm(replacement, form)))
    return `old_text was not found in ${name}: it holds U+FFFD, which stands for bytes that are no text. Give only the text around them.`;
  const near = form.encoding === 'mixed' ? '' : nearestLines(text, oldText);
  return `old_text was not found in ${name}; it must match exactly. ${near || 'Read the file again.'}`;
}

/** Whether the text would write U+FFFD, which reading shows for what it cannot read, where none was before. */
const writesLoss = (text: string, before: string): boolean =>
  text.includes(replacement) && !before.includes(replacement);

export const writeFileTool: Tool = {
  definition: {
    name: 'write_file',
    description: 'Writes a whole text file: creates it and its folders, or replaces its content.',
    inputSchema: {
      type: 'object',
      properties: {
        path: textProperty(),
        content: textProperty('The whole file.'),
      },
      required: ['path', 'content'],
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
