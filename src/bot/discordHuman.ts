/** Asks people in a channel: questions of a run with buttons for its owner, and questions of its skill for who has made the request. */

import { decisionOf, type Messenger } from '@telos/engine/away';
import { shellWord } from '@telos/engine/files';
import type { Human, RunRequest } from '@telos/engine/run';
import type { Telos } from '@telos/engine/telos';
import { describeCard } from '@telos/protocol/agentCard';
import { describeDanger, describeQuestion, describeWhy } from '@telos/protocol/describe';
import { type ApprovalDecision, type ApprovalRequest, type RunEvent, skipped } from '@telos/protocol/run';
import { exactText, shortened } from '@telos/protocol/text';
import type { Gateway } from './gateway.ts';
import type { AnswerPlace } from './growingAnswer.ts';
import type { Post } from './handlers.ts';
import { plainText } from './messageText.ts';
import type { Questions } from './questions.ts';

/** What every run of the bot shares. */
export interface RunParts {
  telos: Telos;
  gateway: Pick<Gateway, 'post' | 'edit'>;
  questions: Questions;
  isOwner(user: string): boolean;
  /** Whether requests from Discord may run this agent. */
  isOffered(agent: string): boolean;
  log(line: string): void;
}

export interface Job {
  request: RunRequest;
  place: AnswerPlace;
  /** Who has asked. */
  user: string;
  stop: AbortController;
  /** Receives each event. */
  note(event: RunEvent): void;
}

/** Longest message with a question, which gets a line with the answer. What is longer goes as a file. */
const mostShown = 1850;

/** For a run whose bot has ended. */
export const interruptedText = '**The bot has ended. What was done is kept; in a thread, a reply goes on.**';

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns a message with these blocks of code. If they do not fit, or would end their block, a file has all of it. */
export function fitted(
  before: string,
  blocks: readonly (readonly [name: string, text: string])[],
  file: string,
  after = '',
): Post {
  const shown = blocks.map(([, text]) => `\`\`\`\n${text}\n\`\`\``);
  const content = [before, ...shown, after].filter(Boolean).join('\n');
  const canBeShown = blocks.every(([, text]) => !text.includes('```'));
  if (content.length <= mostShown && canBeShown) return { content };
  const data = [before, ...blocks.map(([name, text]) => `${name}:\n${text}`), after].join('\n\n');
  const note = `It is too long to be shown here, ${data.length} characters. **The file has all of it: read it before you answer.**`;
  const around = [before, note, after].filter(Boolean).join('\n');
  const [first = ''] = before.split('\n');
  return {
    content: around.length <= mostShown ? around : `${shortened(first, 700)}\n${note}`,
    files: [{ name: file, data }],
  };
}

/** The people who are asked in this channel. */
export function discordHuman(job: Job, parts: RunParts): Human {
  return {
    approve: (request, signal) =>
      (request.choices
        ? answerQuestion(request, job, parts, signal)
        : approve(request, job, parts, signal)
      ).catch(error => ({
        allow: false,
        reason: `The question could not be put on Discord: ${messageOf(error)}`,
      })),
    ask: async questions => questions.map(() => ''),
  };
}

/** The owner who has asked, or each owner if someone else has. */
export const decider =
  ({ user }: Job, { isOwner }: RunParts) =>
  (clicked: string): boolean =>
    isOwner(clicked) && (clicked === user || !isOwner(user));

/** Puts questions to the owner with buttons. */
const discordMessenger = (job: Job, parts: RunParts): Messenger => ({
  name: 'Discord',
  async ask({ request, scopes }, signal) {
    const labels = {
      once: 'Once',
      run: request.forConversation ? 'For this conversation' : 'For this run',
    } as const;
    const answer = await parts.questions.ask({
      channel: job.place.channel,
      post: questionPost(request),
      signal,
      mayAnswer: decider(job, parts),
      choices: [...scopes.map(scope => ({ label: labels[scope] })), { label: 'No', style: 'danger' }],
    });
    return answer && (scopes.find(scope => labels[scope] === answer.label) ?? 'no');
  },
});

async function approve(
  request: ApprovalRequest,
  job: Job,
  parts: RunParts,
  signal: AbortSignal,
): Promise<ApprovalDecision> {
  if (request.form)
    return {
      ...skipped,
      reason: 'A form cannot be filled in on Discord, only in the editor or a terminal.',
    };
  // Always is a choice for the machine itself.
  const scopes = request.scopes.filter(scope => scope !== 'always');
  const answer = await discordMessenger(job, parts).ask({ request, scopes }, signal);
  return answer
    ? decisionOf(answer, 'The owner said no.')
    : { allow: false, reason: 'The owner did not answer in time.' };
}

/** In characters. A longer reason is a block of its own, or in the file. */
const mostWhy = 400;

/** Everything that the owner decides about, exactly. */
export function questionPost(request: ApprovalRequest): Post {
  const { subject, diff, folder, rule, danger = [], card, timeLimit, inBackground } = request;
  const before = [
    `**${plainText(describeQuestion(request))}**`,
    ...danger.map(one => `⚠ ${plainText(describeDanger(one))}`),
  ];
  const why = describeWhy(request);
  const details = [
    ...(why.length > mostWhy ? [] : [plainText(why, mostWhy)]),
    ...(inBackground ? ['It goes on in the background.'] : []),
    ...(timeLimit === undefined ? [] : [`It may take ${timeLimit} seconds.`]),
    ...(card
      ? [
          `The permissions of ${plainText(card.agent, 60)} is not accepted. On the machine: telos trust ${plainText(shellWord(card.agent))}`,
        ]
      : []),
    `-# Rule ${plainText(rule, 80)}. Only an owner can answer, for five minutes.`,
  ];
  const blocks = [
    ...(why.length > mostWhy ? [['reason', exactText(why)] as const] : []),
    ['subject', exactText(subject)],
    ...(folder === undefined ? [] : [['folder', exactText(folder)] as const]),
    ...(diff === undefined ? [] : [['changes', exactText(diff)] as const]),
    ...(card ? [['card', describeCard(card).join('\n')] as const] : []),
  ] as const;
  return fitted(before.join('\n'), blocks, 'question.txt', details.join('\n'));
}

/** Buttons of a question besides the answers. */
const [ownWords, skip] = ['Other …', 'Skip'];

/** A question of the skill, for who has asked. */
async function answerQuestion(
  { subject, choices = [] }: ApprovalRequest,
  { user, place }: Job,
  { questions }: RunParts,
  signal: AbortSignal,
): Promise<ApprovalDecision> {
  const listed = choices.slice(0, 20);
  const labels = listed.map((choice, at) =>
    shortened(exactText(`${at + 1}. ${choice}`.replace(/\s+/g, ' ')), 70),
  );
  const answer = await questions.ask({
    channel: place.channel,
    signal,
    mayAnswer: clicked => clicked === user,
    post: { content: `**Question from the skill**\n${plainText(subject, 700)}` },
    choices: [
      ...labels.map(label => ({ label })),
      { label: listed.length === 0 ? 'Answer …' : ownWords, form: 'Your answer' },
      { label: skip },
    ],
  });
  const picked = answer?.text ?? listed[labels.indexOf(answer?.label ?? '')];
  if (picked !== undefined) return { allow: true, scope: 'once', answer: picked };
  return skipped;
}
