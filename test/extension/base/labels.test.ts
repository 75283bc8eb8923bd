import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { TelosError } from '../../../src/engine/core/errors.ts';
import { describeError, localized, plainLabel, speak } from '../../../src/extension/base/labels.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { english, sentence, withValues } from '../../../src/protocol/text.ts';

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
    assert.equal(plainLabel('😀😀😀😀', 6), '😀😀…');
  });

  it('keeps words of every script', () => {
    assert.equal(plainLabel('Überblick (kurz) — 日本語'), 'Überblick (kurz) — 日本語');
  });
});

describe('the words of the engine in the editor', () => {
  const bundle = new URL('../../../l10n/bundle.l10n.de.json', import.meta.url);
  const german: Record<string, string> = JSON.parse(readFileSync(bundle, 'utf8'));
  const noKey = new TelosError('auth', [sentence('The provider {0} has no key.', 'openai')], {
    remedy: { kind: 'set_key', variable: 'OPENAI_API_KEY' },
  });
  afterEach(() => speak(english, 'en'));

  it('names the commands of the editor, in the language of the reader', () => {
    assert.match(describeError(noKey), /^The provider openai has no key\. .*“Telos: Set API Key\.\.\.”/);
    speak((text, ...values) => withValues(german[text] ?? `untranslated: ${text}`, values), 'de');
    assert.match(
      describeError(noKey),
      /^Für den Anbieter openai ist kein Schlüssel festgelegt\. .*„Telos: API-Schlüssel festlegen\.\.\.“/,
    );
  });

  it('translates the events that carry sentences, and leaves those of older runs as they are', () => {
    speak((text, ...values) => withValues(german[text] ?? `untranslated: ${text}`, values), 'de');
    const end: RunEvent = {
      type: 'run_end',
      outcome: 'failed',
      rounds: 0,
      toolCalls: 0,
      durationMs: 1,
      messages: [],
      error: noKey.runError,
    };
    const shown = localized(end);
    assert.match((shown.type === 'run_end' && shown.error?.message) || '', /kein Schlüssel festgelegt/);
    const old: RunEvent = { type: 'notice', level: 'warning', message: 'As it was stored.' };
    assert.equal(localized(old), old);
    const why = [sentence('The model sent nothing for {0} seconds.', 60)];
    const retry = localized({ type: 'retry', attempt: 1, waitMs: 0, why: 'x', sentences: why });
    assert.equal(retry.type === 'retry' && retry.why, 'Das Modell hat 60 Sekunden lang nichts gesendet.');
  });
});
