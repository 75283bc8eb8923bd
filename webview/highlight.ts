/** Colours code. It loads with the first block of code that has a language, and imports nothing of the page. */
import highlighter from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import markdown from 'highlight.js/lib/languages/markdown';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';

const languages = {
  bash,
  css,
  diff,
  go,
  ini,
  javascript,
  json,
  markdown,
  python,
  rust,
  sql,
  typescript,
  xml,
  yaml,
};
for (const [name, language] of Object.entries(languages)) highlighter.registerLanguage(name, language);

/** Colouring a longer text would be noticed as a stall. In UTF-16 units. */
const longestCode = 30_000;

/** Longer lines and gaps are not written by hand, and a language's patterns scan them repeatedly. In characters. */
const longLineOrGap = /[^\n]{501}|\s{501}/;

/** Returns HTML of the coloured code, not yet sanitised, or undefined if it stays plain. */
export function highlight(code: string, language: string): string | undefined {
  if (code.length > longestCode || longLineOrGap.test(code) || !highlighter.getLanguage(language))
    return undefined;
  return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
}
