/**
 * `npm run release:check` prints what a person must decide, and what else keeps a release back. With `--artefacts FOLDER` it also examines
 * the files that are to be published, and writes those for Homebrew and Nix beside them.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  decisionsLeft,
  description,
  isPlaceholder,
  type Manifest,
  readManifest,
  readProduct,
  unfilledFiles,
} from './product.ts';
import { recipes } from './recipes.ts';

/** Returns what keeps the release back, in the order in which it is best mended. */
export function releaseProblems(root: string, artefacts?: string): string[] {
  const decisions = decisionsLeft(readProduct(root)).map(line => `Decide in media/product.json: ${line}`);
  // While decisions are left, the files hold the same placeholders.
  const files = decisions.length > 0 ? [] : forgotten(root);
  const stale = unfilledFiles(root).map(file => `${file} says something else. Run "npm run product".`);
  return [
    ...decisions,
    ...stale,
    ...files,
    ...historyProblems(root),
    ...(artefacts ? artefactProblems(root, artefacts) : []),
  ];
}

/** Files that a stranger reads or a registry takes, and that hold a placeholder. */
function forgotten(root: string): string[] {
  const taken = ['package.json', 'README.md', 'SECURITY.md', 'SUPPORT.md', 'media/marketplace.md'];
  const all = [...taken, ...listed(root, '.github'), ...listed(root, 'media/registries')];
  return all
    .filter(file => existsSync(join(root, file)))
    .filter(file =>
      readFileSync(join(root, file), 'utf8')
        .split(/[\s"'`)]+/)
        .some(isPlaceholder),
    )
    .map(file => `${file} still has an address that belongs to nobody.`);
}

const listed = (root: string, folder: string): string[] =>
  existsSync(join(root, folder))
    ? readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry =>
          join(entry.parentPath, entry.name)
            .slice(root.length)
            .replace(/^[\\/]/, ''),
        )
    : [];

function historyProblems(root: string): string[] {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    if (git('rev-parse', '--is-shallow-repository') === 'true')
      return ['This clone has no history. Run "git fetch --unshallow --tags".'];
    const tag = `v${readManifest(root).version}`;
    const at = git('tag', '--list', tag) && git('rev-list', '-1', tag);
    return at && at !== git('rev-parse', 'HEAD')
      ? [`The tag ${tag} exists and is another commit. Choose the next version in package.json.`]
      : [];
  } catch {
    return ['This folder has no history of git, so that nobody could find what was released.'];
  }
}

/** Returns a line for each file that is missing, has another name than was decided, or that no statement of its build names by its digest. */
function artefactProblems(root: string, folder: string): string[] {
  if (!existsSync(folder)) return [`${folder} is not there.`];
  const files = readdirSync(folder).filter(name => /\.(?:tgz|vsix)$/.test(name));
  const missing = ['tgz', 'vsix'].filter(
    kind => files.filter(name => name.endsWith(`.${kind}`)).length !== 1,
  );
  return [
    ...missing.map(kind => `${folder} must have exactly one .${kind}.`),
    ...files.filter(name => name.endsWith('.tgz')).flatMap(name => packedProblems(root, join(folder, name))),
    ...files
      .filter(
        name => !statedDigests(join(folder, `${name}.sigstore.json`)).includes(digestOf(join(folder, name))),
      )
      .map(name => `${name} is not signed: no statement beside it names these bytes.`),
  ];
}

function packedProblems(root: string, file: string): string[] {
  const packed = packedManifest(file);
  if (!packed) return [`${file} is damaged, or was not packed by npm.`];
  const { npm } = readProduct(root);
  const { version } = readManifest(root);
  return [
    ...(packed.name === npm && packed.version === version
      ? []
      : [`${file} is ${packed.name} ${packed.version}, not ${npm} ${version}.`]),
    ...(packed['private'] ? [`${file} is private, so npm refuses it.`] : []),
  ];
}

function packedManifest(file: string): Partial<Manifest> | undefined {
  try {
    const text = execFileSync('tar', ['-xzOf', file, 'package/package.json'], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
    return JSON.parse(text) as Partial<Manifest>;
  } catch {
    return undefined;
  }
}

/** Writes the files for Homebrew and Nix beside the packed file whose digest they name. */
function writeRecipes(root: string, folder: string): void {
  const packed = readdirSync(folder).find(name => name.endsWith('.tgz')) ?? '';
  const digest = digestOf(join(folder, packed));
  const files = recipes(readProduct(root), readManifest(root), description, digest);
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
}

const digestOf = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

/** Returns the digests that a bundle of Sigstore is about. Its signature is checked by who downloads it, with the key of the code host. */
function statedDigests(file: string): string[] {
  try {
    const { dsseEnvelope } = JSON.parse(readFileSync(file, 'utf8'));
    if (!dsseEnvelope.signatures[0].sig) return [];
    const { subject } = JSON.parse(Buffer.from(dsseEnvelope.payload, 'base64').toString());
    return subject.map((one: { digest: { sha256: string } }) => one.digest.sha256);
  } catch {
    return [];
  }
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { artefacts: { type: 'string' } } });
  const problems = releaseProblems(process.cwd(), values.artefacts);
  for (const line of problems) console.log(line);
  if (problems.length > 0) process.exitCode = 1;
  else {
    if (values.artefacts) writeRecipes(process.cwd(), values.artefacts);
    console.log(`Ready: telos ${readManifest(process.cwd()).version}.`);
  }
}
