/** Tests which commands a skill that lists its commands may request. */
import assert from 'node:assert/strict';
import { patternProblem } from '../../../src/engine/policy/shellCommands.ts';

describe('patternProblem', () => {
  const allowed = [
    'git status',
    'git',
    'git log --format="%h; %s" && git diff | jq .',
    "git commit -m 'a (b) `c` $(d)'",
    'git fetch 2>&1',
    'jq .',
  ];
  const refused = [
    'rm -rf .',
    'gitx status',
    'git status; rm -rf .',
    'git status & rm x',
    'git status\nrm x',
    'git log | sh',
    'git log "$(rm x)"',
    'git log `rm x`',
    '(rm x)',
    "git log 'open",
    "git log $'a' ; rm x",
    'jq . x',
  ];
  for (const command of allowed)
    it(`lets be asked for: ${command}`, () =>
      assert.equal(patternProblem(command, ['git *', 'jq .']), undefined));
  for (const command of refused)
    it(`refuses: ${JSON.stringify(command)}`, () =>
      assert.match(patternProblem(command, ['git *', 'jq .']) ?? '', /allows only/));
});
