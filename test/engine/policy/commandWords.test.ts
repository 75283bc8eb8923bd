import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  looseCommands,
  plainWords,
  wordsMatch,
  wordsOccur,
} from '../../../src/engine/policy/shellCommands.ts';

describe('commands in a line', () => {
  it('are found in a time that grows with its length alone', () => {
    assert.deepEqual(looseCommands(`rm ${'1'.repeat(300_000)}`), [['rm', '1'.repeat(300_000)]]);
    assert.ok(looseCommands(`rm\${IFS%??}x 2>&1 >y`).some(words => words.join(' ') === 'rm x'));
    for (const piece of [`\${IFS`, '$(', '"$(', "$'", '`', '<(', '"', "${'", '$(")")', '(', '{a,'])
      assert.ok(
        looseCommands(`${piece.repeat(100_000)}\ngit push`).some(words => words.join(' ') === 'git push'),
        piece,
      );
  });
});

/** Pieces of lines that mean much to one shell and little to another. */
const pieces = [
  ...[
    'a',
    'git',
    'push',
    'b c',
    '-x',
    '--y=z',
    '1',
    '2',
    '.',
    '/',
    '../',
    '~',
    '=',
    ':',
    ',',
    'FOO=1',
    '#',
    '%',
    '@',
    '^',
    '!',
  ],
  ...[
    ' ',
    ' ',
    '  ',
    '\t',
    '\n',
    '\r',
    '\\',
    '\\\n',
    '\0',
    '\x7f',
    '\u00a0',
    '\u2028',
    '\ue000',
    '\ue014',
    'é',
    '👩',
  ],
  ...[
    "'",
    "'",
    '"',
    '"',
    '`',
    '$',
    '$(',
    ')',
    '(',
    '${',
    '}',
    '{',
    '{a,b}',
    '$IFS',
    `\${IFS}`,
    '$HOME',
    "$'",
    '$"',
  ],
  ...[
    ';',
    '&',
    '&&',
    '|',
    '||',
    '|&',
    '>',
    '>>',
    '2>&1',
    '&>',
    '<',
    '<<',
    '<<E',
    '<<<',
    '<(',
    '*',
    '?',
    '[',
    ']',
    '[ab]',
  ],
  ...['if', 'then', 'for', 'time', 'sudo', 'env', 'case', 'esac'],
];

/** Returns the same sequence of numbers below `limit` for the same seed. */
function numbers(seed: number): (limit: number) => number {
  let state = seed;
  return limit => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % limit;
  };
}

describe('any line', () => {
  const next = numbers(20_261_122);
  const line = (): string =>
    Array.from({ length: 1 + next(12) }, () => pieces[next(pieces.length)]!).join(next(3) === 0 ? ' ' : '');
  const lines = Array.from({ length: 20_000 }, line);

  it('gives the generous reader every command that the strict one takes, word for word', () => {
    let taken = 0;
    for (const command of lines) {
      const words = plainWords(command);
      if (words === undefined) continue;
      taken++;
      const loose = looseCommands(command);
      assert.ok(
        loose.some(each => JSON.stringify(each) === JSON.stringify(words)),
        JSON.stringify({ command, words, loose }),
      );
      assert.ok(wordsOccur(words, words) && loose.some(each => wordsOccur(words, each)), command);
    }
    assert.ok(taken > 500, String(taken));
  });

  it('is read by a shell as the strict reader takes it', function () {
    this.timeout(60_000);
    const taken = lines.filter(command => {
      const words = plainWords(command);
      return (
        words !== undefined && !/^(time|case|esac|for)$/.test(words[0]!) && !/[\ud800-\udfff]/.test(command)
      );
    });
    const some = taken.slice(0, 400);
    // Each line becomes the arguments of a function that prints them.
    const script = some.map(command => `show ${command}`).join('\n');
    const shown = execFileSync('/bin/sh', ['-c', `show() { printf '<%s>' "$@"; printf '\\n'; }\n${script}`]);
    const expected = some.map(command =>
      plainWords(command)!
        .map(word => `<${word}>`)
        .join(''),
    );
    assert.deepEqual(shown.toString().trimEnd().split('\n'), expected);
  });
});

describe('plain words', () => {
  const rows: readonly (readonly [string, readonly string[] | undefined])[] = [
    ['git status', ['git', 'status']],
    ['  git   status ', ['git', 'status']],
    [`git commit -m 'two words' "and more"`, ['git', 'commit', '-m', 'two words', 'and more']],
    [`a"b c"d`, ['ab cd']],
    [`x ''`, ['x', '']],
    ['ls --format=%h', process.platform === 'win32' ? undefined : ['ls', '--format=%h']],
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
      "$'\\x67it' push",
      '{git,push}',
      'sh -c "cd x; git push"',
      'eval git "push; x"',
      'sh <<E\ngit push\nE',
      "git push\necho 'open",
      'echo "$(echo \'it; git push)"',
    ];
    const fine = ['git pull', 'git push --dry-run', 'echo gitpush', 'legit push'];
    const has = (command: string): boolean =>
      looseCommands(command).some(words => wordsOccur(['git', 'push'], words));
    for (const command of forbidden) assert.ok(has(command), command);
    for (const command of fine) assert.ok(!has(command), command);
    assert.ok(looseCommands('nice rm -rf x').some(words => wordsOccur(['rm', '*'], words)));
  });
});
