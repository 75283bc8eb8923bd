/** Reads what follows `npm run conformance|adversarial|faults --`: files of cases, `--only NAME`, and what a suite takes besides. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

export interface SuiteOptions {
  /** Files of cases; none if the suite's own are meant. */
  files: readonly string[];
  /** Returns whether one is asked for that goes by any of these names, such as its id and its area. */
  isWanted(...names: readonly string[]): boolean;
  /** Names that were asked for. */
  only: readonly string[];
  flags: ReadonlySet<string>;
  values: ReadonlyMap<string, string>;
}

/** `--only` takes any name; with several kinds, all must fit. */
const kinds = ['only', 'area', 'case'];

/** `flags` and `values` are the suite's further options, without and with a value. Ends the process if there is another. */
export function suiteOptions(
  flags: readonly string[] = [],
  values: readonly string[] = [],
  args: readonly string[] = process.argv.slice(2),
): SuiteOptions {
  const options: ParseArgsOptionsConfig = Object.fromEntries([
    ...kinds.map(name => [name, { type: 'string', multiple: true }] as const),
    ...flags.map(name => [name, { type: 'boolean' }] as const),
    ...values.map(name => [name, { type: 'string' }] as const),
  ]);
  try {
    const read = parseArgs({ args: [...args], options, allowPositionals: true });
    const given = read.values as Readonly<Record<string, unknown>>;
    const asked = kinds.flatMap(kind => (given[kind] ? [given[kind] as string[]] : []));
    return {
      files: read.positionals,
      isWanted: (...named) => asked.every(list => named.some(name => list.includes(name))),
      only: asked.flat(),
      flags: new Set(flags.filter(name => given[name] === true)),
      values: new Map(
        values.flatMap(name => (given[name] === undefined ? [] : [[name, String(given[name])]])),
      ),
    };
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(2);
  }
}
