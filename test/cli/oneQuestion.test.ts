/** Questions of one process on a real terminal: one is shown at a time, and what is typed answers the one that was shown then. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { openTerminalSession, type TerminalSession } from './screen.ts';

const source = (path: string): string => new URL(`../../src/${path}`, import.meta.url).href;

/** Two people, a question with yes or no, and one for a key, all asked at once. SIGUSR1 ends the first question. */
const program = `
import { openTerminal } from '${source('cli/terminal.ts')}';
import { agrees, terminalHuman } from '${source('cli/terminalHuman.ts')}';
import { readKey, readSecret } from '${source('cli/keyboard.ts')}';
import { QuestionOver } from '${source('engine/human.ts')}';
const terminal = openTerminal(process);
const never = new AbortController().signal;
const first = new AbortController();
const about = name => ({ callId: name, token: name, tool: 'run_command', subject: name, rule: 'r', reason: 'Because.', scopes: ['once'] });
const form = [{ name: 'place', title: 'Place', isRequired: true, kind: 'text' }];
process.once('SIGUSR1', () => first.abort(new QuestionOver()));
process.stderr.write('pid ' + process.pid + ' \\n');
const said = await Promise.all([
  terminalHuman(terminal).approve({ ...about('first'), form }, first.signal),
  terminalHuman(terminal).approve(about('second'), never),
  terminalHuman(terminal).ask(['Which third?'], never),
  agrees('About the fourth.', 'Fourth?', '', terminal),
  readKey('Fifth? ', never),
  readSecret('Sixth: ', never),
]);
process.stderr.write('\\n' + said.map(one => JSON.stringify(one)).join('\\n') + '\\nEND\\n');
`;

describe('questions that are asked at once on a terminal', () => {
  let folder: TempFolder;
  let session: TerminalSession;

  beforeEach(() => {
    folder = tempFolder();
    folder.add({ 'ask.ts': program });
    session = openTerminalSession(`exec '${process.execPath}' ask.ts`, {
      cwd: folder.path,
      env: { PATH: process.env['PATH'] ?? '' },
    });
  });
  afterEach(() => {
    session.child.kill('SIGKILL');
    folder.remove();
  });

  const shown = (): string[] =>
    [
      ...session.screen.text.matchAll(
        /^ {4}(first|second)$|Which (third)|About the (fourth)|^(Fifth|Sixth)/gm,
      ),
    ].map(found => found.slice(1).find(Boolean) ?? '');
  const decided = (): unknown[] =>
    session.screen.text
      .split('\n')
      .filter(line => /^(?:[{["]|true|false)/.test(line))
      .map(line => JSON.parse(line));

  it('are shown one after the other, and each gets its own answer', async () => {
    await session.shows(/Allow\?/);
    assert.deepEqual(shown(), ['first']);
    await session.answers('y\n', /\? Place/);
    assert.deepEqual(shown(), ['first']);
    await session.answers('South\n', /second[\s\S]*Allow\?/);
    await session.answers('n not this\n', /Which third\?/);
    await session.answers('blue\n', /Fourth\?/);
    await session.answers('y\n', /Fifth\?/);
    await session.answers('5', /Sixth:/);
    await session.answers('hidden\n', /END/);
    assert.deepEqual(shown(), ['first', 'second', 'third', 'fourth', 'Fifth', 'Sixth']);
    assert.deepEqual(decided(), [
      { allow: true, scope: 'once', content: { place: 'South' } },
      { allow: false, reason: 'The user denied this: not this' },
      ['blue'],
      true,
      '5',
      'hidden',
    ]);
  });

  it('do not get what was typed for one that is over, nor the end of its line', async () => {
    await session.shows(/Allow\?/);
    session.type('y');
    process.kill(Number(/pid (\d+)/.exec(session.screen.text)?.[1]), 'SIGUSR1');
    await session.shows(/The question is over.*\n\? Run this command\?\n {4}second[\s\S]*Allow\?/);
    await session.answers('\n', /typed before the question[\s\S]*Allow\?/);
    await session.answers('n\n', /Which third\?/);
    await session.answers('blue\n', /Fourth\?/);
    await session.answers('n\nyes', /Fifth\?/);
    await session.answers('\r', /Fifth\?[\s\S]*typed before the question[\s\S]*Fifth\?/);
    await session.answers('5', /Sixth:/);
    await session.answers('hidden\n', /END/);
    const [first, second, ...others] = decided();
    assert.deepEqual(
      [first, second].map(one => (one as { allow: boolean }).allow),
      [false, false],
    );
    assert.deepEqual(others, [['blue'], false, '5', 'hidden']);
  });

  it('do not get the end of a line either whose beginning was read for the one that is over', async () => {
    // It is there when the first question begins to read, which drops it.
    session.type('y');
    await session.shows(/Allow\?/);
    await delay(600);
    process.kill(Number(/pid (\d+)/.exec(session.screen.text)?.[1]), 'SIGUSR1');
    await session.shows(/The question is over.*\n\? Run this command\?\n {4}second[\s\S]*Allow\?/);
    await delay(600);
    session.type('y\n');
    await session.shows(/second[\s\S]*typed before the question[\s\S]*Allow\?/);
    await session.answers('n\n', /Which third\?/);
    assert.equal(session.screen.text.match(/typed before the question/g)?.length, 1);
  });
});
