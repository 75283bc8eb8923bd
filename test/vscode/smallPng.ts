/** Makes PNG files small enough for a page of a store: one palette of 256 colours for all frames, and of later frames only what changes. */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

interface Bitmap {
  width: number;
  height: number;
  /** Three bytes a pixel, row after row. */
  pixels: Buffer;
}

export interface Frame {
  /** A PNG of eight bits a channel, as a browser takes pictures of itself. All frames have one size. */
  png: Buffer;
  /** How long it is shown, in milliseconds. */
  shownMs: number;
}

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Returns a PNG of the frames: a still picture of one, else one that plays them in a loop. */
export function smallPng(frames: readonly Frame[]): Buffer {
  const bitmaps = frames.map(({ png }) => decode(png));
  const [first] = bitmaps;
  if (!first) throw new Error('There is no frame.');
  const palette = paletteOf(bitmaps);
  const indexed = bitmaps.map(bitmap => indexesOf(bitmap, palette));
  const whole = { left: 0, top: 0, width: first.width, height: first.height };
  const parts = [
    chunk('IHDR', Buffer.concat([numbers(first.width, first.height), Buffer.from([8, 3, 0, 0, 0])])),
    ...(frames.length > 1 ? [chunk('acTL', numbers(frames.length, 0))] : []),
    chunk('PLTE', Buffer.from(palette.flatMap(colour => [colour >> 16, (colour >> 8) & 255, colour & 255]))),
  ];
  let sequence = 0;
  for (const [at, pixels] of indexed.entries()) {
    const before = indexed[at - 1];
    const box = before ? changedBox(before, pixels, whole) : whole;
    if (frames.length > 1) parts.push(control(sequence++, box, frames[at]?.shownMs ?? 0));
    const data = packed(pixels, whole.width, box);
    parts.push(at === 0 ? chunk('IDAT', data) : chunk('fdAT', Buffer.concat([numbers(sequence++), data])));
  }
  return Buffer.concat([signature, ...parts, chunk('IEND', Buffer.alloc(0))]);
}

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

function control(sequence: number, { left, top, width, height }: Box, shownMs: number): Buffer {
  const delay = Buffer.alloc(6);
  delay.writeUInt16BE(shownMs, 0);
  delay.writeUInt16BE(1000, 2);
  return chunk('fcTL', Buffer.concat([numbers(sequence, width, height, left, top), delay]));
}

/** Returns the smallest box with everything that differs; one pixel if nothing does. */
function changedBox(before: Buffer, now: Buffer, { width, height }: Box): Box {
  let [left, right, top, bottom] = [width, 0, height, 0];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (before[y * width + x] === now[y * width + x]) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
  }
  if (left > right) return { left: 0, top: 0, width: 1, height: 1 };
  return { left, top, width: right - left + 1, height: bottom - top + 1 };
}

/** Returns the rows of the box, each unfiltered, compressed. */
function packed(pixels: Buffer, rowLength: number, { left, top, width, height }: Box): Buffer {
  const rows = Array.from({ length: height }, (_, y) => {
    const from = (top + y) * rowLength + left;
    return Buffer.concat([Buffer.from([0]), pixels.subarray(from, from + width)]);
  });
  return deflateSync(Buffer.concat(rows), { level: 9 });
}

const numbers = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, at * 4);
  return bytes;
};

function chunk(name: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  return Buffer.concat([numbers(data.length), named, numbers(crc32(named))]);
}

function decode(png: Buffer): Bitmap {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const channels = { 2: 3, 6: 4 }[png[25] ?? 0];
  if (png[24] !== 8 || channels === undefined || png[28] !== 0)
    throw new Error('This kind of PNG is not read here.');
  const data: Buffer[] = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at))
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  const raw = inflateSync(Buffer.concat(data));
  const stride = width * channels;
  const pixels = Buffer.alloc(width * height * 3);
  let above = Buffer.alloc(stride);
  for (let y = 0; y < height; y++) {
    const row = Buffer.from(raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)));
    unfilter(raw[y * (stride + 1)] ?? 0, row, above, channels);
    for (let x = 0; x < width; x++) row.copy(pixels, (y * width + x) * 3, x * channels, x * channels + 3);
    above = row;
  }
  return { width, height, pixels };
}

function unfilter(kind: number, row: Buffer, above: Buffer, channels: number): void {
  for (let at = 0; at < row.length; at++) {
    const left = at < channels ? 0 : (row[at - channels] ?? 0);
    const up = above[at] ?? 0;
    const corner = at < channels ? 0 : (above[at - channels] ?? 0);
    const guess = [0, left, up, (left + up) >> 1, nearest(left, up, corner)][kind] ?? 0;
    row[at] = ((row[at] ?? 0) + guess) & 255;
  }
}

function nearest(left: number, up: number, corner: number): number {
  const sum = left + up - corner;
  const [a, b, c] = [Math.abs(sum - left), Math.abs(sum - up), Math.abs(sum - corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** Colours that fill areas: these stay exact. */
const exactColours = 96;

/** Shades of letters are told apart in steps of eight: nobody sees a smaller difference. */
const coarse = (colour: number): number => colour & 0xf8f8f8;

interface Shade {
  count: number;
  red: number;
  green: number;
  blue: number;
}

/** Returns at most 256 colours: the most frequent ones, and means of the others, whose boxes are cut in two at their longest side. */
function paletteOf(bitmaps: readonly Bitmap[]): number[] {
  const counts = new Map<number, number>();
  for (const { pixels } of bitmaps) {
    for (let at = 0; at < pixels.length; at += 3) {
      const colour = pixels.readUIntBE(at, 3);
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
  }
  const sorted = [...counts].sort(([, one], [, other]) => other - one);
  const exact = sorted.slice(0, exactColours).map(([colour]) => colour);
  const shades = new Map<number, Shade>();
  for (const [colour, count] of sorted.slice(exactColours)) {
    const shade = shades.get(coarse(colour));
    if (shade) shade.count += count;
    else
      shades.set(coarse(colour), {
        count,
        red: colour >> 16,
        green: (colour >> 8) & 255,
        blue: colour & 255,
      });
  }
  const boxes = [[...shades.values()]];
  while (boxes.length < 256 - exact.length) {
    const widest = boxes.reduce((best, box) => (extent(box).weight > extent(best).weight ? box : best));
    if (widest.length < 2) break;
    const { side } = extent(widest);
    widest.sort((one, other) => one[side] - other[side]);
    boxes.push(widest.splice(Math.ceil(widest.length / 2)));
  }
  return [...exact, ...boxes.filter(box => box.length > 0).map(meanOf)];
}

function meanOf(box: readonly Shade[]): number {
  const all = box.reduce((sum, { count }) => sum + count, 0);
  const mean = (side: Side): number =>
    Math.round(box.reduce((sum, one) => sum + one[side] * one.count, 0) / all);
  return (mean('red') << 16) | (mean('green') << 8) | mean('blue');
}

type Side = 'red' | 'green' | 'blue';

/** Returns a box's longest side, and how much it matters. */
function extent(box: readonly Shade[]): { side: Side; weight: number } {
  const sides = (['red', 'green', 'blue'] as const).map(side => {
    const values = box.map(shade => shade[side]);
    return { side, length: Math.max(...values) - Math.min(...values) };
  });
  const longest = sides.reduce((best, one) => (one.length > best.length ? one : best));
  const count = box.reduce((sum, shade) => sum + shade.count, 0);
  return { side: longest.side, weight: box.length < 2 ? 0 : longest.length * Math.sqrt(count) };
}

function indexesOf({ pixels }: Bitmap, palette: readonly number[]): Buffer {
  const known = new Map<number, number>();
  const indexes = Buffer.alloc(pixels.length / 3);
  for (let at = 0; at < indexes.length; at++) {
    const [red = 0, green = 0, blue = 0] = pixels.subarray(at * 3, at * 3 + 3);
    const colour = (red << 16) | (green << 8) | blue;
    let index = known.get(colour);
    if (index === undefined) {
      index = nearestIndex(red, green, blue, palette);
      known.set(colour, index);
    }
    indexes[at] = index;
  }
  return indexes;
}

function nearestIndex(red: number, green: number, blue: number, palette: readonly number[]): number {
  let [best, least] = [0, Number.POSITIVE_INFINITY];
  for (const [index, colour] of palette.entries()) {
    const distance =
      (red - (colour >> 16)) ** 2 + (green - ((colour >> 8) & 255)) ** 2 + (blue - (colour & 255)) ** 2;
    if (distance < least) [best, least] = [index, distance];
  }
  return best;
}
