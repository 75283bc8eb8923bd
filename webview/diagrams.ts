/** Has diagrams drawn in a frame without an origin, one after the other. It loads with the first diagram and imports nothing of the page. */
import type { DiagramAnswer, DiagramQuestion } from './diagramFrame.ts';
import program from './diagramFrame.ts?text';

/** A longer source is no diagram that anybody reads. In characters. */
const longestSource = 20_000;
const longestDrawing = 500_000;
/** Size of the largest drawing, in CSS pixels. */
const largestSide = 16_000;
/** A wide drawing is not made smaller than this, in CSS pixels. */
const smallestWidth = 460;
/** The first one starts the frame, which takes longer on a busy machine. In milliseconds. */
const startLimit = 30_000;
const drawLimit = 6_000;
/** The frame holds some 50 MB. It ends when no diagram came for so long. In milliseconds. */
const idleLimit = 60_000;

let frame: { window: Window; element: HTMLIFrameElement } | undefined;
let idle: ReturnType<typeof setTimeout> | undefined;
let waiting: Promise<unknown> = Promise.resolve();
let drawn = 0;

/** Returns the diagram as a picture, or undefined if it is not valid, too large or takes too long. */
export function drawDiagram(source: string): Promise<HTMLImageElement | undefined> {
  const next = waiting.then(() => (source.length > longestSource ? undefined : draw(source)));
  waiting = next.catch(() => undefined);
  return next.catch(() => undefined);
}

async function draw(source: string): Promise<HTMLImageElement | undefined> {
  clearTimeout(idle);
  frame ??= await startFrame();
  const id = ++drawn;
  const answered = answerOf(frame.window, id, drawLimit);
  frame.window.postMessage({ id, source, ...looks() } satisfies DiagramQuestion, '*');
  const answer = await answered;
  if (answer) idle = setTimeout(endFrame, idleLimit);
  else endFrame();
  return answer && 'svg' in answer && typeof answer.svg === 'string' ? pictureOf(answer.svg) : undefined;
}

async function startFrame(): Promise<typeof frame & object> {
  const element = document.createElement('iframe');
  element.setAttribute('sandbox', 'allow-scripts');
  element.className = 'diagram-frame';
  element.tabIndex = -1;
  element.setAttribute('aria-hidden', 'true');
  const nonce = document.querySelector<HTMLScriptElement>('script[nonce]')?.nonce ?? '';
  const script = program.replace(/<\/(?=script)/gi, '<\\/').replaceAll('<!--', '\\x3c!--');
  element.srcdoc = `<!DOCTYPE html><meta charset="utf-8"><body><script nonce="${nonce}">${script}</script>`;
  document.body.append(element);
  const window = element.contentWindow!;
  const isReady = await answerOf(window, 'ready', startLimit);
  if (isReady) return { window, element };
  element.remove();
  throw new Error('The frame for diagrams did not start.');
}

function endFrame(): void {
  frame?.element.remove();
  frame = undefined;
}

/** Returns the frame's answer with this id, or undefined if it takes too long. */
function answerOf(from: Window, id: number | 'ready', limit: number): Promise<DiagramAnswer | undefined> {
  return new Promise(resolve => {
    const done = (answer?: DiagramAnswer): void => {
      clearTimeout(timer);
      removeEventListener('message', hear);
      resolve(answer);
    };
    const hear = ({ source, data }: MessageEvent): void => {
      if (source !== from) return;
      const answer = data as Partial<DiagramAnswer> | null;
      if (answer?.id === id) done(answer as DiagramAnswer);
    };
    const timer = setTimeout(done, limit);
    addEventListener('message', hear);
  });
}

/** A picture runs no script, follows no link and loads nothing, whatever its drawing says. */
async function pictureOf(svg: string): Promise<HTMLImageElement | undefined> {
  const [width = 0, height = 0] = (/ viewBox="[-\d.]+[ ,]+[-\d.]+[ ,]+([\d.]+)[ ,]+([\d.]+)"/.exec(svg) ?? [])
    .slice(1)
    .map(Number);
  const fits = [width, height].every(side => side > 0 && side <= largestSide);
  if (svg.length > longestDrawing || !fits) return undefined;
  const picture = new Image(Math.ceil(width), Math.ceil(height));
  // A drawing that is much smaller than it was meant cannot be read. It scrolls in its frame.
  picture.style.minWidth = `${Math.min(Math.ceil(width), smallestWidth)}px`;
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await picture.decode();
  return picture;
}

/** Mermaid's own colours for a light and a dark theme, and the editor's for high contrast. */
function looks(): Pick<DiagramQuestion, 'theme' | 'colors'> {
  const { classList } = document.body;
  const isDark = classList.contains('vscode-dark') || classList.contains('vscode-high-contrast');
  const fontFamily = getComputedStyle(document.body).fontFamily;
  const isContrast =
    classList.contains('vscode-high-contrast') || classList.contains('vscode-high-contrast-light');
  if (!isContrast) return { theme: isDark ? 'dark' : 'default', colors: { fontFamily } };
  const [ink, ground] =
    isDark && !classList.contains('vscode-high-contrast-light')
      ? ['#ffffff', '#000000']
      : ['#000000', '#ffffff'];
  const named = (names: string[], value: string) => Object.fromEntries(names.map(name => [name, value]));
  return {
    theme: 'base',
    colors: {
      fontFamily,
      darkMode: ground === '#000000',
      ...named(
        ['background', 'primaryColor', 'secondaryColor', 'tertiaryColor', 'mainBkg', 'noteBkgColor'],
        ground,
      ),
      ...named(
        ['edgeLabelBackground', 'clusterBkg', 'actorBkg', 'labelBoxBkgColor', 'activationBkgColor'],
        ground,
      ),
      ...named(
        ['primaryTextColor', 'secondaryTextColor', 'tertiaryTextColor', 'textColor', 'lineColor'],
        ink,
      ),
      ...named(['primaryBorderColor', 'secondaryBorderColor', 'tertiaryBorderColor', 'nodeBorder'], ink),
      ...named(['noteTextColor', 'noteBorderColor', 'actorBorder', 'actorTextColor', 'signalColor'], ink),
      ...named(['signalTextColor', 'titleColor', 'nodeTextColor', 'actorLineColor', 'clusterBorder'], ink),
    },
  };
}
