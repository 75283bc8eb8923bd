/** Every text of the extension exists in English and in German: those of package.json, and those in the code of the extension and the chat view. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const table = (file: string): Record<string, string> => JSON.parse(read(file));

/** Returns the sentences among the texts of a source: what has a space and no code. */
function literalsIn(source: string): string[] {
  const bare = source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const texts = [...bare.matchAll(/'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/g)];
  return texts
    .map(([, one, other]) => (one ?? other ?? '').replace(/\$\{[^}]*\}/g, ''))
    .filter(text => / /.test(text));
}

/** Properties of package.json that a person reads; what a model reads, and names, stay as they are. */
const shown =
  /^(?:title|displayName|description|label|contents|userDescription|markdownDescription|patternErrorMessage|enumDescriptions\.\d+)$/;
const leftAlone = /^(?:Telos|telos)$|modelDescription|inputSchema/;

describe('localisation', () => {
  const manifest = JSON.parse(read('package.json'));
  const english = table('package.nls.json');

  it('has both languages for every text of package.json, and no text besides', () => {
    const wanted = new Set([...read('package.json').matchAll(/"%([\w.-]+)%"/g)].map(([, key]) => key ?? ''));
    assert.deepEqual(Object.keys(english).sort(), [...wanted].sort());
    assert.deepEqual(Object.keys(table('package.nls.de.json')).sort(), [...wanted].sort());
    assert.deepEqual(literalTexts(manifest.contributes), []);
  });

  it('keeps commands, settings and placeholders as they are in German', () => {
    const german = table('package.nls.de.json');
    for (const [key, text] of Object.entries(english))
      assert.deepEqual(marks(german[key] ?? ''), marks(text), key);
    for (const [text, translated] of Object.entries(table('l10n/bundle.l10n.de.json')))
      assert.deepEqual(marks(translated), marks(text), text);
  });

  it('addresses the reader formally in German, with the terms of the editor', () => {
    const pages = readdirSync(join(root, 'media/walkthrough')).filter(name => name.endsWith('.nls.de.md'));
    const texts = [
      ...Object.values(table('package.nls.de.json')),
      ...Object.values(table('l10n/bundle.l10n.de.json')),
      ...pages.map(page => read(`media/walkthrough/${page}`)),
    ];
    const informal = /(?<![\p{L}])(?:du|dein(?:e[mnrs]?)?|dir|dich|Anfragen?|Werkzeuge?n?)(?![\p{L}])/iu;
    assert.deepEqual(
      texts.filter(text => informal.test(text.replaceAll(/`[^`]*`/g, ''))),
      [],
    );
  });

  it('says nothing in words of its own, in either language, in the editor or on the command line', () => {
    const words = [
      ...Object.entries(table('l10n/bundle.l10n.de.json')).flat(),
      ...Object.values(english),
      ...Object.values(table('package.nls.de.json')),
      ...sources('src/cli').flatMap(file => literalsIn(read(file))),
    ];
    const own =
      /(?<![\w.-])(?:box(?:ed)?|cards?|rounds?)(?![\w-])|(?<!\p{L})(?:Box|Karten?|Runden?)(?!\p{L})/iu;
    assert.deepEqual(
      words.filter(text => own.test(text)),
      [],
    );
    assert.ok(own.test('Runs in the box') && own.test('Karte ansehen'));
  });

  it('has every page of the walkthrough in both languages', () => {
    const pages = readdirSync(join(root, 'media/walkthrough')).filter(name => /^[^.]+\.md$/.test(name));
    assert.ok(pages.length > 0);
    for (const page of pages) {
      const german = read(`media/walkthrough/${page.replace(/\.md$/, '.nls.de.md')}`);
      assert.deepEqual(marks(german), marks(read(`media/walkthrough/${page}`)), page);
    }
  });

  it('has German for every text in the code, and no German that nothing shows', () => {
    const german = table('l10n/bundle.l10n.de.json');
    const texts = new Set(
      [...behindFrontends, 'src/extension', 'src/protocol', 'webview'].flatMap(sources).flatMap(textsIn),
    );
    assert.deepEqual(
      [...texts].filter(text => !Object.hasOwn(german, text)),
      [],
    );
    assert.deepEqual(
      Object.keys(german).filter(text => !texts.has(text)),
      [],
    );
  });

  it('says every error of the engine in sentences, but for those that no editor shows or that are put together', () => {
    const plain = /new (?:TelosError|PromptTooLong|NoEventStream)\(\s*[\w']+,\s*['"`]/;
    assert.deepEqual(
      behindFrontends
        .flatMap(sources)
        .filter(file => plain.test(read(file)))
        .sort(),
      inEnglish.map(file => join(file)),
    );
  });

  it('names no command of a frontend in the engine, since each frontend has its own', () => {
    const command =
      /`telos [a-z]|telos (?:trust|init|lint|policy|install)\b|(?<!\|)--(?:yes|as|record)\b|Telos: [A-Z]/;
    const named = behindFrontends.flatMap(sources).flatMap(file =>
      read(file)
        .replaceAll(/^\s*(?:\/\*\*?|\*|\/\/).*$/gm, '')
        .split('\n')
        .filter(line => command.test(line))
        .map(line => `${file}: ${line.trim()}`),
    );
    assert.deepEqual(named, []);
  });

  it('adds its icons to labels that show other texts literally, and not before', () => {
    const withIcon = /plainLabel\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/g;
    const named = sources('src/extension').flatMap(file =>
      [...read(file).matchAll(withIcon)].flatMap(([call]) =>
        call.includes('$(') ? [`${file}: ${call}`] : [],
      ),
    );
    assert.deepEqual(named, []);
  });

  it('says no sentence and no button of the editor in English alone', () => {
    assert.deepEqual(sources('src/extension').flatMap(bareTexts), []);
  });
});

/** Files of the engine with errors in English: of the library, the command line and the workers, or made of phrases that other texts use too. */
const behindFrontends = ['engine', 'evals', 'fleet', 'packs', 'plans'].map(name => `src/${name}`);

const inEnglish = [
  'src/engine/skills/lockFile.ts',
  'src/engine/skills/planInstall.ts',
  'src/engine/skills/scaffold.ts',
  'src/engine/tools/checkedFetch.ts',
  'src/evals/earlierVersion.ts',
  'src/evals/evalFile.ts',
  'src/evals/suiteBudget.ts',
  'src/evals/triggerFile.ts',
  'src/fleet/databaseAddress.ts',
  'src/fleet/dbos.ts',
  'src/fleet/evalOrder.ts',
  'src/fleet/fleetDatabase.ts',
  'src/fleet/planJobs.ts',
  'src/fleet/stories/workerSlots.ts',
  'src/fleet/tryDatabase.ts',
  'src/packs/sources/fetchSource.ts',
  'src/packs/sources/fetched.ts',
  'src/packs/sources/install.ts',
  'src/packs/sources/pluginManifest.ts',
  'src/packs/sources/treeWriter.ts',
  'src/packs/sources/web.ts',
  'src/plans/contextFolders.ts',
  'src/plans/orchestrator.ts',
];

/** What a translation must contain just as the text: links to commands, names in backticks, places for values. */
const marks = (text: string): string[] =>
  [...text.matchAll(/\]\([^)]*\)|`[^`]*`|\{\w+\}|\*\*/g)].map(([mark]) => mark).sort();

function literalTexts(value: unknown, path = ''): string[] {
  if (typeof value === 'string') {
    const property = path.split('.').at(-1) ?? '';
    const isShown = shown.test(property) || /enumDescriptions\.\d+$/.test(path);
    return isShown && !value.startsWith('%') && !leftAlone.test(value) && !leftAlone.test(path) ? [path] : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => literalTexts(inner, path ? `${path}.${key}` : key));
}

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => /\.tsx?$/.test(name) && !name.endsWith('.d.ts'))
    .map(name => join(folder, name));
}

/**
 * First arguments of `vscode.l10n.t`, of the view's `t`, of a `say` in the protocol, and of `sentence` in the engine. One that is not a
 * literal could not be translated.
 */
function textsIn(file: string): string[] {
  const name = file.startsWith(join('src', 'protocol'))
    ? 'say'
    : behindFrontends.some(folder => file.startsWith(join(folder)))
      ? 'sentence'
      : 't';
  const call = new RegExp(
    String.raw`(?:(?<![\w.$])|\bl10n\.)${name}\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")?`,
    'g',
  );
  return [...read(file).matchAll(call)].map(([start, single, double]) => {
    const text = single ?? double;
    assert(text !== undefined, `${file}: ${start} takes no literal`);
    return text.replace(/\\n/g, '\n').replace(/\\(.)/g, '$1');
  });
}

/** Literals that go to the editor as they are: messages with their buttons, and the captions of what asks. */
function bareTexts(file: string): string[] {
  const code = read(file).replaceAll(/l10n\.t\(\s*(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")/g, 'translated(');
  const asked = [
    ...code.matchAll(/\b(?:openLabel|saveLabel|title|placeHolder|prompt|detail): '([A-Z][^']*)'/g),
  ];
  const said = [...code.matchAll(/\bshow\w+Message\(([^;]*);/g)].flatMap(([, rest = '']) => [
    ...rest.matchAll(/'([A-Z][^']*)'/g),
  ]);
  return [...asked, ...said].map(([, text]) => `${file}: ${text}`);
}
