import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Entry } from '../entriesBuild.mjs';
import { brokenRules, bundled, optional } from './importRules.ts';
import { drawMap, figuresOf, type HouseFigures, limits, projectSources } from './map.ts';

const read = (file: string): string => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');

/** Returns the rules that a project of these files alone breaks. */
function broken(files: Record<string, string>): string[] {
  return brokenRules(new Map(Object.entries(files)), ['yaml', 'preact', 'openai'], entriesOf(files));
}

/** Returns entries for files below `entries` of a package, each with the names that it hands on. */
function entriesOf(files: Record<string, string>): Map<string, Entry> {
  const inEntries = Object.keys(files).filter(file => file.includes('/entries/'));
  return new Map(
    inEntries.map(file => {
      const names = new Map<string, { file: string; name: string }>();
      const later = new Map<string, string>();
      for (const [, kind, name = '', target = ''] of (files[file] ?? '').matchAll(/^(\w+) (\w+) (\S+)$/gm))
        if (kind === 'later') later.set(name, target);
        else names.set(name, { file: target, name });
      const [, packageName, , entry = ''] = file.split('/');
      return [`@telos/${packageName}/${entry.replace('.ts', '')}`, { file, names, later }];
    }),
  );
}

describe('architecture', () => {
  it('holds in src and webview', () => {
    const sources = projectSources();
    assert.ok(sources.size > 50, `only ${sources.size} files were found`);
    assert.deepEqual(brokenRules(sources, bundled), []);
  });

  it('bundles every package that it uses, so that an install of it brings nothing else', () => {
    const manifest = JSON.parse(read('package.json'));
    const { dependencies, devDependencies } = manifest;
    assert.equal(dependencies, undefined);
    assert.deepEqual(Object.keys(manifest.peerDependencies), optional);
    for (const name of optional) {
      assert.equal(manifest.peerDependencies[name], devDependencies[name]);
      assert.deepEqual(manifest.peerDependenciesMeta[name], { optional: true });
      const loader = read('src/fleet/dbos.ts');
      assert.ok(
        loader.includes(`'${name}@${devDependencies[name]}'`),
        'another version is said to be installed',
      );
    }
    assert.deepEqual(
      bundled.filter(name => !(name in devDependencies)),
      [],
    );
  });

  it('stays within the figures of the house', () => {
    const figures = figuresOf(projectSources());
    const names = Object.keys(limits) as (keyof HouseFigures)[];
    assert.deepEqual(
      names.filter(name => figures[name] > limits[name]).map(name => `${name}: ${figures[name]}`),
      [],
    );
  });

  it('is drawn in ARCHITECTURE as it is', () => {
    const map = drawMap(projectSources());
    const file = 'ARCHITECTURE.md';
    assert.ok(read(file).includes(map), `${file} shows another map; npm run map prints this one:\n${map}`);
  });

  it('has every file and folder that its pages name', () => {
    const pages = ['ARCHITECTURE.md', 'CONTRIBUTING.md'].map(read);
    const tops = readdirSync(new URL('..', import.meta.url));
    const named = pages.flatMap(text =>
      [...text.replace(/```[\s\S]*?```/g, '').matchAll(/[`(]((?:[\w.-]+\/)+[\w.-]*)[`)]/g)].map(
        ([, path = '']) => path,
      ),
    );
    // Other paths are those of a user, and so is `.git`, which is a file in a work tree.
    const ours = named.filter(path => !path.startsWith('.git/') && tops.includes(path.split('/')[0] ?? ''));
    const missing = ours.filter(path => !existsSync(new URL(`../${path}`, import.meta.url)));
    assert.deepEqual(missing, []);
    assert.ok(ours.length > 30, `the pages name ${ours.length} files`);
  });

  it('answers the ten questions of a newcomer, on pages that stay short', () => {
    const text = read('ARCHITECTURE.md');
    const lines = (file: string): number => read(file).trim().split('\n').length;
    assert.ok(lines('ARCHITECTURE.md') <= 150);
    assert.ok(lines('CONTRIBUTING.md') <= 60);
    for (const question of [
      /tool call decided/,
      /token reach the screen/,
      /add a provider/,
      /add a tool/,
      /add a command/,
      /add a frontend/,
      /story pass/,
      /is undone/,
      /are my files/,
      /runs in the sandbox/,
    ])
      assert.match(text, question);
  });

  it('lists the entries of each package on its page', () => {
    const folders = [
      ...readdirSync(new URL('../src', import.meta.url)).map(name => `src/${name}`),
      'webview',
    ];
    for (const folder of folders) {
      const { exports: entries } = JSON.parse(read(`${folder}/package.json`));
      const listed = [...read(`${folder}/README.md`).matchAll(/^- `(\w+)`: ./gm)].map(
        ([, name]) => `./${name}`,
      );
      assert.deepEqual(listed, Object.keys(entries), folder);
    }
  });

  it('lets nobody past the entries of a package', async () => {
    await import('@telos/engine/errors');
    const past: string = '@telos/engine/policy/decide';
    await assert.rejects(import(past), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' });
  });

  describe('finds', () => {
    const rules: readonly [name: string, files: Record<string, string>, rule: RegExp][] = [
      [
        'an import that goes up',
        { 'src/engine/tools/a.ts': "import { b } from '../telos.ts';", 'src/engine/telos.ts': '' },
        /src\/engine\/tools\/a\.ts imports \.\.\/telos\.ts: imports go down/,
      ],
      [
        'an import over several lines, of types, that goes up',
        { 'src/engine/tools/a.ts': "import type {\n  B,\n} from '../run/b.ts';", 'src/engine/run/b.ts': '' },
        /imports go down/,
      ],
      [
        'an import() that goes up',
        { 'src/engine/files/a.ts': "const b = await import('../run/b.ts');", 'src/engine/run/b.ts': '' },
        /imports go down/,
      ],
      [
        'an export from above',
        { 'src/engine/files/a.ts': "export { b } from '../run/b.ts';", 'src/engine/run/b.ts': '' },
        /imports go down/,
      ],
      [
        'a core that sees more than the protocol',
        { 'src/engine/core/a.ts': "import { b } from '../files/b.ts';", 'src/engine/files/b.ts': '' },
        /the core sees src\/protocol and nothing else/,
      ],
      ['a file on no floor', { 'src/new/a.ts': "import './b.ts';", 'src/new/b.ts': '' }, /has no floor/],
      [
        'a path into another package',
        { 'src/cli/a.ts': "import { b } from '../engine/telos.ts';", 'src/engine/telos.ts': '' },
        /another package is imported by its entries, @telos\/engine/,
      ],
      [
        'a package that knows one above it',
        {
          'src/engine/run/a.ts': "import { b } from '@telos/packs/audit';",
          'src/packs/entries/audit.ts': 'value b src/packs/audit/b.ts',
          'src/packs/audit/b.ts': '',
        },
        /engine does not know packs/,
      ],
      [
        'a frontend that knows another',
        {
          'src/extension/a.ts': "import { b } from '@telos/cli/run';",
          'src/cli/entries/run.ts': 'value b src/cli/b.ts',
          'src/cli/b.ts': '',
        },
        /extension does not know cli/,
      ],
      [
        'an entry that is not there',
        { 'src/cli/a.ts': "import { b } from '@telos/engine/inside';" },
        /that package has no such entry/,
      ],
      [
        'an entry of the same package',
        {
          'src/engine/run/a.ts': "import { b } from '@telos/engine/files';",
          'src/engine/entries/files.ts': 'value b src/engine/files/b.ts',
          'src/engine/files/b.ts': '',
        },
        /a file of the same package is imported by its path/,
      ],
      [
        'a name of an entry that nobody wants',
        {
          'src/cli/a.ts': "import { b } from '@telos/engine/files';",
          'src/engine/entries/files.ts': 'value b src/engine/files/b.ts\nvalue c src/engine/files/b.ts',
          'src/engine/files/b.ts': '',
        },
        /names c, which no other package imports/,
      ],
      [
        'a room that knows another of its floor',
        { 'src/engine/mcp/a.ts': "import { b } from '../skills/b.ts';", 'src/engine/skills/b.ts': '' },
        /src\/engine\/mcp\/ and src\/engine\/skills\/ are on the same floor/,
      ],
      [
        'two rooms that know each other',
        {
          'src/extension/chat/a.ts': "import { b } from '../runs/b.ts';",
          'src/extension/runs/b.ts': '',
          'src/extension/runs/c.ts': "import type { D } from '../chat/d.ts';",
          'src/extension/chat/d.ts': '',
        },
        /import each other/,
      ],
      [
        'a chat view that sees the engine',
        {
          'webview/a.tsx': "import { b } from '@telos/engine/files';",
          'src/engine/entries/files.ts': 'value b src/engine/files/b.ts',
          'src/engine/files/b.ts': '',
        },
        /sees src\/protocol and nothing else/,
      ],
      [
        'VS Code in the engine',
        { 'src/engine/run.ts': "import * as vscode from 'vscode';" },
        /only src\/extension knows VS Code/,
      ],
      [
        'Node in the protocol',
        { 'src/protocol/a.ts': "import { join } from 'node:path';" },
        /there is no Node/,
      ],
      [
        'a package nobody declared',
        { 'src/cli/a.ts': "import left from 'left-pad';" },
        /not among the packages that are bundled/,
      ],
      [
        'a dependency with two importers',
        {
          'src/cli/a.ts': "import { parse } from 'yaml';",
          'src/cli/b.ts': "import { parse } from 'yaml/x';",
        },
        /src\/cli\/a\.ts and src\/cli\/b\.ts import yaml/,
      ],
      [
        'a circle',
        { 'src/cli/a.ts': "import { b } from './b.ts';", 'src/cli/b.ts': "import { a } from './a.ts';" },
        /src\/cli\/a\.ts -> src\/cli\/b\.ts -> src\/cli\/a\.ts: imports go round/,
      ],
      [
        'the sources of packs in what loads at the start',
        {
          'src/cli/commandLine.ts': "import { a } from './a.ts';",
          'src/cli/a.ts': "import { b } from '@telos/packs/install';",
          'src/packs/entries/install.ts': 'value b src/packs/sources/b.ts',
          'src/packs/sources/b.ts': '',
        },
        /src\/cli\/a\.ts imports src\/packs\/sources\/b\.ts: .* is loaded at the start/,
      ],
      [
        'an SDK that loads at the start',
        { 'src/cli/main.ts': "import { b } from './b.ts';", 'src/cli/b.ts': "import OpenAI from 'openai';" },
        /src\/cli\/b\.ts imports openai: it is loaded at the start/,
      ],
      ['a folder without a subject', { 'src/engine/tools/utils/a.ts': '' }, /a folder named utils/],
      ['a barrel', { 'src/engine/tools/index.ts': '' }, /no barrels/],
      ['a default export', { 'src/cli/a.ts': 'export default function a() {}' }, /exports are named/],
    ];
    for (const [name, files, rule] of rules) {
      it(name, () => {
        const lines = broken(files);
        assert.equal(lines.length, 1, `expected one line, got: ${lines.join('; ')}`);
        assert.match(lines[0] ?? '', rule);
      });
    }

    it('nothing in a sound house', () => {
      const sound = {
        'src/cli/main.ts':
          "// import { x } from 'vscode';\nimport type OpenAI from 'openai';\nconst a = await import('./a.ts');",
        'src/cli/a.ts': "import { importRun } from '@telos/engine/start';",
        'src/engine/entries/start.ts': 'later importRun src/engine/run/run.ts',
        'src/engine/run/run.ts': "import type { Event } from '@telos/protocol/events';",
        'src/protocol/entries/events.ts': 'value Event src/protocol/run.ts',
        'src/protocol/run.ts': 'export interface Event {}',
        'webview/main.tsx': "import './main.css';\nimport { h } from 'preact';",
      };
      assert.deepEqual(broken(sound), []);
    });
  });
});
