/**
 * `npm run release:publish -- FOLDER` publishes the checked files of a folder on npm, the Marketplace and Open VSX, in this order. What is
 * there in this version already is passed over, so that it can be run again after a registry refused.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { releaseProblems } from './check.ts';
import { readManifest, readProduct } from './product.ts';

const run = promisify(execFile);
const root = process.cwd();
const folder = resolve(process.argv[2] ?? 'release');
const { publisher, npm } = readProduct(root);
const { name, version } = readManifest(root);
const openVsx = process.env['OVSX_REGISTRY_URL'] ?? 'https://open-vsx.org';
const fileOf = (kind: string): string =>
  join(folder, readdirSync(folder).find(one => one.endsWith(kind)) ?? '');

interface Registry {
  name: string;
  /** Whether this version is there. */
  isThere: () => Promise<boolean>;
  publish: () => Promise<unknown>;
}

const registries: Registry[] = [
  {
    name: 'npm',
    isThere: () =>
      run('npm', ['view', `${npm}@${version}`, 'version', '--json']).then(
        ({ stdout }) => stdout.includes(version),
        error => {
          if (String(error.stdout).includes('E404')) return false;
          throw error;
        },
      ),
    publish: () =>
      run('npm', [
        'publish',
        fileOf('.tgz'),
        '--access=public',
        ...(process.env['CI'] ? ['--provenance'] : []),
      ]),
  },
  {
    name: 'Marketplace',
    // Its client asks by itself.
    isThere: async () => false,
    publish: () =>
      run(process.execPath, [
        join(root, 'node_modules/@vscode/vsce/vsce'),
        'publish',
        '--skip-duplicate',
        '--packagePath',
        fileOf('.vsix'),
        ...(process.env['VSCE_PAT'] ? [] : ['--azure-credential']),
      ]),
  },
  {
    name: 'Open VSX',
    isThere: async () => (await fetch(`${openVsx}/api/${publisher}/${name}/${version}`)).ok,
    publish: async () => {
      const token = encodeURIComponent(process.env['OVSX_PAT'] ?? '');
      const answer = await fetch(`${openVsx}/api/-/publish?token=${token}`, {
        method: 'POST',
        headers: { 'content-type': 'application/octet-stream' },
        body: readFileSync(fileOf('.vsix')),
      });
      if (!answer.ok) throw new Error(`HTTP ${answer.status}: ${(await answer.text()).slice(0, 300)}`);
    },
  },
];

const problems = releaseProblems(root, folder);
if (problems.length > 0) {
  console.error(`Nothing was published.\n${problems.join('\n')}`);
  process.exit(1);
}
const published: string[] = [];
for (const registry of registries) {
  try {
    if (await registry.isThere()) console.log(`${registry.name} has ${version} already.`);
    else await registry.publish();
    published.push(registry.name);
    console.log(`Published on ${registry.name}: ${version}.`);
  } catch (error) {
    const { message, stderr = '' } = error as Error & { stderr?: string };
    const tokens = [process.env['OVSX_PAT'], process.env['VSCE_PAT'], process.env['NODE_AUTH_TOKEN']];
    const hidden = tokens
      .filter(one => one)
      .reduce<string>((text, one) => text.replaceAll(one ?? '', '…'), `${message}\n${stderr}`);
    console.error(`${registry.name} refused: ${hidden.trim()}`);
    console.error(`Published: ${published.join(', ') || 'nothing'}. Run this again for the rest.`);
    process.exit(1);
  }
}
console.log(`For a tap of Homebrew and for Nix: ${join(folder, 'telos.rb')}, ${join(folder, 'flake.nix')}.`);
