/** Decides which commands need no question because a skill's `allowed-tools` names them and its card is accepted. */
import { relative } from 'node:path';
import { folderHolding, PathProblem, realPlace, resolvePath } from '../files/paths.ts';
import { obeyedAt } from '../files/sensitiveNames.ts';
import { isOffered } from './agentCard.ts';
import type { Review } from './agentReviews.ts';
import type { PolicyContext } from './decision.ts';
import { wordsMatch } from './shellCommands.ts';
import type { PolicySubjectOf } from './subject.ts';

/** Words that make a usual program destroy or publish. */
const drasticWords =
  /^(?:push|publish|unpublish|deploy|yank|filter-branch|filter-repo|reflog|gc|clean|--force\S*|--hard|--mirror|--delete|--prune|-delete|-exec\S*|--no-verify)$/i;

/**
 * Returns true if the running skill names the command and the accepted card says so. It must be one simple command whose words stay
 * in the run's folders, away from files that others obey, and say nothing drastic.
 */
export async function isPreApproved(
  { words, folder }: PolicySubjectOf<'command'>,
  { commands = [] }: Partial<Pick<Review, 'commands'>>,
  context: PolicyContext,
): Promise<boolean> {
  const [program = '', ...others] = words ?? [];
  const patterns = context.namedCommands?.filter(pattern => commands.includes(pattern.join(' '))) ?? [];
  if (!words || !patterns.some(pattern => wordsMatch(pattern, words))) return false;
  if (!isOffered(program) || others.some(word => drasticWords.test(word))) return false;
  const places = others.flatMap(word => [word, word.replace(/^-[\w-]*=?/, '')]).filter(Boolean);
  const stays = await Promise.all(places.map(place => staysInside(place, folder, context)));
  return stays.every(Boolean);
}

/** Returns true for a word that is not a path, or is that of an ordinary file in a folder of the run. */
async function staysInside(word: string, folder: string, context: PolicyContext): Promise<boolean> {
  if (/^[a-z][\w+.-]*:\/\//i.test(word)) return !/^file:/i.test(word);
  const { workingDir, packDir, skillDir, home } = context;
  try {
    const path = await resolvePath(word, folder, home);
    const holding = await folderHolding(path, [workingDir, packDir, skillDir, folder], home);
    return (
      holding !== undefined && obeyedAt(path, relative(realPlace(holding) ?? holding, path)) === undefined
    );
  } catch (error) {
    if (error instanceof PathProblem) return false;
    throw error;
  }
}
