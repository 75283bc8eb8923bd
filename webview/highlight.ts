/** Colours code in the languages that answers are mostly written in; other languages stay plain. */
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

/** Colouring more than this (in UTF-16 units) would be felt as a stall. */
const longestCode = 30_000;

/** Lines and gaps that are longer are not written by hand, and the patterns of a language go through them again and again. In characters. */
const longLineOrGap = /[^\n]{501}|\s{501}/;

/** HTML of the coloured code, still to be sanitised, or undefined when it stays plain. */
export function highlight(code: string, language: string): string | undefined {
  if (code.length > longestCode || longLineOrGap.test(code) || !highlighter.getLanguage(language))
    return undefined;
  return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
}
