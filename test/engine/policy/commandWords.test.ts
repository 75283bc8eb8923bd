import assert from 'node:assert/strict';
import {
  looseCommands,
  plainWords,
  wordsMatch,
  wordsOccur,
} from '../../../src/engine/policy/shellCommands.ts';

describe('commands in a line', () => {
  it('are found in a time that grows with its length alone', () => {
    assert.deepEqual(looseCommands(`rm ${'1'.repeat(300_000)}`), [['rm', '1'.repeat(300_000)]]);
    assert.deepEqual(looseCommands(`rm\${IFS%??}x 2>&1 >y`), [['rm', 'x']]);
    assert.equal(looseCommands(`\${IFS`.repeat(100_000)).length, 100_001);
  });
});

describe('plain words', () => {
  const rows: readonly (readonly [string, readonly string[] | undefined])[] = [
    ['git status', ['git', 'status']],
    ['  git   status ', ['git', 'status']],
    [`git commit -m 'two words' "and more"`, ['git', 'commit', '-m', 'two words', 'and more']],
    [`a"b c"d`, ['ab cd']],
    [`x ''`, ['x', '']],
    ['ls --format=%h', undefined],
    ['ls --sort=size', ['ls', '--sort=size']],
    ['echo a#b', ['echo', 'a#b']],
    ['', undefined],
    [`''`, undefined],
    ['git status; id', undefined],
    ['git status && id', undefined],
    ['git status | cat', undefined],
    ['git status & ', undefined],
    ['git status > x', undefined],
    ['git status < x', undefined],
    ['git status\nid', undefined],
    ['git\tstatus', undefined],
    ['echo $(id)', undefined],
    ['echo `id`', undefined],
    ['echo $HOME', undefined],
    ['echo "$HOME"', undefined],
    ['echo "a\\" ; id"', undefined],
    ["echo '$HOME'", ['echo', '$HOME']],
    ['echo a\\ b', undefined],
    ['ls *.md', undefined],
    ['ls a?', undefined],
    ['ls [ab]', undefined],
    ['ls {a,b}', undefined],
    ['cat ~/x', undefined],
    ['x --file=~/x', undefined],
    ['FOO=1 echo hi', undefined],
    ['echo FOO=1', ['echo', 'FOO=1']],
    ['# git status', undefined],
    ['echo hi # there', undefined],
    ['! git status', undefined],
    ['if true', undefined],
    ["echo 'open", undefined],
    ['echo "open', undefined],
    ['a\0b', undefined],
  ];
  for (const [command, words] of rows)
    it(`${words ? 'reads' : 'refuses'} ${JSON.stringify(command)}`, () =>
      assert.deepEqual(plainWords(command), words));

  it('match a rule exactly, unless its last word opens the arguments', () => {
    assert.ok(wordsMatch(['git', 'status'], ['git', 'status']));
    assert.ok(!wordsMatch(['git', 'status'], ['git', 'status', '-s']));
    assert.ok(wordsMatch(['git', 'status', '*'], ['git', 'status', '-s']));
    assert.ok(wordsMatch(['git', 'status', '*'], ['git', 'status']));
    assert.ok(!wordsMatch(['git', 'status', '*'], ['git', '-c', 'status']));
    assert.ok(!wordsMatch(['*'], ['anything']));
    assert.ok(!wordsMatch(['git', '*', 'x'], ['git', 'y', 'x']));
  });

  it('are found in every part of a line for a rule that forbids', () => {
    const commands = looseCommands('cd x && A=1 git push; (echo "$(rm -rf y)")');
    assert.ok(commands.some(words => wordsMatch(['git', 'push', '*'], words)));
    assert.ok(commands.some(words => wordsMatch(['rm', '*'], words)));
  });

  it('are found however a line is written, where a rule forbids them', () => {
    const forbidden = [
      'git push',
      'sudo -E git push',
      'env A=1 /usr/bin/git push',
      'g\\it "push"',
      "$'git' push",
      'git \\\n push',
      `git$${'{IFS}'}push`,
      'git push >/dev/null 2>&1',
      'echo $(git push)',
      'ls | xargs git push',
    ];
    const fine = ['git pull', 'git push --dry-run', 'echo gitpush', 'legit push'];
    const has = (command: string): boolean =>
      looseCommands(command).some(words => wordsOccur(['git', 'push'], words));
    for (const command of forbidden) assert.ok(has(command), command);
    for (const command of fine) assert.ok(!has(command), command);
    assert.ok(looseCommands('nice rm -rf x').some(words => wordsOccur(['rm', '*'], words)));
  });
});
