/** Serves the user's skills as files, by the extension for skills of MCP (SEP-2640). */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isSensitive, loadRegularFile } from '@telos/engine/files';
import type { Agent, Skill } from '@telos/engine/skills';
import type { Telos } from '@telos/engine/telos';
import { type ServedSkill, type SkillSource, skillEntry } from './sdk.ts';

/** The most that is served of one skill: files and bytes. Those of the extension. */
const mostFiles = 512;
const mostBytes = 16 * 1024 * 1024;
const pageSize = 50;

type Files = Record<string, Uint8Array>;

/** Returns the source of the skills as they are when asked. A skill that breaks the rules of the extension is left out. */
export function skillSource(telos: Telos): SkillSource {
  const entryOf = async ({ path, skill }: Place): Promise<ServedSkill | undefined> => {
    const files = await filesOf(skill.dir).catch(() => undefined);
    return files && skillEntry(path, files).catch(() => undefined);
  };
  const found = async (uri: string): Promise<{ place: Place; file: string } | undefined> => {
    for (const place of await placesOf(telos)) {
      const root = `skill://${place.path}/`;
      if (uri.startsWith(root)) return { place, file: decodeURI(uri.slice(root.length)) };
    }
    return undefined;
  };
  return {
    async list({ cursor }) {
      const places = await placesOf(telos);
      const start = cursor === undefined ? 0 : Number(cursor);
      const page = places.slice(start, start + pageSize);
      const skills = (await Promise.all(page.map(entryOf))).flatMap(entry => entry ?? []);
      const next = start + pageSize;
      return { skills, ...(next < places.length && { nextCursor: `${next}` }) };
    },
    async get(uri) {
      const at = await found(uri);
      return at?.file === 'SKILL.md' ? entryOf(at.place) : undefined;
    },
    async read(uri) {
      const at = await found(uri);
      const bytes = at && (await filesOf(at.place.skill.dir))[at.file];
      return bytes && contentOf(bytes);
    },
  };
}

/** Returns text as text, as the extension wants it of every SKILL.md, and anything else in bytes. */
function contentOf(bytes: Uint8Array): { text: string } | { bytes: Uint8Array } {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { bytes };
  }
}

interface Place {
  /** `garden/plant`. */
  path: string;
  skill: Skill;
}

async function placesOf(telos: Telos): Promise<Place[]> {
  const shown = ({ isDisabled, kind }: Skill): boolean => !isDisabled && kind === undefined;
  const ofAgent = ({ name, skills }: Agent): Place[] =>
    skills.filter(shown).map(skill => ({ path: `${name}/${skill.id}`, skill }));
  return (await telos.agents()).flatMap(ofAgent);
}

/** Returns the regular files of a skill by their path in it, but none that holds secrets by its name. Throws if there are too many. */
async function filesOf(dir: string): Promise<Files> {
  const files: Files = {};
  let size = 0;
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(dir.length + 1).replaceAll('\\', '/');
    if (!entry.isFile() || isSensitive(path) || /(?:^|\/)(?:\.git|node_modules)\//.test(name)) continue;
    const bytes = await loadRegularFile(path, mostBytes);
    size += bytes.length;
    if (size > mostBytes || Object.keys(files).length >= mostFiles)
      throw new Error(`${dir} has more than is served of a skill.`);
    files[name] = bytes;
  }
  return files;
}
