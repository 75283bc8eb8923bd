import assert from 'node:assert/strict';
import {
  type McpToolListing,
  type McpToolSource,
  mcpSubject,
  mergeTools,
} from '../../../src/engine/mcp/tools.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import type { ToolContext } from '../../../src/engine/tools/tool.ts';

const listing = (name: string, more: Partial<McpToolListing> = {}): McpToolListing => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: 'object' },
  readOnly: false,
  ...more,
});

/** A server that answers with its own name and what it was asked. */
const source = (server: string, ...tools: (string | McpToolListing)[]): McpToolSource => ({
  server,
  tools: tools.map(tool => (typeof tool === 'string' ? listing(tool) : tool)),
  call: async (tool, input) => ({ content: `${server} ${tool} ${JSON.stringify(input)}`, isError: false }),
});

describe('mergeTools', () => {
  const builtinCount = builtinTools.length;
  const merged = (...sources: McpToolSource[]) => mergeTools(builtinTools, sources);
  const namesOf = (...sources: McpToolSource[]): string[] =>
    merged(...sources)
      .tools.slice(builtinCount)
      .map(tool => tool.definition.name);
  const context = { signal: new AbortController().signal } as ToolContext;

  it('keeps the built-in tools first and as they are', () => {
    const { tools } = merged(source('fs', 'read_file', 'tree'));
    assert.deepEqual(tools.slice(0, builtinCount), builtinTools);
    assert.deepEqual(namesOf(source('fs', 'read_file', 'tree')), ['fs__read_file', 'tree']);
  });

  it('names the server where two have the same name', () => {
    assert.deepEqual(namesOf(source('a', 'find', 'x'), source('b', 'find')), ['a__find', 'x', 'b__find']);
  });

  it('makes every name one that providers take, and no two the same', () => {
    const long = 'n'.repeat(80);
    const names = namesOf(
      source('größe', 'files.read', 'files/read', 'ok-name', `${long}1`, `${long}2`, ''),
      source('größe', 'files.read'),
      source('y', 'z', 'a__find'),
      source('a', 'find'),
      source('b', 'find', 'z'),
      source('c', 'y__z'),
    );
    assert.equal(new Set(names).size, names.length);
    for (const name of names) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
    assert.ok(names.includes('ok-name'));
  });

  it('calls the tool of the right server by its own name', async () => {
    const { tools } = merged(source('a', 'find.it'), source('b', 'find.it'));
    const results = tools.slice(builtinCount).map(tool => tool.execute({ q: 1 }, context));
    assert.deepEqual(
      (await Promise.all(results)).map(result => result.content),
      ['a find.it {"q":1}', 'b find.it {"q":1}'],
    );
  });

  it('does only what was decided on', async () => {
    const { tools, facts } = merged(source('a', 'find'));
    const [tool, fact] = [tools.at(-1)!, facts.get('find')!];
    const approvedSubject = mcpSubject(fact, { q: 1 });
    assert.equal((await tool.execute({ q: 1 }, { ...context, approvedSubject })).isError, false);
    assert.match(
      (await tool.execute({ q: 2 }, { ...context, approvedSubject })).content,
      /differs from the one that was approved/,
    );
  });

  it('shows a person all arguments, with nothing hidden in them', () => {
    assert.equal(
      mcpSubject({ server: 's', tool: 't\u202e' }, { to: 'a\u202eb', list: [1] }),
      's: t\\u{202e} {\n  "to": "a\\u{202e}b",\n  "list": [\n    1\n  ]\n}',
    );
  });

  it('passes the schema on, but for what would fail the whole request', () => {
    const properties = { a: { anyOf: [{ type: 'string' }] } };
    const schema = { type: 'object', properties, required: ['a'], anyOf: [{}], $defs: { x: {} } };
    const { tools } = merged(
      source('s', listing('t', { inputSchema: schema }), listing('u', { inputSchema: {} })),
    );
    assert.deepEqual(tools.at(-2)?.definition.inputSchema, {
      type: 'object',
      properties,
      required: ['a'],
      $defs: { x: {} },
    });
    assert.deepEqual(tools.at(-1)?.definition.inputSchema, { type: 'object', properties: {} });
  });

  it('cuts a long description', () => {
    const { tools } = merged(source('s', listing('t', { description: 'd'.repeat(5000) })));
    assert.equal(tools.at(-1)?.definition.description.length, 1024);
  });

  it('knows a tool again by description and schema, whatever the order of its keys', () => {
    const digest = (more: Partial<McpToolListing>): string =>
      merged(source('s', listing('t', more))).facts.get('t')?.digest ?? '';
    const plain = digest({ inputSchema: { type: 'object', title: 'x' } });
    assert.equal(digest({ inputSchema: { title: 'x', type: 'object' } }), plain);
    assert.notEqual(digest({ inputSchema: { title: 'y', type: 'object' } }), plain);
    assert.notEqual(digest({ inputSchema: { type: 'object', title: 'x' }, description: 'Other.' }), plain);
  });
});
