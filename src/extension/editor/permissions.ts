/** Implements the commands about trust: lists and revokes grants, shows an agent's card, checks the set-up, and opens the log. */

import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { importGrants, type Permission } from '@telos/engine/policy';
import { importLogFile } from '@telos/engine/records';
import { importAgent, importAgentsToml } from '@telos/engine/skills';
import { describeCard } from '@telos/protocol/agentCard';
import { describeFindings, describeSetup } from '@telos/protocol/doctorReport';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, describeMessage, plainLabel, translated } from '../base/labels.ts';
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
 * Shows the whole card as a document, which offers to accept it. The card that was shown is the one that is accepted.
 * `known` is the agent's name if the person need not be asked.
 */
export async function reviewAgent(current: CurrentTelos, known: string | undefined): Promise<void> {
  const telos = await current.openTelos();
  const names = (await telos.agents()).map(agent => agent.name);
  const name = known ?? (await pickAgent(names, vscode.l10n.t('Review Agent')));
  if (name === undefined) return;
  const card = await telos.agentCard(name);
  const accept = async (): Promise<void> => {
    try {
      await telos.acceptCard(card);
      acknowledge(vscode.l10n.t('Approved. This applies until a file of {0} changes.', plainLabel(name)));
    } catch (error) {
      complain(plainLabel(describeError(error), 500));
    }
    await reviewAgent(current, name);
  };
  await showReport(vscode.l10n.t('Review of {0}', plainLabel(name)), describeCard(card, vscode.l10n.t), [
    ...(card.state === 'reviewed'
      ? []
      : [{ title: `$(check) ${vscode.l10n.t('Approve and Start')}`, act: accept }]),
    commandAction(vscode.l10n.t('Manage Permissions...'), 'telos.managePermissions'),
  ]);
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

/** Shows as a document what is set up and which parts work. Tries the MCP servers and the box, so it needs a trusted workspace. */
export async function showDoctor(current: CurrentTelos): Promise<void> {
  if (!vscode.workspace.isTrusted) return complain(untrustedMessage);
  const telos = await current.openTelos();
  // In the status bar: a notification would lie over the chat's textbox.
  const place = {
    location: vscode.ProgressLocation.Window,
    title: vscode.l10n.t('Checking the setup of Telos'),
  };
  const report = await vscode.window.withProgress(place, () => telos.doctor(new AbortController().signal));
  const { l10n } = vscode;
  // A line that is not wrapped holds one sentence.
  const found = describeFindings(report, describeMessage, l10n.t);
  const [headline = ''] = found.splice(-1);
  const findings = found.flatMap(line =>
    line.split(/(?<=\S[.!?]) (?=\p{Lu})/u).map((part, index) => (index === 0 ? part : `  ${part}`)),
  );
  const top = ['Telos Doctor', '', headline, '', ...findings, ...(findings.length > 0 ? [''] : [])];
  const setup = describeSetup(report, describeMessage, l10n.t).map(line => (line === '' ? '' : `  ${line}`));
  // Plain text is not wrapped, which keeps the columns. It also shows any content literally.
  await showReport(
    'Telos Doctor',
    [...top, l10n.t('Everything that is set up'), ...setup, ''],
    [
      commandAction(`$(refresh) ${l10n.t('Refresh')}`, 'telos.doctor'),
      commandAction(l10n.t('Set API Key…'), 'telos.setApiKey'),
      commandAction(l10n.t('Choose Model…'), 'telos.chooseModel'),
      commandAction(l10n.t('Manage Permissions...'), 'telos.managePermissions'),
    ],
  );
  await vscode.commands.executeCommand('editor.fold', { selectionLines: [top.length] });
}

interface ReportAction {
  title: string;
  act: () => unknown;
}

interface Report {
  text: string;
  actions: readonly ReportAction[];
}

const reportScheme = 'telos-report';
const actCommand = 'telos.actInReport';
/** What is shown, by the path of its document. */
const reports = new Map<string, Report>();
const changed = new vscode.EventEmitter<vscode.Uri>();
const lensesChanged = new vscode.EventEmitter<void>();
let areReportsRegistered = false;

const commandAction = (title: string, command: string): ReportAction => ({
  title,
  act: () => vscode.commands.executeCommand(command),
});

/** Shows the lines. A report of the same title takes the place of the one before. */
export async function showReport(
  title: string,
  lines: readonly string[],
  actions: readonly ReportAction[] = [],
): Promise<void> {
  if (!areReportsRegistered) registerReports();
  areReportsRegistered = true;
  const uri = vscode.Uri.from({ scheme: reportScheme, path: `/${title}` });
  reports.set(uri.path, { text: lines.join('\n'), actions });
  changed.fire(uri);
  lensesChanged.fire();
  const document = await vscode.workspace.openTextDocument(uri);
  await vscode.window.showTextDocument(document, { preview: true });
}

/** Lasts as long as the window, as the documents do. */
function registerReports(): void {
  vscode.workspace.registerTextDocumentContentProvider(reportScheme, {
    onDidChange: changed.event,
    provideTextDocumentContent: ({ path }) => reports.get(path)?.text ?? '',
  });
  vscode.languages.registerCodeLensProvider(
    { scheme: reportScheme },
    {
      onDidChangeCodeLenses: lensesChanged.event,
      provideCodeLenses: ({ uri: { path } }) =>
        (reports.get(path)?.actions ?? []).map(
          ({ title }, index) =>
            new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), {
              title,
              command: actCommand,
              arguments: [path, index],
            }),
        ),
    },
  );
  vscode.languages.registerDocumentLinkProvider(
    { scheme: reportScheme },
    { provideDocumentLinks: commandLinks },
  );
  vscode.commands.registerCommand(actCommand, (path: string, index: number) =>
    reports.get(path)?.actions[index]?.act(),
  );
}

interface ContributedCommand {
  command: string;
  title: string;
}

/** Links what reads like “Telos: Set API Key...” to that command. */
function commandLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
  const manifest = vscode.extensions.getExtension('telos.telos')?.packageJSON;
  const commands: readonly ContributedCommand[] = manifest?.contributes?.commands ?? [];
  const text = document.getText();
  return commands.flatMap(({ command, title }) => {
    const written = `Telos: ${title}`;
    const found: vscode.DocumentLink[] = [];
    for (let at = text.indexOf(written); at >= 0; at = text.indexOf(written, at + 1)) {
      const range = new vscode.Range(document.positionAt(at), document.positionAt(at + written.length));
      found.push(new vscode.DocumentLink(range, vscode.Uri.parse(`command:${command}`)));
    }
    return found;
  });
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
