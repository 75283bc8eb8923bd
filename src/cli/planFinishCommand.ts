/** Implements `telos plan check`, `diff` and `finish`: what a plan has come to, and its way into the person's branch. */
import { Git } from '@telos/plans/gitRepository';
import type { Finished, Plan } from '@telos/plans/plan';
import { PlanFolder } from '@telos/plans/state';
import type { FinishKind } from '@telos/protocol/plan';
import { endOf } from '@telos/protocol/text';
import { exitCodes, planNamed, withPlan, withPlans } from './planCommands.ts';
import type { RunPlanOptions } from './planRunCommand.ts';
import { nextCommand } from './planView.ts';
import type { Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { terminalJson, terminalLine, terminalText } from './terminalText.ts';

interface FinishOptions extends RunPlanOptions {
  attempt?: string;
  merge?: boolean;
  squash?: boolean;
  pr?: boolean;
  keep?: boolean;
  drop?: boolean;
}

type NamedOptions = Omit<FinishOptions, 'plan'> & { plan?: string | boolean };

const planOf = ({ plan }: NamedOptions): string | undefined => (typeof plan === 'string' ? plan : undefined);

/** `telos plan check`: runs checks in the checkout as it is. Asks no model and changes no state. */
export async function checkCommand(
  story: string | undefined,
  options: NamedOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(planOf(options), options as RunPlanOptions, terminal, async (plan, call) => {
    if (!(await plan.card()).isAccepted) {
      terminal.say('The checks are commands, and the permissions that list them are not approved.');
      terminal.say(`Review them, then run: telos plan approve ${plan.name} --card`);
      return exitCodes.person;
    }
    const results = await plan.check(story, call.signal);
    for (const { name, exitCode, ms, output } of results) {
      if (options.json) terminal.out(`${terminalJson({ name, exitCode, ms, output })}\n`);
      else {
        terminal.out(
          `${exitCode === 0 ? 'passed' : 'failed'}  ${terminalLine(name)} (${(ms / 1000).toFixed(1)} s)\n`,
        );
        if (exitCode !== 0) terminal.out(`${terminalText(endOf(output, 2000))}\n`);
      }
    }
    const { state } = await plan.look();
    const away = state.stories.filter(({ status }) => status === 'passed').length;
    if (away > 0 && state.finished?.into === undefined && !options.json)
      terminal.say(
        terminalText(
          `These ran in your checkout. What passed is on the branch ${state.branch} until you merge it: ${nextCommand('done', plan.name)}`,
        ),
      );
    if (results.length === 0)
      terminal.say(
        `${story === undefined ? 'The plan' : terminalLine(story)} has no check, so nothing was run.`,
      );
    const isGreen = results.length > 0 && results.every(({ exitCode }) => exitCode === 0);
    return isGreen ? exitCodes.done : exitCodes.failed;
  });
}

/** `telos plan diff`: the change of a story that passed, or of one attempt. */
export async function diffCommand(story: string, options: NamedOptions, terminal: Terminal): Promise<number> {
  return withPlan(planOf(options), options as RunPlanOptions, terminal, async (plan, call) => {
    const { state } = await plan.look();
    const known = state.story(story);
    const attempt =
      options.attempt ?? (known?.commit === undefined ? String(known?.attempts ?? 1) : undefined);
    const commit = attempt === undefined ? known?.commit : `refs/telos/${plan.name}/${story}/a${attempt}`;
    const git = new Git(call.repo, call.config.env);
    const found = known && commit !== undefined ? await git.tip(commit) : undefined;
    if (found === undefined) {
      terminal.say(`There is no change of ${terminalLine(story)} to show.`);
      return exitCodes.failed;
    }
    const diff = await git.read([
      'show',
      '--no-color',
      '--no-ext-diff',
      '--no-textconv',
      '--format=%h %s',
      '--end-of-options',
      found,
    ]);
    terminal.out(`${terminalText(diff)}\n`);
    return exitCodes.done;
  });
}

/** `telos plan finish`: merges, squashes, keeps or drops the plan's branch. */
export async function finishCommand(
  name: string | undefined,
  options: NamedOptions,
  terminal: Terminal,
): Promise<number> {
  const how = (['merge', 'squash', 'pr', 'keep', 'drop'] as const).filter(kind => options[kind]);
  if (how.length !== 1) {
    terminal.say('Use one of --merge, --squash, --pr, --keep and --drop.');
    return exitCodes.usage;
  }
  const [kind] = how as [FinishKind];
  return withPlan(name, options as RunPlanOptions, terminal, async plan => {
    const { branch: made } = (await plan.look()).state;
    const branch = made ?? (await plan.folder.settings()).branch;
    const dropped =
      made === undefined
        ? 'This discards the plan. It has never run, so no branch is deleted.'
        : `This deletes the branch ${branch} with what passed. Patches of the attempts stay in ${plan.folder.path('attempts')}.`;
    const published = `This pushes ${branch} to your remote and opens a pull request with gh, where others can see them.`;
    const asked = {
      drop: [dropped, 'Discard it?', 'No one can be asked here; --yes discards it. Nothing was changed.'],
      pr: [published, 'Publish it?', 'No one can be asked here; --yes publishes it. Nothing was changed.'],
    } as const;
    const question = kind === 'drop' || kind === 'pr' ? asked[kind] : undefined;
    if (question && !options.yes) {
      const [about, asks, unattended] = question;
      if (!(await agrees(about, asks, unattended, terminal))) return exitCodes.failed;
    }
    return finishAndSay(plan, kind, branch, terminal);
  });
}

/** `telos plan clean`: removes what finished plans have left besides their reports. */
export async function cleanCommand(
  name: string | undefined,
  options: NamedOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlans(options as RunPlanOptions, terminal, async call => {
    const named = name === undefined ? PlanFolder.list(call.repo) : [name];
    const plans = named.map(one => planNamed(one, call));
    const ended: Plan[] = [];
    for (const plan of plans) if (name !== undefined || (await plan.look()).state.finished) ended.push(plan);
    for (const plan of ended) {
      sayKept(await plan.clean(), terminal);
      terminal.say(`Cleaned: ${plan.name}`);
    }
    if (ended.length === 0) terminal.say('No plan here is finished, so there was nothing to clean.');
    return exitCodes.done;
  });
}

/** `telos plan remove`: removes a plan with all that it has, after asking. */
export async function removeCommand(
  name: string,
  options: NamedOptions,
  terminal: Terminal,
): Promise<number> {
  return withPlan(name, options as RunPlanOptions, terminal, async plan => {
    const about = terminalText(`This deletes ${plan.folder.dir}, with its report and patches.`);
    const unattended = 'No one can be asked here; --yes removes it. Nothing was changed.';
    if (!options.yes && !(await agrees(about, 'Remove the plan?', unattended, terminal)))
      return exitCodes.failed;
    const { branch, kept } = await plan.remove();
    terminal.say(`Removed: ${plan.name}`);
    if (branch !== undefined)
      terminal.say(terminalText(`Its branch ${branch} stays, as your branch does not have its commits.`));
    sayKept(kept, terminal);
    return exitCodes.done;
  });
}

function sayKept(kept: Finished['kept'], { say, style }: Terminal): void {
  for (const { dir, why } of kept) say(style.yellow(terminalText(`The worktree ${dir} is kept: ${why}.`)));
}

/** Ends the plan in that way, and says what has come of it. Throws the errors of `Plan.finish`. */
export async function finishAndSay(
  plan: Plan,
  kind: FinishKind,
  branch: string,
  terminal: Terminal,
): Promise<number> {
  const { commit, into, remote, url, kept } = await plan.finish(kind);
  if (url) terminal.out(`${terminalLine(url)}\n`);
  else if (remote !== undefined)
    terminal.say(
      terminalText(
        `Pushed ${branch} to ${remote}. gh is not installed, so open the pull request where the repository is.`,
      ),
    );
  else if (into !== undefined) terminal.say(terminalText(`Merged into ${into}: ${commit?.slice(0, 8)}`));
  else terminal.say(kind === 'drop' ? 'Discarded.' : terminalText(`Kept: branch ${branch}`));
  sayKept(kept, terminal);
  return exitCodes.done;
}
