/** Creates a folder of files for one test, removed with the test. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface TempFolder {
  path: string;
  /** Writes files below the folder. Keys are relative paths. */
  add(files: Readonly<Record<string, string | Uint8Array>>): void;
  remove(): void;
}

export function tempFolder(files: Readonly<Record<string, string | Uint8Array>> = {}): TempFolder {
  const path = mkdtempSync(join(tmpdir(), 'telos-test-'));
  const add: TempFolder['add'] = more => {
    for (const [name, content] of Object.entries(more)) {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), content);
    }
  };
  add(files);
  return { path, add, remove: () => rmSync(path, { recursive: true, force: true }) };
}
