/** The log of the conversation: its runs, the welcome before the first one, and the way back to its end. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Following, followEnd } from './followEnd.ts';
import { Icon } from './icons.tsx';
import { RunView, Unchanged } from './runView.tsx';
import type { Run } from './state.ts';
import { chat, conversationId, pending } from './store.ts';
import { Welcome } from './welcome.tsx';

const drawRun = (run: Run) => <RunView run={run} />;

export function Conversation() {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follower = useRef<Following>(null);
  const [following, setFollowing] = useState(true);
  useEffect(() => {
    follower.current = followEnd(scroller.current!, content.current!, setFollowing);
    return () => follower.current?.dispose();
  }, []);
  useEffect(() => {
    if (pending.value) follower.current?.jump();
  }, [pending.value]);
  const { runs } = chat.value;
  return (
    <div class="conversation">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <div class="scroller" ref={scroller} role="log" aria-label="Conversation" aria-live="off" tabIndex={0}>
        <div class="content" ref={content}>
          {runs.length === 0 && !pending.value && <Welcome />}
          {runs.map((run, index) => (
            // Runs are only ever added behind the others, so a place is a name.
            <Unchanged key={`${conversationId.value} ${index}`} of={run} draw={drawRun} />
          ))}
          {pending.value && <div class="line activity">Sending…</div>}
        </div>
      </div>
      {!following && (
        <button type="button" class="jump" onClick={() => follower.current?.jump()}>
          <Icon name="down" />
          Jump to latest
        </button>
      )}
    </div>
  );
}
