/** Serves the user's skills to other programs as an MCP server: `list_skills`, `route` and `run_skill`, and the skills themselves. */
import { TelosError } from '@telos/engine/errors';
import { skillCalled } from '@telos/engine/skills';
import type { Telos } from '@telos/engine/telos';
import { describeRoute } from '@telos/protocol/describe';
import type { SkillRef } from '@telos/protocol/run';
import { LiveRun, type RunResult, type Turn } from './liveRun.ts';
import { decisionOf, elicitationOf } from './questions.ts';
import {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  fromJsonSchema,
  type InputRequiredResult,
  inputRequired,
  McpServer,
  type ServerContext,
  SkillsExtension,
} from './sdk.ts';
import { skillSource } from './skillSource.ts';

/** How often a run may ask an older client; the SDK's own limit is eight. */
const mostQuestions = 500;

const requestSchema = {
  type: 'string',
  description: 'What is to be done, in the words of the user.',
} as const;

const listInput = fromJsonSchema<object>({ type: 'object', properties: {} });
const routeInput = fromJsonSchema<{ request: string }>({
  type: 'object',
  properties: { request: requestSchema },
  required: ['request'],
});
const runInput = fromJsonSchema<{ request: string; skill?: string }>({
  type: 'object',
  properties: {
    request: requestSchema,
    skill: { type: 'string', description: 'The skill, as `agent:skill`. Without it, the request decides.' },
  },
  required: ['request'],
});

/** The runs of a server, which all of its connections share. */
export class SkillServer {
  readonly #telos: Telos;
  readonly #version: string;
  readonly #skills: SkillsExtension;
  /** Runs that wait for an answer, with the question, by what the client brings back. */
  readonly #waiting = new Map<string, { run: LiveRun; turn: Turn & { question: object } }>();
  readonly #running = new Set<LiveRun>();

  constructor(telos: Telos, version: string) {
    this.#telos = telos;
    this.#version = version;
    this.#skills = new SkillsExtension({ source: skillSource(telos), onWarning: () => {} });
  }

  /** Returns the server for one connection, or for one request of HTTP. */
  connection(): McpServer {
    const server = new McpServer(
      { name: 'telos', title: 'Telos', version: this.#version },
      {
        inputRequired: { maxRounds: mostQuestions },
        instructions:
          'Telos runs the skills of the user in a sandbox, with their permissions. Call run_skill with the words of the user; list_skills names the skills, route says which one fits.',
      },
    );
    this.#skills.attach(server);
    server.registerTool(
      'list_skills',
      {
        description: 'Lists the skills of the user, with what each is for.',
        inputSchema: listInput,
        annotations: { readOnlyHint: true, openWorldHint: false },
      },
      () => said(() => this.#list()),
    );
    server.registerTool(
      'route',
      {
        description: 'Says which skill a request means and why, without running it.',
        inputSchema: routeInput,
        annotations: { readOnlyHint: true },
      },
      ({ request }, { mcpReq }) => said(() => this.#route(request, mcpReq.signal)),
    );
    server.registerTool(
      'run_skill',
      {
        description:
          'Runs a skill of the user to its end, and returns its answer, the files that it changed and its cost. Questions of the run go to the user.',
        inputSchema: runInput,
        annotations: { destructiveHint: true, openWorldHint: true },
      },
      (input, context) => said(() => this.#run(input, server, context)),
    );
    return server;
  }

  /** Stops all runs and their commands. */
  async close(): Promise<void> {
    await Promise.all([...this.#running].map(run => run.stop()));
    await this.#telos.closeCommands();
  }

  async #list(): Promise<CallToolResult> {
    this.#telos.refresh();
    const skills = (await this.#telos.agents()).flatMap(({ name, skills: own }) =>
      own
        .filter(one => one.userInvocable && one.kind !== 'role' && !one.isDisabled && !one.shadowedBy)
        .map(({ id, description, synopsis }) => ({
          skill: `${name}:${id}`,
          description: description || synopsis || '',
        })),
    );
    const text = skills.map(one => `${one.skill}: ${one.description}`).join('\n');
    return { ...textOf(text || 'There are no skills.'), structuredContent: { skills } };
  }

  async #route(text: string, signal: AbortSignal): Promise<CallToolResult> {
    this.#telos.refresh();
    const found = await this.#telos.route({ text }, signal);
    if (found.skill) {
      const { agent, skill, reason } = found;
      const why = describeRoute(agent.name, skill.id, reason);
      return { ...textOf(why), structuredContent: { skill: `${agent.name}:${skill.id}`, why } };
    }
    const choices = found.choices.map(nameOf);
    const text2 = choices.length > 0 ? `No skill is sure. Likely: ${choices.join(', ')}` : 'No skill fits.';
    return { ...textOf(text2), structuredContent: { choices } };
  }

  async #run(
    { request, skill: wanted }: { request: string; skill?: string },
    server: McpServer,
    { mcpReq }: ServerContext,
  ): Promise<CallToolResult | InputRequiredResult> {
    const state = mcpReq.requestState<string>();
    const waiting = state === undefined ? undefined : this.#waiting.get(state);
    if (state !== undefined) this.#waiting.delete(state);
    if (state !== undefined && !waiting)
      return failed('This question is over: the run has ended, or the answer was given before.');
    if (waiting) {
      const { run, turn } = waiting;
      const { token, request: asked } = turn.question as Extract<Turn, { question: object }>['question'];
      run.answer(token, decisionOf(asked, acceptedContent(mcpReq.inputResponses, 'answer')));
      return this.#follow(run, mcpReq);
    }
    this.#telos.refresh();
    const named = wanted === undefined ? undefined : skillCalled(wanted, await this.#telos.agents());
    if (wanted !== undefined && !named) return failed(`There is no skill ${wanted}. Call list_skills.`);
    const skill: SkillRef | undefined = named && { agent: named.agent.name, skill: named.skill.id };
    const canAsk = asksForms(server, mcpReq);
    const run = new LiveRun(this.#telos, { text: request, origin: 'mcp', ...(skill && { skill }) }, canAsk);
    this.#running.add(run);
    return this.#follow(run, mcpReq);
  }

  async #follow(
    run: LiveRun,
    mcpReq: ServerContext['mcpReq'],
  ): Promise<CallToolResult | InputRequiredResult> {
    const progressToken = mcpReq._meta?.progressToken;
    let steps = 0;
    const progress = (message: string): void => {
      steps++;
      if (progressToken === undefined) return;
      const params = { progressToken, progress: steps, message };
      void mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {});
    };
    const turn = await run.next(progress, mcpReq.signal);
    if ('question' in turn) {
      const { token, request } = turn.question;
      this.#waiting.set(token, { run, turn });
      const answer = inputRequired.elicit({ mode: 'form', ...elicitationOf(request) });
      return inputRequired({ inputRequests: { answer }, requestState: token });
    }
    this.#running.delete(run);
    if (turn.result.runId) await this.#telos.endCommands(turn.result.runId);
    return resultOf(turn.result);
  }
}

const nameOf = ({ agent, skill }: SkillRef): string => `${agent}:${skill}`;

const textOf = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });

const failed = (text: string): CallToolResult => ({ ...textOf(text), isError: true });

/** Says an error of the engine to the client, in its own sentence. */
async function said<Result>(work: () => Promise<Result>): Promise<Result | CallToolResult> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TelosError) return failed(error.message);
    throw error;
  }
}

/** Whether the client can put forms before its user. */
function asksForms(server: McpServer, { envelope }: ServerContext['mcpReq']): boolean {
  const told = envelope as Readonly<Record<string, ClientCapabilities>> | undefined;
  const { elicitation } = told?.[CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities() ?? {};
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

/** Returns the result of a run. Anything but a completed one is an error, with its reason. */
function resultOf({ runId, agent, skill, end, answer, files, usage }: RunResult): CallToolResult {
  const { outcome, error } = end;
  const choices = error?.choices?.map(nameOf) ?? [];
  const cost = usage?.cost;
  const text = [
    answer,
    ...(error ? [error.message] : []),
    ...(choices.length > 0 ? [`Likely: ${choices.join(', ')}`] : []),
    ...(files.length > 0 ? [`Changed files:\n${files.join('\n')}`] : []),
  ];
  return {
    ...textOf(text.filter(Boolean).join('\n\n') || outcome),
    structuredContent: {
      outcome,
      runId,
      ...(skill && { skill: nameOf({ agent, skill }) }),
      answer,
      files: [...files],
      ...(cost !== undefined && { cost }),
      ...(choices.length > 0 && { choices }),
    },
    ...(outcome !== 'completed' && { isError: true }),
  };
}
