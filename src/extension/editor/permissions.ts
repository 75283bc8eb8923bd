/** Implements the commands about trust: lists and revokes grants, shows an agent's card, checks the set-up, and opens the log. */

import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { importGrants, type Permission } from '@telos/engine/policy';
import { importLogFile } from '@telos/engine/records';
import { importAgent, importAgentsToml } from '@telos/engine/skills';
import type { PageAction, PageCard, PageShown } from '@telos/protocol/actionPage';
import { describeCard } from '@telos/protocol/agentCard';
import { type DoctorReport, doctorHeadline, serverName, setupSections } from '@telos/protocol/doctorReport';
import type { LocalizedMessage, Remedy } from '@telos/protocol/run';
import { spoken } from '@telos/protocol/text';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { type Button, emptyPage, openActionPage } from '../base/drawPage.ts';
import { describeError, describeMessage, plainLabel, t, translated } from '../base/labels.ts';
import { offerFirstSkill } from '../skills/skillFolders.ts';
import { untrustedMessage } from './editorRuns.ts';

interface PermissionItem extends vscode.QuickPickItem {
  permission?: Permission;
  act?: 'add' | 'switch';
}

/** Lists everything that was granted, before it ways to add a rule and to switch tools off. A picked grant is revoked after a confirmation. */
export async function managePermissions(current: CurrentTelos): Promise<void> {
  const engine = await importGrants();
  const telos = await current.openTelos();
  const { config } = telos;
  const { file, permissions, problems: defects, warnings } = await engine.listPermissions(config);
  const problems = [...defects, ...warnings];
  const items: PermissionItem[] = [
    { label: `$(add) ${vscode.l10n.t('Add Rule...')}`, act: 'add' },
    { label: `$(tools) ${vscode.l10n.t('Switch Tools Off or On...')}`, act: 'switch' },
    { label: plainLabel(file, 500), kind: vscode.QuickPickItemKind.Separator },
    ...problems.map(problem => ({ label: `$(warning) ${plainLabel(problem, 500)}` })),
    ...permissions.map(permission => ({
      label: plainLabel(whoOf(permission)),
      description: plainLabel(whenOf(permission)),
      detail: plainLabel(engine.describePermission(permission), 300),
      permission,
    })),
  ];
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t('Permissions'),
    placeHolder:
      permissions.length > 0
        ? vscode.l10n.t('Add a rule, or pick one to revoke it')
        : vscode.l10n.t('No permissions yet. What you always allow is listed here.'),
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (picked?.act) {
    const { addPermission, switchTools } = await import('./permissionRules.ts');
    if (picked.act === 'switch') return switchTools(config, telos.book);
    const agents = await (await current.openTelos()).agents();
    return addPermission(
      config,
      agents.map(({ name }) => name),
    );
  }
  if (!picked?.permission) return;
  const question = vscode.l10n.t('Revoke this from {0}?', picked.label);
  const detail = plainLabel(engine.describePermission(picked.permission), 2000);
  const revoke = vscode.l10n.t('Revoke');
  const answer = await vscode.window.showWarningMessage(question, { modal: true, detail }, revoke);
  if (answer !== revoke) return;
  const revoked = await engine.revokePermission(picked.permission, config);
  acknowledge(
    revoked
      ? vscode.l10n.t('Revoked from {0}.', picked.label)
      : vscode.l10n.t('It no longer exists, so nothing was changed.'),
  );
}

function whoOf(permission: Permission): string {
  if (permission.kind === 'card') return permission.review.agent;
  return permission.rule.agent === '*' ? vscode.l10n.t('Every agent') : permission.rule.agent;
}

function whenOf(permission: Permission): string {
  const time = permission.kind === 'card' ? permission.review.reviewedAt : permission.rule.granted;
  if (time === undefined)
    return permission.kind === 'rule' ? vscode.l10n.t('line {0}', permission.rule.line) : '';
  return new Date(time).toLocaleString(vscode.env.language);
}

/**
 * Shows the whole card on a page, which offers to accept it. The card that was shown is the one that is accepted.
 * `known` is the agent's name if the person need not be asked.
 */
export async function reviewAgent(current: CurrentTelos, known: string | undefined): Promise<void> {
  const telos = await current.openTelos();
  const names = (await telos.agents()).map(agent => agent.name);
  const name = known ?? (await pickAgent(names, vscode.l10n.t('Review Agent')));
  if (name === undefined) return;
  const title = t('Review of {0}', plainLabel(name));
  await openActionPage({
    type: 'telos.review',
    title,
    waiting: t('Reading its files…'),
    async draw(button) {
      const card = await telos.agentCard(name);
      const accept = async (): Promise<void> => {
        await telos.acceptCard(card);
        acknowledge(t('Approved. This applies until a file of {0} changes.', plainLabel(name)));
      };
      const [summary = '', ...lines] = describeCard(card, t);
      return {
        ...emptyPage,
        title,
        summary,
        sections: [{ title: '', rows: lines.map(line => [line]) }],
        actions: [
          ...(card.state === 'reviewed' ? [] : [button(t('Approve and Start'), name, accept, true)]),
          commandButton(button, t('Manage Permissions...'), 'telos.managePermissions'),
        ],
      };
    },
  });
}

/** Returns the name of the agent that the person picks. Offers a first skill if there is none. */
export async function pickAgent(names: readonly string[], title: string): Promise<string | undefined> {
  if (names.length === 0) {
    await offerFirstSkill();
    return undefined;
  }
  const items = names.map(name => ({ label: plainLabel(name), name }));
  return (
    await vscode.window.showQuickPick(items, {
      title,
      placeHolder: vscode.l10n.t('Which agent?'),
    })
  )?.name;
}

/** Lets the person choose where an agent writes its files, and keeps that in their agents.toml. */
export async function chooseWorkFolder(current: CurrentTelos, known: string | undefined): Promise<void> {
  const telos = await current.openTelos();
  const agents = await telos.agents();
  const title = vscode.l10n.t('Choose Working Folder');
  const name =
    known ??
    (await pickAgent(
      agents.map(agent => agent.name),
      title,
    ));
  const agent = agents.find(each => each.name === name);
  if (!agent) return;
  const [picked] =
    (await vscode.window.showOpenDialog({
      title,
      openLabel: vscode.l10n.t('Choose'),
      defaultUri: vscode.Uri.file(agent.workingDir),
      canSelectFiles: false,
      canSelectFolders: true,
    })) ?? [];
  if (!picked) return;
  try {
    const [{ setAgentValue }, { tooWide }] = await Promise.all([importAgentsToml(), importAgent()]);
    const wide = tooWide(picked.fsPath, telos.config);
    if (wide !== undefined) {
      const place = plainLabel(picked.fsPath, 300);
      return complain(
        vscode.l10n.t('No agent can work in {0}, which {1}. Choose another folder.', place, translated(wide)),
      );
    }
    const file = join(telos.config.configDir, 'agents.toml');
    await setAgentValue(file, agent.name, 'working_dir', picked.fsPath);
    await current.refresh();
    acknowledge(
      vscode.l10n.t('Files of {0} go to {1}.', plainLabel(agent.name), plainLabel(picked.fsPath, 300)),
    );
  } catch (error) {
    complain(plainLabel(describeError(error), 500));
  }
}

/** Shows on a page which parts do not work and what is set up. Tries the MCP servers and the sandbox, so it needs a trusted workspace. */
export async function showDoctor(current: CurrentTelos): Promise<void> {
  if (!vscode.workspace.isTrusted) return complain(untrustedMessage);
  await openActionPage({
    type: 'telos.doctor',
    title: t('Telos Doctor'),
    waiting: t('Checking the setup of Telos'),
    async draw(button) {
      const report = await (await current.openTelos()).doctor(new AbortController().signal);
      return doctorPage(report, button);
    },
  });
}

function doctorPage(report: DoctorReport, button: Button): PageShown {
  const untried = report.servers.flatMap(server =>
    server.outcome.state === 'not tried' ? [{ server, outcome: server.outcome }] : [],
  );
  const cards = [
    ...report.findings.map(({ severity, ...said }) => cardOf(severity, said, button)),
    ...untried.map(({ server, outcome: { why: message, ...said } }) => ({
      ...cardOf('warning', { message, ...said }, button),
      title: `${t('MCP servers')}: ${serverName(server, t)}`,
      lines: [said.sentences ? spoken(said.sentences, t) : message],
    })),
  ];
  return {
    ...emptyPage,
    title: t('Telos Doctor'),
    summary: doctorHeadline(report, t),
    cardsTitle: t('Problems'),
    cards,
    sections: setupSections(report, describeMessage, t).map(({ title, value, rows }) => ({
      title: value === undefined ? title : `${title}: ${value}`,
      rows,
    })),
    actions: [
      // The page is drawn anew after each button.
      button(t('Refresh'), t('Telos Doctor'), () => undefined, true),
      commandButton(button, t('Manage Permissions...'), 'telos.managePermissions'),
    ],
  };
}

/** Returns a problem: its first sentence, the others, and buttons for what helps. */
function cardOf(level: 'error' | 'warning', said: LocalizedMessage, button: Button): PageCard {
  const { remedy, ...problem } = said;
  const actions = remedy ? waysOut(remedy, button) : [];
  const text = describeMessage(actions.length > 0 ? problem : said);
  const [title = '', ...lines] = text.split(/(?<=\S[.!?]) (?=\p{Lu})/u);
  return { level, title, lines, actions };
}

const commandButton = (button: Button, label: string, command: string, ...args: unknown[]) =>
  button(label, t('Telos Doctor'), () => vscode.commands.executeCommand(command, ...args));

/** Returns the buttons that do what a remedy says. None if it is for the user alone. */
function waysOut(remedy: Remedy, button: Button): PageAction[] {
  const command = (label: string, name: string, ...args: unknown[]) =>
    commandButton(button, label, name, ...args);
  switch (remedy.kind) {
    case 'set_key':
    case 'set_up_model':
      return [
        command(t('Set API Key…'), 'telos.setApiKey'),
        command(t('Choose Model…'), 'telos.chooseModel'),
      ];
    case 'choose_model':
      return [command(t('Choose Model…'), 'telos.chooseModel')];
    case 'add_skill':
      return [
        command(t('New Skill…'), 'telos.newSkill'),
        command(t('Add Sample Pack'), 'telos.addSamplePack'),
      ];
    case 'review_agent':
      return [command(t('Review Agent'), 'telos.reviewAgent', { agent: { name: remedy.agent } })];
    case 'check_policy':
      return [command(t('Manage Permissions...'), 'telos.managePermissions')];
    case 'lint':
      return [command(t('Show Problems'), 'workbench.actions.view.problems')];
    default:
      return [];
  }
}

/** Opens today's log, or says where it will be. */
export async function openLog(current: CurrentTelos): Promise<void> {
  const [{ config }, { logPath }] = await Promise.all([current.openTelos(), importLogFile()]);
  const file = logPath(config.dataDir);
  try {
    await access(file);
  } catch {
    acknowledge(vscode.l10n.t('No run was logged today. The first run creates {0}', plainLabel(file, 1_000)));
    return;
  }
  await vscode.window.showTextDocument(vscode.Uri.file(file));
}
