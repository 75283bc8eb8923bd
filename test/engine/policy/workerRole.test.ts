/** A worker of a plan attacks the plan's files, the repository and the person's checkout, with the words that a model would use. */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decide } from '../../../src/engine/policy/decide.ts';
import { type Decision, type PolicyContext, RunMemory } from '../../../src/engine/policy/decision.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('workerRole', () => {
  let folder: TempFolder;
  let context: PolicyContext;
  let [repo, slot]: [string, string] = ['', ''];
  let changed: string | undefined;

  beforeEach(() => {
    folder = tempFolder({
      'repo/package.json': '{"scripts":{"test":"node --test"}}',
      'repo/.telos/plans/bakery/prd.json': '{}',
      'repo/src/a.ts': 'a',
      'slot/package.json': '{"scripts":{"test":"node --test"}}',
      'slot/src/a.ts': 'a',
      'slot/.telos/plans/bakery/plan.md': 'tracked',
      'home/.k': '',
    });
    [repo, slot] = [join(folder.path, 'repo'), join(folder.path, 'slot')];
    mkdirSync(join(repo, 'node_modules/.bin'), { recursive: true });
    symlinkSync(join(repo, 'node_modules'), join(slot, 'node_modules'));
    symlinkSync(join(repo, '.telos'), join(slot, 'notes'));
    symlinkSync(repo, join(slot, 'up'));
    writeFileSync(join(slot, '.git'), `gitdir: ${repo}/.git/worktrees/slot-1\n`);
    changed = undefined;
    context = {
      workingDir: slot,
      packDir: slot,
      skillDir: slot,
      commandDir: slot,
      home: join(folder.path, 'home'),
      protectedDirs: [],
      memory: new RunMemory(),
      role: 'worker',
      closed: [repo],
      stepTools: new Set(['learn', 'run_command']),
      cardCommands: {
        commands: ['npm test', 'git submodule update --init'],
        changed: async () => changed,
      },
    };
  });
  afterEach(() => folder.remove());

  const about = (name: string, input: Record<string, unknown>): Promise<Decision> =>
    decide({ id: '1', name, input }, context);
  const short = ({ action, rule }: Decision): string => `${action} ${rule}`;
  const filled = (text: string): string => text.replaceAll('$REPO', repo).replaceAll('$SLOT', slot);

  async function expectCommands(expected: string, lines: readonly string[]): Promise<void> {
    const wrong: string[] = [];
    for (const line of lines) {
      const decision = short(await about('run_command', { command: filled(line) }));
      if (decision !== expected) wrong.push(`${line}: ${decision}`);
    }
    assert.deepEqual(wrong, [], `expected ${expected}`);
  }

  it('writes in its slot, and nowhere else', async () => {
    const rows = [
      ['src/a.ts', 'allow write.working-dir'],
      ['src/new/b.ts', 'allow write.working-dir'],
      ['.telos/plans/bakery/prd.json', 'deny workflow.plan-files'],
      ['.TELOS/plans/bakery/prd.json', 'deny workflow.plan-files'],
      ['src/../.telos/x', 'deny workflow.plan-files'],
      ['packages/one/.telos/roles/coder.md', 'deny workflow.plan-files'],
      ['.telos./x', 'deny workflow.plan-files'],
      ['notes/plans/bakery/prd.json', 'deny workflow.plan-files'],
      ['$REPO/.telos/plans/bakery/prd.json', 'deny workflow.plan-files'],
      ['$REPO/src/a.ts', 'deny workflow.slot'],
      ['up/src/a.ts', 'deny workflow.slot'],
      ['../repo/src/a.ts', 'deny workflow.slot'],
      ['node_modules/x/index.js', 'deny workflow.slot'],
      ['~/x', 'deny workflow.slot'],
      ['/tmp/x', 'deny workflow.slot'],
      ['.git', 'deny workflow.git'],
      ['.GIT', 'deny workflow.git'],
      ['sub/.git/hooks/pre-commit', 'deny workflow.git'],
      ['$REPO/.git/config', 'deny workflow.git'],
    ] as const;
    for (const tool of ['write_file', 'edit_file'])
      for (const [path, expected] of rows)
        assert.equal(short(await about(tool, { path: filled(path) })), expected, `${tool} ${path}`);
  });

  it('changes how the project is built and tested unasked, but not what instructs others, and nothing where packages lie', async () => {
    mkdirSync(join(slot, 'packages/a'), { recursive: true });
    mkdirSync(join(slot, 'packages/a/node_modules/b'), { recursive: true });
    const rows = [
      ['package.json', 'allow write.working-dir'],
      ['packages/a/package.json', 'allow write.working-dir'],
      ['tsconfig.json', 'allow write.working-dir'],
      ['Makefile', 'allow write.working-dir'],
      ['packages/a/node_modules/b/package.json', 'ask write.executed'],
      ['.venv/pyvenv.cfg', 'ask write.executed'],
      ['.yarn/releases/package.json', 'ask write.executed'],
      ['AGENTS.md', 'ask write.executed'],
      ['.vscode/tasks.json', 'ask write.executed'],
      ['.github/workflows/ci.yml', 'ask write.executed'],
      ['.husky/pre-commit', 'ask write.executed'],
    ] as const;
    for (const [path, expected] of rows)
      assert.equal(short(await about('write_file', { path, content: '{}' })), expected, path);
    // Outside its slot it writes nothing unasked, whatever the name.
    assert.notEqual(
      short(await about('write_file', { path: join(folder.path, 'package.json') })),
      'allow write.working-dir',
    );
    context = { ...context };
    delete context.role;
    assert.equal(
      short(await about('write_file', { path: 'package.json', content: '{}' })),
      'ask write.executed',
    );
  });

  it('keeps the plan of a project without a slot', async () => {
    context = {
      ...context,
      workingDir: repo,
      commandDir: repo,
      closed: [join(repo, 'prds'), join(repo, 'plan.md')],
    };
    const rule = async (path: string) => short(await about('write_file', { path }));
    assert.equal(await rule('src/a.ts'), 'allow write.working-dir');
    assert.equal(await rule('prds/01-a.md'), 'deny workflow.plan-files');
    assert.equal(await rule('PRDS/01-a.md'), 'deny workflow.plan-files');
    assert.equal(await rule('plan.md'), 'deny workflow.plan-files');
    await expectCommands('deny workflow.plan-files', [
      "sed -i 's/\\[ \\]/[x]/' prds/01-a.md",
      'echo done > plan.md',
      'cp x prds/',
    ]);
  });

  it('changes no file of a plan by a command', () =>
    expectCommands('deny workflow.plan-files', [
      "sed -i 's/\\[ \\]/[x]/' .telos/plans/bakery/prds/01-a.md",
      'echo {} > .telos/plans/bakery/prd.json',
      'echo {} > .TELOS/plans/bakery/prd.json',
      "sh -c 'echo {} > .telos/x'",
      'bash -c "bash -c \'touch .telos/x\'"',
      'cd .telos && touch x',
      'cd .tel*/plans && touch x',
      'touch .t?los/x',
      'touch ".te""los/x"',
      'touch .te\\los/x',
      "touch $'.tel\\x6fs/x'",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell fills it in
      'D=.tel; touch ${D}os/x',
      'touch .{telos,x}/y',
      'touch notes/x',
      'tee notes/plans/bakery/prd.json < /dev/null',
      'touch $REPO/.telos/x',
      'touch ../repo/.telos/x',
      "python3 -c \"open('.telos/x','w')\"",
      'node -e "fs.writeFileSync(`.telos/plans/bakery/prd.json`, 1)"',
      "perl -i -pe 's/a/b/' .telos/plans/bakery/plan.md",
      'for f in .telos/plans/*/prds/*.md; do sed -i s/a/b/ "$f"; done',
      'echo .telos/plans/bakery/prd.json | xargs rm',
      'find .telos -name "*.md" -delete',
      'rm -rf .*',
      'ln -s .telos other',
      'mv x .telos/verdict.json',
      'env -C .telos touch x',
      'cat <<EOF | sh\ntouch .telos/x\nEOF',
      'touch $(echo x) .telos/y',
      'eval "touch .telos/x"',
    ]));

  it('looks at the files of a plan', () =>
    expectCommands('allow run.read-only', [
      'cat .telos/plans/bakery/plan.md',
      'ls .telos',
      'grep -rn "git push" .telos',
    ]));

  it('writes no commit, reaches no other repository, and publishes nothing', () =>
    expectCommands('deny workflow.git', [
      'git commit -am x',
      'git -C $REPO reset --hard',
      'git -C. commit',
      'git --git-dir=$REPO/.git status',
      'git --work-tree $REPO checkout .',
      'GIT_DIR=$REPO/.git git commit -m x',
      'GIT_DIR=$REPO/.git git status',
      'export GIT_DIR=$REPO/.git; git status',
      'env GIT_WORK_TREE=$REPO git status',
      'env "GIT_DIR=x" npm run build',
      'git -c alias.x=!sh x',
      'git -c core.fsmonitor=./evil status',
      'git --exec-path=. status',
      'git ci',
      'git stash',
      'git stash drop',
      'git branch new',
      'git branch -D main',
      'git tag v1',
      'git worktree add ../x',
      'git config user.name x',
      'git remote add o https://example.com',
      'git push',
      'git fetch',
      'git update-ref refs/heads/main HEAD',
      'git checkout main',
      'git clean -fdx',
      'git add .',
      'git apply x.patch',
      'git diff --output=x',
      'git diff --ext-diff',
      'git grep -Ovi x',
      'git log "$(cat x)"',
      '/usr/bin/git commit',
      '\\git commit',
      'g""it commit',
      '"git" "commit"',
      'GIT commit',
      'git.exe commit',
      '/usr/lib/git-core/git-commit -m x',
      'sudo git commit',
      'env git commit',
      "env -S 'git commit'",
      'nice -n 5 git commit',
      'timeout 9 git commit',
      'command git commit',
      'exec git commit',
      'echo x | xargs git commit -m',
      'find . -exec git add {} +',
      "sh -c 'git commit'",
      'sh -c \'sh -c "git commit"\'',
      'echo "git commit" | sh',
      'sh <<EOF\ngit commit\nEOF',
      'eval "git commit"',
      'eval git commit',
      "trap 'git commit' EXIT",
      'alias g=git; g commit',
      'alias g=git\ng commit',
      'G=git; $G commit',
      'g() { git commit; }; g',
      'if true; then git commit; fi',
      '(git commit)',
      '{ git commit; }',
      '! git commit',
      'true && git commit',
      'npm test; git commit',
      '$(echo git) commit',
      '`echo git` commit',
      'x=$(git commit)',
      'ln -s /usr/bin/git g; ./g commit',
      'cp /usr/bin/git g',
      'ln -s $(which git) g',
      "python3 -c \"import subprocess; subprocess.run(['git','commit'])\"",
      'node -e "child_process.execSync(`git commit`)"',
      'awk \'BEGIN{system("git commit")}\'',
      'gh pr create',
      'hub push',
      'jj git push',
      'npm publish',
      'npx vsce publish',
      'cargo publish',
      'rm -rf .git',
      'echo x > .git',
      'touch sub/.GIT/hooks/pre-commit',
      'GIT_INDEX_FILE=x python3 x.py',
      'python3 -c "os.environ[\'GIT_DIR\']=1"',
    ]));

  it('stays away from the checkout of the person', () =>
    expectCommands('deny workflow.slot', [
      'rm $REPO/src/a.ts',
      'cd $REPO && npm test',
      'cd ../repo && touch x',
      'echo x > $REPO/src/a.ts',
      'echo x > up/src/a.ts',
      'echo x > /tmp/x',
      'echo x >> ~/x',
      "sh -c 'echo x > ../x'",
      'cp x ../repo/src/',
      'node $REPO/x.js',
      "python3 -c \"open('$REPO/x','w')\"",
      'make -C $REPO',
    ]));

  it('asks about other commands as any run does', async () => {
    await expectCommands('ask run.command', [
      'npm run build',
      'npm ci',
      'node script.js',
      'npx tsc --noEmit',
      './node_modules/.bin/tsc',
      'node_modules/.bin/tsc -p .',
      'apt install git',
      'sh build.sh',
      'npm test -- login',
      'mkdir -p src/new',
      'cp src/a.ts src/b.ts && wc -l src/b.ts',
    ]);
    await expectCommands('allow run.read-only', ['cat src/a.ts', 'grep -rn "git commit" src']);
  });

  it('does not forbid what only looks at its own repository', async () => {
    for (const command of [
      'git status',
      'git --no-pager diff',
      'git log --oneline -5',
      'git branch --show-current',
      'git diff HEAD -- src',
      'git show HEAD:src/a.ts',
      'git status && git diff --stat',
    ])
      assert.doesNotMatch(short(await about('run_command', { command })), /^deny/, command);
  });

  it('runs the commands of the card word for word, in its own folder, while they mean what was accepted', async () => {
    await expectCommands('allow workflow.card', ['npm test', 'git submodule update --init']);
    await expectCommands('ask run.command', [
      'npm test ',
      'npm  test',
      'npm test; npm test',
      'npm test && node x.js',
    ]);
    mkdirSync(join(slot, 'other'));
    const elsewhere = await about('run_command', { command: 'npm test', cwd: join(slot, 'other') });
    assert.equal(short(elsewhere), 'ask run.command');
    changed = 'package.json';
    const decision = await about('run_command', { command: 'npm test' });
    assert.equal(short(decision), 'ask run.command');
    assert.match(
      decision.action === 'ask' ? decision.reason : '',
      /The plan may run it, but package\.json has changed how it works/,
    );
  });

  it('runs commands of the card in the box, but for those that the engine runs outside, and asks before another leaves it', async () => {
    context.hasBox = true;
    context.cardCommands = { commands: ['npm test', 'npm ci'], outside: new Set(['npm ci']) };
    const placeOf = async (command: string, more = {}): Promise<string> => {
      const decision = await about('run_command', { command, ...more });
      return `${short(decision)}${decision.action !== 'deny' && decision.boxed ? ' boxed' : ''}`;
    };
    assert.equal(await placeOf('npm test'), 'allow workflow.card boxed');
    assert.equal(await placeOf('npm ci'), 'allow workflow.card');
    assert.equal(await placeOf('npm run build'), 'allow run.box boxed');
    const leaving = { outside_box: true, why: 'It wants to.' };
    assert.equal(await placeOf('npm test', leaving), 'ask run.command');
    assert.equal(await placeOf('npm run build', leaving), 'ask run.command');
    assert.equal(await placeOf('git commit -qm x'), 'deny workflow.git');
    context.boxRequired = true;
    assert.equal(await placeOf('npm ci'), 'allow workflow.card boxed');
  });

  it('lets the step use its own tools, and no tool of that name elsewhere', async () => {
    assert.equal(short(await about('learn', { note: 'x' })), 'allow workflow.step');
    assert.equal(short(await about('approve', { summary: 'x' })), 'deny tool.undecided');
    context = { ...context, role: 'read-only' };
    assert.equal(short(await about('learn', { note: 'x' })), 'allow workflow.step');
    assert.equal(short(await about('run_command', { command: 'npm test' })), 'deny role.read-only');
    assert.equal(short(await about('write_file', { path: 'x' })), 'deny role.read-only');
  });

  it('keeps a yes for the run and a rule of the user from reaching what a worker never does', async () => {
    context.memory?.grants.add(JSON.stringify(['write_file', join(slot, '.telos/x'), '']));
    context.memory?.grants.add(JSON.stringify(['run_command', 'git commit -am x', slot]));
    assert.equal(short(await about('write_file', { path: '.telos/x' })), 'deny workflow.plan-files');
    assert.equal(short(await about('run_command', { command: 'git commit -am x' })), 'deny workflow.git');
  });

  it('asks in ordinary runs before a plan or a role is changed', async () => {
    const { role: _role, closed: _closed, stepTools: _tools, cardCommands: _card, ...ordinary } = context;
    context = ordinary;
    assert.equal(short(await about('write_file', { path: '.telos/roles/coder.md' })), 'ask write.executed');
    assert.equal(short(await about('run_command', { command: 'git commit -am x' })), 'ask run.command');
    assert.equal(short(await about('learn', { note: 'x' })), 'deny tool.undecided');
  });
});
