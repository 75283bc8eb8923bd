/** Determines the programs that a shell command finds by name, and reports those that were left out. */
import { accessSync, chmodSync, constants, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import {
  findProgram,
  type LeftOut,
  linksIntoWork,
  type ProgramPlaces,
  pathIn,
  sentencesAbout,
  trustedPath,
  withPath,
} from './programPath.ts';

/** Number of words that are examined when a command has failed. */
const mostWords = 200;
const mostSentences = 3;

export interface CommandPrograms {
  /** The environment with the PATH that the command gets. */
  env: Record<string, string>;
  /** For a failed command: which of its programs were not used, and what to do. Undefined if there are none. */
  noteOn(command: string): string | undefined;
}

export function commandPrograms(context: ProgramPlaces): CommandPrograms {
  const { env } = context;
  const isMissing = onPosix && pathIn(env) === undefined;
  const withDefault = isMissing ? { ...env, PATH: '/usr/bin:/bin' } : env;
  const trusted = trustedPath({ ...context, env: withDefault });
  const links = linksIntoWork(trusted.folders, context);
  const front = links.length > 0 ? standIns(links, context) : undefined;
  const tainted = new Set(links.map(({ path }) => dirname(path)));
  const folders = front
    ? [front, ...trusted.folders]
    : trusted.folders.filter(folder => !tainted.has(folder));
  return {
    env: withPath(withDefault, folders),
    noteOn(command) {
      const words = new Set(
        command.split(/[\s;&|<>()'"`=]+/, mostWords).filter(word => /^[\w.+@-]+$/.test(word)),
      );
      const sentences = sentencesAbout([...words], trusted).slice(0, mostSentences);
      return sentences.length > 0 ? sentences.map(sentence => `[${sentence}]`).join('\n') : undefined;
    },
  };
}

const onPosix = process.platform !== 'win32';

let ownFolder: string | undefined;
/** Folders of stand-ins, by the scripts they contain. */
const known = new Map<string, string>();

/**
 * Returns a folder for the front of a PATH, with a stand-in program for each of the links. A stand-in runs the next program
 * of that name, or says why there is none. This keeps the rest of a folder of the user's programs in use. Returns undefined
 * if no folder can be made.
 */
function standIns(links: readonly LeftOut[], context: ProgramPlaces): string | undefined {
  const scripts = links.map(link => [basename(link.path), standIn(link, context)] as const);
  const key = JSON.stringify(scripts);
  const before = known.get(key);
  try {
    if (before !== undefined) {
      for (const [name] of scripts) accessSync(join(before, name), constants.X_OK);
      return before;
    }
    ownFolder ??= makeOwnFolder();
    const folder = join(ownFolder, String(known.size));
    mkdirSync(folder, { mode: 0o700 });
    for (const [name, script] of scripts) {
      writeFileSync(join(folder, name), script, { mode: 0o700 });
      // If nothing may be executed in this folder, a shell would continue with the next one.
      accessSync(join(folder, name), constants.X_OK);
    }
    chmodSync(folder, 0o500);
    known.set(key, folder);
    return folder;
  } catch {
    return undefined;
  }
}

function makeOwnFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'telos-programs-'));
  process.once('exit', () => {
    try {
      for (const each of known.values()) chmodSync(each, 0o700);
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // The system empties its temporary folder.
    }
  });
  return folder;
}

function standIn({ path, place }: LeftOut, context: ProgramPlaces): string {
  const name = basename(path);
  const other = findProgram(name, context);
  if (other !== undefined) return `#!/bin/sh\nexec ${quoted(other)} "$@"\n`;
  const why = `${name} in ${dirname(path)} was not used, because it leads into ${place}, which runs can change. Run it by its path: ${path}`;
  return `#!/bin/sh\necho ${quoted(why)} >&2\nexit 127\n`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
