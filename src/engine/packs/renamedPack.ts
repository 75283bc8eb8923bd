/** Gives a pack another name than the one its agent.toml has. */
import { isDeepStrictEqual } from 'node:util';
import { parseToml, tomlString } from '../agents/toml.ts';
import { TelosError } from '../errors.ts';

/**
 * The text of an agent.toml with this name, every other byte as it was. Undefined where it gives no name, so that the folder's counts. Throws
 * TelosError `pack` for one that cannot be changed safely.
 */
export function withAgentName(text: string, name: string): string | undefined {
  const table = parseToml(text);
  if (!Object.hasOwn(table, 'name')) return undefined;
  const lines = text.split('\n');
  const at = lines.findIndex(line => /^\s*(?:name|"name"|'name')\s*=/.test(line));
  const changed = lines.with(Math.max(at, 0), `name = ${tomlString(name)}`).join('\n');
  if (at >= 0 && isSameBut(changed, table, name)) return changed;
  throw new TelosError(
    'pack',
    'The name in its agent.toml is written in a way that Telos cannot change safely. Change it in a copy of the folder by hand. Nothing was changed.',
  );
}

function isSameBut(text: string, table: ReturnType<typeof parseToml>, name: string): boolean {
  try {
    return isDeepStrictEqual({ ...parseToml(text) }, { ...table, name });
  } catch {
    return false;
  }
}
