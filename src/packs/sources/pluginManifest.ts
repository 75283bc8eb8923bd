/** Reads the manifest of a plugin of agent-plugins.org. Its schema is closed and known here: none is ever fetched. */
import { TelosError } from '@telos/engine/errors';
import { fields } from './fetched.ts';

export interface PluginManifest {
  name: string;
  description: string;
  /** What is in it and is ignored, in phrases. */
  ignored: readonly string[];
}

/** Phrases that a person would still read. */
const mostIgnored = 10;

type Check = (value: unknown) => boolean;

const isText: Check = value => typeof value === 'string';
const isTable: Check = value => typeof value === 'object' && value !== null && !Array.isArray(value);
const isAuthor: Check = value =>
  isTable(value) &&
  Object.entries(fields(value)).every(
    ([name, one]) => ['name', 'email', 'url'].includes(name) && isText(one),
  );

const inBoth: Readonly<Record<string, readonly [check: Check, says: string]>> = {
  name: [
    value =>
      typeof value === 'string' && /^(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?$/.test(value),
    'has to be 1 to 64 small letters, digits, single hyphens and dots, and to begin and end with a letter or digit',
  ],
  ...Object.fromEntries(
    ['version', 'description', 'homepage', 'repository', 'license'].map(name => [
      name,
      [isText, 'is not text'] as const,
    ]),
  ),
  author: [isAuthor, 'may hold name, email and url, which are text, and nothing else'],
  keywords: [value => Array.isArray(value) && value.every(isText), 'is not a list of texts'],
};

const known: Readonly<Record<string, typeof inBoth>> = {
  '1.0.0': inBoth,
  '1.1.0': { ...inBoth, displayName: [isText, 'is not text'], icon: [isText, 'is not text'] },
};

/** Returns the version that a schema of agent-plugins.org names, or undefined for one that Telos does not know. */
const versionOf = (schema: unknown): string | undefined =>
  Object.keys(known).find(
    version => schema === `https://agent-plugins.org/schemas/${version}/plugin.schema.json`,
  );

/**
 * Returns what a manifest says whose `$schema` is one of agent-plugins.org. Throws TelosError `pack` for a version that Telos does not
 * know and for a field that is not as the schema has it; fields that it does not have are ignored.
 */
export function readPluginManifest(
  manifest: Readonly<Record<string, unknown>>,
  file: string,
): PluginManifest {
  const { $schema, extensions, ...rest } = manifest;
  const version = versionOf($schema);
  const table = known[version ?? ''];
  if (!table)
    throw refusal(
      `${file} follows ${JSON.stringify($schema)}, which this Telos does not know. It knows Agent Plugins ${Object.keys(known).join(' and ')}.`,
    );
  const given: Readonly<Record<string, unknown>> = { name: undefined, ...rest };
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(given)) {
    const [check, says] = Object.hasOwn(table, name) ? table[name]! : [];
    if (!check) ignored.push(`'${name}' is not a field of Agent Plugins ${version}`);
    else if (!check(value)) throw refusal(`In ${file}, '${name}' ${says}.`);
  }
  if (extensions !== undefined && !isTable(extensions)) ignored.push("'extensions' is not an object");
  return {
    name: given['name'] as string,
    description: (rest['description'] as string | undefined) ?? '',
    ignored: ignored.length > mostIgnored ? [...ignored.slice(0, mostIgnored), '...'] : ignored,
  };
}

const refusal = (text: string): TelosError => new TelosError('pack', `${text} Nothing was installed.`);
