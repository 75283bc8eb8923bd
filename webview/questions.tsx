/** Decides which key and which click answers a question: only one that was meant for what is on the screen. */
import { computed, signal } from '@preact/signals';
import type { ComponentProps, RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { t } from './host.ts';

/** How long something is on the screen before it can be pressed: longer than a double click, shorter than reading. In milliseconds. */
export const settleTime = 600;

const settling = new Set<() => void>();

/** Has everything that is to be read before it is pressed wait once more. Called when the page moves under the pointer. */
export function settleAgain(): void {
  for (const begin of settling) begin();
}

/** Returns true once the element has been on the screen for a while, and nothing was answered meanwhile. */
export function useSettled(place: RefObject<HTMLElement | null>): boolean {
  const [isSettled, setSettled] = useState(false);
  useLayoutEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isSeen = false;
    const begin = (): void => {
      clearTimeout(timer);
      setSettled(false);
      if (isSeen && !document.hidden) timer = setTimeout(() => setSettled(true), settleTime);
    };
    const observer = new IntersectionObserver(entries => {
      isSeen = entries.at(-1)?.isIntersecting === true;
      begin();
    });
    if (place.current) observer.observe(place.current);
    settling.add(begin);
    document.addEventListener('visibilitychange', begin);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
      settling.delete(begin);
      document.removeEventListener('visibilitychange', begin);
    };
  }, []);
  return isSettled;
}

/** Returns what a button needs to `act` only when it is settled, and never by the second click of a double click. */
export const pressable = (isSettled: boolean, act: () => void = () => {}) => ({
  'aria-disabled': !isSettled,
  onClick: (event: MouseEvent): void => {
    if (isSettled && event.detail < 2) act();
    else event.preventDefault();
  },
});

/** A button for something that is read before it is pressed. Give it a `key` that changes with what it does: then it waits anew. */
export function SettledButton({ act, ...attributes }: { act(): void } & ComponentProps<'button'>) {
  const place = useRef<HTMLButtonElement>(null);
  const isSettled = useSettled(place);
  return <button type="button" {...attributes} ref={place} {...pressable(isSettled, act)} />;
}

interface Question {
  element: HTMLElement;
  isSettled(): boolean;
  allow(): void;
  deny(): void;
}

/** The open questions, from the top. */
const questions = signal<readonly Question[]>([]);
const focused = signal<Element | null>(null);
/** The question that the keys answer: the one that has the focus, or else the first. */
const keyed = computed(
  () => questions.value.find(({ element }) => element.contains(focused.value)) ?? questions.value[0],
);

const byPlace = (one: Question, other: Question): number =>
  one.element.compareDocumentPosition(other.element) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1;

interface QuestionParts {
  /** What the key for yes does. */
  allow(): void;
  deny(): void;
  isAnswered: boolean;
  /** Takes the focus when the question that has it goes. */
  leave(): void;
}

/** Opens a question, which takes no focus. `isSettled` as for `useSettled`; `hasKeys` if the keys for yes and no answer it. */
export function useQuestion(
  place: RefObject<HTMLElement | null>,
  parts: QuestionParts,
): { isSettled: boolean; hasKeys: boolean } {
  const isSettled = useSettled(place);
  const latest = useRef({ ...parts, isSettled });
  latest.current = { ...parts, isSettled };
  const own = useRef<Question>(undefined);
  useLayoutEffect(() => {
    const element = place.current;
    if (!element || parts.isAnswered) return undefined;
    const question: Question = {
      element,
      isSettled: () => latest.current.isSettled,
      allow: () => latest.current.allow(),
      deny: () => latest.current.deny(),
    };
    own.current = question;
    questions.value = [...questions.peek(), question].sort(byPlace);
    return () => {
      questions.value = questions.peek().filter(one => one !== question);
      // What moves up comes under the pointer.
      settleAgain();
    };
  }, [parts.isAnswered]);
  useLayoutEffect(
    () => () => {
      const active = document.activeElement;
      // Words that are being written to it must not go on elsewhere.
      if (place.current?.contains(active) && !isTextbox(active)) latest.current.leave();
    },
    [],
  );
  return {
    isSettled,
    hasKeys: !parts.isAnswered && keyed.value !== undefined && keyed.value === own.current,
  };
}

export const isTextbox = (target: EventTarget | null): boolean =>
  target instanceof HTMLTextAreaElement ||
  target instanceof HTMLInputElement ||
  target instanceof HTMLSelectElement;

const menus: (() => void)[] = [];

/** Has Escape close a menu, wherever the focus is, before it answers a question. */
export function useMenu(isOpen: boolean, close: () => void): void {
  const latest = useRef(close);
  latest.current = close;
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    const closeLatest = (): void => latest.current();
    menus.push(closeLatest);
    return () => void menus.splice(menus.indexOf(closeLatest), 1);
  }, [isOpen]);
}

/** Begins to take the keys of questions, which work wherever in the page the focus is. Keys that something else has used are not taken. */
export function takeQuestionKeys(): void {
  document.addEventListener('keydown', onKeyDown);
  document.addEventListener('focusin', event => {
    focused.value = event.target as Element;
  });
  document.addEventListener('focusout', ({ relatedTarget }) => {
    if (!relatedTarget) focused.value = null;
  });
}

/** True for the key that allows, on every platform. */
export const isAllowKey = ({ key, ctrlKey, metaKey }: KeyboardEvent): boolean =>
  key === 'Enter' && (ctrlKey || metaKey);

function onKeyDown(event: KeyboardEvent): void {
  // Some input methods send 229 for the key that ends a composition.
  if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
  const isAllow = isAllowKey(event) && !event.shiftKey && !event.altKey;
  const isBare = !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!isAllow && !(event.key === 'Escape' && isBare)) return;
  const question = keyed.peek();
  const menu = isAllow ? undefined : menus.at(-1);
  if (!menu && !question) return;
  event.preventDefault();
  // A key that is still held was meant for what was here before.
  if (menu) menu();
  else if (question && !event.repeat) take(question, isAllow);
}

function take(question: Question, isAllow: boolean): void {
  if (!isInSight(question.element)) question.element.scrollIntoView({ block: 'nearest' });
  else if (!question.isSettled()) return;
  else if (isAllow) question.allow();
  else question.deny();
}

function isInSight(element: Element): boolean {
  const [own, frame] = [element, element.closest('[role="log"]') ?? document.documentElement].map(each =>
    each.getBoundingClientRect(),
  );
  return own !== undefined && frame !== undefined && own.bottom > frame.top && own.top < frame.bottom;
}

const isMac = typeof navigator !== 'undefined' && navigator.platform.startsWith('Mac');

/** The names of the keys, for `aria-keyshortcuts`. */
export const keyNames = { allow: isMac ? 'Meta+Enter' : 'Control+Enter', deny: 'Escape' } as const;

/** Shows on a button which key presses it. */
export function Key({ of }: { of: keyof typeof keyNames }) {
  const allow = isMac ? `⌘${t('Enter')}` : t('Ctrl+Enter');
  return (
    <span class="key" aria-hidden="true">
      {of === 'allow' ? allow : t('Escape')}
    </span>
  );
}
