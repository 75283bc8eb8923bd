/** What a skill names in `allowed-tools` and `disallowed-tools`, in every way it can be said. */
import assert from 'node:assert/strict';
import { namesTool, readToolNames, splitAllowedTools } from '../../../src/engine/skills/skillFields.ts';

const read = (value: unknown) => readToolNames(splitAllowedTools(value));

describe('allowed-tools', () => {
  for (const written of [
    'Read, Bash(git *), Grep',
    'Read Bash(git *) Grep',
    ['Read', 'Bash(git:*)', 'grep'],
  ]) {
    it(`reads ${JSON.stringify(written)}`, () => {
      const { tools, commands } = read(written);
      assert.deepEqual([...tools].sort(), ['read_file', 'search_files']);
      assert.deepEqual(commands, [['git', '*']]);
    });
  }

  it('tells a whole tool from some of its commands', () => {
    assert.deepEqual([[...read('Bash').tools], read('Bash(*)').commands], [['run_command'], []]);
    const { tools, commands } = read('Bash(git status), Bash(npm run *)');
    assert.deepEqual([[...tools], commands.map(words => words.join(' '))], [[], ['git status', 'npm run *']]);
  });

  it('reads hosts, keeps apart what belongs to MCP servers, and says what means nothing here', () => {
    const { hosts, mcpTools, unknown } = read(
      'WebFetch(domain:Docs.test), mcp__vibes__vibes, AskUserQuestion, Read(./x)',
    );
    assert.deepEqual(hosts, ['docs.test']);
    assert.deepEqual(mcpTools, ['mcp__vibes__vibes']);
    assert.deepEqual(unknown, ['AskUserQuestion', 'Read(./x)']);
    for (const value of [undefined, '', [], 7]) assert.equal(read(value).tools.size, 0);
  });

  it('knows the tools that are ruled out, also those of a server', () => {
    const names = read('Write, mcp__one, mcp__two__go');
    const ofServer = (server: string, tool: string) => namesTool(names, tool, { server, tool });
    assert.deepEqual([namesTool(names, 'write_file'), namesTool(names, 'read_file')], [true, false]);
    assert.deepEqual(
      [ofServer('one', 'x'), ofServer('two', 'go'), ofServer('two', 'x')],
      [true, true, false],
    );
  });
});
