/** Ordinary skills and what an ordinary run of each does: it looks around, reads, runs a command of its text, gets a page that it names, and writes. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, posix, relative } from 'node:path';
import { hostKind } from '../../src/engine/addresses.ts';
import { plainWords } from '../../src/engine/policy/shellCommands.ts';
import { thisMachine } from '../../src/engine/skills/machine.ts';
import { readinessOf } from '../../src/engine/skills/readiness.ts';
import { openSkill } from '../../src/engine/skills/skillFile.ts';

export interface SkillCall {
  tool: string;
  input: Readonly<Record<string, unknown>>;
}

export interface OrdinarySkill {
  /** `<owner>/<skill>`. */
  name: string;
  /** Below the skill's folder. */
  files: Readonly<Record<string, string>>;
  /** Below the folder in which the agent works. */
  work: Readonly<Record<string, string>>;
  /** Programs that must be there; an echo replaces each, since a stranger's command is not carried out here. */
  programs: readonly string[];
  /** A recording below the skill's folder that is played in place of `calls`. */
  recording?: string;
  calls: readonly SkillCall[];
}

/** Placeholder for the skill's folder until that is known. */
export const skillFolder = '/the-skill-folder';

const standIn = '#!/bin/sh\necho done\n';

/** Our own, for where there is no corpus: one for each thing that a card is about. */
export const writtenSkills = (): OrdinarySkill[] => [
  ordinary('ours/script', 'Run this:\n\n```bash\npython3 {baseDir}/scripts/sum.py notes.md\n```\n'),
  ordinary('ours/command', 'Look at the weather:\n\n```bash\ncurl -s "wttr.example.com/Ulm?format=3"\n```\n'),
  ordinary('ours/page', 'Read https://example.com/news.html and sum it up.\n'),
  ordinary('ours/plain', 'Write three sentences about what lies in the folder.\n'),
];

/** The sample packs, each skill by itself: its recording where it has one. */
export function sampleSkills(): OrdinarySkill[] {
  const media = new URL('../../media/demo/', import.meta.url).pathname;
  const skills = join(media, 'skills/kairos/skills');
  return readdirSync(skills).map(id => {
    const files = filesBelow(join(skills, id));
    const work = filesBelow(join(media, 'workspace'));
    const named = [...(files['SKILL.md'] ?? '').matchAll(/(?<=`)[\w-]+\.md(?=`)/g)].map(([path]) => path);
    const read = named.filter(path => Object.hasOwn(work, path));
    return {
      name: `kairos/${id}`,
      files,
      work,
      programs: ['date'],
      ...(files['recording.jsonl'] === undefined ? {} : { recording: 'recording.jsonl' }),
      calls: [
        { tool: 'list_directory', input: { path: '.' } },
        ...[...new Set(read)].map(path => ({ tool: 'read_file', input: { path } })),
        { tool: 'write_file', input: { path: 'log.md', content: '# Today\n' } },
      ],
    };
  });
}

/** Programs here are stand-ins. The real ones of these commands would reach a host, which a person is asked about. */
const reachesHost = /https?:|\b(?:curl|wget|npx)\b/;

/** Returns true for a skill whose run gets no page and names no host: in a box, nothing of it leaves. */
export const reachesNoHost = ({ calls }: OrdinarySkill): boolean =>
  calls.every(({ tool, input }) => tool !== 'fetch_url' && !reachesHost.test(String(input['command'] ?? '')));

/**
 * So many wanted skills of a folder `<owner>/.../SKILL.md`: ready on this machine, with a command or a page in the text; one of an owner, in
 * the order of a hash of their paths.
 */
export function chosenSkills(
  corpus: string,
  count: number,
  isWanted: (skill: OrdinarySkill) => boolean = () => true,
): OrdinarySkill[] {
  const machine = thisMachine({ PATH: process.env['PATH'] ?? '' });
  const paths = readdirSync(corpus, { recursive: true, encoding: 'utf8' })
    .filter(path => /(^|\/)skills?\.md$/i.test(path))
    .sort((a, b) => (hashOf(a) < hashOf(b) ? -1 : 1));
  const owners = new Set<string>();
  const chosen: OrdinarySkill[] = [];
  for (const path of paths) {
    const owner = path.split('/')[0] ?? '';
    if (chosen.length === count || owners.has(owner)) continue;
    const skill = openSkill(join(corpus, path), 'user');
    if (!readinessOf(skill, machine).ready) continue;
    const name = `${owner}/${basename(dirname(path))}`;
    const one = ordinary(name, skill.body, readFileSync(join(corpus, path), 'utf8'));
    if (!one.calls.some(({ tool }) => tool === 'run_command' || tool === 'fetch_url')) continue;
    if (!one.programs.every(program => machine.hasProgram(program)) || !isWanted(one)) continue;
    owners.add(owner);
    chosen.push(one);
  }
  return chosen;
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

function filesBelow(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name))
      .map(path => [relative(folder, path), readFileSync(path, 'utf8')]),
  );
}

/** The first command and the first page of the text, in the text's order. */
function ordinary(
  name: string,
  body: string,
  whole = `---\ndescription: Does it\n---\n${body}`,
): OrdinarySkill {
  const command = firstCommand(body);
  const page = firstPage(body);
  const doing = [
    ...(command ? [{ at: command.at, tool: 'run_command', input: { command: command.line } }] : []),
    ...(page ? [{ at: page.at, tool: 'fetch_url', input: { url: page.url } }] : []),
  ].sort((a, b) => a.at - b.at);
  const own = command?.own ?? [];
  return {
    name,
    files: { 'SKILL.md': whole, ...Object.fromEntries(own.map(path => [path, standIn])) },
    work: { 'notes.md': 'Call Ada.\n' },
    programs: command?.programs ?? [],
    calls: [
      { tool: 'list_directory', input: { path: '.' } },
      ...own.map(path => ({ tool: 'read_file', input: { path: posix.join(skillFolder, path) } })),
      { tool: 'read_file', input: { path: 'notes.md' } },
      ...doing.map(({ tool, input }) => ({ tool, input })),
      { tool: 'write_file', input: { path: 'result.md', content: 'What came of it.\n' } },
      { tool: 'read_file', input: { path: 'result.md' } },
    ],
  };
}

interface BodyCommand {
  at: number;
  line: string;
  programs: string[];
  /** Files of the skill that it names, below the skill's folder. */
  own: string[];
}

const fences = /^[ \t]*```(?:bash|sh|shell|console|zsh)?[ \t]*\n([\s\S]*?)^[ \t]*```/gm;

function firstCommand(body: string): BodyCommand | undefined {
  for (const fence of body.matchAll(fences)) {
    for (const line of (fence[1] ?? '').replace(/\\\n\s*/g, ' ').split('\n')) {
      const command = commandIn(line);
      if (command) return { ...command, at: fence.index };
    }
  }
  return undefined;
}

/** Words of the shell itself, and programs that set a machine up and are not part of an ordinary run. */
const notOrdinary =
  /^(cd|export|source|\.|eval|exec|set|unset|alias|command|builtin|env|echo|printf|trap|sudo|su|apt|apt-get|brew|chmod|mkdir|touch|rm|kill)$/;
const setsUp = /\b(install|login|auth|setup|init|add|clone|link|build|download|upgrade|update)\b/;
const ownFile = /^(?:\.\/)?(?:[\w-]+\/)*[\w.-]+\.(?:py|sh|js|mjs|ts|rb|pl)$/;

function commandIn(text: string): Omit<BodyCommand, 'at'> | undefined {
  const line = text
    .trim()
    .replace(/^\$ /, '')
    .replace(/\s+#\s.*$/, '')
    .replace(/<([a-z][\w .-]*)>/gi, 'example')
    .replace(/\$?\{baseDir\}|\$\{(?:CLAUDE_)?SKILL_DIR\}/g, skillFolder);
  if (line === '' || line.startsWith('#') || setsUp.test(line)) return undefined;
  const parts = line.split(' | ').map(part => plainWords(part.replace(/\$\{?[A-Z][A-Z0-9_]*\}?/g, 'value')));
  const programs: string[] = [];
  const own = new Set<string>();
  for (const words of parts) {
    if (!words) return undefined;
    const files = words.flatMap(word => {
      const path = word.startsWith(`${skillFolder}/`) ? word.slice(skillFolder.length + 1) : word;
      return ownFile.test(path) ? posix.normalize(path) : [];
    });
    for (const path of files) own.add(path);
    const [program = ''] = words;
    if (files.length > 0 && program.includes('/')) continue;
    if (!/^[a-z][\w.-]*$/.test(program) || notOrdinary.test(program)) return undefined;
    programs.push(program);
  }
  return { line, programs, own: [...own] };
}

function firstPage(body: string): { at: number; url: string } | undefined {
  for (const { 0: text, index } of body.matchAll(/\bhttps?:\/\/[^\s"'`<>)\]}\\|,;*$[{]+/gi)) {
    const address = text.replace(/[.:!?]+$/, '');
    if (URL.canParse(address) && hostKind(new URL(address).hostname) === 'public')
      return { at: index, url: address };
  }
  return undefined;
}
