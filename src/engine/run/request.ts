/** Defines a request, the parts of the engine that perform it, and its run. */
import { randomUUID } from 'node:crypto';
import type { Attachment, Selection } from '@telos/protocol/attachment';
import type { StepName } from '@telos/protocol/plan';
import type { Message, RunEvent, RunMode, SkillRef, ToolCall, ToolResult } from '@telos/protocol/run';
import type { ChangeStore } from '../changes/changeStore.ts';
import type { KeptWrites } from '../changes/keptWrites.ts';
import type { Config } from '../config.ts';
import type { Budget, Effort, Human } from '../core/ports.ts';
import { type SignInPort, withoutSecrets } from '../human.ts';
import type { ServerBook } from '../mcp/serverBook.ts';
import type { Models } from '../providers/create.ts';
import type { RecordedEval, RunTape } from '../providers/recordingFile.ts';
import type { RunOrigin } from '../records/runFile.ts';
import { type Redactor, redactor, secretsIn } from '../redact.ts';
import type { RouteRequest, Router } from '../routing/route.ts';
import type { Catalog } from '../skills/catalog.ts';
import type { Tool } from '../tools/tool.ts';
import { joinedBudget, openBudget } from './budget.ts';
import type { FirstParts } from './contextMeter.ts';
import { selectionText } from './prompt.ts';

/** The conversation before a request. */
export interface EarlierConversation {
  /** The messages of the last `run_end`. */
  messages: readonly Message[];
  /**
   * The skill of the last `routed` event; an empty name means that it ran without a skill.
   * If missing, the request is routed like a first one.
   */
  skill?: SkillRef;
  /** The latest run with the skill failed or was refused. The next request is routed like a first one, and goes on with it only if no other skill is likely. */
  skillFailed?: boolean;
  /**
   * The messages do not contain the skill's text, so that it is sent again.
   * True for messages that were rebuilt from the events of a run.
   */
  skillIsUnread?: boolean;
}

/** A step of a plan: a run whose role, tools and folder are given, so that no skill is looked for. */
/** All paths are absolute. */
export interface StepBox {
  /** Secrets that the person has had copied into the working folder, so that commands see them. */
  shown: readonly string[];
  /** Folders that links in the working folder lead to. */
  alsoReadable: readonly string[];
  /** Commands of the card that the engine runs outside of the box: the setup, and checks that failed in it before the work. */
  outside: ReadonlySet<string>;
}

export interface RunStep {
  /** Names it within its plan: `US-001.a1.coder`. A recording of it has this name. */
  key: string;
  name: StepName;
  /** The whole system text. */
  system: string;
  /** Exactly the tools that are offered, besides those of the servers of `skill`. */
  tools: readonly Tool[];
  role: 'read-only' | 'worker';
  /** Where it works and its commands run: a slot, or the project. Absolute. */
  workingDir: string;
  /** Further folders that it may read. Absolute. */
  alsoReadable?: readonly string[];
  /** Files and folders that no call of it changes, such as the person's checkout. Those below any `.telos` never are. Absolute. */
  closed?: readonly string[];
  maxRounds: number;
  /** Setup and checks of the accepted card. Run unasked, word for word. */
  commands: readonly string[];
  /** Returns the file that has changed what a command does, such as `package.json`; undefined while it does what was accepted. */
  commandsChanged?: (command: string) => Promise<string | undefined>;
  /** What its commands find in the box. */
  box?: StepBox;
  /** Added to the environment of its commands. */
  env?: Readonly<Record<string, string>>;
  /** Resolves with the person's words since the last call, which are added to the next model round. That round waits for it. */
  mail?: () => Promise<readonly string[]>;
  /** The skill whose text, folder and servers it also has. */
  skill?: SkillRef;
  /** In place of the settings. `provider:model`, or a model of the provider that is set. */
  model?: string;
  /** Checked besides the limits of the settings. */
  budget?: Budget;
}

/** What a request does to its conversation instead of asking the model to go on. */
export type ContextChange = { kind: 'compact'; focus: string } | { kind: 'restore' };

export interface RunRequest extends RouteRequest {
  /** Set for a request about the conversation itself: to compact it, or to undo its latest compaction. */
  change?: ContextChange;
  /** AGENTS.md, CLAUDE.md and notes.md are not read as context. */
  withoutContextFiles?: boolean;
  /** Goes on where the latest run stopped at its limit of rounds: nothing is added if the model waits for nothing but its next round. */
  goesOn?: boolean;
  /** Set for a step of a plan. `agent`, `skill`, `withoutSkill` and `conversation` are then ignored. */
  step?: RunStep;
  /** No skill is chosen: the model answers by itself, and may use skills as steps. `agent` and `skill` are then ignored. */
  withoutSkill?: boolean;
  /** Defaults to `default`. */
  mode?: RunMode;
  /** The person chose `skill` for these very words, from which Telos learns. */
  isChoice?: boolean;
  selection?: Selection;
  /** Attachments of the request. The model reads them as material, after the words. */
  attachments?: readonly Attachment[];
  /** The conversation that the run continues, with its skill unless the request names another one. */
  conversation?: EarlierConversation;
  /** The conversation under which the run is stored, and its run that this one follows. If missing, a conversation of its own. */
  conversationId?: string;
  parentRunId?: string;
  /** The door through which the request came. Defaults to `other`. */
  origin?: RunOrigin;
  /** The span of OpenTelemetry below which the run is, as W3C writes it. */
  traceParent?: string;
  /** From Discord: a command that no rule names exactly is asked about, not refused. */
  asksCommands?: boolean;
  /** File to which the run's model turns are written, for the provider `replay`. Absolute path. */
  recordTo?: string;
  /** The eval that is recorded. */
  recordedEval?: RecordedEval;
  /** Answers calls that leave the machine in place of the network, or keeps what they return. */
  tape?: RunTape;
}

/** Returns the words together with the selection. */
export function wordsOf({ text, selection }: RunRequest): string {
  if (!selection) return text;
  const { file, line, language } = selection;
  return [text, selectionText(file, line, language, selection.text)].filter(Boolean).join('\n\n');
}

/** The parts of an open Telos that its runs share. */
export interface Engine {
  readonly config: Config;
  readonly catalog: Catalog;
  readonly models: Models;
  readonly router: Router;
  readonly changes: ChangeStore;
  /** See `FrontendParts`. */
  readonly ripgrep?: string | undefined;
  readonly signIn?: SignInPort | undefined;
  readonly openUrl?: ((url: string) => Promise<boolean>) | undefined;
  readonly book: ServerBook;
}

/** The skills that a run has used, with those that its skills have used. */
export interface SkillUses {
  count: number;
  /** How often each was used. */
  readonly times: Map<string, number>;
  /** Who may use which skill for the rest of the run. */
  readonly allowed: Set<string>;
}

/** What a step needs of the run that calls it. */
export interface CallingRun {
  human: Human;
  policy: {
    agent?: { name: string };
    memory?: { sensitive: string | undefined } | undefined;
  };
  context: { changes?: KeptWrites | undefined };
}

/** Carries out a call of `use_skill`: yields its events, and returns the answer of the skill. */
export type UseSkill = (
  call: ToolCall,
  wanted: { skill: string; request: string },
  context: CallingRun,
  signal: AbortSignal,
) => AsyncGenerator<RunEvent, ToolResult>;

/** The run whose call a step carries out. */
export interface Caller {
  /** The outermost run, which is stored and undone as one. */
  runId: string;
  /** 1 for a step of the outermost run. */
  depth: number;
  /** The agent of the calling run. */
  name: string;
  uses: SkillUses;
  /** Knows what secrets the calling run has read. */
  memory: CallingRun['policy']['memory'];
  /** The model that its skill says, which a step has that says none. */
  model?: string | undefined;
  /** Keeps what the run writes. Missing if the calling run writes nothing. */
  changes: KeptWrites | undefined;
}

/** One run: its request, the person who is asked, and what it has come to so far. */
export interface Run {
  readonly id: string;
  /** Gets the mode of its skill once that is known. */
  request: RunRequest;
  /** The folder of the call. Absolute path. */
  readonly folder: string;
  /** Is asked without the values of secrets. */
  readonly human: Human;
  /** Knows the secrets that the run has come across. */
  readonly redact: Redactor;
  /** Undefined if nothing is limited. */
  budget: Budget | undefined;
  /** How much the model thinks, if the skill says it. */
  effort?: Effort;
  /** Its model, if a skill or a caller says it. */
  model?: string | undefined;
  /** Filled during the run, like `counts`, so that its end can be reported however it ends. */
  readonly messages: Message[];
  /** What its first message is made of, once that is added. */
  firstParts?: FirstParts;
  /** Stands around the commands that the skill's text has run before the model reads it. */
  textMark?: string;
  /** Number of messages that precede this run. */
  earlier: number;
  readonly counts: { rounds: number; toolCalls: number };
  /** How long a person was waited for, in milliseconds. It is not the run's time. */
  readonly waited: { ms: number };
  /** Whether a limit of the day counts each answer as it comes. */
  readonly countsDay?: boolean;
  readonly uses: SkillUses;
  /** Set for a step of another run. */
  readonly caller?: Caller;
  useSkill?: UseSkill;
  /** What the person's own hooks want the model to know with the request. */
  fromHooks?: readonly string[];
}

/** Returns a run that starts now. */
export function newRun(request: RunRequest, human: Human, config: Config): Run {
  const redact = redactor(secretsIn(config.env));
  const waited = { ms: 0 };
  const id = randomUUID();
  return {
    id,
    request,
    folder: config.cwd,
    human: timed(withoutSecrets(human, redact.text), waited),
    redact,
    budget: joinedBudget([openBudget(config, { id, waited }), request.step?.budget]),
    messages: [],
    earlier: 0,
    counts: { rounds: 0, toolCalls: 0 },
    waited,
    countsDay: hasDayLimit(config.budget),
    uses: { count: 0, times: new Map(), allowed: new Set() },
  };
}

/** Names the conversation, whose commands share what they have in the sandbox. */
export const conversationOf = ({ id, request }: Pick<Run, 'id' | 'request'>): string =>
  request.conversationId ?? id;

const hasDayLimit = ({ maxCostPerDay, maxTokensPerDay, maxMinutesPerDay }: Config['budget']): boolean =>
  [maxCostPerDay, maxTokensPerDay, maxMinutesPerDay].some(limit => limit !== undefined);

/** Returns a Human that adds up how long its answers take. */
function timed(human: Human, waited: { ms: number }): Human {
  let [open, since] = [0, 0];
  // Of questions beside each other, the time counts once.
  const measured = async <Answer>(answer: Promise<Answer>): Promise<Answer> => {
    if (open++ === 0) since = performance.now();
    try {
      return await answer;
    } finally {
      if (--open === 0) waited.ms += performance.now() - since;
    }
  };
  return {
    ...human,
    approve: (request, signal) => measured(human.approve(request, signal)),
    ask: (questions, signal) => measured(human.ask(questions, signal)),
  };
}
