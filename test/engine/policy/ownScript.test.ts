/** Tests lines that start an own script: what needs no question, what is started, and what no writing of it slips past. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { decide } from '../../../src/engine/policy/decide.ts';
import { type Decision, type PolicyContext, runPolicy } from '../../../src/engine/policy/decision.ts';
import { commandEnvironment } from '../../../src/engine/tools/command.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

const onPosix = process.platform !== 'win32';

(onPosix ? describe : describe.skip)('a line that starts an own script', function () {
  // Each line is decided on and some are started: a slow machine needs seconds.
  this.timeout(30_000);
  let run: TemporaryRun;
  let context: PolicyContext;
  beforeEach(async () => {
    run = temporaryRun();
    run.put('pack/skills/one/SKILL.md', '---\nname: one\ndescription: d\n---\nSet ROUND=2, then run it.\n');
    run.put('pack/skills/one/scripts/__init__.py', '');
    run.put('pack/skills/one/scripts/other.py', 'word = "own"\n');
    run.put(
      'pack/skills/one/scripts/show.py',
      'import os, sys\nprint("shown", *sys.argv[1:], os.environ.get("ROUND", ""))\n',
    );
    run.put(
      'pack/skills/one/scripts/press.py',
      'import json, sys\nfrom scripts import other\nprint(other.word, json.__file__, *sys.argv[1:])\n',
    );
    run.put('pack/skills/one/scripts/up.sh', '#!/bin/sh\ntr a-z A-Z\n');
    run.put('pack/skills/one/scripts/show me.sh', '#!/usr/bin/env -S sh -e\necho "me $1"\n');
    run.put('work/b.txt', 'b\na\nb\n');
    context = freshRun();
    await accept();
  });
  afterEach(() => run.remove());

  function freshRun(more: Partial<PolicyContext> = {}): PolicyContext {
    const { workingDir, packDir, skillDir } = run.context;
    const places = { configDir: join(run.home, 'c'), dataDir: join(run.home, 'd'), home: run.home, env: {} };
    const skills = [{ dir: run.skill, file: join(run.skill, 'SKILL.md') }];
    const agent = { name: 'a', packDir, workingDir, source: 'user' as const, skills };
    return { ...runPolicy(places, agent, { workingDir, packDir, skillDir, commandDir: run.work }), ...more };
  }
  const accept = async (): Promise<void> =>
    context.reviews!.accept(context.agent!, await context.reviews!.cardOf(context.agent!), new Date());
  const about = (command: string): Promise<Decision> =>
    decide({ id: '1', name: 'run_command', input: { command } }, context);

  /** Runs what was decided on, as the command tool does, and returns what it prints. */
  async function carriedOut(command: string): Promise<string> {
    const decision = await about(command);
    assert.ok(decision.action === 'allow' && decision.line !== undefined, `${command}: ${decision.rule}`);
    const env = commandEnvironment(
      { ...process.env, HOME: run.home } as Record<string, string>,
      run.context,
      join(run.home, 'd'),
    );
    const { stdout, stderr, status } = spawnSync('/bin/sh', ['-c', decision.line], {
      cwd: run.work,
      env,
      encoding: 'utf8',
    });
    return status === 0 ? stdout + stderr : `${stdout}${stderr}exit ${status}\n`;
  }

  async function expectAll(commands: readonly string[], expected: string): Promise<void> {
    for (const command of commands) {
      const { action, rule } = await about(
        command.replaceAll('$SK', run.skill).replaceAll('$OUT', run.outside),
      );
      assert.equal(`${action} ${rule}`, expected, command);
    }
  }

  const script = 'python3 $SK/scripts/show.py';
  const usualWays = [
    ['python3 $SK/scripts/show.py a "b c"', 'shown a b c \n'],
    ['python3 -u -B $SK/scripts/show.py a', 'shown a \n'],
    ['python3 -I $SK/scripts/show.py a', 'shown a \n'],
    ['/usr/bin/env python3 $SK/scripts/show.py a', 'shown a \n'],
    ['env ROUND=3 python3 $SK/scripts/show.py a', 'shown a 3\n'],
    ['ROUND=1 python3 $SK/scripts/show.py a', 'shown a 1\n'],
    ['python3 $SKILL_DIR/scripts/show.py a', 'shown a \n'],
    [`python3 "\${CLAUDE_SKILL_DIR}/scripts/show.py" a`, 'shown a \n'],
    ['python3 $SKILL_DIR/scripts/show.py \\\n  --name \\\n  "a  b"', 'shown --name a  b \n'],
    ['python3 $SKILL_DIR/scripts/show.py a\\ b # as it says', 'shown a b \n'],
    ['python3 $SKILL_DIR/scripts/show.py %d 100%', 'shown %d 100% \n'],
    ['"$SKILL_DIR/scripts/show me.sh" x', 'me x\n'],
    ['python3 $SKILL_DIR/scripts/show.py b 2>&1\n', 'shown b \n'],
  ] as const;
  for (const [way, expected] of usualWays)
    it(`runs an own script that is called in a usual way: ${JSON.stringify(way)}`, async () => {
      assert.equal(await carriedOut(way.replaceAll('$SK/', `${run.skill}/`)), expected);
      const { mode } = statSync(join(run.skill, 'scripts/up.sh'));
      assert.equal(mode & 0o111, 0, 'the mode of a file was changed');
      assert.equal((await context.reviews!.stateOf(context.agent!)).state, 'reviewed');
    });

  it('asks about an own script that is not alone on its line', async () => {
    await expectAll(
      [
        ...[`echo x | ${script}`, `${script} | sort`, `${script} > out.txt`, `${script} < b.txt`],
        ...[`${script} &> out.txt`, `${script} 2> out.txt`, `${script} 1>&2`, `${script} 2>&1 2>&1`],
        ...[`${script}\n${script}`, `${script}; ${script}`, `ROOT=$SK; python3 "$ROOT/scripts/show.py" a`],
        ...['cd $SKILL_DIR && python3 scripts/show.py a', `${script} <<'EOF'\nx\nEOF`, `${script} "$(pwd)"`],
      ],
      'ask run.command',
    );
  });

  it('asks about them without an accepted card, shows it, and asks again when a byte changes', async () => {
    run.put('pack/skills/one/scripts/up.sh', '#!/bin/sh\nid\n');
    const question = await about('$SKILL_DIR/scripts/up.sh x');
    assert.equal(question.rule, 'card.changed');
    assert.ok(question.action === 'ask' && question.scopes.includes('always'));
    assert.equal((await about('echo x')).rule, 'card.changed');
  });

  it('runs an own module in the folder of the person, and nothing that lies there', async () => {
    const before = await context.reviews!.stateOf(context.agent!);
    for (const name of ['json', 'runpy', 'site', 'os', 'other', 'py_compile'])
      run.put(`work/${name}.py`, 'raise SystemExit("taken from the working folder")\n');
    run.put('work/scripts/__init__.py', 'raise SystemExit("taken from the working folder")\n');
    run.put('work/scripts/press.py', 'raise SystemExit("taken from the working folder")\n');
    assert.match(await carriedOut('python3 -m scripts.press new'), /^own .*json\/__init__\.py new\n$/);
    assert.ok(!existsSync(join(run.work, '__pycache__')));
    assert.equal((await context.reviews!.stateOf(context.agent!)).files.digest, before.files.digest);
    await expectAll(
      [
        'python3 -m json.tool data.json',
        'python3 -m http.server',
        'python3 -m scripts.gone',
        'python3 -m other',
        'python3 -u -m scripts.press',
        'python3 -m py_compile other.py',
        'python3 -m scripts/press',
        'python3 -m ..scripts.press',
        'node -m scripts.press',
      ],
      'ask run.command',
    );
  });

  it('hands a script the variables of its words, but no place of secrets', async () => {
    assert.equal(
      await carriedOut(`${script} "--user=$USER_OF_NO_ONE" "$LANG_OF_NO_ONE-b"`.replaceAll('$SK', run.skill)),
      'shown --user= -b \n',
    );
    context = freshRun({ env: { PART: '.ss', WHOLE: join(run.home, '.aws/credentials'), ENDING: '.env' } });
    await expectAll([`${script} $PLAIN "$OTHER/x.md"`, `${script} a.$PART`], 'allow card.script');
    await expectAll(
      [
        ...['$WHOLE', 'work/$ENDING', 'x=$WHOLE', '*.$PART'],
        ...['"$(echo x)"', '$1', '$@'],
        ...[`"$HOME/\${PART}h/id_rsa"`, `.en\${NONE}v`, `"\${PART:-x}"`, `"\${PART%s}"`, `"\${!PART}"`],
      ].map(word => `${script} ${word}`),
      'ask run.command',
    );
    await expectAll(
      ['python3 $SK/scripts/$NAME.py', '$NAME $SK/scripts/show.py', 'python3 $FLAG $SK/scripts/show.py'],
      'ask run.command',
    );
  });

  it('asks about an own script that is told what to load, or is not the one', async () => {
    await expectAll(
      [
        ...[
          'PATH=. ',
          'LD_PRELOAD=x.so ',
          'PYTHONPATH=. ',
          'PYTHONSTARTUP=x ',
          'NODE_OPTIONS=-r=x ',
          'BASH_ENV=x ',
          'HOME=. ',
          'IFS=x ',
          'UNKNOWN=1 ',
          'ROUND=$(id) ',
          'ROUND=$OTHER ',
          'ROUND=1 LD_AUDIT=x ',
          'env -i ',
          'env -S ',
          'sudo ',
          'exec ',
          'nohup ',
          'time ',
          'command ',
          'env PYTHONHOME=. ',
          'HTTPS_PROXY=http://evil.test ',
        ].map(before => before + script),
        'python3 -c 1 $SK/scripts/show.py',
        'python3 -i $SK/scripts/show.py',
        'python3 -X importtime $SK/scripts/show.py',
        'python3 -W error::evil.W $SK/scripts/show.py',
        'bash -c $SK/scripts/up.sh',
        'sh -x $SK/scripts/up.sh',
        'sh < $SK/scripts/up.sh',
        './python3 $SK/scripts/show.py',
        `${run.work}/python3 $SK/scripts/show.py`,
        'node -r ./x.js $SK/scripts/show.py',
        'python3 $OTHER/scripts/show.py',
        'python3 $SK/scripts/sh*.py',
        'python3 $SK/scripts/{show,other}.py',
        'python3 $SK/scripts/show.py `id`',
        'python3 $SK/scripts/show.py <(id)',
        'python3 $SK/scripts/show.py & id',
        `${script} &`,
        `${script}; id`,
        `id && ${script}`,
        `${script} || id`,
        `${script} | sh`,
        `${script} | xargs id`,
        `${script} |& id`,
        `(${script})`,
        `{ ${script}; }`,
        `if ${script}; then date; fi`,
        `! ${script}`,
        `${script} <<E\nx\nE`,
        `cd $OUT && ${script}`,
        `cd .. && ${script}`,
        `cd $SK; python3 scripts/show.py`,
        `cd $SK || python3 scripts/show.py`,
        `cd $SK | python3 scripts/show.py`,
        `cd - && ${script}`,
        `cd && ${script}`,
        `SKILL_DIR=/tmp python3 $SKILL_DIR/scripts/show.py`,
        `SKILL_DIR=/tmp; python3 $SKILL_DIR/scripts/show.py`,
        'python3 $SK/scripts/../../../../outside/x.py',
      ],
      'ask run.command',
    );
  });

  it('asks about programs that only compute, with an accepted card too', async () => {
    await expectAll(
      [
        ...['date +%Y', 'echo x', "printf '%s' a", 'sort b.txt', 'cat b.txt | wc -l', 'cat b*.txt'],
        ...['jq . b.txt', 'mkdir -p memory', 'touch x', 'cp b.txt c.txt', 'echo x > c.txt', 'cd . && ls'],
        ...['git status', 'git log --oneline', 'git diff', 'git show', 'python3 -m py_compile b.py'],
      ],
      'ask run.command',
    );
  });
});
