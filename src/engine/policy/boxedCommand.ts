/** Says which commands run in the box, which of them need no question there, and what a person reads about the others. */
import type { Danger, DangerKind } from '@telos/protocol/run';
import { type Sentence, sentence, shortened, spoken } from '@telos/protocol/text';
import { isInside, realPlace } from '../files/paths.ts';
import { secretsIn } from '../redact.ts';
import { shownDangers } from './danger.ts';
import { type Ask, type Decision, type PolicyContext, reviewOf } from './decision.ts';
import { unacceptedFolders } from './fileDefaults.ts';
import { stashRef } from './gitCommands.ts';
import { firstThatCounts } from './question.ts';
import { appliesTo } from './ruleMatch.ts';
import { sensitiveWords } from './secretWords.ts';
import type { PolicySubject, PolicySubjectOf } from './subject.ts';

type Command = PolicySubjectOf<'command'>;

/** In characters. What a model says of its reason is a remark, not a text. */
const mostSaid = 300;

/** Dangers of commands that can only work outside of the box, so that they are asked about at once. */
const outsideOnly: ReadonlySet<DangerKind> = new Set([
  ...(['device', 'force-push', 'deletes-remote', 'publishes', 'privilege'] as const),
]);

/** Dangers of losing files. */
const removing: ReadonlySet<DangerKind> = new Set([
  ...(['deletes-folder', 'deletes-found', 'deletes-unknown', 'deletes-untracked'] as const),
  ...(['deletes-outside', 'discards'] as const),
]);

/**
 * Dangers that do no harm in the box. What is deleted or reset in a layer is kept for undo, nothing outside of it can be changed or ended, and
 * text that no one has read gets no more rights than the command itself.
 */
const harmlessInside: ReadonlySet<DangerKind> = new Set([
  ...removing,
  ...(['formats', 'runs-download', 'runs-unread', 'kills', 'kills-chosen', 'unread'] as const),
]);

/** Returns true for a danger that is asked about where a box works. Undo brings back files of a layer, and what Git keeps only where the repository is not elsewhere. */
const isAskedInside = ({ kind, values }: Danger, isDirect: boolean): boolean =>
  !harmlessInside.has(kind) ||
  (isDirect && removing.has(kind)) ||
  values.some(value => value === stashRef || /(?:^|\/)\.git(?:\/|$)/.test(value));

/** What was found of each command. A link that is put in place a moment later changes nothing of what was decided. */
const found = new WeakMap<Command, boolean>();

/** Returns true if the command runs in the box, no matter what allows it: nothing in its words can only work outside. */
export function staysInBox(wanted: Command, { hasBox, home }: PolicyContext): boolean {
  if (!hasBox || wanted.leaving) return false;
  const known =
    found.get(wanted) ??
    (!wanted.dangers.some(({ kind }) => outsideOnly.has(kind)) &&
      // Files of secrets are not there in the box.
      sensitiveWords(wanted.subject, wanted.folder, home).length === 0);
  found.set(wanted, known);
  return known;
}

/** Whether the changes of a boxed command are in the working folder before anything was looked at. */
export const worksDirectly = ({ goesOn }: Command, context: PolicyContext): boolean =>
  goesOn === true || context.worksDirectly === true;

/** Returns true for a command that the box keeps from doing more than the file tools do without a question. */
export async function needsOnlyBox(wanted: Command, context: PolicyContext): Promise<boolean> {
  if (context.mode === 'review' || !staysInBox(wanted, context) || worksDirectly(wanted, context))
    return false;
  const isKept = !wanted.dangers.some(danger => isAskedInside(danger, false));
  if (!isKept || (await unacceptedFolders(context)).length > 0 || (await namesSecret(wanted, context)))
    return false;
  const { agent, packDir, workingDir, protectedDirs } = context;
  const work = realPlace(workingDir) ?? workingDir;
  // What a command changes beside Telos's own files is neither looked at nor undone.
  if (protectedDirs.some(folder => isInside(work, realPlace(folder) ?? folder))) return false;
  // Scripts of an accepted card could load what is written below their own folder.
  return agent === undefined || !isInside(realPlace(packDir) ?? packDir, work);
}

/** Returns true for a command of the user's own skill that the sandbox keeps to its folders, although it may change them directly. */
export const isHeldByBox = (wanted: Command, context: PolicyContext): boolean =>
  context.isOwn === true &&
  staysInBox(wanted, context) &&
  !wanted.dangers.some(danger => isAskedInside(danger, worksDirectly(wanted, context)));

/** Returns true for a command of a plan's card that runs outside of the box. That the model wants it to is no reason. */
const leavesWithCard = ({ subject }: Command, { hasBox, cardCommands }: PolicyContext): boolean =>
  !hasBox || cardCommands?.outside?.has(subject) === true;

/** Returns the decision with the place where the command runs if it is carried out. */
export function placed<Of extends Decision>(decision: Of, wanted: PolicySubject, context: PolicyContext): Of {
  if (wanted.kind !== 'command' || decision.action === 'deny') return decision;
  if (decision.action === 'allow' && decision.readOnly) return decision;
  if (context.boxRequired) return { ...decision, boxed: true };
  const rule = decision.action === 'allow' ? decision.rule : '';
  // Rules of the person were written for what they do with all rights; a plan's card for what runs as the engine runs its checks.
  const isOutside =
    rule === 'workflow.card'
      ? leavesWithCard(wanted, context)
      : rule.startsWith('policy.') || !staysInBox(wanted, context);
  return isOutside ? decision : { ...decision, boxed: true };
}

/** Returns true if commands of this agent reach a host without a question, so that what their words hold could leave the machine. */
export async function reachesHosts(context: PolicyContext): Promise<boolean> {
  if ((context.memory?.hosts.size ?? 0) > 0) return true;
  const review = await reviewOf(context);
  if (review?.state === 'reviewed' && (review.review?.hosts ?? []).length > 0) return true;
  const rules = context.rules?.read().allow ?? [];
  const named = rules.filter(rule => rule.host !== undefined && appliesTo(rule, context));
  return (await firstThatCounts(named, context)) !== undefined;
}

/** Returns true if the words name a secret variable of the accepted card, which only a command gets that was asked about. */
async function namesSecret({ subject }: Command, context: PolicyContext): Promise<boolean> {
  const { review } = (await reviewOf(context)) ?? {};
  const words = new Set(subject.match(/\w+/g));
  return (review?.variables ?? []).some(
    name => words.has(name) && secretsIn({ [name]: context.env?.[name] ?? '' }).length > 0,
  );
}

/** Returns the question with what a person reads: few of its dangers, and about the box that the command leaves it and why, or why there is none. */
export function withBox(question: Ask, wanted: PolicySubject, context: PolicyContext): Ask {
  const { danger } = question;
  const isDirect = wanted.kind === 'command' && worksDirectly(wanted, context);
  const shown = danger
    ? {
        ...question,
        danger: shownDangers(danger, one => context.hasBox === true && isAskedInside(one, isDirect)),
      }
    : question;
  const said = wanted.kind === 'command' && !question.boxed ? boxSentence(wanted, context) : undefined;
  if (said === undefined) return shown;
  return { ...shown, reason: `${question.reason} ${spoken([said])}`, box: [said] };
}

function boxSentence({ leaving }: Command, { hasBox, noBox }: PolicyContext): Sentence | undefined {
  if (!hasBox) {
    if (!noBox || noBox.isTold) return undefined;
    const { why, mend } = noBox;
    if (mend === undefined)
      return sentence('Telos asks because no sandbox for commands works here: {0}', why);
    // A question has room for a line.
    return mend.includes('\n')
      ? sentence(
          'Telos asks because no sandbox for commands works here: {0} Telos Doctor shows the command that fixes it.',
          why,
        )
      : sentence('Telos asks because no sandbox for commands works here: {0} To fix it: {1}', why, mend);
  }
  if (!leaving) return sentence('Needs to run outside the sandbox.');
  const said = shortened(leaving.why.replace(/[“”"\s]+/g, ' ').trim(), mostSaid);
  return said === ''
    ? sentence('Runs outside the sandbox. The model gives no reason.')
    : sentence('Runs outside the sandbox. Reason of the model: “{0}”', said);
}
