/** Writes the current moment as skills expect it. By hand, because the first use of Intl costs a cold start about ten milliseconds. */

/** `2026-11-20 09:08:07 EST` in the process's own zone; a zone without a common abbreviation shows its offset, `GMT+5:45`. */
export function dateAndTime(now: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const date = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  return `${date} ${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())} ${zoneName(now)}`;
}

/** The zones that English readers know by letters, as `Date.toString` calls them in full. */
const lettered =
  /\((?:(Eastern|Central|Mountain|Pacific|Alaska|Hawaii-Aleutian) (Standard|Daylight) Time)\)$/;

function zoneName(now: Date): string {
  const full = now.toString();
  const offset = -now.getTimezoneOffset();
  if (offset === 0) return full.endsWith('(Coordinated Universal Time)') ? 'UTC' : 'GMT';
  const [, zone, season] = lettered.exec(full) ?? [];
  // Mexico, Cuba and others share the word but not the letters; their full names begin differently.
  if (zone && season) return zone === 'Alaska' ? `AK${season[0]}T` : `${zone[0]}${season[0]}T`;
  const minutes = Math.abs(offset) % 60;
  const hours = Math.floor(Math.abs(offset) / 60);
  return `GMT${offset < 0 ? '-' : '+'}${hours}${minutes ? `:${String(minutes).padStart(2, '0')}` : ''}`;
}
