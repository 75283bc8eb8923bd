/** Limits the depth of JSON from outside. Code that reads or writes it calls itself at each level. */

/** Maximum number of nested lists and objects. No tool and no schema that people write needs more. */
export const deepestJson = 100;

/** Returns true if the value contains more than `levels` nested lists and objects. */
export function isDeeper(value: unknown, levels = deepestJson): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some(inner => isDeeper(inner, levels - 1));
}

/** Returns the value, or a copy with a note in place of each part that is too deep. */
export function withinDepth<Value>(value: Value, levels = deepestJson): Value {
  return isDeeper(value, levels) ? (cutBelow(value, levels) as Value) : value;
}

function cutBelow(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (levels === 0) return tooDeep;
  if (Array.isArray(value)) return value.map(item => cutBelow(item, levels - 1));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, cutBelow(item, levels - 1)]));
}

/** Note in place of a part that is too deep. */
export const tooDeep = '[left out: nested too deeply]';
