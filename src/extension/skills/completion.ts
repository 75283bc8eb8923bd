/** Provides completion and hover in the frontmatter of a SKILL.md. */
import * as vscode from 'vscode';
import { toolAliases } from '../../engine/skills/allowedTools.ts';
import {
  type FrontmatterKey,
  frontmatterKeys,
  frontmatterLines,
  isSkillFile,
  keysIn,
} from './frontmatterPlace.ts';

const toolNames = Object.entries(toolAliases);

export const completionProvider: vscode.CompletionItemProvider = {
  provideCompletionItems(document, position) {
    const lines = linesOf(document);
    const place = lines && frontmatterLines(lines);
    if (!place || position.line < place.first || position.line >= place.end) return undefined;
    const before = (lines[position.line] ?? '').slice(0, position.character);
    // Keys that the editor offers itself would be listed twice.
    const offered = frontmatterKeys.filter(key => document.languageId !== 'skill' || !key.editorOffers);
    if (/^[\w-]*$/.test(before)) return keyItems(offered, lines, position, before.length);
    const [, key = ''] = /^([\w-]+):\s*/.exec(before) ?? [];
    if (key === 'allowed-tools') return toolItems();
    const values = offered.find(({ name }) => name === key)?.values ?? [];
    return values.map(value => new vscode.CompletionItem(value, vscode.CompletionItemKind.Value));
  },
};

/** Returns every key that the file does not have yet, most important first. */
function keyItems(
  offered: readonly FrontmatterKey[],
  lines: readonly string[],
  position: vscode.Position,
  typed: number,
): vscode.CompletionItem[] {
  const used = new Set(
    keysIn(lines)
      .filter(({ line }) => line !== position.line)
      .map(({ name }) => name),
  );
  const range = new vscode.Range(position.translate(0, -typed), position);
  // An existing colon is not inserted again.
  const hasColon = (lines[position.line] ?? '').slice(position.character).includes(':');
  return offered
    .filter(({ name }) => !used.has(name))
    .map(({ name, says, value }, index) => {
      const item = new vscode.CompletionItem(name, vscode.CompletionItemKind.Property);
      item.documentation = new vscode.MarkdownString(says);
      item.insertText = hasColon ? name : new vscode.SnippetString(`${name}:${value}`);
      item.range = range;
      item.sortText = String(index).padStart(2, '0');
      return item;
    });
}

function toolItems(): vscode.CompletionItem[] {
  return toolNames.map(([name, aliases]) => {
    const item = new vscode.CompletionItem(name, vscode.CompletionItemKind.Function);
    item.detail = `elsewhere ${aliases.slice(0, 2).join(', ')}`;
    return item;
  });
}

export const hoverProvider: vscode.HoverProvider = {
  provideHover(document, position) {
    const lines = linesOf(document);
    const key = lines && keysIn(lines).find(({ line }) => line === position.line);
    const known = frontmatterKeys.find(({ name }) => name === key?.name);
    if (!known || position.character > known.name.length) return undefined;
    const range = new vscode.Range(position.line, 0, position.line, known.name.length);
    return new vscode.Hover(new vscode.MarkdownString(`**${known.name}**: ${known.says}`), range);
  },
};

/** Returns the lines, or undefined if the file is not a skill. */
function linesOf(document: vscode.TextDocument): string[] | undefined {
  return isSkillFile(document.uri.path) ? document.getText().split(/\r?\n/) : undefined;
}
