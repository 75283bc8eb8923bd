/** Implements `telos mcp`, which lists the MCP servers of agents, adds one, and switches their tools off and on. */

import { addServers, serverFileOf } from '@telos/engine/mcp';
import { openPolicyFile, switchTool } from '@telos/engine/policy';
import { checkServer, type ListedServer, listServers, type ServerParts } from '@telos/engine/run';
import { Telos } from '@telos/engine/telos';
import { counted, spoken } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { table, terminalJson, terminalText, toType } from './terminalText.ts';

type Found = ListedServer & { state: string; tools?: readonly string[]; skills?: readonly string[] };

/**
 * Lists the servers; with `start`, starts those of reviewed agents. Returns the exit code: 1 if one of them does not work or cannot be
 * read.
 */
export async function mcpListCommand(
  options: ConfigOptions & { start?: boolean; json?: boolean },
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  return interruptible(terminal, async signal => {
    const parts = await Telos.open(config).serverParts();
    const { servers, problems } = await listServers(parts);
    const found = await Promise.all(servers.map(one => stateOf(one, parts, options.start === true, signal)));
    if (options.json) terminal.out(`${terminalJson({ servers: found, problems })}\n`);
    else if (found.length > 0)
      terminal.out(
        `${table(
          ['Server', 'Agent', 'State', 'Command or address'],
          found.map(({ server, agent, state, place }) => [server, agent, state, place]),
          terminal.outWidth,
        )}\n`,
      );
    if (!options.json) for (const one of found) sayServed(one, terminal);
    if (!options.json && found.length + problems.length === 0)
      terminal.say('No agent has an MCP server. `telos mcp add` adds one.');
    if (!options.json) for (const problem of problems) terminal.say(terminalText(problem));
    const fails = ({ agent, server }: Found): boolean => parts.book.facts(agent, server)?.state === 'failed';
    return found.some(fails) || problems.length > 0 ? 1 : 0;
  });
}

function sayServed({ agent, server, skills = [] }: Found, terminal: Terminal): void {
  for (const name of skills)
    terminal.say(
      terminalText(`Skill '${name}' of '${server}': ${toType('install', `mcp:${agent}:${server}/${name}`)}`),
    );
}

async function stateOf(
  listed: ListedServer,
  parts: ServerParts,
  isStarted: boolean,
  signal: AbortSignal,
): Promise<Found> {
  if (!listed.isAccepted) return { ...listed, state: `not reviewed: ${toType('trust', listed.agent)}` };
  if (!isStarted) return { ...listed, state: 'reviewed' };
  await checkServer(listed, parts, signal);
  const facts = parts.book.facts(listed.agent, listed.server);
  const tools = facts?.tools.map(({ name }) => name) ?? [];
  const skills = facts?.skills?.map(({ name }) => name) ?? [];
  const counts = [
    counted(tools.length, 'tool'),
    ...(skills.length > 0 ? [counted(skills.length, 'skill')] : []),
  ];
  const state = facts?.error ? spoken([facts.error]) : counts.join(', ');
  return { ...listed, state, tools, skills };
}

/** Adds a server to an agent's mcp.json. Returns the exit code. */
export async function mcpAddCommand(
  [agentName, name, ...words]: readonly string[],
  options: ConfigOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const agents = await Telos.open(config).agents();
  const agent = agents.find(each => each.name === agentName);
  const [command = '', ...args] = words;
  if (!agent || !name || command === '') {
    terminal.say(
      agent ? 'Name the server, then its command or its address.' : noAgent(agentName ?? '', agents),
    );
    return 2;
  }
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(command) && !/^https?:\/\//i.test(command)) {
    terminal.say(
      terminalText(`${command} is not an address of a server: one begins with http:// or https://.`),
    );
    return 2;
  }
  const entry = /^https?:\/\//i.test(command)
    ? { url: command }
    : { command, ...(args.length > 0 && { args }) };
  const file = serverFileOf(agent);
  await addServers(file, [{ name, entry }]);
  terminal.out(terminalText(`Added '${name}' to ${file}\n`));
  terminal.say(terminalText(`Review its agent before it starts: ${toType('trust', agent.name)}`));
  return 0;
}

function noAgent(agent: string, agents: readonly { name: string }[]): string {
  const known = agents.map(({ name }) => name).join(', ');
  return terminalText(
    `There is no agent '${agent}'. ${known === '' ? 'You have none.' : `Your agents: ${known}`}`,
  );
}

/** Switches a server's tool off for an agent, or on again. Returns the exit code. */
export async function mcpSwitchCommand(
  [agent = '', server = '', tool = '', ...more]: readonly string[],
  isOn: boolean,
  options: ConfigOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  if (tool === '' || more.length > 0) {
    terminal.say('Name an agent, a server and a tool.');
    return 2;
  }
  const parts = await Telos.open(config).serverParts();
  const { servers } = await listServers(parts);
  if (!servers.some(each => each.agent === agent && each.server === server)) {
    const isAgent = parts.agents.some(({ name }) => name === agent);
    const none = `Agent '${agent}' has no MCP server '${server}'. \`telos mcp list\` lists those of all agents.`;
    terminal.say(isAgent ? terminalText(none) : noAgent(agent, parts.agents));
    return 2;
  }
  const { file } = openPolicyFile(config).read();
  await switchTool({ file, home: config.home }, { agent, server, tool }, isOn);
  terminal.out(terminalText(`${tool} of '${server}' is ${isOn ? 'on' : 'off'} for ${agent}\n`));
  return 0;
}
