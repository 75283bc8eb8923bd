/**
 * Draws what needs a library that loads on first use: the colours of code, formulas and diagrams. Until then, and where something cannot
 * be drawn, its source is shown.
 */
import { beginningOf } from '@telos/protocol/text';
import { t } from './host.ts';
import { sanitize } from './markdown.ts';

/** Colours a complete text when the browser is idle. `isStill` says whether the element still shows that text. */
export function colourLater(code: HTMLElement, text: string, language: string, isStill: () => boolean): void {
  requestIdleCallback(
    async () => {
      const { highlight } = await import('./highlight.ts');
      const html = highlight(text, language.toLowerCase());
      if (html !== undefined && isStill()) code.replaceChildren(sanitize(html));
    },
    { timeout: 2_000 },
  );
}

// ---- Formulas ----

/** Drawn formulas by their source, or null for one that cannot be drawn: an open paragraph is parsed again with each frame. */
const formulas = new Map<string, HTMLElement | null>();
const mostFormulas = 1_000;
const undrawn: HTMLElement[] = [];

/** Replaces the sources of formulas, which `markdown.ts` has marked, at once or when the browser is idle. */
export function drawFormulas(nodes: ParentNode): void {
  for (const source of nodes.querySelectorAll<HTMLElement>('code.formula')) {
    if (putFormula(source)) continue;
    if (undrawn.length === 0) requestIdleCallback(drawUndrawn, { timeout: 500 });
    undrawn.push(source);
  }
}

/** Returns false for a formula that was not drawn yet. */
function putFormula(source: HTMLElement): boolean {
  const drawn = formulas.get(source.textContent ?? '');
  if (drawn) source.replaceWith(drawn.cloneNode(true));
  return drawn !== undefined;
}

async function drawUndrawn(deadline: IdleDeadline): Promise<void> {
  const { drawFormula, isStyled } = await import('./formulas.ts');
  await isStyled;
  const startedAt = performance.now();
  const isDue = (): boolean => performance.now() - startedAt > Math.min(8, deadline.timeRemaining() + 2);
  while (undrawn.length > 0 && !isDue()) {
    const source = undrawn.shift()!;
    const raw = source.textContent ?? '';
    if (!formulas.has(raw)) {
      const [, tex = ''] = /^(?:\$\$?|\\[([])([\s\S]*?)(?:\$\$?|\\[)\]])$/.exec(raw) ?? [];
      const isDisplayed = source.classList.contains('displayed');
      const drawn = drawFormula(tex, isDisplayed);
      if (drawn) drawn.className = source.className;
      if (formulas.size >= mostFormulas) formulas.clear();
      formulas.set(raw, drawn ?? null);
    }
    if (source.isConnected) putFormula(source);
  }
  if (undrawn.length > 0) requestIdleCallback(drawUndrawn, { timeout: 500 });
}

// ---- Diagrams ----

/** Blocks of code whose diagram is drawn when they come into sight. */
const sources = new Map<Element, string>();
const sight = new IntersectionObserver(
  entries => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      sight.unobserve(target);
      void drawBlock(target as HTMLElement);
    }
  },
  { scrollMargin: '600px' } as IntersectionObserverInit,
);

/** Shows the diagram of a block in place of its source, once the block is in sight. */
export function drawDiagramLater(block: HTMLElement, source: string): void {
  sources.set(block, source);
  sight.observe(block);
}

async function drawBlock(block: HTMLElement): Promise<void> {
  const source = sources.get(block);
  if (source === undefined || !block.isConnected) return;
  const { drawDiagram } = await import('./diagrams.ts');
  const picture = await drawDiagram(source);
  if (!picture || !block.isConnected) return;
  picture.alt = t('Diagram: {0}', beginningOf(source.trim().split('\n', 1)[0]!, 100));
  const frame = document.createElement('div');
  frame.className = 'diagram';
  frame.tabIndex = 0;
  frame.append(picture);
  block.querySelector('.diagram')?.remove();
  block.querySelector('pre')?.before(frame);
  if (!block.querySelector('.code-action.source')) showSourceButton(block);
}

function showSourceButton(block: HTMLElement): void {
  block.classList.add('drawn');
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'code-action source';
  button.textContent = t('Source');
  button.title = t('Shows the source of the diagram');
  button.setAttribute('aria-pressed', 'false');
  button.addEventListener('click', () => {
    const isDrawn = block.classList.toggle('drawn');
    button.setAttribute('aria-pressed', String(!isDrawn));
  });
  block.querySelector('.code-actions')?.prepend(button);
}

/** A diagram has the colours of the theme in which it was drawn. */
const themeOf = (): string =>
  /vscode-(?:light|dark|high-contrast(?:-light)?)\b/.exec(document.body.className)?.[0] ?? '';
let theme = themeOf();
new MutationObserver(() => {
  if (theme === themeOf()) return;
  theme = themeOf();
  for (const block of sources.keys()) {
    if (block.isConnected) sight.observe(block);
    else sources.delete(block);
  }
}).observe(document.body, { attributeFilter: ['class'] });
