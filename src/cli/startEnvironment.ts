/**
 * Takes keys out of what Linux shows of how this process was started, where every command that a skill runs could read them. Those above it (a
 * shell, npm) show what they were started with all the same.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

/** In /proc/self/stat, counted behind the program's name in brackets. */
const addressOfEnvironment = 47;

/** Overwrites the values of the variables that `isSecret` names, where the system keeps them; `process.env` stays as it is. Never throws. */
export function hideStartEnvironment(isSecret: (name: string) => boolean): void {
  if (process.platform !== 'linux') return;
  try {
    const block = readFileSync('/proc/self/environ');
    const spans = [...secretSpans(block, isSecret)];
    if (spans.length === 0) return;
    const stat = readFileSync('/proc/self/stat', 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const start = Number(fields[addressOfEnvironment]);
    const memory = openSync('/proc/self/mem', 'r+');
    try {
      for (const { name, from, to } of spans) {
        // Set anew, the variable lies elsewhere, and what lay here is nobody's any more.
        const value = process.env[name];
        if (value === undefined) continue;
        process.env[name] = value;
        writeSync(memory, Buffer.alloc(to - from, 'x'), 0, to - from, start + from);
      }
    } finally {
      closeSync(memory);
    }
  } catch {
    // A system that does not let a process at its own memory shows no worse than it did before.
  }
}

/** Where in the block the values of secrets are, in bytes. */
function* secretSpans(
  block: Buffer,
  isSecret: (name: string) => boolean,
): Generator<{ name: string; from: number; to: number }> {
  for (let at = 0; at < block.length; ) {
    const end = block.indexOf(0, at);
    const to = end < 0 ? block.length : end;
    const equals = block.indexOf(0x3d, at);
    if (equals > at && equals + 1 < to) {
      const name = block.toString('utf8', at, equals);
      if (isSecret(name)) yield { name, from: equals + 1, to };
    }
    at = to + 1;
  }
}
