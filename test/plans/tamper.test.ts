import assert from 'node:assert/strict';
import { type FileChange, namedPaths, scriptsOf } from '../../src/plans/setupChanges.ts';
import { isGuarded, isTest, tamperings, unjustified } from '../../src/plans/tamper.ts';
import type { PlanCheck } from '../../src/protocol/plan.ts';
import { assertGrowsWithSize } from '../growth.ts';

const npmTest: PlanCheck[] = [{ name: 'unit', command: 'npm test -- login' }];

const guarded = (more: Partial<Parameters<typeof tamperings>[1]> = {}) => ({
  checks: npmTest,
  protect: [],
  hadTests: true,
  ...more,
});

const changed = (path: string, before: string, after: string): FileChange => ({
  path,
  status: 'changed',
  before,
  after,
});

const kinds = (change: FileChange, more: Partial<Parameters<typeof tamperings>[1]> = {}): string[] =>
  tamperings([change], guarded(more)).map(({ kind, file }) => `${kind} ${file}`);

describe('tamper', () => {
  it('knows tests by their names and folders', () => {
    for (const path of [
      'test/login.ts',
      'src/login.test.ts',
      'src/__tests__/a.js',
      'pkg/login_test.go',
      'tests/test_login.py',
      'app/test_login.py',
      'spec/login_spec.rb',
      'src/test/java/LoginTest.java',
      'e2e/login.cy.ts',
    ])
      assert.ok(isTest(path), path);
    for (const path of ['src/login.ts', 'src/contest.ts', 'latest/a.ts', 'src/testing.md', 'src/attest.py'])
      assert.ok(!isTest(path), path);
  });

  it('finds tests that are gone', () => {
    assert.deepEqual(kinds({ path: 'test/a.test.ts', status: 'deleted', before: 'x' }), [
      'test-deleted test/a.test.ts',
    ]);
    assert.deepEqual(
      kinds({ path: 'test/a.txt', from: 'test/a.test.ts', status: 'renamed', before: 'x', after: 'x' }),
      ['test-deleted test/a.test.ts'],
    );
    assert.deepEqual(
      kinds({ path: 'old/a.ts', from: 'test/a.ts', status: 'renamed', before: 'x', after: 'x' }),
      ['test-deleted test/a.ts'],
    );
    const moved = { path: 'test/login/a.test.ts', from: 'test/a.test.ts', status: 'renamed' } as const;
    assert.deepEqual(kinds({ ...moved, before: 'x', after: 'x' }), []);
    const two = "it('a', () => { assert.ok(a); });\nit('b', () => { assert.ok(b); });\n";
    assert.deepEqual(kinds(changed('test/a.test.ts', two, two.split('\n')[0]!)), [
      'test-deleted test/a.test.ts',
      'fewer-assertions test/a.test.ts',
    ]);
  });

  it('finds that the configuration of the test runner is renamed away, or that another takes its name', () => {
    const away = {
      path: 'old/config.txt',
      from: 'jest.config.js',
      status: 'renamed',
      before: 'x',
      after: 'x',
    } as const;
    assert.deepEqual(kinds(away), ['runner-config jest.config.js']);
    const into = { ...away, path: 'vitest.config.ts', from: 'old.txt' };
    assert.deepEqual(kinds(into), ['runner-config old.txt']);
  });

  it('finds a changed rule that one of several checks runs', () => {
    const checks: PlanCheck[] = [
      { name: 'unit', command: 'npm test' },
      { name: 'style', command: 'make lint' },
    ];
    const change = changed('Makefile', 'lint:\n\teslint .\n', 'lint:\n\ttrue\n');
    assert.deepEqual(kinds(change, { checks }), ['check-script Makefile']);
    assert.deepEqual(kinds(change, { checks: [checks[0]!] }), []);
    const named: PlanCheck[] = [...checks, { name: 'own', command: 'sh ./scripts/check.sh --all' }];
    assert.deepEqual(kinds(changed('scripts/check.sh', 'a', 'b'), { checks: named }), [
      'check-script scripts/check.sh',
    ]);
  });

  it('finds tests that are left out, in every shape', () => {
    const before = "it('a', () => { assert.ok(a); });\n";
    for (const line of [
      "it.skip('a', () => { assert.ok(a); });",
      "it.only('b', () => { assert.ok(a); }); it('a', () => {});",
      "xit('a', () => { assert.ok(a); });",
      "test.todo('a'); it('a', () => { assert.ok(a); });",
      "it('a', { skip: true }, () => { assert.ok(a); });",
      "it('a', function () { this.skip(); assert.ok(a); });",
      "it('a', t => { t.skip(); assert.ok(a); });",
      "process.exit(0);\nit('a', () => { assert.ok(a); });",
    ])
      assert.ok(kinds(changed('test/a.test.ts', before, line)).includes('test-skipped test/a.test.ts'), line);
    const python = 'def test_a():\n    assert a\n';
    for (const mark of ['@pytest.mark.skip', '@pytest.mark.xfail(reason="x")', '@unittest.skip("x")'])
      assert.deepEqual(kinds(changed('tests/test_a.py', python, `${mark}\n${python}`)), [
        'test-skipped tests/test_a.py',
      ]);
    const go = 'func TestA(t *testing.T) {\n  t.Fatal("x")\n}\n';
    assert.deepEqual(kinds(changed('a_test.go', go, go.replace('{\n', '{\n  t.Skip("later")\n'))), [
      'test-skipped a_test.go',
    ]);
    const only = { path: 'test/new.test.ts', status: 'added', after: "it.only('b', () => {});" } as const;
    assert.deepEqual(kinds(only), ['test-skipped test/new.test.ts']);
  });

  it('finds tests that assert less, also behind comments and with what is always true', () => {
    const before = "it('a', () => {\n  expect(a).toBe(1);\n  expect(b).toBe(2);\n});\n";
    for (const after of [
      "it('a', () => {\n  expect(a).toBe(1);\n});\n",
      "it('a', () => {\n  expect(a).toBe(1);\n  // expect(b).toBe(2);\n});\n",
      "it('a', () => {\n  expect(a).toBe(1);\n  /* expect(b).toBe(2); */\n});\n",
      "it('a', () => {\n  expect(a).toBe(1);\n  expect(true).toBe(true);\n});\n",
    ])
      assert.deepEqual(kinds(changed('src/a.spec.ts', before, after)), ['fewer-assertions src/a.spec.ts']);
    const python = 'def test_a():\n    assert a == 1\n    assert b == 2\n';
    assert.deepEqual(kinds(changed('test_a.py', python, python.replace('assert b == 2', 'assert True'))), [
      'fewer-assertions test_a.py',
    ]);
    assert.deepEqual(
      kinds(changed('src/a.spec.ts', before, `${before}\nit('c', () => { expect(c).toBe(3); });`)),
      [],
    );
  });

  it('finds changes of what runs the tests', () => {
    assert.deepEqual(kinds(changed('jest.config.js', 'a', 'b')), ['runner-config jest.config.js']);
    assert.deepEqual(kinds({ path: 'vitest.config.ts', status: 'deleted', before: 'x' }), [
      'runner-config vitest.config.ts',
    ]);
    const added = { path: '.mocharc.json', status: 'added', after: '{"ignore":["test/a.test.ts"]}' } as const;
    assert.deepEqual(kinds(added), ['runner-config .mocharc.json']);
    assert.deepEqual(kinds(added, { hadTests: false }), []);
    const json = (jest?: object) => JSON.stringify({ name: 'x', ...(jest && { jest }) });
    assert.deepEqual(kinds(changed('package.json', json({ a: 1 }), json({ a: 2 }))), [
      'runner-config package.json',
    ]);
    assert.deepEqual(kinds(changed('package.json', json(), json({ testPathIgnorePatterns: ['a'] }))), [
      'runner-config package.json',
    ]);
    assert.deepEqual(kinds(changed('package.json', '{"name":"x"}', '{"name":"y"}')), []);
    const toml = '[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "-q"\n';
    assert.deepEqual(kinds(changed('pyproject.toml', toml, toml.replace('-q', '--deselect a'))), [
      'runner-config pyproject.toml',
    ]);
    assert.deepEqual(kinds(changed('pyproject.toml', toml, toml.replace('"x"', '"y"'))), []);
  });

  it('finds the scripts that a check runs, and those that they run', () => {
    const scripts = {
      test: 'npm run build && node --test',
      build: 'tsc',
      pretest: 'npm-run-all lint',
      lint: 'x',
      other: 'y',
    };
    assert.deepEqual(scriptsOf(npmTest, scripts).sort(), ['build', 'lint', 'pretest', 'test']);
    const file = (more: object) => JSON.stringify({ scripts: { ...scripts, ...more } });
    for (const [name, line] of [
      ['test', 'true'],
      ['build', 'echo ok'],
      ['pretest', 'rm test/a'],
      ['lint', undefined],
    ] as const)
      assert.deepEqual(
        kinds(changed('package.json', file({}), file({ [name]: line }))),
        ['check-script package.json'],
        name,
      );
    assert.deepEqual(kinds(changed('package.json', file({}), file({ other: 'z', more: 'w' }))), []);
    for (const command of [
      'npm t',
      'npm run test',
      'npm --silent test',
      'yarn test',
      'pnpm run test',
      'CI=1 npm test',
      'cd x && npm test',
    ])
      assert.deepEqual(
        kinds(changed('package.json', file({}), file({ test: 'true' })), {
          checks: [{ name: 'a', command }],
        }),
        ['check-script package.json'],
        command,
      );
    const make = { checks: [{ name: 'a', command: 'make check' }] };
    assert.deepEqual(kinds(changed('Makefile', 'check: a', 'check:'), make), ['check-script Makefile']);
    assert.deepEqual(kinds(changed('Makefile', 'check: a', 'check:')), []);
    const product = { checks: [{ name: 'a', command: 'node src/cli.js --help' }] };
    assert.deepEqual(kinds(changed('src/cli.js', 'a', 'b'), product), []);
    const script = { checks: [{ name: 'a', command: 'sh ./scripts/check.sh --all' }] };
    assert.deepEqual(kinds(changed('scripts/check.sh', 'a', 'b'), script), ['check-script scripts/check.sh']);
  });

  it('finds limits that are lower, and checks that are off', () => {
    const jest = (lines: number) =>
      `export default { coverageThreshold: { global: { lines: ${lines}, branches: 80 } } };`;
    assert.ok(kinds(changed('jest.config.js', jest(90), jest(10))).includes('lower-limit jest.config.js'));
    assert.ok(!kinds(changed('jest.config.js', jest(90), jest(95))).includes('lower-limit jest.config.js'));
    assert.deepEqual(kinds(changed('.coveragerc', 'fail_under = 90', '')), [
      'runner-config .coveragerc',
      'lower-limit .coveragerc',
    ]);
    assert.deepEqual(kinds(changed('eslint.config.js', "{'no-eval': 'error'}", "{'no-eval': 'off'}")), [
      'lower-limit eslint.config.js',
    ]);
    assert.deepEqual(kinds(changed('tsconfig.json', '{"strict": true}', '{"strict": false}')), [
      'lower-limit tsconfig.json',
    ]);
    const lint = (most: number) => JSON.stringify({ scripts: { lint: `eslint --max-warnings ${most}` } });
    assert.deepEqual(kinds(changed('package.json', lint(0), lint(99))), ['lower-limit package.json']);
    for (const line of ['/* eslint-disable */', '// @ts-nocheck', '# pylint: skip-file'])
      assert.deepEqual(kinds(changed('src/a.ts', 'a', `${line}\na`)), ['lower-limit src/a.ts'], line);
    assert.deepEqual(kinds(changed('src/a.ts', 'a', '// eslint-disable-next-line no-eval\na')), []);
  });

  it('finds what a setup runs or obeys, and nothing of what it only installs', () => {
    const found = (line: string, change: FileChange): string[] =>
      kinds(change, { checks: [], setup: { lines: [line], names: new Set(namedPaths(line)) } });
    const added = (path: string): FileChange => ({ path, status: 'added', after: 'x' });
    for (const [line, path] of [
      ['sh setup.sh', 'setup.sh'],
      ['node ./setup.js && npm ci', 'setup.js'],
      ['node ./setup && npm ci', 'setup.js'],
      ['cd tools && ./prepare', 'tools/prepare'],
      ['npm --prefix app run x; (cd app; sh a.sh)', 'app/a.sh'],
      ['"$PWD/bin/up.sh" --fast', 'bin/up.sh'],
      ['python -m build.all', 'build/all.py'],
      ['npm ci', '.npmrc'],
      ['corepack pnpm install', 'app/.pnpmfile.cjs'],
      ['yarn', '.yarn/releases/yarn-4.cjs'],
      ['npm i', 'binding.gyp'],
      ['pip install -e .', 'setup.py'],
      ['bundle install', 'Gemfile'],
      ['cargo build', 'build.rs'],
      ['cargo fetch', '.cargo/config.toml'],
      ['CI=1 make deps', 'Makefile'],
      ['docker compose up -d', 'docker-compose.yml'],
      ['./gradlew deps', 'gradle/wrapper/gradle-wrapper.jar'],
    ] as const)
      assert.deepEqual(found(line, added(path)), [`check-script ${path}`], `${line}: ${path}`);
    const text = (fields: object): string => JSON.stringify({ name: 'a', ...fields });
    const json = (fields: object, before: object = {}): FileChange =>
      changed('package.json', text(before), text(fields));
    for (const fields of [
      ...['preinstall', 'install', 'postinstall', 'prepare', 'prepublish'].map(name => ({
        scripts: { [name]: 'x' },
      })),
      ...[{ packageManager: 'yarn@4' }, { trustedDependencies: ['a'] }],
    ])
      assert.deepEqual(found('npm ci', json(fields)), ['check-script package.json'], JSON.stringify(fields));
    const built = (line: string) => ({ scripts: { prepare: 'npm run build', build: line } });
    assert.deepEqual(found('npm ci', json(built('y'), built('x'))), ['check-script package.json']);
    for (const after of ['\uFEFF{"scripts":{"install":"x"}}', '{"name":', undefined])
      assert.deepEqual(
        found('npm ci', { path: 'app/package.json', status: 'added', ...(after !== undefined && { after }) }),
        ['check-script app/package.json'],
      );
    const build = '[build-system]\nbuild-backend = "x"\n';
    const project = '[project]\ndependencies = ["a"]\n';
    for (const toml of [
      build,
      ` ${build}`,
      `build-system.build-backend = "x"\n${project}`,
      '[tool.poetry]\nbuild = "b.py"\n',
    ])
      assert.deepEqual(found('pip install .', changed('pyproject.toml', project, `${toml}${project}`)), [
        'check-script pyproject.toml',
      ]);
    assert.deepEqual(
      found('composer install', changed('composer.json', '{}', '{"scripts":{"post-install-cmd":"x"}}')),
      ['check-script composer.json'],
    );
    for (const [line, change] of [
      ['npm ci', json({ scripts: { test: 'x' }, dependencies: { b: '1' } })],
      ['npm ci', changed('package-lock.json', '{}', '{"a":1}')],
      ['npm ci', added('setup.py')],
      ['echo make sure; npm ci', added('Makefile')],
      ['pip install -r requirements.txt', changed('requirements.txt', 'a', 'b')],
      ['pip install .', changed('pyproject.toml', project, project.replace('"a"', '"b"'))],
      ['cargo fetch', added('build.rs')],
      ['cp .env.example .env', changed('.env.example', 'a', 'b')],
      ['sh setup.sh', added('src/setup.sh.md')],
    ] as const)
      assert.deepEqual(found(line, change), [], `${line}: ${change.path}`);
  });

  it('keeps protected files to the person, whatever a criterion says', () => {
    const protect = ['legal/**', '*.lock'];
    const found = tamperings(
      [changed('legal/terms.md', 'a', 'b'), changed('src/a.ts', 'a', 'b')],
      guarded({ protect }),
    );
    assert.deepEqual(
      found.map(({ kind, file }) => `${kind} ${file}`),
      ['protected legal/terms.md'],
    );
    assert.equal(unjustified(found, [{ text: 'Change legal/terms.md' }]).length, 1);
  });

  it('lets a criterion name a file, and no other file of its kind', () => {
    const found = tamperings([{ path: 'test/old.test.ts', status: 'deleted', before: 'x' }], guarded());
    for (const text of [
      'Remove test/old.test.ts',
      'Delete `old.test.ts`, which tests nothing',
      '(old.test.ts)',
    ])
      assert.equal(unjustified(found, [{ text }]).length, 0, text);
    for (const text of [
      'Tests pass',
      'Remove test/older.test.ts',
      'very-old.test.ts goes',
      'old.test.tsx',
      'old.test.ts.bak',
    ])
      assert.equal(unjustified(found, [{ text }]).length, 1, text);
  });

  it('finds nothing in ordinary work', () => {
    const work: FileChange[] = [
      changed('src/login.ts', 'export const a = 1;', 'export const a = 2;'),
      { path: 'src/new.ts', status: 'added', after: 'export const b = 1;' },
      { path: 'test/new.test.ts', status: 'added', after: "it('b', () => { assert.equal(b, 1); });" },
      { path: 'README.md', status: 'changed', before: 'a', after: 'b' },
      { path: 'logo.png', status: 'changed' },
      changed(
        'test/a.test.ts',
        "it('a', () => { assert.ok(a); });",
        "it('a', () => { assert.ok(a); assert.ok(b); });",
      ),
      changed(
        'package.json',
        '{"scripts":{"test":"x"},"dependencies":{}}',
        '{"scripts":{"test":"x"},"dependencies":{"y":"1"}}',
      ),
    ];
    assert.deepEqual(tamperings(work, guarded()), []);
    assert.ok(
      work.every(({ path }) => path === 'README.md' || path === 'logo.png' || isGuarded(path, npmTest)),
    );
  });

  it('reads a large file that was made to be slow in time that grows with its size', () => {
    const slow = (times: number): string =>
      `${'expect('.repeat(2 * times)}${'/*'.repeat(times)}${' it.'.repeat(times)}`;
    assertGrowsWithSize(20_000, times => {
      const text = slow(times);
      const paths = ['test/a.test.ts', 'package.json'];
      tamperings(
        paths.map(path => changed(path, text, `${text} `)),
        guarded(),
      );
    });
  });
});
