/** `npm run product` writes what `media/product.json` says into each file that has it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { noDigest, recipes } from './recipes.ts';

/** What a person must decide before a release. */
export interface Product {
  /** Of the other fields, those that nobody has decided yet. */
  undecided: string[];
  npm: string;
  publisher: string;
  repository: string;
  homepage: string;
  bugs: string;
  images: string;
}

export interface Manifest {
  name: string;
  version: string;
  license: string;
  [field: string]: unknown;
}

/** What each decision is about. */
const questions: Readonly<Record<Exclude<keyof Product, 'undecided'>, string>> = {
  npm: 'the name on npm',
  publisher: 'the publisher on the Marketplace and on Open VSX',
  repository: 'the address of the repository',
  homepage: 'the address of the home page',
  bugs: 'the address for reports of bugs',
  images: 'the address of the folder `media`, for the pictures of the store page',
};

export const description = 'Runs your skills with any model, and asks before anything matters.';

const readJson = (root: string, file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'));
export const readProduct = (root: string): Product => readJson(root, 'media/product.json');
export const readManifest = (root: string): Manifest => readJson(root, 'package.json');

/** Returns a line for each decision that is left: it is listed as such, empty, or still an address that can belong to nobody. */
export function decisionsLeft(product: Product): string[] {
  return (Object.keys(questions) as (keyof typeof questions)[])
    .filter(field => product.undecided.includes(field) || !product[field] || isUndecided(product[field]))
    .map(field => `${field}: ${questions[field]} (now ${product[field] || 'empty'})`);
}

/** A decision can also be left out in the ways in which people write a gap. */
const isUndecided = (text: string): boolean =>
  isPlaceholder(text) ||
  /\bexample\.(?:com|org|net)\b|[<>{}]|\b(?:OWNER|REPO|NAME|PUBLISHER|TODO|TBD|FIXME|CHANGE_?ME|YOUR[-_]?[A-Z]*)\b/.test(
    text,
  );

/** RFC 2606 keeps these names for examples. */
export const isPlaceholder = (text: string): boolean => /[\w-]\.example(?:[/:]|$)/.test(text);

/** Returns the files that say something of the product, as they must be. */
export function filledFiles(root: string): Map<string, string> {
  const product = readProduct(root);
  const text = readFileSync(join(root, 'package.json'), 'utf8');
  const manifest: Manifest = JSON.parse(text);
  const { version, license } = manifest;
  const filled = {
    ...manifest,
    publisher: product.publisher,
    repository: { type: 'git', url: product.repository },
    bugs: { url: product.bugs },
    homepage: product.homepage,
    vsce: { ...(manifest['vsce'] as object), baseImagesUrl: product.images },
  };
  const repository = product.repository.replace(/\.git$/, '');
  const [owner = product.publisher] = new URL(repository).pathname.split('/').filter(Boolean);
  const server = {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: `io.github.${owner}/telos`,
    description,
    version,
    repository: { url: repository, source: 'github' },
    websiteUrl: product.homepage,
    packages: [
      {
        registryType: 'npm',
        identifier: product.npm,
        version,
        transport: { type: 'stdio' },
        packageArguments: [{ type: 'positional', value: 'mcp-serve' }],
      },
    ],
  };
  const agent = {
    id: 'telos',
    name: 'Telos',
    version,
    description,
    repository,
    license,
    distribution: { npx: { package: `${product.npm}@${version}`, args: ['acp'] } },
  };
  return new Map([
    ['package.json', `${JSON.stringify(filled, null, 2)}\n`],
    ['media/registries/server.json', `${JSON.stringify(server, null, 2)}\n`],
    ['media/registries/agent.json', `${JSON.stringify(agent, null, 2)}\n`],
    ...[...recipes(product, manifest, description, noDigest)].map(
      ([name, text]) => [`media/registries/${name}`, text] as const,
    ),
  ]);
}

/** Returns the files that say something else than `media/product.json`. */
export const unfilledFiles = (root: string): string[] =>
  [...filledFiles(root)].filter(([file, text]) => !isAs(join(root, file), text)).map(([file]) => file);

function isAs(file: string, text: string): boolean {
  try {
    if (!file.endsWith('.json')) return readFileSync(file, 'utf8') === text;
    return JSON.stringify(JSON.parse(readFileSync(file, 'utf8'))) === JSON.stringify(JSON.parse(text));
  } catch {
    return false;
  }
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const stale = unfilledFiles(root);
  for (const [file, text] of filledFiles(root))
    if (stale.includes(file)) writeFileSync(join(root, file), text);
  console.log(
    stale.length > 0 ? `Written: ${stale.join(', ')}` : 'All files say what media/product.json says.',
  );
}
