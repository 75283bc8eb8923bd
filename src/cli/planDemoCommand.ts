/** Implements `telos plan demo`: a whole plan in a folder of its own, with real checks and a recorded model. */
import { cpSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../engine/config.ts';
import { allowAll } from '../engine/human.ts';
import { Telos } from '../engine/telos.ts';
import { Git } from '../engine/workflow/git.ts';
import { Plan } from '../engine/workflow/plan.ts';
import { exitCodes, type PlanCall } from './planCommands.ts';
import { type RunPlanOptions, runNamed } from './planRunCommand.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { terminalText } from './terminalText.ts';

const goal = 'Give the bakery a discount on rolls, receipts and opening hours';
const answers = ['10 % from ten rolls on', 'English'];

/** Plays the demo. `samples` lies beside its files. Returns the exit code of the plan. */
export async function planDemoCommand(
  options: RunPlanOptions,
  terminal: Terminal,
  samples: URL,
): Promise<number> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'telos-plan-')));
  const repo = join(home, 'bakery');
  const recordings = fileURLToPath(new URL('../plan-demo/model/', samples));
  cpSync(fileURLToPath(new URL('../plan-demo/project/', samples)), repo, { recursive: true });
  // Nothing of the person's own is read: no key, no rule, no skill.
  const env = { PATH: process.env['PATH'], HOME: home };
  const config = loadConfig({ env, home, cwd: repo, provider: 'replay', replayFile: recordings });
  const telos = Telos.open(config);
  const interrupts = abortOnInterrupt(() => {});
  const { signal } = interrupts;
  const call: PlanCall = { config, telos, repo, human: allowAll, signal, terminal };
  const say = (text: string): void => void (options.json || terminal.say(terminalText(text)));
  try {
    await makeRepository(repo, env);
    say(`A small project, in ${repo}\n\nYou: ${goal}`);
    const plan = await Plan.create(repo, goal, { runs: telos, human: allowAll, by: 'cli' }, 'bakery');
    await interview(plan, say, signal);
    await plan.write(signal);
    say(`\n${plan.folder.read('plan.md') ?? ''}`);
    await plan.review('approved');
    for (const path of await plan.split(signal)) say(`  ${path}`);
    await plan.acceptCard(await plan.card());
    say('\nThe card is accepted. Two stories at a time:');
    const code = await runNamed(plan, { ...options, parallel: '2', unattended: true }, call);
    if (code !== exitCodes.done) return code;
    const { state } = await plan.look();
    say(`\nThe project and its branch are in ${repo}; nothing of yours was changed.`);
    say(`Look at it: git -C ${repo} log --stat ${state.branch}`);
    if (!options.json) terminal.out(`${state.branch}\n`);
    return code;
  } finally {
    interrupts.release();
    if (signal.aborted) rmSync(home, { recursive: true, force: true });
  }
}

async function interview(plan: Plan, say: (text: string) => void, signal: AbortSignal): Promise<void> {
  for (;;) {
    const round = await plan.interview({}, signal);
    if (round.ready) return;
    for (const [index, question] of round.questions.entries())
      say(`Telos: ${question}\nYou: ${answers[index] ?? 'Decide for me.'}`);
    await plan.answer(round.questions, answers);
  }
}

async function makeRepository(
  folder: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const git = new Git(folder, env);
  await git.run(['init', '--quiet', '--initial-branch=main']);
  await git.run(['add', '--all']);
  const tree = await git.read(['write-tree']);
  const commit = await git.commitTree(tree, [], 'A small bakery\n');
  await git.run(['update-ref', 'HEAD', commit]);
}
