/** Keeps a long conversation light: a run far from what is seen gives its place in the page to an empty box of the same height. */
import { type ComponentChild, createContext } from 'preact';
import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks';

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
