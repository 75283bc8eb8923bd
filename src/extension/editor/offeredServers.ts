/**
 * Offers the MCP servers of accepted agents to the editor, which starts them itself. Only if the person has turned this
 * on.
 */
import * as vscode from 'vscode';
import type { McpServer, OfferedServer } from '../../engine/mcp/config.ts';
import type { Agent } from '../../engine/skills/agent.ts';
import type { Telos } from '../../engine/telos.ts';
import { coversAll } from '../../protocol/agentCard.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel, translated } from '../base/labels.ts';
import { untrustedMessage } from './editorRuns.ts';

/** Must match package.json. */
const providerId = 'telos.servers';
const setting = 'offerMcpServers';

/** The server and agent behind each definition. */
type Origins = WeakMap<vscode.McpServerDefinition, OfferedServer>;

export function registerOfferedServers(current: CurrentTelos): vscode.Disposable {
  const changed = new vscode.EventEmitter<void>();
  return vscode.Disposable.from(
    changed,
    current.onDidChange(() => changed.fire()),
    vscode.lm.registerMcpServerDefinitionProvider(providerId, {
      onDidChangeMcpServerDefinitions: changed.event,
      ...offeredServers(current),
    }),
  );
}

/**
 * Returns the editor's two callbacks. One lists the servers as written, the other fills in the variables of one server.
 */
export function offeredServers(current: Pick<CurrentTelos, 'openTelos'>) {
  const origins: Origins = new WeakMap();
  const byLabel = new Map<string, OfferedServer>();
  return {
    provideMcpServerDefinitions: () => offered(current, origins, byLabel),
    // The editor may pass a copy of the definition. Its label is the same.
    resolveMcpServerDefinition: (definition: vscode.McpServerDefinition) =>
      resolved(current, definition, origins.get(definition) ?? byLabel.get(definition.label)),
  };
}

const isOn = (): boolean =>
  vscode.workspace.isTrusted && vscode.workspace.getConfiguration('telos').get<boolean>(setting) === true;

async function offered(
  current: Pick<CurrentTelos, 'openTelos'>,
  origins: Origins,
  byLabel: Map<string, OfferedServer>,
): Promise<vscode.McpServerDefinition[]> {
  byLabel.clear();
  if (!isOn()) return [];
  const telos = await current.openTelos();
  const { serversOf } = await import('../../engine/mcp/config.ts');
  const definitions: vscode.McpServerDefinition[] = [];
  for (const agent of await telos.agents()) {
    const servers = serversOf(agent, telos.config);
    const version = servers.length > 0 ? await acceptedDigest(telos, agent) : undefined;
    if (version === undefined) continue;
    for (const server of servers) {
      const definition = definitionOf(server, version);
      origins.set(definition, server);
      byLabel.set(definition.label, server);
      definitions.push(definition);
    }
  }
  return definitions;
}

/**
 * Returns the accepted digest. Undefined if the present files were not reviewed, or the card does not cover everything
 * that the agent can run.
 */
async function acceptedDigest(telos: Telos, { name }: Agent): Promise<string | undefined> {
  const card = await telos.agentCard(name);
  return card.state === 'reviewed' && coversAll(card) ? card.digest : undefined;
}

/**
 * Returns the definition that the editor shows and remembers. Variables are not filled in yet, and no environment is
 * added.
 */
function definitionOf(
  { agent, name, written, cwd }: OfferedServer,
  version: string,
): vscode.McpServerDefinition {
  const label = plainLabel(`${name} of ${agent}`);
  if (written.type !== 'stdio') {
    return new vscode.McpHttpServerDefinition(
      label,
      vscode.Uri.parse(written.url),
      { ...written.headers },
      version,
    );
  }
  const { command, args, env } = written;
  const definition = new vscode.McpStdioServerDefinition(label, command, [...args], { ...env }, version);
  definition.cwd = vscode.Uri.file(cwd);
  return definition;
}

/**
 * Fills in a server. Checks the card again, since it may have been revoked, or the agent's files changed, since the
 * offer.
 */
async function resolved(
  current: Pick<CurrentTelos, 'openTelos'>,
  definition: vscode.McpServerDefinition,
  origin: OfferedServer | undefined,
): Promise<vscode.McpServerDefinition> {
  if (!vscode.workspace.isTrusted) throw new Error(untrustedMessage);
  const label = plainLabel(definition.label);
  const telos = await current.openTelos();
  const agent = (await telos.agents()).find(({ name }) => name === origin?.agent);
  if (!origin || !agent || !isOn())
    throw new Error(vscode.l10n.t('Telos does not offer the MCP server {0} any more.', label));
  if ((await acceptedDigest(telos, agent)) === undefined) {
    throw new Error(
      vscode.l10n.t(
        'The card of agent {0} is not accepted, so its MCP server {1} does not start. Look at it with "Telos: Review Agent...".',
        plainLabel(agent.name),
        label,
      ),
    );
  }
  const { resolveOffered } = await import('../../engine/mcp/config.ts');
  const result = resolveOffered(agent, origin.name, telos.config);
  if ('refusal' in result)
    throw new Error(
      vscode.l10n.t('The MCP server {0} does not start: {1}.', label, translated(result.refusal)),
    );
  await fill(definition, result.server, telos, agent);
  return definition;
}

async function fill(
  definition: vscode.McpServerDefinition,
  server: McpServer,
  telos: Telos,
  { packDir }: Agent,
): Promise<void> {
  if (definition instanceof vscode.McpHttpServerDefinition && server.type !== 'stdio') {
    definition.uri = vscode.Uri.parse(server.url);
    definition.headers = server.headers;
  } else if (definition instanceof vscode.McpStdioServerDefinition && server.type === 'stdio') {
    const { config } = telos;
    const { commandEnvironment } = await import('../../engine/tools/command.ts');
    const bare = commandEnvironment(
      { ...config.env, HOME: config.home },
      { packDir, skillDir: packDir },
      config.dataDir,
    );
    // The editor would pass on its own environment, with every key in it.
    const without = Object.fromEntries(Object.keys(process.env).map(name => [name, null]));
    const { workFoldersOf } = await import('../../engine/skills/workFolders.ts');
    const { serverProgram } = await import('../../engine/mcp/link.ts');
    const { command, env } = serverProgram(server, bare, workFoldersOf(config, await telos.agents()));
    definition.command = command;
    definition.args = server.args;
    definition.env = { ...without, ...env };
  } else {
    throw new Error(
      vscode.l10n.t(
        'The MCP server {0} is another one now. Refresh the list of servers.',
        plainLabel(definition.label),
      ),
    );
  }
}
