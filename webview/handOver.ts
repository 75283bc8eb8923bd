/** Reads what was pasted or dropped and hands it to the host: pictures small enough for a model, of other files the beginning. */
import { maxImageBytes, maxTextBytes } from '../src/protocol/attachment.ts';
import { post } from './host.ts';
import { attachProblem } from './store.ts';
import { t } from './words.ts';

/** A picture with too many bytes is drawn again no larger than this, which is all that models look at. In pixels. */
const longestEdge = 2_000;
/** What a chip shows, for sharp screens. In pixels. */
const thumbnailEdge = 64;

/** What is still being read. */
let reading: Promise<void> = Promise.resolve();

/** Settles when all that was handed over is on its way to the host. */
export const handedOver = (): Promise<void> => reading;

export function handOver(data: DataTransfer): void {
  const done = read(data);
  reading = Promise.all([reading, done]).then(() => undefined);
}

async function read(data: DataTransfer): Promise<void> {
  // Gone after the first pause.
  const uris = urisIn(data.getData('application/vnd.code.uri-list') || data.getData('text/uri-list'));
  const files = [...data.files];
  attachProblem.value = undefined;
  if (uris.length > 0) {
    post({ type: 'attach_uris', uris });
    return;
  }
  for (const file of files) {
    try {
      await handOverFile(file);
    } catch {
      attachProblem.value = t('{0} was not attached: it cannot be read. Is it a folder?', file.name);
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
    const data = await base64Of(file.slice(0, maxTextBytes));
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

/** Undefined for what the browser cannot draw. */
async function decoded(file: File): Promise<ImageBitmap | undefined> {
  try {
    return await createImageBitmap(file);
  } catch {
    return undefined;
  }
}

/** The picture, made smaller where an edge is longer than `edge`. */
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
