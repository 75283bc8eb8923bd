/** Holds the readers of shell text together: what the strict one takes, those that forbid see as well. Lines are made by chance, from fixed seeds. */
import assert from 'node:assert/strict';
import { commandReach, linesThatRun } from '../../../src/engine/policy/commandReach.ts';
import { dangerOf } from '../../../src/engine/policy/danger.ts';
import { foldedPath, writtenSegments } from '../../../src/engine/policy/reach.ts';
import { parseReadOnlyCommand } from '../../../src/engine/policy/readOnlyCommand.ts';
import { looseCommands, plainWords } from '../../../src/engine/policy/shellCommands.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

/** Returns numbers from 0 to below `end`, the same ones for the same seed. */
function chance(seed: number): (end: number) => number {
  let state = seed * 2654435761 + 1;
  return end => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 3266489917) >>> 0;
    return (state >>> 3) % end;
  };
}

const programs = [
  'cat',
  'ls',
  'head',
  'grep',
  'find',
  'rg',
  'rm',
  'git',
  'npm',
  './run.sh',
  '"cat"',
  'c\\at',
];
const pieces = [
  ...[
    'a.txt',
    'sub/b.txt',
    '"a b.txt"',
    "'sub/b.txt'",
    '-n',
    '-rf',
    '--',
    '/etc/passwd',
    '../out',
    '.env',
    '~',
    '~/x',
  ],
  ...[
    '$HOME',
    '"$X"',
    '*.txt',
    '{a,b}.txt',
    '[ab].txt',
    'a\\ b',
    "''",
    '""',
    'a"b"c',
    "'$X'",
    '#x',
    'x#y',
    '=',
    'A=b',
  ],
  ...[
    '$(cat a.txt)',
    '`id`',
    '>',
    '<',
    '2>&1',
    '|',
    '&&',
    ';',
    '&',
    '(',
    ')',
    '!',
    'if',
    'then',
    '\n',
    '\t',
    '\\\n',
    '"',
  ],
];

describe('readers of shell text', function () {
  this.timeout(120_000);
  let run: TemporaryRun;
  beforeEach(() => {
    run = temporaryRun();
    for (const name of ['a.txt', 'sub/b.txt', 'a b.txt']) run.put(`work/${name}`, 'x\n');
  });
  afterEach(() => run.remove());

  /** Returns lines of which every second is one plain command. */
  function linesOf(seed: number): string[] {
    const next = chance(seed);
    return Array.from({ length: 400 }, (_, at) => {
      const words = Array.from({ length: next(5) }, () => pieces[next(at % 2 === 0 ? 11 : pieces.length)]!);
      return [programs[next(programs.length)]!, ...words].join(next(9) === 0 ? '  ' : ' ');
    });
  }

  for (const seed of [1, 2, 3])
    it(`that forbid see each command that the strict one takes (seed ${seed})`, async () => {
      const { work, home } = run;
      let taken = 0;
      for (const line of linesOf(seed)) {
        const words = plainWords(line);
        if (words === undefined) continue;
        taken++;
        const loose = looseCommands(line).map(one => JSON.stringify(one));
        assert.ok(loose.includes(JSON.stringify(words)), `looseCommands: ${line}`);
        const [whole] = linesThatRun(line, work, home) ?? [];
        const read = whole?.commands.map(one => one.words.map(({ values }) => values));
        assert.deepEqual(read, [words.map(word => [word])], `linesThatRun: ${line}`);
        const named = commandReach(line, work, home).paths.flatMap(({ meanings }) => meanings);
        for (const word of words.filter(each => each !== ''))
          assert.ok(
            named.includes(foldedPath(writtenSegments(word, writtenSegments(work)))) || /\.\./.test(word),
            `commandReach: ${line}: ${word}`,
          );
      }
      assert.ok(taken > 100, `only ${taken} lines were plain`);
    });

  it('see each file that a command which only looks is given', async () => {
    const { work, home } = run;
    let taken = 0;
    for (const line of [4, 5].flatMap(linesOf)) {
      const verdict = await parseReadOnlyCommand(line, { roots: [work], cwd: work, home });
      if (!verdict.allowed) continue;
      taken++;
      const named = commandReach(line, work, home).paths.flatMap(({ meanings }) => meanings);
      for (const path of verdict.command.paths.filter(each => each !== work))
        assert.ok(named.includes(foldedPath(writtenSegments(path))), `${line}: ${path}`);
    }
    assert.ok(taken > 20, `only ${taken} lines look`);
  });

  it('see a dangerous command wherever the strict one would take it as a line of its own', () => {
    const { work, home } = run;
    const commands = ['rm -rf sub', 'git push --force'];
    const around = [
      ...['%', 'true; %', 'true && %', 'x || %', '(%)', '{ %; }', 'if true; then %; fi', '! %', 'A=1 %'],
      ...['echo "$(%)"', 'echo `%`', 'cat <(%)', '% > a.txt 2>&1', '% | cat', 'true\n%', '% # x'],
      ...["sh -c '%'", 'env %', 'for a in b; do %; done', '% &'],
    ].map(
      text =>
        (line: string): string =>
          text.replace('%', () => line),
    );
    const surroundings = { folder: work, workingDir: work, home };
    for (const command of commands) {
      assert.ok(plainWords(command));
      const [own] = dangerOf(command, surroundings).dangers;
      assert.ok(own, command);
      for (const outer of around)
        for (const inner of around) {
          const line = outer(inner(command));
          // Not all of them are lines: a quote within itself, an assignment before a group.
          if (/'.*'.*'|`[^`]*`[^`]*`|(?:A=1|env) (?:[({!]|if |for )/s.test(line)) continue;
          const { dangers } = dangerOf(line, surroundings);
          assert.ok(
            dangers.some(({ kind }) => kind === own.kind || kind === 'unread'),
            `${line}: no ${own.kind}`,
          );
        }
    }
  });
});
