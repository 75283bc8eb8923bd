/** Represents a SKILL.md on disk as a Skill that is read and parsed only when its content is used. */

import { isUtf8 } from 'node:buffer';
import {
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import type { SkillRef } from '@telos/protocol/run';
import { beginningOf, type Sentence, sentence, spoken } from '@telos/protocol/text';
import { roundsIn } from '../config.ts';
import { reasonOf } from '../core/errors.ts';
import { isInside, realPlace } from '../files/paths.ts';
import { readRegularFile } from '../files/regularFile.ts';
import { isSensitive } from '../files/sensitiveNames.ts';
import { type Diagnostic, fileState, worded } from '../files/settingsFile.ts';
import type { Skill, SkillKind, SkillSource } from './agent.ts';
import { fieldText, findKey, type ParsedSkillFile, parseSkillFile, scanName } from './frontmatter.ts';
import { almostFence } from './frontmatterLines.ts';
import {
  argumentHintIn,
  argumentNamesIn,
  type ReadMetadata,
  readRuntimeMetadata,
  splitAllowedTools,
  synopsisOf,
} from './skillFields.ts';

/** Text that listings show for a skill without any description. */
export const noDescription = '(no description)';

/** Maximum length of a description in listings and in prompts that list skills, in characters. */
const maxDescription = 1024;
/** Bytes that are enough for the frontmatter of nearly all files. A file with a longer one is read whole. */
const headBytes = 4096;
/** Shared by all files. Thousands of buffers would cost more than reading the files. */
const headBuffer = Buffer.allocUnsafe(headBytes);

interface Manifest {
  description: string;
  name: string;
  body: string;
  fields: ParsedSkillFile['fields'];
  diagnostics: readonly Diagnostic[];
}

/** A Skill with its frontmatter, for parts of the engine that need more than the listing does. */
export interface FileSkill extends Skill {
  readonly fields: ParsedSkillFile['fields'];
  readonly metadata: ReadMetadata;
  /** The id and the frontmatter's name, found without a YAML parser if possible. */
  readonly names: readonly string[];
  /** Set by discovery, the only part that sees all agents. */
  shadowedBy?: SkillRef;
  /** Set by discovery. */
  isDisabled?: boolean;
}

/** Returns the skill of a file. Never throws, now or later: a file that cannot be read is a skill with a diagnostic. */
export function openSkill(
  file: string,
  source: SkillSource,
  id = basename(dirname(file)),
  within?: string,
  kind?: SkillKind,
): FileSkill {
  return new LazySkill(file, source, id, within, kind);
}

/** A class, since there may be thousands. Separate getters for each object take longer to create. */
class LazySkill implements FileSkill {
  readonly id: string;
  readonly dir: string;
  readonly file: string;
  readonly source: SkillSource;
  readonly within: string | undefined;
  readonly kind: SkillKind | undefined;
  declare shadowedBy?: SkillRef;
  declare isDisabled?: boolean;
  #manifest: Manifest | undefined;
  #names: readonly string[] | undefined;
  #metadata: ReadMetadata | undefined;
  #synopsis: { text: string | undefined } | undefined;

  constructor(
    file: string,
    source: SkillSource,
    id: string,
    within: string | undefined,
    kind: SkillKind | undefined,
  ) {
    this.id = id;
    this.dir = dirname(file);
    this.file = file;
    this.source = source;
    this.within = within;
    this.kind = kind;
  }

  get names(): readonly string[] {
    if (this.#names) return this.#names;
    const name = this.#manifest?.name ?? readScannedName(this.file) ?? this.#parsed.name;
    this.#names = name === this.id ? [name] : [this.id, name];
    return this.#names;
  }
  get name(): string {
    return this.#parsed.name;
  }
  get description(): string {
    return this.#parsed.description;
  }
  get synopsis(): string | undefined {
    const { description, body } = this.#parsed;
    if (description && description !== noDescription) return undefined;
    this.#synopsis ??= { text: synopsisOf(body) };
    return this.#synopsis.text;
  }
  get body(): string {
    return this.#parsed.body;
  }
  get metadata(): ReadMetadata {
    this.#metadata ??= readRuntimeMetadata(this.#parsed.fields);
    return this.#metadata;
  }
  get userInvocable(): boolean {
    return this.#flag('user-invocable') !== 'false';
  }
  get modelInvocable(): boolean {
    const isNamed = this.kind === 'command' || this.kind === 'role';
    return !isNamed && this.#flag('disable-model-invocation') !== 'true';
  }
  get allowedTools(): readonly string[] | undefined {
    return splitAllowedTools(this.#parsed.fields['allowed-tools']);
  }
  get onlyTools(): readonly string[] | undefined {
    return this.kind === 'role' ? splitAllowedTools(this.#parsed.fields['tools']) : undefined;
  }
  get disallowedTools(): readonly string[] | undefined {
    const { fields } = this.#parsed;
    return splitAllowedTools(fields['disallowed-tools'] ?? fields['disallowedTools']);
  }
  get maxRounds(): number | undefined {
    const { fields } = this.#parsed;
    return roundsIn(fields['max_rounds'] ?? fields['max-rounds'] ?? fields['maxTurns']);
  }
  get argumentHint(): string | undefined {
    return argumentHintIn(this.#parsed.fields['argument-hint']);
  }
  get runsApart(): boolean {
    return this.#flag('context') === 'fork';
  }
  get argumentNames(): readonly string[] {
    return argumentNamesIn(this.#parsed.fields['arguments']);
  }
  get hooks(): unknown {
    return this.#parsed.fields['hooks'];
  }
  get fields(): ParsedSkillFile['fields'] {
    return this.#parsed.fields;
  }
  get diagnostics(): readonly Diagnostic[] {
    return this.#parsed.diagnostics;
  }

  get #parsed(): Manifest {
    this.#manifest ??= keptManifest(this.file, this.id, this.within, this.kind);
    return this.#manifest;
  }
  #flag(key: string): string | undefined {
    return fieldText(this.#parsed.fields[key])?.toLowerCase();
  }
}

/**
 * Returns the path of the skill file in a folder, or undefined if there is none. It is `SKILL.md` in any case, else `skills.md`
 * in any case. The usual spelling costs one look. For the others, `namesIn` is asked for the folder's content.
 */
export function skillFileIn(
  dir: string,
  namesIn: () => readonly string[] = () => namesOf(dir),
): string | undefined {
  const usual = dir.endsWith(sep) ? `${dir}SKILL.md` : `${dir}${sep}SKILL.md`;
  // Half the price of a stat. Reading it reports what is there but is not a file.
  if (existsSync(usual) || isFile(usual)) return usual;
  const names = namesIn();
  for (const wanted of ['skill.md', 'skills.md']) {
    const found = names.find(name => name.toLowerCase() === wanted && isFile(join(dir, name)));
    if (found) return join(dir, found);
  }
  return undefined;
}

function namesOf(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

/** Whether a path is a file. True also if it exists and cannot be examined: reading it reports why. */
function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    return true;
  }
}

/** Parsed values by key, each with the state of its file. After a change of one of a thousand skills, the others are not parsed again. */
const kept = new Map<string, { state: string; manifest: Manifest }>();
const mostKept = 5_000;
/** Returns what a file says. Reads it only if it is not what was read before. */
function keptManifest(
  file: string,
  id: string,
  within: string | undefined,
  kind: SkillKind | undefined,
): Manifest {
  const key = [file, id, within, kind].join('\n');
  // Seen before it is read: a change in between is then found by the next look.
  const state = fileState(file);
  const known = kept.get(key);
  if (known && known.state === state) return known.manifest;
  const manifest = readManifest(file, id, within, kind);
  kept.delete(key);
  if (kept.size >= mostKept) kept.clear();
  if (state !== undefined) kept.set(key, { state, manifest });
  return manifest;
}

function readManifest(
  file: string,
  id: string,
  within: string | undefined,
  kind: SkillKind | undefined,
): Manifest {
  let read: SkillText;
  try {
    read = readSkillText(file, within);
  } catch (error) {
    const diagnostics: Diagnostic[] = [
      { severity: 'error', code: 'skill-unreadable', ...unreadable(error), file, line: 1 },
    ];
    return { description: noDescription, name: id, body: '', fields: {}, diagnostics };
  }
  const { text, oddity } = read;
  if (kind === 'servers') return ofServers(text, id);
  const parsed = parseSkillFile(text, file);
  const description = describedAs(parsed.fields);
  // An edit counts characters of UTF-8, so none is offered for a file in another encoding.
  const diagnostics: Diagnostic[] = oddity
    ? parsed.diagnostics.map(({ edit: _edit, ...rest }) => rest)
    : [...parsed.diagnostics];
  // A command is found by its name alone, and needs no frontmatter.
  const missing = kind === 'command' ? undefined : missingDescription(parsed, file, text);
  if (missing) diagnostics.push(missing);
  if (oddity)
    diagnostics.push({
      severity: 'warning',
      code: 'encoding',
      ...worded(oddity.message, sentence('Save it as UTF-8.')),
      file,
      line: oddity.line,
    });
  return {
    description: beginningOf(description ?? noDescription, maxDescription),
    name: fieldText(parsed.fields['name']) || id,
    body: parsed.body,
    fields: parsed.fields,
    diagnostics,
  };
}

/** Returns what a plugin says that has nothing but MCP servers. `text` is the file that names them. */
function ofServers(text: string, id: string): Manifest {
  const [, said = ''] = /"description"\s*:\s*"((?:[^"\\\n]|\\.){1,2000})"/.exec(text) ?? [];
  const description = beginningOf(said.replace(/\\(.)/g, '$1'), maxDescription) || `The MCP servers of ${id}`;
  const body = 'Do what the user asks with the tools of the MCP servers.\n';
  return { description, name: id, body, fields: {}, diagnostics: [] };
}

function unreadable(error: unknown): ReturnType<typeof worded> {
  if (error instanceof SecretFile)
    return worded(error.said, sentence('Put the text of the skill into a file of its own.'));
  const reason = reasonOf(error);
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'EACCES':
    case 'EPERM':
      return worded(
        sentence('You do not have permission to read it.'),
        sentence('Give yourself permission to read the file and the folders above it.'),
      );
    case 'ENOENT':
    case 'ELOOP':
      return worded(
        sentence('The link to it is broken.'),
        sentence('Point the link at an existing file, or delete it.'),
      );
    default:
      return worded(
        // The system's own messages have no full stop.
        reason.endsWith('.')
          ? { text: '{0}', values: [reason] }
          : sentence('The file cannot be read: {0}.', reason),
        sentence('Make the file readable UTF-8 text below 2 MB.'),
      );
  }
}

/**
 * Returns the author's description, from the first key that exists. Returns undefined if none exists, and empty text if the key
 * has no value.
 */
function describedAs(fields: ParsedSkillFile['fields']): string | undefined {
  const keys = ['description', 'summary', 'short-description'];
  return keys.map(key => fieldText(fields[key])).find(text => text !== undefined);
}

/** Returns the diagnostic for a missing description, or undefined if there is a description. */
export function missingDescription(
  { fields, body, hasFrontmatter }: ParsedSkillFile,
  file: string,
  text: string,
): Diagnostic | undefined {
  if (describedAs(fields)) return undefined;
  const instead = hasFrontmatter ? undefined : almostFence(body);
  return {
    severity: 'warning',
    code: hasFrontmatter ? 'description-missing' : 'frontmatter-missing',
    ...(hasFrontmatter
      ? worded(
          sentence('The skill has no description, so it can hardly be found by what it does.'),
          sentence(
            'Add a line `description: ...` to the frontmatter that says what the skill does and when to use it.',
          ),
        )
      : worded(
          sentence('The file has no frontmatter, so it can hardly be found by what it does.'),
          instead ??
            sentence(
              'Begin the file with a line `---`, a line `description: ...` that says what the skill does and when to use it, and a line `---`.',
            ),
        )),
    file,
    line: findKey(text, 'description') ?? 1,
  };
}

/** Returns the name in the first line of the frontmatter, where most files have it. A few bytes tell. */
const plainName = (length: number): string | undefined =>
  /^---\r?\nname: ([\w-]+)\r?\n/.exec(headBuffer.toString('latin1', 0, Math.min(length, 120)))?.[1];

/** Returns the name from the first bytes of the file, or undefined if these are not enough to be sure. */
function readScannedName(file: string): string | undefined {
  try {
    // A pipe would wait for a writer. A link is not followed here, since its target is checked first.
    const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);
    const descriptor = openSync(file, flags);
    try {
      const length = readSync(descriptor, headBuffer, 0, headBytes, 0);
      return plainName(length) ?? scanName(headBuffer.toString('utf8', 0, length));
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return undefined;
  }
}

export interface SkillText {
  text: string;
  /** Encoding problem, as a sentence, and its first line, counted from 1. Undefined for UTF-8. */
  oddity?: { message: Sentence; line: number };
}

/** Maximum size of a SKILL.md, in bytes. A larger one is not a prompt for any model. */
const maxSkillBytes = 2 * 1024 * 1024;

/**
 * Thrown for a skill file whose real name means secrets, or that is a user's file and not a skill. Everything that is read of a
 * skill goes to a model.
 */
class SecretFile extends Error {
  readonly said: Sentence;

  constructor(said: Sentence) {
    super(spoken([said]));
    this.said = said;
  }
}

/**
 * Reads a skill file. If a link leads out of `within`, only a file with the name of a skill file is read. Throws the system's
 * error if the file cannot be read. Throws SecretFile, and Error with a sentence if the content is not text.
 */
export function readSkillText(file: string, within = dirname(file)): SkillText {
  const real = realpathSync.native(file);
  if (isSensitive(real))
    throw new SecretFile(
      real === file
        ? sentence('It looks like it holds keys, passwords or other secrets, so it is not read.')
        : sentence(
            'It leads to {0}, which looks like it holds keys, passwords or other secrets, so it is not read.',
            real,
          ),
    );
  const bytes = readRegularFile(real, maxSkillBytes);
  if (!/^skills?\.md$/i.test(basename(real)) && !isInside(realPlace(within) ?? within, real))
    throw new SecretFile(
      sentence(
        'It leads to {0}, which is not a skill file and is outside {1}, so it is not read.',
        real,
        within,
      ),
    );
  const wide = readUtf16(bytes);
  const text = wide?.text ?? bytes.toString('utf8');
  const zero = text.indexOf('\0');
  if (zero >= 0)
    throw new Error(`The file is not UTF-8 text: there is a zero byte in line ${lineAt(text, zero)}.`);
  if (wide || isUtf8(bytes)) return wide ?? { text };
  const line = lineAt(text, text.indexOf('\uFFFD'));
  // If no other character is UTF-8 either, the whole file is from such a program.
  if (/[\u0080-\uFFFC]/.test(text)) {
    const message = sentence(
      'The file has characters that are not UTF-8, as older Windows programs write them; they are lost.',
    );
    return { text, oddity: { message, line } };
  }
  const message = sentence(
    'The file has characters that are not UTF-8, as older Windows programs write them; they were read as Windows-1252, which may be wrong.',
  );
  return {
    text: new TextDecoder('windows-1252').decode(bytes),
    oddity: { message, line },
  };
}

/** Decodes UTF-16, which PowerShell writes. Returns undefined if the file does not begin with its mark. */
function readUtf16(bytes: Buffer): SkillText | undefined {
  const mark = bytes.toString('latin1', 0, 2);
  if (mark !== '\xFF\xFE' && mark !== '\xFE\xFF') return undefined;
  const encoding = mark === '\xFF\xFE' ? 'utf-16le' : 'utf-16be';
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return {
      text,
      oddity: { message: sentence('The file is UTF-16, which other programs may not read.'), line: 1 },
    };
  } catch (cause) {
    throw new Error('The file is not UTF-8 text: it begins as UTF-16 does, and is none.', { cause });
  }
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;
