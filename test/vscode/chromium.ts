/** Finds a Chromium for the tests. On Linux it comes from npm, so that nothing need be installed beforehand and all tests have the same. */
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createBrotliDecompress } from 'node:zlib';
import { type Browser, chromium } from 'playwright-core';
import { cacheDir } from './paths.ts';
import { runProgram } from './processTree.ts';

interface ChromiumProgram {
  path: string;
  env: Record<string, string>;
}

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome', 'msedge'];

const wellKnown = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
  'C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe',
];

/** For what is measured: a frame without an origin has a process of its own, as in every browser with a window. Takes more time and memory. */
export const ownProcesses = '--site-per-process';

/** Quiet and offline. The sandbox is off: root cannot have one, and the only pages are our own. */
export async function launchChromium(...more: string[]): Promise<Browser> {
  const program = await findChromium(process.env);
  return chromium.launch({
    executablePath: program.path,
    env: { ...process.env, ...program.env },
    chromiumSandbox: false,
    args: [
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--disable-quic',
      '--no-first-run',
      ...more,
    ],
  });
}

let shared: Promise<Browser> | undefined;

/** One Chromium for all tests of this process, which ends with mocha's run. What they open in it, they close. */
export function sharedChromium(): Promise<Browser> {
  shared ??= launchChromium().then(browser => {
    browser.once('disconnected', () => {
      shared = undefined;
    });
    return browser;
  });
  return shared;
}

/** Ends the shared Chromium, if one was started. */
export async function closeSharedChromium(): Promise<void> {
  await (await shared)?.close();
}

/** `TELOS_CHROMIUM`, else the one from npm, which draws no window and so takes a fifth less time, else an installed one. Throws if there is none. */
export async function findChromium(env: NodeJS.ProcessEnv): Promise<ChromiumProgram> {
  const named = env['TELOS_CHROMIUM'];
  if (named) {
    if (!existsSync(named)) throw new Error(`TELOS_CHROMIUM names ${named}, and there is no such file.`);
    return { path: named, env: {} };
  }
  if (process.platform === 'linux' && process.arch === 'x64') return unpackedFromNpm();
  const folders = (env['PATH'] ?? '').split(delimiter);
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const candidates = [
    ...names.flatMap(name => folders.map(folder => join(folder, name + suffix))),
    ...wellKnown,
  ];
  const installed = candidates.find(path => existsSync(path));
  if (installed) return { path: installed, env: {} };
  throw new Error('No Chromium was found. Install Chrome or Chromium, or set TELOS_CHROMIUM to its program.');
}

/** The package is made for one cloud's machines; its libraries and fonts are unpacked beside it for any other Linux. */
async function unpackedFromNpm(): Promise<ChromiumProgram> {
  const packed = join(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))), '..', 'bin');
  const home = join(cacheDir, 'chromium-153.0.0');
  if (!existsSync(home)) {
    await mkdir(cacheDir, { recursive: true });
    const work = await mkdtemp(join(cacheDir, 'unpacking-'));
    try {
      await inflate(join(packed, 'chromium.br'), join(work, 'chromium'));
      await chmod(join(work, 'chromium'), 0o755);
      for (const archive of ['al2023.tar', 'fonts.tar', 'swiftshader.tar']) {
        await inflate(join(packed, `${archive}.br`), join(work, archive));
        await runProgram('tar', ['-xf', archive], work);
        await rm(join(work, archive));
      }
      await rename(work, home).catch(error => {
        if (!existsSync(home)) throw error;
      });
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }
  const fonts = `<?xml version="1.0"?><fontconfig><dir>${join(home, 'fonts')}</dir><cachedir>${join(home, 'cache')}</cachedir></fontconfig>\n`;
  await writeFile(join(home, 'fonts.conf'), fonts);
  const libraries = [join(home, 'lib'), process.env['LD_LIBRARY_PATH']].filter(Boolean).join(delimiter);
  return { path: join(home, 'chromium'), env: { LD_LIBRARY_PATH: libraries, FONTCONFIG_PATH: home } };
}

function inflate(from: string, to: string): Promise<void> {
  return pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to));
}
