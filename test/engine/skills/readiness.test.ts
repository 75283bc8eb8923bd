/** Finds what is missing on a machine for a skill, and says what to do about it. */
import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { thisMachine } from '../../../src/engine/skills/machine.ts';
import { readinessOf } from '../../../src/engine/skills/readiness.ts';
import { openSkill } from '../../../src/engine/skills/skillFile.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('readinessOf', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({ 'bin/jq': '#!/bin/sh\n', 'bin/notes.txt': 'no program', 'more/rg': '#!/bin/sh\n' });
    chmodSync(join(folder.path, 'bin/jq'), 0o755);
    chmodSync(join(folder.path, 'more/rg'), 0o755);
    chmodSync(join(folder.path, 'bin/notes.txt'), 0o644);
  });
  afterEach(() => folder.remove());

  function missing(runtime: object, body = 'B', platform: NodeJS.Platform = 'linux') {
    const metadata = JSON.stringify({ openclaw: runtime });
    folder.add({ 'one/SKILL.md': `---\ndescription: d\nmetadata: ${metadata}\n---\n${body}` });
    const PATH = ['gone', 'bin', 'more'].map(name => join(folder.path, name)).join(delimiter);
    const machine = thisMachine({ PATH, TOKEN: 'x', EMPTY: '' }, platform);
    const readiness = readinessOf(openSkill(join(folder.path, 'one/SKILL.md'), 'user'), machine);
    assert.equal(readiness.ready, readiness.missing.length === 0);
    return readiness.missing;
  }
  const whats = (...args: Parameters<typeof missing>): string[] => missing(...args).map(({ what }) => what);

  it('is ready when everything is there', () => {
    assert.deepEqual(
      whats({
        os: ['linux', 'darwin'],
        requires: { bins: ['jq', 'rg'], anyBins: ['none', 'jq'], env: ['TOKEN'] },
      }),
      [],
    );
  });

  it('is not ready when nobody can read it', () => {
    folder.add({ 'torn/SKILL.md': new Uint8Array([0]), 'SKILL.md/x': '' });
    for (const file of ['torn/SKILL.md', 'SKILL.md', 'gone/SKILL.md']) {
      const machine = thisMachine({}, 'linux');
      const { ready, missing: lacks } = readinessOf(openSkill(join(folder.path, file), 'user'), machine);
      assert.deepEqual([ready, lacks.map(({ kind }) => kind)], [false, ['file']]);
      assert.match(lacks[0]?.reason ?? '', /\.$/);
    }
  });

  it('names each thing that is not there, in this order', () => {
    assert.deepEqual(
      whats({
        os: ['darwin'],
        requires: {
          bins: ['jq', 'ffmpeg', 'notes.txt', '../bin/jq'],
          anyBins: ['a', 'b'],
          env: ['KEY', 'EMPTY', 'TOKEN'],
          config: ['x.y'],
        },
      }),
      ['macOS', 'ffmpeg', 'notes.txt', '../bin/jq', 'a or b', 'KEY', 'EMPTY', 'x.y'],
    );
  });

  it('counts the system and not the rest for a skill that is always fit', () => {
    assert.deepEqual(whats({ always: true, os: ['win32'], requires: { bins: ['ffmpeg'] } }), ['Windows']);
  });

  it('gives the author’s commands for this system to copy', () => {
    const install = [
      { kind: 'brew', formula: 'ffmpeg', bins: ['ffmpeg'], os: ['darwin'] },
      { kind: 'apt', package: 'ffmpeg', bins: ['ffmpeg'] },
      { kind: 'apt', package: 'other', bins: ['other'] },
    ];
    const [linux] = missing({ requires: { bins: ['ffmpeg'] }, install });
    assert.deepEqual(linux?.commands, ['sudo apt-get install ffmpeg']);
    assert.match(linux?.nextStep ?? '', /the author gives: sudo apt-get install ffmpeg$/);
    const [mac] = missing({ requires: { bins: ['ffmpeg'] }, install }, 'B', 'darwin');
    assert.deepEqual(mac?.commands, ['brew install ffmpeg', 'sudo apt-get install ffmpeg']);
  });

  describe('finds tools of other runners', () => {
    const rows: readonly (readonly [text: string, what: string])[] = [
      ['Then run `openclaw cron add --name x`.', 'a scheduler of the runner'],
      ['Use the `message` tool to send it.', 'a tool that sends messages'],
      ['message action=send channel=telegram', 'a tool that sends messages'],
      ['browser action=navigate url=x', 'a browser tool'],
      ['Log in via the browser tool.', 'a browser tool'],
      ['Call sessions_spawn with it.', 'sessions of other agents'],
      ['Add this to HEARTBEAT.md', 'a runner that wakes up by itself'],
      ['clawdbot gateway restart', 'the gateway of another runner'],
      ['Search with `web_search`.', 'a web search tool'],
      ['Run memory_search before.', 'the memory of the runner'],
    ];
    for (const [text, what] of rows) it(text, () => assert.deepEqual(whats({}, text), [what]));

    it('and leaves alone what is only about such things', () => {
      const plain =
        'Explain cron syntax, edit the crontab, open the page in a browser, write a commit message, cancel browser tools, ' +
        'keep sessions short, draw on a canvas, list the nodes, make an image, restart the gateway, search the web, use memory. Your Clawdbot agent, Clawdbot sessions.';
      assert.deepEqual(whats({}, plain), []);
    });

    it('and leaves alone what the work does without', () => {
      assert.deepEqual(whats({}, 'Keep the list with TodoWrite, ask with AskUserQuestion.'), []);
      assert.deepEqual(whats({}, 'Plain search (no memory_search). It does not use `web_search`.'), []);
      const long = 'A sentence about the work.\n'.repeat(80);
      assert.deepEqual(whats({}, `${long}To check daily, add this to HEARTBEAT.md`), []);
      assert.equal(whats({}, `${long}Search with web_search. Call web_search again.`).length, 1);
    });
  });
});
