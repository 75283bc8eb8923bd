/** The keys that the frontmatter of a SKILL.md may have, from frontmatterKeys.json: what completion offers and hover says. */
import keys from './frontmatterKeys.json' with { type: 'json' };

export interface FrontmatterKey {
  name: string;
  /** One line, as a person reads it beside the key; Markdown. */
  says: string;
  /** What is inserted behind the key and its colon, in the editor's snippet syntax. */
  value: string;
  /** The values that it can have, where they can be counted. */
  values?: readonly string[];
  /** Editors that know skills as a language complete this key by themselves; hover stays ours, since it says what Telos makes of it. */
  editorOffers: boolean;
}

/** Those that matter most first. */
export const frontmatterKeys: readonly FrontmatterKey[] = keys;
