/** Escapes text of skills and models for Markdown. It is shown literally, without links, images or lists. */
import * as vscode from 'vscode';

/**
 * Puts a backslash before every character with a meaning in Markdown. Spaces stay spaces, so that a narrow view can
 * still wrap the line.
 */
export const escapeMarkdown = (text: string): string => text.replace(/[!-/:-@[-`{-~]/g, '\\$&');

/** Returns the escaped text as a value for the editor. */
export const plainMarkdown = (text: string): vscode.MarkdownString =>
  new vscode.MarkdownString(escapeMarkdown(text));
