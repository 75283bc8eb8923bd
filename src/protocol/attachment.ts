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
  /** Set where `text` is but the beginning: how much there was, in characters. */
  wholeLength?: number;
}

export interface ImageAttachment {
  kind: 'image';
  name: string;
  mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp';
  /** Base64. */
  data: string;
}

export type Attachment = TextAttachment | ImageAttachment;

/** What a request that was made shows of it. */
export type AttachedName = Pick<Attachment, 'kind' | 'name'>;
