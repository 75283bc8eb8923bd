/**
 * The tools that a step of a plan brings: with them a model hands in its answer. Each checks what it is given, so that an answer is
 * in order when a step has it.
 */

import { readOnlyTools } from '@telos/engine/run';
import { skillTools, type Tool, type ToolContext, toolError } from '@telos/engine/tools';
import type { CheckResult, PlanCheck, StepName } from '@telos/protocol/plan';
import type { JsonObject, ToolResult } from '@telos/protocol/run';

/** One call of such a tool that was in order. */
export interface StepAnswer {
  tool: string;
  input: JsonObject;
}

/** What the tools reach besides their answers. */
export interface StepPorts {
  /** Puts a question to the person. Returns undefined if it is parked, since no one is there. */
  askPerson?: (
    question: { text: string; choices: readonly string[] },
    signal: AbortSignal,
  ) => Promise<string | undefined>;
  /** Checks that a reviewer may run once more, and what runs one. */
  checks?: readonly PlanCheck[];
  runCheck?: (check: PlanCheck, signal: AbortSignal) => Promise<CheckResult>;
  /** Roles that work may be given to. */
  roles?: readonly string[];
  /** Keeps a note at once. Returns what became of it, in a sentence for the model. Without it, notes are kept when the story passes. */
  learn?: (note: string) => Promise<string>;
}

/** A verdict on the work of an attempt. */
export interface Verdict {
  approved: boolean;
  /** The summary of an approval, or the reason of a denial. */
  text: string;
  /** Numbers of the boxes that an approval names. */
  items: readonly number[];
}

/** Steps that do the work. All others only look. */
export const isWorker = (name: StepName): boolean =>
  !['interview', 'plan', 'split', 'orchestrator', 'reviewer'].includes(name);

const fileTools = ['read_file', 'write_file', 'edit_file', 'list_directory', 'search_files', 'glob'];
const workerTools = skillTools.filter(({ definition: { name } }) =>
  [...fileTools, 'run_command'].includes(name),
);

/** Returns exactly the tools of a step. Calls that are in order are added to `answers`. */
export function toolsOf(name: StepName, answers: StepAnswer[], ports: StepPorts = {}): readonly Tool[] {
  const own = (isWorker(name) ? workOwn : (ownTools[name] ?? [])).map(tool =>
    answering(tool, answers, ports),
  );
  const isAsked = (tool: Tool): boolean =>
    tool.definition.name !== 'run_check' || ports.runCheck !== undefined;
  return [...(isWorker(name) ? workerTools : readOnlyTools), ...own.filter(isAsked)];
}

/** Returns the last verdict among the answers; undefined if there is none. */
export function verdictIn(answers: readonly StepAnswer[]): Verdict | undefined {
  const last = answers.findLast(({ tool }) => tool === 'approve' || tool === 'deny');
  if (!last) return undefined;
  const { summary, reason, items } = last.input;
  const numbers = Array.isArray(items) ? items.filter(one => typeof one === 'number') : [];
  const approved = last.tool === 'approve';
  return { approved, text: String((approved ? summary : reason) ?? ''), items: numbers };
}

/** A verdict as verdict.json has it. */
export interface WrittenVerdict {
  approved: boolean;
  /** Of an approval. */
  summary?: string;
  /** Of a denial. */
  reason?: string;
  /** ISO 8601. */
  timestamp: string;
}

/** Returns a verdict as verdict.json has it. */
export const writtenVerdict = ({ approved, text }: Omit<Verdict, 'items'>): WrittenVerdict => ({
  approved,
  ...(approved ? { summary: text } : { reason: text || 'No reason provided' }),
  timestamp: new Date().toISOString(),
});

/** Returns what the step noted for later ones, without repetitions. */
export const notesIn = (answers: readonly StepAnswer[]): string[] => [
  ...new Set(answers.flatMap(({ tool, input }) => (tool === 'learn' ? [String(input['note']).trim()] : []))),
];

type Fault = string | undefined;

interface OwnTool {
  name: string;
  description: string;
  properties: Readonly<Record<string, Shape>>;
  required: readonly string[];
  /** Returns what else is wrong with an input whose shape is right. */
  fault?: (input: JsonObject, ports: StepPorts) => Fault;
  /** Returns what the model reads after a call in order. */
  answer: (input: JsonObject, ports: StepPorts, context: ToolContext) => string | Promise<string>;
}

/** The part of JSON Schema that these tools use. */
interface Shape {
  type: 'string' | 'number' | 'boolean' | 'array' | 'object';
  description?: string;
  items?: Shape;
  properties?: Readonly<Record<string, Shape>>;
  required?: readonly string[];
}

const text = (description: string): Shape => ({ type: 'string', description });
const texts = (description: string): Shape => ({ type: 'array', items: { type: 'string' }, description });

/** In characters. What a person and the next model have to read. */
const longestText = 200_000;
const longestNote = 500;
const mostList = 100;

const ownTools: Partial<Record<StepName, readonly OwnTool[]>> = {
  interview: [
    {
      name: 'submit_round',
      description:
        'Hands in this round: that enough is known for a plan, or the questions to ask. Call it once.',
      properties: {
        ready: { type: 'boolean', description: 'True if a plan can be written from what is known.' },
        questions: texts(
          'Questions whose answers would change the plan, each with a suggested answer. At most 5.',
        ),
      },
      required: ['ready', 'questions'],
      fault: ({ ready, questions }) =>
        !ready && !(questions as string[]).some(one => one.trim() !== '')
          ? 'Ask at least one question, or say that you are ready'
          : undefined,
      answer: ({ ready }) => (ready ? 'The plan comes next.' : 'The person is asked.'),
    },
  ],
  plan: [
    {
      name: 'submit_plan',
      description: 'Hands in the whole plan as Markdown. A later call replaces an earlier one.',
      properties: { text: text('The plan, from its first line to its last.') },
      required: ['text'],
      fault: ({ text: plan }) => (String(plan).trim() === '' ? 'The plan is empty' : undefined),
      answer: () => 'The plan is handed in. The person reviews it.',
    },
    {
      name: 'reply_comment',
      description: 'Answers one comment of the person on the plan, beside the changed plan.',
      properties: {
        comment: text('The comment, or its number.'),
        reply: text('What was changed, or why nothing was.'),
      },
      required: ['comment', 'reply'],
      answer: () => 'The reply is kept with the comment.',
    },
  ],
  split: [
    {
      name: 'submit_story',
      description: 'Hands in one story. Call it once for each, in the order in which they are built.',
      properties: {
        title: text('What is there when the story is done, in a few words.'),
        description: text('As WHO, I want WHAT, so that WHY.'),
        role: text('coder, marketing, crm or image-generator, or a skill as agent/skill. Usually coder.'),
        depends_on: texts(
          'Ids of the stories that must be done before: US-001 is the first that is handed in.',
        ),
        touches: texts('Globs of the files that it may change, such as src/login/**.'),
        criteria: texts('Acceptance criteria. Each can be seen to be met or not.'),
        checks: {
          type: 'array',
          description: 'Commands that exit with 0 once the story is done.',
          items: {
            type: 'object',
            properties: {
              name: text('One word, such as unit.'),
              command: text('The command line, run in the project.'),
              timeout_s: { type: 'number', description: 'Seconds, if it may take more than 60.' },
              red: { type: 'boolean', description: 'True if it must fail before the story is built.' },
              outside: {
                type: 'boolean',
                description: 'True if it needs the network or a service on this machine.',
              },
            },
            required: ['name', 'command'],
          },
        },
        definition_of_done: text('Prose: what else must hold. No boxes.'),
      },
      required: ['title', 'criteria', 'checks'],
      fault: ({ title, criteria }) => {
        if (String(title).trim() === '') return '"title" is empty';
        return (criteria as string[]).some(one => one.trim() !== '') ? undefined : '"criteria" is empty';
      },
      answer: ({ title }) => `The story "${String(title)}" is handed in.`,
    },
    {
      name: 'submit_checks',
      description:
        'Hands in the checks of the whole plan, which run when all stories are done. They pass today. The last call counts.',
      properties: {
        checks: {
          type: 'array',
          items: {
            type: 'object',
            properties: { name: text('One word, such as tests.'), command: text('The command line.') },
            required: ['name', 'command'],
          },
        },
      },
      required: ['checks'],
      answer: () => 'The checks of the whole plan are handed in.',
    },
  ],
  orchestrator: [
    {
      name: 'delegate',
      description: 'Says which role works on the story, and with which instructions. The last call counts.',
      properties: {
        role: text('The role.'),
        instructions: text('What to do differently, in a few sentences.'),
        afresh: {
          type: 'boolean',
          description:
            'True to start without what the attempts so far have changed. Else it goes on from that.',
        },
      },
      required: ['role', 'instructions'],
      fault: ({ role }, { roles }) =>
        roles && !roles.includes(String(role)) ? `"role" must be one of ${roles.join(', ')}` : undefined,
      answer: ({ role }) => `${String(role)} works with these instructions.`,
    },
  ],
  reviewer: [
    {
      name: 'run_check',
      description: 'Runs a named check once more on the work, and returns its output and its exit code.',
      properties: { name: text('The name of the check.') },
      required: ['name'],
      fault: ({ name }, { checks = [] }) =>
        checks.some(check => check.name === name)
          ? undefined
          : `There is no check "${String(name)}". The checks are: ${checks.map(check => check.name).join(', ') || 'none'}`,
      answer: async ({ name }, { checks = [], runCheck }, { signal }) => {
        const check = checks.find(one => one.name === name);
        if (!check || !runCheck) return 'It cannot be run here.';
        const { exitCode, output } = await runCheck(check, signal);
        const end = exitCode === null ? 'It did not end by itself.' : `exit code ${exitCode}`;
        return `${output || '(no output)'}\n\n[${end}]`;
      },
    },
    {
      name: 'approve',
      description: 'Approves the work: every criterion that you name is met, and you have seen that it is.',
      properties: {
        summary: text('What you looked at, and why the criteria are met.'),
        items: {
          type: 'array',
          items: { type: 'number' },
          description: 'Numbers of the criteria that are met. All that were asked for, if left out.',
        },
      },
      required: ['summary'],
      fault: ({ summary }) => (String(summary).trim() === '' ? '"summary" is empty' : undefined),
      answer: ({ summary }) => `APPROVED: ${String(summary)}`,
    },
    {
      name: 'deny',
      description: 'Denies the work. The next attempt reads your reason, and nothing else of what you found.',
      properties: { reason: text('What is missing or wrong, where, and how to see it.') },
      required: ['reason'],
      fault: ({ reason }) => (String(reason).trim() === '' ? '"reason" is empty' : undefined),
      answer: ({ reason }) => `DENIED: ${String(reason)}`,
    },
  ],
};

const workOwn: readonly OwnTool[] = [
  {
    name: 'learn',
    description:
      'Notes one fact about this project that later work needs, such as how its tests are run. No news about this story.',
    properties: { note: text('One or two sentences.') },
    required: ['note'],
    fault: ({ note }) => {
      const { length } = String(note).trim();
      if (length === 0) return '"note" is empty';
      return length > longestNote
        ? `"note" has ${length} characters; the maximum is ${longestNote}`
        : undefined;
    },
    answer: async ({ note }, { learn }) => (await learn?.(String(note).trim())) ?? 'Noted.',
  },
  {
    name: 'ask_person',
    description:
      'Asks the person something that neither the story nor the files say and that must not be guessed.',
    properties: {
      question: text('One question.'),
      choices: texts('Answers to choose from, if there are a few.'),
    },
    required: ['question'],
    fault: ({ question }) => (String(question).trim() === '' ? '"question" is empty' : undefined),
    answer: async ({ question, choices }, { askPerson }, { signal }) => {
      const asked = { text: String(question), choices: Array.isArray(choices) ? choices.map(String) : [] };
      const answer = await askPerson?.(asked, signal);
      if (answer !== undefined && answer.trim() !== '') return `The person answers: ${answer}`;
      return 'No one can answer now. The question waits for the person. Do what does not depend on it, then end.';
    },
  },
];

function answering(own: OwnTool, answers: StepAnswer[], ports: StepPorts): Tool {
  const { name, description, properties, required } = own;
  return {
    definition: {
      name,
      description,
      inputSchema: { type: 'object', properties, required, additionalProperties: false },
    },
    // A check runs programs, and must not run beside another one in the same folder.
    access: name === 'run_check' ? 'execute' : 'read',
    async execute(given, context): Promise<ToolResult> {
      const input = onlyKnown(given, properties);
      const fault =
        shapeFault({ type: 'object', properties, required }, input, '') ?? own.fault?.(input, ports);
      if (fault !== undefined)
        return toolError(`${name} was not understood: ${fault}. Call it again with that corrected.`);
      const content = await own.answer(input, ports, context);
      answers.push({ tool: name, input });
      return { content, isError: false };
    },
  };
}

/** Models add explanations that no one asked for. They say nothing, and must not end up in a file. */
const onlyKnown = (input: JsonObject, properties: object): JsonObject =>
  Object.fromEntries(
    Object.entries(input).filter(([key, value]) => Object.hasOwn(properties, key) && value !== null),
  );

/** Returns what is wrong with the first part of a value that has not the shape; undefined if it has. */
function shapeFault(shape: Shape, value: unknown, path: string): Fault {
  const name = JSON.stringify(path);
  switch (shape.type) {
    case 'array': {
      if (!Array.isArray(value)) return `${name} must be a list`;
      if (value.length > mostList) return `${name} has ${value.length} entries; the maximum is ${mostList}`;
      const { items } = shape;
      return items && value.map((one, at) => shapeFault(items, one, `${path}[${at}]`)).find(fault => fault);
    }
    case 'object': {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        return `${name} must be an object`;
      const fields = value as JsonObject;
      for (const key of shape.required ?? [])
        if (fields[key] === undefined) return `"${path === '' ? key : `${path}.${key}`}" is missing`;
      return Object.entries(shape.properties ?? {})
        .filter(([key]) => fields[key] !== undefined && fields[key] !== null)
        .map(([key, part]) => shapeFault(part, fields[key], path === '' ? key : `${path}.${key}`))
        .find(fault => fault);
    }
    case 'string': {
      if (typeof value !== 'string') return `${name} must be a text`;
      return value.length > longestText ? `${name} has more than ${longestText} characters` : undefined;
    }
    default:
      return typeof value === shape.type && !Number.isNaN(value)
        ? undefined
        : `${name} must be a ${shape.type}`;
  }
}
