/** Which lines of a text have come and gone, for the figures on a card and for a diff on the command line. */

/** How many lines a write has brought and taken. */
export interface LineCounts {
  added: number;
  removed: number;
}

/** Lines end with their line break, so that a last line without one is another line than one with it. */
interface LineEdit {
  kind: ' ' | '-' | '+';
  line: string;
}

/** Texts that differ more than this are told as one block out and one block in, so that no text makes it slow. */
const mostSteps = 500;
/** Unchanged lines that stand around a change. */
const around = 3;

export function countLines(before: string, after: string): LineCounts {
  const edits = lineEdits(before, after);
  return {
    added: edits.filter(({ kind }) => kind === '+').length,
    removed: edits.filter(({ kind }) => kind === '-').length,
  };
}

/** As `diff -u` writes it, without a heading; empty for the same text. */
export function unifiedDiff(before: string, after: string): string {
  const edits = lineEdits(before, after);
  const near = edits.map((_, index) =>
    edits.slice(Math.max(0, index - around), index + around + 1).some(({ kind }) => kind !== ' '),
  );
  let [oldLine, newLine] = [1, 1];
  let hunk: LineEdit[] = [];
  const out: string[] = [];
  const close = (): void => {
    if (hunk.length === 0) return;
    const [ofOld, ofNew] = [hunk.filter(isOld).length, hunk.filter(isNew).length];
    // An empty side is named by the line before it.
    const start = (line: number, count: number): number => (count === 0 ? line - 1 : line - count);
    const oldPart = `${start(oldLine, ofOld)},${ofOld}`;
    const newPart = `${start(newLine, ofNew)},${ofNew}`;
    out.push(`@@ -${oldPart} +${newPart} @@\n`, ...hunk.map(printed));
    hunk = [];
  };
  for (const [index, edit] of edits.entries()) {
    if (!near[index]) close();
    if (isOld(edit)) oldLine++;
    if (isNew(edit)) newLine++;
    if (near[index]) hunk.push(edit);
  }
  close();
  return out.join('');
}

const isOld = ({ kind }: LineEdit): boolean => kind !== '+';
const isNew = ({ kind }: LineEdit): boolean => kind !== '-';

const printed = ({ kind, line }: LineEdit): string =>
  line.endsWith('\n') ? kind + line : `${kind}${line}\n\\ No newline at end of file\n`;

function lineEdits(before: string, after: string): LineEdit[] {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  const shortest = Math.min(old.length, fresh.length);
  let head = 0;
  while (head < shortest && old[head] === fresh[head]) head++;
  let tail = 0;
  while (tail < shortest - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++;
  const same = (line: string): LineEdit => ({ kind: ' ', line });
  return [
    ...old.slice(0, head).map(same),
    ...middleEdits(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...old.slice(old.length - tail).map(same),
  ];
}

const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** The shortest way from one list to the other, after Myers (1986): the furthest point on each diagonal, one step more at a time. */
function middleEdits(old: readonly string[], fresh: readonly string[]): LineEdit[] {
  const furthest = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let steps = 0; steps <= Math.min(mostSteps, old.length + fresh.length); steps++) {
    trace.push(new Map(furthest));
    for (let diagonal = -steps; diagonal <= steps; diagonal += 2) {
      let x = fromAbove(furthest, diagonal, steps)
        ? furthest.get(diagonal + 1)!
        : furthest.get(diagonal - 1)! + 1;
      while (x < old.length && x - diagonal < fresh.length && old[x] === fresh[x - diagonal]) x++;
      furthest.set(diagonal, x);
      if (x >= old.length && x - diagonal >= fresh.length) return wayBack(trace, old, fresh);
    }
  }
  return [
    ...old.map(line => ({ kind: '-', line }) as const),
    ...fresh.map(line => ({ kind: '+', line }) as const),
  ];
}

/** Whether the step onto the diagonal adds a line, and does not take one away. */
function fromAbove(furthest: ReadonlyMap<number, number>, diagonal: number, steps: number): boolean {
  if (diagonal === -steps) return true;
  return diagonal !== steps && furthest.get(diagonal - 1)! < furthest.get(diagonal + 1)!;
}

function wayBack(
  trace: readonly Map<number, number>[],
  old: readonly string[],
  fresh: readonly string[],
): LineEdit[] {
  const edits: LineEdit[] = [];
  let [x, y] = [old.length, fresh.length];
  for (let steps = trace.length - 1; steps >= 0; steps--) {
    const furthest = trace[steps]!;
    const diagonal = x - y;
    const adds = fromAbove(furthest, diagonal, steps);
    const fromX = furthest.get(adds ? diagonal + 1 : diagonal - 1)!;
    const fromY = fromX - (adds ? diagonal + 1 : diagonal - 1);
    while (x > Math.max(0, fromX) && y > Math.max(0, fromY)) {
      edits.push({ kind: ' ', line: old[--x]! });
      y--;
    }
    if (steps === 0) break;
    if (adds) edits.push({ kind: '+', line: fresh[--y]! });
    else edits.push({ kind: '-', line: old[--x]! });
  }
  return edits.reverse();
}
