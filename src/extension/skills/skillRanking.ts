/** Puts skills into the order in which a person is likely to want them, and says in a few words what speaks against one. */
import { importMachine, importReadiness, type Missing, type Skill } from '@telos/engine/skills';
import type { Telos } from '@telos/engine/telos';
import type { SkillRef } from '@telos/protocol/run';
import { plainLabel, t, translated } from '../base/labels.ts';
import { inSlices, type PickableSkill, pickableSkills } from './skillFiles.ts';

/** The part of the editor's memory that is needed. */
interface Memory {
  get<Value>(key: string, otherwise: Value): Value;
  update(key: string, value: unknown): PromiseLike<void>;
}

interface Uses {
  count: number;
  /** In milliseconds since 1970. */
  last: number;
}

const usesKey = 'telos.skillUses';
const favoritesKey = 'telos.favoriteSkills';
/** Uses of more skills are forgotten, the oldest first. */
const mostRemembered = 200;
/** After this time without a use, earlier uses count half. In milliseconds. */
const halfLife = 7 * 24 * 60 * 60 * 1000;

const keyOf = ({ agent, skill }: SkillRef): string => `${agent}:${skill}`;
const refOf = ({ agent, skill }: PickableSkill): SkillRef => ({ agent: agent.name, skill: skill.id });

/** Remembers which skills the person runs and which ones are favorites, in all workspaces. */
export class SkillMemory {
  readonly #memory: Memory;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  async noteRun(ref: SkillRef, now = Date.now()): Promise<void> {
    const all = this.#memory.get<Readonly<Record<string, Uses>>>(usesKey, {});
    const { [keyOf(ref)]: before, ...others } = all;
    const newest = Object.entries(others).sort(([, a], [, b]) => b.last - a.last);
    const count = this.weight(ref, now) + 1;
    const kept = [[keyOf(ref), { count, last: now }] as const, ...newest].slice(0, mostRemembered);
    if (before?.last === now) return;
    await this.#memory.update(usesKey, Object.fromEntries(kept));
  }

  /** Returns how much a skill is in use: its number of runs, of which older ones count less. */
  weight(ref: SkillRef, now = Date.now()): number {
    const uses = this.#memory.get<Readonly<Record<string, Uses>>>(usesKey, {})[keyOf(ref)];
    return uses ? uses.count * 0.5 ** (Math.max(0, now - uses.last) / halfLife) : 0;
  }

  isFavorite(ref: SkillRef): boolean {
    return this.#memory.get<readonly string[]>(favoritesKey, []).includes(keyOf(ref));
  }

  async setFavorite(ref: SkillRef, isFavorite: boolean): Promise<void> {
    const others = this.#memory.get<readonly string[]>(favoritesKey, []).filter(key => key !== keyOf(ref));
    await this.#memory.update(favoritesKey, isFavorite ? [...others, keyOf(ref)] : others);
  }
}

export interface RankedSkill extends PickableSkill {
  ref: SkillRef;
  isFavorite: boolean;
  /** See `SkillMemory.weight`. */
  weight: number;
  /** Why it may fail, in a few words. Empty if nothing is wrong. */
  note: string;
}

/**
 * Returns the skills, the likeliest first: favorites, those of the workspace, those in use, then those that are ready. A defective
 * one comes last. `missingOf` returns what is missing for a skill on this machine.
 */
function rankSkills(
  skills: readonly PickableSkill[],
  memory: SkillMemory,
  missingOf: (skill: Skill) => readonly Missing[],
): RankedSkill[] {
  const ranked = skills.map((pair, place) => {
    const ref = refOf(pair);
    const missing = missingOf(pair.skill);
    const isDefective = pair.skill.diagnostics.some(({ severity }) => severity !== 'info');
    const order = [
      isDefective ? 1 : 0,
      memory.isFavorite(ref) ? 0 : 1,
      pair.skill.source === 'project' ? 0 : 1,
      -memory.weight(ref),
      missing.length > 0 ? 1 : 0,
      place,
    ];
    const known = { ref, isFavorite: memory.isFavorite(ref), weight: memory.weight(ref) };
    return { order, ranked: { ...pair, ...known, note: describeTrouble(pair.skill, missing) } };
  });
  ranked.sort((a, b) => {
    const at = a.order.findIndex((value, index) => value !== b.order[index]);
    return at === -1 ? 0 : a.order[at]! - b.order[at]!;
  });
  return ranked.map(each => each.ranked);
}

/** Returns the name of what is missing, in the reader's language if it is words. */
export const nameOfMissing = ({ what, sentences }: Missing): string =>
  sentences.what ? translated(sentences.what) : what;

/** Returns in a few words what is wrong with a skill or what it needs here: "needs jq". Empty if nothing. */
function describeTrouble({ diagnostics }: Skill, missing: readonly Missing[]): string {
  if (diagnostics.some(({ severity }) => severity === 'error')) return t('cannot be read');
  const [first, ...more] = missing.filter(({ kind }) => kind !== 'file');
  if (first) {
    const name = plainLabel(nameOfMissing(first), 40);
    return more.length > 0 ? t('needs {0} and {1} more', name, more.length) : t('needs {0}', name);
  }
  return diagnostics.some(({ severity }) => severity === 'warning') ? t('has a problem') : '';
}

/** Looking through the files of thousands of skills takes long. The likeliest are enough. */
const mostChecked = 150;
/** Someone may install a program meanwhile. In milliseconds. */
const checkedFor = 30_000;
let checked = { at: 0, missing: new WeakMap<Skill, readonly Missing[]>() };

/** Returns all skills that lists offer, as `rankSkills` orders them. What is missing is looked up for the likeliest. */
export async function rankedSkills(telos: Telos, memory: SkillMemory): Promise<RankedSkill[]> {
  const pairs = await pickableSkills(await telos.agents());
  const likeliest = rankSkills(pairs, memory, () => []).slice(0, mostChecked);
  const [{ readinessOf }, { thisMachine }] = await Promise.all([importReadiness(), importMachine()]);
  if (performance.now() - checked.at > checkedFor)
    checked = { at: performance.now(), missing: new WeakMap() };
  const { missing } = checked;
  const machine = thisMachine(telos.config.env);
  for await (const { skill } of inSlices(likeliest))
    if (!missing.has(skill)) missing.set(skill, readinessOf(skill, machine).missing);
  return rankSkills(pairs, memory, skill => missing.get(skill) ?? []);
}
