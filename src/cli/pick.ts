/** Which entry of a numbered list an answer means. */

/** By its number, counted from 1, or by its name in any case; undefined for anything else. */
export function pick(answer: string, names: readonly string[]): string | undefined {
  const wanted = answer.trim();
  if (/^\d+$/.test(wanted)) return names[Number(wanted) - 1];
  const lowered = wanted.toLowerCase();
  return names.find(name => name === wanted) ?? names.find(name => name.toLowerCase() === lowered);
}
