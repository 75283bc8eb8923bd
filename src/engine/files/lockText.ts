/** Reads and writes one entry of a lock file and leaves the others as they are, so that two installs never undo each other. */

/** The name of the lock file, in the skills folder or at the root of a project. */
export const lockName = 'telos-lock.json';

/** Returns JSON with sorted keys, two spaces and a final newline: the same data are always the same bytes. */
export const canonicalJson = (value: unknown): string => `${JSON.stringify(sorted(value), null, 2)}\n`;

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, v]) => [key, sorted(v)]));
}

/** Returns the packs in a lock file's text, or nothing if the file is missing. Throws Error, whose message ends a sentence, for any other text. */
export function packsIn(text: string | null): Record<string, unknown> {
  if (text === null) return {};
  if (/^(<{7}|>{7}) /m.test(text)) throw new Error('contains the marks of a merge that was not resolved');
  const value = parsed(text);
  if (value?.['format'] !== 'telos-lock') throw new Error('is not a lock file of Telos');
  if (value['version'] !== 1)
    throw new Error(`has version ${JSON.stringify(value['version'])}; this Telos reads version 1`);
  const packs = value['packs'];
  if (typeof packs !== 'object' || packs === null || Array.isArray(packs)) throw new Error('has no packs');
  return { ...packs };
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch (error) {
    throw new Error(`is not JSON (${error instanceof Error ? error.message : String(error)})`);
  }
}

/** Returns the text of an entry in the lock file of ClawHub's client, or null if there is none. Throws Error if the file is none. */
export function clawhubEntryIn(text: string | null, name: string): string | null {
  const { skills } = clawhubSkillsIn(text);
  return Object.hasOwn(skills, name) ? canonicalJson(skills[name]) : null;
}

function clawhubSkillsIn(text: string | null): { skills: Record<string, unknown>; rest: object } {
  const { skills = {}, ...rest } = text === null ? {} : (parsed(text) ?? {});
  if (typeof skills !== 'object' || skills === null || Array.isArray(skills))
    throw new Error('has no skills');
  return { skills: { ...skills }, rest };
}

/** Returns the text of ClawHub's lock file with this entry, or without it if `entry` is null; null if nothing is left in it. */
export function withClawhubEntry(text: string | null, name: string, entry: string | null): string | null {
  const { skills, rest } = clawhubSkillsIn(text);
  const { [name]: _before, ...others } = skills;
  const all = entry === null ? others : { ...others, [name]: JSON.parse(entry) as unknown };
  if (Object.keys(all).length === 0 && Object.keys(rest).every(key => key === 'version')) return null;
  return `${JSON.stringify({ ...rest, version: 1, skills: all }, null, 2)}\n`;
}

/** Returns the canonical text of an entry, or null if there is none. Throws as `packsIn` does. */
export function entryIn(text: string | null, name: string): string | null {
  const packs = packsIn(text);
  return Object.hasOwn(packs, name) ? canonicalJson(packs[name]) : null;
}

/** Returns the text of the lock file with this entry, or without it if `entry` is null. Throws as `packsIn` does. */
export function withEntry(text: string | null, name: string, entry: string | null): string {
  const others = Object.entries(packsIn(text)).filter(([key]) => key !== name);
  const own = entry === null ? [] : [[name, JSON.parse(entry)] as const];
  return canonicalJson({ format: 'telos-lock', version: 1, packs: Object.fromEntries([...others, ...own]) });
}
