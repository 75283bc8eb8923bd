/** Makes of a server's schema one that every provider accepts, and of a model's input the one that the server knows. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '@telos/protocol/run';

export interface ModelSchema {
  /** An object at its top, without a choice of schemas there, with names of properties that providers take. */
  schema: JsonObject;
  /** Returns an input for `schema` with the names of the server's own schema. */
  asServer(input: JsonObject): JsonObject;
}

/** What was renamed in a schema: its own properties, and those of the schemas below. */
interface Renamed {
  /** The server's name by the model's. */
  names: Map<string, string>;
  /** By the model's name. */
  properties: Map<string, Renamed>;
  items?: Renamed;
  /** The definition that the schema refers to. */
  definition?: Renamed | undefined;
}

/** Anthropic refuses a whole request for one other name. */
const takenName = /^[a-zA-Z0-9_.-]{1,64}$/;
const longestName = 64;
const definitions = ['$defs', 'definitions'];
const choices = ['anyOf', 'oneOf', 'allOf'];

/** Returns what stands for a server's schema in requests. A server may give anything as one, or nothing. */
export function modelSchema(schema: JsonObject): ModelSchema {
  const reader = new SchemaReader(schema);
  const top = { ...withoutChoice(schema), type: 'object' };
  const { schema: read, renamed } = reader.read(top);
  // It says nothing to a model, and some servers refuse it.
  const { $schema: _dialect, ...rest } = read;
  const whole = { ...rest, properties: objectOf(read['properties']) ?? {} };
  return { schema: whole, asServer: input => restored(input, renamed) as JsonObject };
}

const objectOf = (value: unknown): JsonObject | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter(each => typeof each === 'string') : [];

/** Returns the schema with the properties of all its branches. Only what each branch wants is required, or what one of `allOf` does. */
function withoutChoice(schema: JsonObject): JsonObject {
  const rest = Object.fromEntries(Object.entries(schema).filter(([key]) => !choices.includes(key)));
  const branchesOf = (key: string): JsonObject[] =>
    listOf(schema[key]).flatMap((each): JsonObject[] => {
      const branch = objectOf(each);
      return branch ? [branch] : [];
    });
  const all = branchesOf('allOf');
  const either = ['anyOf', 'oneOf'].map(branchesOf).filter(branches => branches.length > 0);
  if (all.length === 0 && either.length === 0) return rest;
  const parts = [...all, ...either.flat()].map(withoutChoice);
  const properties = [...parts, rest].map(part => objectOf(part['properties']) ?? {});
  const shared = either.flatMap(branches => {
    const [first = [], ...others] = branches.map(branch => textsOf(withoutChoice(branch)['required']));
    return first.filter(name => others.every(names => names.includes(name)));
  });
  const required = [rest, ...all.map(withoutChoice)].flatMap(part => textsOf(part['required']));
  return {
    ...rest,
    properties: Object.assign({}, ...properties),
    required: [...new Set([...required, ...shared])],
  };
}

class SchemaReader {
  readonly #root: JsonObject;
  /** By the text of the reference. */
  readonly #defined = new Map<string, Renamed>();

  constructor(root: JsonObject) {
    this.#root = root;
    for (const place of definitions)
      for (const name of Object.keys(objectOf(root[place]) ?? {}))
        this.#defined.set(`#/${place}/${name}`, { names: new Map(), properties: new Map() });
  }

  read(schema: JsonObject): { schema: JsonObject; renamed: Renamed } {
    const renamed: Renamed = { names: new Map(), properties: new Map() };
    const defined = definitions
      .filter(place => objectOf(schema[place]))
      .map(place => [place, this.#definitions(place)]);
    return { schema: { ...this.#into(schema, renamed), ...Object.fromEntries(defined) }, renamed };
  }

  /** Adds to `renamed`: branches of a choice share it, since it is not known which of them a model means. */
  #into(schema: JsonObject, renamed: Renamed): JsonObject {
    const own: Record<string, unknown> = withOneType(schema);
    if (typeof own['$ref'] === 'string') renamed.definition = this.#defined.get(own['$ref']);
    if ('properties' in own) own['properties'] = this.#properties(objectOf(own['properties']) ?? {}, renamed);
    const wanted = textsOf(own['required']).map(name => modelName(name, renamed));
    if (wanted.length > 0) own['required'] = wanted;
    else delete own['required'];
    // OpenAI and Gemini refuse a list of which it is not said what is in it.
    const items = objectOf(own['items']) ?? (own['type'] === 'array' ? {} : undefined);
    if (items) {
      renamed.items ??= { names: new Map(), properties: new Map() };
      own['items'] = this.#into(items, renamed.items);
    }
    for (const key of choices)
      if (Array.isArray(own[key]))
        own[key] = (own[key] as unknown[]).map(each => this.#into(objectOf(each) ?? {}, renamed));
    return own;
  }

  #properties(properties: JsonObject, renamed: Renamed): JsonObject {
    // `true` and `false` are schemas too, which few providers know: anything, and nothing at all.
    const possible = Object.entries(properties).filter(([, value]) => value !== false);
    const read = possible.map(([name, value]) => {
      const short = modelName(name, renamed);
      const schema = objectOf(value) ?? {};
      const inner = renamed.properties.get(short) ?? { names: new Map(), properties: new Map() };
      renamed.properties.set(short, inner);
      return [short, this.#into(schema, inner)];
    });
    return Object.fromEntries(read);
  }

  #definitions(place: string): JsonObject {
    const read = Object.entries(objectOf(this.#root[place]) ?? {}).map(([name, value]) => {
      const schema = objectOf(value);
      const renamed = this.#defined.get(`#/${place}/${name}`);
      return [name, schema && renamed ? this.#into(schema, renamed) : value];
    });
    return Object.fromEntries(read);
  }
}

/** Returns a copy with one type, or with a choice of schemas that have one each: not every provider takes a list of types. */
function withOneType({ type, ...rest }: JsonObject): Record<string, unknown> {
  if (!Array.isArray(type)) return type === undefined ? { ...rest } : { type, ...rest };
  const [only, ...others] = textsOf(type);
  if (only === undefined || choices.some(key => key in rest)) return { ...rest };
  if (others.length === 0) return { type: only, ...rest };
  const { description, default: usual, title, ...about } = rest;
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(usual !== undefined && { default: usual }),
    anyOf: [only, ...others].map(one => ({ type: one, ...(one === 'null' ? {} : about) })),
  };
}

/** Returns the name of a property for models, and notes it if it is another one. */
function modelName(name: string, { names }: Renamed): string {
  if (takenName.test(name)) return name;
  const plain = name.replace(/[^a-zA-Z0-9_.-]+/g, '_').replace(/^_+(?=.)/, '') || '_';
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 6);
  const short = `${plain.slice(0, longestName - digest.length - 1)}_${digest}`;
  names.set(short, name);
  return short;
}

function restored(value: unknown, renamed: Renamed | undefined): unknown {
  if (!renamed) return value;
  const { names, properties, items, definition } = renamed;
  if (Array.isArray(value)) return value.map(each => restored(each, items ?? definition?.items));
  const input = objectOf(value);
  if (!input) return value;
  const entries = Object.entries(input).map(([key, inner]) => [
    names.get(key) ?? definition?.names.get(key) ?? key,
    restored(inner, properties.get(key) ?? definition?.properties.get(key)),
  ]);
  return Object.fromEntries(entries);
}
