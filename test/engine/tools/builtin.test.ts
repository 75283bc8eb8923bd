import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { builtinTools, inputProblem, skillTools } from '../../../src/engine/tools/builtin.ts';
import { type TemporaryRun, temporaryRun } from './temporaryRun.ts';

const tool = (name: string) => builtinTools.find(each => each.definition.name === name)!;

describe('builtinTools', () => {
  it('are these five, with these required arguments', () => {
    const required = Object.fromEntries(
      builtinTools.map(({ definition }) => [definition.name, definition.inputSchema['required']]),
    );
    assert.deepEqual(required, {
      read_file: ['path'],
      write_file: ['path', 'content'],
      list_directory: [],
      run_command: ['command'],
      fetch_url: ['url'],
    });
  });

  describe('inputProblem', () => {
    it('names what is missing or of the wrong type, and what is wanted', () => {
      assert.equal(
        inputProblem(tool('write_file'), { path: 'a.md' }),
        'write_file was not run: "content" is missing. It takes { "path": string, "content": string }. Call it again with all of them.',
      );
      assert.match(
        inputProblem(tool('read_file'), { path: ['a'] })!,
        /"path" must be a string, not an array/,
      );
      assert.match(inputProblem(tool('read_file'), { path: null })!, /not null/);
      assert.match(inputProblem(tool('run_command'), { command: 7 })!, /not a number/);
      assert.match(inputProblem(tool('list_directory'), { path: {} })!, /"path" \(optional\)/);
    });

    it('refuses what no honest call is as long as', () => {
      assert.match(
        inputProblem(tool('run_command'), { command: 'x'.repeat(100_001) })!,
        /"command" has 100,001 characters; the maximum is 100,000/,
      );
      assert.match(inputProblem(tool('fetch_url'), { url: 'x'.repeat(8001) })!, /the maximum is 8,000/);
      for (const each of skillTools.filter(({ definition: { name } }) => /glob|search/.test(name)))
        assert.match(inputProblem(each, { pattern: 'x'.repeat(10_001) })!, /the maximum is/);
    });

    it('accepts what fits, with more than was asked for', () => {
      assert.equal(inputProblem(tool('list_directory'), {}), undefined);
      assert.equal(inputProblem(tool('write_file'), { path: 'a', content: '', mode: 1 }), undefined);
    });
  });

  describe('called without a needed argument', () => {
    let run: TemporaryRun;
    beforeEach(() => {
      run = temporaryRun();
    });
    afterEach(() => run.remove());

    it('say so and do nothing', async () => {
      for (const { definition, execute } of builtinTools.filter(
        each => each.definition.name !== 'list_directory',
      )) {
        const result = await execute({ content: 'x' }, run.context);
        assert.equal(result.isError, true);
        assert.match(result.content, new RegExp(`^${definition.name} was not run: `));
      }
      assert.deepEqual(readdirSync(run.work), []);
      assert.equal(existsSync(`${run.work}/undefined`), false);
    });
  });
});
