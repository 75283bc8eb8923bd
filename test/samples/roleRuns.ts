/** The evals of the roles of the long work: what each does with a request, played by a model that is written by hand. */
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Provider, StreamEvent } from '../../src/engine/core/ports.ts';
import { denyAll } from '../../src/engine/human.ts';
import { contentDigest } from '../../src/engine/skills/skillDigest.ts';
import { Telos } from '../../src/engine/telos.ts';
import { applyCheck, type Graded, type RunFacts } from '../../src/evals/checks.ts';
import { type EvalCase, readEvals } from '../../src/evals/evalFile.ts';
import { runStep, type StepEnd } from '../../src/plans/steps.ts';
import { openMachine } from '../harness/machine.ts';
import { turn } from './sampleRuns.ts';

export const roleNames = ['plan', 'coder', 'reviewer'] as const;
export type RoleName = (typeof roleNames)[number];

/** A role has no SKILL.md, since nothing routes to it: its text is in roles.ts. Its folder has evals only. */
const folderOf = (role: RoleName): string => fileURLToPath(new URL(`./roles/${role}/`, import.meta.url));

export const evalsOf = (role: RoleName): EvalCase[] => readEvals(folderOf(role)) ?? [];

export const recordingOf = (role: RoleName, { id }: EvalCase): string =>
  join(folderOf(role), 'evals', 'recordings', `${id}.jsonl`);

export interface RoleResult {
  end: StepEnd;
  graded: Graded[];
}

/**
 * Runs a role's step in a fresh folder with the files of the eval, and returns what its checks say. `providerFor` gets the home folder.
 * `recordTo` is a folder.
 */
export async function runRole(
  role: RoleName,
  one: EvalCase,
  providerFor: (home: string) => Provider,
  { recordTo, sandbox = 'off' }: { recordTo?: string; sandbox?: string } = {},
): Promise<RoleResult> {
  const machine = openMachine();
  try {
    for (const { source, path } of one.files) {
      mkdirSync(dirname(join(machine.work, path)), { recursive: true });
      cpSync(source, join(machine.work, path));
    }
    const before = digestsIn(machine.work);
    const config = machine.loadConfig({ TELOS_PROVIDER: 'eval', TELOS_SANDBOX: sandbox });
    const provider = providerFor(config.home);
    const providers = { eval: { model: async () => provider.model, create: async () => provider } };
    const calls = new Map<string, number>();
    const end = await runStep(
      Telos.open(config, { providers }),
      {
        key: String(one.id),
        name: role,
        words: one.prompt,
        plan: 'eval',
        workingDir: machine.work,
        commands: ['node check.mjs'],
        recordTo,
        onEvent: event => {
          if (event.type === 'tool_start') calls.set(event.call.name, (calls.get(event.call.name) ?? 0) + 1);
        },
      },
      denyAll,
      new AbortController().signal,
    );
    const after = digestsIn(machine.work);
    const paths = new Set([...before.keys(), ...after.keys()]);
    const changed = [...paths].filter(path => before.get(path) !== after.get(path)).sort();
    const facts: RunFacts = {
      workDir: machine.work,
      outcome: end.outcome,
      answer: end.text,
      calls,
      changed,
      tokens: 0,
      cost: 0,
    };
    const graded: Graded[] = [];
    for (const check of one.checks) graded.push(await applyCheck(check, facts, async () => 'no commands'));
    return { end, graded };
  } finally {
    machine.remove();
  }
}

const digestsIn = (folder: string): Map<string, string> =>
  new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => {
        const path = join(entry.parentPath, entry.name);
        return [path.slice(folder.length + 1).replaceAll('\\', '/'), contentDigest(readFileSync(path))];
      }),
  );

const discount = [
  'export const totalOf = (lines, discount = 0) =>',
  '  lines.reduce((sum, { price, count }) => sum + price * count, 0) * (1 - discount);',
  '',
].join('\n');
const plan = [
  '# Plan',
  '',
  'North Star: a code takes a share off the total.',
  'Architecture: totalOf of order.mjs takes a discount as its second value.',
  'Tech stack: nothing new.',
  'Approach: the function first, then the code that the customer enters.',
  'Sequencing: total, then codes.',
  'Risks: cents that do not come out even.',
  'Open questions: are codes added to each other? Assumed: no.',
].join('\n');

/** Turns by role and eval. */
export const roleTurns: Readonly<Record<RoleName, Readonly<Record<string, StreamEvent[][]>>>> = {
  plan: {
    discount: [
      turn(
        'I look at the project.',
        ['read_file', { path: 'README.md' }],
        ['read_file', { path: 'order.mjs' }],
      ),
      turn('', ['submit_plan', { text: plan }]),
      turn('The plan is handed in.'),
    ],
    comment: [
      turn('', ['read_file', { path: 'order.mjs' }]),
      turn(
        '',
        ['submit_plan', { text: plan }],
        ['reply_comment', { comment: '1', reply: 'The plan adds no library any more.' }],
      ),
      turn('The comment is answered.'),
    ],
  },
  coder: {
    builds: [
      turn(
        'I look at the code and its check.',
        ['read_file', { path: 'order.mjs' }],
        ['read_file', { path: 'check.mjs' }],
      ),
      turn('', ['write_file', { path: 'order.mjs', content: discount }]),
      turn('', ['run_command', { command: 'node check.mjs' }]),
      turn('totalOf takes a discount as its second value, 0 if none is given. The check passes.'),
    ],
    denied: [
      turn('', ['read_file', { path: 'order.mjs' }]),
      turn('', ['write_file', { path: 'order.mjs', content: discount }]),
      turn(
        '',
        ['run_command', { command: 'node check.mjs' }],
        ['learn', { note: 'check.mjs runs without a test runner: node check.mjs' }],
      ),
      turn('The discount is taken off in totalOf; check.mjs is as it was.'),
    ],
  },
  reviewer: {
    meets: [
      turn('', ['read_file', { path: 'order.mjs' }], ['read_file', { path: 'check.mjs' }]),
      turn('', [
        'approve',
        { summary: 'totalOf takes the share off, and check.mjs fails without it.', items: [1] },
      ]),
      turn('It passes.'),
    ],
    swallows: [
      turn('', ['read_file', { path: 'swallowed.mjs' }]),
      turn('', [
        'deny',
        { reason: 'swallowed.mjs returns an empty list for a file that cannot be read, and says nothing.' },
      ]),
      turn('It does not pass.'),
    ],
  },
};
