/** Marks in the margin of a story's file what each of its boxes has come to. Loads when such a file is shown. */

import { boxLines } from '@telos/plans/state';
import * as vscode from 'vscode';
import { escapeMarkdown, plainLabel } from '../base/labels.ts';
import { isAtWork, reasonLabel, type StoryNode } from './planItem.ts';

type Mark = 'passed' | 'accepted' | 'running' | 'needs_you' | 'failed';

/** A shape of its own for each, for who cannot tell the colours apart, and the colours on light and on dark. */
const looks: Readonly<Record<Mark, readonly [shape: string, light: string, dark: string]>> = {
  passed: ['<circle cx="8" cy="8" r="6.3"/><path d="m5.2 8.2 2 2 3.6-4.2"/>', '#2a7e3b', '#73c991'],
  accepted: ['<path d="m3.2 8.6 3.2 3.2 6.4-7.4"/>', '#2a7e3b', '#73c991'],
  running: ['<path d="M5 3.2v9.6L12.6 8z"/>', '#0063d3', '#59a4f9'],
  needs_you: ['<path d="M8 2.6v6.2"/><path d="M8 12.6v.5"/>', '#8a5a00', '#e2b340'],
  failed: [
    '<circle cx="8" cy="8" r="6.3"/><path d="m5.8 5.8 4.4 4.4M10.2 5.8l-4.4 4.4"/>',
    '#c4232b',
    '#f88070',
  ],
};

export class PlanMarks implements vscode.Disposable {
  readonly #types = new Map<Mark, vscode.TextEditorDecorationType>();
  /** Says over the whole line what its mark means. */
  readonly #words = vscode.window.createTextEditorDecorationType({});

  /** Draws the marks of the story that the editor shows. */
  draw(editor: vscode.TextEditor, node: StoryNode): void {
    const found = new Map<Mark, vscode.Range[]>();
    const words: vscode.DecorationOptions[] = [];
    for (const [number, line] of boxLines(editor.document.getText())) {
      const mark = markOf(node, number);
      if (!mark) continue;
      // A long line is shown as several, of which the first has the mark.
      found.set(mark, [...(found.get(mark) ?? []), new vscode.Range(line, 0, line, 0)]);
      words.push({ range: editor.document.lineAt(line).range, hoverMessage: hoverOf(node, mark) });
    }
    for (const mark of Object.keys(looks) as Mark[]) {
      const ranges = found.get(mark) ?? [];
      if (ranges.length > 0 || this.#types.has(mark)) editor.setDecorations(this.#typeOf(mark), ranges);
    }
    editor.setDecorations(this.#words, words);
  }

  dispose(): void {
    for (const type of [this.#words, ...this.#types.values()]) type.dispose();
  }

  #typeOf(mark: Mark): vscode.TextEditorDecorationType {
    const known = this.#types.get(mark);
    if (known) return known;
    const [shape, light, dark] = looks[mark];
    const type = vscode.window.createTextEditorDecorationType({
      gutterIconSize: 'contain',
      light: { gutterIconPath: picture(shape, light) },
      dark: { gutterIconPath: picture(shape, dark) },
    });
    this.#types.set(mark, type);
    return type;
  }
}

function picture(shape: string, colour: string): vscode.Uri {
  const line = `fill="none" stroke="${colour}" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16" ${line}>${shape}</svg>`;
  return vscode.Uri.parse(`data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`);
}

/** Undefined for a box that nothing was done about yet. */
function markOf(node: StoryNode, number: number): Mark | undefined {
  const { passed, accepted, status, open } = node.state;
  if (passed.has(number)) return 'passed';
  if (accepted.has(number) || status === 'accepted') return 'accepted';
  if (status === 'failed' || status === 'needs_you') return status;
  return isAtWork(node) && open?.item === number ? 'running' : undefined;
}

function hoverOf({ state: { why, lastDenial } }: StoryNode, mark: Mark): vscode.MarkdownString {
  const { t } = vscode.l10n;
  const words: Readonly<Record<Mark, string>> = {
    passed: t('passed'),
    accepted: t('accepted by you'),
    running: t('Telos works on this.'),
    needs_you: t('needs input'),
    failed: t('failed'),
  };
  const reason =
    mark === 'failed' || mark === 'needs_you' ? plainLabel(reasonLabel(why ?? lastDenial), 400) : '';
  const text = [words[mark], reason].filter(Boolean).join(': ');
  // A model's text opens no link and loads no image.
  return new vscode.MarkdownString(escapeMarkdown(text));
}
