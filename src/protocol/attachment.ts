/** What a person hands over with a request: pictures, and text of files, selections and problems. */

export interface TextAttachment {
  kind: 'text';
  /** What a person and a model call it, for example `src/main.ts` or `Selection of src/main.ts, line 3 on`. */
  name: string;
  /** Absolute path of the file that it is, where tools can read that. */
  path?: string;
  /** As the editor calls it; empty where it is not known. */
  language: string;
  text: string;
  /** Set where `text` is but the beginning: how much there was, in bytes. */
  wholeSize?: number;
}

export interface ImageAttachment {
  kind: 'image';
  name: string;
  mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp';
  /** Base64. */
  data: string;
}

export type Attachment = TextAttachment | ImageAttachment;

/** A text that the user had selected when they asked. */
export interface Selection {
  /** Absolute path, or the name of an unsaved document. */
  file: string;
  text: string;
  /** First line, counted from 1. */
  line: number;
  language: string;
}

/** The smallest limit of the providers for one image, before base64. In bytes. */
export const maxImageBytes = 3_750_000;
/** So much of a file is looked at when it is no image. In bytes. */
export const maxTextBytes = 256_000;

/** What a request that was made shows of it. */
export type AttachedName = Pick<Attachment, 'kind' | 'name'>;
