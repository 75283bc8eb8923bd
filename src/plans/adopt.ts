/**
 * Takes over plans that people have already, in the formats of other tools, with their order and their done-marks, and knows where the
 * source has these. The source is only read.
 */

import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { reasonOf, TelosError } from '@telos/engine/errors';
import { errorCode, fileProblem, readRegularFile } from '@telos/engine/files';
import type { Story, StoryItem } from '@telos/protocol/plan';
import type { JsonObject } from '@telos/protocol/run';
import { sentence } from '@telos/protocol/text';
import { Journal } from './journal.ts';
import type { MachineSeal } from './machineSeal.ts';
import { PlanFolder, slug } from './planFolder.ts';
import { oneLine, printPrd } from './prdFile.ts';
import { Projection } from './projection.ts';

export type AdoptedFormat = 'ralph' | 'spec-kit' | 'kiro' | 'markdown';

/** A place in the source that says whether something is done: a box in a line, from 0, or a value in JSON. */
export interface DoneMark {
  file: string;
  at: { line: number } | { path: readonly (string | number)[]; done: boolean };
  done: boolean;
}

export interface AdoptedStory {
  story: Story;
  body: string;
  /** What says that the whole story is done, if something does. */
  mark?: DoneMark | undefined;
  /** What says it of each of the boxes. */
  marks: readonly (DoneMark | undefined)[];
}

export interface Adopted {
  format: AdoptedFormat;
  /** What the plan is for, in one line. */
  goal: string;
  /** Text for plan.md: the documents that belong to the tasks. Empty if there are none. */
  plan: string;
  stories: readonly AdoptedStory[];
  /** The files that were read. Absolute. */
  files: readonly string[];
}

/** A story as a format has it. Ids and files follow from its place. */
interface Found {
  title: string;
  description?: string | undefined;
  items: { text: string; done: boolean; mark?: DoneMark }[];
  mark?: DoneMark;
  body?: string;
}

interface Read extends Omit<Adopted, 'stories' | 'files'> {
  found: Found[];
}

const mostBytes = 4 * 1024 * 1024;
const mostStories = 500;

/**
 * Returns the plan at a path: a file, or a folder that a tool keeps its plan in.
 * Throws TelosError `config` if there is nothing that can be read as a plan.
 */
export function adopt(path: string): Adopted {
  const files: string[] = [];
  const read: ReadFile = (...parts) => {
    const file = join(...parts);
    const text = textAt(file);
    if (text !== undefined) files.push(file);
    return text;
  };
  const source = isFolder(path) ? fromFolder(path, read) : fromFile(path, read);
  const { found, ...rest } = source ?? { found: [] };
  const stories = found.filter(({ items }) => items.length > 0).slice(0, mostStories);
  if (!source || stories.length === 0)
    throw new TelosError('config', [
      sentence('{0} has no tasks that can be read.', path),
      sentence('Name a prd.json, a tasks.md, or Markdown with checkboxes (- [ ] …).'),
    ]);
  return { ...source, ...rest, stories: storiesOf(stories), files };
}

/** Returns the name that a plan has unless the person chooses one. */
export const adoptedName = ({ goal }: Adopted): string => slug(goal) || 'adopted';

/**
 * Makes a plan of what was read, and returns its folder. Its plan counts as approved, since a person has brought it; its card does not.
 * A box that was ticked counts as accepted by the person. Throws TelosError `config` if the name is taken.
 */
export async function makeAdopted(
  adopted: Adopted,
  repo: string,
  seal: MachineSeal,
  name = adoptedName(adopted),
): Promise<PlanFolder> {
  const { goal, plan, stories, format } = adopted;
  const folder = await PlanFolder.create(repo, name, goal, seal);
  const text = plan === '' ? `# ${goal}\n\nTaken over from ${format}.\n` : `${plan.trimEnd()}\n`;
  await folder.write('plan.md', text);
  for (const { story, body } of stories) await folder.write(story.prd, printPrd(story, body));
  const journal = await Journal.open(folder.journal, seal);
  try {
    await journal.append({ type: 'plan_written', digest: createHash('sha256').update(text).digest('hex') });
    await journal.append({ type: 'plan_reviewed', decision: 'approved', comments: [], by: 'cli' });
    await journal.append({ type: 'stories_written', stories: stories.map(({ story }) => story.id) });
    await new Projection(folder, journal).project();
  } finally {
    await journal.close();
  }
  return folder;
}

type ReadFile = (...parts: string[]) => string | undefined;

function textAt(file: string): string | undefined {
  try {
    return readRegularFile(file, mostBytes)
      .toString('utf8')
      .replace(/^\uFEFF/, '');
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined;
    throw new TelosError('config', [fileProblem(error, file)], { cause: error });
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Looks for the file that names the tool. */
function fromFolder(folder: string, read: ReadFile): Read | undefined {
  const name = ['prd.json', 'tasks.md'].find(one =>
    statSync(join(folder, one), { throwIfNoEntry: false })?.isFile(),
  );
  if (name !== undefined) return fromFile(join(folder, name), read);
  const found = readdirSync(folder)
    .filter(one => /\.md$/i.test(one))
    .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }))
    .flatMap(one => fromFile(join(folder, one), read) ?? []);
  const [first] = found;
  if (!first) return undefined;
  return { ...first, goal: basename(folder), plan: '', found: found.flatMap(one => one.found) };
}

function fromFile(file: string, read: ReadFile): Read | undefined {
  const text = read(file);
  if (text === undefined) throw new TelosError('config', [sentence('{0} does not exist.', file)]);
  if (/\.json$/i.test(file)) return fromJson(file, text);
  const folder = dirname(file);
  if (basename(file) === 'tasks.md') {
    const [requirements, design] = [read(folder, 'requirements.md'), read(folder, 'design.md')];
    const plan = [requirements, design].flatMap(one => one?.trim() ?? []).join('\n\n');
    if (requirements !== undefined || design !== undefined)
      return { format: 'kiro', goal: basename(folder), plan, found: numberedTasks(text, file) };
    if (/^\s*(?:[-*+]|\d{1,9}[.)])[ \t]+\[[ xX]\] T\d+/m.test(text)) {
      const [spec, design] = [read(folder, 'spec.md'), read(folder, 'plan.md')];
      const documents = [spec, design].flatMap(one => one?.trim() ?? []).join('\n\n');
      const goal = titleIn(spec ?? text) ?? basename(folder);
      return { format: 'spec-kit', goal, plan: documents, found: sections(text, file, withoutTaskId) };
    }
  }
  return { format: 'markdown', goal: titleIn(text) ?? basename(file), plan: '', found: sections(text, file) };
}

function fromJson(file: string, text: string): Read | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const why = reasonOf(error);
    throw new TelosError('config', [sentence('{0} is not JSON: {1}', file, why)]);
  }
  return isObject(value) && Array.isArray(value['userStories']) ? ralph(value, file) : undefined;
}

/** The list of the tool `ralph`: each story passes as a whole. */
function ralph(plan: JsonObject, file: string): Read {
  const found = placedIn(plan['userStories'])
    .map(([story, place], at) => ({ story, place, rank: Number(story['priority'] ?? at), at }))
    .sort((one, other) => one.rank - other.rank || one.at - other.at)
    .map(({ story, place }): Found => {
      const done = story['passes'] === true;
      const criteria = textsIn(story['acceptanceCriteria']);
      const title = textIn(story['title']) || textIn(story['id']);
      return {
        title,
        ...(typeof story['passes'] === 'boolean' && {
          mark: { file, at: { path: ['userStories', place, 'passes'], done: true }, done },
        }),
        description: textIn(story['description']),
        items: (criteria.length > 0 ? criteria : [title]).map(text => ({ text, done })),
        body: textIn(story['notes']) ? `## Notes\n${String(story['notes']).trim()}` : '',
      };
    });
  const goal = textIn(plan['description']) || textIn(plan['project']) || 'A plan of ralph';
  return { format: 'ralph', goal, plan: '', found };
}

interface Line {
  text: string;
  /** Its number, from 0. */
  at: number;
  heading?: { level: number; title: string };
  box?: { indent: number; text: string; done: boolean };
}

/** Returns the lines of a text with their meaning. What is in a code fence is only text. */
function linesOf(text: string): Line[] {
  let fence: string | undefined;
  return text.split(/\r?\n/).map((line, at): Line => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark && (fence === undefined || mark.startsWith(fence))) {
      fence = fence === undefined ? mark : undefined;
      return { text: line, at };
    }
    if (fence !== undefined) return { text: line, at };
    const [, signs, title] = /^(#{1,6}) +(.*\S)/.exec(line) ?? [];
    if (signs && title) return { text: line, at, heading: { level: signs.length, title } };
    const [, blank = '', tick, words] =
      /^(\s*)(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX])\]\*?[ \t]+(.*\S)/.exec(line) ?? [];
    if (!words) return { text: line, at };
    return {
      text: line,
      at,
      box: { indent: blank.replaceAll('\t', '    ').length, text: words, done: tick !== ' ' },
    };
  });
}

const titleIn = (text: string): string | undefined =>
  linesOf(text)
    .find(({ heading }) => heading?.level === 1)
    ?.heading?.title.replace(/^(?:Feature Specification|Tasks|Implementation Plan): */i, '');

const boxMark = (file: string, line: number, done: boolean) => ({ mark: { file, at: { line }, done } });

const withoutTaskId = (text: string): string => text.replace(/^T\d+ +(?:\[P\] *)?(?:\[US\d+\] *)?/, '');

/** Each heading with boxes is a story. Those below it only group its boxes. */
function sections(text: string, file: string, worded: (text: string) => string = same): Found[] {
  const lines = linesOf(text);
  const level = levelOfStories(lines);
  const found: Found[] = [];
  let title = titleIn(text) ?? 'Tasks';
  let isFresh = true;
  for (const { heading, box, at } of lines) {
    if (heading && heading.level <= level) {
      title = heading.title;
      isFresh = true;
    }
    if (!box) continue;
    if (isFresh) found.push({ title: title.replace(/^Phase +[\w.]+: */i, ''), items: [] });
    isFresh = false;
    found.at(-1)?.items.push({ text: worded(box.text), done: box.done, ...boxMark(file, at, box.done) });
  }
  return found;
}

/** Returns the highest level of the headings with boxes below them, but for the title of the whole. */
function levelOfStories(lines: readonly Line[]): number {
  let open: number[] = [];
  let highest = 6;
  for (const { heading, box } of lines) {
    if (heading) open = [...open.filter(level => level < heading.level), heading.level];
    if (box) highest = Math.min(highest, ...open.filter(level => level > 1));
  }
  return highest;
}

const same = (text: string): string => text;

/** Each outermost box is a story, and the boxes below it are its criteria. */
function numberedTasks(text: string, file: string): Found[] {
  const found: (Found & { done: boolean })[] = [];
  const notes: string[][] = [];
  let least = Number.POSITIVE_INFINITY;
  for (const { text: line, box, at } of linesOf(text)) {
    if (!box) {
      if (/^\s+[-*+] /.test(line)) notes.at(-1)?.push(line.trim());
      continue;
    }
    const words = box.text.replace(/^\d+(?:\.\d+)*\.? +/, '');
    if (box.indent <= least) {
      least = box.indent;
      found.push({ title: words, items: [], done: box.done, ...boxMark(file, at, box.done) });
      notes.push([]);
    } else found.at(-1)?.items.push({ text: words, done: box.done, ...boxMark(file, at, box.done) });
  }
  return found.map(({ title, items, done, mark }, at) => ({
    title,
    ...(mark && { mark }),
    items: items.length > 0 ? items : [{ text: title, done }],
    body: (notes[at] ?? []).length > 0 ? `## Notes\n${(notes[at] ?? []).join('\n')}` : '',
  }));
}

function storiesOf(found: readonly Found[]): AdoptedStory[] {
  const digits = Math.max(2, String(found.length).length);
  return found.map(({ title, description, items, mark, body = '' }, at) => ({
    story: {
      id: `US-${String(at + 1).padStart(3, '0')}`,
      title: oneLine(title) || `Story ${at + 1}`,
      ...(description && { description }),
      prd: `prds/${String(at + 1).padStart(digits, '0')}-${slug(title) || 'story'}.md`,
      role: 'coder',
      dependsOn: [],
      touches: [],
      checks: [],
      items: items.map(
        ({ text, done }, index): StoryItem => ({ number: index + 1, text: oneLine(text), ticked: done }),
      ),
    },
    body,
    mark,
    marks: items.map(one => one.mark),
  }));
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the objects of a list with their places in it. */
const placedIn = (value: unknown): [JsonObject, number][] =>
  Array.isArray(value) ? value.flatMap((one, at) => (isObject(one) ? [[one, at]] : [])) : [];

const textIn = (value: unknown): string => (typeof value === 'string' ? oneLine(value) : '');

const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(textIn).filter(text => text !== '') : [];
