/** The look before: says what a person should know of a folder's files before they install or trust it. Runs nothing. */

import { isUtf8 } from 'node:buffer';
import {
  byWeight,
  compiledEnding,
  findingsInText,
  isAtLeast,
  longestRead,
  rules,
  rulesVersion,
  scriptEnding,
} from '@telos/engine/policy';
import type { Finding, FindingLevel } from '@telos/protocol/agentCard';
import { binaryForm, writtenIn } from './binaryFile.ts';
import { PackageLooks } from './packageLooks.ts';

/** A file as the look needs it. */
export interface FileToScan {
  /** Below the folder, with `/`. */
  path: string;
  /** In bytes. */
  size: number;
  executable: boolean;
  /** Undefined if it could not be read, or is larger than `longestRead`. */
  bytes: Buffer | undefined;
  /** The first bytes of one that is larger. */
  head?: Buffer;
}

export interface ScanReport {
  /** Version of the rules. */
  rules: string;
  /** Findings, the heaviest first. */
  findings: readonly Finding[];
  /** Number of files, and how many of them were looked into as a whole. */
  of: number;
  read: number;
  /** Number of findings by level. */
  high: number;
  medium: number;
  low: number;
}

/** Returns what is found in the files. Linear in their text; reads no disk and no network. */
export function scanFiles(files: Iterable<FileToScan>): ScanReport {
  const findings: Finding[] = [];
  const looks = new PackageLooks();
  let [of, read] = [0, 0];
  for (const file of files) {
    const found = scanFile(file, looks);
    of++;
    if (found.isRead) read++;
    findings.push(...found.findings);
  }
  return reportOf(looks.weighed([...findings, ...looks.findings()]), read, of);
}

/** Returns true if nothing is as high as `level`, and every file was looked into. Where there is no file, nothing was. */
export const passes = ({ findings, read, of }: ScanReport, level: FindingLevel): boolean =>
  of > 0 && read === of && !findings.some(finding => isAtLeast(finding.level, level));

export function reportOf(found: readonly Finding[], read: number, of: number): ScanReport {
  const findings = [...found].sort(byWeight);
  const count = (level: FindingLevel): number => findings.filter(one => one.level === level).length;
  const counts = { high: count('high'), medium: count('medium'), low: count('low') };
  return { rules: rulesVersion, findings, of, read, ...counts };
}

/**
 * Returns what is found in one file, and whether it was looked into as a whole. `looks` learns of it, and says at the end what is told of
 * a file that is no text.
 */
export function scanFile(file: FileToScan, looks: PackageLooks): { findings: Finding[]; isRead: boolean } {
  const { path, size, executable, bytes, head } = file;
  const isCode = compiledEnding.test(path) || isMeantToBeRead(path);
  const form = isCode ? undefined : binaryForm(bytes ?? head ?? Buffer.alloc(0));
  if (bytes === undefined || size > longestRead) {
    if (form !== 'media' && form !== 'holder') return { findings: [unread(path, executable)], isRead: false };
    looks.addBinary(path, form);
    return { findings: [], isRead: false };
  }
  if (form !== undefined && !(form === 'unknown' && executable)) {
    looks.addBinary(path, form);
    const written = findingsInText(writtenIn(bytes), path).filter(({ level }) => level === 'high');
    return { findings: written, isRead: form === 'media' };
  }
  const text = bytes.toString('utf8');
  const findings = findingsInText(form === undefined ? text : writtenIn(bytes), path);
  looks.add(path, text, findings);
  if (!bytes.includes(0) && isUtf8(bytes)) return { findings, isRead: true };
  return { findings: [unread(path, executable || text.startsWith('#!')), ...findings], isRead: false };
}

/** Whether a program or a model takes a file for text by its name, whatever bytes it has. */
const isMeantToBeRead = (path: string): boolean => scriptEnding.test(path) || readEnding.test(path);
const readEnding = /\.(?:md|mdx|markdown|txt|rst|json|jsonc|toml|ya?ml|html?|css|svg|xml)$/i;

const skillName = /(?:^|\/)(?:skills?|(?:commands|agents)\/(?:[^/]+\/){0,3}[^/]+)\.md$/i;

function unread(file: string, executable: boolean): Finding {
  if (compiledEnding.test(file))
    return { kind: 'compiled-code', level: rules['compiled-code'].level, file, line: 1, text: '' };
  const weighs = executable || scriptEnding.test(file) || skillName.test(file);
  return { kind: 'not-looked-into', level: weighs ? 'high' : 'medium', file, line: 1, text: '' };
}
