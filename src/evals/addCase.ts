/** Adds what went wrong in a run to a skill's evals: a request to its trigger.json, or an eval with its files to its evals.json. */

import { lstatSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { isInside, realPlace, writeNew, writeWhole } from '@telos/engine/files';
import { sentence } from '@telos/protocol/text';
import type { Check } from './checks.ts';
import { type EvalCase, evalFileOf, readEvals } from './evalFile.ts';
import {
  parsed,
  readTriggers,
  refuseLinkOut,
  type Trigger,
  textOf,
  triggerFileOf,
  triggerText,
} from './triggerFile.ts';

/**
 * Adds a request to the trigger.json of the skill in a folder, and returns it as the file has it. The rest of the file stays byte for
 * byte. Throws TelosError `config` if the file cannot be read, or says the opposite of this very request.
 */
export async function addTrigger(skillDir: string, added: Omit<Trigger, 'line'>): Promise<Trigger> {
  const file = triggerFileOf(skillDir);
  const known = readTriggers(skillDir);
  const query = added.query.trim();
  const same = known?.find(trigger => trigger.query === query);
  if (same && same.shouldTrigger === added.shouldTrigger) return same;
  if (same)
    throw new TelosError('config', [
      sentence(
        '{0}:{1}: this request is in the file already, and says the opposite: "{2}"',
        file,
        same.line,
        query,
      ),
    ]);
  const [line = ''] = triggerText([{ ...added, query }])
    .split('\n')
    .slice(1);
  if (known === undefined) await writeBelow(skillDir, file, `[\n${line}\n]\n`);
  else {
    const text = textOf(file);
    const end = text.lastIndexOf(']');
    const before = text.slice(0, end).trimEnd();
    await writeBelow(
      skillDir,
      file,
      `${before}${known.length > 0 ? ',' : ''}\n${line}\n${text.slice(end)}`,
      text,
    );
  }
  const written = readTriggers(skillDir)?.find(trigger => trigger.query === query);
  return written ?? { ...added, query, line: 1 };
}

/** An eval as a person has put it together. */
export interface NewEval {
  name?: string;
  prompt: string;
  expectations: readonly string[];
  checks: readonly Check[];
  /** What its folder has when it begins: paths with `/`, and contents. */
  files: readonly { path: string; content: Buffer }[];
}

/**
 * Adds an eval to the evals.json of the skill in a folder, with its files in a folder of its own, and returns it. Throws TelosError
 * `config` if the file cannot be read or a file would lie outside of its folder, and errors of the file system.
 */
export async function addEval(skillDir: string, added: NewEval): Promise<EvalCase> {
  const file = evalFileOf(skillDir);
  const known = readEvals(skillDir);
  const text = known === undefined ? undefined : textOf(file);
  const content = text === undefined ? { evals: [] } : parsed(text, file);
  const id = 1 + Math.max(0, ...(known ?? []).map(each => (typeof each.id === 'number' ? each.id : 0)));
  const folder = posix.join('evals', freeName(skillDir, `inputs-${id}`));
  for (const { path, content: bytes } of added.files) {
    const place = posix.normalize(path);
    if (posix.isAbsolute(place) || place.startsWith('..'))
      throw new TelosError('config', [
        sentence('{0} cannot be a file of an eval: it is outside of its folder.', path),
      ]);
    await putBelow(skillDir, join(skillDir, folder, place), bytes);
  }
  const entry = {
    id,
    ...(added.name && { name: added.name }),
    prompt: added.prompt,
    ...(added.files.length > 0 && { files: added.files.map(({ path }) => posix.join(folder, path)) }),
    ...(added.expectations.length > 0 && { expectations: added.expectations }),
    ...(added.checks.length > 0 && { checks: added.checks }),
  };
  const list = Array.isArray(content) ? content : (content as { evals: unknown[] }).evals;
  list.push(entry);
  await writeBelow(skillDir, file, `${JSON.stringify(content, undefined, 2)}\n`, text);
  const written = readEvals(skillDir)?.find(each => each.id === id);
  if (!written)
    throw new TelosError('config', [
      sentence('The eval {0} was not found in {1} after it was written.', id, file),
    ]);
  return written;
}

function freeName(skillDir: string, wanted: string): string {
  for (let count = 1; ; count++) {
    const name = count === 1 ? wanted : `${wanted}-${count}`;
    if (!lstatSync(join(skillDir, 'evals', name), { throwIfNoEntry: false })) return name;
  }
}

/** Writes a file of the evals as a whole, unless it is no longer `before`. Throws TelosError `config` if a link leads out of the skill. */
async function writeBelow(skillDir: string, file: string, text: string, before?: string): Promise<void> {
  await makeBelow(skillDir, dirname(file));
  if (before !== undefined) refuseLinkOut(skillDir, file);
  const isSame = (): boolean => before === undefined || textOf(file) === before;
  if (!(await writeWhole(file, text, isSame)))
    throw new TelosError('config', [
      sentence('{0} was changed in the meantime.', file),
      sentence('Nothing was added; try again.'),
    ]);
}

async function putBelow(skillDir: string, file: string, content: Buffer): Promise<void> {
  await makeBelow(skillDir, dirname(file));
  await writeNew(file, content, { createdMode: 0o644 });
}

async function makeBelow(skillDir: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  if (!isInside(realPlace(skillDir) ?? skillDir, await realpath(folder)))
    throw new TelosError('config', [
      sentence("{0} leads out of the skill's folder.", folder),
      sentence('Put a folder in its place.'),
    ]);
}
