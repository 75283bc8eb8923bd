/** Defines what a person attaches to a request: pictures, documents, and text of files, selections and problems. */

export interface TextAttachment {
  kind: 'text';
  /** Name for the person and the model, for example `src/main.ts` or `Selection of src/main.ts, line 3 on`. */
  name: string;
  /** Absolute path of the attached file, if tools can read it. */
  path?: string;
  /** The editor's name for the language. Empty if unknown. */
  language: string;
  text: string;
  /** Size of the whole text, in bytes. Set if `text` is only its beginning. */
  wholeSize?: number;
}

export interface ImageAttachment {
  kind: 'image';
  name: string;
  mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp';
  /** Base64. */
  data: string;
}

export interface DocumentAttachment {
  kind: 'document';
  name: string;
  mediaType: 'application/pdf';
  /** Base64. */
  data: string;
}

export type Attachment = TextAttachment | ImageAttachment | DocumentAttachment;

/** A text that the user had selected when they made the request. */
export interface Selection {
  /** Absolute path, or the name of an unsaved document. */
  file: string;
  text: string;
  /** First line of the selection. Lines count from 1. */
  line: number;
  language: string;
}

/** Returns the name of the file with the lines that were selected: `math.ts:1-8`. */
export function placeOfSelection({ file, line, text }: Selection): string {
  const name = file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1);
  if (file.startsWith('terminal')) return name;
  const last = line + text.replace(/\n$/, '').split('\n').length - 1;
  return last === line ? `${name}:${line}` : `${name}:${line}-${last}`;
}

/** Maximum size of one image before base64, in bytes. The smallest limit of the providers. */
export const maxImageBytes = 3_750_000;
/** Maximum size of one document before base64, in bytes. */
export const maxDocumentBytes = 8_000_000;
/** Maximum size that is read of a file of text, in bytes. */
export const maxTextBytes = 256_000;
/** Limit of one text, in characters: about fifteen thousand tokens. */
export const maxTextLength = 64_000;

/** The part of an attachment that is shown with the request it was made with. */
export type AttachedName = Pick<Attachment, 'kind' | 'name'>;
