/** Lists the commands below `telos plan`. Their files load when one is called. */
import type { SteerCommand } from '@telos/protocol/plan';
import { Argument, amount, type CliCommand, type CommandCall, Option, versionIn } from './parser.ts';
import type { PlanOptions } from './planCommands.ts';
import type { RunPlanOptions } from './planRunCommand.ts';

const documents = () => import('./planCommands.ts');
const running = () => import('./planRunCommand.ts');
const going = () => import('./planGoCommand.ts');
const finishing = () => import('./planFinishCommand.ts');

const plan = new Argument('[plan]', 'its name; the only plan if none is named');
const story = new Argument('<story>', 'such as US-003');
const json = () => new Option('--json', 'print as JSON');
const ofPlan = () => new Option('--plan <name>', 'the plan; the only one if none is named');
const limits = () => [
  new Option('--max-cost <dollars>', 'pause when the plan has cost this much').argParser(amount),
  new Option('--max-tokens <number>', 'pause when it has used this many tokens').argParser(amount),
  new Option('--max-minutes <number>', 'pause when it has worked this long').argParser(amount),
];
const optionsOf = ({ options }: CommandCall) => options as PlanOptions & RunPlanOptions;

/** A command that tells the plan's runner something. */
const steering = (
  name: string,
  description: string,
  taken: readonly Argument[],
  command: (call: CommandCall) => SteerCommand,
  more: readonly Option[] = [],
): CliCommand => ({
  name,
  description,
  arguments: taken,
  options: () => [ofPlan(), ...more],
  run: async call => {
    const named = taken[0] === plan ? call.word : (call.options['plan'] as string | undefined);
    return (await documents()).steerCommand(named, command(call), optionsOf(call), call.terminal);
  },
});

const aboutStory = (kind: 'skip' | 'redo' | 'accept' | 'reopen', description: string): CliCommand =>
  steering(
    kind,
    description,
    [story],
    ({ words: [id], options }) => ({
      kind,
      story: id,
      ...(options['why'] && { why: String(options['why']) }),
    }),
    [new Option('--why <text>', 'a reason; who builds the story again reads it')],
  );

const commandsBelow = (): CliCommand[] => [
  {
    name: 'demo',
    description: 'try a plan: a small project, real checks, a recorded model',
    options: () => [json()],
    run: async call =>
      (await import('./planDemoCommand.ts')).planDemoCommand(optionsOf(call), call.terminal, call.samples),
  },
  {
    name: 'go',
    description: 'from a goal to a merged branch in one command; the same command goes on where it was left',
    arguments: [new Argument('[goal...]', 'what you want; without it, the plan that is there')],
    options: () => [
      new Option('--name <name>', 'its name'),
      new Option('--no-more-questions', 'plan with what is known'),
      new Option('--context <folder...>', 'further folders with notes, pictures and documents'),
      new Option('--parallel <number>', 'this many stories at a time'),
      new Option('--unattended', 'no one can answer: questions wait, other stories continue'),
      new Option('--retry', 'also stories that have failed'),
      ...limits(),
      new Option('--merge', 'merge it at the end without asking'),
      new Option('--squash', 'the same, as one commit'),
      new Option('--yes', 'ask no more questions, and approve the plan and its permissions'),
      new Option('--replay <folder>', 'play recordings of the steps instead of asking a model'),
      json(),
    ],
    run: async call => (await going()).goCommand(call.word || undefined, optionsOf(call), call.terminal),
  },
  {
    name: 'new',
    description: 'start a plan with its goal, and ask what it needs to know',
    arguments: [new Argument('<goal...>')],
    options: () => [
      new Option('--name <name>', 'its name'),
      new Option('--no-more-questions', 'plan with what is known'),
      new Option('--context <folder...>', 'further folders with notes, pictures and documents'),
      new Option('--replay <folder>', 'play recordings of the steps instead of asking a model'),
      json(),
    ],
    run: async call => (await documents()).newPlanCommand(call.words[0], optionsOf(call), call.terminal),
  },
  {
    name: 'quick',
    description: 'carry out one story without an interview, with the same checks and review',
    arguments: [new Argument('<goal...>')],
    options: () => [
      new Option('--check <command>', 'must exit with 0 before it passes').makeOptionMandatory(),
      new Option('--name <name>', 'its name'),
      ...limits(),
      new Option('--yes', 'approve its permissions without asking'),
      new Option('--replay <folder>', 'play recordings of the steps'),
      json(),
    ],
    run: async call => (await running()).quickPlanCommand(call.words[0], optionsOf(call), call.terminal),
  },
  {
    name: 'adopt',
    description: 'make a plan from one that you have: ralph, spec-kit, Kiro or boxes in Markdown',
    arguments: [new Argument('<path>')],
    options: () => [
      new Option('--name <name>', 'its name'),
      new Option('--write-back', 'tick in the source what the plan has done since; asks first'),
      new Option('--yes', 'tick without being asked'),
      json(),
    ],
    run: async call => (await documents()).adoptCommand(call.words[0], optionsOf(call), call.terminal),
  },
  {
    name: 'interview',
    description: 'continue the interview',
    arguments: [plan],
    options: () => [
      new Option('--transcript <file>', 'in place of interview.md; - reads it from the input'),
      new Option('--no-more-questions', 'plan with what is known'),
      new Option('--replay <folder>', 'play recordings of the steps'),
      json(),
    ],
    run: async call => (await documents()).interviewCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'write',
    description: 'have plan.md written, or rewritten',
    arguments: [plan],
    options: () => [
      new Option('--changes <text>', 'what should change'),
      new Option('--replay <folder>', 'play recordings of the steps'),
    ],
    run: async call => (await documents()).writePlanCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'split',
    description: 'split the approved plan into stories, or one story into smaller ones',
    arguments: [plan],
    options: () => [
      new Option('--story <story>', 'only this one, which its run then splits'),
      new Option('--replay <folder>', 'play recordings of the steps'),
    ],
    run: async call => {
      const { splitPlanCommand, steerCommand } = await documents();
      const { story: only } = call.options;
      if (only === undefined) return splitPlanCommand(call.word, optionsOf(call), call.terminal);
      const command = { kind: 'split', story: String(only) } as const;
      return steerCommand(call.word, command, optionsOf(call), call.terminal);
    },
  },
  {
    name: 'setup',
    description: 'show or set how the worktrees of a plan are set up, such as "npm ci"',
    arguments: [new Argument('[command...]', 'each in quotes; they replace those of before')],
    options: () => [
      ofPlan(),
      new Option('--keep <path...>', 'what stays in a worktree from story to story, such as node_modules'),
      new Option('--link <path...>', 'what each worktree links to in your checkout'),
      new Option('--copy <path...>', 'files that each worktree gets from your checkout'),
      new Option('--detect', 'take what the lock files of the project say'),
      new Option('--clear', 'no commands, and nothing kept, linked or copied'),
      json(),
    ],
    run: async call => (await running()).setupPlanCommand(call.list, optionsOf(call), call.terminal),
  },
  {
    name: 'approve',
    description: 'approve plan.md, or the permissions: commands and folders of the plan',
    arguments: [plan],
    options: () => [
      new Option('--plan', 'plan.md'),
      new Option('--card', 'the permissions'),
      new Option('--yes', 'do not ask for confirmation'),
      json(),
    ],
    run: async call => (await running()).approveCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'run',
    description: 'work on the stories until all have passed',
    arguments: [plan],
    options: () => [
      new Option('--parallel <number>', 'this many stories at a time'),
      new Option('--unattended', 'no one can answer: questions wait, other stories continue'),
      new Option('--only <story>', 'only this story'),
      new Option('--from <story>', 'this story and those after it'),
      new Option('--until <story>', 'this story and those before it'),
      new Option('--retry', 'also stories that have failed'),
      ...limits(),
      new Option('--record <folder>', 'write recordings of the steps there'),
      new Option('--replay <folder>', 'play recordings of the steps'),
      new Option('--workers [url]', 'work on the workers of this database; TELOS_DATABASE_URL by default'),
      new Option('--label <label>', 'with --workers: only those with this label'),
      new Option('--remote <name>', 'with --workers: the git remote that they get the work from'),
      json(),
    ],
    run: async call =>
      (await running()).runPlanCommand(
        call.word,
        { ...optionsOf(call), version: versionIn(new URL('../../package.json', call.samples)) },
        call.terminal,
      ),
  },
  {
    name: 'watch',
    description: 'show what happens, live; Ctrl-C ends only this view',
    arguments: [plan],
    options: () => [json()],
    run: async call => (await running()).watchPlanCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'show',
    description: 'show a plan and its stories, or list all plans',
    arguments: [plan],
    options: () => [json()],
    run: async call => (await documents()).showPlanCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'status',
    description: 'the same as show',
    arguments: [plan],
    options: () => [json()],
    run: async call => (await documents()).showPlanCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'graph',
    description: 'show which stories can run at the same time',
    arguments: [plan],
    run: async call => (await documents()).graphCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'next',
    description: 'show the next story',
    arguments: [plan],
    options: () => [json()],
    run: async call => (await documents()).nextStoryCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'check',
    description: 'run the checks of a story, or all, without a model',
    arguments: [new Argument('[story]', 'all stories if none is named')],
    options: () => [ofPlan(), json()],
    run: async call => (await finishing()).checkCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'diff',
    description: 'show what a story changed',
    arguments: [story],
    options: () => [ofPlan(), new Option('--attempt <number>', 'in this attempt, even if it did not pass')],
    run: async call => (await finishing()).diffCommand(call.words[0], optionsOf(call), call.terminal),
  },
  steering('pause', 'stop before the next step of the model', [plan], () => ({ kind: 'pause' })),
  steering('resume', 'go on after a pause', [plan], () => ({ kind: 'resume' })),
  steering(
    'stop',
    'end the run after the current step',
    [plan],
    ({ options }) => ({ kind: 'stop', when: options['now'] ? 'now' : 'after-step' }),
    [new Option('--now', 'now; changes are kept')],
  ),
  steering('tell', 'say something to a story’s coder', [story, new Argument('<text...>')], ({ words }) => ({
    kind: 'tell',
    story: words[0],
    text: words[1],
  })),
  steering(
    'answer',
    'answer an open question',
    [new Argument('<question>', 'its id, as show lists it'), new Argument('<text...>')],
    ({ words: [id, text] }) => ({ kind: 'answer', id, text }),
  ),
  aboutStory('skip', 'leave a story out'),
  aboutStory('redo', 'start a story over; with --why also one that has passed'),
  aboutStory('accept', 'mark a story as done, whatever its checks say'),
  aboutStory('reopen', 'reopen a story that was done, with --why'),
  steering(
    'budget',
    'raise the cost limit of the plan, so that it continues',
    [plan],
    ({ options }) => ({ kind: 'budget', add: { maxCost: Number(options['add']) } }),
    [new Option('--add <dollars>', 'how much to add').argParser(amount).makeOptionMandatory()],
  ),
  {
    name: 'finish',
    description: 'bring the stories that passed to your branch, or end the plan without them',
    arguments: [plan],
    options: () => [
      new Option('--merge', 'merge it into the branch that is checked out'),
      new Option('--squash', 'as one commit'),
      new Option('--pr', 'push the branch and open a pull request with gh; asks first'),
      new Option('--keep', 'keep the plan’s branch as it is'),
      new Option('--drop', 'delete the branch, after asking'),
      new Option('--yes', 'do not ask for confirmation'),
    ],
    run: async call => (await finishing()).finishCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'clean',
    description: 'remove the worktrees, refs and patches of finished plans; their reports stay',
    arguments: [new Argument('[plan]', 'its name; all finished plans if none is named')],
    run: async call => (await finishing()).cleanCommand(call.word, optionsOf(call), call.terminal),
  },
  {
    name: 'remove',
    description: 'remove a plan with all that it has, after asking',
    arguments: [new Argument('<plan>', 'its name')],
    options: () => [new Option('--yes', 'do not ask for confirmation')],
    run: async call => (await finishing()).removeCommand(call.words[0], optionsOf(call), call.terminal),
  },
  {
    name: 'doctor',
    description: 'show what prevents plans in this folder',
    options: () => [json()],
    run: async call => (await documents()).planDoctorCommand(optionsOf(call), call.terminal),
  },
];

export const planCommand: CliCommand = {
  name: 'plan',
  description: 'carry out something large: interview, plan, stories, checks, review',
  // Thirty commands with their options, which few starts ask for.
  get inner() {
    return commandsBelow();
  },
};
