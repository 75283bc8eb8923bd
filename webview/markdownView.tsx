/** Gives a Markdown stream a place in the page. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { MarkdownStream } from './markdownBlocks.ts';
import { MarkdownSurface } from './markdownSurface.ts';

export function MarkdownView({ markdown }: { markdown: MarkdownStream }) {
  const element = useRef<HTMLDivElement>(null);
  const surface = useRef<MarkdownSurface>(null);
  useLayoutEffect(() => {
    surface.current ??= new MarkdownSurface(element.current!);
    surface.current.update(markdown);
  }, [markdown]);
  useEffect(() => () => surface.current?.dispose(), []);
  return <div class="markdown" ref={element} />;
}
