/** What a skill says about the machine, in every spelling in use. */

import assert from 'node:assert/strict';
import { parseSkillFile } from '../../../src/engine/skills/frontmatter.ts';
import { readRuntimeMetadata } from '../../../src/engine/skills/skillFields.ts';
import { spoken } from '../../../src/protocol/text.ts';

const read = (frontmatter: string) =>
  readRuntimeMetadata(parseSkillFile(`---\n${frontmatter}\n---\nB`, 'SKILL.md').fields);

describe('readRuntimeMetadata', () => {
  const spellings: Readonly<Record<string, string>> = {
    'a map':
      'metadata:\n  clawdbot:\n    os: [macos, Windows]\n    requires:\n      bins:\n        - jq\n      env: [TOKEN]',
    'JSON in a flow':
      'metadata: {"openclaw":{"os":["darwin","win32"],"requires":{"bins":["jq"],"env":["TOKEN"]}}}',
    'a JSON string': `metadata: '{"moltbot":{"os":["darwin","win32"],"requires":{"bins":["jq"],"env":["TOKEN"]}}}'`,
    'JSON5 in a block': `metadata: |\n  {\n    // what it needs\n    clawdis: { os: ['darwin','win32',], requires:{bins:['jq'], env:["TOKEN"],}, },\n  }`,
    'a string within the map': `metadata:\n  openclaw: '{os:["macos","windows"],requires:{bins:["jq"],env:"TOKEN"}}'`,
    'no runner’s name': 'metadata:\n  os: [darwin, win32]\n  requires: {bins: jq, env: TOKEN}',
    'the frontmatter itself': 'os: [darwin, win32]\nrequires: {bins: [jq], env: [TOKEN]}',
  };
  for (const [what, frontmatter] of Object.entries(spellings)) {
    it(`reads ${what}`, () => {
      const { os, requires, problems } = read(frontmatter);
      assert.deepEqual(
        [os, requires.bins, requires.env, problems],
        [['darwin', 'win32'], ['jq'], ['TOKEN'], []],
      );
    });
  }

  it('makes commands to copy of install entries, and keeps the words of those that are none', () => {
    const { install } = read(
      `metadata: {"openclaw":{"install":[{"kind":"brew","formula":"jq","bins":["jq"],"label":"Homebrew","os":["darwin"]},{"kind":"apt","packages":["jq","curl"]},{"kind":"brew","cask":"docker"},{"kind":"shell","command":"make install"},{"kind":"manual","instructions":"Ask Bob"},{"kind":"odd"},7]}}`,
    );
    assert.deepEqual(
      install.map(({ command, label }) => command ?? label),
      [
        'brew install jq',
        'sudo apt-get install jq curl',
        'brew install --cask docker',
        'make install',
        'Ask Bob',
      ],
    );
    assert.deepEqual([install[0]?.bins, install[0]?.os], [['jq'], ['darwin']]);
  });

  it('says what it cannot understand and goes on', () => {
    assert.match(spoken(read('metadata: "{broken"').problems), /`metadata` could not be read/);
    assert.match(spoken(read('metadata: {openclaw: "{broken"}').problems), /metadata.openclaw/);
    const { os, problems } = read('metadata: {openclaw: {os: [linux, beos], requires: 7}}');
    assert.deepEqual(os, ['linux']);
    assert.equal(problems.length, 2);
  });

  it('says nothing about a skill that says nothing', () => {
    const { requires, os, always, problems } = read('description: d\nmetadata: {author: me}');
    assert.deepEqual([requires.bins, os, always, problems], [[], [], false, []]);
  });
});
