import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { explainHttpFailure, explainLineFailure } from '../../src/engine/providers/failures.ts';
import { planWords } from '../../src/protocol/planWords.ts';
import { english, type Say, withValues } from '../../src/protocol/text.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const german: Record<string, string> = JSON.parse(
  readFileSync(join(root, 'l10n/bundle.l10n.de.json'), 'utf8'),
);
const say: Say = (text, ...values) => withValues(german[text] ?? text, values);
const inGerman = (text: string): string => planWords(text, say);

describe('what the journal of a plan says, in the language of the reader', () => {
  it('translates sentences of the engine, with their values, one after the other', () => {
    assert.equal(inGerman('You paused it.'), 'Sie haben den Plan angehalten.');
    assert.equal(inGerman('US-001, US-002 failed.'), 'Fehlgeschlagen: US-001, US-002.');
    assert.equal(
      inGerman(
        'The budget of this plan is used up: $0.0100 of $0.01. Add to it to go on with the same plan.',
      ),
      'Das Budget dieses Plans ist aufgebraucht: $0.0100 of $0.01. Erhöhen Sie es, um mit demselben Plan fortzufahren.',
    );
    assert.equal(
      inGerman('its commit 0123456789 is not on telos/site any more'),
      'der Commit 0123456789 ist nicht mehr auf telos/site',
    );
  });

  it('translates what a provider answers, up to its own words', () => {
    const failure = { label: 'Anthropic', address: 'https://api.test', addressVariable: 'X', secret: '' };
    const said = (status: number, reason: string) =>
      inGerman(explainHttpFailure({ ...failure, status, reason }).error.message);
    assert.equal(said(401, 'invalid x-api-key'), 'Anthropic hat den Schlüssel abgelehnt: invalid x-api-key.');
    assert.match(said(429, 'Slow down.'), /^Anthropic nimmt vorerst .*: Slow down\.$/);
    assert.equal(
      said(529, 'Overloaded'),
      'Anthropic meldet einen internen Fehler (529): Overloaded. Versuchen Sie es später erneut.',
    );
    const offline = Object.assign(new Error('x'), { code: 'ECONNREFUSED' });
    assert.equal(
      inGerman(explainLineFailure(offline, 'Ollama', 'http://localhost:1', 'OLLAMA_BASE_URL').error.message),
      'Ollama ist unter http://localhost:1 nicht erreichbar (ECONNREFUSED). Überprüfen Sie das Netzwerk und OLLAMA_BASE_URL.',
    );
  });

  it('leaves what a model or a person has written as it is, also behind a sentence of the engine', () => {
    const words = 'The total is wrong.\nYou paused it. {0} $& $1';
    assert.equal(inGerman(words), words);
    assert.equal(inGerman(`5 attempts did not pass. ${words}`), `5 Versuche haben nicht bestanden. ${words}`);
    for (const text of ['The test failed.', 'It failed. Look again.', 'All tests and 3 lints failed.'])
      assert.equal(inGerman(text), text);
    assert.equal(inGerman('checked off in {1} {0} $&'), 'abgehakt in {1} {0} $&');
    assert.equal(inGerman(''), '');
    assert.equal(planWords('You stopped it.', english), 'You stopped it.');
  });

  it('knows no sentence that the engine does not write', () => {
    const engine = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.ts') && !name.startsWith('protocol'))
      .map(name => readFileSync(join(root, 'src', name), 'utf8').replaceAll(/\$\{[^}]*\}/g, '{}'))
      .join('\n');
    const words = readFileSync(join(root, 'src/protocol/planWords.ts'), 'utf8');
    const texts = [...words.matchAll(/say\('([^']+)'/g)].map(([, text = '']) => text);
    assert.ok(texts.length > 20);
    // The engine puts the name of the role there.
    const roles = /The (?:coder|reviewer) (took|was)/;
    const unknown = texts.filter(text => {
      const written = text.replaceAll(/\{\d\}/g, '{}').replace(roles, 'The {} $1');
      return !engine.includes(written) && !engine.includes(text);
    });
    assert.deepEqual(unknown, []);
  });
});
