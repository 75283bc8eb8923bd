/**
 * `npm run bench:sources`: how long fetching takes beside the bare tools that do the same step, in one run. With `-- --corpus FOLDER`, also
 * sends the skills of published packages once around: into a git repository, installed from there, exported, installed from the export,
 * and compared byte for byte. Exit 1 when a figure is over its limit or a byte has changed.
 */
import { execFileSync, fork } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Config, loadConfig } from '../../src/engine/config.ts';
import { contentsOf } from '../../src/engine/files/folderRecord.ts';
import { discoverAgents } from '../../src/engine/skills/discover.ts';
import { problemsElsewhere } from '../../src/engine/skills/packSkills.ts';
import { exportAgents } from '../../src/packs/export/exportAgents.ts';
import { fetchResolved, reachFor, resolveSource } from '../../src/packs/sources/fetchSource.ts';
import { lookAtSource, placeOffer } from '../../src/packs/sources/install.ts';
import { verifyPacks } from '../../src/packs/sources/locked.ts';
import { parseSource } from '../../src/packs/sources/sourceText.ts';
import { gitDaemon } from '../fakes/gitDaemon.ts';
import { commitFiles, sourceServers } from '../fakes/sourceServers.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { median } from './measure.ts';

const { values } = parseArgs({ options: { corpus: { type: 'string' } } });
const rounds = 5;
const skillsInPack = 25;
const skill = (name: string, size: number): string =>
  `---\nname: ${name}\ndescription: D\n---\n${'A line of text.\n'.repeat(size)}`;

/** The servers run in a process of their own, so that neither side shares its time with them. */
if (process.send) {
  const servers = await sourceServers();
  const files = Object.fromEntries(
    Array.from({ length: 200 }, (_, at) => [`skills/s${at}/SKILL.md`, skill(`s${at}`, 50 + at)]),
  );
  const commit = servers.github.commit('acme/tools', files, { tag: 'v1' });
  process.send({ url: servers.url, env: servers.env, commit });
  process.on('disconnect', () => process.exit());
} else {
  const folder = tempFolder({ 'git/.keep': '' });
  const daemon = await gitDaemon(join(folder.path, 'git'));
  try {
    const isFast = await speed(folder.path, daemon);
    const isSame = values.corpus === undefined || (await around(values.corpus, folder.path, daemon));
    if (!isFast || !isSame) process.exitCode = 1;
  } finally {
    await daemon.close();
    folder.remove();
  }
}

function configIn(home: string, daemon: { config: string }, env: Record<string, string> = {}): Config {
  mkdirSync(join(home, 'work'), { recursive: true });
  writeFileSync(join(home, '.gitconfig'), daemon.config);
  return loadConfig({
    env: { PATH: process.env['PATH'], HOME: home, ...env },
    home,
    cwd: join(home, 'work'),
  });
}

async function speed(root: string, daemon: { base: string; config: string }): Promise<boolean> {
  const child = fork(fileURLToPath(import.meta.url));
  try {
    const { url, env, commit } = await new Promise<{
      url: string;
      env: Record<string, string>;
      commit: string;
    }>(done => child.once('message', message => done(message as never)));
    const config = configIn(join(root, 'speed'), daemon, env);
    const files = Object.fromEntries(
      Array.from({ length: 200 }, (_, at) => [`skills/s${at}/SKILL.md`, skill(`s${at}`, 50 + at)]),
    );
    commitFiles(join(root, 'git/tools.git'), files);
    const archive = `${url}/codeload/acme/tools/tar.gz/${commit}`;
    const bare = { env: { ...process.env, HOME: config.home }, stdio: 'ignore' } as const;
    const asked = (command: string): void => void execFileSync('/bin/sh', ['-c', command], bare);
    const archives = await beside(root, 'github:acme/tools@v1', config, place =>
      asked(`curl -sf ${archive} | tar -xz -C ${place}`),
    );
    const clones = await beside(root, `git+${daemon.base}tools.git`, config, place =>
      asked(`git clone -q --depth 1 ${daemon.base}tools.git ${place}/tools`),
    );
    return [
      row('an archive of GitHub, beside curl and tar', archives, archives.bare * 1.5, '1.5 times'),
      row('git, beside git clone --depth 1', clones, clones.bare * 1.3 + 100, '1.3 times and 100 ms'),
    ].every(Boolean);
  } finally {
    child.disconnect();
  }
}

interface Sides {
  ours: number;
  bare: number;
}

/** Returns the medians of both sides, which take turns. Ours resolves the source, fetches it, checks each name and writes each file. */
async function beside(
  root: string,
  text: string,
  config: Config,
  tool: (place: string) => void,
): Promise<Sides> {
  const [ours, bare]: [number[], number[]] = [[], []];
  const place = join(root, 'place');
  const timed = async (into: number[], work: () => unknown): Promise<void> => {
    mkdirSync(place);
    const started = performance.now();
    await work();
    into.push(performance.now() - started);
    rmSync(place, { recursive: true });
  };
  const source = parseSource(text, config);
  for (let round = 0; round < rounds; round++) {
    await timed(ours, async () => {
      const reach = await reachFor(source, config, {});
      const { resolved } = await resolveSource(source, reach);
      if (resolved.kind !== 'folder') await fetchResolved(resolved, place, reach);
    });
    await timed(bare, () => tool(place));
  }
  return { ours: median(ours), bare: median(bare) };
}

function row(label: string, { ours, bare }: Sides, limit: number, says: string): boolean {
  const isMet = ours <= limit;
  console.log(
    `${label.padEnd(44)}${`${ours.toFixed(0)} to ${bare.toFixed(0)} ms`.padStart(16)}  wanted: at most ${says}${isMet ? '' : '  MISSED'}`,
  );
  return isMet;
}

/** Returns the files of a folder as text, by path. */
function textsBelow(folder: string): Record<string, string> {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const files = paths.filter(path => statSync(join(folder, path)).isFile());
  return Object.fromEntries(files.map(path => [path, readFileSync(join(folder, path), 'utf8')]));
}

interface Package {
  id: string;
  files: Record<string, string>;
}

/** Sends every package around that other hosts would take, and counts the others by their reason. */
async function around(
  corpus: string,
  root: string,
  daemon: { base: string; config: string },
): Promise<boolean> {
  const reasons = new Map<string, number>();
  const give = (why: string): void => void reasons.set(why, (reasons.get(why) ?? 0) + 1);
  const packages = packagesOf(corpus, give);
  const failed: string[] = [];
  let same = 0;
  for (let at = 0; at < packages.length; at += skillsInPack) {
    const some = packages.slice(at, at + skillsInPack);
    const sent = await sendAround(`pack-${at}`, some, root, daemon, give);
    same += sent.same;
    failed.push(...sent.changed);
  }
  console.log(`${'skills once around, byte for byte'.padEnd(44)}${`${same} the same`.padStart(16)}`);
  console.log(`${'changed on the way'.padEnd(44)}${String(failed.length).padStart(16)}  wanted: none`);
  for (const [why, count] of [...reasons].sort((one, other) => other[1] - one[1]))
    console.log(
      `${'not exported as it is, with the reason'.padEnd(44)}${String(count).padStart(16)}  ${why}`,
    );
  for (const id of failed) console.log(`  ${id}`);
  return failed.length === 0;
}

function packagesOf(corpus: string, give: (why: string) => void): Package[] {
  const names = (folder: string): string[] =>
    readdirSync(folder).filter(name => statSync(join(folder, name)).isDirectory());
  const found = new Map<string, Package>();
  for (const owner of names(corpus))
    for (const name of names(join(corpus, owner))) {
      const files = textsBelow(join(corpus, owner, name));
      const [problem] =
        files['SKILL.md'] === undefined
          ? ['has no SKILL.md of that spelling at its top']
          : problemsElsewhere(Buffer.from(files['SKILL.md']), name);
      const id = found.has(name) ? `${name}-${owner}` : name;
      if (problem !== undefined) give(problem.replace(/:? ?["0-9].*/s, ''));
      else if (id !== name) give('has the name of another one');
      else found.set(id, { id, files });
    }
  return [...found.values()];
}

async function sendAround(
  name: string,
  packages: readonly Package[],
  root: string,
  daemon: { base: string; config: string },
  give: (why: string) => void,
): Promise<{ same: number; changed: string[] }> {
  const files = Object.fromEntries(
    packages.flatMap(({ id, files: own }) =>
      Object.entries(own).map(([path, text]) => [`skills/${id}/${path}`, text]),
    ),
  );
  commitFiles(join(root, 'git', `${name}.git`), files);
  const [first, second] = ['first', 'second'].map(one => configIn(join(root, one, name), daemon));
  await install(`git+${daemon.base}${name}.git`, first!);
  const out = join(root, 'out', name);
  const [agent] = discoverAgents(first!).filter(one => one.name === name);
  let notes: readonly string[];
  try {
    notes = (await exportAgents([agent!], { to: out, as: 'plugin' })).flatMap(one => one.notes);
  } catch (error) {
    // Whatever is refused is named with its skill; the others go without it.
    const refused = packages.filter(({ id }) => String(error).includes(`skills/${id}/`));
    if (refused.length === 0) throw error;
    for (const { id } of refused)
      give(
        hasSecret(String(error), id)
          ? 'contains what looks like a secret'
          : 'something of level high was found in it',
      );
    const others = packages.filter(one => !refused.includes(one));
    return sendAround(`${name}-less`, others, root, daemon, give);
  }
  await install(join(out, name), second!);
  const changed: string[] = [];
  const whole = packages.filter(({ id }) => {
    const note = notes.find(text => text.startsWith(`skills/${id}/`) && text.includes(' is left out: '));
    if (note !== undefined) give(`exported without a file: ${note.replace(/.* is left out: /, '')}`);
    return note === undefined;
  });
  for (const { id } of whole) {
    const [before, after] = await Promise.all(
      [first!, second!].map(config => contentsOf(join(config.skillsDir, name, 'skills', id))),
    );
    if (JSON.stringify(before) !== JSON.stringify(after) || before === undefined) changed.push(id);
  }
  return { same: whole.length - changed.length, changed };
}

const hasSecret = (error: string, id: string): boolean =>
  error.split('\n').some(line => line.includes(`skills/${id}/`) && line.includes('contains a secret'));

async function install(source: string, config: Config): Promise<void> {
  const offer = await lookAtSource(source, config);
  if (offer.kind !== 'offer') throw new Error(offer.message);
  await placeOffer(offer, { allowHigh: true });
  await offer.dispose();
  const odd = (await verifyPacks({ config })).find(({ state }) => state !== 'same');
  if (odd) throw new Error(`${odd.name} is ${odd.state} after its install.`);
}
