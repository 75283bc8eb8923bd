/** Implements `telos plan demo`: a whole plan in a folder of its own, with real checks and a recorded model. */

import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '@telos/engine/config';
import { reasonOf } from '@telos/engine/errors';
import { shellWord } from '@telos/engine/files';
import { allowAll } from '@telos/engine/run';
import { Telos } from '@telos/engine/telos';
import {
  type DemoFact,
  demoGoal,
  MachineSeal,
  makeDemoPlan,
  makeDemoProject,
  playingDemo,
} from '@telos/plans/run';
import { exitCodes, type PlanCall } from './planCommands.ts';
import { type RunPlanOptions, runNamed } from './planRunCommand.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { terminalText } from './terminalText.ts';

/** Plays the demo. `samples` lies beside its files. Returns the exit code of the plan. */
export async function planDemoCommand(
  options: RunPlanOptions,
  terminal: Terminal,
  samples: URL,
): Promise<number> {
  const files = fileURLToPath(new URL('../plan-demo/', samples));
  const repo = await makeDemoProject(files, terminal.surroundings.env);
  const home = dirname(repo);
  // Nothing of the person's own is read: no key, no rule, no skill.
  const env = { PATH: terminal.surroundings.env['PATH'], HOME: home };
  const config = playingDemo(loadConfig({ env, home, cwd: repo }), files);
  // The person goes on with the plan by their own commands, to which its steps must be those of this machine.
  const own = loadConfig({ env: terminal.surroundings.env, cwd: terminal.surroundings.cwd() });
  const unsealed = await new MachineSeal(own.dataDir).lend(config.dataDir).then(() => '', reasonOf);
  const telos = Telos.open(config);
  const interrupts = abortOnInterrupt(terminal, () => {});
  const { signal } = interrupts;
  const call: PlanCall = { config, telos, repo, human: allowAll, signal, terminal, place: repo };
  const say = (text: string): void => void (options.json || terminal.say(terminalText(text)));
  try {
    say(`A small project, in ${repo}\n\nYou: ${demoGoal}`);
    const caller = { runs: telos, human: allowAll, by: 'cli' as const };
    const plan = await makeDemoPlan(repo, caller, fact => say(textOf(fact)), signal);
    await plan.acceptCard(await plan.card());
    say('\nThe permissions are approved for this run alone. Two stories at a time:');
    const code = await runNamed(plan, { ...options, unattended: true }, call);
    if (code !== exitCodes.done) return code;
    const { state } = await plan.look();
    say(`\nThe project is in ${repo}; nothing of yours was changed.`);
    if (unsealed) say(`It cannot be finished with telos plan finish: ${unsealed}`);
    say(`Look at it: git -C ${shellWord(repo)} log --stat ${state.branch}`);
    if (!options.json) terminal.out(`The stories are on the branch ${state.branch}\n`);
    return code;
  } finally {
    interrupts.release();
    if (signal.aborted) rmSync(home, { recursive: true, force: true });
  }
}

function textOf(fact: DemoFact): string {
  switch (fact.kind) {
    case 'answered':
      return `Telos: ${fact.question}\nYou: ${fact.answer}`;
    case 'written':
      return `\n${fact.plan}`;
    case 'story':
      return `  ${fact.path}`;
  }
}
