/** File names that mean more than their content: what somebody or something later obeys. */
import { agentNames, type ObeyedGroup, obeyedNames } from '../tools/knownNames.ts';
import { nameMatcher, placeMatcher } from '../tools/namePatterns.ts';
import { folded, nameOf } from '../tools/secretNames.ts';

export interface Obeyed {
  kind: 'agent' | 'program';
  /** Who runs or obeys it, in a few words. */
  by: string;
}

interface ObeyedMatcher extends Obeyed {
  isFile: (name: string) => boolean;
  isAnywhere: (path: string) => boolean;
  isInWork: (path: string) => boolean;
}

const matcher = (kind: Obeyed['kind'], { by, files = [], anywhere = [], inWork = [] }: ObeyedGroup) => ({
  kind,
  by,
  isFile: nameMatcher(files),
  isAnywhere: placeMatcher(anywhere),
  isInWork: placeMatcher(inWork),
});

const matchers: readonly ObeyedMatcher[] = [
  matcher('agent', agentNames),
  ...obeyedNames.map(group => matcher('program', group)),
];

/**
 * What later runs or obeys the file at `path`, and who does; undefined for an ordinary file. `inWork` is the path below the folder of the work,
 * or the path itself when it lies elsewhere: where the user chose to work inside such a folder, that alone is no alarm.
 */
export function obeyedAt(path: string, inWork: string): Obeyed | undefined {
  const plain = folded(path);
  const name = nameOf(plain);
  const below = folded(inWork);
  const found =
    matchers.find(({ isFile }) => isFile(name)) ??
    matchers.find(({ isAnywhere, isInWork }) => isAnywhere(plain) || isInWork(below));
  return found && { kind: found.kind, by: found.by };
}

/** As `obeyedAt`: `agent` for a file that instructs or sets up one, `program` for any other that is run or obeyed. */
export const whatObeys = (path: string, inWork: string): Obeyed['kind'] | undefined =>
  obeyedAt(path, inWork)?.kind;

const codeEnding =
  /\.(?:[cm]?[jt]sx?|py[cdowz]?|sh|bash|zsh|fish|rb|p[lm]|php|lua|jar|class|so(?:\.\d+)*|dylib|dll|node|wasm|exe|com|ps1|bat|cmd|r|jl|exs?|go|rs|swift)$/i;

/** True for a path that by its name holds code, which programs run or load. */
export const isCode = (path: string): boolean => codeEnding.test(folded(path));
