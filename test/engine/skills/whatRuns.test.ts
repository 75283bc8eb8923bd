/** Compares what a skill's text and scripts need with folders in place of a machine. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Missing } from '../../../src/engine/skills/agent.ts';
import { thisMachine } from '../../../src/engine/skills/machine.ts';
import { readinessOf } from '../../../src/engine/skills/readiness.ts';
import { openSkill } from '../../../src/engine/skills/skillFile.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const fence = (...lines: string[]): string => ['```bash', ...lines, '```', ''].join('\n');

describe('what a skill runs', () => {
  let folder: TempFolder;
  const at = (path: string): string => join(folder.path, path);
  beforeEach(() => {
    folder = tempFolder({
      'usr/lib/python3.11/os.py': '',
      'usr/lib/python3.11/site-packages/requests/__init__.py': '',
      'usr/lib/python3.11/site-packages/google/auth/x.py': '',
      'usr/lib/python3.11/site-packages/_speed.cpython-311-x86_64-linux-gnu.so': '',
      'usr/lib/python3.11/site-packages/Foo_Bar-1.2.dist-info/METADATA': '',
      'home/.local/lib/python3.11/site-packages/yaml.py': '',
    });
    for (const name of ['python3.11', 'bash', 'node']) program(name);
    symlinkSync(at('usr/bin/python3.11'), at('usr/bin/python3'));
  });
  afterEach(() => folder.remove());

  function program(name: string): void {
    folder.add({ [`usr/bin/${name}`]: '#!/bin/sh\n' });
    chmodSync(at(`usr/bin/${name}`), 0o755);
  }

  function missing(body: string, files: Record<string, string> = {}, more = ''): readonly Missing[] {
    folder.add({ 'one/SKILL.md': `---\ndescription: Does it.\n${more}---\n${body}` });
    for (const [name, text] of Object.entries(files)) folder.add({ [`one/${name}`]: text });
    const machine = thisMachine({ PATH: at('usr/bin'), HOME: at('home') }, 'linux');
    return readinessOf(openSkill(at('one/SKILL.md'), 'user'), machine).missing;
  }
  const whats = (...args: Parameters<typeof missing>): string[] => missing(...args).map(({ what }) => what);

  describe('imports of its Python scripts', () => {
    const body = fence('python3 scripts/go.py');
    const importing = (text: string, more = ''): string[] => whats(body, { 'scripts/go.py': text }, more);

    it('names the packages that are not installed, each with the command that brings it', () => {
      const [yaml, ...others] = missing(body, {
        'scripts/go.py': 'import json, requests\nimport openpyxl as x\nfrom PIL import Image\n',
      });
      assert.deepEqual([yaml?.what, others.map(({ what }) => what)], ['openpyxl', ['pillow']]);
      assert.deepEqual(yaml?.commands, ['python3 -m pip install openpyxl']);
      assert.match(yaml?.reason ?? '', /scripts\/go\.py imports openpyxl/);
    });

    it('finds what is installed anywhere that this Python looks, and own modules', () => {
      const text =
        'import yaml, requests, _speed\nimport google.auth\nimport helper\nfrom lib.more import x\nfrom __future__ import annotations';
      const own = {
        'scripts/go.py': text,
        'scripts/helper.py': 'import sys\n',
        'scripts/lib/more.py': 'import tomllib',
      };
      assert.deepEqual(whats(body, own), []);
      assert.deepEqual(importing('import google.genai'), ['google-genai']);
    });

    it('follows own modules, and pages that the text names', () => {
      const files = { 'scripts/go.py': 'from helper import a', 'scripts/helper.py': 'import lxml.etree' };
      assert.deepEqual(whats(body, files), ['lxml']);
      const page = { 'forms.md': 'Run scripts/fill.py.', 'scripts/fill.py': 'import pypdf' };
      assert.deepEqual(whats('See FORMS.md.', page), ['pypdf']);
    });

    it('says nothing of an import that the script can do without', () => {
      assert.deepEqual(importing('try:\n    import lxml\nexcept ImportError:\n    lxml = None\n'), []);
      assert.deepEqual(importing('def chart():\n    import matplotlib\n'), []);
      assert.deepEqual(importing('"""\nimport lxml\n"""\n'), []);
      assert.deepEqual(importing('# /// script\n# dependencies = ["lxml"]\n# ///\nimport lxml\n'), []);
      assert.deepEqual(importing('try:\n    import lxml\nexcept ImportError:\n    sys.exit("get lxml")\n'), [
        'lxml',
      ]);
      assert.deepEqual(whats('Nothing runs.', { 'tests/spec.py': 'import pytest' }), []);
    });

    it('reads `requires.pip`, by the names of the package index', () => {
      const more = 'metadata: {"openclaw": {"requires": {"pip": ["foo-bar", "openpyxl>=3"]}}}\n';
      assert.deepEqual(importing('', more), ['openpyxl']);
    });

    it('gives no name to install that is only a guess', () => {
      const [one] = missing(body, { 'scripts/go.py': 'import obscure_thing' });
      assert.deepEqual(one?.commands, []);
      assert.match(one?.nextStep ?? '', /^Look up which package/);
      const list = { 'scripts/go.py': 'import obscure_thing', 'requirements.txt': 'obscure_thing==1\n' };
      assert.deepEqual(missing(body, list)[0]?.commands, [
        `python3 -m pip install -r ${at('one/requirements.txt')}`,
      ]);
    });

    it('claims nothing about a Python that it does not understand', () => {
      folder.add({ 'usr/lib/python3.11/os.py': '' });
      mkdirSync(at('other'));
      symlinkSync(at('usr/bin/bash'), at('other/python3'));
      folder.add({ 'one/SKILL.md': `---\ndescription: d\n---\n${body}`, 'one/scripts/go.py': 'import lxml' });
      const machine = thisMachine({ PATH: at('other') }, 'linux');
      assert.equal(machine.python(), undefined);
      const kinds = readinessOf(openSkill(at('one/SKILL.md'), 'user'), machine).missing.map(
        ({ kind }) => kind,
      );
      assert.ok(!kinds.includes('package'));
    });

    it('looks into a virtual environment alone, where that comes first', () => {
      folder.add({ 'venv/pyvenv.cfg': 'include-system-site-packages = false\n' });
      mkdirSync(at('venv/bin'));
      mkdirSync(at('venv/lib/python3.11/site-packages/lxml'), { recursive: true });
      symlinkSync(at('usr/bin/python3.11'), at('venv/bin/python3'));
      const python = thisMachine(
        { PATH: `${at('venv/bin')}:${at('usr/bin')}`, HOME: at('home') },
        'linux',
      ).python();
      assert.deepEqual(
        ['lxml', 'requests', 'yaml'].map(name => python?.hasModule(name)),
        [true, false, false],
      );
    });
  });

  describe('packages of Node', () => {
    const script = {
      'scripts/go.mjs': "import fs from 'node:fs';\nimport x from 'handlebars';\nimport './more.mjs';\n",
      'scripts/more.mjs': '',
    };
    const body = fence('node scripts/go.mjs');

    it('are named if they are not beside the script', () => {
      const [one] = missing(body, { ...script, 'package.json': '{"dependencies": {"handlebars": "1"}}' });
      assert.deepEqual([one?.what, one?.commands], ['handlebars', [`npm install --prefix ${at('one')}`]]);
      folder.add({ 'one/node_modules/handlebars/package.json': '{}' });
      assert.deepEqual(whats(body, script), []);
    });

    it('are named of what a package.json starts, and not of a package that nothing loads', () => {
      const text = '{"main": "cli.js", "dependencies": {"js-yaml": "1"}}';
      assert.deepEqual(
        whats('Keeps notes.', { 'package.json': text, 'cli.js': "import y from 'js-yaml';" }),
        ['js-yaml'],
      );
      assert.deepEqual(whats('Keeps notes.', { 'package.json': text, 'cli.js': '' }), []);
    });
  });

  describe('programs of its commands', () => {
    it('names the one that the skill is about, with what its text says about installing it', () => {
      const [one] = missing(
        `${fence('npm install -g meow')}${fence('meow find', '# look', 'meow list | head', 'echo done')}`,
      );
      assert.deepEqual([one?.what, one?.commands], ['meow', ['npm install -g meow']]);
    });

    it('says nothing of programs that are beside the point, and of what only looks like one', () => {
      const text = fence(
        'brew install x',
        'cd y && python3 a',
        'pbcopy < z',
        'python3 - <<EOF',
        'strange words',
        'EOF',
        'python3 b',
        'rarely c',
      );
      assert.deepEqual(whats(text), []);
      assert.deepEqual(whats('```python\nstrange()\n```\n```\nstrange a\nstrange b\n```\n'), []);
      assert.deepEqual(whats(fence('tool.sh a', 'tool.sh b'), { 'scripts/tool.sh': '' }), []);
    });

    it('says nothing of a program that another system has, and of a sentence in a block', () => {
      assert.deepEqual(whats(fence('security list-keychains', 'security find-identity -v')), []);
      const lines = [
        'find-talks supports --text, --both, --limit N',
        'find-talks supports many modes. Run --help for details.',
      ];
      assert.deepEqual(whats(fence(...lines)), []);
      assert.deepEqual(whats(fence('find-talks --text a', 'find-talks --limit 3')), ['find-talks']);
    });

    it('says that there is only python3', () => {
      assert.deepEqual(whats(fence('python scripts/go.py'), { 'scripts/go.py': '' }), ['python']);
      program('python');
      assert.deepEqual(whats(fence('python scripts/go.py'), { 'scripts/go.py': '' }), []);
    });
  });

  describe('files that its text names', () => {
    it('names those that are not there', () => {
      const text = `- \`scripts/c.py\` — the third\n[more](references/d.md)\n${fence('python3 scripts/a.py x', '{baseDir}/scripts/b.sh')}`;
      assert.deepEqual(whats(text).sort(), [
        'references/d.md',
        'scripts/a.py',
        'scripts/b.sh',
        'scripts/c.py',
      ]);
      const files = { 'scripts/a.py': '', 'scripts/b.sh': '', 'scripts/c.py': '', 'references/d.md': '' };
      assert.deepEqual(whats(text, files), []);
    });

    it('names those that a command in a sentence runs', () => {
      const text = 'Run `node scripts/pdf.mjs in.html`, then `cd out && python3 {baseDir}/scripts/b.py`.';
      assert.deepEqual(whats(text).sort(), ['scripts/b.py', 'scripts/pdf.mjs']);
      assert.deepEqual(whats(text, { 'scripts/pdf.mjs': '', 'scripts/b.py': '' }), []);
      const other =
        'Write `scripts/new.py`, then run `python3 scripts/new.py`. `python3` and `scripts/x.py` too.';
      assert.deepEqual(whats(other), []);
      assert.deepEqual(whats('```\n`python3 scripts/a.py`\n```\nRun `node app.js`.'), []);
    });

    it('says nothing of what the skill makes, and of what stands in an example', () => {
      assert.deepEqual(whats(fence('cat > scripts/a.py <<EOF', 'x', 'EOF', 'python3 scripts/a.py')), []);
      assert.deepEqual(
        whats('```markdown\n[more](references/d.md)\n```\nUse `scripts/x.py` in your skill.'),
        [],
      );
    });

    it('says that a shell script has the line ends of Windows, with the command for it', () => {
      const files = { 'scripts/it is.sh': '#!/bin/sh\r\necho\r\n' };
      const [one] = missing(fence('bash "scripts/it is.sh"'), files);
      assert.deepEqual(one?.commands, [`sed -i.bak 's/\\r$//' '${at('one/scripts/it is.sh')}'`]);
    });
  });

  it('reads hostile texts in a time that grows with their length', () => {
    const long = 200_000;
    const body = [
      '`'.repeat(long),
      fence('"'.repeat(long)),
      fence('a=b '.repeat(long)),
      '- `scripts/'.repeat(long / 10),
      '[]('.repeat(long),
    ];
    for (const text of body)
      missing(text, { 'scripts/go.py': `${'import a, '.repeat(20_000)}\n`, 'package.json': '[]' });
  });
});
