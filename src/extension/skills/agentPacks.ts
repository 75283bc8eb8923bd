/** Implements the commands for whole agents: install from a folder, uninstall, and undo either. */

import { type InstalledPack, importInstall, importSkillCopies, packNameProblem } from '@telos/engine/skills';
import type { FolderDifference, FolderState } from '@telos/engine/undo';
import { importLook } from '@telos/packs/install';
import { describeOrigin, describeReplacement, type InstallPlan } from '@telos/protocol/installPlan';
import { findingLines } from '@telos/protocol/packOffer';
import { beginningOf } from '@telos/protocol/text';
import * as vscode from 'vscode';
import { acknowledge, complain, type NextStep } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, describeTime, plainLabel, t, translated, visibleText } from '../base/labels.ts';
import type { AgentNode, SkillNode } from './skillTree.ts';

/** Implements `Telos: Install Agent Pack...`. Asks for the folder if it is not given. */
export async function installPack(current: CurrentTelos, uri?: unknown): Promise<void> {
  const folder = uri instanceof vscode.Uri ? uri : await pickFolder();
  if (folder) await said(() => install(current, folder.fsPath));
}

export const uninstallPack = (current: CurrentTelos, { agent }: AgentNode): Promise<void> =>
  said(() => uninstall(current, agent.name));

/** Implements `Uninstall Skill...` for one skill. */
export const uninstallSkill = (current: CurrentTelos, { agent, skill }: SkillNode): Promise<void> =>
  said(async () => {
    const { config } = await current.openTelos();
    const agree = vscode.l10n.t('Uninstall');
    const answer = await vscode.window.showWarningMessage(
      vscode.l10n.t('Uninstall skill {0} of agent {1}?', plainLabel(skill.id), plainLabel(agent.name)),
      {
        modal: true,
        detail: [vscode.l10n.t('This folder is removed: {0}', visibleText(skill.dir)), keptText()].join('\n'),
      },
      agree,
    );
    if (answer !== agree) return;
    const { uninstallSkill: uninstallOne } = await importSkillCopies();
    const undoId = await uninstallOne(agent, skill, config);
    await current.refresh();
    acknowledge(vscode.l10n.t('Skill {0} is uninstalled.', plainLabel(skill.id)), undoStep(current, undoId));
  });

/** Undoes the latest install or uninstall. */
export const undoInstall = (current: CurrentTelos): Promise<void> => said(() => undoPack(current));

async function pickFolder(): Promise<vscode.Uri | undefined> {
  const picked = await vscode.window.showOpenDialog({
    title: vscode.l10n.t('A folder with an agent.toml and skills, or with a SKILL.md'),
    openLabel: vscode.l10n.t('Install'),
    canSelectFiles: false,
    canSelectFolders: true,
  });
  return picked?.[0];
}

interface Wish {
  /** The name of the new agent, if the person has chosen one. */
  as?: string;
  /** True if a link asks, and not the person. */
  isLink?: boolean;
}

/** Installs a folder after a question. */
export async function install(current: CurrentTelos, folder: string, wish: Wish = {}): Promise<void> {
  const { as, isLink = false } = wish;
  const telos = await current.openTelos();
  const plan = await telos.planInstall(folder, { as });
  const isReplacing = plan.replaces !== undefined && !plan.replaces.isSame;
  const link = isLink ? [linkText()] : [];
  const dangers = plan.replaces?.isSame ? [] : await warningOf(plan);
  const answer = await (isReplacing
    ? agreesToReplace(plan, link, dangers)
    : agreesToCopy(plan, telos.config.skillsDir, link, dangers));
  if (answer === 'rename') {
    const name = await askName(plan.name);
    return name === undefined ? undefined : install(current, folder, { ...wish, as: name });
  }
  if (answer !== 'yes') return;
  const installed = await telos.install(folder, { as, agreed: plan.token });
  await current.refresh();
  await reportInstalled(current, installed);
}

/** Says what was installed, with ways to review it and to undo. */
export async function reportInstalled(current: CurrentTelos, installed: InstalledPack): Promise<void> {
  const left =
    installed.leftOut.length > 0 ? ` ${vscode.l10n.t('Not copied: {0}.', installed.leftOut.join(', '))}` : '';
  const { worksInOf } = await importInstall();
  const worksIn = worksInOf(installed, (await current.openTelos()).config);
  const where = worksIn ? ` ${translated(worksIn)}.` : '';
  acknowledge(
    plainLabel(`${installed.summary}.${where}${left}`, 500),
    {
      title: vscode.l10n.t('Review Agent'),
      act: () => vscode.commands.executeCommand('telos.reviewAgent', { agent: { name: installed.name } }),
    },
    ...(installed.undoId === undefined ? [] : [undoStep(current, installed.undoId)]),
  );
}

const undoStep = (current: CurrentTelos, id: string): NextStep => ({
  title: vscode.l10n.t('Undo'),
  act: () => said(() => undoPack(current, id)),
});

async function agreesToCopy(
  { source }: InstallPlan,
  skillsDir: string,
  link: readonly string[],
  dangers: readonly string[],
): Promise<'yes' | 'no'> {
  const agree = dangers.length > 0 ? vscode.l10n.t('Install Anyway') : vscode.l10n.t('Install');
  const question = vscode.l10n.t(
    'Copy {0} to {1}? Nothing is run.',
    plainLabel(visibleText(source), 500),
    plainLabel(visibleText(skillsDir), 500),
  );
  const warning = [...link, ...dangers];
  const answer = await (warning.length > 0
    ? vscode.window.showWarningMessage(question, { modal: true, detail: warning.join('\n') }, agree)
    : vscode.window.showInformationMessage(question, { modal: true }, agree));
  return answer === agree ? 'yes' : 'no';
}

/** Returns the lines of the findings in the folder if there are high-severity ones. */
async function warningOf({ source }: InstallPlan): Promise<string[]> {
  const { dangersIn } = await importLook();
  return findingLines(await dangersIn(source), t).map(({ text }) => beginningOf(visibleText(text), 400));
}

export const linkText = (): string => vscode.l10n.t('A link from outside the editor asks for this.');

async function agreesToReplace(
  plan: InstallPlan,
  link: readonly string[],
  dangers: readonly string[],
): Promise<'yes' | 'rename' | 'no'> {
  const replace = dangers.length > 0 ? vscode.l10n.t('Install Anyway') : vscode.l10n.t('Replace');
  const rename = vscode.l10n.t('Use Another Name...');
  const warning = [...link, ...dangers];
  const detail = [
    ...(warning.length > 0 ? [...warning, ''] : []),
    ...describeReplacement(plan, timeOf, t),
    '',
    keptText(),
  ];
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Replace agent {0}?', plainLabel(plan.name)),
    { modal: true, detail: detail.map(line => visibleText(line)).join('\n') },
    replace,
    rename,
  );
  if (answer === rename) return 'rename';
  return answer === replace ? 'yes' : 'no';
}

const timeOf = (iso: string): string => describeTime(new Date(iso));

export const keptText = (): string =>
  vscode.l10n.t('The old folder is kept for 30 days; Undo brings it back.');

export async function askName(taken: string): Promise<string | undefined> {
  return askText({
    title: vscode.l10n.t('Install Under Another Name'),
    prompt: vscode.l10n.t('The name of the new agent'),
    value: `${taken} 2`,
    validateInput: name =>
      packNameProblem(name) === undefined ? undefined : vscode.l10n.t('An agent cannot have this name.'),
  });
}

async function uninstall(current: CurrentTelos, name: string): Promise<void> {
  const telos = await current.openTelos();
  const { path, entryIn, origin, edited = 0, stored, home } = await telos.installed(name);
  const detail = [
    vscode.l10n.t('This folder is removed: {0}', path),
    describeOrigin(origin, timeOf, t),
    ...(edited > 0
      ? [vscode.l10n.t('Files that have been edited, added or deleted since then: {0}', String(edited))]
      : []),
    ...(entryIn ? [vscode.l10n.t('And its entry in {0}', entryIn)] : []),
    ...(stored === undefined ? [] : [vscode.l10n.t('Data that its servers stored stays in {0}', stored)]),
    ...(home === undefined
      ? []
      : [vscode.l10n.t('Data that its commands stored in the sandbox stays in {0}', home)]),
    keptText(),
  ];
  const agree = vscode.l10n.t('Uninstall');
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Uninstall agent {0}?', plainLabel(name)),
    { modal: true, detail: detail.map(line => visibleText(line)).join('\n') },
    agree,
  );
  if (answer !== agree) return;
  const { undoId } = await telos.uninstall(name);
  await current.refresh();
  acknowledge(vscode.l10n.t('Agent {0} is uninstalled.', plainLabel(name)), undoStep(current, undoId));
}

/** Runs an action, and shows the person an error that the engine throws. */
export async function said(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    complain(plainLabel(describeError(error), 500));
  }
}

/** The number of files that a question names at most. */
const mostNamed = 12;

/** Asks, and then undoes the latest install or uninstall, or the one with this id. */
async function undoPack(current: CurrentTelos, id?: string): Promise<void> {
  const telos = await current.openTelos();
  const meant = id ?? (await telos.replaced.list())[0]?.id;
  if (meant === undefined) {
    acknowledge(vscode.l10n.t('No agent was installed or uninstalled in the last 30 days.'));
    return;
  }
  const found = await telos.replaced.look(meant);
  if (found.state === 'undone') {
    acknowledge(vscode.l10n.t('This is undone already.'));
    return;
  }
  const isBlocked = found.state === 'edited' || found.state === 'occupied';
  const agree = isBlocked ? vscode.l10n.t('Undo Anyway') : vscode.l10n.t('Undo');
  const answer = await vscode.window.showWarningMessage(
    questionOf(found),
    { modal: true, detail: detailOf(found).join('\n') },
    agree,
  );
  if (answer !== agree) return;
  const { record, leftAlone } = await telos.undoFolder(meant, { force: isBlocked });
  await current.refresh();
  const agent = plainLabel(record.agent);
  const done =
    leftAlone.length > 0
      ? vscode.l10n.t('Undone. The folder of agent {0} is as it was before.', agent)
      : vscode.l10n.t('Undone. Agent {0} is as it was before.', agent);
  const left = leftAlone.map(file =>
    vscode.l10n.t('{0} has been edited since then and was not changed.', plainLabel(file, 500)),
  );
  acknowledge([done, ...left].join(' '));
}

function questionOf({ record }: FolderState): string {
  const agent = plainLabel(record.agent);
  switch (record.kind) {
    case 'install':
      return vscode.l10n.t('Undo the install of agent {0}?', agent);
    case 'uninstall':
      return vscode.l10n.t('Undo the uninstall of agent {0}?', agent);
    case 'undo':
      return vscode.l10n.t('Bring back the edited agent {0}?', agent);
  }
}

function detailOf({ record, state, edits, brings }: FolderState): string[] {
  const place = plainLabel(record.target, 500);
  return [
    record.kept === null
      ? vscode.l10n.t('This folder is removed: {0}', place)
      : vscode.l10n.t('This folder becomes what it was before: {0}', place),
    ...named(brings ?? []),
    ...(state === 'edited'
      ? ['', vscode.l10n.t('It has been edited since then. The edited one is kept, too.')]
      : []),
    ...(state === 'occupied'
      ? ['', vscode.l10n.t('Another folder is in its place now. That one is kept, too.')]
      : []),
    ...named(edits ?? []),
  ];
}

function named(differences: readonly FolderDifference[]): string[] {
  const lines = differences.map(
    ({ path, change }) => `${{ added: '+', changed: '~', removed: '−' }[change]} ${plainLabel(path)}`,
  );
  if (lines.length <= mostNamed) return lines;
  const more = String(lines.length - mostNamed + 1);
  return [...lines.slice(0, mostNamed - 1), vscode.l10n.t('and {0} more', more)];
}
