/** Has a plan written from an interview, and has it split into stories. What a model submits is checked here and placed whole. */

import { TelosError } from '@telos/engine/errors';
import type { PlanCheck, PlanReply, Story, StoryItem } from '@telos/protocol/plan';
import type { JsonObject, RunOutcome } from '@telos/protocol/run';
import { type Sentence, sentence, sentencesOf } from '@telos/protocol/text';
import { slug } from './planFolder.ts';
import { oneLine, printPrd } from './prdFile.ts';
import { type StepEnd, workerRoles } from './steps.ts';

/** Asks the model in the role of a step. `key` names the step within its plan. Never throws. */
export type AskStep = (
  step: { name: 'interview' | 'plan' | 'split'; key: string; words: string },
  signal: AbortSignal,
) => Promise<StepEnd>;

/** Boxes of one story that the splitter aims at; more than that is several stories. */
const boxesOfStory = { least: 8, most: 15 };

/** Returns the text of plan.md. Throws TelosError if the planner failed or wrote nothing. */
export async function writePlan(context: string, ask: AskStep, signal: AbortSignal): Promise<string> {
  const words = [
    'Write the plan for what the person wants. The interview so far:',
    `<transcript>\n${context}\n</transcript>`,
    'Look at what the project has already. The plan has these parts, as Markdown: North Star, architecture, tech stack, approach, sequencing, risks, open questions. It has no tasks and no boxes; those come later.',
    'Hand it in with submit_plan, whole. Where you have no tools, answer with the plan and nothing else.',
  ].join('\n\n');
  return planIn(await ask({ name: 'plan', key: 'plan', words }, signal));
}

/** Returns the plan with the comments worked in, and what the planner says to them. Throws the same errors. */
export async function revisePlan(
  plan: string,
  comments: readonly string[],
  ask: AskStep,
  signal: AbortSignal,
): Promise<{ text: string; replies: PlanReply[] }> {
  const words = [
    'This is the current plan:',
    `<plan>\n${plan}\n</plan>`,
    `The person wants it changed:\n${comments.map((comment, at) => `${at + 1}. ${comment}`).join('\n')}`,
    'Hand in the whole plan once more with submit_plan. Change what the comments ask for and leave everything else as it is. Answer each comment with reply_comment, by its number. Where you have no tools, answer with the plan and nothing else.',
  ].join('\n\n');
  const end = await ask({ name: 'plan', key: 'plan', words }, signal);
  return { text: planIn(end), replies: repliesIn(end, comments) };
}

/** Returns the last reply to each comment, which the planner names by its number or its words. */
function repliesIn({ answers }: StepEnd, comments: readonly string[]): PlanReply[] {
  const replies = new Map<number, PlanReply>();
  for (const { tool, input } of answers) {
    if (tool !== 'reply_comment') continue;
    const named = String(input['comment'] ?? '').trim();
    const number = Number(/^#?(\d+)\.?$/.exec(named)?.[1] ?? comments.indexOf(named) + 1);
    const text = textOf(input['reply']);
    if (number >= 1 && number <= comments.length && text) replies.set(number, { comment: number, text });
  }
  return [...replies.values()];
}

function planIn(reply: StepEnd): string {
  const submitted = lastText(reply, 'submit_plan', 'text');
  if (submitted === undefined) throwIfFailed(reply, 'planner');
  const plan = submitted ?? unfenced(reply.text);
  if (plan.trim() === '')
    throw new TelosError('provider', [
      sentence('The planner wrote nothing.'),
      sentence('Ask again, or choose another model.'),
    ]);
  return plan;
}

/** Throws the error of a step that did not end by itself. */
export function throwIfFailed({ outcome, error }: StepEnd, who: keyof typeof stopped): void {
  if (outcome === 'completed') return;
  const why = error ? sentencesOf(error) : [endings[outcome] ?? sentence('It did not end by itself.')];
  throw new TelosError(error?.code ?? 'provider', [stopped[who], ...why], {
    remedy: error?.remedy,
    retryAfterMs: error?.retryAfterMs,
  });
}

const stopped = {
  interviewer: sentence('The interviewer stopped before it was done.'),
  planner: sentence('The planner stopped before it was done.'),
  splitter: sentence('The splitter stopped before it was done.'),
};

const endings: Partial<Record<RunOutcome, Sentence>> = {
  round_limit: sentence('It used all of its steps.'),
  cancelled: sentence('It was cancelled.'),
};

const lastText = (reply: StepEnd, tool: string, key: string): string | undefined => {
  const value = reply.answers.findLast(answer => answer.tool === tool)?.input[key];
  return typeof value === 'string' ? value : undefined;
};

/** Models without tools like to fence the whole of what they were asked for. */
const unfenced = (text: string): string =>
  /^\s*```(?:markdown|md)?\n([\s\S]*?)\n```\s*$/.exec(text)?.[1] ?? text;

export interface WrittenStory {
  /** Below the plan's folder: `prds/01-setup.md`. */
  path: string;
  text: string;
}

/** Returns the stories' files, and the checks of the whole plan. Throws TelosError if the splitter failed or handed in no story. */
export async function splitPlan(
  plan: string,
  ask: AskStep,
  signal: AbortSignal,
): Promise<{ stories: WrittenStory[]; checks: PlanCheck[] }> {
  const words = [
    'Split this plan into stories that are built one after the other:',
    `<plan>\n${plan}\n</plan>`,
    `Hand in each story with submit_story, in the order in which they are built. They get the ids US-001, US-002 and so on; depends_on names those. Each is one logical unit that somebody can build without reading the others, with ${boxesOfStory.least}-${boxesOfStory.most} acceptance criteria. Each criterion becomes a box (\`- [ ] criterion\`): something to build whose presence can be checked. What only verifies, launches or hands over is prose in the definition of done.`,
    'Give each story checks: commands that fail while it is not built and pass once it is. Name in touches the files that it may change.',
  ].join('\n\n');
  const reply = await ask({ name: 'split', key: 'split', words }, signal);
  const handedIn = reply.answers.filter(({ tool }) => tool === 'submit_story');
  if (handedIn.length === 0) throwIfFailed(reply, 'splitter');
  const stories = handedIn.map(({ input }, index) => storyOf(input, index));
  if (stories.length === 0)
    throw new TelosError('provider', [
      sentence('No PRD files were created: the splitter handed in no story.'),
      sentence('Split the plan again, or choose another model.'),
    ]);
  const whole = reply.answers.findLast(({ tool }) => tool === 'submit_checks')?.input['checks'];
  return {
    stories: stories.map(({ story, body }) => ({ path: story.prd, text: printPrd(story, body) })),
    checks: checksOf(whole),
  };
}

/** What is known of a story that is split. */
export interface WholeStory {
  story: Story;
  /** Its file. */
  text: string;
  /** Its boxes that are still open. */
  open: readonly StoryItem[];
  /** Why it did not pass so far. */
  denials: readonly string[];
  /** Commands that the person has accepted. */
  commands: ReadonlySet<string>;
}

/** A story with more parts than letters was not one. */
const mostParts = 26;

/** Returns the files of the stories that a story is split into. Throws TelosError if the splitter failed or handed in fewer than two. */
export async function splitStory(
  { story, text, open, denials, commands }: WholeStory,
  ask: AskStep,
  signal: AbortSignal,
): Promise<(WrittenStory & { id: string })[]> {
  const { id } = story;
  const words = [
    `Split this story into smaller ones that are built one after the other:\n<story>\n${text}\n</story>`,
    `Still open of its criteria:\n${open.map(({ number, text: words }) => `${number}. ${words}`).join('\n')}`,
    ...(denials.length > 0
      ? [`Why it did not pass so far:\n${denials.map(denial => `<denial>\n${denial}\n</denial>`).join('\n')}`]
      : []),
    `Hand in each part with submit_story, in the order in which they are built. They get the ids ${id}a, ${id}b and so on; depends_on names those. Together they meet every open criterion; each criterion of a part is something to build whose presence can be checked. Only these checks may be used: ${[...commands].join(' | ') || 'none'}.`,
  ].join('\n\n');
  const reply = await ask({ name: 'split', key: `${id}.split`, words }, signal);
  throwIfFailed(reply, 'splitter');
  const handedIn = reply.answers.filter(({ tool }) => tool === 'submit_story').slice(0, mostParts);
  if (handedIn.length < 2)
    throw new TelosError('provider', [
      handedIn.length === 1
        ? sentence('The splitter did not split {0}: it handed in one story.', id)
        : sentence('The splitter did not split {0}: it handed in no story.', id),
      sentence('Split it again, or edit {0}.', story.prd),
    ]);
  const parts = handedIn.map(({ input }, index) => partOf(input, index, story, commands));
  return parts.map(({ story: part, body }) => ({ id: part.id, path: part.prd, text: printPrd(part, body) }));
}

/** Returns a part of a story. What a person has not accepted with the card is not taken over. */
function partOf(
  input: JsonObject,
  index: number,
  whole: Story,
  commands: ReadonlySet<string>,
): { story: Story; body: string } {
  const letter = (at: number): string => String.fromCharCode(97 + at);
  const { story, body } = storyOf(input, index);
  const earlier = Array.from({ length: index }, (_, at) => `${whole.id}${letter(at)}`);
  const checks = story.checks.filter(({ command }) => commands.has(command));
  const place = whole.prd.replace(/^(prds\/(?:\d+[a-z]*)?).*$/i, '$1');
  const part: Story = {
    ...story,
    id: `${whole.id}${letter(index)}`,
    prd: `${place}${letter(index)}-${slug(story.title) || 'story'}.md`,
    role: workerRoles.find(role => role === story.role) ?? whole.role,
    dependsOn: [...whole.dependsOn, ...story.dependsOn.filter(id => earlier.includes(id))],
    checks: checks.length > 0 ? checks : whole.checks,
  };
  return { story: part, body };
}

/** Whether the id is that of a part of the story. */
export const isPartOf = (id: string, story: string): boolean =>
  id.startsWith(story) && /^[a-z]+$/.test(id.slice(story.length));

/** Returns the story that a call hands in. Its id and its file follow from its place. */
function storyOf(input: JsonObject, index: number): { story: Story; body: string } {
  const number = index + 1;
  const title = textOf(input['title']) || `Story ${number}`;
  const description = textOf(input['description']);
  const story: Story = {
    id: `US-${String(number).padStart(3, '0')}`,
    title,
    ...(description && { description }),
    prd: `prds/${String(number).padStart(2, '0')}-${slug(title) || 'story'}.md`,
    role: textOf(input['role']) || 'coder',
    dependsOn: textsOf(input['depends_on']),
    touches: textsOf(input['touches']),
    checks: checksOf(input['checks']),
    items: textsOf(input['criteria']).map((text, at) => ({ number: at + 1, text, ticked: false })),
  };
  const done = typeof input['definition_of_done'] === 'string' ? input['definition_of_done'].trim() : '';
  return { story, body: done ? `## Definition of done\n${done}` : '' };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? oneLine(value) : '');

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(textOf).filter(text => text !== '') : [];

function checksOf(value: unknown): PlanCheck[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  return list.flatMap((one, index) => {
    const { name, command, timeout_s, red, outside } = { ...(one as Record<string, unknown>) };
    if (typeof command !== 'string' || command.trim() === '') return [];
    return [
      {
        name: textOf(name) || `check ${index + 1}`,
        command,
        ...(typeof timeout_s === 'number' && timeout_s > 0 && { timeoutS: timeout_s }),
        ...(red === true && { red }),
        ...(outside === true && { outside }),
      },
    ];
  });
}
