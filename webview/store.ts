/** The values that components draw, as signals, and the few things a person can do with them. */
import { batch, computed, effect, signal } from '@preact/signals';
import type { ApprovalDecision, SkillRef } from '../src/protocol/run.ts';
import type { ChatInfo } from '../src/protocol/webview.ts';
import { keep, kept, post } from './host.ts';
import { type ChatState, emptyChat, isRunning } from './state.ts';

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

effect(() => keep({ id: conversationId.value, draft: draft.value }));

/** Sends a request, with its skill where the person chose one. */
export function submit(text: string, skill?: SkillRef): void {
  if (busy.value || !ready.value || text.trim() === '') return;
  pending.value = true;
  post(skill ? { type: 'submit', text, skill } : { type: 'submit', text });
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

export function answerApproval(callId: string, decision: ApprovalDecision): void {
  post({ type: 'approve', callId, decision });
}
