/** Writes tar archives that no program would, entry by entry. */
import { gzipSync } from 'node:zlib';

export interface Member {
  path: string;
  content?: string;
  type?: string;
  link?: string;
  mode?: number;
  /** Written into the header in place of the length. */
  size?: number;
}

/** Returns one entry of a tar archive, whatever it says. */
export function member({ path, content = '', type = '0', link = '', mode = 0o644, size }: Member): Buffer {
  const header = Buffer.alloc(512);
  const put = (text: string, at: number): void => void header.write(text, at, 'utf8');
  const bytes = Buffer.from(content);
  put(path, 0);
  put(mode.toString(8).padStart(7, '0'), 100);
  put((size ?? bytes.length).toString(8).padStart(11, '0'), 124);
  put('0'.repeat(11), 136);
  put(type, 156);
  put(link, 157);
  put('ustar\x0000', 257);
  header.fill(' ', 148, 156);
  put(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  return Buffer.concat([header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]);
}

export const tar = (...members: Member[]): Buffer =>
  gzipSync(Buffer.concat([...members.map(member), Buffer.alloc(1024)]));
