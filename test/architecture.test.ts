import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { brokenRules, bundled, optional } from './importRules.ts';
import { drawMap, figuresOf, type HouseFigures, limits, projectSources } from './map.ts';

const read = (file: string): string => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');

/** Returns the rules that a project of these files alone breaks. */
function broken(files: Record<string, string>): string[] {
  return brokenRules(new Map(Object.entries(files)), ['yaml', 'preact', 'openai']);
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
      const loader = read('src/engine/fleet/dbos.ts');
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

  it('is drawn in CONTRIBUTING as it is', () => {
    const map = drawMap(projectSources());
    const file = 'CONTRIBUTING.md';
    assert.ok(read(file).includes(map), `${file} shows another map; npm run map prints this one:\n${map}`);
  });

  it('has every file and folder that CONTRIBUTING names', () => {
    const roots = ['', 'src/', 'src/engine/', 'test/'].map(root => new URL(`../${root}`, import.meta.url));
    const tops = roots.flatMap(root => readdirSync(root));
    const prose = read('CONTRIBUTING.md').replace(/```[\s\S]*?```/g, '');
    const named = [...prose.matchAll(/[`(]((?:[\w.-]+\/)+[\w.-]*)[`)]/g)].map(([, path = '']) => path);
    // Other paths are those of a user, and so is `.git`, which is a file in a work tree.
    const ours = named.filter(path => !path.startsWith('.git/') && tops.includes(path.split('/')[0] ?? ''));
    const missing = ours.filter(path => !roots.some(root => existsSync(new URL(path, root))));
    assert.deepEqual(missing, [], 'CONTRIBUTING.md names files that do not exist');
    assert.ok(ours.length > 3, `CONTRIBUTING.md names ${ours.length} files`);
  });

  it('answers the questions of a newcomer on the first page of CONTRIBUTING', () => {
    const text = read('CONTRIBUTING.md');
    const words = text.split(/\s+/).length;
    assert.ok(words < 1_600, `${words} words are more than two pages`);
    const page = text.slice(0, text.length / 2);
    for (const question of [
      /tool call decided/,
      /token reach the screen/,
      /add a provider/,
      /add a command/,
      /add a tool/,
    ])
      assert.match(page, question);
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
        { 'src/protocol/a.ts': "const b = await import('../engine/run.ts');", 'src/engine/run.ts': '' },
        /imports go down/,
      ],
      [
        'an export from above',
        { 'src/protocol/a.ts': "export { b } from '../engine/run.ts';", 'src/engine/run.ts': '' },
        /imports go down/,
      ],
      ['a file on no floor', { 'src/new/a.ts': "import './b.ts';", 'src/new/b.ts': '' }, /has no floor/],
      [
        'a door that knows another',
        { 'src/extension/a.ts': "import { b } from '../cli/b.ts';", 'src/cli/b.ts': '' },
        /one door does not know another/,
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
        { 'webview/a.tsx': "import { b } from '../src/engine/run.ts';", 'src/engine/run.ts': '' },
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
          'src/cli/a.ts': "import { b } from '../engine/sources/b.ts';",
          'src/engine/sources/b.ts': '',
        },
        /src\/cli\/a\.ts imports src\/engine\/sources\/b\.ts: .* is loaded at the start/,
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
        'src/cli/a.ts': "import { run } from '../engine/run.ts';",
        'src/engine/run.ts': "import type { Event } from '../protocol/run.ts';",
        'src/protocol/run.ts': 'export interface Event {}',
        'webview/main.tsx': "import './main.css';\nimport { h } from 'preact';",
      };
      assert.deepEqual(broken(sound), []);
    });
  });
});
