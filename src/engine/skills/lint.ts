/** Checks a SKILL.md for what keeps it from being found and understood, and fixes what a program can fix. */

import { readdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { asSaid, sentence } from '@telos/protocol/text';
import { namedParts } from '../files/hostPlugin.ts';
import { readText } from '../files/regularFile.ts';
import { type Diagnostic, type TextEdit, worded } from '../files/settingsFile.ts';
import { roundsDefects, type SkillKind } from './agent.ts';
import { fieldText, findKey, findValue, parseSkillFile, withoutMark } from './frontmatter.ts';
import { packSkills } from './packSkills.ts';
import { hookEvents, skillHooks } from './readHooks.ts';
import { readRuntimeMetadata, readToolNames, splitAllowedTools } from './skillFields.ts';
import { type FileSkill, missingDescription, openSkill, skillFileIn } from './skillFile.ts';

type Fields = FileSkill['fields'];

const skippedFolders = new Set(['.git', 'node_modules']);

/**
 * Returns every skill at and below a folder, also those below another skill, sorted by path. Links are followed, and each folder
 * is visited once. Never throws.
 */
export function skillsBelow(root: string): FileSkill[] {
  const skills: FileSkill[] = [];
  const visited = new Set<string>();
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    try {
      const real = realpathSync.native(folder);
      if (visited.has(real)) continue;
      visited.add(real);
      const file = skillFileIn(folder);
      if (file) skills.push(openSkill(file, 'user'));
      if (namedParts(folder).file !== undefined)
        skills.push(...packSkills(folder).skills.filter(({ kind }) => kind !== undefined));
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        if (skippedFolders.has(entry.name)) continue;
        const path = join(folder, entry.name);
        // A folder of that name, or a broken link: its owner takes it for a skill.
        if (!file && !entry.isFile() && /^skill\.md$/i.test(entry.name)) skills.push(openSkill(path, 'user'));
        // A link that does not lead to a folder is noticed when it is visited.
        if (entry.isDirectory() || entry.isSymbolicLink()) folders.push(path);
      }
    } catch {
      // A folder that may not be read has nothing to check.
    }
  }
  return skills.sort((a, b) => (a.file < b.file ? -1 : 1));
}

/** Returns what is wrong with a skill on disk. Never throws. */
export function lintSkill(skill: FileSkill): readonly Diagnostic[] {
  const { diagnostics, fields, file } = skill;
  if (diagnostics.some(({ severity }) => severity === 'error')) return diagnostics;
  const text = (): string => {
    try {
      return readText(file);
    } catch {
      // The file was removed since it was read. Every defect is then on the first line.
      return '';
    }
  };
  return [...diagnostics, ...fieldDefects(fields, file, text, skill.kind)];
}

/** Returns what is wrong with a text, which need not be saved. `file` says which folder's name it must match. */
export function lintText(text: string, file: string): readonly Diagnostic[] {
  const parsed = parseSkillFile(text, file);
  const description = missingDescription(parsed, file, text);
  return [
    ...parsed.diagnostics,
    ...(description ? [description] : []),
    ...fieldDefects(parsed.fields, file, () => text),
  ];
}

/**
 * Applies every change that fixes an error or a warning. Matters of taste stay as they are. Returns the text unchanged if there
 * is no change.
 */
export function mendText(text: string, file: string): string {
  const mark = text.startsWith('\uFEFF') ? '\uFEFF' : '';
  const plain = withoutMark(text);
  let mended = plain;
  // Each change may reveal the next defect. Frontmatter has few lines, so the rounds are limited.
  for (let round = 0; round < 50; round++) {
    const edit = lintText(mended, file).find(({ edit, severity }) => edit && severity !== 'info')?.edit;
    if (!edit) break;
    mended = edited(mended, edit);
  }
  return mended === plain ? text : mark + mended;
}

const edited = (text: string, { offset, length, text: put }: TextEdit): string =>
  text.slice(0, offset) + put + text.slice(offset + length);

function fieldDefects(fields: Fields, file: string, text: () => string, kind?: SkillKind): Diagnostic[] {
  const lineOf = (key: string): number => findKey(text(), key) ?? 1;
  const folder = basename(dirname(file));
  const name = fieldText(fields['name']);
  return [
    ...(name && name !== folder && kind === undefined ? [nameDiffers(name, folder, file, text())] : []),
    ...cutByComment(fields, file, text),
    ...readRuntimeMetadata(fields).problems.map(
      (message): Diagnostic => ({
        severity: 'warning',
        code: 'metadata',
        ...worded(
          [message, sentence('It is ignored.')],
          sentence(
            'Write it as YAML or as JSON, such as {0}.',
            '{"openclaw": {"requires": {"bins": ["jq"]}}}',
          ),
        ),
        file,
        line: lineOf('metadata'),
      }),
    ),
    ...toolNameDefects('allowed-tools', fields, file, lineOf),
    ...toolNameDefects('disallowed-tools', fields, file, lineOf),
    ...(kind === 'role' ? toolNameDefects('tools', fields, file, lineOf) : []),
    ...hookDefects(fields, file, lineOf),
    ...unusedFields(fields, file, lineOf),
    ...roundsDefects(fields[roundsKey(fields)], {
      severity: 'warning',
      code: 'max-rounds',
      file,
      line: lineOf(roundsKey(fields)),
    }),
  ];
}

/** Names what other programs read and Telos does not, where the author of the skill looks. */
function unusedFields(fields: Fields, file: string, lineOf: (key: string) => number): Diagnostic[] {
  const isFork = fieldText(fields['context'])?.toLowerCase() === 'fork';
  const unused = [
    ...(fields['paths'] === undefined ? [] : ['paths']),
    // Prompts of VS Code have a field of that name, too.
    ...(fields['agent'] !== undefined && !isFork ? ['agent'] : []),
  ];
  return unused.map(key => ({
    severity: 'info',
    code: 'unused-field',
    ...(key === 'agent'
      ? worded(
          sentence('`agent` counts with `context: fork` only.'),
          sentence('Add `context: fork`, or remove it.'),
        )
      : worded(
          sentence('{0} is not used here.', `\`${key}\``),
          sentence('Say in the description which files the skill is for.'),
        )),
    file,
    line: lineOf(key),
  }));
}

function hookDefects(fields: Fields, file: string, lineOf: (key: string) => number): Diagnostic[] {
  const dir = dirname(file);
  const { problems } = skillHooks(fields['hooks'], { name: '', packDir: dir }, { id: '', dir });
  return problems.map(problem => ({
    severity: 'info',
    code: 'hooks',
    ...worded(
      asSaid(problem.replace(/^.*?: /, '').replace(/^./, first => first.toUpperCase())),
      sentence('Its events are {0}, and a hook has a command.', hookEvents.join(', ')),
    ),
    file,
    line: lineOf('hooks'),
  }));
}

const roundsKey = (fields: Fields): string =>
  fields['max_rounds'] === undefined ? 'max-rounds' : 'max_rounds';

function nameDiffers(name: string, folder: string, file: string, text: string): Diagnostic {
  const place = findValue(text, 'name');
  const edit = place && { offset: place.offset, length: place.length, text: plainOrQuoted(folder) };
  return {
    severity: 'info',
    code: 'name-folder',
    ...worded(
      sentence(
        "The skill is called '{0}' and its folder '{1}'; both names work, and two are confusing.",
        name,
        folder,
      ),
      sentence("Call it '{0}', or rename the folder.", folder),
    ),
    file,
    line: place?.line ?? 1,
    ...(edit && !/^[|>&*!]/.test(text.replace(/^\uFEFF/, '').slice(edit.offset)) ? { edit } : {}),
  };
}

/** Reports a description that ends at ` #`, which begins a comment in YAML. A person who writes `issue #12` seldom means one. */
function cutByComment(fields: Fields, file: string, text: () => string): Diagnostic[] {
  if (fieldText(fields['description']) === undefined) return [];
  const whole = withoutMark(text());
  const place = findValue(whole, 'description');
  if (!place) return [];
  const { line, offset, length } = place;
  const value = whole.slice(offset, offset + length);
  // An empty description may well have a comment after it. A tag, or a number sign, is more likely meant.
  if (!/^#\S|\s#/.test(value) || /^(?:["'|>&*!{[]|# )/.test(value)) return [];
  return [
    {
      severity: 'warning',
      code: 'description-comment',
      ...worded(
        sentence('The description ends before ` #`, since YAML takes the rest of the line for a comment.'),
        sentence('Put the description in quotes.'),
      ),
      file,
      line,
      edit: { offset, length, text: JSON.stringify(value) },
    },
  ];
}

/** Returns a name, in quotes if YAML would take it for something else, such as `1` or `yes`. */
const plainOrQuoted = (name: string): string =>
  /^[A-Za-z][\w.-]*$/.test(name) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(name)
    ? name
    : JSON.stringify(name);

function toolNameDefects(
  key: 'allowed-tools' | 'disallowed-tools' | 'tools',
  fields: Fields,
  file: string,
  lineOf: (key: string) => number,
): Diagnostic[] {
  const { unknown } = readToolNames(splitAllowedTools(fields[key]));
  if (unknown.length === 0) return [];
  const names = unknown.map(entry => `'${entry}'`).join(', ');
  return [
    {
      severity: 'info',
      code: key,
      ...worded(
        [
          sentence('{0} names {1}, which Telos does not know.', `\`${key}\``, names),
          sentence('The other names are used.'),
        ],
        sentence(
          'Name tools such as Read, Write, Edit, Grep, Glob, LS, Bash(git *), WebFetch or mcp__server__tool.',
        ),
      ),
      file,
      line: lineOf(key),
    },
  ];
}
