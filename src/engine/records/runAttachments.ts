/** Stores the attachments of a request in a file beside its run's, so that they can be sent again later. */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type AttachedName,
  type Attachment,
  maxDocumentBytes,
  maxImageBytes,
  type Selection,
} from '@telos/protocol/attachment';
import { writeOwn } from '../files/atomicWrite.ts';
import { jsonLine } from '../files/jsonLines.ts';
import { loadText } from '../files/regularFile.ts';
import { mapStrings } from '../redact.ts';
import { isRunId, runsFolder } from './runFile.ts';
import { isBase64 } from './transcript.ts';

export interface RunAttachments {
  attachments: readonly Attachment[];
  selection?: Selection;
}

/** Attachments and selection of a request, as read back from disk. */
export interface StoredAttachments extends RunAttachments {
  /** Attachments that were too large to store, or that cannot be read any more. */
  missing: readonly AttachedName[];
  /** Names of the attachments that contained secrets. The secrets are hidden in the stored copy. */
  hidden: readonly string[];
}

type Line =
  | { type: 'attachment'; attachment: Attachment; hidden?: true }
  | { type: 'selection'; selection: Selection; hidden?: true }
  | { type: 'left_out'; kind: Attachment['kind']; name: string };

/**
 * Maximum stored for one request, four of the largest images. Of an attachment that does not fit, only the name is stored. In
 * characters.
 */
const maxKept = 20_000_000;

/** Returns undefined if `runId` is not the id of a run. The name never equals that of a run's own file. */
const attachmentsPath = (dataDir: string, runId: string): string | undefined =>
  isRunId(runId) ? join(runsFolder(dataDir), `${runId}.attached`) : undefined;

/** Stores attachments and selection. Writes nothing if there are none. Throws the error of the file system. */
export async function storeAttachments(
  dataDir: string,
  runId: string,
  { attachments, selection }: RunAttachments,
  redact: (text: string) => string,
): Promise<void> {
  const path = attachmentsPath(dataDir, runId);
  if (!path || (attachments.length === 0 && !selection)) return;
  let left = maxKept;
  const fits = (line: Line): boolean => {
    const { length } = JSON.stringify(line);
    if (length > left) return false;
    left -= length;
    return true;
  };
  const lines = attachments.map(attachment => {
    const line = lineOf(attachment, redact);
    return fits(line) ? line : leftOut(attachment, redact);
  });
  if (selection) {
    const clean = mapStrings(selection, redact);
    const line = { type: 'selection', selection: clean, ...hiddenIf(clean.text !== selection.text) } as const;
    if (fits(line)) lines.push(line);
  }
  await writeOwn(path, lines.map(line => `${JSON.stringify(line)}\n`).join(''));
}

function lineOf(attachment: Attachment, redact: (text: string) => string): Line {
  const clean = mapStrings(attachment, redact);
  if (attachment.kind !== 'text' || clean.kind !== 'text')
    // A picture or a document with a part removed is not valid.
    return JSON.stringify(clean) === JSON.stringify(attachment)
      ? { type: 'attachment', attachment }
      : leftOut(attachment, redact);
  const { path, ...rest } = clean;
  const known = path !== undefined && path === attachment.path ? { path } : {};
  return {
    type: 'attachment',
    attachment: { ...rest, ...known },
    ...hiddenIf(clean.text !== attachment.text),
  };
}

const leftOut = ({ kind, name }: Attachment, redact: (text: string) => string): Line => ({
  type: 'left_out',
  kind,
  name: redact(name),
});

const hiddenIf = (isHidden: boolean): { hidden?: true } => (isHidden ? { hidden: true } : {});

/**
 * Reads the stored attachments. `names` come from the run's start; all of them are missing if nothing is stored. Never throws.
 */
export async function readAttachments(
  dataDir: string,
  runId: string,
  names: readonly AttachedName[],
): Promise<StoredAttachments> {
  const path = attachmentsPath(dataDir, runId);
  const text = path && (await loadText(path).catch(() => undefined));
  if (text === undefined) return { attachments: [], missing: names, hidden: [] };
  const attachments: Attachment[] = [];
  const missing: AttachedName[] = [];
  const hidden: string[] = [];
  let selection: Selection | undefined;
  // One line per attachment, in the same order. The selection follows them.
  for (const [index, written] of text.split('\n').filter(Boolean).entries()) {
    const line = parsed(written);
    const name = names[index];
    if (line?.type === 'attachment') attachments.push(line.attachment);
    else if (line?.type === 'selection') selection = line.selection;
    else if (name) missing.push(name);
    if (line?.type === 'attachment' && line.hidden) hidden.push(line.attachment.name);
    if (line?.type === 'selection' && line.hidden) hidden.push(line.selection.file);
  }
  return { attachments, ...(selection && { selection }), missing, hidden };
}

/** Deletes the stored attachments of a deleted run. A missing file is fine. Throws the error of the file system. */
export async function deleteAttachments(dataDir: string, runId: string): Promise<void> {
  const path = attachmentsPath(dataDir, runId);
  if (path) await rm(path, { force: true });
}

type Fields = Readonly<Record<string, unknown>>;

/** Returns undefined for an attachment that was left out, and for one edited by hand that no model would accept. */
function parsed(text: string): Exclude<Line, { type: 'left_out' }> | undefined {
  return jsonLine(text, value => {
    const line = value as Line;
    if (line.type === 'attachment')
      return isAttachment(line.attachment as unknown as Fields) ? line : undefined;
    return line.type === 'selection' && isSelection(line.selection as unknown as Fields) ? line : undefined;
  });
}

const areTexts = (fields: Fields, ...names: readonly string[]): boolean =>
  names.every(name => typeof fields[name] === 'string');

const imageTypes: readonly unknown[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

function isAttachment(fields: Fields): boolean {
  const { kind, data, path, mediaType } = fields;
  if (kind === 'text')
    return areTexts(fields, 'name', 'language', 'text') && (path === undefined || areTexts(fields, 'path'));
  const isPdf = kind === 'document' && mediaType === 'application/pdf';
  const most = isPdf ? maxDocumentBytes : maxImageBytes;
  return (
    (isPdf || (kind === 'image' && imageTypes.includes(mediaType))) &&
    areTexts(fields, 'name', 'data') &&
    String(data).length <= Math.ceil(most / 3) * 4 &&
    isBase64(String(data))
  );
}

const isSelection = (fields: Fields): boolean =>
  areTexts(fields, 'file', 'text', 'language') && typeof fields['line'] === 'number';
