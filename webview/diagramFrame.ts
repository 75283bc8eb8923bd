/**
 * Draws diagrams; the only file that imports Mermaid. It is a program of its own, for a frame without an origin: a diagram that breaks out
 * of Mermaid finds neither the page nor the network, and one that takes too long ends with its frame.
 */
import mermaid from 'mermaid';

/** What the page asks for. `theme` is the name of one of Mermaid's, and `colors` are for its theme `base`. */
export interface DiagramQuestion {
  id: number;
  source: string;
  theme: 'default' | 'dark' | 'base';
  colors: Readonly<Record<string, string | boolean>>;
}

export type DiagramAnswer = { id: number; svg: string } | { id: number; problem: string } | { id: 'ready' };

/** The page's policy applies here too and ignores inline styles. These set the same styles by script. */
const sheet = new CSSStyleSheet();
document.adoptedStyleSheets = [sheet];
const heldStyle = 'held-style';
const svgSpace = 'http://www.w3.org/2000/svg';

function takeStyles(): void {
  const { setAttribute } = Element.prototype;
  Element.prototype.setAttribute = function (this: Element, name: string, value: string) {
    const style = name === 'style' ? (this as Partial<ElementCSSInlineStyle>).style : undefined;
    if (style) style.cssText = value;
    else setAttribute.call(this, name, value);
  };
  const createElement = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    if (name !== 'style') return createElement(name, options);
    const held = document.createElementNS(svgSpace, 'desc');
    held.setAttribute('class', heldStyle);
    return held;
  }) as typeof document.createElement;
  const { insertBefore } = Node.prototype;
  Node.prototype.insertBefore = function <T extends Node>(this: Node, node: T, before: Node | null): T {
    if (node instanceof Element && node.classList.contains(heldStyle))
      sheet.replaceSync(node.textContent ?? '');
    return insertBefore.call(this, node, before) as T;
  };
  // Mermaid's own cleaning reads the finished drawing once more, where a style would be refused again.
  const { parseFromString } = DOMParser.prototype;
  DOMParser.prototype.parseFromString = function (
    this: DOMParser,
    text: string,
    type: DOMParserSupportedType,
  ) {
    return parseFromString.call(this, String(text).replaceAll(' style=', ' data-held-style='), type);
  };
}

/** Returns the drawing as a picture of its own: XML, and with its styles again. */
const whole = (svg: string): string =>
  svg
    .replace(new RegExp(`<desc class="${heldStyle}">([^<]*)</desc>`), '<style>$1</style>')
    .replaceAll(' data-held-style=', ' style=')
    .replaceAll('&nbsp;', '&#160;')
    .replace(/^<svg(?=[^>]*>)(?![^>]*xmlns:xlink)/, '<svg xmlns:xlink="http://www.w3.org/1999/xlink"');

const fixed = [
  'secure',
  'securityLevel',
  'startOnLoad',
  'maxTextSize',
  'maxEdges',
  'layout',
  'look',
  'htmlLabels',
];
const fixedLooks = [
  'theme',
  'themeCSS',
  'themeVariables',
  'fontFamily',
  'altFontFamily',
  'suppressErrorRendering',
];

async function draw({ id, source, theme, colors }: DiagramQuestion): Promise<DiagramAnswer> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: 'strict',
    htmlLabels: false,
    suppressErrorRendering: true,
    layout: 'dagre',
    maxTextSize: 20_000,
    maxEdges: 200,
    theme,
    themeVariables: colors,
    // A diagram's own lines change none of these.
    secure: [...fixed, ...fixedLooks],
  });
  try {
    const { svg } = await mermaid.render(`diagram${id}`, source);
    return { id, svg: whole(svg) };
  } catch (error) {
    return { id, problem: error instanceof Error ? error.message : String(error) };
  }
}

takeStyles();
const say = (answer: DiagramAnswer): void => parent.postMessage(answer, '*');
addEventListener('message', event => {
  if (event.source === parent) void draw(event.data as DiagramQuestion).then(say);
});
say({ id: 'ready' });
