/** Reads the skills that a server serves (SEP-2640). A file counts only if it is what the entry of its skill says. */
import { createHash } from 'node:crypto';
import { beginningOf, sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { escapeInvisible } from '../files/plainText.ts';
import type { ServedFile, ServedSkill, ServedSkills } from './connection.ts';
import { type Client, type SkillEntry, SkillsClient } from './sdk.ts';

/** The skills of one connected server. */
export class ServerSkills implements ServedSkills {
  readonly #skills: SkillsClient;
  readonly #timeout: number;
  readonly #entries = new Map<string, SkillEntry>();

  /** `timeout` is that of each request, in milliseconds. */
  constructor(client: Client, timeout: number) {
    this.#skills = new SkillsClient(client, { skipInvalid: true });
    this.#timeout = timeout;
  }

  get isServed(): boolean {
    return this.#skills.supported;
  }

  async list(signal: AbortSignal): Promise<ServedSkill[]> {
    if (!this.isServed) return [];
    const { skills } = await this.#skills.list({}, { signal, timeout: this.#timeout });
    this.#entries.clear();
    for (const entry of skills) this.#entries.set(entry.uri, entry);
    return [...this.#entries.values()].map(entry => ({
      name: lineOf(entry.frontmatter.name),
      description: lineOf(entry.frontmatter.description),
      uri: entry.uri,
      digest: digestOf(entry),
    }));
  }

  async files({ uri, name }: Pick<ServedSkill, 'uri' | 'name'>, signal: AbortSignal): Promise<ServedFile[]> {
    const entry = this.#entries.get(uri);
    if (!entry || entry.resources === 'dynamic')
      throw new TelosError('mcp', [
        sentence(
          "the server makes the files of the skill '{0}' anew each time, so none of them can be kept",
          name,
        ),
      ]);
    const files: ServedFile[] = [];
    for (const listed of inOrder(entry)) {
      const { bytes } = await this.#skills.read(entry, listed, { signal, timeout: this.#timeout });
      files.push({ path: pathIn(entry, listed), bytes });
    }
    return files;
  }
}

/** Returns the files, SKILL.md first: if that is not what was listed, no other is asked for. */
function inOrder({ uri, resources }: SkillEntry): string[] {
  const all = resources === 'dynamic' ? [] : resources.map(one => one.uri);
  return [...all.filter(one => one === uri), ...all.filter(one => one !== uri)];
}

/** Returns the path of a file in its skill. The SDK has refused what is not below the folder of the skill. */
function pathIn(entry: SkillEntry, uri: string): string {
  const root = entry.uri.slice(0, entry.uri.lastIndexOf('/') + 1);
  return uri.slice(root.length).split('/').map(decodeURIComponent).join('/');
}

function digestOf(entry: SkillEntry): string | undefined {
  if (entry.resources === 'dynamic') return undefined;
  const lines = entry.resources.map(({ uri, digest }) => `${uri} ${digest}`).sort();
  return `sha256:${createHash('sha256').update(lines.join('\n')).digest('hex')}`;
}

const longest = 300;
const lineOf = (text: unknown): string => escapeInvisible(beginningOf(String(text ?? '').trim(), longest));
