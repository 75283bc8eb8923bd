/** Tests lines whose every part is known: what needs no question, what is started, and what no writing of it slips past. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { decide } from '../../../src/engine/policy/decide.ts';
import { type Decision, type PolicyContext, runPolicy } from '../../../src/engine/policy/decision.ts';
import { commandEnvironment } from '../../../src/engine/tools/command.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

const onPosix = process.platform !== 'win32';

(onPosix ? describe : describe.skip)('a line whose every part is known', function () {
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
    run.put('work/data.json', '{"items":[{"name":"kettle"},{"name":"press"}]}\n');
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
    ['cd $SKILL_DIR && python3 scripts/show.py a', 'shown a \n'],
    ['python3 $SKILL_DIR/scripts/show.py a\\ b # as it says', 'shown a b \n'],
    ['python3 $SKILL_DIR/scripts/show.py %d 100%', 'shown %d 100% \n'],
    ['$SKILL_DIR/scripts/up.sh < b.txt', 'B\nA\nB\n'],
    ['"$SKILL_DIR/scripts/show me.sh" x', 'me x\n'],
    ['echo "one two" | $SKILL_DIR/scripts/up.sh', 'ONE TWO\n'],
    ['python3 $SKILL_DIR/scripts/show.py b 2>&1 | sort | head -n 1', 'shown b \n'],
    ['ROOT="$SKILL_DIR"; python3 "$ROOT/scripts/show.py" a', 'shown a \n'],
    ['ROOT=$SKILL_DIR\nNAME=show.py\npython3 $ROOT/scripts/$NAME a', 'shown a \n'],
    ['DIR=$SKILL_DIR/scripts && cd $DIR && python3 show.py "$DIR-x" | wc -l', '1\n'],
    ['python3 $SKILL_DIR/scripts/show.py b > out.txt && cat out.txt', 'shown b \n'],
    ['python3 $SKILL_DIR/scripts/show.py b &> out.txt; cat out.txt', 'shown b \n'],
    ['python3 $SKILL_DIR/scripts/show.py b\npython3 $SKILL_DIR/scripts/show.py c', 'shown b \nshown c \n'],
  ] as const;
  for (const [way, expected] of usualWays)
    it(`runs an own script that is called in a usual way: ${JSON.stringify(way)}`, async () => {
      assert.equal(await carriedOut(way.replaceAll('$SK/', `${run.skill}/`)), expected);
      const { mode } = statSync(join(run.skill, 'scripts/up.sh'));
      assert.equal(mode & 0o111, 0, 'the mode of a file was changed');
      assert.equal((await context.reviews!.stateOf(context.agent!)).state, 'reviewed');
    });

  it('asks about a line that sets what steers programs, has more than one word in a value, or depends on another command', async () => {
    const lines = [
      ...[
        `PYTHONPATH=.; ${script}`,
        `PATH=/tmp; ${script}`,
        `SKILL_DIR=/tmp; python3 $SKILL_DIR/scripts/show.py`,
      ],
      ...[
        `A="b c"; python3 $SK/scripts/show.py $A`,
        `A=*; python3 $SK/scripts/show.py $A`,
        `A=$(id); ${script} $A`,
      ],
      ...[`A=x | ${script} $A`, `A=x || ${script} $A`, `A=/etc/passwd; cat "$A"`, `A=x > out.txt; ${script}`],
    ];
    for (const line of lines)
      assert.equal((await about(line.replaceAll('$SK/', `${run.skill}/`))).action, 'ask', line);
  });

  it('asks about them without an accepted card, shows it, and asks again when a byte changes', async () => {
    run.put('pack/skills/one/scripts/up.sh', '#!/bin/sh\nid\n');
    const question = await about('echo x | $SKILL_DIR/scripts/up.sh');
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
    assert.equal(await carriedOut('python3 -m py_compile other.py'), '');
    assert.equal(await carriedOut('python3 -m py_compile $SKILL_DIR/scripts/show.py'), '');
    assert.ok(!existsSync(join(run.work, '__pycache__')));
    assert.equal((await context.reviews!.stateOf(context.agent!)).files.digest, before.files.digest);
    await expectAll(
      [
        'python3 -m json.tool data.json',
        'python3 -m http.server',
        'python3 -m scripts.gone',
        'python3 -m other',
        'python3 -u -m scripts.press',
        'ROUND=1 python3 -m py_compile other.py',
        'python3 -m py_compile /etc/hostname',
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

  it('knows the folder and the date inside a word, and lets what is only printed be found out', async () => {
    const today = new Date().toLocaleDateString('sv');
    const ways = [
      [`${script} $(pwd)`, `shown ${run.work} \n`],
      [`${script} "$(pwd)/data.json"`, `shown ${run.work}/data.json \n`],
      [`${script} --day "$(date +%Y-%m-%d)"`, `shown --day ${today} \n`],
      [`${script} \`date +%F\``, `shown ${today} \n`],
      [
        'mkdir -p notes/$(date +%Y) && echo x > notes/$(date +%Y)/$(date +%F).md && ls notes/$(date +%Y)',
        `${today}.md\n`,
      ],
      ["echo \"## $(date '+%Y-%m-%d') $(wc -l < b.txt | tr -d ' ') lines\"", `## ${today} 3 lines\n`],
      ['printf \'%s of %s\\n\' "$(head -n 1 b.txt)" b.txt', 'b of b.txt\n'],
      [`echo "it says $(${script} x)"`, 'it says shown x \n'],
      ['echo "$(echo "a  b") and $(echo "$(echo c)")"', 'a  b and c\n'],
    ] as const;
    for (const [command, expected] of ways)
      assert.equal(await carriedOut(command.replaceAll('$SK', run.skill)), expected, command);
  });

  it('takes a text after << that stays as it is', async () => {
    const ways = [
      ["cat > out.md <<'EOF'\n# $HOME `id` $(id)\nEND\nEOF", ''],
      ['cat out.md | cat', '# $HOME `id` $(id)\nEND\n'],
      ['cat <<\'A\' > one.txt && cat >> one.txt << "B"\none\nA\ntwo\nB\ncat one.txt', 'one\ntwo\n'],
      [`${script} "$(pwd)" <<'EOF'\nx\nEOF`, `shown ${run.work} \n`],
      ["$SK/scripts/up.sh <<'EOF' > up.txt && cat up.txt\na\n\nb\nEOF", 'A\n\nB\n'],
      ['cat up.txt | cat', 'A\n\nB\n'],
      ["cat > empty.txt <<'EOF'\nEOF\nwc -c < empty.txt | tr -d ' '", '0\n'],
    ] as const;
    for (const [command, expected] of ways)
      assert.equal(await carriedOut(command.replaceAll('$SK', run.skill)), expected, command);
  });

  it('asks about what only a shell would know of a text or of a line inside a word', async () => {
    await expectAll(
      [
        ...[
          '$(id)',
          '`id`',
          '$(cat b.txt)',
          '$(echo x)',
          '$(date +%Z)',
          '$(date -d \'TZ="ssh"\' +%F)',
          '$((1+2))',
        ].map(word => `${script} ${word}`),
        ...['.e$(date +nv)', "$(date '+%F %T')", '$(pwd; id)', '$(pwd) <(pwd)'].map(
          word => `${script} ${word}`,
        ),
        `${script} \${X:-$(pwd)}`,
        'echo "$(id)"',
        'echo "$(cat /etc/passwd)"',
        'echo "$(cat $OUT/x.txt)"',
        'echo "$(cat .env)"',
        'echo "$(echo x > ../out.txt)"',
        'echo "$(cd .. && ls)"',
        'echo "$(curl http://127.0.0.1/)"',
        'echo "$(echo "$(echo "$(echo "$(echo "$(id)")")")")"',
        'printf "$(cat b.txt)"',
        'printf \'%d\' "$(cat b.txt)"',
        'cat "$(cat b.txt)"',
        'cat $(cat b.txt)',
        'ls $(cat b.txt)',
        'ls $NVM_DIR',
        'find "$NVM_DIR" -name x | head',
        'find $(echo /etc) -name x',
        'grep x $(echo /etc/passwd)',
        'cp $(cat b.txt) x.txt',
        'echo x > $(cat b.txt)',
        'cat < $(cat b.txt)',
        '$(cat b.txt)',
        '$(echo id) x',
        'X=$(cat b.txt) echo x',
        'cd .. && echo $(pwd)',
        'cd "$(cat b.txt)" && ls',
        'cat > out.md <<EOF\n$(id)\nEOF',
        'cat > out.md <<EOF\nplain\nEOF',
        "cat > out.md <<'EOF'\nwithout its end",
        "cat > ../out.md <<'EOF'\nx\nEOF",
        "cat > .git/hooks/pre-commit <<'EOF'\nx\nEOF",
        "cat > out.md <<-'EOF'\n\tx\n\tEOF",
        "cat 3<<'EOF'\nx\nEOF",
        "cat <<'EOF' && id\nx\nEOF",
        "cat <<'EOF'\nx\nEOF\nid",
        "cat <<'EOF'; $(id)\nx\nEOF",
        'echo "$(cat <<\'EOF\'\nx\nEOF\n)"',
        ...['sh', 'bash', 'python3', 'python3 -', 'node -', 'sh -s', 'perl', 'xargs', '. /dev/stdin'].map(
          program => `${program} <<'EOF'\nid\nEOF`,
        ),
        "cat <<'EOF' | sh\nid\nEOF",
      ],
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

  it('asks before a line writes where a file tool would', async () => {
    symlinkSync(run.outside, join(run.work, 'way'));
    symlinkSync(join(run.home, '.bashrc'), join(run.work, 'plain'));
    mkdirSync(join(run.work, '.git/hooks'), { recursive: true });
    chmodSync(run.put('work/tool', 'x'), 0o755);
    const targets = [
      ...[
        '$OUT/x',
        '../x',
        'way/x',
        'plain',
        '.git/hooks/x',
        '.git/config',
        'AGENTS.md',
        '.vscode/tasks.json',
        'tool',
      ],
      ...[
        '~/.bashrc',
        '~/x',
        '$SK/x.md',
        '$SK/scripts/show.py',
        '/dev/tty',
        '/proc/self/mem',
        '.envrc',
        'Makefile',
      ],
      ...['$UNKNOWN/x', 'sub/../../x', '.GIT/hooks/x', '~root/x', 'a*', '{a,b}'],
    ];
    await expectAll(
      [
        ...targets.map(target => `echo x > ${target}`),
        ...targets.map(target => `${script} >> ${target}`),
        ...targets.map(target => `date 2> ${target}`),
        ...targets.map(target => `cp b.txt ${target}`),
        ...targets.map(target => `touch ${target}`),
      ],
      'ask run.command',
    );
    await expectAll(['echo x > /dev/sda', 'date 2> /dev/sda', 'cp b.txt /dev/sda'], 'deny floor.destroys');
    await expectAll(
      [
        'echo x >& file',
        'echo x <> file',
        'echo x 3> file',
        'echo x > a > $OUT/b',
        'echo x >',
        'echo x > "$(id)"',
        'echo x >&3',
      ],
      'ask run.command',
    );
    assert.ok(!existsSync(join(run.outside, 'x')));
  });

  const computes = [
    ['date +%Y', /^20\d\d\n$/],
    ['date "+%A, %d"', /day, \d\d\n$/],
    ['echo "a  b" $HOME_NOT', /^a {2}b \n$/],
    ["echo '$(id) `id` $x'", /^\$\(id\) `id` \$x\n$/],
    [`printf '%s\\n' "a b" c`, /^a b\nc\n$/],
    ["printf '%05.1f|%d\\n' 2.5 3", /^002\.5\|3\n$/],
    ["jq '.items[].name' data.json", /^"kettle"\n"press"\n$/],
    ["jq -r --arg x press '.items[] | select(.name==$x).name' data.json", /^press\n$/],
    ['echo "2 * 3" | bc', /^6\n$/],
    ['head -1 b.txt | cat', /^b\n$/],
    ['head -c 1 b.txt; tail -n 1 b.txt', /^bb\n$/],
    ['sort -u b.txt | tail -1', /^b\n$/],
    ['sort b.txt | uniq -c | sort -rn | head -n 1', /^ *2 b\n$/],
    ['wc -l b.txt', /^3 b\.txt\n$/],
    ['cut -d, -f1 b.txt', /^b\na\nb\n$/],
    ["echo 'a*b' | tr '*' x", /^axb\n$/],
    ['cat b.txt | grep -c b', /^2\n$/],
    ['mkdir -p memory/graph && touch memory/graph/g.jsonl && ls memory/graph', /^g\.jsonl\n$/],
    ['cp $SKILL_DIR/scripts/up.sh notes.md && wc -l < notes.md', /^ *2\n$/],
    ['cp -r $SKILL_DIR/scripts copied && ls copied | head -1', /^__init__\.py\n$/],
    ["find . -name '*.json' | wc -l", /^ *1\n$/],
    ['echo one > list.txt\necho two >> list.txt\ncat list.txt', /^one\ntwo\n$/],
    ['echo x 2>/dev/null', /^x\n$/],
    ["echo it\\'s", /^it's\n$/],
    ["jq -s 'length' *.json", /^1\n$/],
    ['cat b*.txt "b.txt" | wc -l', /^ *6\n$/],
  ] as const;
  for (const [command, expected] of computes)
    it(`computes unasked once the card is accepted: ${JSON.stringify(command)}`, async () => {
      assert.equal((await about(command)).rule, 'run.compute');
      await context.reviews!.revoke({ agent: 'a', folder: run.pack });
      const asked = await about(command);
      assert.equal(asked.rule, 'card.new');
      assert.equal(asked.action === 'ask' && asked.toAllow?.kind, 'allow_rule');
      context = freshRun();
      await accept();
      assert.match(await carriedOut(command), expected);
    });

  it('asks about a star that stands for what is not read unasked, or may not be read as names', async () => {
    run.put('work/keys/id_rsa', 'KEY\n');
    run.put('work/odd/-x.txt', 'x\n');
    run.put('work/odd/env', 'x\n');
    run.put('work/signs/\ue014HOME\ue015', 'x\n');
    run.put('work/lines/a\nb', 'x\n');
    run.put('work/.env', 'KEY=x\n');
    symlinkSync('/etc/hostname', join(run.work, 'host'));
    await expectAll(
      [
        ...[
          'cat keys/*',
          'cat h*',
          'cat .e*',
          'cat .*',
          'cat */b.txt',
          'cat ~/*',
          'cat /etc/host*',
          'cat none*',
        ],
        ...[
          'cat signs/*',
          'cat lines/*',
          'cd odd && cat *',
          'cd odd && jq -n e*',
          'c*t b.txt',
          'X=* date',
          'X=b* echo',
        ],
        ...[
          'echo x > b*',
          'cat < b*',
          'cat b?txt',
          'cat [b].txt',
          'cat {b,c}.txt',
          'cat $X*',
          'cat b.txt\ue001',
        ],
        ...[`${script} *.txt`, `${script} b*`, 'cat ../*', 'cat keys/../keys/*', 'echo b*', 'cp * ../out'],
      ],
      'ask run.command',
    );
  });

  it('asks about a program that would do more than compute', async () => {
    run.put('work/.env', 'KEY=x\n');
    run.put('work/prog.jq', '.\n');
    symlinkSync('/etc/hostname', join(run.work, 'host'));
    symlinkSync('/etc', join(run.work, 'etc'));
    await expectAll(
      [
        ...[
          'date 01010000',
          'date -s tomorrow',
          'date --set=x',
          'date -f b.txt',
          'date -r b.txt',
          'date --file=.env',
        ],
        ...[
          'jq -f prog.jq data.json',
          "jq --rawfile x .env '$x'",
          'jq --slurpfile x b.txt .',
          "jq -n '$ENV'",
          'jq -n env',
        ],
        ...[
          "jq -n 'input_filename' data.json",
          'jq -L . .',
          `jq -n 'include "x"; .'`,
          `jq 'import "x" as x; .' data.json`,
        ],
        ...[
          'jq . .env',
          'jq . host',
          'jq . /etc/hostname',
          'jq -nf prog.jq',
          'jq --seq . data.json --args x',
        ],
        ...[
          'sort -o x b.txt',
          'sort -ox b.txt',
          'sort --output=x b.txt',
          'sort --compress-program=id b.txt',
          'sort -T . b.txt',
        ],
        ...[
          'sort --files0-from=b.txt',
          'sort --random-source=.env b.txt',
          'sort -uo x b.txt',
          'sort ../outside/x',
        ],
        ...[
          'uniq b.txt x',
          'uniq b.txt AGENTS.md',
          'wc --files0-from=b.txt',
          'wc ../x',
          'cut -f1 .env',
          'cat host',
          'cat .env | sort',
        ],
        ...[
          'tail -f b.txt | cat',
          'tail -F b.txt',
          'tail --pid=1 b.txt',
          'head -c 9 .env',
          'grep -r x . | cat',
          'grep -f .env b.txt',
          'grep x .env | cat',
        ],
        ...[
          'printf -v PATH x',
          "printf '%n' PATH",
          "printf '%d' 'a[$(id)]'",
          "printf '%*d' 3 4",
          "printf '%(x)T' 1",
          'printf "$X"',
        ],
        ...[
          'mkdir -p ../x',
          'mkdir -p sub/../../x',
          'mkdir .git',
          'mkdir -p a .vscode',
          'mkdir -m 777 x',
          'mkdir ~/x',
          'mkdir -p $SK/new',
        ],
        ...['touch -r b.txt x', 'touch ../x', 'touch .git/index.lock', 'touch CLAUDE.md', 'touch -d now x'],
        ...[
          'cp b.txt $OUT',
          'cp /etc/hostname x',
          'cp .env x',
          'cp -l b.txt x',
          'cp -s b.txt x',
          'cp -a b.txt x',
          'cp -t .. b.txt',
          'cp b.txt',
        ],
        ...[
          'cp -r $SK x',
          'cp -P host x',
          'cp host x',
          'cp --parents b.txt x',
          'cp -b b.txt x',
          'cp b.txt $SK/scripts/show.py',
        ],
        ...[
          'echo "$OPENAI_API_KEY"',
          'echo $ANTHROPIC_API_KEY',
          'echo "$(id)"',
          'echo $((1+1))',
          'echo $1',
          `echo \${x:-y}`,
          'echo *',
          'echo ~root',
        ],
        ...[
          'A=1 date',
          'date && id',
          'date | sh',
          'date & id',
          'xargs date',
          'env date',
          './date',
          '/tmp/date',
          "'if' date",
          'echo x | tee /tmp/y',
        ],
        ...[
          'bc -x',
          'bc --file=x',
          'bc .env',
          'tr a b c',
          'ls $OUT | wc -l',
          'ls -la ~ | wc -l',
          "find . -exec id ';' | wc -l",
          'cd /etc && cat hostname',
        ],
        ...[
          'date\0',
          "echo $'\\x00'",
          'date\r',
          'date \u200b; id',
          'git',
          'awk 1 b.txt',
          'sed -i s/a/b/ b.txt | cat',
          'cat ~/.ssh/id_rsa | wc',
          'ln -s /etc x',
        ],
      ],
      'ask run.command',
    );
  });

  it('looks at a copy and at the folder that a path may be by then', async () => {
    run.put('work/pre-commit', '#!/bin/sh\nid\n');
    run.put('work/tree/.git/hooks/x', 'id\n');
    run.put('work/linked/a', 'a');
    symlinkSync('/etc', join(run.work, 'linked/etc'));
    run.put('work/keys/.env', 'A=1\n');
    await expectAll(
      [
        'mkdir -p hooks && cp pre-commit hooks',
        'cp pre-commit hooks/',
        'cp -r tree new',
        'cp -r linked new',
        'cp -r keys new',
        'cp -r . ../x',
      ],
      'ask run.command',
    );
  });

  it('never makes a write of a program out of a path that is one when it runs', async () => {
    assert.equal(await carriedOut('echo a > sub.txt; cat sub.txt'), 'a\n');
    assert.equal(readFileSync(join(run.work, 'sub.txt'), 'utf8'), 'a\n');
  });

  describe('of Git', () => {
    const git = (...words: string[]): string =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.test', ...words], {
        cwd: run.work,
        encoding: 'utf8',
      });
    beforeEach(() => {
      git('init', '-q', '-b', 'main');
      run.put('work/.env', 'KEY=first\n');
      git('add', '-A', '-f');
      git('commit', '-qm', 'start the app');
      run.put('work/.env', 'KEY=second\n');
      run.put('work/b.txt', 'changed\n');
      run.put('work/deep/server.pem', 'PRIVATE\n');
      git('add', '-A', '-f');
      git('commit', '-qm', 'add the press');
      run.put('work/b.txt', 'changed again\n');
      run.put('work/.env', 'KEY=third\n');
    });

    it('looks at the history and the changes, and at no secret in them', async () => {
      assert.match(await carriedOut('git log --oneline -n 5'), /add the press\n.*start the app\n$/);
      assert.match(await carriedOut('git log -1 --format=%s'), /^add the press\n$/);
      assert.match(await carriedOut('git --no-pager log -2 --oneline | wc -l'), /^ *2\n$/);
      assert.match(await carriedOut('git status --short'), /^ M \.env\n M b\.txt\n$/);
      assert.match(await carriedOut('git diff --stat'), /b\.txt/);
      assert.match(await carriedOut('git diff -- b.txt'), /changed again/);
      assert.match(await carriedOut('git diff HEAD~1 b.txt'), /\+changed again/);
      const hash = git('rev-parse', '--short', 'HEAD').trim();
      for (const command of [
        'git log -p',
        `git show ${hash}`,
        'git show',
        'git diff',
        'git diff HEAD~1',
        `git diff HEAD~1..${hash}`,
      ]) {
        const shown = await carriedOut(command);
        assert.match(shown, /changed/, command);
        assert.doesNotMatch(shown, /KEY|PRIVATE/, command);
      }
      const secret = git('rev-parse', 'HEAD:.env').trim();
      assert.doesNotMatch(await carriedOut(`git show ${secret}`), /KEY/);
      assert.doesNotMatch(await carriedOut(`git diff ${secret} HEAD`), /KEY/);
    });

    it('starts no program that the settings of a repository name, and asks about such a repository', async () => {
      const proof = join(run.outside, 'proof');
      chmodSync(run.put('outside/evil', `#!/bin/sh\ntouch ${proof}\n`), 0o755);
      const evil = join(run.outside, 'evil');
      run.put('work/.gitattributes', '* filter=x diff=x\n');
      const config = readFileSync(join(run.work, '.git/config'), 'utf8');
      for (const setting of [
        'core.fsmonitor',
        'filter.x.clean',
        'filter.x.process',
        'diff.x.textconv',
        'diff.external',
        'core.pager',
        'gpg.program',
        'include.path',
      ]) {
        git('config', setting, evil);
        await expectAll(['git status', 'git diff', 'git log -p', 'git show'], 'ask run.command');
        run.put('work/.git/config', config);
      }
      for (const text of [
        `[filter "a]b"] clean = ${evil}`,
        `[core] fsmonitor = \\\n ${evil}`,
        `[Filter "x"]\n\tCLEAN=${evil}`,
      ]) {
        run.put('work/.git/config', `${config}${text}\n`);
        await expectAll(['git status'], 'ask run.command');
      }
      run.put('work/.git/config', `${config}[alias]\n\tlog2 = x\n[core]\n\tfsmonitor = true\n`);
      run.put(
        'home/.gitconfig',
        `[core]\n\tpager = ${evil}\n\tfsmonitor = ${evil}\n[diff]\n\texternal = ${evil}\n`,
      );
      chmodSync(run.put('work/.git/hooks/post-index-change', `#!/bin/sh\ntouch ${proof}\n`), 0o755);
      assert.match(await carriedOut('git status'), /modified/);
      assert.match(await carriedOut('git diff'), /changed/);
      assert.ok(!existsSync(proof));
    });

    it('asks about everything else', async () => {
      await expectAll(
        [
          ...[
            'git commit -m x',
            'git push',
            'git -c core.pager=id log',
            'git -C .. log',
            'git --git-dir=x log',
            'git log --output=x',
          ],
          ...[
            'git diff --output=x',
            'git diff --ext-diff',
            'git log --textconv -p',
            'git diff --no-index /etc/passwd b.txt',
          ],
          ...[
            'git diff /etc/passwd /etc/hostname',
            'git diff ../outside/x b.txt',
            'git show HEAD:.env',
            'git show HEAD:b.txt',
            'git show :b.txt',
          ],
          ...[
            "git log --format='%G?'",
            'git log --show-signature',
            'git log -O x',
            'git diff -Ox',
            'git log -- :/x',
            "git log -- ':(top)x'",
          ],
          ...[
            'git log "$(id)"',
            'git grep x',
            'git stash',
            'git config -l',
            'git log -L1,2:b.txt',
            'git diff -- ../outside',
            'git diff -- ~/x',
          ],
        ],
        'ask run.command',
      );
      // A repository that begins above the run's folders shows what lies there.
      context = freshRun({ workingDir: join(run.work, 'deep'), commandDir: join(run.work, 'deep') });
      await expectAll(['git log', 'git status'], 'ask run.command');
    });
  });
});
