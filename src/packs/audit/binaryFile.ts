/** Tells by their bytes which files are no text: pictures, fonts and sound, and what holds other files. A name proves nothing. */

import { isUtf8 } from 'node:buffer';
import { looksBinary } from '@telos/engine/files';

/** A form that shows nothing but itself, one that holds what was not looked into, or bytes of no known form. */
export type BinaryForm = 'media' | 'holder' | 'unknown';

const media =
  /^(?:\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF[\s\S]{4}(?:WEBP|WAVE|AVI )|BM|II\*\0|MM\0\*|\0\0[\x01\x02]\0[^\0]|8BPS|icns|wOF[F2]|OTTO|ttcf|true|\0\x01\0\0|ID3|\xff[\xe2-\xfb]|OggS|fLaC|\x1aE\xdf\xa3|[\s\S]{4}ftyp|glTF)/;
const holder =
  /^(?:PK(?:\x03\x04|\x05\x06|\x07\x08)|\x1f\x8b|BZh[1-9]|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c|Rar!|%PDF-|SQLite format 3\0|\xd0\xcf\x11\xe0|[\s\S]{257}ustar)/;

/** Returns the form of a file by its first bytes. Undefined for text, also for one that only begins like a picture. */
export function binaryForm(bytes: Buffer): BinaryForm | undefined {
  if (!looksBinary(bytes) || (isUtf8(bytes) && !bytes.includes(0))) return undefined;
  const head = bytes.subarray(0, 300).toString('latin1');
  if (media.test(head)) return 'media';
  return holder.test(head) ? 'holder' : 'unknown';
}

/** A line that someone wrote into a picture is longer than what chance makes of its bytes. */
const written = /[\t\r\x20-\x7e]{12,}/g;

/** Returns what may be written between other bytes, each in the line where it stands. */
export function writtenIn(bytes: Buffer): string {
  const lines = bytes.toString('latin1').split('\n');
  return lines.map(line => (line.match(written) ?? []).join(' ')).join('\n');
}

const interpreter =
  '(?:(?:ba|z|da|k|fi)?sh|python[\\d.]*|node|deno(?:\\s+run)?|bun(?:\\s+run)?|perl|ruby|php|lua|osascript|wine|pwsh|powershell)';
const start = '(?:^|[;&|(`$])\\s*';

/** Ways to run a file. `NAME` stands for its path. */
const ways = [
  // The script of an interpreter, and a file that is made a program.
  `(?<![\\w.-])(?:${interpreter}|sudo|nohup)\\s+(?:-[\\w-]+\\s+)*(?:<\\s*)?NAME`,
  `${start}(?:source|exec|\\.)\\s+NAME`,
  '\\bchmod\\s+(?:[ugoa]*\\+\\w*x\\w*|0?[1357]\\d\\d|\\d?7\\d\\d)\\s[^;&|\\n]*NAME',
  '\\b(?:run|execute|launch)\\s+(?:the\\s+)?(?:(?:file|script|binary|program|installer)\\s+)?NAME',
  // A program's call whose command begins with it, or that reads it as code.
  `\\b(?:system|popen|check_call|check_output|call|run|exec\\w*|spawn\\w*)\\s*\\(\\s*\\[?\\s*(?:["']${interpreter}["']\\s*,\\s*\\[?\\s*|["'\`](?:${interpreter}\\s+)?)NAME`,
  '\\b(?:exec|eval)\\s*\\([^\\n"\'`]{0,60}(?:open|readFile\\w*|read_\\w+|Path|load\\w*)\\s*\\(\\s*NAME',
  '\\b(?:runpy\\.run_path|execfile|runIn\\w+Context|dlopen|CDLL|LoadLibrary|pickle\\.loads?)\\s*\\([^\\n]{0,60}NAME',
  // What is cut out of it goes to an interpreter that has no script of its own.
  `NAME[^\\n]{0,200}\\|\\s*(?:sudo\\s+)?${interpreter}(?:\\s+-s?)?\\s*(?:$|[;&|)\`"'])`,
  `(?<![\\w.-])(?:${interpreter}|eval|source)\\b[^\\n]{0,40}(?:<\\(|\\$\\()[^\\n]{0,120}NAME`,
  // Under another name, which is run then.
  '\\b(?:cp|mv)\\s+(?:-\\w+\\s+)*NAME\\s+\\S+\\.(?:sh|bash|py|[cm]?js|rb|pl|exe)\\b',
  'NAME[^;&\\n]{0,120}>\\s*\\S+\\.(?:sh|bash|py|rb|pl|exe)\\b',
  `NAME[^;&\\n]{0,120}?[\\s=>](?<copy>[\\w./~-]+)\\s*(?:&&|;|\\n)[\\s\\S]{0,120}?(?:${interpreter}|chmod\\s+\\S+|source|\\.)\\s+["']?\\k<copy>(?![\\w.-])`,
  `(?<held>\\w+)=NAME[\\s\\S]{0,200}?(?:${interpreter}|source|\\.)\\s+["']?\\$\\{?\\k<held>\\b`,
].map(way => way.replaceAll('NAME', `["'\`]?(?:[\\w.$~{}-]*/)*NAME(?![\\w-])`));

/** Whether a text names a file to be run. `name` is the last part of its path. */
export function namesToRun(text: string, name: string): boolean {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return ways.some(way => new RegExp(way.replaceAll('NAME', escaped), 'im').test(text));
}
