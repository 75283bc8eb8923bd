/** Asks what was wrong with a run, and makes a request or an eval of it, as the person confirms. */

import { RunHistory, titleOf } from '@telos/engine/records';
import type { FileAgent } from '@telos/engine/skills';
import type { Telos } from '@telos/engine/telos';
import type { Defect } from '@telos/evals/proposals';
import {
  addEval,
  addTrigger,
  type Check,
  caseFromRun,
  type EvaluatedSkill,
  type RunCase,
} from '@telos/evals/suite';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import { plainLabel, t } from '../base/labels.ts';

/** What a run has shown: the skill to improve, and what is wrong with its text. Without that, its requests say it. */
export interface Shown {
  one: EvaluatedSkill;
  defect?: Defect;
}

const mostRuns = 50;

/** Returns the run that the person chooses among the latest. Undefined if none is chosen. */
export async function chooseRun({ config }: Telos): Promise<string | undefined> {
  const all = await new RunHistory(config.dataDir).shown();
  const items = all
    .filter(({ skill, outcome }) => outcome !== 'running' && (skill !== '' || outcome === 'no_match'))
    .slice(0, mostRuns)
    .map(run => ({
      label: plainLabel(titleOf(run), 80),
      description: plainLabel(run.skill),
      detail: new Date(run.startedAt).toLocaleString(vscode.env.language),
      runId: run.runId,
    }));
  const options = { title: t('Improve the Skill of Which Run?'), matchOnDescription: true };
  if (items.length > 0) return (await vscode.window.showQuickPick(items, options))?.runId;
  acknowledge(t('No skill has run yet.'));
  return undefined;
}

/** Asks what was wrong, writes the eval, and returns what to improve. Undefined if the person stops. Throws errors of the engine. */
export async function askAboutRun(
  runId: string,
  telos: Telos,
  agents: readonly FileAgent[],
): Promise<Shown | undefined> {
  const run = await new RunHistory(telos.config.dataDir).read(runId);
  const found = await caseFromRun(run, telos.changes, (await telos.fullRedactor()).text);
  const ran = skillCalled(agents, found);
  const title = t('What Was Wrong?');
  const route = { label: t('Another skill, or none, should have run'), what: 'route' } as const;
  const result = { label: t('Its result was not right'), what: 'result' } as const;
  const picked = ran
    ? await vscode.window.showQuickPick([result, route], { title, placeHolder: plainLabel(found.request) })
    : route;
  if (!picked) return undefined;
  return picked.what === 'result' && ran ? wrongResult(found, ran) : wrongRoute(found, ran, agents);
}

const skillCalled = (agents: readonly FileAgent[], wanted: RunCase): EvaluatedSkill | undefined =>
  agents
    .filter(({ name }) => name === wanted.agent)
    .flatMap(agent => agent.skills.map(skill => ({ agent, skill })))
    .find(({ skill }) => skill.id === wanted.skill);

async function wrongRoute(
  { request }: RunCase,
  ran: EvaluatedSkill | undefined,
  agents: readonly FileAgent[],
): Promise<Shown | undefined> {
  const others = agents.flatMap(agent =>
    agent.skills
      .filter(skill => !skill.isDisabled && skill.file !== ran?.skill.file)
      .map(skill => ({ agent, skill })),
  );
  const items: (vscode.QuickPickItem & { one?: EvaluatedSkill })[] = [
    ...(ran ? [{ label: `$(circle-slash) ${t('No skill')}`, alwaysShow: true }] : []),
    ...others.map(one => ({
      label: plainLabel(one.skill.id),
      description: plainLabel(one.agent.name),
      detail: plainLabel(one.skill.description),
      one,
    })),
  ];
  const title = t('Which Skill Should Have Run?');
  const picked = await vscode.window.showQuickPick(items, {
    title,
    matchOnDescription: true,
    matchOnDetail: true,
  });
  const one = picked?.one ?? (picked ? ran : undefined);
  if (!picked || !one) return undefined;
  const shouldTrigger = picked.one !== undefined;
  const query = await askText({
    title: shouldTrigger
      ? t('Request That Should Run {0}', plainLabel(one.skill.id, 60))
      : t('Request That Should Not Run {0}', plainLabel(one.skill.id, 60)),
    prompt: t('It is added to evals/trigger.json of the skill.'),
    value: request.replace(/\s+/g, ' ').trim(),
    validateInput: text => (text.trim() ? undefined : t('Enter a few words.')),
  });
  if (query === undefined) return undefined;
  await addTrigger(one.skill.dir, { query, shouldTrigger });
  return { one };
}

interface Part extends vscode.QuickPickItem {
  file?: RunCase['files'][number];
  check?: Check;
}

async function wrongResult(found: RunCase, one: EvaluatedSkill): Promise<Shown | undefined> {
  const name = plainLabel(one.skill.id, 60);
  const said = await askText({
    title: t('What Was Wrong with the Result of {0}?', name),
    prompt: t('Say what it did, and what it should do instead.'),
    validateInput: text => (text.trim() ? undefined : t('Enter a few words.')),
  });
  if (said === undefined) return undefined;
  const prompt = await askText({
    title: t('Request of the Eval'),
    prompt: t('It is added to evals/evals.json of the skill.'),
    value: found.request,
    validateInput: text => (text.trim() ? undefined : t('Enter a few words.')),
  });
  if (prompt === undefined) return undefined;
  const parts: Part[] = [
    ...found.files.map(file => ({
      label: `$(file) ${plainLabel(file.path)}`,
      description: t('is there when it begins'),
      picked: true,
      file,
    })),
    ...found.checks.map(check => ({
      label: `$(check) ${plainLabel(checkText(check))}`,
      description: t('is checked'),
      picked: true,
      check,
    })),
  ];
  const title = t('Files and Checks of the Eval');
  const placeHolder = t('A model judges what you said. Later changes: evals/evals.json.');
  const chosen = await vscode.window.showQuickPick(parts, { title, placeHolder, canPickMany: true });
  if (!chosen) return undefined;
  // As an expectation has it: what the run should show.
  const expectations = [`What a person found wrong before is right now: ${said.trim()}`];
  const added = await addEval(one.skill.dir, {
    name: plainLabel(said, 80),
    prompt,
    expectations,
    files: chosen.flatMap(({ file }) => file ?? []),
    checks: chosen.flatMap(({ check }) => check ?? []),
  });
  const { request, transcript } = found;
  return { one, defect: { part: 'body', said, request, transcript, expected: added.expectations } };
}

function checkText(check: Check): string {
  if ('file' in check) return t('{0} exists', check.file);
  return 'outcome' in check ? t('It runs to its end') : JSON.stringify(check);
}
