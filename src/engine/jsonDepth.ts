/** Bounds how deep JSON of strangers goes: what walks through it calls itself at each level, and so does what writes it. */

/** Lists and objects inside each other. No tool and no schema that people write takes so many. */
export const deepestJson = 100;

/** Says whether the value holds more than `levels` lists and objects inside each other. */
export function isDeeper(value: unknown, levels = deepestJson): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some(inner => isDeeper(inner, levels - 1));
}

/** Returns the value, or a copy of it in which a note stands in place of what lies deeper. */
export function withinDepth<Value>(value: Value, levels = deepestJson): Value {
  return isDeeper(value, levels) ? (cutBelow(value, levels) as Value) : value;
}

function cutBelow(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (levels === 0) return tooDeep;
  if (Array.isArray(value)) return value.map(item => cutBelow(item, levels - 1));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, cutBelow(item, levels - 1)]));
}

/** Stands in place of what lies too deep. */
export const tooDeep = '[left out: too many lists and objects inside each other]';
