/** What is wrong in a file of settings or in a skill, and the edit that fixes it. */

/** Replaces `length` characters at `offset` by `text`; counted in UTF-16 units of the file without its byte order mark. */
export interface TextEdit {
  offset: number;
  length: number;
  text: string;
}

/** A defect in a file of the user, with what to do about it; never an exception. Lines count from 1. */
export interface Diagnostic {
  severity: 'error' | 'warning' | 'info';
  /** Stable and greppable, for example `frontmatter-unclosed`. */
  code: string;
  message: string;
  file: string;
  line: number;
  /** What to do about it, in words. */
  fix?: string;
  /** The same as a change that a program can make. */
  edit?: TextEdit;
}
