/** Looks at the packs of a catalogue, and writes a site about them. Runs nothing of theirs. */
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { readText, writeWhole } from '@telos/engine/files';
import { readRecording } from '@telos/engine/providers';
import { findSkills, skillDigest } from '@telos/engine/skills';
import { latestResults, type StoredResults } from '@telos/evals/report';
import { type CatalogueEntry, type FetchOptions, lookAtCatalogue, parseSource } from '@telos/packs/install';
import { describeCall } from '@telos/protocol/describe';
import type { ToolCall } from '@telos/protocol/run';
import { sentence, shortened } from '@telos/protocol/text';
import { indexOf, indexPage, type ReplayStep, type ShownPack, type ShownSkill, skillPage } from './pages.ts';

export interface GalleryOptions extends FetchOptions {
  /** Written new. It must not be there yet, or be a gallery that an earlier call wrote. */
  folder: string;
  /** The folder with the style sheet and the script of the pages. */
  assets: string;
  /** Where readers install it from. Without it, a folder of this machine is not named: its path is nobody's business. */
  from?: string;
  /** Who measured the figures, as the pages name them. */
  by?: string;
}

export interface Gallery {
  packs: number;
  skills: number;
  /** Skills with figures of this very version, and skills with a replay. */
  measured: number;
  replays: number;
  /** Packs and skills that are not on the site, and figures and recordings that cannot be read, in sentences. */
  problems: readonly string[];
}

/** Returns what a reader installs; undefined for a folder of this machine. */
function installText(
  { source }: CatalogueEntry,
  given: string,
  config: Config,
  from: string | undefined,
): string | undefined {
  const parsed = parseSource(given, config);
  if (parsed.kind !== 'folder') return source;
  return from === undefined
    ? undefined
    : `${from}${source.startsWith(parsed.path) ? source.slice(parsed.path.length) : ''}`;
}

/** By it an earlier gallery is known, so that nothing else is replaced. */
const mark = 'telos-gallery';

/**
 * Builds the site and returns what is on it. Throws TelosError `config` if the folder holds something else, and the errors of
 * `lookAtCatalogue`.
 */
export async function buildGallery(
  source: string,
  config: Config,
  options: GalleryOptions,
): Promise<Gallery> {
  const { folder, from } = options;
  await refuseOther(folder);
  const skills = new Map<CatalogueEntry, ShownSkill[]>();
  const problems: string[] = [];
  const entries = await lookAtCatalogue(source, config, {
    ...options,
    mostLooks: Number.POSITIVE_INFINITY,
    looked: async (entry, dir) => void skills.set(entry, await skillsOf(entry, dir, config, problems)),
  });
  const packs = entries.flatMap((entry): ShownPack[] =>
    entry.look
      ? [
          {
            entry,
            look: entry.look,
            skills: skills.get(entry) ?? [],
            install: installText(entry, source, config, from),
          },
        ]
      : [],
  );
  const all = packs.flatMap(pack => pack.skills);
  // An empty site in the place of an earlier one would say that there are no skills any more.
  if (all.length > 0) await writeSite(packs, options);
  return {
    packs: packs.length,
    skills: all.length,
    measured: all.filter(({ results }) => results).length,
    replays: all.filter(({ replay }) => replay.length > 0).length,
    problems: [
      ...problems,
      ...entries.flatMap(({ name, look, problem, elsewhere }) =>
        look
          ? []
          : [
              `${name} ${problem?.replace(/\.$/, '') ?? (elsewhere ? `lies at ${elsewhere}, which was not fetched` : 'was not looked at')}.`,
            ],
      ),
    ],
  };
}

/** Writes the pages into a new folder, which then takes the place of the earlier one. */
async function writeSite(
  packs: readonly ShownPack[],
  { folder, assets, by }: Pick<GalleryOptions, 'folder' | 'assets' | 'by'>,
): Promise<void> {
  placePages(packs);
  await mkdir(dirname(folder), { recursive: true });
  const made = await mkdtemp(join(dirname(folder), `.${basename(folder)}-`));
  try {
    await cp(assets, made, { recursive: true });
    await mkdir(join(made, 'skills'));
    for (const pack of packs)
      for (const skill of pack.skills) await writeWhole(join(made, skill.page), skillPage(pack, skill, by));
    const index = { format: mark, version: 1, ...indexOf(packs, by) };
    await writeWhole(join(made, 'index.json'), `${JSON.stringify(index, undefined, 1)}\n`);
    await writeWhole(join(made, 'index.html'), indexPage(packs));
    await replace(folder, made);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

function isGallery(folder: string): boolean {
  try {
    return readText(join(folder, 'index.json')).startsWith(`{\n "format": "${mark}"`);
  } catch {
    return false;
  }
}

async function refuseOther(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  if (names.length === 0) return;
  if (!isGallery(folder))
    throw new TelosError('config', [
      sentence('{0} holds other files, and a gallery would replace them.', folder),
      sentence('Choose another folder.'),
    ]);
}

/** Puts the new site in the place of the old one, which is there again if that fails. */
async function replace(folder: string, made: string): Promise<void> {
  const old = `${made}.old`;
  const wasThere = await rename(folder, old).then(
    () => true,
    () => false,
  );
  try {
    await rename(made, folder);
  } catch (error) {
    if (wasThere) await rename(old, folder);
    throw error;
  }
  await rm(old, { recursive: true, force: true });
}

/** Reads the skills of a pack with what was measured of these very bytes. */
async function skillsOf(
  { name, look }: CatalogueEntry,
  dir: string,
  config: Config,
  problems: string[],
): Promise<ShownSkill[]> {
  const shown: ShownSkill[] = [];
  const found = new Map(findSkills(dir, 'user').map(skill => [skill.id, skill]));
  for (const offered of look?.skills ?? []) {
    const skill = found.get(offered.id);
    if (!skill) {
      problems.push(`The skill ${offered.id} of ${name} was not found in its files.`);
      continue;
    }
    const tried = <Result>(read: () => Result): Result | undefined => unlessBroken(read, problems);
    const digest = await skillDigest(skill.dir);
    shown.push({
      offered,
      digest,
      page: '',
      replay: tried(() => replayOf(skill.dir, digest)) ?? [],
      ...tried(() => resultsOf(config.dataDir, { agent: name, skill: offered.id }, digest)),
    });
  }
  return shown;
}

/** Figures of other bytes say nothing of these. */
function resultsOf(
  dataDir: string,
  ref: { agent: string; skill: string },
  digest: string,
): { results?: StoredResults } {
  const results = latestResults(dataDir, ref);
  return results?.skillDigest === digest ? { results } : {};
}

/** One broken file does not keep the catalogue from being shown, but it is named: without it, a skill looks as if nobody had measured it. */
function unlessBroken<Result>(read: () => Result, problems: string[]): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof TelosError)) throw error;
    problems.push(error.message);
    return undefined;
  }
}

/** Returns the recorded run of a skill in steps; none if there is no recording of these bytes. */
function replayOf(dir: string, digest: string): ReplayStep[] {
  const file = join(dir, 'recording.jsonl');
  if (!existsSync(file)) return [];
  const { header, turns } = readRecording(file);
  if (header.skillDigest !== digest) return [];
  const steps: ReplayStep[] = [{ kind: 'request', text: header.request }];
  for (const { events } of turns) {
    const text = events.flatMap(event => (event.type === 'text' ? [event.text] : [])).join('');
    if (text.trim()) steps.push({ kind: 'text', text: text.trim() });
    for (const event of events)
      if (event.type === 'tool_call')
        steps.push({ kind: 'tool', text: describeCall(event.call, subjectOf(event.call), true) });
  }
  return steps;
}

/** Returns what a recorded call is about: its path, its command, or else the first text among its values. */
function subjectOf({ input }: ToolCall): string {
  const { path, command } = input;
  const first = [path, command, ...Object.values(input)].find(value => typeof value === 'string');
  return typeof first === 'string' ? shortened(first.replace(/\s+/g, ' '), 200) : '';
}

/** Gives each skill a page of its own, whose name holds nothing but letters, digits and hyphens. */
function placePages(packs: readonly ShownPack[]): void {
  const taken = new Set<string>();
  const plain = (text: string): string =>
    text
      .normalize('NFKD')
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '')
      .slice(0, 80) || 'skill';
  for (const { entry, skills } of packs)
    for (const skill of skills) {
      const name = plain(`${entry.name}-${skill.offered.id}`);
      let free = name;
      for (let count = 2; taken.has(free); count++) free = `${name}-${count}`;
      taken.add(free);
      skill.page = `skills/${free}.html`;
    }
}
