/** Holds the values that components draw as signals, and the few actions of the person. */
import { batch, computed, effect, signal } from '@preact/signals';
import type { ApprovalDecision, RunMode, RunningCommand, SkillRef } from '@telos/protocol/run';
import type { DaySpending } from '@telos/protocol/usage';
import type {
  AttachmentChip,
  ChatInfo,
  OfferedModel,
  OfferedWord,
  QueuedRequest,
  Surroundings,
} from '@telos/protocol/webview';
import { keep, kept, post } from './host.ts';
import type { FoundFiles } from './mentions.ts';
import type { ChatState } from './runItems.ts';
import { emptyChat, isRunning } from './state.ts';

export { batch, effect, signal };

/** The conversation. Only main.tsx writes it, from events. */
export const chat = signal<ChatState>(emptyChat);
export const info = signal<ChatInfo | undefined>(undefined);
export const draft = signal(kept().draft);
export const conversationId = signal(kept().id);
/** True while a request is on its way to the host and its run has not started yet. */
export const pending = signal(false);
export const busy = computed(() => pending.value || isRunning(chat.value));
/** False if nothing may run: before the host's first message, and without the workspace's trust. */
export const ready = computed(() => info.value?.trusted === true);

/** Mode of the next runs of the conversation. */
export const mode = signal<RunMode>('default');
/** Where runs work, and what the sandbox does there, once the host has looked. */
export const surroundings = signal<Surroundings | undefined>(undefined);
/** The models that are ready, once they were asked for. */
export const models = signal<readonly OfferedModel[]>([]);
/** The menu that is open below the textbox. */
export const openPicker = signal<'mode' | 'model' | undefined>(undefined);
/** Whether the next runs read files such as AGENTS.md as context. */
export const contextFiles = signal(true);

/** Usage of all runs of the day, if the host has reported it. */
export const today = signal<DaySpending | undefined>(undefined);

/** Sentences that offer to teach the skills, if the host offers it. */
export const teachingOffer = signal<string | undefined>(undefined);

/** The skill that could be written of what the user does often, below this run, if the host offers it. */
export const habitOffer = signal<{ name: string; runId: string | undefined } | undefined>(undefined);

/** Ids of runs whose file changes were undone. */
export const undone = signal<ReadonlySet<string>>(new Set());

/** Id of the restore to which the conversation is taken back, until it goes on. */
export const restored = signal<string | undefined>(undefined);

/** Attachments of the next request. The host has their content. */
export const attached = signal<readonly AttachmentChip[]>([]);
/** Reason why something was not attached, or not done otherwise. Shown above the textbox. */
export const viewProblem = signal<string | undefined>(undefined);
/** What the MCP servers that have started offer. */
export const offers = signal<{ prompts: readonly OfferedWord[]; resources: readonly OfferedWord[] }>({
  prompts: [],
  resources: [],
});
/** The host's answer to the word typed after an `@`. */
export const foundFiles = signal<FoundFiles>({ query: '', files: [] });

/** Commands that run in the background of the conversation. */
export const commands = signal<readonly RunningCommand[]>([]);

/** Requests that wait for the end of the run. */
export const queued = signal<readonly QueuedRequest[]>([]);
/**
 * The person's choice for the next request only. Null leaves it to the request's words; undefined continues as the conversation
 * does.
 */
export const next = signal<SkillRef | null | undefined>(kept().next);
/** The skill with which the conversation continues. Its name is empty if it continues without one. */
export const continuing = computed<SkillRef | undefined>(() => {
  const route = chat.value.runs.findLast(run => run.route)?.route;
  return route && { agent: route.agent, skill: route.skill };
});
export const lastRunId = computed(() => chat.value.runs.at(-1)?.id);

/** The run that continues in another place, and where, as last reported by the host. */
export const ranElsewhere = signal<{ runId: string | undefined; where: string } | undefined>(undefined);
/** The place where the last run continues, while it does. Undefined for a run of this chat. */
export const elsewhere = computed(() =>
  busy.value && ranElsewhere.value?.runId === lastRunId.value ? ranElsewhere.value?.where : undefined,
);

/** True if long lines of code are wrapped. Kept over a reload. */
export const wrapsCode = signal(kept().wrapsCode === true);
effect(() => {
  const isOn = wrapsCode.value;
  document.body.classList.toggle('wrap-code', isOn);
  for (const button of document.querySelectorAll('.code-action.wrap'))
    button.setAttribute('aria-pressed', String(isOn));
});

effect(() =>
  keep({
    id: conversationId.value,
    draft: draft.value,
    ...(next.value === undefined ? {} : { next: next.value }),
    ...(wrapsCode.value ? { wrapsCode: true } : {}),
  }),
);

/** Sends the draft. During a run, it waits in the host for the run's end. */
export function sendDraft(): boolean {
  const text = draft.peek();
  if (!ready.peek()) return false;
  if (text.trim() === '') return false;
  const choice = next.peek();
  pending.value = !busy.peek() || pending.peek();
  post({ type: 'submit', text, ...(choice && { skill: choice }), ...(choice === null && { anew: true }) });
  draft.value = '';
  next.value = undefined;
  viewProblem.value = undefined;
  return true;
}

/** Runs a request of the conversation again and drops everything after it. Stops a run in progress. */
export function resend(runId: string, text: string): void {
  if (!ready.value) return;
  pending.value = true;
  post({ type: 'resend', runId, text });
}

/** Continues a run that was interrupted. */
export function resume(runId: string): void {
  if (!ready.value) return;
  pending.value = true;
  post({ type: 'resume', runId });
}

/** Sets the skill for the next request; `skill` as for `next`. */
export function chooseNext(skill: SkillRef | null): void {
  const now = continuing.peek();
  const isSame = skill !== null && now?.agent === skill.agent && now.skill === skill.skill;
  next.value = isSame ? undefined : skill;
}

/** Runs a request with another skill. A run in progress is stopped for it. */
export function runInstead(text: string, skill: SkillRef): void {
  if (!ready.value) return;
  pending.value = true;
  post({ type: 'submit', text, skill, instead: true });
}

/** Runs a request without a skill, in place of the run in progress. */
export function staySkillless(text: string): void {
  if (!ready.value) return;
  pending.value = true;
  post({ type: 'submit', text, withoutSkill: true, instead: true });
}

export function stop(): void {
  pending.value = false;
  post({ type: 'stop' });
}

export function answerApproval(token: string, decision: ApprovalDecision): void {
  post({ type: 'approve', token, decision });
}

export const textboxId = 'message';

/** Offset of the cursor in the request. In UTF-16 units. */
export const cursor = signal(0);

/** Puts the cursor at the end of the textbox. */
export function focusComposer(): void {
  putCursor(Number.POSITIVE_INFINITY);
}

/** Puts the cursor into the textbox, after `at` UTF-16 units or at its end. */
export function putCursor(at: number): void {
  const textbox = document.getElementById(textboxId) as HTMLTextAreaElement | null;
  if (!textbox) return;
  // New text may not be drawn yet. A person who types at once must find the cursor in its final place.
  if (textbox.value !== draft.peek()) textbox.value = draft.peek();
  const place = Math.min(at, textbox.value.length);
  textbox.focus();
  textbox.setSelectionRange(place, place);
  cursor.value = place;
}
