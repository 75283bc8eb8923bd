/** Words how a skill has done lately, for its tooltip. */
import type { Telos } from '@telos/engine/telos';
import type { SkillRef } from '@telos/protocol/run';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { t } from '../base/labels.ts';

type SkillUse = Awaited<ReturnType<Telos['skillUse']>>['skills'][number];

const days = 30;
/** Time for which what was read counts. In milliseconds. */
const keptMs = 60_000;

/** Reads the log when a tooltip is wanted first, and again after a while. */
export class UseLines {
  readonly #current: CurrentTelos;
  #read: { at: number; uses: Promise<readonly SkillUse[]> } | undefined;

  constructor(current: CurrentTelos) {
    this.#current = current;
  }

  /** Returns one line. Never throws: a log that cannot be read says nothing. */
  async of({ agent, skill }: SkillRef): Promise<string | undefined> {
    if (!this.#read || performance.now() - this.#read.at > keptMs)
      this.#read = { at: performance.now(), uses: this.#readUses() };
    try {
      const uses = await this.#read.uses;
      return lineOf(uses.find(one => one.agent === agent && one.skill === skill));
    } catch {
      return undefined;
    }
  }

  async #readUses(): Promise<readonly SkillUse[]> {
    return (await (await this.#current.openTelos()).skillUse(days)).skills;
  }
}

function lineOf(use: SkillUse | undefined): string {
  if (!use) return t('Did not run in the last {0} days.', days);
  const { runs, byHand, left, failed, stopped, cost, unknownCosts, medianMs } = use;
  const parts = [
    runs === 1 ? t('1 run') : t('{0} runs', runs),
    ...(byHand > 0 ? [t('{0} chosen by hand', byHand)] : []),
    ...(left > 0 ? [t('{0} left for another skill', left)] : []),
    ...(failed > 0 ? [t('{0} failed', failed)] : []),
    ...(stopped > 0 ? [t('{0} stopped', stopped)] : []),
    ...(cost > 0 ? [`${unknownCosts > 0 ? '≥ ' : ''}$${cost.toFixed(2)}`] : []),
    t('median {0} s', (medianMs / 1000).toFixed(1)),
  ];
  return t('Last {0} days: {1}', days, parts.join(' · '));
}
