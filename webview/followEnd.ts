/** Keeps a scrolling element at its end while it grows, until the person scrolls up. */

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
