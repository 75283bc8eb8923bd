/** Creates a folder of files for one test, removed with the test. */
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface TempFolder {
  path: string;
  /** Writes files below the folder. Keys are relative paths. */
  add(files: Readonly<Record<string, string | Uint8Array>>): void;
  remove(): void;
}

/** Returns the system's folder for temporary files or, if other users may not enter that, one that they may: some tests act as another user. */
export function tempRoot(): string {
  const isOpen = (path: string): boolean =>
    ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o001) !== 0 &&
    (dirname(path) === path || isOpen(dirname(path)));
  return [tmpdir(), '/tmp', '/var/tmp'].find(isOpen) ?? tmpdir();
}

export function tempFolder(files: Readonly<Record<string, string | Uint8Array>> = {}): TempFolder {
  const path = mkdtempSync(join(tempRoot(), 'telos-test-'));
  const add: TempFolder['add'] = more => {
    for (const [name, content] of Object.entries(more)) {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), content);
    }
  };
  add(files);
  // A program that was killed just now may still write.
  const remove = (): void => rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  return { path, add, remove };
}
