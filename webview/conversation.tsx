/** The log of the conversation: its runs, the welcome before the first one, and the way back to its end. */

import { type ComponentChild, createContext } from 'preact';
import { useContext, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Icon } from './icons.tsx';
import type { MarkdownStream } from './markdownBlocks.ts';
import type { Run } from './runItems.ts';
import { RunView, Unchanged } from './runView.tsx';
import { chat, conversationId, elsewhere, pending } from './store.ts';
import { Welcome } from './welcome.tsx';
import { t } from './words.ts';

/** So many runs at the end are always drawn. */
const latest = 10;

const drawLatest = (run: Run) => <RunPlace keep={true} guess={0} draw={() => <RunView run={run} />} />;
const drawEarlier = (run: Run) => (
  <RunPlace keep={false} guess={guessHeight(run)} draw={() => <RunView run={run} />} />
);

/** Good enough for the scroll bar until the run is drawn. In CSS pixels. */
function guessHeight(run: Run): number {
  const text = run.items.reduce(
    (sum, item) => sum + (item.kind === 'text' ? textLength(item.markdown) : 0),
    0,
  );
  return 40 * (run.items.length + 1) + text / 2;
}

const textLength = ({ closed, open }: MarkdownStream): number =>
  closed.reduce((sum, { source }) => sum + source.length, open.length);

export function Conversation() {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follower = useRef<Following>(null);
  const [following, setFollowing] = useState(true);
  const [nearness, setNearness] = useState<Nearness>();
  useEffect(() => {
    follower.current = followEnd(scroller.current!, content.current!, setFollowing);
    const near = new Nearness(scroller.current!);
    setNearness(near);
    return () => {
      follower.current?.dispose();
      near.dispose();
    };
  }, []);
  useEffect(() => {
    if (pending.value) follower.current?.jump();
  }, [pending.value]);
  const { runs } = chat.value;
  const label = t('Conversation');
  return (
    <div class="conversation">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="scroller" ref={scroller} role="log" aria-label={label} aria-live="off" tabIndex={0}>
        <div class="content" ref={content}>
          {runs.length === 0 && !pending.value && <Welcome />}
          <NearnessContext.Provider value={nearness}>
            {runs.map((run, index) => (
              // Runs are only ever added behind the others, so a place is a name.
              <Unchanged
                key={`${conversationId.value} ${index}`}
                of={run}
                draw={index < runs.length - latest ? drawEarlier : drawLatest}
              />
            ))}
          </NearnessContext.Provider>
          {pending.value && <div class="line activity">{t('Sending…')}</div>}
          {elsewhere.value !== undefined && (
            <div
              class="line activity elsewhere"
              title={t('It can be stopped there; a request of yours waits for its end')}
            >
              <Icon name="running" />
              <span>{elsewhere.value}</span>
            </div>
          )}
        </div>
      </div>
      {!following && (
        <button type="button" class="jump" onClick={() => follower.current?.jump()}>
          <Icon name="down" />
          {t('Jump to latest')}
        </button>
      )}
    </div>
  );
}

/** How close to the end (in CSS pixels) still counts as being there. */
const slack = 24;

export interface Following {
  /** Goes to the end and follows it again. */
  jump(): void;
  dispose(): void;
}

/** Watches `scroller` and its `content`; `report` hears whether the end is followed, whenever that changes. */
export function followEnd(
  scroller: HTMLElement,
  content: HTMLElement,
  report: (following: boolean) => void,
): Following {
  let following = true;
  let lastTop = 0;
  const set = (value: boolean) => {
    if (value !== following) report(value);
    following = value;
  };
  const toEnd = () => {
    scroller.scrollTop = scroller.scrollHeight;
    lastTop = scroller.scrollTop;
  };
  const onScroll = () => {
    const top = scroller.scrollTop;
    const atEnd = scroller.scrollHeight - top - scroller.clientHeight <= slack;
    // Growth alone also leads away from the end; only a way up is the person's wish to stay.
    if (atEnd) set(true);
    else if (top < lastTop - 1) set(false);
    lastTop = top;
  };
  const observer = new ResizeObserver(() => {
    if (following) toEnd();
  });
  observer.observe(content);
  observer.observe(scroller);
  scroller.addEventListener('scroll', onScroll, { passive: true });
  return {
    jump() {
      set(true);
      toEnd();
    },
    dispose() {
      observer.disconnect();
      scroller.removeEventListener('scroll', onScroll);
    },
  };
}

/** Runs are drawn from so many CSS pixels before they come into sight. */
const margin = 2_000;

/** Tells elements of one scroller whether they are near to what is seen of it. */
export class Nearness {
  readonly #observer: IntersectionObserver;
  readonly #listeners = new WeakMap<Element, (near: boolean) => void>();

  constructor(scroller: Element) {
    this.#observer = new IntersectionObserver(
      entries => {
        for (const { target, isIntersecting } of entries) this.#listeners.get(target)?.(isIntersecting);
      },
      { root: scroller, rootMargin: `${margin}px 0px` },
    );
  }

  /** `listener` hears at once, and at each change. Returns how to end it. */
  follow(element: Element, listener: (near: boolean) => void): () => void {
    this.#listeners.set(element, listener);
    this.#observer.observe(element);
    return () => {
      this.#observer.unobserve(element);
      this.#listeners.delete(element);
    };
  }

  dispose(): void {
    this.#observer.disconnect();
  }
}

/** Undefined until the scroller is there. */
export const NearnessContext = createContext<Nearness | undefined>(undefined);

/** `keep` draws the run wherever it is; `guess` is its height before it was ever drawn, in CSS pixels. */
export function RunPlace(props: { keep: boolean; guess: number; draw: () => ComponentChild }) {
  const nearness = useContext(NearnessContext);
  const element = useRef<HTMLElement>(null);
  const height = useRef(props.guess);
  const [near, setNear] = useState(props.keep);
  useLayoutEffect(() => {
    const place = element.current;
    if (!place || !nearness) return undefined;
    return nearness.follow(place, isNear => {
      if (!isNear && isInUse(place)) return;
      if (!isNear && place.childElementCount > 0) height.current = place.getBoundingClientRect().height;
      setNear(isNear);
    });
  }, [nearness]);
  const drawn = near || props.keep;
  return (
    <section class="run" ref={element} style={{ height: drawn ? '' : `${height.current}px` }}>
      {drawn && props.draw()}
    </section>
  );
}

/** What the person has focused or selected must not vanish. */
function isInUse(place: Element): boolean {
  const selection = document.getSelection();
  const selected = selection !== null && !selection.isCollapsed && selection.containsNode(place, true);
  return selected || place.contains(document.activeElement);
}
