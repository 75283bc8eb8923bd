/** Turns the blocks of a prompt into the words and attachments of a request. */
import { basename, extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { attachmentOf, importAttachedFile } from '@telos/engine/files';
import type { Attachment } from '@telos/protocol/attachment';
import { type ContentBlock, RequestError } from './protocol.ts';

export interface PromptContent {
  text: string;
  attachments: readonly Attachment[];
}

/** Says whether a file that is named like a secret may be sent to the model. Absolute path. */
export type MayAttach = (path: string) => Promise<boolean>;

/**
 * Returns the content of a prompt. Linked files are read, as the user has chosen them, once `mayAttach` agrees. Throws TelosError `config`
 * or PathProblem for what cannot be attached, RequestError for sound.
 */
export async function promptContent(
  blocks: readonly ContentBlock[],
  mayAttach: MayAttach,
): Promise<PromptContent> {
  const words: string[] = [];
  const attachments: Attachment[] = [];
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
        words.push(block.text);
        break;
      case 'image': {
        const bytes = Buffer.from(block.data, 'base64');
        attachments.push(attachmentOf({ name: block.uri ? nameOf(block.uri) : 'image', bytes }));
        break;
      }
      case 'resource': {
        const { resource } = block;
        const bytes = 'text' in resource ? Buffer.from(resource.text) : Buffer.from(resource.blob, 'base64');
        const path = pathOf(resource.uri);
        const language = extname(resource.uri).slice(1);
        attachments.push(
          attachmentOf({ name: nameOf(resource.uri), bytes, language, ...(path !== undefined && { path }) }),
        );
        break;
      }
      case 'resource_link': {
        const path = pathOf(block.uri);
        if (path === undefined) words.push(block.uri);
        else if (await mayAttach(path)) {
          const { readAttachment } = await importAttachedFile();
          attachments.push(await readAttachment(path, block.name));
        }
        break;
      }
      default:
        throw RequestError.invalidParams({ type: block.type }, 'Telos takes no sound.');
    }
  }
  return { text: words.join('\n').trim(), attachments };
}

const pathOf = (uri: string): string | undefined =>
  URL.canParse(uri) && new URL(uri).protocol === 'file:' ? fileURLToPath(new URL(uri)) : undefined;

const nameOf = (uri: string): string => basename(pathOf(uri) ?? uri) || uri;
