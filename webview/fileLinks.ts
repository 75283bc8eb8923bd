/**
 * Turns the paths in an answer into links, and its local images into pictures. Only what the host has found in the folders of the person
 * becomes either; a model may name anything.
 */
import { post, t } from './host.ts';

/** A file as a text names it, with the lines that are meant. */
export interface FilePlace {
  path: string;
  line?: number;
  endLine?: number;
}

/** In characters. */
const longestPath = 300;
const lines = /(?::(\d{1,7})(?:-(\d{1,7})|:\d{1,5})?|#L(\d{1,7})(?:-L?(\d{1,7}))?)$/;

/** Returns the place that all of the text names: `src/a.ts:12-20`, `C:\a.ts`, `file:///a.ts#L3`. Undefined if it cannot be a file's. */
export function placeIn(text: string): FilePlace | undefined {
  if (text.length > longestPath || /[\n\r\t<>"|?*`;=${}\0]/.test(text)) return undefined;
  const found = lines.exec(text);
  const path = localPath(found ? text.slice(0, found.index) : text);
  // Two slashes name another machine.
  if (!path || /^[\\/]{2}|:\/\/|[\\/]$/.test(path) || /:/.test(path.slice(2))) return undefined;
  if (!/[\\/]|\.\w{1,12}$/.test(path) || /^[.\\/\s]*$/.test(path)) return undefined;
  const line = Number(found?.[1] ?? found?.[3] ?? 0);
  const endLine = Number(found?.[2] ?? found?.[4] ?? 0);
  return { path, ...(line > 0 && { line }), ...(endLine >= line && line > 0 && { endLine }) };
}

function localPath(text: string): string | undefined {
  if (!/^file:/i.test(text)) return text;
  const [, rest] = /^file:\/\/\/([^/].*)$/i.exec(text) ?? [];
  if (rest === undefined) return undefined;
  try {
    const path = decodeURIComponent(rest);
    return /^[a-z]:/i.test(path) ? path : `/${path}`;
  } catch {
    return undefined;
  }
}

/** A path within words: with a folder before it, or with a line behind it. */
const inProse =
  /(?<![\w@+.:/\\-])(?:(?:[A-Za-z]:[\\/]|\.{1,2}[\\/]|\/)?(?:[\w@+.-]+[\\/])+[\w@+.-]*\w(?::\d{1,7}(?:-\d{1,7}|:\d{1,5})?|#L\d{1,7}(?:-L?\d{1,7})?)?|[\w@+-][\w@+.-]*\.[A-Za-z]\w{0,9}(?::\d{1,7}(?:-\d{1,7})?|#L\d{1,7}(?:-L?\d{1,7})?))(?![\w/\\])/g;

/** Returns the parts of a text that may be paths. */
export const pathsInProse = (text: string): { at: number; text: string }[] =>
  [...text.matchAll(inProse)].map(({ 0: found, index }) => ({ at: index, text: found }));

/** Maximum number of paths in one block, and in all blocks of the view. */
const mostInBlock = 100;
const mostPaths = 3_000;
const mostPictures = 40;
const mostAtOnce = 50;

/** What the host has said of a path, or undefined while it has not. */
const known = new Map<string, boolean | undefined>();
const waiting = new Map<string, { element: HTMLElement; place: FilePlace }[]>();
const pictures = new Map<string, HTMLElement[]>();
let unasked: string[] = [];
let asked = 0;

/** Links the paths in `nodes`, at once or when the host has found them. `asks` is false for a text that still grows. */
export function linkFiles(nodes: ParentNode, asks: boolean): void {
  if (asks) markProse(nodes);
  const marked = [...nodes.querySelectorAll<HTMLElement>('code:not([class]), span.path')].slice(
    0,
    mostInBlock,
  );
  for (const element of marked) {
    const place = placeIn(element.localName === 'code' ? (element.textContent ?? '') : element.title);
    if (!place || element.closest('a, pre, summary')) continue;
    if (known.get(place.path)) link(element, place);
    else if (asks && known.get(place.path) === undefined) ask(element, place);
  }
  if (asks)
    for (const element of nodes.querySelectorAll<HTMLElement>('span.local-image')) askPicture(element);
}

/** Wraps each path of the text in an element. */
function markProse(nodes: ParentNode): void {
  for (const block of nodes.querySelectorAll('p, li, td, th, h1, h2, h3, h4, h5, h6')) {
    for (const text of [...block.childNodes]) {
      if (!(text instanceof Text)) continue;
      for (const { at, text: path } of pathsInProse(text.data).slice(0, mostInBlock).reverse()) {
        const span = document.createElement('span');
        span.className = 'path';
        span.title = path;
        const rest = text.splitText(at);
        rest.splitText(path.length);
        rest.replaceWith(span);
        span.append(path);
      }
    }
  }
}

function ask(element: HTMLElement, place: FilePlace): void {
  const all = waiting.get(place.path);
  if (all) all.push({ element, place });
  else if (asked < mostPaths) {
    asked += 1;
    waiting.set(place.path, [{ element, place }]);
    if (unasked.length === 0) setTimeout(askHost, 100);
    unasked.push(place.path);
  }
}

function askHost(): void {
  const paths = unasked.slice(0, mostAtOnce);
  unasked = unasked.slice(mostAtOnce);
  post({ type: 'look_up_files', paths });
  if (unasked.length > 0) setTimeout(askHost, 100);
}

function askPicture(element: HTMLElement): void {
  const place = placeIn(element.title);
  if (!place) return;
  const all = pictures.get(place.path);
  if (all) all.push(element);
  else if (pictures.size < mostPictures) {
    pictures.set(place.path, [element]);
    post({ type: 'read_image', path: place.path });
  }
}

/** Takes the host's answer: which of the paths that it was asked about are files that may be opened. */
export function takeFilesFound(asked: readonly string[], found: readonly string[]): void {
  for (const path of asked) {
    const isThere = found.includes(path);
    known.set(path, isThere);
    for (const { element, place } of isThere ? (waiting.get(path) ?? []) : []) link(element, place);
    waiting.delete(path);
  }
}

/** Takes a local image as a `data:` address, or why there is none. It can only be shown: a picture runs and loads nothing. */
export function takeImage(path: string, data: string | undefined, problem: string | undefined): void {
  for (const element of pictures.get(path) ?? []) {
    if (data !== undefined) {
      const picture = new Image();
      picture.src = data;
      picture.alt = element.dataset['alt'] || element.textContent || path;
      element.replaceChildren(picture);
    } else if (problem !== undefined) element.append(` ${problem}`);
  }
  pictures.set(path, []);
}

/** Makes the element's content a link that opens the file. */
function link(element: HTMLElement, { path, line, endLine }: FilePlace): void {
  if (element.parentElement?.localName === 'a') return;
  element.querySelector('.path-address')?.remove();
  const anchor = document.createElement('a');
  anchor.href = '#';
  anchor.className = 'file-place';
  anchor.title = line === undefined ? t('Open {0}', path) : t('Open {0}, line {1}', path, line);
  Object.assign(anchor.dataset, { path, ...(line && { line }), ...(endLine && { endLine }) });
  element.replaceWith(anchor);
  anchor.append(element);
}

/** Opens the file of a pressed link. Returns false for a link that is not a file's. */
export function openPlace(anchor: Element): boolean {
  const { path, line, endLine } = (anchor as HTMLElement).dataset;
  if (path === undefined || !anchor.classList.contains('file-place')) return false;
  post({
    type: 'open_file',
    path,
    ...(line && { line: Number(line) }),
    ...(endLine && { endLine: Number(endLine) }),
  });
  return true;
}
