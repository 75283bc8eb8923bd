/**
 * Runs the hooks of a run. One of a pack runs in the sandbox, as far as the person lets its commands run; one of the person runs like
 * their own commands. What a hook says can hold something back or ask for more, and never lifts a prohibition or a question.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { JsonObject, Message, RunEvent, ToolCall, ToolResult } from '@telos/protocol/run';
import { asMessage, type Sentence, sentence } from '@telos/protocol/text';
import type { KeptWrites } from '../changes/keptWrites.ts';
import type { Config } from '../config.ts';
import { ProgressChannel } from '../core/calls.ts';
import { reasonOf, TelosError } from '../core/errors.ts';
import { addText, blocksOf, reminderMark } from '../core/messages.ts';
import { realPlace } from '../files/paths.ts';
import type { McpToolFacts } from '../mcp/tools.ts';
import { decide } from '../policy/decide.ts';
import { type PolicyContext, reviewOf, runPolicy } from '../policy/decision.ts';
import type { Agent } from '../skills/agent.ts';
import type { Hook, HookEvent } from '../skills/readHooks.ts';
import { hookLine } from '../skills/readHooks.ts';
import { commandEnvironment, type LineEnd, runLine } from '../tools/command.ts';
import type { RunFolders, Tool, ToolContext } from '../tools/tool.ts';
import { type ApprovalContext, approveCall, type Granted, hostQuestions } from './approval.ts';
import { executeTool } from './commandChanges.ts';
import {
  type HookAnswer,
  type HookCall,
  hookAnswer,
  hookCall,
  hookResponse,
  isAbout,
  withHookInput,
} from './hookProtocol.ts';
import { openBox } from './openBox.ts';
import { dataOf } from './runFolders.ts';

/** What hooks need of the run that they belong to. */
export interface HookedRun {
  hooks: readonly Hook[];
  /** Names the conversation for the hooks. */
  session: string;
  /** `step`: a skill that another uses; it has no start and no request of its own. `plan`: a step of a plan, which has no end either. */
  kind: 'run' | 'step' | 'plan';
  run: HookPlace;
  /** The transcript of the run, once it has one. */
  messages?: readonly Message[];
  /** Hides secrets from the hooks of packs. */
  redact?: ((text: string) => string) | undefined;
  /** Agents whose hooks run here too, with their own rights. */
  others?: readonly { agent: Agent; config: Config }[];
}

/** Where hooks run, and with which rights. */
export type HookPlace = Pick<ApprovalContext, 'human' | 'policy'> & {
  context: Omit<ToolContext, 'signal' | 'changes'> & { changes?: KeptWrites | undefined };
};

/** What all hooks of an event have said. */
interface Said {
  denied?: string;
  ask?: string;
  /** The call as a hook has changed it, and whose hook that was. */
  changed?: { call: ToolCall; by: string };
  /** Whose hook has held it back. */
  by?: string;
  context: string[];
  changedFiles: string[];
}

interface About {
  /** Fields of the event, besides those that each has. */
  fields: JsonObject;
  /** What a matcher is compared with. Without it, matchers do not count. */
  call?: HookCall;
  callId?: string;
  /** The call itself, where a hook may still change it. */
  written?: ToolCall;
}

/** Times that hooks may have a run go on at its end. */
const mostGoneOn = 3;

const ends = new Set<HookEvent>(['PostToolUse', 'Stop', 'SubagentStop', 'SessionEnd']);

export class RunHooks {
  readonly #of: HookedRun;
  readonly #told = new Set<string>();
  readonly #refused = new Set<Hook>();
  readonly #done = new Set<Hook>();
  /** By the name of the agent. */
  readonly #places = new Map<string, Promise<HookPlace>>();
  #goneOn = 0;
  /** Why the run is to end, once a hook has said so. */
  #stop: Sentence | undefined;

  constructor(of: HookedRun) {
    this.#of = of;
  }

  /** Says what the hooks have to say before anything else happens. Throws TelosError `config` if one of them refuses the request. */
  async *begin(
    prompt: string,
    messages: Message[],
    isFirst: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, void> {
    if (this.#of.kind !== 'run') return;
    if (isFirst) {
      const about = { fields: { source: 'startup' }, call: named('startup') };
      addContext(messages, (yield* this.#fire('SessionStart', about, signal)).context);
    }
    addContext(messages, yield* this.prompt(prompt, signal));
    this.#throwIfStopped();
  }

  /** Returns what hooks want the model to know with a request. Throws TelosError `config` if one of them refuses it. */
  async *prompt(prompt: string, signal: AbortSignal): AsyncGenerator<RunEvent, readonly string[]> {
    const {
      denied,
      by = '',
      context,
    } = yield* this.#fire('UserPromptSubmit', { fields: { prompt } }, signal);
    this.#throwIfStopped();
    if (denied === undefined) return context;
    throw new TelosError('config', [
      sentence('A hook of {0} does not let this request through: {1}', by === person ? yours : by, denied),
    ]);
  }

  /** Returns true if a hook runs after the call. */
  runsAfter(call: ToolCall): boolean {
    return this.#matching('PostToolUse', this.#read(call)).length > 0;
  }

  /** Returns why a call must not be carried out, or why the person has to be asked about it, and notes for the model. */
  async *before(call: ToolCall, signal: AbortSignal): AsyncGenerator<RunEvent, Omit<Said, 'changedFiles'>> {
    const said = yield* this.#fire('PreToolUse', aboutCall(call, this.#read(call)), signal);
    this.#throwIfStopped();
    return said;
  }

  /** Returns the result of a call with what hooks say of it, and with the files that they have changed. */
  async *after(
    call: ToolCall,
    result: ToolResult,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, ToolResult> {
    const read = this.#read(call);
    const about = aboutCall(call, read, { tool_response: hookResponse(read, result) });
    const written = this.#of.run.context.changes?.watchNewest();
    const { denied, by, context, ...seen } = yield* this.#fire('PostToolUse', about, signal);
    const changedFiles = [...new Set([...seen.changedFiles, ...(written?.() ?? [])])];
    const notes = [...(denied === undefined ? [] : [`A hook of ${by} objects: ${denied}`]), ...context];
    if (changedFiles.length > 0)
      notes.push(`A hook has changed ${changedFiles.join(', ')} since: read it before you edit it again.`);
    if (notes.length === 0) return result;
    return {
      ...result,
      content: [result.content, ...notes.map(note => `[${note}]`)].join('\n'),
      ...(changedFiles.length > 0 && {
        changedFiles: [...new Set([...(result.changedFiles ?? []), ...changedFiles])],
      }),
    };
  }

  /** Throws TelosError `config` once a hook has said that the run must end. */
  checkGoesOn(): void {
    this.#throwIfStopped();
  }

  /** Returns what the model is to do before the run ends; undefined if it may end. */
  async *atEnd(
    messages: readonly Message[],
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, string | undefined> {
    const { kind } = this.#of;
    if (kind === 'plan') return undefined;
    const fields = { stop_hook_active: this.#goneOn > 0, last_assistant_message: lastWords(messages) };
    const { denied, by } = yield* this.#fire(kind === 'run' ? 'Stop' : 'SubagentStop', { fields }, signal);
    if (denied === undefined || this.#stop) return undefined;
    if (this.#goneOn >= mostGoneOn) {
      const why = sentence('Hooks have had this run go on {0} times, so it ends now.', mostGoneOn);
      yield { type: 'notice', level: 'warning', ...asMessage(why) };
      return undefined;
    }
    this.#goneOn++;
    return `${reminderMark}before the run ends, a hook of ${by} wants this: ${denied}]`;
  }

  /** Returns why the conversation must not be summarized; undefined if it may be. */
  async *beforeSummary(
    trigger: 'auto' | 'manual',
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, string | undefined> {
    const fields = { trigger, custom_instructions: '' };
    return (yield* this.#fire('PreCompact', { fields, call: named(trigger) }, signal)).denied;
  }

  async *end(signal: AbortSignal): AsyncGenerator<RunEvent, void> {
    if (this.#of.kind === 'run' && !signal.aborted)
      yield* this.#fire('SessionEnd', { fields: { reason: 'other' }, call: named('other') }, signal);
  }

  /** Lets go of the sandboxes of other agents. */
  close(): void {
    for (const place of this.#places.values())
      void place.then(({ context }) => context.box?.rest?.()).catch(() => undefined);
  }

  /** Returns where a hook runs. That of another agent has its own permissions, and its own home in the sandbox. */
  #placeOf({ agent: name }: Hook): Promise<HookPlace> | HookPlace {
    const { run, others = [], session } = this.#of;
    const other =
      name === run.policy.agent?.name ? undefined : others.find(({ agent }) => agent.name === name);
    if (!other) return run;
    const known = this.#places.get(other.agent.name) ?? placeOfOther(other.agent, run, other.config, session);
    this.#places.set(other.agent.name, known);
    return known;
  }

  #throwIfStopped(): void {
    if (this.#stop) throw new TelosError('config', [this.#stop]);
  }

  #read(call: ToolCall): HookCall {
    const { workingDir, home } = this.#of.run.policy;
    return hookCall(call, { workingDir: realPlace(workingDir) ?? workingDir, home }, this.#facts(call));
  }

  #facts = ({ name }: ToolCall): McpToolFacts | undefined => this.#of.run.policy.mcpTool?.(name);

  #matching(event: HookEvent, call?: HookCall): readonly Hook[] {
    return this.#of.hooks.filter(
      hook =>
        isOf(hook, event, this.#of.kind) &&
        !this.#refused.has(hook) &&
        !(hook.once && this.#done.has(hook)) &&
        (call === undefined || isAbout(hook, call)),
    );
  }

  /** Runs the hooks of an event one after the other, until one of them holds it back. */
  async *#fire(event: HookEvent, about: About, signal: AbortSignal): AsyncGenerator<RunEvent, Said> {
    const said: Said = { context: [], changedFiles: [] };
    for (const hook of this.#matching(event, about.call)) {
      if (said.changed && !isAbout(hook, this.#read(said.changed.call))) continue;
      const started = performance.now();
      const now = said.changed ? aboutCall(said.changed.call, this.#read(said.changed.call)) : about;
      const ran = yield* this.#run(hook, event, now, signal);
      if (ran === undefined) continue;
      this.#done.add(hook);
      const { answer, changedFiles } = ran;
      yield* this.#report(hook, event, about, ran, performance.now() - started);
      if (answer.message !== undefined)
        yield {
          type: 'notice',
          level: 'info',
          ...asMessage(sentence('Hook of {0}: {1}', whoseOf(hook), answer.message)),
        };
      said.changedFiles.push(...changedFiles);
      if (answer.context !== undefined) said.context.push(answer.context);
      if (answer.stop !== undefined)
        this.#stop = sentence('A hook of {0} ended the run: {1}', whoseOf(hook), answer.stop);
      if (answer.input && about.written)
        said.changed = {
          call: withHookInput(said.changed?.call ?? about.written, answer.input, this.#facts(about.written)),
          by: hook.agent ?? person,
        };
      if (answer.verdict === 'ask') said.ask ??= answer.reason;
      if (answer.verdict === 'deny') Object.assign(said, { denied: answer.reason, by: hook.agent ?? person });
      if (said.denied !== undefined || this.#stop) break;
    }
    return said;
  }

  *#report(
    hook: Hook,
    event: HookEvent,
    { callId }: About,
    { answer, changedFiles }: Ran,
    durationMs: number,
  ): Generator<RunEvent, void> {
    const { did, words } = doneBy(event, answer, changedFiles);
    const problem = answer.problem && asMessage(answer.problem);
    // The same problem each time would only bury the rest.
    const key = JSON.stringify([hookLine(hook), problem?.message]);
    const isNews = problem !== undefined && !this.#told.has(key);
    if (isNews) this.#told.add(key);
    yield {
      type: 'hook',
      event,
      agent: hook.agent ?? '',
      command: hook.command,
      did,
      ...(callId !== undefined && { callId }),
      ...(words !== undefined && { said: words }),
      ...(changedFiles.length > 0 && { changedFiles: [...changedFiles] }),
      ...(isNews && { problem }),
      durationMs: Math.round(durationMs),
    };
  }

  /** Returns what a hook reads. Those of packs get no secret that is known here. */
  #input({ agent }: Hook, event: HookEvent, { fields }: About, transcript: string): string {
    const { session, run, redact } = this.#of;
    const { workingDir, mode } = run.policy;
    const text = JSON.stringify({
      session_id: session,
      transcript_path: transcript,
      cwd: realPlace(workingDir) ?? workingDir,
      permission_mode: mode === 'plan' ? 'plan' : 'default',
      hook_event_name: event,
      ...fields,
    });
    return agent === undefined || !redact ? text : redact(text);
  }

  /** Writes the conversation where the hook can read it, as Claude Code writes it. Undefined if the event has nothing of it. */
  #transcript({ agent }: Hook, event: HookEvent, { context, policy }: HookPlace): Transcript | undefined {
    const { messages, redact } = this.#of;
    if (!messages || (!ends.has(event) && event !== 'PreCompact') || event === 'PostToolUse')
      return undefined;
    const isBoxed = agent !== undefined && context.box !== undefined;
    const shared = isBoxed
      ? policy.standIns?.find(({ path, place }) => path === '/tmp' || path === place)
      : undefined;
    if (isBoxed && !shared) return undefined;
    const name = `telos-transcript-${randomUUID()}.jsonl`;
    const file = join(shared?.place ?? tmpdir(), name);
    const lines = messages
      .filter(({ context: kind }) => !kind)
      .map(({ role, content }) => {
        const blocks = blocksOf({ role, content });
        return JSON.stringify({ type: role, message: { role, content: blocks } });
      });
    const text = lines.map(line => `${agent === undefined || !redact ? line : redact(line)}\n`).join('');
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, text, { mode: 0o600 });
    return { file, path: join(shared?.path ?? tmpdir(), name) };
  }

  /** Runs one hook. Returns undefined if the person has switched it off. Throws the abort reason. */
  async *#run(
    hook: Hook,
    event: HookEvent,
    about: About,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, Ran | undefined> {
    let transcript: Transcript | undefined;
    try {
      const run = await this.#placeOf(hook);
      transcript = this.#transcript(hook, event, run);
      const stdin = this.#input(hook, event, about, transcript?.path ?? '');
      return yield* this.#runWith(stdin, hook, run, signal);
    } catch (error) {
      // A full disk or a folder that cannot be made ends no run.
      signal.throwIfAborted();
      const problem = sentence('It cannot be run: {0}', reasonOf(error));
      return { answer: { reason: '', problem }, changedFiles: [] };
    } finally {
      if (transcript) rmSync(transcript.file, { force: true });
    }
  }

  async *#runWith(
    stdin: string,
    hook: Hook,
    run: HookPlace,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, Ran | undefined> {
    const { workingDir } = run.policy;
    mkdirSync(workingDir, { recursive: true });
    const line = this.#lineOf(hook, run);
    const call: ToolCall = {
      id: `hook-${randomUUID()}`,
      name: 'run_command',
      input: { command: line, cwd: workingDir },
    };
    let end: LineEnd | { refusal: string } | undefined;
    const tool: Tool = {
      definition: { name: call.name, description: '', inputSchema: { type: 'object' } },
      access: 'execute',
      async execute(_, context) {
        const limits = { timeoutMs: hook.seconds * 1000, stdin };
        end = await runLine(line, { ...context, commandDir: workingDir }, limits);
        return { content: '', isError: false };
      },
    };
    const granted = yield* this.#permit(hook, call, tool, run, signal);
    if (granted === 'off') return undefined;
    if (!('granted' in granted)) {
      this.#refused.add(hook);
      return { answer: { reason: '', problem: granted }, changedFiles: [] };
    }
    const channel = new ProgressChannel();
    const report = channel.of(call);
    const context = this.#contextFor(hook, granted, run, report.through, signal);
    const isWatched = hook.agent !== undefined || ends.has(hook.event);
    const work = (
      isWatched ? executeTool({ ...granted, tool }, context, run, report.through) : tool.execute({}, context)
    ).finally(() => report.end());
    const settled = work.then(
      result => ({ result }),
      (error: unknown) => ({ error }),
    );
    yield* channel.until(settled);
    const over = await settled;
    if ('error' in over) throw over.error;
    const { content, changedFiles = [] } = over.result;
    if (!end || 'refusal' in end)
      return {
        answer: { reason: '', problem: sentence('It cannot be run: {0}', end?.refusal ?? content) },
        changedFiles,
      };
    const answer = hookAnswer(hook.event, end, hook.seconds);
    const context_ = [answer.context, content.trim() || undefined].filter(Boolean).join('\n');
    return { answer: { ...answer, ...(context_ !== '' && { context: context_ }) }, changedFiles };
  }

  /** Returns the right to run a hook, why it has none, or that the person has switched it off. */
  async *#permit(
    hook: Hook,
    call: ToolCall,
    tool: Tool,
    run: HookPlace,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, Granted | Sentence | 'off'> {
    const own: Granted = {
      ...{ granted: true, tool, call, approvedSubject: String(call.input['command']), variables: {} },
      policy: { action: 'allow', rule: 'hook.own' },
    };
    if (hook.agent === undefined) return own;
    const decision = await decide(call, run.policy);
    if (decision.action === 'deny') return sentence('It may not run: {0}', decision.reason);
    const review = await reviewOf(run.policy);
    const accepted = review?.state === 'reviewed' ? review.review?.hooks : undefined;
    if (accepted && review?.files.escapes.length === 0) {
      if (!accepted.includes(hookLine(hook))) return 'off';
      // Who reviews each change has not agreed to those of a hook.
      const isReviewed = run.policy.mode === 'review';
      const isInsisting =
        decision.action === 'ask' && !/^(?:run\.command|mode\.review|card\.\w+)$/.test(decision.rule);
      if (!isInsisting && !isReviewed)
        return {
          ...own,
          ...(decision.folder !== undefined && { approvedFolder: decision.folder }),
          policy: { action: 'allow', rule: 'card.hook' },
        };
    }
    const outcome = yield* approveCall(call, { ...run, tools: [tool] }, signal);
    return outcome.granted ? outcome : sentence('It may not run: {0}', outcome.refusal);
  }

  #contextFor(
    hook: Hook,
    { call, approvedSubject, approvedFolder, variables, policy }: Granted,
    run: HookPlace,
    through: Parameters<typeof hostQuestions>[2],
    signal: AbortSignal,
  ): ToolContext {
    const { box, ...rest } = run.context;
    const { workingDir } = run.policy;
    const isBoxed = hook.agent !== undefined && box !== undefined;
    return {
      ...rest,
      ...(isBoxed && { box, askHost: hostQuestions(call, run, through, signal) }),
      env: {
        ...(policy.rule === 'hook.own' ? {} : variables),
        ...rest.env,
        CLAUDE_PLUGIN_ROOT: hook.root,
        CLAUDE_PROJECT_DIR: hook.project ?? realPlace(workingDir) ?? workingDir,
      },
      signal,
      approvedSubject,
      ...(approvedFolder !== undefined && { approvedFolder }),
    };
  }

  /** Returns the command with its folders, so that what is decided on is what runs. A folder that a shell would take apart stays a variable. */
  #lineOf({ command, root, skill, project: ofHook }: Hook, { policy: { pluginData } }: HookPlace): string {
    const { workingDir, skillDir } = this.#of.run.policy;
    const project = ofHook ?? realPlace(workingDir) ?? workingDir;
    const places = {
      ...{ CLAUDE_PLUGIN_ROOT: root, CLAUDE_PROJECT_DIR: project, CLAUDE_SKILL_DIR: skillDir },
      CLAUDE_PLUGIN_DATA: pluginData,
    };
    let line = command;
    for (const [name, place] of Object.entries(places))
      if (place !== undefined && /^[\w./@+-]+$/.test(place)) line = line.replaceAll(`\${${name}}`, place);
    // A path beside the skill, as authors write it.
    const [path] = /^\.\/[^\s;&|'"$]+/.exec(line) ?? [];
    const beside = path !== undefined && !existsSync(join(workingDir, path)) ? [skillDir, root] : [];
    const found = beside.find(
      folder => (skill !== undefined || folder === root) && existsSync(join(folder, path ?? '')),
    );
    return found === undefined || path === undefined ? line : join(found, path) + line.slice(path.length);
  }
}

async function placeOfOther(
  agent: Agent,
  { human, policy, context }: HookPlace,
  config: Config,
  session: string,
): Promise<HookPlace> {
  const { workingDir, workFolders = [] } = context;
  const { packDir } = agent;
  const folders: RunFolders = {
    ...{ workingDir, workFolders, packDir, skillDir: packDir, commandDir: workingDir },
    ...dataOf(agent, config),
  };
  const { mode, surface } = policy;
  const own: PolicyContext = {
    ...runPolicy(config, agent, folders),
    ...(mode && { mode }),
    ...(surface && { surface }),
  };
  const opened = await openBox(config, folders, session, own, { sharesNetwork: true });
  Object.assign(own, opened.facts);
  const { box: _, ...rest } = context;
  const env = commandEnvironment({ ...config.env, HOME: config.home }, folders, config.dataDir);
  const changed = { ...rest, ...folders, env, ...(opened.box && { box: opened.box }) };
  return { human, policy: own, context: changed };
}

/** A conversation in a file. */
interface Transcript {
  file: string;
  /** As the hook sees it. */
  path: string;
}

interface Ran {
  answer: HookAnswer;
  changedFiles: readonly string[];
}

/** Returns what a hook of an event has done, for the record, and the words that it came with. */
function doneBy(
  event: HookEvent,
  { verdict, reason, stop, context, input, problem }: HookAnswer,
  changedFiles: readonly string[],
): Pick<Extract<RunEvent, { type: 'hook' }>, 'did'> & { words?: string } {
  if (stop !== undefined) return { did: 'stopped', words: stop };
  if (verdict === 'deny') {
    const did = /^(?:PostToolUse|Stop|SubagentStop)$/.test(event) ? 'objected' : 'denied';
    return { did, words: reason };
  }
  if (verdict === 'ask') return { did: 'asked', words: reason };
  if (problem !== undefined) return { did: 'failed' };
  if (changedFiles.length > 0) return { did: 'changed' };
  if (input !== undefined && event === 'PreToolUse') return { did: 'rewrote', words: JSON.stringify(input) };
  return context === undefined ? { did: 'passed' } : { did: 'informed', words: context };
}

/** For the model, and for the person. */
const person = 'the user';
const yours = sentence('your own');

const whoseOf = ({ agent }: Hook): string | Sentence => agent ?? yours;

/** The end of a skill that another uses is the end of that skill's own run. */
const isOf = (hook: Hook, event: HookEvent, kind: HookedRun['kind']): boolean =>
  hook.event === event ||
  (kind === 'step' && event === 'SubagentStop' && hook.event === 'Stop' && hook.skill !== undefined);

const named = (name: string): HookCall => ({ names: [name], input: {} });

const aboutCall = (written: ToolCall, call: HookCall, response?: JsonObject): About => ({
  fields: { tool_name: call.names[0], tool_input: call.input, tool_use_id: written.id, ...response },
  call,
  callId: written.id,
  ...(response === undefined && { written }),
});

/** Adds words of hooks to the transcript. */
export function addContext(messages: Message[], context: readonly string[]): void {
  for (const text of context) addText(messages, `${reminderMark}a hook adds this:\n${text}]`);
}

function lastWords(messages: readonly Message[]): string {
  const last = messages.findLast(({ role, context }) => role === 'assistant' && !context);
  if (!last) return '';
  return blocksOf(last)
    .flatMap(block => (block.type === 'text' ? [block.text] : []))
    .join('');
}
