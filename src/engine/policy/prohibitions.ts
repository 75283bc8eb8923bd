/** Reads the user's prohibitions generously: what a deny rule could be about is refused, whichever tool and spelling it comes by. */
import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ReadOnlyCommand } from '../tools/readOnlyShell.ts';
import { folded, isInsideFolded } from '../tools/secretNames.ts';
import { looseCommands, wordsOccur } from './commandWords.ts';
import type { PolicyRule } from './policyFile.ts';
import { hostFits, type Wanted, type WantedOf } from './wanted.ts';

/** Tools that do the same as the one that a rule names. */
const alsoMeant: Readonly<Record<string, readonly string[]>> = {
  read_file: ['search_files', 'edit_file'],
  write_file: ['edit_file'],
};

/** True for a call of the tool that the rule names, or of one that would do the same; `tool` is the call's. */
export function meansTool(rule: PolicyRule, tool: string): boolean {
  if (rule.tool === '*' || rule.tool === tool) return true;
  if (alsoMeant[rule.tool]?.includes(tool)) return true;
  return tool === 'run_command' && hidesFiles(rule);
}

/** Commands read files as well. */
const hidesFiles = ({ tool, path }: PolicyRule): boolean =>
  path !== undefined && /^(\*|read_file)$/.test(tool);

/** True when any part of the call could be what the rule is about. */
export function touches(rule: PolicyRule, wanted: Wanted, home: string): boolean {
  const { argv, command, host, path, digest } = rule;
  if (!(argv ?? command ?? host ?? path ?? digest)) return true;
  switch (wanted.kind) {
    case 'command': {
      if (command !== undefined) return wanted.subject.includes(command);
      if (argv !== undefined) return looseCommands(wanted.subject).some(words => wordsOccur(argv, words));
      if (!hidesFiles(rule)) return false;
      const places = placesOf(rule).map(place => `${folded(place)}/`);
      return pathsNamedBy(wanted, home).some(path => places.some(place => path.startsWith(place)));
    }
    case 'fetch':
      return host !== undefined && hostFits(host.replace(/:\d+$/, ''), wanted.url, true);
    case 'mcp':
      if (path !== undefined) return placesOf(rule).some(place => wanted.subject.includes(place));
      return digest !== undefined && digest === wanted.facts.digest;
    default:
      // A search shows what the files below its folder hold.
      return (
        isBelow(rule, wanted.subject) || (wanted.tool === 'search_files' && isAbove(rule, wanted.subject))
      );
  }
}

/** True when a command that only looks would show what the rule hides: its paths are known for certain, links followed. */
export function hides(rule: PolicyRule, { program, paths }: ReadOnlyCommand): boolean {
  if (!hidesFiles(rule)) return false;
  const readsBelow = program === 'rg' || program === 'grep';
  return paths.some(path => isBelow(rule, path) || (readsBelow && isAbove(rule, path)));
}

const isBelow = (rule: PolicyRule, path: string): boolean =>
  placesOf(rule).some(place => isInsideFolded(place, path));
const isAbove = (rule: PolicyRule, path: string): boolean =>
  placesOf(rule).some(place => isInsideFolded(path, place));

/** The place as it is written, and where that leads. */
function placesOf({ path = '' }: PolicyRule): string[] {
  const written = path.replace(/\/\*\*$/, '');
  if (written === '') return [];
  try {
    const real = realpathSync.native(written);
    return real === written ? [written] : [written, real];
  } catch {
    return [written];
  }
}

/** Of a command, for all rules: it can name thousands. */
const named = new WeakMap<Wanted, readonly string[]>();

/** What the words of a command could mean for paths, folded and with a `/` at the end. */
function pathsNamedBy(wanted: WantedOf<'command'>, home: string): readonly string[] {
  const known = named.get(wanted);
  if (known) return known;
  const words = new Set(wanted.subject.split(/[\s;&|<>()'"`=@:,]+/).filter(Boolean));
  const paths = [...words].map(word => `${folded(pathOf(word, wanted.folder, home))}/`);
  named.set(wanted, paths);
  return paths;
}

const pathOf = (word: string, folder: string, home: string): string =>
  resolve(
    folder,
    word.replace(/^(~|\$HOME|\$\{?HOME\}?)(?=\/|$)/, () => home),
  );
