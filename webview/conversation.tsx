/** The log of the conversation: its runs, the welcome before the first one, and the way back to its end. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Following, followEnd } from './followEnd.ts';
import { Icon } from './icons.tsx';
import type { MarkdownStream } from './markdownBlocks.ts';
import type { Run } from './runItems.ts';
import { Nearness, NearnessContext, RunPlace } from './runPlace.tsx';
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
