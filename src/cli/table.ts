/** Rows under headings, each column as wide as its widest cell. */
import { columnsOf, terminalLine } from './terminalText.ts';

/** The last column is not cut to fewer columns of the terminal; a row that needs more goes on in the next line. */
const narrowest = 12;

/**
 * Lines of text without a newline at the end. With `width`, in columns of the terminal, the last column is cut so that each row stays on
 * its line.
 */
export function table(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  width?: number,
): string {
  const cells = [headings, ...rows].map(row => row.map(cell => terminalLine(cell)));
  const widths = headings.map((_, column) =>
    cells.reduce((widest, row) => Math.max(widest, columnsOf(row[column] ?? '')), 0),
  );
  const before = widths.slice(0, -1).reduce((sum, columnWidth) => sum + columnWidth + 2, 0);
  const lastWidth = width === undefined ? undefined : Math.max(narrowest, width - before);
  const lines = cells.map(row =>
    row
      .map((cell, column) =>
        column === headings.length - 1 ? terminalLine(cell, lastWidth) : padded(cell, widths[column]),
      )
      .join('  ')
      .trimEnd(),
  );
  return lines.join('\n');
}

function padded(cell: string, width = 0): string {
  return cell + ' '.repeat(Math.max(0, width - columnsOf(cell)));
}
