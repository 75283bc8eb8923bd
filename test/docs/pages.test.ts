/** What README, SECURITY and docs say: their words, lengths, headings and links, and the tests that they name. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generatedPages } from './generate.ts';
import {
  headingsOf,
  linksOf,
  longestStretch,
  outsideCode,
  readPage,
  readPages,
  root,
  sentencesOf,
  shellBlocks,
  wordsIn,
} from './pages.ts';

const pages = readPages();
const made = generatedPages();
/** The text of a page that is made is the program's own. */
const written = pages.filter(({ path }) => !made.has(path));
const store = readPage('media/marketplace.md');
const walkthrough = ['model', 'run', 'selection', 'skills', 'trust'].map(step =>
  readPage(`media/walkthrough/${step}.md`),
);
/** Pages about one thing. The others list pages. */
const subjects = pages.filter(({ path }) => /^docs\/[a-z-]+\.md$/.test(path));

const most = { readme: 900, page: 1_200, sentence: 30, lines: 15, width: 160, security: 40 };

describe('README and docs', () => {
  it('are short', () => {
    for (const page of pages) {
      const limit = page.path === 'README.md' ? most.readme : most.page;
      assert.ok(
        wordsIn(page.text) <= limit,
        `${page.path} has ${wordsIn(page.text)} words; ${limit} at most`,
      );
    }
    const lines = readPage('SECURITY.md').text.trimEnd().split('\n').length;
    assert.ok(lines <= most.security, `SECURITY.md has ${lines} lines; ${most.security} at most`);
    assert.ok(subjects.length >= 12, `docs has ${subjects.length} pages`);
  });

  it('have a changelog with one line for each entry', () => {
    const lines = readPage('CHANGELOG.md').text.split('\n').slice(4);
    for (const line of lines) {
      assert.match(line, /^(?:|#{2,3} .+|- .+[.])$/, 'an entry is one line that begins with a dash');
      assert.ok(line.length <= most.width, `${line.length} characters: ${line}`);
    }
  });

  it('have a heading before anybody loses the thread, and lines that fit a window', () => {
    for (const page of pages) {
      const { lines, from } = longestStretch(page);
      assert.ok(lines <= most.lines, `${page.path}:${from} goes on for ${lines} lines without a heading`);
    }
    for (const { path, text } of written)
      for (const line of outsideCode(text).split('\n'))
        if (!/^\s*(?:\||<|- |\d+\. |!)/.test(line))
          assert.ok(line.length <= most.width, `${path} has a line of ${line.length} characters: ${line}`);
  });

  it('have no long sentence', () => {
    for (const page of [...written, store, ...walkthrough]) {
      for (const sentence of sentencesOf(page)) {
        const words = wordsIn(sentence.replace(/[–·…]/g, ' '));
        assert.ok(words <= most.sentence, `${page.path} has a sentence of ${words} words: ${sentence}`);
      }
    }
  });

  it('say nothing in private words', () => {
    const others = {
      box: /\b(?:un)?box(?:es|ed)?\b/i,
      card: /\bcards?\b/i,
      round: /\brounds?\b/i,
      door: /\bdoors?\b/i,
      floor: /\bfloors?\b/i,
      'what as a noun': /\bwhat(?:ever)?\b(?!.*\?$)(?! for:)/i,
    };
    for (const page of [...written, store, ...walkthrough])
      for (const sentence of sentencesOf(page))
        for (const [name, pattern] of Object.entries(others))
          assert.doesNotMatch(sentence, pattern, `${page.path} uses the private word '${name}': ${sentence}`);
  });

  it('begin with what for, and three commands', () => {
    for (const page of subjects.filter(({ path }) => path !== 'docs/README.md')) {
      assert.match(page.text, /^# .*\n\n(?:<!--.*-->\n\n)?What for: /, page.path);
      const [first = ''] = shellBlocks(page);
      assert.equal(
        first.trimEnd().split('\n').length,
        3,
        `${page.path} begins with other than three commands`,
      );
    }
  });

  it('lead to files, headings and addresses that there are', () => {
    for (const page of [...pages, readPage('CONTRIBUTING.md'), store]) {
      const { inside, outside } = linksOf(page);
      for (const target of inside) {
        const [file = '', anchor] = target.split('#');
        assert.ok(existsSync(join(root, file)), `${page.path} leads to ${file}, which is not there`);
        if (anchor === undefined) continue;
        const there = headingsOf(readPage(file)).map(heading => heading.anchor);
        assert.ok(
          there.includes(anchor),
          `${page.path} leads to ${target}; the headings there are ${there.join(', ')}`,
        );
      }
      for (const address of outside)
        assert.equal(new URL(address).protocol, 'https:', `${page.path}: ${address}`);
    }
  });

  it('are all led to from README', () => {
    const seen = new Set<string>();
    const visit = (path: string): void => {
      if (seen.has(path)) return;
      seen.add(path);
      if (path.endsWith('.md'))
        for (const target of linksOf(readPage(path)).inside) visit(target.split('#')[0] ?? '');
    };
    visit('README.md');
    const lost = pages.filter(({ path }) => !seen.has(path)).map(({ path }) => path);
    assert.deepEqual(lost, []);
  });

  it('name only npm scripts that there are, and the two that a change must pass', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    for (const page of pages)
      for (const [, name = ''] of shellBlocks(page)
        .join('\n')
        .matchAll(/npm (?:run )?(?!ci|run|install|pack)([\w:-]+)/g))
        assert.ok(name in scripts, `${page.path}: ${name}`);
    const last = shellBlocks(readPage('README.md')).at(-1);
    const checked = readPage('.ci/run').text.match(/^npm .*$/gm);
    assert.deepEqual(last?.trimEnd().split('\n'), checked, '.ci/run and the end of README call the same');
  });

  it('have their generated pages as the tables are now', () => {
    const old = [...made].filter(([path, text]) => {
      const file = join(root, path);
      return !existsSync(file) || readFileSync(file, 'utf8') !== text;
    });
    assert.deepEqual(
      old.map(([path]) => path),
      [],
      'These pages are older than the commands or settings: run `npm run docs`.',
    );
  });
});

describe('the rules in docs', () => {
  it('are called as the program calls them', () => {
    const { text } = readPage('docs/permissions-and-sandbox.md');
    const known = Object.keys(
      JSON.parse(readFileSync(join(root, 'src/engine/policy/defaults.json'), 'utf8')),
    );
    const named = [...text.matchAll(/`((?:run|fetch|write|read|card|mcp|mode|policy)\.[a-z-]+)`/g)].map(
      ([, name = '']) => name,
    );
    const isFile = (name: string): boolean => /\.(?:toml|json)$/.test(name);
    const ours = named.filter(name => !isFile(name));
    assert.ok(ours.length > 8);
    for (const name of ours) assert.ok(known.includes(name), `${name} is no rule`);
  });
});

describe('tests that docs name', () => {
  const exists = (test: string): boolean =>
    ['', '.test.ts'].some(end => existsSync(join(root, 'test', `${test}${end}`)));

  it('stand behind every promise of docs/security', () => {
    for (const { path, text } of written.filter(({ path }) => /^docs\/security\/(?!README)/.test(path))) {
      const promises = text
        .replace(/^## Limits\n[\s\S]*/m, '')
        .split('\n')
        .filter(line => line && !/^#/.test(line));
      assert.ok(promises.length > 4, path);
      for (const promise of promises) {
        const [, list = ''] = /^- .* \((`[\w/`, ]+`)\)$/.exec(promise) ?? [];
        const tests = [...list.matchAll(/`([\w/]+)`/g)].map(([, test = '']) => test);
        assert.ok(tests.length > 0, `${path} names no test of: ${promise}`);
        for (const test of tests)
          assert.ok(exists(test), `${path} names the test ${test}, which is not there`);
      }
    }
  });

  it('stand behind every step in the editor', () => {
    for (const { path, text } of pages) {
      for (const [, file = ''] of text.matchAll(/(?<=<!-- Shown by .*)(test\/[\w/]+\.test\.ts)/g))
        assert.ok(existsSync(join(root, file)), `${path} names ${file}, which is not there`);
      for (const part of text.split(/^## /m).slice(1)) {
        const steps = /\b(?:VS Code|[Ii]n the editor|[Ii]n the chat)\b.*\*[A-Z]|\*Telos: /.test(
          outsideCode(part),
        );
        const isTold = !path.startsWith('docs/') || made.has(path) || path.startsWith('docs/security/');
        if (steps && !isTold)
          assert.match(
            part,
            /<!-- Shown by /,
            `${path} has steps in the editor, and no test that shows them: ${part}`,
          );
      }
    }
  });
});
