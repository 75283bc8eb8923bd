/** Makes attachments of files: recognized by their bytes, and small enough for a model to read. */
import { realpath } from 'node:fs/promises';
import {
  type Attachment,
  type DocumentAttachment,
  type ImageAttachment,
  maxDocumentBytes,
  maxImageBytes,
  maxTextBytes,
  maxTextLength,
} from '@telos/protocol/attachment';
import { beginningOf, sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { openRegularFile } from './openFile.ts';
import { decodeText, formOf } from './textEncoding.ts';

/** The bytes as received. `size` is the whole size if they are only the beginning of a file. */
export interface Handed {
  name: string;
  bytes: Buffer;
  size?: number;
  /** Absolute path, if tools can read the file. */
  path?: string;
  language?: string;
}

/** Returns the bytes as an attachment. Throws TelosError `config` if a model cannot read them. */
export function attachmentOf({ name, bytes, size = bytes.length, path, language }: Handed): Attachment {
  const mediaType = mediaTypeOf(bytes);
  if (mediaType !== undefined) {
    const most = mostBytes(mediaType);
    if (size > most || bytes.length < size) throw new TelosError('config', [tooLarge(name, size, mediaType)]);
    const data = bytes.toString('base64');
    return mediaType === 'application/pdf'
      ? { kind: 'document', name, mediaType, data }
      : { kind: 'image', name, mediaType, data };
  }
  const form = formOf(bytes.subarray(0, maxTextBytes));
  if (form === undefined) {
    const why = sentence(
      '{0} was not attached: it is neither text nor a file that models read (PDF, PNG, JPEG, GIF, WebP).',
      name,
    );
    throw new TelosError('config', [why]);
  }
  const text = decodeText(bytes.subarray(0, maxTextBytes), form);
  const isCut = size > maxTextBytes || text.length > maxTextLength;
  return {
    kind: 'text',
    name,
    language: language ?? '',
    text: beginningOf(text, maxTextLength),
    ...(path !== undefined && { path }),
    ...(isCut && { wholeSize: size }),
  };
}

type MediaType = ImageAttachment['mediaType'] | DocumentAttachment['mediaType'];

/** Returns the most bytes that models take of such a file. */
export const mostBytes = (mediaType: MediaType): number =>
  mediaType === 'application/pdf' ? maxDocumentBytes : maxImageBytes;

const tooLarge = (name: string, size: number, mediaType: MediaType) =>
  mediaType === 'application/pdf'
    ? sentence(
        '{0} was not attached: it has {1}, and documents can have at most {2}.',
        ...[name, megabytes(size), megabytes(maxDocumentBytes)],
      )
    : sentence(
        '{0} was not attached: it has {1}, and images can have at most {2}.',
        ...[name, megabytes(size), megabytes(maxImageBytes)],
      );

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;

/** Recognizes a picture or a PDF by its first bytes. A name and a type that someone gives prove nothing. */
export function mediaTypeOf(bytes: Buffer): MediaType | undefined {
  const head = bytes.subarray(0, 12).toString('latin1');
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (/^GIF8[79]a/.test(head)) return 'image/gif';
  if (/^RIFF[\s\S]{4}WEBP/.test(head)) return 'image/webp';
  return head.startsWith('%PDF-') ? 'application/pdf' : undefined;
}

/** Returns the file as an attachment. `name` is its path as the person wrote it. Throws TelosError `config` or PathProblem. */
export async function readAttachment(path: string, name: string): Promise<Attachment> {
  const real = await realpath(path).catch(() => path);
  const { handle, size } = await openRegularFile(real);
  try {
    const start = await readFrom(handle, Math.min(size, maxTextBytes));
    const mediaType = mediaTypeOf(start);
    const whole = mediaType !== undefined && size <= mostBytes(mediaType);
    const bytes = whole ? await readFrom(handle, size) : start;
    return attachmentOf({ name, bytes, size, path: real });
  } finally {
    await handle.close();
  }
}

/** Returns the first bytes of the file; fewer if it has become shorter. */
async function readFrom(
  handle: Awaited<ReturnType<typeof openRegularFile>>['handle'],
  length: number,
): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}
