import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { addRule, removeRule, writeRule } from '../../../src/engine/policy/policyEdit.ts';
import { PolicyFile, readPolicy, ruleProblem } from '../../../src/engine/policy/policyFile.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('policy.toml', () => {
  let folder: TempFolder;
  let file: string;
  beforeEach(() => {
    folder = tempFolder();
    file = join(folder.path, 'config/policy.toml');
  });
  afterEach(() => folder.remove());
  const write = (text: string): void => folder.add({ 'config/policy.toml': text });
  const read = () => readPolicy(file, '/home/me');
  const draft = {
    agent: 'a',
    pack: '/packs/a',
    tool: 'run_command',
    command: 'make "x"',
    folder: '/packs/a',
  };

  it('takes a rule that a person has made once, and knows beforehand one that would not be understood', async () => {
    write('# mine\n');
    await writeRule(file, 'deny', { agent: '*', tool: 'run_command' });
    await writeRule(file, 'deny', { agent: '*', tool: 'run_command' });
    await writeRule(file, 'allow', { agent: 'a', tool: 'run_command', argv: ['npm', 'test'] });
    const { allow, deny, problems } = read();
    assert.deepEqual([allow.length, deny.length, problems.length], [1, 1, 0]);
    assert.equal(allow[0]?.granted, undefined);
    assert.match(readFileSync(file, 'utf8'), /^# mine\n/);
    const problem = (rule: object): string | undefined => ruleProblem('deny', rule, '/home/me');
    assert.equal(problem({ agent: '*', tool: '*', path: '~/diary/**' }), undefined);
    assert.match(problem({ agent: '*', tool: '*', path: 'diary' }) ?? '', /not an absolute path/);
    assert.match(problem({ agent: '*', tool: 'fetch_url', host: 'a b' }) ?? '', /host that is none/);
  });

  it('gives the rules with their lines, and paths without ~', () => {
    write(`# mine
[[allow]]
agent = "a"
tool = "run_command"
argv = ["git", "status", "*"]

[[deny]]
tool = "fetch_url"

[[allow]]
agent = "*"
tool = "read_file"
path = "~/notes/**"
`);
    const { allow, deny, problems } = read();
    assert.deepEqual(problems, []);
    assert.deepEqual(
      allow.map(({ line, argv, path }) => [line, argv ?? path]),
      [
        [2, ['git', 'status', '*']],
        [10, '/home/me/notes/**'],
      ],
    );
    assert.deepEqual(deny, [{ agent: '*', tool: 'fetch_url', effect: 'deny', line: 7 }]);
  });

  it('warns of rules that are wider than they look, and uses them all the same', () => {
    const rules = (lists: readonly string[]): string =>
      lists.map(argv => `[[allow]]\nagent = "a"\ntool = "run_command"\nargv = ${argv}\n\n`).join('');
    const wide = [
      ...['["git", "diff", "*"]', '["find", "*"]', '["sort", "*"]', '["tar", "*"]', '["make", "*"]'],
      ...['["npm", "run", "*"]', '["awk", "*"]', '["sed", "-n", "*"]', '["xargs", "*"]', '["env", "*"]'],
      ...['["/usr/bin/find", "*"]', '["git", "*"]', '["git", "-C", "x", "*"]', '["python3", "*"]'],
      ...['["make", "check", "*"]', '["docker", "run", "*"]', '["node", "--test", "*"]', '["sh", "-c", "*"]'],
    ];
    write(rules(wide));
    const { allow, problems, warnings } = read();
    assert.deepEqual([allow.length, problems], [wide.length, []]);
    assert.deepEqual(
      warnings.map(warning => /policy\.toml, line (\d+): .*wider than it looks/.exec(warning)?.[1]),
      wide.map((_, index) => String(index * 5 + 1)),
    );
    const narrow = [
      ...['["git", "status"]', '["git", "status", "*"]', '["git", "rev-parse", "*"]', '["ls", "*"]'],
      ...['["find"]', '["npm", "run", "lint"]', '["python3", "tools/report.py", "*"]', '["echo", "*"]'],
      ...['["jq", "*"]', '["cat", "*"]', '["date", "*"]', '["npm", "ls", "*"]'],
    ];
    write(rules(narrow));
    assert.deepEqual([read().allow.length, read().warnings], [narrow.length, []]);
    const told = new PolicyFile(file, '/home/me');
    write(rules(wide.slice(0, 1)));
    assert.match(told.newProblems().join(), /git diff can write files or start programs/);
    assert.deepEqual(told.newProblems(), []);
  });

  it('counts as broken where it could forbid what is not understood, and names the line', () => {
    const deny = '[[deny]]\ntool = "*"\npath = "/srv/**"\n';
    const slips = [
      ['[[allow]\n', 5, /Invalid TOML/],
      ['[[deny]]\ntool = "*"\npath = "/x"\nreason = "mine"\n', 5, /unknown key 'reason'/],
      ['[[deny]]\ntool = "*"\npath = ["/x"]\n', 5, /'path' that is not text/],
      ['[[deny]]\npath = "/x"\n', 5, /names no tool/],
      ['[[deny]]\ntool = "*"\npath = "x"\n', 5, /not an absolute path/],
      ['[[deny]]\ntool = "*"\npath = "~root/x"\n', 5, /not an absolute path/],
      ['[[deny]]\ntool = "*"\npath = "/x/*.pem"\n', 5, /only \/\*\* at its end/],
      ['[[deny]]\ntool = "*"\npath = "/x/{a,b}/**"\n', 5, /only \/\*\* at its end/],
      ['[[deny]]\ntool = "*"\npath = "/x/[^a]b/**"\n', 5, /only \/\*\* at its end/],
      ['[[deny]]\ntool = "Read_File"\npath = "/x"\n', 5, /'Read_File', which is called read_file/],
      ['[[deny]]\ntool = "run-command"\n', 5, /'run-command', which is called run_command/],
      ['[[deny]]\ntool = "Bash"\n', 5, /'Bash', which is called run_command/],
      ['[[deny]]\ntool = "*"\nhost = "*"\n', 5, /host that is none/],
      ['[[Deny]]\ntool = "*"\npath = "/x"\n', 5, /'Deny' is not known here/],
      ['[settings]\nask = false\n', 5, /'settings' is not known here/],
    ] as const;
    for (const [slip, line, reason] of slips) {
      write(`${deny}\n${slip}`);
      const { allow, broken = '', problems } = read();
      assert.deepEqual(allow, [], slip);
      assert.match(broken, reason, slip);
      assert.match(
        broken,
        new RegExp(`policy\\.toml, line ${line}: .*[Uu]ntil it is corrected, nothing runs`),
        slip,
      );
      assert.equal(problems[0], broken);
    }
    write('');
    writeFileSync(file, Buffer.from(`${deny}\n[[deny]]\ntool = "*"\npath = "/srv/caf\xe9/**"\n`, 'latin1'));
    assert.match(read().broken ?? '', /line 7: .*not UTF-8.*nothing runs/);
    write(deny.replace('[[deny]]', '[deny]'));
    assert.match(read().broken ?? '', /line 1: 'deny' must be written as \[\[deny\]\]/);
  });

  it('is not broken by an allow rule that is not understood, since that forbids nothing', () => {
    write('[[deny]]\ntool = "fetch_url"\n\n[[allow]]\ntool = "run_command"\n');
    const { deny, broken, problems } = read();
    assert.deepEqual([deny.length, broken, problems.length], [1, undefined, 1]);
    write('[[allow]]\nagent = "*"\ntool = "fetch_url"\nhost = "169.254.169.254"\n');
    assert.match(read().problems[0] ?? '', /line 1: .*names a metadata address, which is never fetched/);
    write('[allow]\ntool = "run_command"\n');
    assert.deepEqual([read().broken, read().problems.length], [undefined, 1]);
  });

  it('is not there where there is no file, and broken where a link leads to none', () => {
    assert.deepEqual(read(), { file, allow: [], deny: [], problems: [], warnings: [], isThere: false });
    mkdirSync(join(folder.path, 'config'));
    symlinkSync(join(folder.path, 'gone.toml'), file);
    assert.match(read().broken ?? '', /policy\.toml is a link to nothing/);
    rmSync(file);
    mkdirSync(file);
    assert.match(read().broken ?? '', /policy\.toml could not be read: It is a folder/);
  });

  it('keeps the rules that were read before in an open window, whoever reads, and has none in a new one', () => {
    const good = '[[deny]]\ntool = "fetch_url"\n';
    write('[[deny]\n');
    assert.match(new PolicyFile(file, folder.path).read().broken ?? '', /nothing runs/);
    write(good);
    assert.equal(new PolicyFile(file, folder.path).read().deny.length, 1);
    write(`${good}reason = "mine"\n`);
    const { deny, broken, problems } = new PolicyFile(file, folder.path).read();
    assert.deepEqual([deny.length, broken, problems.length], [1, undefined, 1]);
    assert.match(problems[0] ?? '', /line 1: .*its rules as they were read before hold/);
    rmSync(file);
    const rules = new PolicyFile(file, folder.path);
    assert.deepEqual([rules.read().deny, rules.read().problems], [[], []]);
    write('[[deny]\n');
    assert.match(rules.read().broken ?? '', /nothing runs/, 'no file is no good one');
  });

  it('leaves out a rule that is not understood in full, and names its line', () => {
    const good = '[[allow]]\nagent = "a"\ntool = "run_command"\ncommand = "x"\n';
    const bad = [
      ['tool = "run_command"\ncommand = "y"', /names no agent/],
      ['agent = "a"\ncommand = "y"', /names no tool/],
      ['agent = "a"\ntool = "run_command"', /exactly one of/],
      ['agent = "a"\ntool = "run_command"\ncommand = "y"\nargv = ["y"]', /exactly one of/],
      ['agent = "a"\ntool = "run_command"\ncomand = "y"', /unknown key 'comand'/],
      ['agent = "a"\ntool = "run_command"\nargv = "git status"', /not a list of words/],
      ['agent = "a"\ntool = "run_command"\nargv = []', /not a list of words/],
      ['agent = "a"\ntool = "read_file"\nhost = "example.com"', /'host', which read_file has not/],
      ['agent = "a"\ntool = "fetch_url"\nhost = "https://example.com/"', /host that is none/],
      ['agent = "a"\ntool = "fetch_url"\nhost = "*"', /host that is none/],
      ['agent = "a"\ntool = "read_file"\npath = "notes"', /not an absolute path/],
      ['agent = "a"\ntool = "*"\npath = "/x"', /allows every tool/],
    ] as const;
    for (const [lines, wanted] of bad) {
      write(`${good}\n[[allow]]\n${lines}\n`);
      assert.equal(read().allow.length, 1, lines);
      assert.match(read().problems.join(), wanted);
      assert.match(read().problems.join(), /line 6/);
    }
  });

  it('grants nothing beside a prohibition that is not understood', () => {
    write(
      '[[allow]]\nagent = "a"\ntool = "run_command"\ncommand = "x"\n\n[[deny]]\ntool = "run_command"\nargv = "rm"\n',
    );
    assert.deepEqual(read().allow, []);
    assert.match(read().problems[0] ?? '', /line 6/);
  });

  it('says why when it cannot be looked at', () => {
    const rules = new PolicyFile(file, folder.path);
    mkdirSync(join(folder.path, 'config'));
    symlinkSync(basename(file), file);
    assert.deepEqual(rules.read().allow, []);
    assert.match(rules.read().broken ?? '', /policy\.toml could not be read: too many symbolic links/);
    rmSync(file);
    assert.deepEqual(rules.read().problems, []);
  });

  it('is read again when it has changed, and tells each problem once', () => {
    const rules = new PolicyFile(file, folder.path);
    assert.deepEqual(rules.read().allow, []);
    write('[[allow]]\nagent = "a"\ntool = "run_command"\ncommand = "x"\n');
    assert.equal(rules.read().allow.length, 1);
    write('[[allow]]\nagent = "a"\ntool = "run_command"\ncommand = "y"\n');
    assert.equal(rules.read().allow[0]?.command, 'y');
    write('[[allow\n');
    assert.equal(rules.newProblems().length, 1);
    assert.equal(rules.newProblems().length, 0);
    assert.equal(rules.read().allow[0]?.command, 'y');
  });

  it('gets a rule appended and taken out again, and keeps every byte that its owner wrote', async () => {
    const own = '# Mine.\n[[deny]]   # never\ntool = "fetch_url"\nhost = "evil.test"';
    write(own);
    chmodSync(file, 0o640);
    await addRule(file, draft, new Date(0));
    const text = readFileSync(file, 'utf8');
    assert.ok(text.startsWith(`${own}\n\n[[allow]]\n`), text);
    assert.equal(statSync(file).mode & 0o777, 0o640);
    assert.deepEqual(read().problems, []);
    const [rule] = read().allow;
    assert.deepEqual(
      { ...rule },
      { ...draft, effect: 'allow', line: 6, granted: '1970-01-01T00:00:00.000Z' },
    );
    await addRule(file, draft, new Date(9));
    assert.equal(readFileSync(file, 'utf8'), text, 'the same rule twice');
    assert.ok(rule && (await removeRule(file, rule, '/home/me')));
    assert.equal(readFileSync(file, 'utf8').trimEnd(), own);
    assert.equal(await removeRule(file, rule, '/home/me'), false);
    assert.deepEqual(readdirSync(join(folder.path, 'config')), ['policy.toml']);
  });

  it('removes no other rule that has come to stand in the place', async () => {
    write('[[allow]]\nagent = "a"\ntool = "run_command"\ncommand = "x"\n');
    const [rule] = read().allow;
    write('[[allow]]\nagent = "a"\ntool = "run_command"\ncommand = "y"\n');
    assert.ok(rule);
    assert.equal(await removeRule(file, rule, '/home/me'), false);
    assert.equal(read().allow.length, 1);
  });

  it('removes a rule that stands elsewhere by now', async () => {
    const [x, y] = ['x', 'y'].map(
      command => `[[allow]]\nagent = "a"\ntool = "run_command"\ncommand = "${command}"\n`,
    );
    write(`${x}\n${y}`);
    const rule = read().allow[1];
    write(`# said later\n\n${y}\n${x}`);
    assert.ok(rule);
    assert.equal(await removeRule(file, rule, '/home/me'), true);
    assert.deepEqual(
      read().allow.map(({ command }) => command),
      ['x'],
    );
  });

  it('is left alone when it is broken, and stays a link where it is one', async () => {
    write('[[allow\n');
    await assert.rejects(addRule(file, draft, new Date()), /is broken.*correct it first/);
    assert.equal(readFileSync(file, 'utf8'), '[[allow\n');
    folder.add({ 'dotfiles/policy.toml': '' });
    const linked = join(folder.path, 'linked.toml');
    symlinkSync(join(folder.path, 'dotfiles/policy.toml'), linked);
    await addRule(linked, draft, new Date());
    assert.match(readFileSync(join(folder.path, 'dotfiles/policy.toml'), 'utf8'), /make/);
  });

  it('loses no rule when processes write at once', async () => {
    const module = new URL('../../../src/engine/policy/policyEdit.ts', import.meta.url).href;
    const script = `const { addRule } = await import(${JSON.stringify(module)});
      for (let n = 0; n < 10; n++)
        await addRule(${JSON.stringify(file)}, { agent: process.argv[1], pack: '/p', tool: 'run_command', command: 'c' + n }, new Date());`;
    const run = promisify(execFile);
    const args = (agent: string) => ['--input-type=module', '-e', script, agent];
    await Promise.all(['a', 'b', 'c'].map(agent => run(process.execPath, args(agent))));
    assert.equal(read().allow.length, 30);
    assert.deepEqual(read().problems, []);
    assert.deepEqual(readdirSync(join(folder.path, 'config')), ['policy.toml']);
  });

  it('is not held up for ever by a lock that a dead process left', async () => {
    write('');
    writeFileSync(`${file}.lock`, '');
    const { utimesSync } = await import('node:fs');
    utimesSync(`${file}.lock`, new Date(0), new Date(0));
    await addRule(file, draft, new Date());
    assert.equal(read().allow.length, 1);
  });
});
