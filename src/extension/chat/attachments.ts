/**
 * Holds the attachments of the next request. Each is checked by its bytes, named, and small enough for a model to read.
 */

import { randomUUID } from 'node:crypto';
import { attachmentOf as attachmentOfBytes, type Handed } from '@telos/engine/files';
import { type Attachment, maxTextLength, type TextAttachment } from '@telos/protocol/attachment';
import { beginningOf } from '@telos/protocol/text';
import type { AttachmentChip } from '@telos/protocol/webview';
import { describeError, t } from '../base/labels.ts';

const maxAttachments = 20;

/** Says in a sentence for the person why something cannot be attached. */
export class AttachError extends Error {}

/** Returns the bytes as an attachment. Throws AttachError if a model cannot read them. */
export function attachmentOf(handed: Handed): Attachment {
  try {
    return attachmentOfBytes(handed);
  } catch (error) {
    throw new AttachError(describeError(error));
  }
}

/** Returns a text that is not a file's whole content as an attachment: a selection, a list of problems. */
export function textAttachment(name: string, text: string, language = ''): TextAttachment {
  const isCut = text.length > maxTextLength;
  return {
    kind: 'text',
    name,
    language,
    text: beginningOf(text, maxTextLength),
    ...(isCut && { wholeSize: Buffer.byteLength(text) }),
  };
}

interface Held {
  chip: AttachmentChip;
  attachment: Attachment;
}

/** The attachments behind the chips above the textbox, in the order in which they were added. */
export class AttachmentList {
  #held: Held[] = [];

  get chips(): readonly AttachmentChip[] {
    return this.#held.map(({ chip }) => chip);
  }

  /**
   * Adds an attachment. `mention` is the request's word for it. Adding the same thing again replaces the older one.
   * Throws AttachError.
   */
  add(attachment: Attachment, { mention, thumbnail }: { mention?: string; thumbnail?: string } = {}): void {
    const held = this.#held.filter(one => !isSame(one, attachment, mention));
    if (held.length >= maxAttachments) {
      throw new AttachError(
        t('{0} was not attached: the maximum is {1} attachments.', attachment.name, maxAttachments),
      );
    }
    const chip = {
      id: randomUUID(),
      kind: attachment.kind,
      name: attachment.name,
      detail: detailOf(attachment),
      ...(mention !== undefined && { mention }),
      ...(thumbnail !== undefined && { thumbnail }),
    };
    this.#held = [...held, { chip, attachment }];
  }

  remove(id: string): void {
    this.#held = this.#held.filter(({ chip }) => chip.id !== id);
  }

  holds(mention: string): boolean {
    return this.#held.some(({ chip }) => chip.mention === mention);
  }

  /** Returns all attachments and clears the list. */
  take(): Attachment[] {
    const taken = this.#held.map(({ attachment }) => attachment);
    this.#held = [];
    return taken;
  }
}

function isSame({ chip, attachment }: Held, other: Attachment, mention: string | undefined): boolean {
  if (attachment.kind !== other.kind) return false;
  if (mention !== undefined && chip.mention === mention) return true;
  if (attachment.kind !== 'text' || other.kind !== 'text') return false;
  return attachment.path !== undefined && attachment.path === other.path;
}

function detailOf(attachment: Attachment): string {
  if (attachment.kind === 'image') return t('{0}, image', kilobytes((attachment.data.length * 3) / 4));
  if (attachment.kind === 'document') return t('{0}, PDF', kilobytes((attachment.data.length * 3) / 4));
  const lines = attachment.text.split('\n').length - (attachment.text.endsWith('\n') ? 1 : 0);
  const size = attachment.wholeSize;
  const count = lines === 1 ? t('1 line') : t('{0} lines', lines);
  return size === undefined ? count : t('the first {0} of {1}', count, kilobytes(size));
}

const kilobytes = (bytes: number): string => `${Math.max(1, Math.round(bytes / 1000))} KB`;

/** Returns the mentions in a request: `@selection`, `@problems`, `@path/of/a/file`. A run reads those of the form `@server:address`. */
export function mentionsIn(text: string): string[] {
  const found = [
    ...text.matchAll(
      /(?<![\p{L}\p{N}_.@/-])@([^\s@,;:!?"'`()[\]{}<>]+)(?![^\s@,;:!?"'`()[\]{}<>]|:[^\s\d])/gu,
    ),
  ];
  return [...new Set(found.map(match => (match[1] ?? '').replace(/[.]+$/, '')).filter(Boolean))];
}
