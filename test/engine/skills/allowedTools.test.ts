/** The tools that a skill keeps, in every way it can be said. */
import assert from 'node:assert/strict';
import { readAllowedTools, splitAllowedTools } from '../../../src/engine/skills/allowedTools.ts';

const read = (value: unknown) => readAllowedTools(splitAllowedTools(value));

describe('allowed-tools', () => {
  for (const written of [
    'Read, Bash(git *), Grep',
    'Read Bash(git *) Grep',
    ['Read', 'Bash(git:*)', 'grep'],
  ]) {
    it(`reads ${JSON.stringify(written)}`, () => {
      const allowed = read(written)!;
      assert.deepEqual([...allowed.tools].sort(), ['read_file', 'run_command', 'search_files']);
      assert.deepEqual(allowed.commandPatterns, ['git *']);
    });
  }

  it('lets any command be asked for where one entry has no pattern', () => {
    assert.equal(read('Bash Bash(git *)')!.commandPatterns, undefined);
    assert.deepEqual(read('Bash(git status), Bash(npm run *)')!.commandPatterns, ['git status', 'npm run *']);
  });

  it('leaves all tools where nothing is said, or nothing that names a tool', () => {
    for (const value of [undefined, '', [], 'system-io', 7]) assert.equal(read(value), undefined);
  });

  it('keeps apart what belongs to MCP servers and what is unknown', () => {
    const allowed = read('mcp__vibes__vibes, AskUserQuestion')!;
    assert.deepEqual(
      [[...allowed.tools], allowed.mcpTools, allowed.unknown],
      [[], ['mcp__vibes__vibes'], ['AskUserQuestion']],
    );
  });
});
