/** Text of skills and models inside Markdown: shown as it is, no link, no image, no list of its own. */
import * as vscode from 'vscode';

/** Every sign that Markdown could read gets a backslash. Blanks stay blanks, so that a narrow view can still break the line at them. */
export const escapeMarkdown = (text: string): string => text.replace(/[!-/:-@[-`{-~]/g, '\\$&');

/** The same as a value for the editor. */
export const plainMarkdown = (text: string): vscode.MarkdownString =>
  new vscode.MarkdownString(escapeMarkdown(text));
