/** Names arguments of a call in headers of its request, where a tool's schema wants it. Source: SEP-2243, revision 2026-07-28. */
import { Buffer } from 'node:buffer';
import type { JsonObject } from '@telos/protocol/run';

/** A header, and where in the arguments its value lies. */
interface ParamHeader {
  name: string;
  path: readonly string[];
}

const mark = 'x-mcp-header';
/** The characters of a header's name. Source: RFC 9110, 5.6.2. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const types = new Set<unknown>(['string', 'integer', 'boolean']);

/**
 * Returns the headers that a tool's schema wants. Undefined for a schema that breaks the rules of the protocol: whoever reaches the tool
 * over HTTP must not call it.
 */
export function paramHeadersOf(schema: unknown): ParamHeader[] | undefined {
  const found: ParamHeader[] = [];
  return collect(schema, [], true, found) ? found : undefined;
}

function collect(node: unknown, path: readonly string[], isReached: boolean, found: ParamHeader[]): boolean {
  if (typeof node !== 'object' || node === null) return true;
  if (Array.isArray(node)) return node.every(one => collect(one, path, false, found));
  const { [mark]: name, properties, ...rest } = node as Readonly<Record<string, unknown>>;
  if (name !== undefined) {
    const isTaken = found.some(one => one.name.toLowerCase() === String(name).toLowerCase());
    const isName = typeof name === 'string' && token.test(name) && !isTaken;
    if (!isName || !isReached || path.length === 0 || !types.has(rest['type'])) return false;
    found.push({ name, path });
  }
  const children = Object.entries(properties ?? {});
  return (
    children.every(([key, child]) => collect(child, [...path, key], isReached, found)) &&
    Object.values(rest).every(one => collect(one, path, false, found))
  );
}

/** Returns the headers of a call. An argument that is missing, or no plain value, has none. */
export function paramHeaders(wanted: readonly ParamHeader[], input: JsonObject): Record<string, string> {
  return Object.fromEntries(
    wanted.flatMap(({ name, path }) => {
      const value = path.reduce<unknown>((at, key) => fieldOf(at, key), input);
      const isPlain = ['string', 'boolean'].includes(typeof value) || Number.isSafeInteger(value);
      return isPlain ? [[`Mcp-Param-${name}`, headerValue(String(value))]] : [];
    }),
  );
}

const fieldOf = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;

/** A text that a header cannot carry as it is goes in base64, and so does one that looks like such a text. */
function headerValue(text: string): string {
  const isSafe = /^[\x20-\x7e]+$/.test(text) && text.trim() === text && !/^=\?base64\?.*\?=$/i.test(text);
  return isSafe ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}
