/** Offers the MCP servers of accepted agents to the editor, which starts them itself; only where the person has asked for it. */
import * as vscode from 'vscode';
import type { McpServer } from '../../engine/mcp/config.ts';
import type { OfferedServer } from '../../engine/mcp/offeredServers.ts';
import type { Agent } from '../../engine/skills/agent.ts';
import type { Telos } from '../../engine/telos.ts';
import { coversAll } from '../../protocol/agentCard.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';
import { untrustedMessage } from './editorRuns.ts';

/** As package.json declares it. */
const providerId = 'telos.servers';
const setting = 'offerMcpServers';

/** Which server of which agent a definition is. */
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

/** What the editor asks for: the servers as they are written, and one of them with its variables filled in. */
export function offeredServers(current: Pick<CurrentTelos, 'openTelos'>) {
  const origins: Origins = new WeakMap();
  const byLabel = new Map<string, OfferedServer>();
  return {
    provideMcpServerDefinitions: () => offered(current, origins, byLabel),
    // The editor may hand in a copy of what it was given; its label is the same.
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
  const { serversOf } = await import('../../engine/mcp/offeredServers.ts');
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

/** Undefined for an agent whose card was not accepted as its files are now, or does not cover all that it can run. */
async function acceptedDigest(telos: Telos, { name }: Agent): Promise<string | undefined> {
  const card = await telos.agentCard(name);
  return card.state === 'reviewed' && coversAll(card) ? card.digest : undefined;
}

/** No variable is filled in yet, and no environment given: this is what the editor shows and remembers. */
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

/** Looks at the card again, since it may have been taken back, or the agent's files changed, since the server was offered. */
async function resolved(
  current: Pick<CurrentTelos, 'openTelos'>,
  definition: vscode.McpServerDefinition,
  origin: OfferedServer | undefined,
): Promise<vscode.McpServerDefinition> {
  if (!vscode.workspace.isTrusted) throw new Error(untrustedMessage);
  const label = plainLabel(definition.label);
  const telos = await current.openTelos();
  const agent = (await telos.agents()).find(({ name }) => name === origin?.agent);
  if (!origin || !agent || !isOn()) throw new Error(`Telos does not offer the MCP server ${label} any more.`);
  if ((await acceptedDigest(telos, agent)) === undefined) {
    throw new Error(
      `The card of agent ${plainLabel(agent.name)} is not accepted, so its MCP server ${label} does not start. Look at it with "Telos: Review Agent...".`,
    );
  }
  const { resolveOffered } = await import('../../engine/mcp/offeredServers.ts');
  const result = resolveOffered(agent, origin.name, telos.config);
  if ('refusal' in result) throw new Error(`The MCP server ${label} does not start: ${result.refusal}.`);
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
    // The editor would hand on its own environment, with every key that is in it.
    const without = Object.fromEntries(Object.keys(process.env).map(name => [name, null]));
    const { workFoldersOf } = await import('../../engine/skills/workFolders.ts');
    const { serverProgram } = await import('../../engine/mcp/link.ts');
    const { command, env } = serverProgram(server, bare, workFoldersOf(config, await telos.agents()));
    definition.command = command;
    definition.args = server.args;
    definition.env = { ...without, ...env };
  } else {
    throw new Error(
      `The MCP server ${plainLabel(definition.label)} is another one now. Refresh the list of servers.`,
    );
  }
}
