/** Implements `telos plan go`: from a goal to a merged branch in one command, which goes on where it was left. */

import { resolve } from 'node:path';
import { refuseMissing } from '@telos/plans/context';
import { Plan } from '@telos/plans/plan';
import { PlanFolder, printCard } from '@telos/plans/state';
import type { FinishKind } from '@telos/protocol/plan';
import {
  exitCodes,
  interviewed,
  type PlanCall,
  planNamed,
  saySetup,
  sayWhatStops,
  withPlans,
} from './planCommands.ts';
import { finishAndSay } from './planFinishCommand.ts';
import { type RunPlanOptions, runNamed, withoutLimits } from './planRunCommand.ts';
import { nextStep, statusText } from './planView.ts';
import type { Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, terminalLine, terminalText } from './terminalText.ts';

interface GoOptions extends RunPlanOptions {
  merge?: boolean;
  squash?: boolean;
}

/** Each step that is done already is passed over, so that the same command goes on after an answer, an edit or a kill. */
export async function goCommand(
  goal: string | undefined,
  options: GoOptions,
  terminal: Terminal,
): Promise<number> {
  if (options.merge && options.squash) {
    terminal.say('Use one of --merge and --squash.');
    return exitCodes.usage;
  }
  return withPlans(withoutLimits(options), terminal, async call => {
    const plan = (await earlier(goal, options, call)) ?? (await begun(goal ?? '', options, call));
    const { state } = await plan.look();
    if (state.finished === undefined || state.finished.how === 'keep') return through(plan, options, call);
    terminal.say(statusText(plan.name, state, [], terminal.style, terminal.outWidth));
    return exitCodes.done;
  });
}

/** Returns the plan that is named, or one of the same goal that was left; the only plan if neither is given. */
async function earlier(
  goal: string | undefined,
  { name }: GoOptions,
  call: PlanCall,
): Promise<Plan | undefined> {
  if (goal === undefined) return planNamed(name, call);
  for (const one of PlanFolder.list(call.repo)) {
    const plan = planNamed(one, call);
    const { state } = await plan.look();
    if (state.goal !== goal || state.finished || (name !== undefined && name !== one)) continue;
    call.terminal.say(terminalText(`Going on with the plan '${one}'.`));
    return plan;
  }
  return undefined;
}

async function begun(goal: string, options: GoOptions, call: PlanCall): Promise<Plan> {
  const { repo, telos, human, config, terminal } = call;
  const context = (options.context ?? []).map(path => resolve(config.cwd, path));
  refuseMissing(context);
  const caller = { runs: telos, human, by: 'cli' as const };
  const plan = await Plan.create(repo, goal, caller, ...(options.name === undefined ? [] : [options.name]));
  if (context.length > 0) await plan.useContext(context);
  terminal.say(terminalText(`Plan '${plan.name}', in ${plan.folder.dir}`));
  await sayWhatStops(call);
  await saySetup(plan, call);
  return plan;
}

async function through(plan: Plan, options: GoOptions, call: PlanCall): Promise<number> {
  const { signal, terminal } = call;
  if ((await plan.look()).state.phase === 'interviewing') {
    const code = await interviewed(plan, options, call, `telos plan go --name ${plan.name}`);
    if (code !== exitCodes.done) return code;
  }
  if (plan.folder.read('plan.md') === undefined) {
    terminal.say(terminal.style.dim('The plan is being written.'));
    await plan.write(signal);
  }
  if (plan.folder.readPrds().length === 0) {
    terminal.say(terminal.style.dim('It is being split into stories.'));
    await plan.split(signal);
  }
  const { isAccepted } = await plan.card();
  if (!isAccepted || !(await plan.look()).state.isPlanApproved) {
    if (!(await isApproved(plan, options, call))) return exitCodes.person;
  }
  if ((await plan.look()).state.phase !== 'done') {
    const code = await runNamed(plan, options, call);
    if (code !== exitCodes.done) return code;
  }
  return brought(plan, options, call);
}

/** Shows all that the user decides on, once, and asks. Says how to go on after a no. */
async function isApproved(plan: Plan, options: GoOptions, { terminal }: PlanCall): Promise<boolean> {
  const card = await plan.card();
  const { stories, state } = await plan.look();
  terminal.say(`\n${terminalText(plan.folder.read('plan.md')?.trimEnd() ?? '')}\n\nStories:`);
  for (const { id, title, items, dependsOn } of stories) {
    const after = dependsOn.length > 0 ? `, after ${dependsOn.join(', ')}` : '';
    const count = `${items.length} ${items.length === 1 ? 'criterion' : 'criteria'}`;
    terminal.say(`  ${terminalLine(`${id} ${title} (${count}${after})`, 200)}`);
  }
  terminal.say('');
  for (const line of printCard(card)) terminal.say(exactText(line));
  const goOn = `telos plan go --name ${plan.name}`;
  const unattended = `No one can be asked here; --yes approves the plan and its permissions. Then: ${goOn} --yes`;
  if (!options.yes && !(await agrees('', 'Approve the plan and its permissions?', unattended, terminal))) {
    if (terminal.canAsk)
      terminal.say(terminalText(`Edit plan.md and prds/ in ${plan.folder.dir}, then go on with: ${goOn}`));
    return false;
  }
  if (!state.isPlanApproved) await plan.review('approved');
  await plan.acceptCard(card);
  return true;
}

/** Shows what the plan has come to, and brings it to the user's branch if they want it. */
async function brought(plan: Plan, options: GoOptions, call: PlanCall): Promise<number> {
  const { terminal } = call;
  const { state } = await plan.look();
  if (!options.json) terminal.say(statusText(plan.name, state, [], terminal.style, terminal.outWidth));
  let how: FinishKind | undefined = options.merge ? 'merge' : options.squash ? 'squash' : undefined;
  if (how === undefined && terminal.canAsk) {
    const about = `All stories are on the branch ${state.branch}.`;
    if (await agrees(about, 'Merge it into the branch that is checked out?', '', terminal)) how = 'merge';
  }
  if (how === undefined) return exitCodes.done;
  const code = await finishAndSay(plan, how, state.branch ?? '', terminal);
  const next = nextStep(plan.name, (await plan.look()).state);
  if (code !== exitCodes.done && next !== undefined) terminal.say(`Next: ${next}`);
  return code;
}
