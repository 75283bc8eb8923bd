/**
 * Connects to the MCP servers of a run. What the agent's card covers is connected to at the start; a question about the others waits
 * until a call needs them. Who is still starting joins the run later.
 */
import type { RunEvent, ToolCall, ToolResult } from '@telos/protocol/run';
import { asMessage, beginningOf, sentence } from '@telos/protocol/text';
import { untilAborted } from '../cancellation.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { readMcpConfig } from '../mcp/config.ts';
import type { McpServers, OfferingServer } from '../mcp/servers.ts';
import { gateName } from '../mcp/tools.ts';
import { brokenRules } from '../policy/decide.ts';
import { policyNotices } from '../policy/policyFile.ts';
import { decideOnServers } from '../policy/serverPrograms.ts';
import { isBuiltin } from '../policy/subject.ts';
import { type Tool, toolError, type WantedSignIn } from '../tools/tool.ts';
import { type ApprovalContext, askPerson, signInAt } from './approval.ts';

/** More names would only fill the description. */
const mostNamed = 20;

export interface GateParts extends Pick<ApprovalContext, 'human' | 'policy'> {
  /** Starts the agent's MCP servers. */
  connect(signal: AbortSignal): Promise<McpServers>;
}

export class ServerGate {
  readonly #parts: GateParts;
  readonly #names: readonly string[];
  #servers: McpServers | undefined;
  /** True while a question about all of the servers waits. */
  #waits = false;
  /** Sign-ins that the user was asked for, and problems that were said. */
  #asked = 0;
  #told = 0;
  #refusal: string | undefined;

  constructor(parts: GateParts) {
    this.#parts = parts;
    const { mcpConfig } = parts.policy.agent ?? {};
    this.#names = mcpConfig === undefined ? [] : [...readMcpConfig(mcpConfig).servers.keys()];
  }

  /** Connects if no one need be asked. Where no person reads questions, there is nothing to wait for. */
  async *start(signal: AbortSignal): AsyncGenerator<RunEvent, void> {
    // Without a server, connecting only reports what is wrong in the file.
    this.#waits = this.#names.length > 0 && (await this.#decide()).action === 'ask';
    if (!this.#waits) yield* this.#connect(signal);
    const { isAway } = this.#parts.human;
    if (this.#isShut && (isAway || this.#brokenRules() !== undefined)) yield* this.open(signal);
  }

  /** Returns the tool that opens the gate. Empty if nothing waits for a yes. */
  get tools(): readonly Tool[] {
    if (this.#late.length > 0) return [lateTool(this.#late)];
    return this.#isShut ? [gateTool(this.#names)] : [];
  }

  /** Returns true for a call that only a server behind the gate can answer. `tools` are those that the run has. */
  isFor({ name, problem }: ToolCall, tools: readonly Tool[]): boolean {
    if (!this.#isShut || problem !== undefined) return false;
    return name === gateName || isUnknown(name, tools);
  }

  /** Returns the server of that name if it is connected. */
  offering(server: string): OfferingServer | undefined {
    return this.#servers?.offering(server);
  }

  /** Asks the person, then connects and signs in. A refusal counts until the run ends. */
  async *open(signal: AbortSignal): AsyncGenerator<RunEvent, void> {
    if (this.#waits) {
      this.#waits = false;
      const refusal = yield* this.#ask(signal);
      if (refusal !== undefined) {
        this.#refusal = refusal;
        const said = sentence('The run continues without its MCP servers. {0}', refusal);
        yield { type: 'notice', level: 'warning', ...asMessage(said) };
        return;
      }
      yield* this.#connect(signal);
    }
    const { human, policy } = this.#parts;
    await untilAborted(this.#servers?.arrived() ?? Promise.resolve(), signal);
    // A sign-in may add a further one to those that are wanted.
    for (let [one] = this.#signIns; one; [one] = this.#signIns) {
      this.#asked++;
      yield* signInAt(one, { human, policy }, signal);
    }
    yield* this.#problems();
  }

  /** Returns what became known of servers since it was last said. Undefined if nothing did. */
  news(): AsyncGenerator<RunEvent, void> | undefined {
    const { problems = [] } = this.#servers ?? {};
    return problems.length > this.#told ? this.#problems() : undefined;
  }

  /** Returns the answer to a call to a server that is not there. Undefined for any other call. */
  resultFor({ name }: ToolCall, tools: readonly Tool[]): ToolResult | undefined {
    if (this.#refusal !== undefined && (name === gateName || isUnknown(name, tools)))
      return toolError(`The MCP servers of this agent are not connected. ${this.#refusal}`);
    if (name !== gateName) return undefined;
    const theirs = tools.filter(({ definition }) => this.#isTheirs(definition.name));
    const names = theirs.map(({ definition }) => definition.name).join(', ');
    const connected = names ? `Connected. New tools: ${names}.` : 'The servers offer no tools.';
    // The warnings above say each problem in the person's language.
    const more = this.#servers?.problems.length ? ' The user was shown what does not work.' : '';
    return { content: connected + more, isError: names === '' };
  }

  get #isShut(): boolean {
    return this.#waits || this.#signIns.length > 0 || this.#late.length > 0;
  }

  get #late(): readonly string[] {
    return this.#servers?.late() ?? [];
  }

  /** Those that no one was asked for. */
  get #signIns(): readonly WantedSignIn[] {
    return this.#servers?.signIns.slice(this.#asked) ?? [];
  }

  #isTheirs(name: string): boolean {
    return this.#servers?.merged().facts.has(name) === true;
  }

  #decide() {
    return decideOnServers(this.#parts.policy);
  }

  #brokenRules(): string | undefined {
    const broken = this.#parts.policy.rules?.read().broken;
    return broken === undefined ? undefined : brokenRules(broken).reason;
  }

  async *#ask(signal: AbortSignal): AsyncGenerator<RunEvent, string | undefined> {
    const { human, policy } = this.#parts;
    const broken = this.#brokenRules();
    if (broken !== undefined) {
      yield* policyNotices(policy.rules);
      return broken;
    }
    // A card that was accepted meanwhile covers the servers too.
    const decision = await this.#decide();
    if (decision.action === 'allow') return undefined;
    const call: ToolCall = { id: 'mcp-servers', name: 'mcp_servers', input: {} };
    return (yield* askPerson(call, decision, { human, policy }, signal)).refusal;
  }

  async *#connect(signal: AbortSignal): AsyncGenerator<RunEvent, void> {
    this.#servers = await this.#parts.connect(signal);
    yield* this.#problems();
    const names = this.#late.join(', ');
    const said = sentence('Still starting: {0}. Their tools are added as soon as they are there.', names);
    if (names && !this.#parts.human.isAway) yield { type: 'notice', level: 'info', ...asMessage(said) };
  }

  async *#problems(): AsyncGenerator<RunEvent, void> {
    const { problems = [] } = this.#servers ?? {};
    const untold = problems.slice(this.#told);
    this.#told = problems.length;
    for (const problem of untold) yield { type: 'notice', level: 'warning', ...asMessage(problem) };
  }
}

const isUnknown = (name: string, tools: readonly Tool[]): boolean =>
  !isBuiltin(name) && !tools.some(({ definition }) => definition.name === name);

const gateTool = (servers: readonly string[]): Tool =>
  toolFor(`Connects to the MCP servers of this agent (${listed(servers)}), after the user was asked.`);

const lateTool = (servers: readonly string[]): Tool =>
  toolFor(`Waits for the MCP servers of this agent that are still starting (${listed(servers)}).`);

function listed(servers: readonly string[]): string {
  const named = servers.slice(0, mostNamed).map(name => escapeInvisible(beginningOf(name, 60)));
  const more = servers.length > named.length ? ` and ${servers.length - named.length} more` : '';
  return named.join(', ') + more;
}

function toolFor(does: string): Tool {
  return {
    definition: {
      name: gateName,
      description: `${does} Their tools are offered from then on. Call it before work that needs a tool of theirs.`,
      inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    },
    access: 'execute',
    execute: async () => toolError('The servers are not connected.'),
  };
}
