/** Implements `telos verify`, `update`, `pin`, `unpin` and `search`, on what the lock file knows of the installed packs. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { lockName, readText } from '@telos/engine/files';
import { timeText } from '@telos/engine/records';
import { lockPath } from '@telos/engine/skills';
import { unifiedDiff } from '@telos/engine/undo';
import { placeOffer, reachFor, searchClawHub, setPinned, UnclearSource } from '@telos/packs/install';
import {
  checkOnline,
  type LockedPlace,
  type PackUpdate,
  updatesFor,
  type VerifiedPack,
  verifyPacks,
} from '@telos/packs/lock';
import { describeReplacement } from '@telos/protocol/installPlan';
import { beginningOf } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { keptText } from './installCommand.ts';
import { readLine } from './keyboard.ts';
import { colouredCard } from './offerText.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { exactText, sayError, table, terminalJson, toType } from './terminalText.ts';

export interface LockCommandOptions extends ConfigOptions {
  json?: boolean;
  online?: boolean;
  project?: boolean;
  to?: string;
  dryRun?: boolean;
  force?: boolean;
  yes?: boolean;
  allow?: string;
}

interface Call {
  config: Config;
  options: LockCommandOptions;
  terminal: Terminal;
  signal: AbortSignal;
}

/** Compares the installed packs with the lock files. Returns the exit code: 0 if every file is as it was, else 1, also where none is locked. */
export const verifyCommand = (
  names: readonly string[],
  options: LockCommandOptions,
  terminal: Terminal,
): Promise<number> =>
  withCall(
    options,
    terminal,
    async call => {
      const found: (VerifiedPack & { online?: string })[] = [];
      let isSame = true;
      for (const place of placesOf(call, names)) {
        for (const pack of await verifyPacks(place, names)) {
          const problem = options.online
            ? await checkOnline(place, pack.name, { signal: call.signal })
            : undefined;
          found.push({ ...pack, ...(options.online && { online: problem ?? 'still there, the same' }) });
          if (pack.state !== 'same' || problem !== undefined) isSame = false;
          if (problem !== undefined)
            call.terminal.say(call.terminal.style.red(exactText(`${pack.name}: ${problem}`)));
        }
      }
      if (options.json) terminal.out(`${terminalJson({ packs: found })}\n`);
      else if (found.length === 0)
        terminal.say('Nothing is locked. What telos install places is locked with its source.');
      else for (const pack of found) sayVerified(pack, terminal);
      // Of nothing, nothing is known to be the same.
      return isSame && found.length > 0 ? 0 : 1;
    },
    names,
  );

const stateWords: Readonly<Record<VerifiedPack['state'], string>> = {
  same: 'same',
  edited: 'edited',
  missing: 'missing',
  unlocked: 'not locked: it was not installed by Telos',
};

function sayVerified({ name, state, source, version, files }: VerifiedPack, terminal: Terminal): void {
  const of = state === 'unlocked' ? '' : ` (${source}${version ? `, ${version}` : ''})`;
  terminal.out(`${exactText(`${name}: ${stateWords[state]}${of}`)}\n`);
  for (const { path, change } of files) terminal.out(`${exactText(`  ${change}: ${path}`)}\n`);
}

/** A project's lock file in the folder of the call counts beside the person's own, unless the names say which is meant. */
function placesOf({ config, options }: Call, names: readonly string[]): LockedPlace[] {
  const project: LockedPlace = { config, project: config.cwd };
  const hasProject = existsSync(join(config.cwd, lockName)) && config.cwd !== config.skillsDir;
  if (options.project) return [project];
  return hasProject && names.length === 0 ? [{ config }, project] : [{ config }];
}

/** Looks for newer versions and places them. Returns the exit code: 1 if one was refused or could not be looked for. */
export const updateCommand = (
  names: readonly string[],
  options: LockCommandOptions,
  terminal: Terminal,
): Promise<number> =>
  withCall(
    options,
    terminal,
    async call => {
      if (options.to !== undefined && names.length !== 1)
        throw new UnclearSource('--to takes a version of one pack. Name it.');
      const [place = { config: call.config }] = placesOf(call, options.project ? [] : ['']);
      const done: object[] = [];
      let code = 0;
      for await (const update of updatesFor(place, names, { to: options.to, signal: call.signal })) {
        try {
          const isDone = await applyUpdate(update, call);
          if (!isDone) code = 1;
          const { offer, ...facts } = update;
          done.push({ ...facts, source: offer?.source });
        } finally {
          await update.offer?.dispose();
        }
      }
      if (options.json) terminal.out(`${terminalJson({ packs: done })}\n`);
      else if (done.length === 0) terminal.say('Nothing is locked, so there is nothing to update.');
      return code;
    },
    names,
  );

/** Returns false if the update was refused or failed. */
async function applyUpdate(update: PackUpdate, { options, terminal, signal }: Call): Promise<boolean> {
  const { name, state, from, to, offer, files, problem } = update;
  const say = (text: string): void => terminal.say(exactText(text));
  if (state === 'pinned')
    say(`${name}: pinned to ${from}, so it was passed over. To update it: ${toType('unpin', name)}`);
  if (state === 'failed') say(`${name}: ${problem}`);
  if (state === 'moved')
    say(
      `${name}: ${problem}. Nothing was changed. To take it from there: ${toType('install', offer?.source ?? '', '--as', name)}`,
    );
  if (state === 'current') {
    say(`${name}: ${from} is the newest version`);
    if (files.length > 0)
      say(
        `${name}: files here differ from it: ${files.map(({ path, change }) => `${path} (${change})`).join(', ')}`,
      );
    // The files may be those of a newer commit.
    if (!options.dryRun && from !== to && offer && files.length === 0)
      await placeOffer(offer, { agreed: offer.plan.token, allowHigh: true });
  }
  if (state === 'pinned' || state === 'current' || !offer) return state !== 'failed';
  if (state === 'moved') return false;
  say(`${name}: ${from} -> ${to}`);
  for (const line of describeReplacement(offer.plan, timeText)) say(line);
  for (const line of update.card) say(`permissions: ${line}`);
  await sayDiffs(update, terminal);
  if (state === 'edited' && !options.force) {
    say(
      `These files were edited here, so nothing was changed: ${files.map(file => file.path).join(', ')}. To replace them anyway, and keep the old folder: ${toType('update', name, '--force')}`,
    );
    return false;
  }
  if (options.dryRun) return true;
  return confirmed(update, { options, terminal, signal });
}

async function confirmed(
  { name, offer, to }: PackUpdate,
  { options, terminal, signal }: Omit<Call, 'config'>,
): Promise<boolean> {
  if (!offer) return false;
  terminal.say(colouredCard(offer, terminal.style).join('\n'));
  if (offer.isRisky && options.allow !== 'high' && (options.yes || !terminal.canAsk)) {
    terminal.say(
      'There are high-severity findings, so --yes does not install it. Review them, then add: --allow high. Nothing was changed.',
    );
    return false;
  }
  if (!options.yes && terminal.canAsk) {
    const answer = (await readLine(`Update '${exactText(name)}'? [y/N] `, signal))?.trim() ?? '';
    if (!/^y(es)?$/i.test(answer)) {
      terminal.say('Nothing was changed.');
      return false;
    }
  } else if (!options.yes && !terminal.canAsk) {
    terminal.say('Nothing was changed. Use --yes to update without being asked.');
    return false;
  }
  const { undoId } = await placeOffer(offer, { agreed: offer.plan.token, allowHigh: true });
  if (!options.json) terminal.out(`${exactText(`Updated ${name} to ${to}`)}\n`);
  if (undoId) terminal.say(terminal.style.dim(`${keptText} telos undo ${undoId.slice(0, 8)}`));
  return true;
}

const mostDiffs = 20;
const longestDiff = 8000;

async function sayDiffs({ offer, name }: PackUpdate, terminal: Terminal): Promise<void> {
  if (!offer) return;
  const changed =
    offer.plan.replaces?.changes.filter(({ change }) => change === 'changed').slice(0, mostDiffs) ?? [];
  for (const { path } of changed) {
    const before = textAt(join(offer.plan.target, path));
    const after = offer.files.some(file => file.path === path)
      ? (await offer.read(path)).toString('utf8')
      : '';
    const diff = before.includes('\0') || after.includes('\0') ? '(not text)' : unifiedDiff(before, after);
    const shown = diff.length > longestDiff ? `${beginningOf(diff, longestDiff)}\n...` : diff;
    terminal.say([`${name}/${path}`, ...shown.split('\n')].map(exactText).join('\n'));
  }
}

function textAt(file: string): string {
  try {
    return readText(file);
  } catch {
    return '';
  }
}

/** Has updates pass a pack over, or not any more. Returns the exit code: 1 if it is not locked. */
export const pinCommand = (
  name: string,
  pinned: boolean,
  options: LockCommandOptions,
  terminal: Terminal,
): Promise<number> =>
  withCall(options, terminal, async ({ config }) => {
    const file = options.project ? join(config.cwd, lockName) : lockPath(config);
    const isKnown = await setPinned(file, name, pinned);
    if (!isKnown)
      throw new TelosError('pack', `'${name}' is not in ${file}. Names are in the list of telos verify.`);
    terminal.out(
      `${exactText(pinned ? `${name} is pinned: updates pass it over.` : `${name} is updated again.`)}\n`,
    );
    return 0;
  });

/** Searches ClawHub. Returns the exit code: 1 if nothing was found. */
export const searchCommand = (
  words: string,
  options: LockCommandOptions,
  terminal: Terminal,
): Promise<number> =>
  withCall(options, terminal, async ({ config, signal }) => {
    const found = await searchClawHub(words, await reachFor(undefined, config, { signal }));
    if (options.json) terminal.out(`${terminalJson({ from: 'ClawHub', skills: found })}\n`);
    else if (found.length === 0) terminal.say('ClawHub finds nothing.');
    else {
      const rows = found.map(({ source, version, verdict, summary }) => [
        source,
        version,
        verdict || '-',
        summary,
      ]);
      terminal.out(`${table(['From ClawHub', 'Version', 'Verdict', 'Summary'], rows, terminal.outWidth)}\n`);
      terminal.say('telos install <one of these> shows what is in it before anything is installed.');
    }
    return found.length === 0 ? 1 : 0;
  });

async function withCall(
  options: LockCommandOptions,
  terminal: Terminal,
  use: (call: Call) => Promise<number>,
  names: readonly string[] = [],
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const refused = (error: TelosError): number => {
    const code = sayError(error, terminal, error instanceof UnclearSource ? 2 : 1);
    if (names.length > 1)
      terminal.say('(A request that begins with this word goes after --, as in: telos -- update my plan)');
    return code;
  };
  return interruptible(terminal, signal => use({ config, options, terminal, signal }), { refused });
}
