/** Accepts changes of an agent's folder that need no new card: the person's own typing, and data that a granted script adds. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import { escapeInvisible } from '../files/plainText.ts';
import { originFile } from '../skills/installPlace.ts';
import type { ReviewedAgent } from './agentFiles.ts';
import type { ReviewState } from './agentReviews.ts';
import type { PolicyContext } from './decision.ts';

/**
 * Accepts the data that a granted script has added to the agent's own folder since `before`. Returns a line for the person, or
 * undefined if it has added nothing of that kind. Never throws: without it, the card comes back.
 */
export async function keepAdditions(
  before: ReviewState | undefined,
  { agent, reviews }: PolicyContext,
): Promise<Sentence | undefined> {
  if (!agent || !before) return undefined;
  const added = (await reviews?.acceptAdditions(agent, before).catch(() => [])) ?? [];
  if (added.length === 0) return undefined;
  return sentence(
    "Its script wrote {0} into the folder of agent '{1}' ({2}).",
    someNames(added),
    agent.name,
    agent.packDir,
  );
}

/**
 * Accepts the texts of an agent that the person has typed since its card was accepted, if they name nothing new. Returns a line for
 * the person, or undefined if there was nothing of that kind. Never throws: without it, the card comes back.
 */
export async function keepTyping(
  { agent, reviews }: PolicyContext,
  dataDir: string,
): Promise<Sentence | undefined> {
  if (!agent || !isOwnTyping(agent, dataDir)) return undefined;
  const typed = (await reviews?.acceptTyping(agent).catch(() => [])) ?? [];
  if (typed.length === 0) return undefined;
  return sentence(
    "Your changes to {0} of agent '{1}' name nothing new, so its permissions stay approved.",
    someNames(typed),
    agent.name,
  );
}

/** Returns true for a folder of the user's own: neither installed from elsewhere nor in a clone of a repository. */
export function isOwnTyping({ source, packDir }: ReviewedAgent, dataDir: string): boolean {
  if (source !== 'user' || originFile(dataDir, packDir).before !== null) return false;
  for (let folder = packDir; ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return false;
    if (dirname(folder) === folder) return true;
  }
}

function someNames(labels: readonly string[]): string {
  const names = labels.slice(0, 3).map(escapeInvisible).join(', ');
  return labels.length > 3 ? `${names} and ${labels.length - 3} more` : names;
}
