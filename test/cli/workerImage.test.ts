/** The steps of the worker's image, each as its file says, in the root folder of a Debian: the machine of the test needs no engine for images. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { skipBecause } from '../skipBecause.ts';
import { packTelos } from './packedTelos.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

interface Step {
  word: string;
  text: string;
}

/** Returns the steps of a Containerfile. A line that ends with a backslash goes on. */
const stepsOf = (text: string): Step[] =>
  text
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter(line => line.trim() && !line.startsWith('#'))
    .map(line => ({ word: /^\w+/.exec(line)?.[0] ?? '', text: line.replace(/^\w+ +/, '') }));

/** Returns why a root folder cannot be made here; undefined if it can. */
function whyNot(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'not root on Linux';
  for (const program of ['apt-get', 'dpkg-deb', 'chroot', 'unshare'])
    if (spawnSync(program, ['--version']).error) return `no ${program}`;
  return undefined;
}

describe('the worker’s image', function () {
  this.timeout(900_000);
  let folder: TempFolder;
  afterEach(() => folder?.remove());

  it('is built by its steps, and starts as nobody', async function () {
    const why = whyNot();
    if (why) return skipBecause(this, why);
    folder = tempFolder();
    const { tarball } = await packTelos(folder.path);
    const image = await plainRoot(folder.path);
    const built = await build(image, tarball);
    assert.equal(built.user, 'nobody');
    const started = await inRoot(image, [...built.entry, ...built.command], built);
    assert.match(started, /^Usage: telos worker/);
    assert.match(await inRoot(image, ['telos', '--version'], built), /^\d+\.\d+\.\d+\n$/);
    assert.match(await inRoot(image, ['telos', 'demo'], built), /Your plan is in `today\.md`/);
    assert.equal(await inRoot(image, ['id', '-un'], built), 'nobody\n');
    assert.match(await inRoot(image, ['sh', '-c', 'pwd; touch made; ls'], built), /^\/work\n(?:.*\n)*made\n/);
    assert.deepEqual(
      readdirSync(join(image, 'tmp')).filter(name => name === 'telos'),
      [],
    );
  });
});

/** Returns a root folder with the least Debian and Node in `/usr/local`, as the image of Node that the release names. */
async function plainRoot(folder: string): Promise<string> {
  const [image, tools] = [join(folder, 'root'), join(folder, 'tools')];
  mkdirSync(tools);
  await run('apt-get', ['download', 'debootstrap'], { cwd: tools });
  const [archive = ''] = readdirSync(tools);
  await run('dpkg-deb', ['-x', archive, '.'], { cwd: tools });
  const env = { ...process.env, DEBOOTSTRAP_DIR: join(tools, 'usr/share/debootstrap') };
  const program = join(tools, 'usr/sbin/debootstrap');
  await run('sh', [program, '--variant=minbase', 'bookworm', image], { env, maxBuffer: 1e8 });
  const name = `node-linux-${process.arch}`;
  await run('npm', [
    'install',
    '--prefix',
    tools,
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    `${name}@24`,
    'npm@11',
  ]);
  cpSync(join(tools, 'node_modules', name, 'bin/node'), join(image, 'usr/local/bin/node'));
  cpSync(join(tools, 'node_modules/npm'), join(image, 'usr/local/lib/node_modules/npm'), { recursive: true });
  await inRoot(image, ['ln', '-s', '../lib/node_modules/npm/bin/npm-cli.js', '/usr/local/bin/npm'], {});
  return image;
}

interface Built {
  user?: string;
  folder?: string;
  env?: Record<string, string>;
  entry: string[];
  command: string[];
}

/** Carries out the steps of the file, as an engine for images does. Throws for a step that it does not know. */
async function build(image: string, tarball: string): Promise<Built> {
  const built: Built = { env: {}, entry: [], command: [] };
  for (const { word, text } of stepsOf(readFileSync(join(root, 'media/worker/Containerfile'), 'utf8'))) {
    if (word === 'ARG' || word === 'FROM') assert.match(text, /^(?:BASE|\$\{BASE\})$/);
    else if (word === 'RUN') await inRoot(image, ['sh', '-c', text], built);
    else if (word === 'COPY') {
      const [from, to = ''] = text.split(' ');
      assert.equal(from, '*.tgz');
      cpSync(tarball, join(image, to, basename(tarball)));
    } else if (word === 'ENV') {
      const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(text) ?? [];
      built.env = { ...built.env, [name]: value };
    } else if (word === 'WORKDIR') built.folder = text;
    else if (word === 'USER') built.user = text;
    else if (word === 'ENTRYPOINT') built.entry = JSON.parse(text);
    else if (word === 'CMD') built.command = JSON.parse(text);
    else assert.fail(`An image is not built by ${word} here.`);
  }
  return built;
}

/** Returns what a command in the root folder has written to stdout and stderr. What it mounts is gone with it. */
async function inRoot(
  image: string,
  words: readonly string[],
  { user, folder = '/', env = {} }: Partial<Built>,
): Promise<string> {
  const start = 'mount -t proc proc "$1/proc" && cd "$1" && shift && exec chroot "$@"';
  const named = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const identity = user ? [`--userspec=${user}:nogroup`] : [];
  const inside = ['.', 'env', '-C', folder, ...named, ...words];
  const args = [
    '--mount',
    '--pid',
    '--fork',
    '--kill-child',
    'sh',
    '-c',
    start,
    'sh',
    image,
    ...identity,
    ...inside,
  ];
  const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const { stdout } = await run('unshare', args, { env: { PATH: path, HOME: '/root' }, maxBuffer: 1e8 });
  return stdout;
}
