/** Tells by its folder how this Telos was installed, and so how it is upgraded. */
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The parts of package.json that matter. */
export interface OwnPackage {
  name: string;
  version: string;
  /** Set unless it was published. */
  private?: boolean;
}

export interface Way {
  /** How it was installed, as a sentence. */
  says: string;
  /** Upgrades it. */
  command: string;
  /** Whether its registry is that of npm, so that the newest version can be asked for. */
  isPublished: boolean;
}

/** Folders in which other programs than npm keep what they installed, and what upgrades it there. */
const places: readonly (readonly [at: RegExp, by: string, command: (name: string) => string])[] = [
  [/[\\/]Cellar[\\/]/, 'Homebrew', () => 'brew upgrade telos'],
  [/^\/nix\/store\//, 'Nix', () => 'nix profile upgrade telos'],
  [/[\\/]_npx[\\/]/, 'npx, for one call', name => `npx ${name}@latest`],
  [/[\\/]pnpm[\\/](?:[^\\/]+[\\/])*global[\\/]/, 'pnpm', name => `pnpm add --global ${name}@latest`],
  [/[\\/]\.bun[\\/]install[\\/]global[\\/]/, 'Bun', name => `bun add --global ${name}@latest`],
  [/[\\/]yarn[\\/](?:Data[\\/])?global[\\/]/i, 'Yarn', name => `yarn global add ${name}@latest`],
];

/** `folder` has the package.json. */
export function wayInstalled(folder: string, { name, private: isOwn }: OwnPackage): Way {
  const local = (says: string, command: string): Way => ({ says, command, isPublished: false });
  if (/[\\/]extensions[\\/][^\\/]+\.telos-\d[^\\/]*$/.test(folder))
    return local(
      'It belongs to the Telos extension of VS Code.',
      'In VS Code, run "Extensions: Check for Extension Updates".',
    );
  if (existsSync(join(folder, '.git')))
    return local(`It runs in a copy of its repository, ${folder}.`, 'git pull && npm ci && npm run build');
  if (isOwn)
    return local(
      'It was packed in a copy of its repository. In that copy, the command is:',
      'git pull && npm ci && npm pack && npm install --global ./telos-*.tgz',
    );
  const published = (by: string, command: string): Way => ({
    says: `It was installed by ${by}.`,
    command,
    isPublished: true,
  });
  const found = places.find(([at]) => at.test(folder));
  if (found) return published(found[1], found[2](name));
  const project = projectOf(folder);
  return project === undefined
    ? published('npm, for all folders', `npm install --global ${name}@latest`)
    : published(`npm, for the project ${project}`, `npm install ${name}@latest`);
}

/** Returns the folder of the project whose `node_modules` has the package; undefined if all projects have it. */
function projectOf(folder: string): string | undefined {
  let above = dirname(folder);
  while (basename(above) !== 'node_modules' && dirname(above) !== above) above = dirname(above);
  const project = dirname(above);
  return existsSync(join(project, 'package.json')) ? project : undefined;
}

/** Returns the real folder of the package, also where the command in the PATH is a link. */
export const folderOf = (packageFile: URL): string => dirname(realpathSync(fileURLToPath(packageFile)));
