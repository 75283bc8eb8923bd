/** Changes single entries of agents.toml and leaves every other byte as its owner wrote it. */
import { isDeepStrictEqual } from 'node:util';
import { parseToml, tableOf, tomlString } from '../agents/toml.ts';
import type { AlongFile } from '../changes/folderRecord.ts';
import { TelosError } from '../errors.ts';
import { editShared } from '../sharedEdit.ts';

/**
 * Takes `[agents.<name>]` and what is below it out of the file, where it is still there. Returns what that changed, for undo. Throws TelosError
 * `config` when it cannot be done safely.
 */
export async function removeAgentEntry(file: string, name: string): Promise<AlongFile | undefined> {
  return edited(file, text => (holdsEntry(text, name) ? editedText(text, file, name, () => []) : text));
}

/** Writes one text value into `[agents.<name>]`, which must be there. Returns and throws the same. */
export async function setAgentValue(
  file: string,
  name: string,
  key: string,
  value: string,
): Promise<AlongFile | undefined> {
  const line = `${key} = ${tomlString(value)}`;
  const edit = ([header = '', ...rest]: readonly string[]): string[] => {
    const at = rest.findIndex(text => text.split('=')[0]?.trim() === key);
    return at < 0 ? [header, line, ...rest] : [header, ...rest.slice(0, at), line, ...rest.slice(at + 1)];
  };
  return edited(file, text => editedText(text, file, name, edit));
}

async function edited(file: string, change: (text: string) => string): Promise<AlongFile | undefined> {
  let along: AlongFile | undefined;
  await editShared(file, text => {
    const after = change(text);
    along = after === text ? undefined : { file, before: text, after };
    return after;
  });
  return along;
}

/** Another window may have been faster; a file that cannot be read is one to say something about. */
function holdsEntry(text: string, name: string): boolean {
  try {
    return Object.hasOwn(tableOf(parseToml(text), 'agents') ?? {}, name);
  } catch {
    return true;
  }
}

/** The edit is by lines, so the result is parsed before it is written: every other agent must be as it was. */
function editedText(
  text: string,
  file: string,
  name: string,
  edit: (lines: readonly string[]) => readonly string[],
): string {
  const lines = text.split('\n');
  const isOwn = (line: string): boolean => ownHeader(name).test(line);
  const start = lines.findIndex(isOwn);
  let end = start + 1;
  while (end < lines.length && (!/^\s*\[/.test(lines[end] ?? '') || isOwn(lines[end] ?? ''))) end++;
  const edited = [...lines.slice(0, start), ...edit(lines.slice(start, end)), ...lines.slice(end)].join('\n');
  if (start < 0 || !sameOthers(text, edited, name)) {
    const message = `The entry of agent '${name}' in ${file} is written in a way that Telos cannot change safely. Change [agents.${name}] there by hand.`;
    throw new TelosError('config', message);
  }
  return edited;
}

function ownHeader(name: string): RegExp {
  const quoted = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(
    `^\\s*\\[\\s*agents\\s*\\.\\s*(?:${quoted}|"${quoted}"|'${quoted}')\\s*(?:\\.[^\\]]*)?\\]`,
  );
}

function sameOthers(before: string, after: string, name: string): boolean {
  const others = (text: string): unknown => {
    const table = parseToml(text);
    const agents = { ...tableOf(table, 'agents') };
    delete agents[name];
    return { ...table, agents };
  };
  try {
    return isDeepStrictEqual(others(before), others(after));
  } catch {
    return false;
  }
}
