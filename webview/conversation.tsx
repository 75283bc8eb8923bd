/** Draws the log of the conversation: its runs, the welcome before the first one, and a button to its end. */
import { type ComponentChild, createContext } from 'preact';
import { useContext, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { CommandButton, SkillCommands, TrustButton } from './endCard.tsx';
import { HabitOffer } from './habitOffer.tsx';
import { t } from './host.ts';
import { Icon } from './icons.tsx';
import type { MarkdownStream } from './markdownBlocks.ts';
import { callOfShared } from './mentions.ts';
import { settleAgain } from './questions.tsx';
import type { Run } from './runItems.ts';
import { RunView, Unchanged } from './runView.tsx';
import { chat, conversationId, draft, elsewhere, focusComposer, info, pending } from './store.ts';
import { visible } from './visibleText.ts';

/** This many runs at the end are always drawn. */
const latest = 10;

const drawLatest = (run: Run) => <RunPlace keep={true} guess={0} draw={() => <RunView run={run} />} />;
const drawEarlier = (run: Run) => (
  <RunPlace keep={false} guess={guessHeight(run)} draw={() => <RunView run={run} />} />
);

/** Estimates a height for the scroll bar until the run is drawn. In CSS pixels. */
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
    follower.current = autoScroll(scroller.current!, content.current!, setFollowing);
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
  const jump = () => {
    settleAgain();
    follower.current?.jump();
  };
  return (
    <div class="conversation">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="scroller" ref={scroller} role="log" aria-label={label} aria-live="off" tabIndex={0}>
        <div class="content" ref={content}>
          {runs.length === 0 && !pending.value && <Welcome />}
          <NearnessContext.Provider value={nearness}>
            {runs.map((run, index) => (
              // Runs are only ever appended, so the index identifies a run.
              <Unchanged
                key={`${conversationId.value} ${index}`}
                of={run}
                draw={index < runs.length - latest ? drawEarlier : drawLatest}
              />
            ))}
          </NearnessContext.Provider>
          <HabitOffer />
          {pending.value && <div class="line activity">{t('Sending…')}</div>}
          {elsewhere.value !== undefined && (
            <div
              class="line activity elsewhere"
              title={t('It can be stopped there; your requests wait until it ends')}
            >
              <Icon name="running" />
              <span>{elsewhere.value}</span>
            </div>
          )}
        </div>
      </div>
      {!following && (
        <button type="button" class="jump" onClick={jump}>
          <Icon name="down" />
          {t('Jump to latest')}
        </button>
      )}
    </div>
  );
}

/** Distance from the end that still counts as being there. In CSS pixels. */
const slack = 24;

interface Following {
  /** Scrolls to the end and follows it again. */
  jump(): void;
  dispose(): void;
}

/** Follows the end of `content` in `scroller`. Calls `report` whenever following starts or stops. */
function autoScroll(
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
    // Growth alone also moves the view away from the end. Only scrolling up shows that the person wants to stay.
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

/** Runs are drawn from this distance before they come into sight. In CSS pixels. */
const margin = 2_000;

/** Reports to elements of one scroller whether they are near its visible part. */
class Nearness {
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

  /** Calls `listener` at once and at each change. Returns a function that stops it. */
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

/** Undefined until the scroller exists. */
const NearnessContext = createContext<Nearness | undefined>(undefined);

/** Draws a run while it is near. `keep` draws it always; `guess` is its height before it is first drawn, in CSS pixels. */
function RunPlace(props: { keep: boolean; guess: number; draw: () => ComponentChild }) {
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

/** Returns true if the person has focused or selected something in the place. It must not vanish then. */
function isInUse(place: Element): boolean {
  const selection = document.getSelection();
  const selected = selection !== null && !selection.isCollapsed && selection.containsNode(place, true);
  return selected || place.contains(document.activeElement);
}

const mostSuggestions = 3;

function Welcome() {
  const known = info.value;
  if (!known) return null;
  return (
    <div class="welcome">
      <p class="welcome-title">{t('What do you want to do?')}</p>
      <p class="quiet">
        {t(
          'Ask a question or describe a task. Telos uses a skill that fits, and asks before anything risky.',
        )}
      </p>
      {!known.trusted && <Restricted />}
      {known.trusted && known.isUnset && known.skills.length > 0 && (
        <p class="line">
          <Icon name="info" />
          <span>{t('No model yet. Add a key, or try the recorded sample.')}</span>
        </p>
      )}
      {known.skills.length === 0 ? <NoSkills /> : <Suggestions />}
      {known.trusted && known.isUnset && known.skills.length > 0 && (
        <div class="buttons">
          <CommandButton command="telos.setApiKey" label={t('Set API Key…')} />
          <CommandButton command="telos.chooseModel" label={t('Choose Model…')} />
          <CommandButton command="telos.trySample" label={t('Try the Sample')} />
        </div>
      )}
    </div>
  );
}

function Suggestions() {
  const { skills } = info.value!;
  return (
    <ul class="suggestions" aria-label={t('Suggested skills')}>
      {skills.slice(0, mostSuggestions).map(each => (
        <li key={`${each.agent}:${each.skill}`}>
          <button
            type="button"
            title={visible(each.description)}
            onClick={() => {
              draft.value = callOfShared(each, skills) ?? t('Run {0}', each.skill);
              focusComposer();
            }}
          >
            <span class="suggestion-name">{visible(each.skill)}</span>
            {each.note && <span class="suggestion-note">{visible(each.note)}</span>}
            <span class="suggestion-description">
              {visible(each.description) || t('of {0}', visible(each.agent))}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function NoSkills() {
  return (
    <div class="card">
      <p>
        {t(
          'There are no skills yet. Try the sample, or write one: a folder with a SKILL.md that describes how a task is done.',
        )}
      </p>
      <SkillCommands />
    </div>
  );
}

function Restricted() {
  return (
    <div class="card">
      <div class="card-title">
        <Icon name="shield" />
        <span>{t('Restricted Mode: nothing runs until you trust this workspace.')}</span>
      </div>
      <div class="buttons">
        <TrustButton />
      </div>
    </div>
  );
}
