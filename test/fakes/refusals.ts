/** What the checks of all wire formats share. A check yields what the real API would say of a request that it does not take. */

/** Any object of a request, before anything is known of it. */
export type Part = Readonly<Record<string, unknown>>;

export const isPart = (value: unknown): value is Part =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the objects of a list, or none if it is something else. */
export const partsOf = (value: unknown): Part[] => (Array.isArray(value) ? value.filter(isPart) : []);

/** Returns the first value that occurs a second time. */
export function repeated<Value>(values: readonly Value[]): Value | undefined {
  const seen = new Set<Value>();
  return values.find(value => seen.size === seen.add(value).size);
}

/** With `u`, a pair is one character, so that only a half is found. */
const unpaired = /\p{Surrogate}/u;

/** Returns true if a text anywhere in the value, or a name, has one half of a pair of surrogates: no JSON parser of a server takes that. */
export function hasUnpairedSurrogate(value: unknown): boolean {
  if (typeof value === 'string') return unpaired.test(value);
  if (Array.isArray(value)) return value.some(hasUnpairedSurrogate);
  if (!isPart(value)) return false;
  return Object.entries(value).some(([name, inner]) => unpaired.test(name) || hasUnpairedSurrogate(inner));
}

/** Returns the sides of a PNG or of a GIF in pixels, or undefined for anything else. */
export function sidesOf(base64: string): readonly [number, number] | undefined {
  const head = Buffer.from(base64.slice(0, 64), 'base64');
  if (head.length >= 24 && head.subarray(0, 4).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47])))
    return [head.readUInt32BE(16), head.readUInt32BE(20)];
  if (head.length >= 10 && head.subarray(0, 4).toString('latin1') === 'GIF8')
    return [head.readUInt16LE(6), head.readUInt16LE(8)];
  return undefined;
}
