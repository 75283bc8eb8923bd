import assert from 'node:assert/strict';
import { plainLabel } from '../../../src/extension/base/labels.ts';

describe('plainLabel', () => {
  it('leaves no link and no icon code that the editor would act on', () => {
    const label = plainLabel('[Free](command:workbench.action.quit) $(trash) $$((x');
    assert.doesNotMatch(label, /\]\(/);
    assert.doesNotMatch(label, /\$\(/);
    assert.match(label, /Free.*command:workbench/);
  });

  it('takes out what is invisible before it looks for links, so that nothing can hide one', () => {
    assert.doesNotMatch(plainLabel('[a]\u200b(command:x) $\u2060(trash)'), /\]\(|\$\(/);
    assert.equal(plainLabel('safe\u202egnp.exe'), 'safegnp.exe');
  });

  it('makes one line of many and cuts a long one by characters', () => {
    assert.equal(plainLabel('one\n\ttwo\r\n\r\nthree '), 'one two three');
    assert.equal(plainLabel('😀😀😀😀', 3), '😀😀…');
  });

  it('keeps words of every script', () => {
    assert.equal(plainLabel('Überblick (kurz) — 日本語'), 'Überblick (kurz) — 日本語');
  });
});
