/** Schemas of servers as models get them, and inputs on their way back. */
import assert from 'node:assert/strict';
import { modelSchema } from '../../../src/engine/mcp/modelSchema.ts';
import type { JsonObject } from '../../../src/protocol/run.ts';

const taken = /^[a-zA-Z0-9_.-]{1,64}$/;
const text = { type: 'string' };

/** Returns every name of a property in a schema, at any depth. */
function namesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = Object.keys((value as { properties?: object }).properties ?? {});
  return [...own, ...Object.values(value).flatMap(namesIn)];
}

describe('the schema of a server', () => {
  const long = 'p'.repeat(80);

  it('has names that every provider takes, at any depth, and the server gets its own back', () => {
    const schema: JsonObject = {
      type: 'object',
      properties: {
        $filter: text,
        'a.b': text,
        'with space': { type: 'object', properties: { é: text, [long]: text }, required: ['é'] },
        rows: { type: 'array', items: { type: 'object', properties: { 'x/y': text } } },
        node: { $ref: '#/$defs/Node' },
      },
      required: ['$filter', 'a.b'],
      $defs: { Node: { type: 'object', properties: { 'next one': { $ref: '#/$defs/Node' }, '@id': text } } },
    };
    const { schema: given, asServer } = modelSchema(schema);
    const names = namesIn(given);
    assert.deepEqual(
      names.filter(name => !taken.test(name)),
      [],
    );
    assert.equal(names.length, namesIn(schema).length);
    const top = Object.keys(given['properties'] as JsonObject);
    const [filter = '', dotted = '', space = '', rows = '', node = ''] = top;
    assert.deepEqual([dotted, rows, node], ['a.b', 'rows', 'node']);
    assert.deepEqual(given['required'], [filter, 'a.b']);
    const inner = Object.keys(
      (given['properties'] as Record<string, JsonObject>)[space]!['properties'] as JsonObject,
    );
    const defined = (given['$defs'] as Record<string, JsonObject>)['Node']!['properties'] as JsonObject;
    const [next = '', id = ''] = Object.keys(defined);
    const cell = Object.keys(
      ((given['properties'] as Record<string, JsonObject>)['rows']!['items'] as JsonObject)[
        'properties'
      ] as JsonObject,
    )[0]!;
    const input = {
      [filter]: '1',
      'a.b': '2',
      [space]: { [inner[0]!]: '3', [inner[1]!]: '4' },
      rows: [{ [cell]: '5' }, { other: '6' }],
      node: { [next]: { [id]: '7' } },
      unknown: { [filter]: 'stays' },
    };
    assert.deepEqual(asServer(input), {
      $filter: '1',
      'a.b': '2',
      'with space': { é: '3', [long]: '4' },
      rows: [{ 'x/y': '5' }, { other: '6' }],
      node: { 'next one': { '@id': '7' } },
      unknown: { [filter]: 'stays' },
    });
  });

  it('keeps two names apart that differ only in what is not taken', () => {
    const { schema } = modelSchema({ type: 'object', properties: { 'a b': text, 'a/b': text, a_b: text } });
    assert.equal(Object.keys(schema['properties'] as object).length, 3);
  });

  it('has the properties of all its branches, and requires what each of them does', () => {
    const { schema } = modelSchema({
      type: 'object',
      properties: { both: text },
      required: ['both'],
      oneOf: [
        { properties: { id: text, kind: text }, required: ['id', 'kind'] },
        { properties: { name: text, kind: text }, required: ['name', 'kind'] },
      ],
      allOf: [{ properties: { size: text }, required: ['size'] }],
    });
    assert.deepEqual(Object.keys(schema['properties'] as object).sort(), [
      'both',
      'id',
      'kind',
      'name',
      'size',
    ]);
    assert.deepEqual([...(schema['required'] as string[])].sort(), ['both', 'kind', 'size']);
    assert.ok(!('oneOf' in schema) && !('allOf' in schema));
  });

  it('says in words that every provider takes what may be null, anything, or a list of anything', () => {
    const { schema } = modelSchema({
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: ['object', 'null'],
      properties: {
        a: { type: ['string', 'null'], description: 'A', enum: ['x', 'y'] },
        b: { type: ['number'] },
        c: { type: 'array' },
        d: { type: ['array', 'null'], items: { type: ['object', 'null'], properties: { '@v': true } } },
        e: true,
        f: false,
        g: { anyOf: [true, { type: 'array', items: true }] },
      },
    });
    const [inner = ''] = namesIn((schema['properties'] as JsonObject)['d']);
    assert.match(inner, taken);
    assert.deepEqual(schema, {
      type: 'object',
      properties: {
        a: { description: 'A', anyOf: [{ type: 'string', enum: ['x', 'y'] }, { type: 'null' }] },
        b: { type: 'number' },
        c: { type: 'array', items: {} },
        d: {
          anyOf: [
            {
              type: 'array',
              items: { anyOf: [{ type: 'object', properties: { [inner]: {} } }, { type: 'null' }] },
            },
            { type: 'null' },
          ],
        },
        e: {},
        g: { anyOf: [{}, { type: 'array', items: {} }] },
      },
    });
  });

  it('is an object whatever a server gives', () => {
    const empty = { type: 'object', properties: {} };
    assert.deepEqual(modelSchema({}).schema, empty);
    assert.deepEqual(modelSchema({ type: 'object', properties: null, required: null }).schema, empty);
    assert.deepEqual(
      modelSchema({ type: 'string', oneOf: 'x', required: [1, null] } as JsonObject).schema,
      empty,
    );
    const odd = { properties: { a: null, b: true, c: { properties: null, required: null } } } as JsonObject;
    assert.deepEqual(modelSchema(odd).asServer({ a: 1, b: [2], c: { d: 3 } }), { a: 1, b: [2], c: { d: 3 } });
  });
});
