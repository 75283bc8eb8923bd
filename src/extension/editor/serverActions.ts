/** Implements the commands of the view *MCP Servers*: restart, log, sign in and out, add, import, and tools on or off. */

import { TelosError } from '@telos/engine/errors';
import { importAddServer, importConfig } from '@telos/engine/mcp';
import { importDecision, importPolicyEdit } from '@telos/engine/policy';
import { importServerCheck, type ServerRef } from '@telos/engine/run';
import type { Agent } from '@telos/engine/skills';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel, translated, visibleText } from '../base/labels.ts';
import { untrustedMessage } from './editorRuns.ts';
import type { ServerNode, ServersNode, ServersView } from './serverTree.ts';

/** Says of a server what was not done to it, and why. */
type NotDone = (server: string, why: string) => string;

/** Shows why something failed. What the engine says of its files is whole by itself; any other reason goes into `notDone`. */
function complainOf(error: unknown, server: string, notDone: NotDone): void {
  const said = describeError(error);
  const isWhole = error instanceof TelosError && error.code === 'config';
  const why = said.trim().replace(/\.$/, '');
  complain(plainLabel(isWhole ? said : notDone(plainLabel(server, 60), why), 600));
}

/** Does something to a server, and says why it failed. Other extensions can call the commands without one. */
async function onServer(
  { id: viewId, tree }: ServersView,
  node: ServerNode | undefined,
  act: (ref: ServerRef, signal: AbortSignal) => Promise<unknown>,
  notDone: NotDone,
): Promise<void> {
  if (node?.kind !== 'server') return;
  const { agent, server } = node.listed;
  if (!vscode.workspace.isTrusted) return complain(untrustedMessage);
  const stop = new AbortController();
  try {
    const shown = await tree();
    const work = act({ agent, server }, stop.signal);
    await vscode.window.withProgress({ location: { viewId } }, () => shown.during(node, work));
  } catch (error) {
    complainOf(error, server, notDone);
  }
}

/** Starts the server, or starts it again, and lists its tools. The tree shows what came of it. */
export const restartServer = (view: ServersView, node?: ServerNode): Promise<void> => {
  const restart = async (ref: ServerRef, signal: AbortSignal): Promise<void> => {
    const { checkServer } = await importServerCheck();
    await checkServer(ref, await (await view.current.openTelos()).serverParts(), signal);
  };
  return onServer(view, node, restart, (server, why) =>
    vscode.l10n.t("'{0}' was not restarted: {1}.", server, why),
  );
};

/** Starts a server that was unfolded before anything was known of it. */
export async function startUnfolded(view: ServersView, node: ServersNode): Promise<void> {
  if (node.kind === 'server' && vscode.workspace.isTrusted && (await view.tree()).isFresh(node))
    await restartServer(view, node);
}

export const signIn = (view: ServersView, node?: ServerNode): Promise<void> => {
  const visit = async (ref: ServerRef, signal: AbortSignal): Promise<void> => {
    const { signInToServer } = await importServerCheck();
    const telos = await (await view.current.openTelos()).serverParts();
    const agree = async ([page = '', ...others]: readonly string[]): Promise<boolean> => {
      const yes = vscode.l10n.t('Sign In');
      const detail = [
        vscode.l10n.t('{0} opens in your browser.', page),
        ...(others.length > 0
          ? [vscode.l10n.t('Telos also speaks with {0} for it.', others.join(', '))]
          : []),
      ].join('\n');
      const question = vscode.l10n.t("Sign in to the MCP server '{0}'?", plainLabel(ref.server, 60));
      return (await vscode.window.showInformationMessage(question, { modal: true, detail }, yes)) === yes;
    };
    const isDone = await signInToServer(ref, telos, agree, signal);
    if (isDone) acknowledge(vscode.l10n.t("You are signed in to '{0}'.", plainLabel(ref.server, 60)));
  };
  return onServer(view, node, visit, (server, why) =>
    vscode.l10n.t("You are not signed in to '{0}': {1}. Try again with Sign In...", server, why),
  );
};

export const signOut = (view: ServersView, node?: ServerNode): Promise<void> => {
  const forget = async (ref: ServerRef): Promise<void> => {
    const { signOutOfServer } = await importServerCheck();
    await signOutOfServer(ref, await (await view.current.openTelos()).serverParts());
    acknowledge(vscode.l10n.t("You signed out of '{0}'.", plainLabel(ref.server, 60)));
  };
  return onServer(view, node, forget, (server, why) =>
    vscode.l10n.t("You are still signed in to '{0}': {1}.", server, why),
  );
};

const logScheme = 'telos-mcp-log';
const logChanged = new vscode.EventEmitter<vscode.Uri>();
/** The texts of the logs that were opened. */
const logs = new Map<string, string>();
let isLogRegistered = false;

/** Shows what the server has written, without secrets, as a document that cannot be edited. */
export async function showLog({ tree }: ServersView, node?: ServerNode): Promise<void> {
  if (node?.kind !== 'server') return;
  const { book } = await tree();
  const { agent, server, place } = node.listed;
  const facts = book.facts(agent, server);
  const text = book.log(agent, server);
  const lines = [
    place ? `${server} (${agent}): ${place}` : `${server} (${agent})`,
    ...(facts?.error ? [translated(facts.error)] : []),
    '',
    text === '' ? vscode.l10n.t('It has written nothing on its error stream.') : text,
  ];
  const uri = vscode.Uri.from({ scheme: logScheme, path: `/${server}.log`, query: agent });
  logs.set(uri.toString(), lines.map(visibleText).join('\n'));
  if (!isLogRegistered)
    vscode.workspace.registerTextDocumentContentProvider(logScheme, {
      onDidChange: logChanged.event,
      provideTextDocumentContent: asked => logs.get(asked.toString()) ?? '',
    });
  isLogRegistered = true;
  logChanged.fire(uri);
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
}

/** Switches off a server that a run could not start, or on again. Its agent is looked up: a page names no files. */
export async function switchServerOf(current: CurrentTelos, ref: ServerRef, isOn: boolean): Promise<void> {
  const name = plainLabel(ref.server, 60);
  const notDone: NotDone = (server, why) => vscode.l10n.t("'{0}' was not changed: {1}.", server, why);
  try {
    const agent = (await (await current.openTelos()).agents()).find(each => each.name === ref.agent);
    const { switchServer } = await importConfig();
    if (!agent?.mcpConfig || !(await switchServer(agent.mcpConfig, ref.server, isOn)))
      return complain(notDone(name, vscode.l10n.t('it is not in an mcp.json of the agent')));
  } catch (error) {
    return complainOf(error, ref.server, notDone);
  }
  await current.refresh();
  if (isOn) return acknowledge(vscode.l10n.t("'{0}' is switched on.", name));
  acknowledge(vscode.l10n.t("'{0}' is switched off.", name), {
    title: vscode.l10n.t('Undo'),
    act: () => switchServerOf(current, ref, true),
  });
}

/** Opens the file that names the server. */
export async function openServerFile(node?: ServerNode): Promise<void> {
  if (node?.kind !== 'server') return;
  const document = await vscode.workspace.openTextDocument(node.listed.file);
  const at = document.getText().indexOf(JSON.stringify(node.listed.server));
  const place = document.positionAt(Math.max(0, at));
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(place, place) });
}

/** Has a started server run in the box from its next start on, or outside of it. Its agent's files change by that. */
export const setBoxed = (view: ServersView, isBoxed: boolean, node?: ServerNode): Promise<void> => {
  const change = async ({ agent, server }: ServerRef): Promise<void> => {
    const { setSandbox } = await importConfig();
    if (!(await setSandbox(node?.listed.file ?? '', server, isBoxed))) return;
    await view.current.refresh();
    const said = isBoxed
      ? vscode.l10n.t(
          "'{0}' runs in the sandbox once you have reviewed its agent again.",
          plainLabel(server, 60),
        )
      : vscode.l10n.t(
          "'{0}' runs outside the sandbox once you have reviewed its agent again.",
          plainLabel(server, 60),
        );
    acknowledge(said, {
      title: vscode.l10n.t('Review Agent'),
      act: () => vscode.commands.executeCommand('telos.reviewAgent', { agent: { name: agent } }),
    });
  };
  return onServer(view, node, change, (server, why) =>
    vscode.l10n.t("'{0}' was not changed: {1}.", server, why),
  );
};

/** Switches tools on or off whose checkboxes the person has clicked. */
export async function switchTools(
  { current, tree }: ServersView,
  items: readonly (readonly [ServersNode, vscode.TreeItemCheckboxState])[],
): Promise<void> {
  const named = items.flatMap(([node]) => (node.kind === 'tool' ? [node.parent.listed.server] : []));
  try {
    const { config } = await current.openTelos();
    const [{ switchTool }, { openPolicyFile }] = await Promise.all([importPolicyEdit(), importDecision()]);
    const { file } = openPolicyFile(config).read();
    for (const [node, state] of items) {
      if (node.kind !== 'tool') continue;
      const { agent, server } = node.parent.listed;
      const which = { agent, server, tool: node.tool.name };
      await switchTool({ file, home: config.home }, which, state === vscode.TreeItemCheckboxState.Checked);
    }
  } catch (error) {
    complainOf(error, [...new Set(named)].join(', '), (server, why) =>
      vscode.l10n.t("The tools of '{0}' were not switched: {1}.", server, why),
    );
  } finally {
    (await tree()).refresh();
  }
}

/** Switches a tool off or on; that of the row with the focus if none is given. */
export async function toggleTool(view: ServersView, node?: ServersNode): Promise<void> {
  // An extension learns which row has the focus only when that is selected.
  if (!node) await vscode.commands.executeCommand('list.select');
  const chosen = node ?? view.selected();
  if (chosen?.kind !== 'tool') return;
  const { Checked, Unchecked } = vscode.TreeItemCheckboxState;
  await switchTools(view, [[chosen, chosen.isOn ? Unchecked : Checked]]);
}

/** Asks for a server, and adds it to an agent's mcp.json. */
export async function addServer({ current }: ServersView): Promise<void> {
  const agent = await whichAgent(current);
  if (!agent) return;
  const { nameProblem } = await importAddServer();
  const kinds = [
    {
      label: `$(terminal) ${vscode.l10n.t('A program')}`,
      detail: vscode.l10n.t('It starts on this machine: npx -y some-server'),
      isRemote: false,
    },
    {
      label: `$(globe) ${vscode.l10n.t('An address')}`,
      detail: vscode.l10n.t('It runs elsewhere: https://example.com/mcp'),
      isRemote: true,
    },
  ];
  const title = vscode.l10n.t('Add an MCP Server to {0}', plainLabel(agent.name));
  const kind = await vscode.window.showQuickPick(kinds, { title });
  if (!kind) return;
  const place = await askText({
    title,
    prompt: kind.isRemote
      ? vscode.l10n.t('Its address')
      : vscode.l10n.t('Its command line. Quotes keep words together.'),
    placeHolder: kind.isRemote ? 'https://example.com/mcp' : 'npx -y some-server',
    validateInput: text => (entryFor(kind.isRemote, text) ? undefined : placeProblem(kind.isRemote)),
  });
  const entry = place === undefined ? undefined : entryFor(kind.isRemote, place);
  if (!entry) return;
  const name = await askText({
    title,
    prompt: vscode.l10n.t('A name for it'),
    validateInput: text => {
      const problem = nameProblem(text);
      return problem && translated(problem);
    },
  });
  if (name) await write(current, agent, [{ name, entry }]);
}

const placeProblem = (isRemote: boolean): string =>
  isRemote
    ? vscode.l10n.t('Enter an address that begins with https:// or http://.')
    : vscode.l10n.t('Enter a command. Close each quote that you open.');

/** Returns the entry for a typed command line or address; undefined if it is not one. */
export function entryFor(isRemote: boolean, typed: string): Readonly<Record<string, unknown>> | undefined {
  const text = typed.trim();
  if (isRemote) return /^https?:\/\/\S+$/.test(text) && URL.canParse(text) ? { url: text } : undefined;
  if (/^(?:[^"']|"[^"]*"|'[^']*')*$/.test(text) === false) return undefined;
  const words = [...text.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) =>
    word.replace(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ''),
  );
  const [command, ...args] = words;
  return command ? { command, ...(args.length > 0 && { args }) } : undefined;
}

/** Offers the servers of the workspace's `.vscode/mcp.json`, and adds those that the person picks to an agent. */
export async function importServers({ current }: ServersView): Promise<void> {
  try {
    if (!vscode.workspace.isTrusted) throw new Error(untrustedMessage);
    const { editorServerFile, importableServers } = await importAddServer();
    const folders = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === 'file');
    const files = folders.flatMap(({ uri }) => {
      const file = editorServerFile(uri.fsPath);
      return file === undefined ? [] : [{ file, folder: uri.fsPath }];
    });
    if (files.length === 0) throw new Error(vscode.l10n.t('This workspace has no .vscode/mcp.json.'));
    const found = files.map(({ file, folder }) => importableServers(file, folder));
    const problems = found.flatMap(each => each.problems).map(one => plainLabel(translated(one), 300));
    const items = found
      .flatMap(({ servers }) => servers)
      .map(({ name, entry, asks }) => ({
        label: plainLabel(name),
        detail: plainLabel(
          [entry['command'], entry['args'], entry['url']].flat().filter(Boolean).join(' '),
          300,
        ),
        description: asks.length > 0 ? vscode.l10n.t('needs {0}', asks.join(', ')) : '',
        picked: true,
        name,
        entry,
        asks,
      }));
    if (items.length === 0) throw new Error(problems.join('\n') || vscode.l10n.t('It names no server.'));
    const picked = await vscode.window.showQuickPick(items, {
      title: vscode.l10n.t('Import from .vscode/mcp.json'),
      placeHolder: problems.join(' ') || vscode.l10n.t('Select servers to import'),
      canPickMany: true,
    });
    if (!picked || picked.length === 0) return;
    const agent = await whichAgent(current);
    if (agent) await write(current, agent, picked);
  } catch (error) {
    complain(plainLabel(describeError(error), 600));
  }
}

/** Asks which agent gets a server. Returns undefined if the person cancels. */
async function whichAgent(current: CurrentTelos): Promise<Agent | undefined> {
  const all = await (await current.openTelos()).agents();
  const agents = all.filter(({ source }) => source !== 'builtin');
  if (agents.length === 0) {
    complain(vscode.l10n.t('There is no agent yet. Add a skill first.'));
    return undefined;
  }
  if (agents.length === 1) return agents[0];
  const items = agents.map(agent => ({
    label: plainLabel(agent.name),
    description: plainLabel(agent.description),
    agent,
  }));
  const title = vscode.l10n.t('Which agent uses the server?');
  return (await vscode.window.showQuickPick(items, { title }))?.agent;
}

async function write(
  current: CurrentTelos,
  agent: Agent,
  added: readonly { name: string; entry: Readonly<Record<string, unknown>>; asks?: readonly string[] }[],
): Promise<void> {
  const { addServers, serverFileOf } = await importAddServer();
  const names = plainLabel(added.map(({ name }) => name).join(', '));
  try {
    await addServers(
      serverFileOf(agent),
      added.map(({ name, entry }) => ({ name, entry })),
    );
  } catch (error) {
    return complainOf(error, names, (server, why) => vscode.l10n.t("'{0}' was not added: {1}.", server, why));
  }
  await current.refresh();
  const asks = [...new Set(added.flatMap(({ asks: each = [] }) => each))];
  acknowledge(
    asks.length > 0
      ? vscode.l10n.t("Added: {0}. Set {1} in Telos's .env file.", names, asks.join(', '))
      : vscode.l10n.t('Added: {0}', names),
    {
      title: vscode.l10n.t('Review Agent'),
      act: () => vscode.commands.executeCommand('telos.reviewAgent', { agent: { name: agent.name } }),
    },
  );
}
