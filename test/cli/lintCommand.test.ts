import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CliHome, cliHome } from './cliProcess.ts';

const broken = '---\ndescription: use: this\n---\n# Plan\nBody\n';

describe('telos lint', function () {
  this.timeout(30_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome({
      'work/pack/plan/SKILL.md': broken,
      'work/pack/plan/deeper/skill.md': '# Deeper\n\nSays nothing of itself. More.\n',
      'skills/kairos/skills/kickoff/SKILL.md':
        '---\nname: start\ndescription: d\nmetadata: {"openclaw":{"requires":{"bins":["no-such-program"]}}}\n---\nB',
    });
  });
  afterEach(() => home.remove());

  it('prints one record for each skill below a folder, and totals', async () => {
    const { code, stdout } = await home.run(['--cwd', home.workDir, 'lint', 'pack', '--json']);
    assert.equal(code, 0);
    const { skills, totals } = JSON.parse(stdout);
    const [plan, deeper] = skills;
    assert.deepEqual(
      [
        plan.id,
        plan.name,
        plan.description,
        plan.synopsis,
        plan.bodyBytes,
        plan.ready,
        plan.diagnostics[0].line,
      ],
      ['plan', 'plan', 'use: this', null, 12, true, 2],
    );
    assert.deepEqual(
      [deeper.path, deeper.description, deeper.synopsis],
      [join(home.workDir, 'pack/plan/deeper/skill.md'), '(no description)', 'Says nothing of itself.'],
    );
    assert.deepEqual([totals.skills, totals.warnings, totals.synopses, totals.bodyBytes], [2, 2, 1, 12 + 40]);
  });

  it('says of all known skills what is wrong, and what each lacks in the list', async () => {
    const { code, stdout, stderr } = await home.run(['--verbose', 'lint']);
    assert.equal(code, 0);
    assert.match(stdout, /kickoff\/SKILL\.md:2: hint: The skill is called 'start'/);
    assert.match(stderr, /1 skill, 0 ready/);
    const list = await home.run(['list-skills']);
    assert.match(list.stdout, /^Skill +Ready +Description\nkickoff +no: no-such-program +d\n/);
    const [first] = JSON.parse((await home.run(['list-skills', '--json'])).stdout);
    assert.deepEqual([first.ready, first.missing[0].kind], [false, 'program']);
  });

  it('says with --portable which other programs do not load a skill, and why', async () => {
    const long = 'x'.repeat(1025);
    const cases: readonly [folder: string, text: string, said: RegExp][] = [
      ['good', '---\nname: good\ndescription: D\n---\nB', /^$/],
      [
        'plan',
        '---\nname: planner\ndescription: D\n---\nB',
        /:2: hint: .* VS Code, OpenCode: it is called "planner", not like its folder\./,
      ],
      [
        'My Plan',
        '---\nname: My Plan\ndescription: D\n---\nB',
        /VS Code, OpenCode: it is in a folder whose name others refuse: "My Plan"\./,
      ],
      ['plain', '# Plain\n\nText.\n', /it has no frontmatter\./],
      ['silent', '---\nname: silent\n---\nB', /VS Code, OpenCode, Codex: it has no description\./],
      [
        'long',
        `---\nname: long\ndescription: ${long}\n---\nB`,
        /:3: .*Codex: it has a description of more than 1,024 characters\./,
      ],
      [
        'wide',
        `---\nname: wide\ndescription: D\ncompatibility: ${long}\n---\nB`,
        /:4: .*skills-ref validate: it has a compatibility of more than 500 characters\./,
      ],
      [
        'extra',
        '---\nname: extra\ndescription: D\nmodel: opus\n---\nB',
        /:4: .*skills-ref validate: it has the field `model`\./,
      ],
    ];
    for (const [name, text, said] of cases) {
      home.folder.add({ [`work/${name}/${name}/SKILL.md`]: text });
      const folder = join(home.workDir, name);
      const { code, stdout } = await home.run(['lint', folder, '--portable']);
      const hints = stdout.split('\n').filter(line => line.includes('not loaded by'));
      assert.match(hints.join('\n'), said, name);
      assert.equal(code, hints.length > 0 ? 1 : 0, name);
      assert.doesNotMatch((await home.run(['lint', folder, '--verbose'])).stdout, /not loaded by/);
    }
  });

  it('counts what is wrong in agent.toml and agents.toml, and passes with neither broken', async () => {
    writeFileSync(join(home.skillsDir, 'kairos/agent.toml'), 'x = ');
    const own = await home.run(['lint']);
    assert.equal(own.code, 1);
    assert.match(own.stdout, /kairos\/agent\.toml:1: error: /);
    assert.match(own.stderr, /1 skill, .* 1 error/);
    writeFileSync(join(home.skillsDir, 'kairos/agent.toml'), '');
    assert.equal((await home.run(['lint'])).code, 0);
    writeFileSync(join(home.workDir, 'pack/agent.toml'), '= 1');
    assert.equal((await home.run(['lint', join(home.workDir, 'pack')])).code, 1);
  });

  it('mends with --fix what a program can mend', async () => {
    const { stderr } = await home.run(['lint', '--fix', join(home.workDir, 'pack')]);
    assert.match(stderr, /1 files? fixed/);
    const text = readFileSync(join(home.workDir, 'pack/plan/SKILL.md'), 'utf8');
    assert.equal(text, broken.replace('use: this', '"use: this"'));
  });

  it('leaves a file alone whose letters it would lose, and shows the hints behind its own name too', async () => {
    const old = Buffer.from('---\ndescription: use: caf\xe9\nname: o\n---\ncaf\xe9\n', 'latin1');
    home.folder.add({ 'work/old/SKILL.md': old });
    const { stdout, stderr } = await home.run(['lint', '--fix', '--verbose', join(home.workDir, 'old')]);
    assert.match(stderr, /0 files fixed/);
    assert.match(stdout, /SKILL\.md:2: warning: .*not UTF-8[\s\S]*hint: The skill is called 'o'/);
    assert.deepEqual(readFileSync(join(home.workDir, 'old/SKILL.md')), old);
  });

  it('fails for a file that cannot be read, a folder without skills, and a folder that is none', async () => {
    home.folder.add({ 'bad/x/SKILL.md': new Uint8Array([0]), 'empty/a.txt': '' });
    const at = (name: string): string => join(home.folder.path, name);
    assert.equal((await home.run(['lint', at('bad')])).code, 1);
    assert.equal((await home.run(['lint', at('empty')])).code, 1);
    assert.equal((await home.run(['lint', at('gone')])).code, 2);
  });
});
