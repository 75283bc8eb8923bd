/**
 * Loads the large files of a start with the code that an earlier start has compiled. Node's own cache holds what is compiled when a file is
 * read, which leaves out nearly all functions; this one is written when the program ends, and holds those that it has called.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  // biome-ignore lint/style/noRestrictedImports: runs before everything else, and reads only what belongs to the program
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

// The user's own folder, since who can write there decides what runs. No run can (`telosFolders`).
const cacheHome = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
const isWithout = isOtherProgram() || !isAbsolute(cacheHome) || !!process.env['NODE_DISABLE_COMPILE_CACHE'];
const folder = isWithout ? undefined : join(cacheHome, 'telos', 'compiled');
// Keeps the small files too; Node 20 cannot do this yet.
if (folder !== undefined) module.enableCompileCache?.(folder);

interface Loaded {
  script: Script;
  /** Where its compiled code is kept. */
  kept: string;
}

const loaded: Loaded[] = [];
let isWanted = false;

/**
 * Returns the exports of the code beside `shim`, the address of a file of the same name. `parts` are the exports of the files that it
 * imports, by the names that it has for them. `digest` is the code's own: Node takes compiled code of any other code of that length.
 */
export function loadCompiled(
  shim: string,
  parts: Readonly<Record<string, unknown>>,
  load: (name: string) => Promise<unknown>,
  digest: string,
): unknown {
  const filename = fileURLToPath(shim).replace(/\.js$/, '.code');
  const source = readFileSync(filename, 'utf8');
  const kept = folder && join(folder, `${basename(filename)}-${digest}-${process.version}-${process.arch}`);
  const cachedData = kept === undefined ? undefined : readKept(kept);
  const script = new Script(source, { filename, ...(cachedData && { cachedData }) });
  if (kept !== undefined) keepAtExit({ script, kept }, !cachedData || script.cachedDataRejected === true);
  return script.runInThisContext()(module.createRequire(shim), parts, shim, load);
}

/** Other programs that load this code, as VS Code does, compile it in their own way, and each would write it anew. */
function isOtherProgram(): boolean {
  try {
    return !realpathSync(process.argv[1] ?? '').startsWith(fileURLToPath(new URL('../../', import.meta.url)));
  } catch {
    return true;
  }
}

/** Another user's file is code of another user, as when `sudo` keeps the home folder. */
function readKept(file: string): Buffer | undefined {
  try {
    return statSync(file).uid === (process.getuid?.() ?? 0) ? readFileSync(file) : undefined;
  } catch {
    return undefined;
  }
}

/** A part that is used for the first time has called functions of the others that no earlier start called, so all are kept again. */
function keepAtExit(one: Loaded, isNew: boolean): void {
  loaded.push(one);
  isWanted ||= isNew;
  if (loaded.length > 1) return;
  process.once('exit', () => {
    if (!isWanted) return;
    for (const { script, kept } of loaded) keep(kept, script.createCachedData());
    removeOld(dirname(one.kept));
  });
}

/** Node does not check what it is given, so the file is whole or not there, also after a power cut. A start without it is only slower. */
function keep(file: string, data: Buffer): void {
  const unfinished = `${file}-${process.pid}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const descriptor = openSync(unfinished, 'wx', 0o600);
    try {
      for (let at = 0; at < data.length; ) at += writeSync(descriptor, data, at);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(unfinished, file);
  } catch {
    // A full disk, or a folder that cannot be written.
    if (existsSync(unfinished)) rmSync(unfinished, { force: true });
  }
}

/** In milliseconds. A program that is still in use after that time only makes its file again. */
const mostAge = 30 * 24 * 60 * 60 * 1000;

/** Removes what earlier versions of the program have left. Each version's files have names of their own. */
function removeOld(from: string): void {
  try {
    for (const entry of readdirSync(from, { withFileTypes: true })) {
      const file = join(from, entry.name);
      if (entry.isFile() && statSync(file).mtimeMs < Date.now() - mostAge) rmSync(file, { force: true });
    }
  } catch {
    // Another program removes them at the same time.
  }
}
