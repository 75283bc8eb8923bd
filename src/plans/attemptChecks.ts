/** Decides without a model whether the work of an attempt may go to its review: by its checks, and by the guard of what checks it. */

import { TelosError } from '@telos/engine/errors';
import { newToken } from '@telos/engine/run';
import type { CheckResult, PlanCheck, TamperFinding, TamperKind } from '@telos/protocol/plan';
import { otherPackages, readChanges, removePackages, setupRun, withoutScripts } from './attemptChanges.ts';
import type { AttemptEnd, AttemptScene } from './attemptScene.ts';
import { checkFile, failureText } from './attemptWords.ts';
import { type CheckPlace, isEnclosed, runCheck, runChecks, setupPlace } from './checks.ts';
import { needOf, sandboxTrouble, setupFailure } from './checkTrouble.ts';
import { tamperings, unjustified } from './tamper.ts';

/** In seconds. */
const setupTimeoutS = 15 * 60;
/** Findings that are decided on before anything runs: the checks would be others than the person accepted. */
const beforeChecks: ReadonlySet<TamperKind> = new Set(['check-script', 'runner-config', 'protected']);

/**
 * Runs the setup of the slot where it is due. Where the work of a model has other packages installed, their scripts do not run: they
 * would run outside of the box. Returns how the attempt ends if it fails.
 */
export async function setUp(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const { slots, settings, runs } = scene.parts;
  if (!(await slots.needsSetup(scene.place))) return undefined;
  await removePackages(scene.place, settings);
  const others = await othersInstalled(scene);
  const { env, ...around } = setupPlace(scene.checkPlace, runs.config);
  const place = { ...around, env: { ...env, ...(others !== undefined && withoutScripts) } };
  for (const command of settings.setup) {
    const check = { name: command, command, timeoutS: setupTimeoutS };
    const result = await runCheck(check, place, runs.config, scene.signal);
    if (result.exitCode === 0) continue;
    const details = setupFailure(result, scene.parts.folder.name) + noteOn(others);
    if (scene.kept) return { status: 'denied', details };
    return { status: 'error', details, fatal: new TelosError('config', details) };
  }
  await slots.noteSetup(scene.place);
  // What else it left is no part of the work, and checks do not have it either.
  const head = await scene.place.git.tip('HEAD');
  if (head !== undefined) await slots.reset(scene.place, head);
  return undefined;
}

/** Returns the file with which what the slot has now installs other packages than at the plan's begin; undefined if none does. */
async function othersInstalled({ parts, place }: AttemptScene): Promise<string | undefined> {
  if (parts.settings.setup.length === 0) return undefined;
  const commit = await place.git.tip('HEAD');
  return commit === undefined ? 'HEAD' : otherPackages(parts.git, parts.base, commit);
}

const noteOn = (file: string | undefined): string =>
  file === undefined
    ? ''
    : `\nThe setup ran without the scripts of packages, because ${file} is not as it was when the plan began.`;

/** Runs the checks on the kept tree and nothing else, between the two halves of the guard. Returns how the attempt ends, if it does. */
export async function checkWork(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const { slots, git, settings, hadTests } = scene.parts;
  const { commit, tree } = scene.work;
  const { checks } = scene;
  await slots.reset(scene.place, commit);
  const changes = await readChanges(git, scene.parent, commit, checks);
  const setup = await setupRun(git, scene.parent, settings.setup);
  const found = tamperings(changes, { checks, protect: settings.protect, hadTests, ...(setup && { setup }) });
  const isFirst = ({ kind }: TamperFinding): boolean => beforeChecks.has(kind);
  return (
    (await guard(scene, found.filter(isFirst))) ??
    (await checkTree(scene, tree, '')) ??
    (await guard(
      scene,
      found.filter(one => !isFirst(one)),
    )) ??
    (await checkWithout(scene))
  );
}

/** Runs the checks on the files that the slot has now. `where` says in a denial what these are. */
export async function checkTree(
  scene: AttemptScene,
  tree: string,
  where: string,
): Promise<AttemptEnd | undefined> {
  const { runs, atBase } = scene.parts;
  const unready = await setUp(scene);
  if (unready) return unready;
  const note = async (result: CheckResult): Promise<void> => {
    const command = scene.checks.find(({ name }) => name === result.name)?.command;
    await scene.note({ type: 'check_ended', ...scene.named, tree, ...result, ...(command && { command }) });
  };
  const again = async (): Promise<void> => {
    const head = await scene.place.git.tip('HEAD');
    if (head !== undefined) await scene.parts.slots.reset(scene.place, head);
  };
  const place = withFile(scene, '');
  scene.results = await runChecks(scene.checks, place, runs.config, scene.signal, note, { atBase, again });
  const failed = scene.results.find(({ exitCode }) => exitCode !== 0);
  if (!failed) return undefined;
  const lack = await lackIn(scene, place, failed);
  const why = (lack?.details ?? '') + failureText(failed, where);
  return { ...lack, status: 'denied', details: why + noteOn(await othersInstalled(scene)) };
}

/**
 * Returns what of the user's machine a check seems to have lacked in the sandbox, and what helps; undefined if nothing shows that. It is
 * asked at once for a service there, and for what the check's own command names: no work on the story brings that into the sandbox.
 */
async function lackIn(
  { checks, story, place: { dir } }: AttemptScene,
  place: CheckPlace,
  result: CheckResult,
): Promise<Pick<AttemptEnd, 'details' | 'asks'> | undefined> {
  const check = checks.find(({ name }) => name === result.name);
  if (!check || check.outside || !isEnclosed(check, place)) return undefined;
  const trouble = await sandboxTrouble(check, result, dir);
  if (trouble === undefined) return undefined;
  const reason = `has no way to ${needOf(trouble)}`;
  const helps = `outside: true in the story's file, and approve the permissions again`;
  const isCertain =
    trouble.kind === 'localhost' || (trouble.kind === 'path' && check.command.includes(trouble.path));
  return {
    details: `The sandbox may be the reason: it ${reason}. The user can let the check "${check.name}" out with ${helps}.\n`,
    ...(isCertain && {
      asks: `The check "${check.name}" of ${story.id} cannot pass in the sandbox, which ${reason}. Let it out with ${helps}. Then answer this.`,
    }),
  };
}

/** The whole output of each check lies in the plan's folder. */
function withFile(scene: AttemptScene, ending: string): CheckPlace {
  const outputFile = ({ name }: PlanCheck): string =>
    scene.parts.folder.own('checks', checkFile(scene.key, name, ending));
  return { ...scene.checkPlace, outputFile };
}

/** A check that is to have failed before the work proves nothing if it passes without it. */
async function checkWithout(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const { slots, runs } = scene.parts;
  const red = scene.checks.filter(check => check.red);
  if (red.length === 0 || scene.call.story.commits.length > 0) return undefined;
  await slots.reset(scene.place, scene.parent);
  const place = withFile(scene, '.before');
  for (const check of red) {
    const [before] = await runChecks([check], place, runs.config, scene.signal, async () => undefined);
    if (before?.exitCode !== 0 || before.suspicious !== undefined) continue;
    const details = `The check "${check.name}" passes without this work too, so it proves nothing. Add a test that fails without it.`;
    return { status: 'denied', details };
  }
  await slots.reset(scene.place, scene.work.commit);
  return undefined;
}

/** Returns a denial for changes of what checks the work, unless a criterion names the file or the person allows them. */
async function guard(scene: AttemptScene, found: readonly TamperFinding[]): Promise<AttemptEnd | undefined> {
  if (found.length === 0 || scene.call.story.open?.isJustified) return undefined;
  const findings = unjustified(found, scene.open);
  const isAllowed = findings.length > 0 && (await isAllowedByPerson(scene, findings));
  const decision = findings.length === 0 ? 'justified' : isAllowed ? 'allowed_by_person' : 'denied';
  await scene.note({ type: 'tamper', ...scene.named, findings: [...found], decision });
  if (decision !== 'denied') {
    scene.allowed.push(...found.map(({ file, detail }) => `${file}: ${detail}`));
    return undefined;
  }
  const list = findings.map(({ file, detail }) => `- ${file}: ${detail}`).join('\n');
  const details = `What checks the work was changed, and no criterion of the story names it:\n${list}\nRestore it, and make the work pass as it is.`;
  return { status: 'denied', details };
}

async function isAllowedByPerson(
  { parts, key, story, signal }: AttemptScene,
  findings: readonly TamperFinding[],
): Promise<boolean> {
  const { human, isUnattended } = parts;
  if (isUnattended || human.isAway) return false;
  const request = {
    callId: `${key}.tamper`,
    token: newToken(),
    tool: 'change_of_checks',
    rule: 'workflow.tamper',
    subject: findings.map(({ file, detail }) => `${file}: ${detail}`).join('\n'),
    reason: `The work on ${story.id} changes what checks it. A yes is for this attempt alone.`,
    scopes: ['once'] as const,
  };
  return (await human.approve(request, signal)).allow;
}
