/** Finds what the words of a request name of MCP servers: a prompt behind a slash, and resources behind an `@`. */
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { readMcpConfig } from '../mcp/config.ts';
import type { RouteRequest } from '../routing/route.ts';
import { findSkill, type Match, matchExplicit } from '../routing/routeName.ts';
import type { FileAgent } from '../skills/discover.ts';

export interface CalledPrompt {
  /** As it is written, with the slash. */
  word: string;
  server: string;
  prompt: string;
  /** What follows it. */
  words: string;
}

export interface MentionedResource {
  server: string;
  uri: string;
}

/** Returns the prompt that a request begins with, in the form `/server:prompt`. Undefined if it has no such beginning. */
export function promptCalled(text: string): CalledPrompt | undefined {
  const [, word, server, prompt, words = ''] = /^\s*(\/([^\s/:]+):(\S+))(?:\s+([\s\S]*))?$/.exec(text) ?? [];
  return word && server && prompt ? { word, server, prompt, words: words.trim() } : undefined;
}

/** Returns the words of a request that have the form `@server:address`. */
export function resourcesMentioned(text: string): MentionedResource[] {
  const found = text.matchAll(/(?<![\p{L}\p{N}_.@/-])@([^\s@:]+):(\S+)/gu);
  return [...found].map(([, server = '', uri = '']) => ({ server, uri: withoutEnd(uri) }));
}

/** Removes the marks of a sentence that stand behind an address. */
const withoutEnd = (uri: string): string => uri.replace(/[.,;:!?)\]}'"»”]+$/, '');

/** Returns true if the text has words of either form. */
export const namesOffers = (text: string): boolean =>
  promptCalled(text) !== undefined || resourcesMentioned(text).length > 0;

/** Returns true if the agent's mcp.json names the server. */
const hasServer = ({ mcpConfig }: Pick<FileAgent, 'mcpConfig'>, server: string): boolean =>
  mcpConfig !== undefined && readMcpConfig(mcpConfig).servers.has(server);

/** Returns what a request names of the agent's servers. A skill of the same name comes first. */
export function offersNamed(
  text: string,
  agent: FileAgent,
): { prompt: CalledPrompt | undefined; resources: MentionedResource[] } {
  const called = promptCalled(text);
  const isPrompt = called && !matchExplicit(called.word, [agent]) && hasServer(agent, called.server);
  const mentioned = resourcesMentioned(text).filter(({ server, uri }) => uri && hasServer(agent, server));
  const resources = new Map(mentioned.map(each => [`${each.server}:${each.uri}`, each]));
  return { prompt: isPrompt ? called : undefined, resources: [...resources.values()] };
}

/**
 * Returns the skill that runs with the prompt that a request calls, or else the request as its skill is to be chosen: within the agent
 * that has the server. Throws TelosError `config` if several have it. A skill of the same name comes first.
 */
export function aimedAtServer(request: RouteRequest, agents: readonly FileAgent[]): Match | RouteRequest {
  const called = promptCalled(request.text);
  if (!called || request.skill || matchExplicit(called.word, agents)) return request;
  const { server, prompt, word, words } = called;
  const holding = agents.filter(
    agent => hasServer(agent, server) && (request.agent ?? agent.name) === agent.name,
  );
  const now = request.conversation?.skill;
  const running = now && findSkill(holding, now);
  if (running) return { ...running, reason: { rule: 'continued' } };
  const [agent, other] = holding;
  if (!agent) return request;
  if (other)
    throw new TelosError('config', [
      sentence(
        "Several agents have an MCP server '{0}': {1}. Choose the skill that uses it.",
        ...[server, holding.map(({ name }) => name).join(', ')],
      ),
    ]);
  const [skill, ...more] = agent.skills.filter(({ isDisabled }) => !isDisabled);
  if (skill && more.length === 0) return { agent, skill, reason: { rule: 'explicit', matched: word } };
  return { text: words || prompt.replace(/[-_]+/g, ' '), agent: agent.name };
}
