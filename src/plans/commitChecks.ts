/** Runs checks on the files of a commit: those that the plan begins with, and those that it ends with. */

import type { CheckResult, PlanCheck } from '@telos/protocol/plan';
import { otherPackages, removePackages, withoutScripts } from './attemptChanges.ts';
import { type BoxConfig, type CheckPlace, outsideOnly, runCheck, setupPlace, triedAgain } from './checks.ts';
import { setupFailure } from './checkTrouble.ts';
import type { PlanSettings } from './planSettings.ts';
import type { Slot, Slots } from './slots.ts';

export interface CommitResults {
  /** By the command of the check. */
  results: Map<string, { check: PlanCheck; result: CheckResult }>;
  /** Why the work tree could not be made ready, in sentences. Then no check ran. */
  setup: string[];
}

export interface ResultParts {
  slots: Slots;
  settings: PlanSettings;
  env: Readonly<Record<string, string>>;
  config: BoxConfig;
  /** The commit that the plan begins with. Missing: packages count as others than there. */
  base?: string;
}

/** Runs a check where it is to run. */
type Run = (check: PlanCheck) => Promise<CheckResult>;

/**
 * Runs all of the checks on a commit, also behind one that fails. At the base nothing was written by a model: there, one that fails in
 * the box is tried outside. Later, those run outside that `atBase` names, and packages that
 * are others than at the base are installed without their scripts. Throws TelosError `config` if the slot cannot be made.
 */
export async function resultsAt(
  parts: ResultParts,
  commit: string,
  checks: readonly PlanCheck[],
  signal: AbortSignal,
  atBase: 'base' | ReadonlyMap<string, CheckResult>,
): Promise<CommitResults> {
  const { slots, env, config } = parts;
  const slot = await slots.openSlot(1, commit);
  const box = slots.boxOf(slot, config);
  const isRequired = config.sandbox === 'required';
  const outside = atBase === 'base' || isRequired ? {} : { outside: outsideOnly(atBase) };
  const place: CheckPlace = { dir: slot.dir, env: { ...slots.environmentOf(slot), ...env }, box, ...outside };
  const setup = await setUpFor(parts, slot, commit, place, signal, atBase === 'base');
  if (setup !== undefined) return { results: new Map(), setup: [setup] };
  const run: Run = check => runCheck(check, place, config, signal);
  const found = await eachAlone(slots, slot, commit, checks, run);
  const red = checks.filter(check => found.get(check)?.exitCode !== 0);
  if (atBase !== 'base') {
    for (const check of red) {
      const first = found.get(check) as CheckResult;
      found.set(
        check,
        await triedAgain(
          first,
          () => slots.reset(slot, commit),
          () => run(check),
        ),
      );
    }
  } else if (box.isUsed && !isRequired) {
    const { box: _, ...bare } = place;
    const mayLeave = red.filter(check => !check.outside);
    const others = await eachAlone(slots, slot, commit, mayLeave, one => runCheck(one, bare, config, signal));
    for (const [check, result] of others)
      if (result.exitCode === 0) found.set(check, { ...result, outside: true });
  }
  return {
    results: new Map([...found].map(([check, result]) => [check.command, { check, result }])),
    setup: [],
  };
}

/** Runs the setup of the slot where it is due. Returns why that failed, in sentences. */
async function setUpFor(
  { slots, settings, config, base }: ResultParts,
  slot: Slot,
  commit: string,
  place: CheckPlace,
  signal: AbortSignal,
  isBase: boolean,
): Promise<string | undefined> {
  if (!(await slots.needsSetup(slot))) return undefined;
  await removePackages(slot, settings);
  const isOther =
    !isBase && (base === undefined || (await otherPackages(slot.git, base, commit)) !== undefined);
  const { env: given, ...around } = setupPlace(place, config);
  const outer = { ...around, env: { ...given, ...(isOther && withoutScripts) } };
  for (const command of settings.setup) {
    const check = { name: command, command, timeoutS: 15 * 60 };
    const result = await runCheck(check, outer, config, signal);
    if (result.exitCode !== 0) return setupFailure(result, slots.plan);
  }
  await slots.noteSetup(slot);
  return undefined;
}

/**
 * Runs each check on the files of the commit and nothing else. A look at what one has left takes longer than many checks, in a large work
 * tree: it comes when as much time has gone into checks. Where something was left, those behind the first of them run again, one by one.
 */
async function eachAlone(
  slots: Slots,
  slot: Slot,
  commit: string,
  checks: readonly PlanCheck[],
  run: Run,
): Promise<Map<PlanCheck, CheckResult>> {
  const results = new Map<PlanCheck, CheckResult>();
  let lookMs = 0;
  const clear = async (): Promise<boolean> => {
    const began = performance.now();
    const isChanged = await slots.reset(slot, commit);
    lookMs = performance.now() - began;
    return isChanged;
  };
  if (checks.length > 0) await clear();
  let together: PlanCheck[] = [];
  let began = performance.now();
  for (const [at, check] of checks.entries()) {
    results.set(check, await run(check));
    together.push(check);
    const isLast = at === checks.length - 1;
    if (!isLast && performance.now() - began < lookMs) continue;
    const wasLeft = isLast && together.length === 1 ? false : await clear();
    for (const again of wasLeft ? together.slice(1) : []) {
      results.set(again, await run(again));
      await clear();
    }
    together = [];
    began = performance.now();
  }
  return results;
}
