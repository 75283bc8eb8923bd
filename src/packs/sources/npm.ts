/** Finds a version in an npm registry and fetches its package, without running anything of it. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { readText } from '@telos/engine/files';
import { findProgram, programEndings } from '@telos/engine/tools';
import { sentence } from '@telos/protocol/text';
import { download, jsonOf, textLimit } from './download.ts';
import { checkSame, fields, type Resolver, text, unpack } from './fetched.ts';
import { programPlaces } from './gitSource.ts';
import type { Reach } from './sourceText.ts';

export const npm: Resolver<'npm', 'npm'> = {
  async resolve(source, reach) {
    const { registry, token } = await registryFor(source.package, reach);
    const address = `${registry}/${source.package.replace('/', '%2f')}`;
    const answer = await download(address, {
      reach,
      token,
      allow: [404],
      limit: 4 * textLimit,
      accept: 'application/json',
    });
    if (answer.status === 404)
      throw new TelosError('pack', [
        sentence('The registry has no package at {0}.', address),
        sentence('Nothing was installed.'),
      ]);
    const { 'dist-tags': tags, versions } = fields(jsonOf(answer));
    const wanted = source.version ?? 'latest';
    const version = text(fields(tags)[wanted]) ?? wanted;
    const found = Object.hasOwn(fields(versions), version) ? fields(fields(versions)[version]) : undefined;
    if (!found) throw noVersion(source.package, wanted, fields(versions), address);
    const integrity = sha512In(text(fields(found['dist'])['integrity']));
    if (integrity === undefined)
      throw new TelosError('pack', [
        sentence(
          '{0} {1} has no sha512 in {2}, so its bytes cannot be checked.',
          source.package,
          version,
          address,
        ),
        sentence('Nothing was installed.'),
      ]);
    const name = source.package.split('/').at(-1) ?? source.package;
    const resolved = { kind: 'npm', registry, name: source.package, version, integrity, path: '' } as const;
    return { resolved, from: `${source.package} ${version} of ${new URL(registry).host}`, version, name };
  },

  async fetch({ registry, name, version, integrity }, root, reach) {
    const { token } = await registryFor(name, reach, registry);
    const address = `${registry}/${name.replace('/', '%2f')}`;
    const answer = await download(address, {
      reach,
      token,
      limit: 4 * textLimit,
      accept: 'application/json',
    });
    const found = fields(fields(fields(jsonOf(answer))['versions'])[version]);
    const tarball = text(fields(found['dist'])['tarball']);
    if (tarball === undefined)
      throw new TelosError('pack', [
        sentence('{0} names no archive for version {1}.', address, version),
        sentence('Nothing was installed.'),
      ]);
    const isOwn = URL.canParse(tarball) && new URL(tarball).origin === new URL(registry).origin;
    const archive = await download(tarball, { reach, token: isOwn ? token : undefined });
    const got = `sha512-${createHash('sha512').update(archive.bytes).digest('base64')}`;
    checkSame('integrity', tarball, integrity, got);
    return unpack(archive, root, 1, reach.signal);
  },
};

/** Several hashes may be given, with blanks between them. */
const sha512In = (integrity = ''): string | undefined =>
  integrity.split(/\s+/).find(one => /^sha512-[A-Za-z0-9+/]{86}==$/.test(one));

function noVersion(
  name: string,
  wanted: string,
  versions: Readonly<Record<string, unknown>>,
  address: string,
): TelosError {
  const last = Object.keys(versions).slice(-5).join(', ');
  return new TelosError('pack', [
    sentence("{0} has no version '{1}' at {2}.", name, wanted, address),
    sentence('The last ones are {0}.', last || '(none)'),
    sentence('Nothing was installed.'),
  ]);
}

/**
 * Returns the person's registry for a package, and the token for it. The environment wins over the `.npmrc` in the home folder, as in
 * npm; that of a project is not read, for a project could send the token elsewhere.
 */
async function registryFor(
  name: string,
  reach: Reach,
  known?: string,
): Promise<{ registry: string; token: string | undefined }> {
  const settings = settingsOf(reach);
  const scope = /^(@[^/]+)\//.exec(name)?.[1];
  const chosen =
    known ?? ((scope && settings.get(`${scope}:registry`)) || setRegistry(reach) || (await askNpm(reach)));
  if (!URL.canParse(chosen)) throw noRegistry(`'${chosen}' is not an address`);
  const registry = chosen.replace(/\/+$/, '');
  const { host, pathname } = new URL(registry);
  const token = settings.get(`//${host}${pathname === '/' ? '' : pathname}/:_authToken`);
  return { registry, token };
}

const setRegistry = (reach: Pick<Reach, 'env' | 'home'>): string | undefined =>
  reach.env['npm_config_registry'] ||
  reach.env['NPM_CONFIG_REGISTRY'] ||
  settingsOf(reach).get('registry') ||
  undefined;

/** Returns how the person's npm is started, or undefined if there is none. Windows starts a script only by its shell. */
export function npmProgram(
  reach: Pick<Reach, 'env' | 'home'>,
): { program: string; shell: boolean; env: Readonly<Record<string, string>> } | undefined {
  const places = programPlaces(reach);
  const program = findProgram('npm', places, programEndings(reach.env));
  if (program === undefined) return undefined;
  const shell = /\.(?:cmd|bat)$/i.test(program);
  return { program: shell ? `"${program}"` : program, shell, env: places.env };
}

/** In milliseconds. npm itself takes about half a second. */
const askLimit = 20_000;

/** Returns the registry that npm uses where nothing is set for it. Asks npm in the home folder, as a project could name another one. */
async function askNpm({ env, home, signal, kept }: Reach): Promise<string> {
  const known = kept.get('npm');
  if (typeof known === 'string') return known;
  const npm = npmProgram({ env, home });
  if (npm === undefined) throw noRegistry('npm is not installed');
  const own = { npm_config_update_notifier: 'false', npm_config_logs_max: '0' };
  const answer = await new Promise<string>((resolve, reject) => {
    execFile(
      npm.program,
      ['config', 'get', 'registry'],
      {
        cwd: home,
        signal,
        timeout: askLimit,
        shell: npm.shell,
        windowsHide: true,
        env: { ...npm.env, ...own },
      },
      (error, stdout) =>
        error
          ? reject(signal.aborted ? signal.reason : noRegistry('npm does not name one'))
          : resolve(stdout.trim()),
    );
  });
  kept.set('npm', answer);
  return answer;
}

const noRegistry = (why: string): TelosError =>
  new TelosError('pack', [
    sentence('No registry of npm is known: {0}.', why),
    sentence('Set npm_config_registry, or the registry in .npmrc in your home folder.'),
    sentence('Nothing was installed.'),
  ]);

const settingsOf = ({ env, home }: Pick<Reach, 'env' | 'home'>): ReadonlyMap<string, string> =>
  npmrcIn(env['npm_config_userconfig'] || join(home, '.npmrc'), env);

function npmrcIn(file: string, env: Reach['env']): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let content = '';
  try {
    content = readText(file);
  } catch {
    return found;
  }
  for (const line of content.split(/\r?\n/)) {
    const [, key, value] = /^\s*([^#;=\s][^=]*?)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (key === undefined || value === undefined) continue;
    const plain = value
      .replace(/^"(.*)"$/, '$1')
      .replace(/\$\{(\w+)\}/g, (all, variable) => env[variable] ?? all);
    found.set(key, plain);
  }
  return found;
}

/** Returns the origins of the registries that the person has set, which may be on this machine or its network. */
export function npmOrigins(reach: Pick<Reach, 'env' | 'home'>): string[] {
  const set = [...settingsOf(reach)]
    .filter(([key]) => key === 'registry' || key.endsWith(':registry'))
    .map(([, value]) => value);
  return [...set, setRegistry(reach) ?? ''].filter(one => URL.canParse(one)).map(one => new URL(one).origin);
}
