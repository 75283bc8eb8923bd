/** Draws formulas; the only file that imports KaTeX. It loads with the first formula and imports nothing of the page. */
import katex from 'katex';

/** A longer formula is not written by hand. In characters. */
const longestFormula = 2_000;

/** More parts than this are not read by anybody, and laying them out takes long. */
const mostNodes = 4_000;

/** Maximum depth of groups: each costs a level of the stack and of the layout. */
const mostGroups = 60;

/**
 * With a definition, a formula of a few words can grow to any size, and what is defined in one would count in others. In an answer
 * that is read they are not needed.
 */
const definition =
  /\\(?:[gex]?def|let|futurelet|global|long|(?:re)?newcommand|providecommand|DeclareMathOperator|char(?=["'`\d]))(?![a-zA-Z])/;

const style = document.createElement('link');
style.rel = 'stylesheet';
style.href = new URL('../formulas.css', import.meta.url).href;
/** Resolves once formulas look as they should, also if their style sheet cannot be read. */
export const isStyled = new Promise<void>(resolve => {
  style.onload = style.onerror = () => resolve();
});
document.head.append(style);

/** Returns the formula as an element, or undefined if it is not valid or too large. `isDisplayed` gives it a line of its own. */
export function drawFormula(tex: string, isDisplayed: boolean): HTMLElement | undefined {
  if (tex.length > longestFormula || definition.test(tex) || depthOf(tex) > mostGroups) return undefined;
  const element = document.createElement('span');
  try {
    katex.render(tex, element, {
      displayMode: isDisplayed,
      throwOnError: true,
      trust: false,
      strict: 'ignore',
      maxSize: 20,
      maxExpand: 200,
      output: 'htmlAndMathml',
    });
  } catch {
    return undefined;
  }
  return element.getElementsByTagName('*').length > mostNodes ? undefined : element;
}

/** Returns how deep groups and fractions nest at most. */
function depthOf(tex: string): number {
  let depth = 0;
  let deepest = 0;
  for (const character of tex) {
    if (character === '{') depth += 1;
    else if (character === '}') depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}
