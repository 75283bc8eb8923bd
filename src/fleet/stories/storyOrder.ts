/** What a plan asks of a worker: names and a commit in the database, everything else in that commit of the plan's git remote. */

import { TelosError } from '@telos/engine/errors';
import {
  type AttemptParts,
  type AttemptScene,
  othersText,
  type RoleText,
  type Sides,
} from '@telos/plans/executor';
import type { Git } from '@telos/plans/gitRepository';
import {
  boundLines,
  isPlanName,
  isStoryId,
  linesOf,
  type PlanSettings,
  parsePrd,
  parseSettings,
} from '@telos/plans/state';
import type { JournalLine, PlanEvent, PlanLimits, Story } from '@telos/protocol/plan';
import type { Usage } from '@telos/protocol/run';
import { sentence } from '@telos/protocol/text';
import { addedUsage } from '@telos/protocol/usage';

/** All of it is public: the database holds it as it is. */
export interface StoryOrder {
  format: 'telos-story-order';
  /** Address of the plan's remote without a password. */
  repository: string;
  plan: string;
  story: string;
  attempt: number;
  /** Part of the ref's name that keeps the commit. */
  number: number;
  /** The commit that has the rest. */
  commit: string;
  /** The key that facts are sealed for. */
  replyTo: string;
}

/** The one file of an order's commit. */
interface OrderFile {
  format: 'telos-story';
  /** What the answer must bring, so that only who can read the remote can answer. */
  proof: string;
  base: string;
  /** The commit that the work is made for. */
  parent: string;
  /** What the attempts before came to. */
  previous?: string;
  /** Work of this attempt that is kept already. */
  snapshot?: string;
  sides?: Sides;
  limits: PlanLimits;
  settings: PlanSettings;
  prd: { path: string; text: string };
  /** What who builds the story knows of its plan. */
  plan: { text: string; interview: string; others: string };
  roles: RoleText[];
  /** What was accepted with the plan's card: see `boundLines`. */
  card: string[];
  journal: JournalLine[];
}

export interface ReadOrder extends OrderFile {
  story: Story;
}

/** Returns the ref that keeps an order's commit. */
export const orderRef = ({ plan, story, attempt, number }: Omit<StoryOrder, 'format'>): string =>
  `refs/telos/${plan}/orders/${story}-a${attempt}-${number}`;

/** Returns the ref to which a worker pushes what it has kept. */
export const workRef = ({ plan, story, attempt }: Pick<StoryOrder, 'plan' | 'story' | 'attempt'>): string =>
  `refs/telos/${plan}/${story}/a${attempt}`;

const fileName = 'order.json';
/** In bytes. */
const longestFile = 8 * 1024 * 1024;

/** Makes the commit of an order, whose parents are all the commits that the worker needs. Returns it; no ref keeps it yet. */
export async function writeOrder(
  scene: AttemptScene,
  { limits, sides, proof }: { limits: PlanLimits; sides?: Sides | undefined; proof: string },
): Promise<string> {
  const { parts, story, parent, kept, call } = scene;
  const { git, folder, settings, roles, base } = parts;
  const previous = call.attempt > 1 ? (await scene.earlierWork())?.commit : undefined;
  const stories = parts.state().stories.map(one => one.story);
  const file: OrderFile = {
    format: 'telos-story',
    proof,
    base,
    parent,
    limits,
    settings,
    roles: [...roles],
    ...(previous !== undefined && { previous }),
    ...(kept && { snapshot: kept.commit }),
    ...(sides && { sides }),
    prd: { path: story.prd, text: folder.read(...story.prd.split('/')) ?? '' },
    plan: {
      text: folder.read('plan.md') ?? '',
      interview: folder.read('interview.md') ?? '',
      others: othersText(parts.state().stories, story.id),
    },
    card: boundLines(settings, stories, roles),
    journal: journalFor(parts, story.id),
  };
  const blob = await git.read(['hash-object', '-w', '--stdin'], { input: JSON.stringify(file) });
  const tree = await git.read(['mktree'], { input: `100644 blob ${blob}\t${fileName}\n` });
  const parents = [parent, previous, kept?.commit, sides?.sides, base].filter(one => one !== undefined);
  return git.commitTree(tree, [...new Set(parents)], `Order for ${story.id}, attempt ${call.attempt}`);
}

/** Returns the lines of the journal that an attempt at the story reads. What other stories have used is one line of them. */
function journalFor({ journal }: AttemptParts, id: string): JournalLine[] {
  const { lines } = journal;
  const last = (type: PlanEvent['type']): JournalLine | undefined => lines.findLast(one => one.type === type);
  const kept = new Set([last('plan_created'), last('preflight'), last('runner_started')]);
  let others: Usage | undefined;
  for (const line of lines)
    if (line.type === 'step_ended' && line.story !== id && line.usage)
      others = addedUsage(others, line.usage);
  const own = lines.filter(line => {
    if (kept.has(line) || line.type === 'steered' || line.type === 'question_answered') return true;
    if (line.type === 'question_parked') return line.question.story === id;
    return 'story' in line && line.story === id;
  });
  if (!others) return own;
  const seq = (lines.at(-1)?.seq ?? 0) + 1;
  const used = { key: 'others', step: 'coder' as const, runId: 'others', outcome: 'completed' as const };
  return [...own, { type: 'step_ended', ...used, usage: others, seq, ts: new Date().toISOString() }];
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isCommit = (value: unknown): value is string =>
  isText(value) && /^[\da-f]{40}(?:[\da-f]{24})?$/.test(value);
const isCount = (value: unknown): boolean =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) < 1e6;

/** Returns the order, or undefined if what is in the row is none. */
export function readStoryOrder(given: unknown): StoryOrder | undefined {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return undefined;
  const { format, repository, plan, story, attempt, number, commit, replyTo } = given as Partial<
    Record<keyof StoryOrder, unknown>
  >;
  const isWhole =
    format === 'telos-story-order' &&
    isText(repository) &&
    repository.length <= 1_000 &&
    isText(plan) &&
    isPlanName(plan) &&
    isText(story) &&
    isStoryId(story) &&
    [attempt, number].every(isCount) &&
    isCommit(commit) &&
    isText(replyTo) &&
    /^[\w+/]{43}=$/.test(replyTo);
  return isWhole ? (given as StoryOrder) : undefined;
}

/** Returns what the commit of an order says. Throws TelosError `config` if it is not what an order is. */
export async function readOrderFile(git: Git, { commit, story: id }: StoryOrder): Promise<ReadOrder> {
  const wrong = (what: string): TelosError =>
    new TelosError('config', [sentence('The order for {0} cannot be used: {1}.', id, what)]);
  const text = await git.text(`${commit}:${fileName}`, longestFile);
  if (text === undefined) throw wrong('its commit has no such file, or a longer one');
  let file: Partial<Record<keyof OrderFile, unknown>>;
  try {
    file = Object(JSON.parse(text));
  } catch {
    throw wrong('it is not JSON');
  }
  const { proof, base, parent, previous, snapshot, sides, limits, prd, plan, roles, card, journal } = file;
  const commits = [previous, snapshot, (sides as Partial<Sides> | undefined)?.sides];
  const isWhole =
    file.format === 'telos-story' &&
    isText(proof) &&
    [base, parent, ...commits.filter(one => one !== undefined)].every(isCommit) &&
    (sides === undefined || isSides(sides)) &&
    isPrd(prd) &&
    Object.values(textsOf(plan)).every(isText) &&
    Array.isArray(roles) &&
    roles.every(role => [role?.role, role?.file, role?.text].every(isText)) &&
    Array.isArray(card) &&
    card.every(isText) &&
    Array.isArray(journal) &&
    typeof limits === 'object';
  if (!isWhole) throw wrong('it is not what an order is');
  const settings = parseSettings(JSON.stringify(file.settings), fileName, 'plan');
  const { story, problems } = parsePrd(prd.path, prd.text);
  if (story.id !== id) throw wrong(`its story is ${story.id}. ${problems.join(' ')}`);
  const lines = linesOf(journal.map(line => `${JSON.stringify(line)}\n`).join(''));
  // The limits are read as settings are.
  const bound = parseSettings(JSON.stringify({ limits }), fileName, 'plan').limits;
  return {
    ...(file as unknown as OrderFile),
    settings,
    limits: bound,
    journal: lines,
    plan: textsOf(plan),
    story,
  };
}

/** A plan of an older version sends none of them. */
function textsOf(plan: unknown): OrderFile['plan'] {
  const { text = '', interview = '', others = '' } = Object(plan ?? {}) as Partial<OrderFile['plan']>;
  return { text, interview, others };
}

const isPrd = (prd: unknown): prd is OrderFile['prd'] => {
  const { path, text } = Object(prd) as Partial<OrderFile['prd']>;
  return isText(text) && isText(path) && /^prds\/[^./\\\0][^/\\\0]{0,150}\.md$/i.test(path);
};

function isSides(value: unknown): value is Sides {
  const { files, count } = Object(value) as Partial<Sides>;
  return Array.isArray(files) && files.every(isText) && isCount(count);
}
