/** Words what is asked of those who build and review a story. Pure. */
import type { CheckResult, JournalLine, PlanCheck, StoryItem } from '@telos/protocol/plan';
import { beginningOf, endOf } from '@telos/protocol/text';
import { isOver, type StoryState } from './storyState.ts';

/** Denials in a row after which the words become more urgent. */
export const manyDenials = 3;

/** In characters. */
const longestPlan = 4_000;
const longestAnswers = 1_200;
const longestEarlier = 20_000;
const longestBegun = 3_000;
const longestOutput = 6_000;

/**
 * Returns what all who build and review know of the plan: its text, and what the person answered in the interview. It is the same for all
 * stories, so that providers keep it in a cache.
 */
export function planText(plan: string, transcript: string): string {
  const answers = [...transcript.matchAll(/^Q: .*\nA: .*$/gm)].join('\n');
  return joined([
    plan.trim() &&
      `The plan, as the person approved it. Its decisions hold for every story:\n<plan>\n${cut(plan.trim(), longestPlan)}\n</plan>`,
    answers && `What the person answered before:\n<answers>\n${cut(answers, longestAnswers)}\n</answers>`,
  ]);
}

/** Stories that are named, and characters of their titles. */
const mostOthers = 30;
const longestTitle = 80;

/** Returns a line for each of the other stories, with what became of it; of very many those around the story. Empty if it is the only one. */
export function othersText(stories: readonly StoryState[], id: string): string {
  const at = stories.findIndex(({ story }) => story.id === id);
  const first = Math.max(0, Math.min(at - mostOthers / 2, stories.length - mostOthers - 1));
  const near = stories.slice(first, first + mostOthers + 1).filter(({ story }) => story.id !== id);
  if (near.length === 0) return '';
  const lines = near.map(
    ({ story, status }) =>
      `- ${story.id} ${beginningOf(story.title, longestTitle)} (${isOver(status) ? (status === 'skipped' ? 'left out' : 'done') : 'another one builds it'})`,
  );
  const more = stories.length - 1 - near.length;
  return [...lines, ...(more > 0 ? [`- and ${more} more`] : []), 'Build nothing of theirs.'].join('\n');
}

export interface WorkWords {
  goal: string;
  state: StoryState;
  open: readonly StoryItem[];
  /** The story's file without its frontmatter. */
  body: string;
  checks: readonly PlanCheck[];
  /** What the project says about work on it: see `guidesAt`. */
  advice: string;
  /** The other stories, and where the step is: see `othersText` and `placeText`. */
  others: string;
  place: string;
  /** The difference of the last attempt that did not pass, if there was one. */
  lastDiff?: string;
  /** The files of it, where the attempt goes on from there. */
  begun?: string;
  /** What the person has said: to this story, to all, and in answer to its questions. */
  said: readonly string[];
  /** What the orchestrator advises. */
  instructions?: string;
}

/** Returns what is asked of the one who builds the story. */
export function workWords(words: WorkWords): string {
  const { goal, state, open, body, checks, advice, others, place, lastDiff, begun, said, instructions } =
    words;
  const { story, lastDenial, streak } = state;
  return joined([
    `Build the story ${story.id}: ${story.title}`,
    goal && `It belongs to a plan for: ${goal}`,
    section('The story as it is written', body.trim()),
    section('Criteria that are still open', listed(open)),
    section('Checks', checksText(checks)),
    others && section('The other stories', others),
    section('Where you are', place),
    advice,
    lastDenial !== undefined && section('Why the last attempt did not pass', cut(lastDenial, longestOutput)),
    begun !== undefined &&
      section(
        'What earlier attempts have changed. All of it is there',
        `${cut(begun, longestBegun)}\n\nGo on from it; git diff HEAD^ shows it whole. Mend what was denied, and undo only what was wrong.`,
      ),
    begun === undefined &&
      lastDiff &&
      section('What the last attempt had changed. None of it is there now', cut(lastDiff, longestEarlier)),
    streak >= manyDenials && urgent(streak, lastDenial ?? ''),
    said.length > 0 && section('The person says', said.map(one => `- ${one}`).join('\n')),
    instructions && section('How to go about it this time', instructions),
  ]);
}

const urgent = (streak: number, reason: string): string =>
  `These are ${streak} consecutive denials of this story. Do not try the same once more: read the reason again, find out why it came back, and take another way. The last reason was: ${cut(reason, 600)}`;

/** Returns why the attempts at a story since it last passed were denied, the first of them first. */
export function denialsOf(lines: readonly JournalLine[], story: string): string[] {
  let denials: string[] = [];
  for (const line of lines) {
    if (!('story' in line) || line.story !== story) continue;
    if (line.type === 'story_passed' || line.type === 'story_reopened') denials = [];
    if (line.type === 'attempt_ended' && line.status === 'denied') denials.push(line.details);
  }
  return denials;
}

export interface AdviceWords extends WorkWords {
  /** Why the last attempts did not pass, the first of them first. */
  denials: readonly string[];
  roles: readonly string[];
}

/** Returns what is asked of the one who says how a story is tried next. */
export function adviceWords(words: AdviceWords): string {
  const { goal, state, open, body, checks, advice, lastDiff, said, denials, roles } = words;
  const { story } = state;
  return joined([
    `Say how the story ${story.id} (${story.title}) is tried next${denials.length > 0 ? `; it was denied ${denials.length} times` : ''}.`,
    goal && `It belongs to a plan for: ${goal}`,
    section('The story as it is written', body.trim()),
    section('Criteria that are still open', listed(open)),
    section('Checks', checksText(checks)),
    advice,
    ...denials
      .slice(-manyDenials)
      .map((text, at, all) =>
        section(`Denial ${denials.length - all.length + at + 1}`, fenced(tail(text, longestOutput), '')),
      ),
    lastDiff && section('What the last attempt had changed', fenced(cut(lastDiff, longestEarlier), 'diff')),
    said.length > 0 && section('The person says', said.map(one => `- ${one}`).join('\n')),
    `Call delegate with one of these roles and with your instructions: ${roles.join(', ')}.`,
  ]);
}

/** Returns what is asked of the one who brings a story together with what has passed meanwhile. */
export function conflictWords(
  state: StoryState,
  files: readonly string[],
  checks: readonly PlanCheck[],
): string {
  const { story } = state;
  return joined([
    `Bring the story ${story.id} (${story.title}) together with what has passed meanwhile.`,
    `The story is built. Others have changed the same places since it was begun. The files below have both sides, between marks (<<<<<<<, =======, >>>>>>>): first what is there now, then what the story made of it.`,
    section('Files', files.map(file => `- ${file}`).join('\n')),
    'Keep the meaning of both sides, remove all marks, and run the checks. Change nothing else.',
    section('Criteria of the story', listed(story.items)),
    section('Checks', checksText(checks)),
  ]);
}

export interface ReviewWords {
  goal: string;
  state: StoryState;
  open: readonly StoryItem[];
  body: string;
  diff: string;
  results: readonly CheckResult[];
  checks: readonly PlanCheck[];
  advice: string;
  others: string;
  place: string;
  /** Changes of what checks the work that a criterion or the person has allowed. */
  allowed: readonly string[];
}

/** Returns what is asked of the reviewer, who sees nothing that the coder said. */
export function reviewWords(words: ReviewWords): string {
  const { goal, state, open, body, diff, results, checks, advice, others, place, allowed } = words;
  const { story, lastDenial } = state;
  return joined([
    `Review the work on the story ${story.id}: ${story.title}`,
    goal && `It belongs to a plan for: ${goal}`,
    section('The story as it is written', body.trim()),
    section('Criteria that it is about, by number', listed(open)),
    section('Checks, run by Telos on this very work', resultsText(results, checks)),
    allowed.length > 0 && section('Changes of tests or their rules that were allowed', allowed.join('\n')),
    lastDenial !== undefined && section('Why the attempt before was denied', cut(lastDenial, longestOutput)),
    others && section('The other stories', others),
    section('Where you are', place),
    advice,
    section('The whole difference', fenced(diff, 'diff')),
  ]);
}

const joined = (parts: readonly (string | false | undefined)[]): string => parts.filter(Boolean).join('\n\n');

const section = (title: string, text: string): string => `## ${title}\n\n${text || '(none)'}`;

const listed = (items: readonly StoryItem[]): string =>
  items.map(({ number, text }) => `${number}. ${text}`).join('\n');

const checksText = (checks: readonly PlanCheck[]): string =>
  checks.map(({ name, command }) => `- ${name}: \`${command}\``).join('\n');

function resultsText(results: readonly CheckResult[], checks: readonly PlanCheck[]): string {
  const parts = results.map(({ name, exitCode, output, suspicious, flaky }) => {
    const command = checks.find(check => check.name === name)?.command ?? '';
    const doubt = suspicious === undefined ? '' : `\nDoubtful: ${suspicious}`;
    const before =
      flaky === undefined
        ? ''
        : `\nFlaky: it failed at its first run on these very files. Deny only if this work is the reason. It said then:\n${fenced(flaky, '')}\nAt its second run:`;
    return `${name} (\`${command}\`): exit code ${exitCode ?? 'none'}${doubt}${before}\n${fenced(tail(output, longestOutput), '')}`;
  });
  const missing = checks.filter(({ name }) => !results.some(result => result.name === name));
  const unrun = missing.map(({ name, command }) => `${name} (\`${command}\`): not run, as no one allowed it`);
  return [...parts, ...unrun].join('\n\n');
}

function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

const cut = (text: string, most: number): string =>
  text.length > most ? `${beginningOf(text, most)}\n[Cut here.]` : text;

const tail = (text: string, most: number): string =>
  text.length > most ? `[…]\n${endOf(text, most)}` : text;

/** Returns the name of the file in `checks/` with all that a check printed in an attempt, such as `US-001.a2`. */
export const checkFile = (attempt: string, name: string, ending = ''): string =>
  `${attempt}.${name.replace(/[^\w.-]+/g, '-').slice(0, 60)}${ending}.txt`;

/** Returns why a check did not let an attempt pass. */
export function failureText({ name, exitCode, output }: CheckResult, where = ''): string {
  const how = exitCode === null ? 'did not end by itself' : `failed with exit code ${exitCode}`;
  return `The check "${name}" ${how}${where}.\n${tail(output, longestOutput)}`;
}
