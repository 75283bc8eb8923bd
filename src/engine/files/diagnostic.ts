/** Defines the diagnostics of settings files and skills, and the edits that fix them. */

/** Replaces `length` characters at `offset` with `text`. Counted in UTF-16 units of the file without its byte order mark. */
export interface TextEdit {
  offset: number;
  length: number;
  text: string;
}

/** A defect in a file of the user, with its fix. Never an exception. Lines count from 1. */
export interface Diagnostic {
  severity: 'error' | 'warning' | 'info';
  /** Stable and searchable, for example `frontmatter-unclosed`. */
  code: string;
  message: string;
  file: string;
  line: number;
  /** The fix, in words. */
  fix?: string;
  /** The same fix as a change that a program can make. */
  edit?: TextEdit;
}
