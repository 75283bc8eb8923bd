/** Draws the attachments of the next request over the textbox, and reads what is pasted or dropped into the chat. */

import { type AttachedName, maxDocumentBytes, maxImageBytes, maxTextBytes } from '@telos/protocol/attachment';
import type { AttachmentChip } from '@telos/protocol/webview';
import { useEffect, useState } from 'preact/hooks';
import { announce } from './announcer.tsx';
import { post, t } from './host.ts';
import { Icon } from './icons.tsx';
import { attached, draft, focusComposer, ready, viewProblem } from './store.ts';
import { visible } from './visibleText.ts';

export function Attachments() {
  const chips = attached.value;
  const problem = viewProblem.value;
  const count = chips.length;
  useEffect(() => {
    if (count > 0) announce([count === 1 ? t('1 attachment') : t('{0} attachments', count)]);
  }, [count]);
  return (
    <>
      {count > 0 && (
        <ul class="attachments" aria-label={t('Attached')}>
          {chips.map(chip => (
            <Chip key={chip.id} chip={chip} />
          ))}
        </ul>
      )}
      {problem && (
        <div class="attach-problem" role="alert">
          <Icon name="warning" />
          <span>{visible(problem)}</span>
          <button
            type="button"
            class="small"
            aria-label={t('Dismiss')}
            title={t('Dismiss')}
            onClick={() => {
              viewProblem.value = undefined;
              focusComposer();
            }}
          >
            <Icon name="close" />
          </button>
        </div>
      )}
    </>
  );
}

function Chip({ chip }: { chip: AttachmentChip }) {
  const name = visible(chip.name);
  return (
    <li class="attachment" title={`${name} · ${chip.detail}`}>
      {chip.thumbnail ? <img src={chip.thumbnail} alt="" /> : <Icon name={iconOf(chip)} />}
      <span class="attachment-name">{name}</span>
      <span class="quiet">{chip.detail}</span>
      <button
        type="button"
        class="small"
        aria-label={t('Remove {0}', name)}
        title={t('Remove')}
        onClick={event => remove(chip, event.currentTarget)}
      >
        <Icon name="close" />
      </button>
    </li>
  );
}

/** Removes an attachment. The keyboard focus stays among the chips. */
function remove({ id, mention }: AttachmentChip, button: HTMLElement): void {
  const item = button.closest('li');
  const neighbour = item?.nextElementSibling ?? item?.previousElementSibling;
  const next = neighbour?.querySelector('button');
  if (mention !== undefined) draft.value = withoutMention(draft.peek(), mention);
  post({ type: 'detach', id });
  if (next) next.focus();
  else focusComposer();
}

/** Returns the request without the mention of an attachment that was removed. */
function withoutMention(text: string, mention: string): string {
  const words = text.split(/(?<=\s)(?=\S)/);
  return words.filter(word => word.trimEnd() !== `@${mention}`).join('');
}

/** Removes the attachments whose mentions the person has just deleted from the request. */
export function dropDeletedMentions(before: string, after: string): void {
  const stands = (text: string, mention: string): boolean => text.split(/\s+/).includes(`@${mention}`);
  for (const { id, mention } of attached.peek())
    if (mention !== undefined && stands(before, mention) && !stands(after, mention))
      post({ type: 'detach', id });
}

export const iconOf = ({ kind, name }: AttachedName): 'image' | 'warning' | 'file' =>
  kind === 'image' ? 'image' : name.startsWith('Problems of ') ? 'warning' : 'file';

/** Shows that something can be dropped here. Covers the whole chat while something is dragged over it. */
export function DropPlace() {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    // The pointer moves from element to element. It has left the page only if there is no related target.
    const over = (event: DragEvent) => {
      if (!ready.peek() || !holdsFiles(event)) return;
      event.preventDefault();
      if (event.dataTransfer) event.dataTransfer.dropEffect = 'copy';
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      setOver(false);
      if (!ready.peek() || !event.dataTransfer || !holdsFiles(event)) return;
      event.preventDefault();
      pasteAndDrop(event.dataTransfer);
      focusComposer();
    };
    document.addEventListener('dragover', over);
    document.addEventListener('dragleave', leave);
    document.addEventListener('drop', drop);
    return () => {
      document.removeEventListener('dragover', over);
      document.removeEventListener('dragleave', leave);
      document.removeEventListener('drop', drop);
    };
  }, []);
  return isOver ? <div class="drop-place">{t('Drop to attach')}</div> : null;
}

const fileTypes = ['Files', 'text/uri-list', 'application/vnd.code.uri-list'];

const holdsFiles = ({ dataTransfer }: DragEvent): boolean =>
  fileTypes.some(type => dataTransfer?.types.includes(type));

/** Handles a paste into the textbox: images and files are attached, text is inserted. */
export function onPaste(event: ClipboardEvent): void {
  const data = event.clipboardData;
  // A table, for example, is pasted as text and as an image of it. The text is meant.
  if (!data || data.files.length === 0 || data.getData('text/plain') !== '') return;
  event.preventDefault();
  if (ready.peek()) pasteAndDrop(data);
}

/** Longest edge of an image that has too many bytes and is therefore scaled down. Models use no more than this. In pixels. */
const longestEdge = 2_000;
/** Edge of the image in a chip, large enough for sharp screens. In pixels. */
const thumbnailEdge = 64;

/** Reads that have not finished yet. */
let reading: Promise<void> = Promise.resolve();

/** Resolves when everything handed over has been posted to the host. */
export const handedOver = (): Promise<void> => reading;

function pasteAndDrop(data: DataTransfer): void {
  const done = read(data);
  reading = Promise.all([reading, done]).then(() => undefined);
}

async function read(data: DataTransfer): Promise<void> {
  // The data is no longer available after the first await.
  const uris = urisIn(data.getData('application/vnd.code.uri-list') || data.getData('text/uri-list'));
  const files = [...data.files];
  viewProblem.value = undefined;
  if (uris.length > 0) {
    post({ type: 'attach_uris', uris });
    return;
  }
  for (const file of files) {
    try {
      await handOverFile(file);
    } catch {
      viewProblem.value = t('{0} was not attached: it cannot be read. Is it a folder?', file.name);
    }
  }
}

function urisIn(list: string): string[] {
  const lines = list.split(/\r?\n/);
  return lines.filter(line => /^(file|vscode-remote):/.test(line)).slice(0, 50);
}

async function handOverFile(file: File): Promise<void> {
  const picture = file.type.startsWith('image/') ? await decoded(file) : undefined;
  if (!picture) {
    const isPdf = (await file.slice(0, 5).text()) === '%PDF-';
    const data = await base64Of(file.slice(0, isPdf ? maxDocumentBytes : maxTextBytes));
    post({ type: 'attach_bytes', name: file.name, data, size: file.size });
    return;
  }
  try {
    const whole = file.size <= maxImageBytes ? file : await drawn(picture, longestEdge, 'image/jpeg');
    const thumbnail = await addressOf(await drawn(picture, thumbnailEdge, 'image/png'));
    const data = await base64Of(whole);
    post({ type: 'attach_bytes', name: file.name, data, size: whole.size, thumbnail });
  } finally {
    picture.close();
  }
}

/** Returns the decoded image, or undefined if the browser cannot draw the file. */
async function decoded(file: File): Promise<ImageBitmap | undefined> {
  try {
    return await createImageBitmap(file);
  } catch {
    return undefined;
  }
}

/** Draws the image, scaled down if an edge is longer than `edge`. */
async function drawn(picture: ImageBitmap, edge: number, type: string): Promise<Blob> {
  const scale = Math.min(1, edge / Math.max(picture.width, picture.height));
  const width = Math.max(1, Math.round(picture.width * scale));
  const height = Math.max(1, Math.round(picture.height * scale));
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d')!;
  context.drawImage(picture, 0, 0, width, height);
  return canvas.convertToBlob({ type, quality: 0.85 });
}

const base64Of = async (blob: Blob): Promise<string> => {
  const address = await addressOf(blob);
  return address.slice(address.indexOf(',') + 1);
};

function addressOf(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}
