/** Keeps what stories have learned about a project in its AGENTS.md, as a commit of its own behind the story's. */
import type { JournalLine } from '@telos/protocol/plan';
import { beginningOf, shortened } from '@telos/protocol/text';
import type { Git } from './git.ts';
import type { PlanFolder } from './planFolder.ts';
import { oneLine } from './prdFile.ts';

const file = 'AGENTS.md';
const heading = '## Learned while building';
/** In bytes. The oldest notes make room for new ones; what people wrote stays. */
const mostNotes = 8 * 1024;

/** Returns the text with the notes that it lacks, under a heading of their own; the same text if it has them all. */
export function withNotes(text: string, notes: readonly string[]): string {
  const at = text.indexOf(`${heading}\n`);
  const [own, rest] = at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + heading.length + 1)];
  // People may have put another section behind the notes.
  const end = rest.search(/^#{1,2} /m);
  const [list, behind] = end < 0 ? [rest, ''] : [rest.slice(0, end), rest.slice(end)];
  const present = list.split('\n').filter(line => line.startsWith('- '));
  const same = (line: string): string =>
    line
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]+/gu, ' ')
      .trim();
  const known = new Set([...text.split('\n').map(same)]);
  const fresh = [...new Set(notes.map(note => `- ${oneLine(note)}`))].filter(
    line => same(line) !== '' && !known.has(same(line)),
  );
  if (fresh.length === 0) return text;
  const all = [...present, ...fresh];
  while (all.length > 1 && Buffer.byteLength(all.join('\n')) > mostNotes) all.shift();
  const before = own.trim() === '' ? '# Notes for agents' : own.trimEnd();
  return `${before}\n\n${heading}\n\n${all.join('\n')}\n${behind === '' ? '' : `\n${behind}`}`;
}

/** Makes the file for what is learned while working in a folder without Git. One that is there stays as it is. */
export async function prepareNotes(project: PlanFolder): Promise<void> {
  if (project.read(file) === undefined) await project.write(file, `# Notes for agents\n\n${heading}\n`);
}

/**
 * Adds what was learned to the file that `prepareNotes` has made; one that a person wrote is theirs. Returns what became of it, in a
 * sentence.
 */
export async function keepLearned(note: string, project: PlanFolder): Promise<string> {
  const text = project.read(file) ?? '';
  if (!text.includes(heading))
    return `Not noted: ${file} is the person's, and has no section "${heading.slice(3)}". Say it at the end of your answer.`;
  const next = withNotes(text, [shortened(oneLine(note), longestDenial)]);
  if (next === text) return `${file} says that already.`;
  await project.write(file, next);
  return `Noted in ${file}.`;
}

/** In characters. The first sentences of a denial say what it is about. */
const longestDenial = 400;

/** Returns what a story has taught since it passed the last time: what reviewers denied, and what those who built it noted. */
export function learnedOf(lines: readonly JournalLine[], story: string): string[] {
  let notes: string[] = [];
  for (const line of lines) {
    if (!('story' in line) || line.story !== story) continue;
    if (line.type === 'story_passed') notes = [];
    if (line.type === 'verdict' && !line.approved)
      notes.push(`The review of ${story} denied: ${beginningOf(oneLine(line.text), longestDenial)}`);
    if (line.type === 'learned') notes.push(...line.notes);
  }
  return notes;
}

/** Returns the text of AGENTS.md at a commit; empty if it has none. */
async function adviceAt(git: Git, commit: string): Promise<string> {
  return (await git.text(`${commit}:${file}`)) ?? '';
}

const guideFiles = [file, 'CLAUDE.md'];
/** Folders that a story names are looked at up to so many. */
const mostFolders = 12;
/** In characters. What a project says of contributing is for people too. */
const longestGuide = 8_000;
const longestContributing = 3_000;

/**
 * Returns what the project says at a commit about how work is done: at its top, and in the folders of `touches` and on the way to them.
 * Each file has a heading with its path; empty without any.
 */
export async function guidesAt(git: Git, commit: string, touches: readonly string[]): Promise<string> {
  const folders = new Set(touches.flatMap(foldersOf));
  const nested = [...folders].sort().slice(0, mostFolders);
  const paths = ['', ...nested.map(folder => `${folder}/`)].flatMap(at => guideFiles.map(name => at + name));
  const known = new Set<string>();
  const found: string[] = [];
  for (const path of [...paths, 'CONTRIBUTING.md']) {
    const text = (await git.text(`${commit}:${path}`))?.trim() ?? '';
    // A link to the other file, or a line that includes it, is no text of its own.
    if (text === '' || known.has(text) || /^@?[\w./-]+\.md$/i.test(text)) continue;
    known.add(text);
    const most = path === 'CONTRIBUTING.md' ? longestContributing : longestGuide;
    const cut = text.length > most ? `${beginningOf(text, most)}\n[Cut here.]` : text;
    found.push(`## ${path}\n\n${cut}`);
  }
  return found.join('\n\n');
}

/** Returns the folders on the way to what a glob names, that one too. */
function foldersOf(glob: string): string[] {
  const names = glob
    .replace(/^\.?\//, '')
    .split('/')
    .slice(0, -1);
  const end = names.findIndex(name => name === '..' || /[*?[\]{}!]/.test(name));
  const plain = end < 0 ? names : names.slice(0, end);
  return plain.map((_, at) => plain.slice(0, at + 1).join('/'));
}

/** Returns a commit behind `commit` that has the notes; undefined if there is nothing to add. */
export async function learningsCommit(
  git: Git,
  commit: string,
  { plan, story, notes }: { plan: string; story: string; notes: readonly string[] },
): Promise<string | undefined> {
  if (notes.length === 0) return undefined;
  const entries = (await git.read(['ls-tree', '-z', '--full-tree', '--end-of-options', commit]))
    .split('\0')
    .filter(Boolean);
  const present = entries.find(entry => entry.slice(entry.indexOf('\t') + 1) === file);
  // A link, or a folder of that name, belongs to the person.
  if (present !== undefined && !/^100(?:644|755) blob /.test(present)) return undefined;
  const text = await adviceAt(git, commit);
  const next = withNotes(text, notes);
  if (next === text) return undefined;
  const blob = (await git.run(['hash-object', '-w', '--stdin'], { input: next })).stdout.trim();
  const mode = present?.slice(0, 6) ?? '100644';
  const others = entries.filter(entry => entry !== present);
  const input = [...others, `${mode} blob ${blob}\t${file}`].map(entry => `${entry}\0`).join('');
  const tree = (await git.run(['mktree', '-z'], { input })).stdout.trim();
  const message = `${story}: note what was learned\n\nTelos-Plan: ${plan}\nTelos-Learnings: ${story}\n`;
  return git.commitTree(tree, [commit], message);
}
