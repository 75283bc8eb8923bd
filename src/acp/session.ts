/** One session of an editor: a conversation in a folder, with a mode, a model and one prompt at a time. */

import { realpath } from 'node:fs/promises';
import { TelosError } from '@telos/engine/errors';
import { importSensitiveNames } from '@telos/engine/files';
import { effortLevels, importModelList } from '@telos/engine/providers';
import { type Conversation, type Human, newToken, type RunRequest } from '@telos/engine/run';
import type { Telos } from '@telos/engine/telos';
import type { UndoResult } from '@telos/engine/undo';
import { type RunEvent, type RunMode, type RunOutcome, runModes } from '@telos/protocol/run';
import { beginningOf, counted } from '@telos/protocol/text';
import { acpHuman } from './acpHuman.ts';
import { promptContent } from './promptContent.ts';
import {
  type AgentContext,
  type AvailableCommand,
  type ClientCapabilities,
  type ContentBlock,
  type McpServer,
  methods,
  type NewSessionResponse,
  type PromptResponse,
  RequestError,
  type SessionConfigOption,
  type SessionUpdate,
  type StopReason,
} from './protocol.ts';
import { SessionUpdates } from './updates.ts';

/** What the user has chosen in the session, in place of the settings. */
export interface SessionChoices {
  provider?: string;
  model?: string;
  effort?: string;
}

const modes: Readonly<Record<RunMode, { name: string; description: string }>> = {
  sandbox: {
    name: 'Everything in the sandbox',
    description: 'Asks about no command or folder of your own skills that the sandbox holds.',
  },
  default: { name: 'Edit this workspace', description: 'Asks as your rules say.' },
  review: { name: 'Ask', description: 'Asks before each change of a file, with its lines.' },
  plan: { name: 'Look only', description: 'Only reads, and answers with a plan.' },
};

const commands: readonly AvailableCommand[] = [
  {
    name: 'compact',
    description: 'Summarize the conversation to save room',
    input: { hint: 'what to dwell on' },
  },
  { name: 'uncompact', description: 'Undo the latest /compact' },
  { name: 'undo', description: 'Put the files back as they were before the last change' },
];

/** Most models that are offered. */
const mostModels = 100;

export class Session {
  readonly #open: (choices: SessionChoices) => Telos;
  readonly #can: ClientCapabilities;
  readonly #conversation: Conversation;
  readonly #updates = new SessionUpdates();
  #telos: Telos;
  #choices: SessionChoices = {};
  #mode: RunMode = 'default';
  #running: { stop: AbortController; ended: Promise<unknown> } | undefined;
  #hasTitle: boolean;

  /** Throws the TelosError of `open`. */
  constructor(conversation: Conversation, open: (choices: SessionChoices) => Telos, can: ClientCapabilities) {
    this.#conversation = conversation;
    this.#open = open;
    this.#can = can;
    this.#telos = open({});
    this.#hasTitle = !conversation.isEmpty;
  }

  get id(): string {
    return this.#conversation.id;
  }

  /** Returns what the client shows of the session before its first prompt. */
  async state(): Promise<Omit<NewSessionResponse, 'sessionId'>> {
    const availableModes = runModes.map(id => ({ id, ...modes[id] }));
    return {
      modes: { currentModeId: this.#mode, availableModes },
      configOptions: await this.#options(),
    };
  }

  /** Tells the client which commands there are, and that servers of its own are not used. */
  async introduce(client: AgentContext, servers: readonly McpServer[]): Promise<void> {
    await this.#tell(client, {
      sessionUpdate: 'available_commands_update',
      availableCommands: await this.#commands(),
    });
    if (servers.length === 0) return;
    const named = servers.map(({ name }) => name).join(', ');
    const text = `Telos does not use the MCP servers of this editor (${beginningOf(named, 200)}). \`telos mcp add\` adds a server for all editors.\n\n`;
    await this.#tell(client, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  }

  /** Throws RequestError for a mode that there is not. */
  setMode(wanted: string): void {
    const mode = runModes.find(one => one === wanted);
    if (!mode) throw RequestError.invalidParams({ modeId: wanted }, `There is no mode ${wanted}.`);
    this.#mode = mode;
  }

  /** Returns the options with the new value. Throws RequestError for an option or a value that there is not. */
  async setOption(id: string, value: unknown): Promise<SessionConfigOption[]> {
    const wrong = RequestError.invalidParams({ configId: id, value });
    if (typeof value !== 'string') throw wrong;
    const choices = { ...this.#choices };
    const colon = value.indexOf(':');
    if (id === 'model' && colon > 0)
      Object.assign(choices, { provider: value.slice(0, colon), model: value.slice(colon + 1) });
    else if (id === 'effort' && value === automatic) delete choices.effort;
    else if (id === 'effort' && effortLevels.some(one => one === value)) choices.effort = value;
    else throw wrong;
    const telos = this.#open(choices);
    // A model that cannot be used is refused here, not at the next prompt.
    await telos.provider().catch(error => {
      throw error instanceof TelosError ? RequestError.invalidParams({ value }, error.message) : error;
    });
    [this.#telos, this.#choices] = [telos, choices];
    return this.#options();
  }

  /** Carries out a prompt. Throws RequestError while another one runs, and if it fails, with the reason. */
  async prompt(
    blocks: readonly ContentBlock[],
    client: AgentContext,
    signal: AbortSignal,
  ): Promise<PromptResponse> {
    if (this.#running)
      throw RequestError.invalidRequest(undefined, 'This session still works on a prompt. Cancel it first.');
    const stop = new AbortController();
    const ended = this.#carryOut(blocks, client, AbortSignal.any([signal, stop.signal]));
    this.#running = { stop, ended: ended.catch(() => {}) };
    try {
      return await ended;
    } finally {
      this.#running = undefined;
    }
  }

  /** Stops the prompt that runs, if any. */
  cancel(): void {
    this.#running?.stop.abort();
  }

  /** Stops the prompt that runs and the commands in its background. */
  async close(): Promise<void> {
    this.cancel();
    await this.#running?.ended;
    await this.#telos.endCommands(this.id);
  }

  async #carryOut(
    blocks: readonly ContentBlock[],
    client: AgentContext,
    signal: AbortSignal,
  ): Promise<PromptResponse> {
    const human = acpHuman({ sessionId: this.id, client, can: this.#can });
    const content = await promptContent(blocks, path => mayAttach(path, human, signal));
    if (signal.aborted) return { stopReason: 'cancelled' };
    const [, name = '', focus = ''] =
      /^\/(compact|uncompact|undo)(?:\s+([\s\S]*))?$/.exec(content.text) ?? [];
    if (name === 'undo') return this.#undo(client);
    this.#telos.refresh();
    const request = this.#conversation.next({
      ...content,
      origin: 'acp',
      answersAnyway: true,
      mode: this.#mode,
      ...(name === 'compact' && { change: { kind: 'compact', focus } }),
      ...(name === 'uncompact' && { change: { kind: 'restore' } }),
    });
    return this.#run(request, human, client, signal);
  }

  async #run(
    request: RunRequest,
    human: Human,
    client: AgentContext,
    signal: AbortSignal,
  ): Promise<PromptResponse> {
    let end: (RunEvent & { type: 'run_end' }) | undefined;
    for await (const event of this.#telos.run(request, human, signal)) {
      this.#conversation.note(event);
      for (const update of this.#updates.of(event)) await this.#tell(client, update);
      if (event.type === 'run_end') end = event;
    }
    if (!this.#hasTitle) {
      this.#hasTitle = true;
      const title = beginningOf(request.text.replace(/\s+/g, ' '), 80);
      await this.#tell(client, { sessionUpdate: 'session_info_update', title });
    }
    const { outcome = 'failed', error } = end ?? {};
    const reason = stopReasons[outcome];
    if (reason === undefined)
      throw new RequestError(-32603, error?.message ?? 'The run failed.', { outcome });
    if (error && outcome !== 'cancelled') await this.#say(client, `\n\n${error.message}`);
    return { stopReason: reason };
  }

  async #undo(client: AgentContext): Promise<PromptResponse> {
    const { changedBy } = this.#conversation;
    const id = changedBy.at(-1);
    if (id === undefined) {
      await this.#say(client, 'This session has changed no files.');
      return { stopReason: 'end_turn' };
    }
    const undone = await this.#telos.changes.undo(id);
    if (undone.outcome !== 'refused') changedBy.pop();
    await this.#say(client, undoText(undone));
    return { stopReason: 'end_turn' };
  }

  #say(client: AgentContext, text: string): Promise<void> {
    return this.#tell(client, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  }

  #tell(client: AgentContext, update: SessionUpdate): Promise<void> {
    return client.notify(methods.client.session.update, { sessionId: this.id, update });
  }

  async #commands(): Promise<AvailableCommand[]> {
    const skills = (await this.#telos.agents()).flatMap(agent => agent.skills);
    const shown = skills.filter(
      one => one.userInvocable && one.kind !== 'role' && !one.isDisabled && !one.shadowedBy,
    );
    return [
      ...commands,
      ...shown.map(({ id, description, synopsis, argumentHint }) => ({
        name: id,
        description: beginningOf(description || synopsis || id, 200),
        input: { hint: argumentHint ?? 'what to do' },
      })),
    ];
  }

  async #options(): Promise<SessionConfigOption[]> {
    const { config } = this.#telos;
    // Without a model there is none to show, and the first prompt says why.
    const inForce = await this.#telos.provider().catch(() => undefined);
    const effort: SessionConfigOption = {
      type: 'select',
      id: 'effort',
      name: 'Effort',
      category: 'thought_level',
      currentValue: this.#choices.effort ?? automatic,
      options: [automatic, ...effortLevels].map(value => ({ value, name: value })),
    };
    if (!inForce) return [effort];
    const { listModels } = await importModelList();
    const providers = await listModels(config);
    const listed = providers.flatMap(({ name, models, ready }) =>
      ready ? models.map(model => ({ value: `${name}:${model}`, name: `${model} (${name})` })) : [],
    );
    const currentValue = `${inForce.name}:${inForce.model}`;
    const current = { value: currentValue, name: `${inForce.model} (${inForce.name})` };
    const others = listed.filter(({ value }) => value !== currentValue).slice(0, mostModels);
    return [
      {
        type: 'select',
        id: 'model',
        name: 'Model',
        category: 'model',
        currentValue,
        options: [current, ...others],
      },
      effort,
    ];
  }
}

/** The effort that the settings or the model itself have. */
const automatic = 'auto';

/** An outcome without one is an error. */
const stopReasons: Readonly<Partial<Record<RunOutcome, StopReason>>> = {
  completed: 'end_turn',
  round_limit: 'max_turn_requests',
  budget: 'max_turn_requests',
  cancelled: 'cancelled',
};

function undoText(undone: UndoResult): string {
  if (undone.outcome === 'already_undone') return 'This change is undone already.';
  if (undone.outcome === 'refused')
    return 'Nothing was undone: a file is not as the run left it. `telos undo --show` shows which.';
  const count = undone.restored.length + undone.removed.length;
  return [`Undone: ${counted(count, 'file')} restored.`, undone.problem].filter(Boolean).join(' ');
}

/** Asks before a file leaves the machine that holds secrets by its name, or by the name of what it leads to. */
async function mayAttach(path: string, human: Human, signal: AbortSignal): Promise<boolean> {
  const { isSensitive } = await importSensitiveNames();
  // Reading it says that it is missing.
  const real = await realpath(path).catch(() => path);
  if (![path, real].some(isSensitive)) return true;
  const decision = await human.approve(
    {
      callId: `attach-${newToken()}`,
      token: newToken(),
      tool: 'read_file',
      subject: path,
      rule: 'attach.sensitive',
      reason: 'By its name it holds secrets. The provider of the model can read all of it.',
      scopes: ['once'],
    },
    signal,
  );
  return decision.allow;
}
