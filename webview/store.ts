/** The values that components draw, as signals, and the few things a person can do with them. */
import { batch, computed, effect, signal } from '@preact/signals';
import type { ApprovalDecision, SkillRef } from '../src/protocol/run.ts';
import type { DaySpending } from '../src/protocol/usage.ts';
import type { AttachmentChip, ChatInfo, QueuedRequest } from '../src/protocol/webview.ts';
import { keep, kept, post } from './host.ts';
import type { FoundFiles } from './mentions.ts';
import type { ChatState } from './runItems.ts';
import { emptyChat, isRunning } from './state.ts';

export { batch, effect, signal };

/** The conversation; only main.tsx writes it, from events. */
export const chat = signal<ChatState>(emptyChat);
export const info = signal<ChatInfo | undefined>(undefined);
export const draft = signal(kept().draft);
export const conversationId = signal(kept().id);
/** A request is on its way to the host, and its run has not started yet. */
export const pending = signal(false);
export const busy = computed(() => pending.value || isRunning(chat.value));
/** False where nothing may run: before the host has spoken, and without the workspace's trust. */
export const ready = computed(() => info.value?.trusted === true);

/** What all runs of the day have used, as far as the host has said. */
export const today = signal<DaySpending | undefined>(undefined);

/** Runs whose files are as they were before them. */
export const undone = signal<ReadonlySet<string>>(new Set());

/** What goes along with the next request; the host has it. */
export const attached = signal<readonly AttachmentChip[]>([]);
/** Why something does not go along. */
export const attachProblem = signal<string | undefined>(undefined);
/** The host's answer to what was typed behind an `@`. */
export const foundFiles = signal<FoundFiles>({ query: '', files: [] });

/** Requests that wait for the end of the run. */
export const queued = signal<readonly QueuedRequest[]>([]);
/** The person's choice for the next request alone; null is the choice by its words, undefined goes on as the conversation does. */
export const next = signal<SkillRef | null | undefined>(kept().next);
/** The skill that the conversation goes on with; of an empty name where it goes on without one. */
export const continuing = computed<SkillRef | undefined>(() => {
  const route = chat.value.runs.findLast(run => run.route)?.route;
  return route && { agent: route.agent, skill: route.skill };
});
export const lastRunId = computed(() => chat.value.runs.at(-1)?.id);

/** The run that goes on in another place, and where, as the host has said last. */
export const ranElsewhere = signal<{ runId: string | undefined; where: string } | undefined>(undefined);
/** Where the last run goes on, as long as it does; undefined for one of this chat. */
export const elsewhere = computed(() =>
  busy.value && ranElsewhere.value?.runId === lastRunId.value ? ranElsewhere.value?.where : undefined,
);

effect(() =>
  keep({
    id: conversationId.value,
    draft: draft.value,
    ...(next.value === undefined ? {} : { next: next.value }),
  }),
);

/** Sends what was written; while a run goes on, it waits in the host for its end. */
export function sendDraft(): boolean {
  const text = draft.peek();
  if (!ready.peek() || text.trim() === '') return false;
  const choice = next.peek();
  pending.value = !busy.peek() || pending.peek();
  post({ type: 'submit', text, ...(choice && { skill: choice }), ...(choice === null && { anew: true }) });
  draft.value = '';
  next.value = undefined;
  attachProblem.value = undefined;
  return true;
}

/** Sends a request with a skill of the person's choice. */
export function submit(text: string, skill: SkillRef): void {
  if (busy.value || !ready.value || text.trim() === '') return;
  pending.value = true;
  post({ type: 'submit', text, skill });
}

/** Runs a request of the conversation again and drops what came behind it; a run that goes on is stopped. */
export function resend(runId: string, text: string): void {
  if (!ready.value) return;
  pending.value = true;
  post({ type: 'resend', runId, text });
}

/** Goes on with a run that was interrupted. */
export function resume(runId: string): void {
  if (!ready.value) return;
  pending.value = true;
  post({ type: 'resume', runId });
}

/** `skill` as for `next`. */
export function chooseNext(skill: SkillRef | null): void {
  const now = continuing.peek();
  const isSame = skill !== null && now?.agent === skill.agent && now.skill === skill.skill;
  next.value = isSame ? undefined : skill;
}

/** Sends a request for which Telos looks for a skill itself. */
export function askWithoutSkill(text: string): void {
  if (busy.value || !ready.value || text.trim() === '') return;
  pending.value = true;
  post({ type: 'submit', text, withoutSkill: true });
}

/** Runs a request with another skill; a run that is going on gives way to it. */
export function runInstead(text: string, skill: SkillRef): void {
  if (!ready.value) return;
  pending.value = true;
  post({ type: 'submit', text, skill, instead: true });
}

export function stop(): void {
  pending.value = false;
  post({ type: 'stop' });
}

export function answerApproval(token: string, decision: ApprovalDecision): void {
  post({ type: 'approve', token, decision });
}
