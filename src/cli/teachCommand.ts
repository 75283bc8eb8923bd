/** Implements `telos teach [skill]`: lets a model write requests with which people ask for skills, and shows and deletes them. */

import { TelosError } from '@telos/engine/errors';
import type { TeachingPlan } from '@telos/engine/routing';
import { type Agent, type Skill, skillCalled } from '@telos/engine/skills';
import { Telos } from '@telos/engine/telos';
import { counted, grouped } from '@telos/protocol/text';
import { roughCost } from '@telos/protocol/usage';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { sayError, terminalJson, terminalLine } from './terminalText.ts';

export interface TeachOptions extends ConfigOptions {
  language?: string;
  list?: boolean;
  add?: string;
  forget?: boolean;
  forgetChoices?: boolean;
  yes?: boolean;
  json?: boolean;
}

interface Known {
  agent: Agent;
  skill: Skill;
}

/** Returns the exit code: 0 if what was wanted is done, 1 if it is not, 2 if it is unclear. */
export async function teachCommand(
  name: string | undefined,
  options: TeachOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  try {
    if (options.forgetChoices) return await forgetChoices(telos, terminal);
    const one = name === undefined ? undefined : skillCalled(name, await telos.agents());
    if (name !== undefined && !one) {
      terminal.say(`Skill '${terminalLine(name)}' not found. \`telos list-skills\` lists them.`);
      return 1;
    }
    if (options.list) return await list(telos, one, options, terminal);
    if (options.forget) return await forget(telos, one, terminal);
    if (options.add !== undefined) return await add(telos, one, options.add, terminal);
    return await teach(telos, one?.skill, options, terminal);
  } catch (error) {
    if (!(error instanceof TelosError)) throw error;
    return sayError(error, terminal);
  }
}

async function teach(
  telos: Telos,
  only: Skill | undefined,
  options: TeachOptions,
  terminal: Terminal,
): Promise<number> {
  const plan = await telos.teaching.plan(options.language ?? systemLanguage(telos.config.env), only);
  if (!plan) {
    terminal.say(
      'A model writes the requests, and none is set up. `telos key` sets the key of a provider, or start Ollama.',
    );
    return 1;
  }
  if (plan.skills.length === 0) {
    terminal.say('Every skill has its requests already. `telos teach --list` shows them.');
    return 0;
  }
  const about = describePlan(plan);
  const unattended = `${about}\nNothing was written. Use --yes to write them without being asked.`;
  if (!options.yes && !(await agrees(about, 'Write them?', unattended, terminal))) return 1;
  return interruptible(terminal, async signal => {
    let failed = 0;
    await telos.teaching.teach(plan, signal, (skill, result) => {
      if (typeof result !== 'number') failed++;
      const said = typeof result === 'number' ? counted(result, 'request') : `none: ${result.message}`;
      terminal.say(`  ${terminalLine(skill.id)}: ${terminalLine(said)}`);
    });
    return failed > 0 ? 1 : 0;
  });
}

function describePlan({ skills, provider, model, cost, tokens, language }: TeachingPlan): string {
  const languages = language === undefined ? 'English' : `English and eight in ${language}`;
  const price =
    cost === 'unknown'
      ? `about ${grouped(tokens)} tokens, at a price that Telos does not know,`
      : roughCost(cost);
  return `A model writes eight requests in ${terminalLine(languages)} for ${counted(skills.length, 'skill')}, so that more of what you say finds them.\nThis costs ${price} with ${terminalLine(`${provider}/${model}`)}. They are kept in Telos’s data folder, never in the skill.`;
}

async function list(
  telos: Telos,
  one: Known | undefined,
  { json }: TeachOptions,
  terminal: Terminal,
): Promise<number> {
  const all = (await telos.agents()).flatMap(agent => agent.skills.map(skill => ({ agent, skill })));
  const taught = (one ? [one] : all)
    .map(({ agent, skill }) => ({
      agent: agent.name,
      skill: skill.id,
      requests: telos.teaching.linesOf(skill),
    }))
    .filter(({ requests }) => requests.length > 0);
  if (json) {
    terminal.out(`${terminalJson(taught)}\n`);
    return 0;
  }
  if (taught.length === 0) terminal.say('No requests were written yet.');
  for (const { agent, skill, requests } of taught)
    terminal.out(
      `${terminalLine(`${skill} (${agent})`)}\n${requests.map(request => `  ${terminalLine(request)}\n`).join('')}`,
    );
  return 0;
}

async function add(
  telos: Telos,
  one: Known | undefined,
  request: string,
  terminal: Terminal,
): Promise<number> {
  if (!one) {
    terminal.say('Name the skill that the request means: telos teach <skill> --add "..."');
    return 2;
  }
  const before = telos.teaching.linesOf(one.skill);
  await telos.teaching.set(one.skill, [request, ...before.filter(other => other !== request)]);
  const after = telos.teaching.linesOf(one.skill);
  terminal.say(`${terminalLine(one.skill.id)} has ${counted(after.length, 'request')} now.`);
  return 0;
}

async function forget(telos: Telos, one: Known | undefined, terminal: Terminal): Promise<number> {
  if (one) {
    const count = telos.teaching.linesOf(one.skill).length;
    if (count > 0) await telos.teaching.set(one.skill, []);
    const what = count === 0 ? 'has no requests to delete.' : `: deleted ${counted(count, 'request')}.`;
    terminal.say(`${terminalLine(one.skill.id)}${count === 0 ? ' ' : ''}${what}`);
    return 0;
  }
  const count = await telos.teaching.forget();
  terminal.say(
    count === 0 ? 'There are no requests to delete.' : `Deleted the requests of ${counted(count, 'skill')}.`,
  );
  return 0;
}

async function forgetChoices(telos: Telos, terminal: Terminal): Promise<number> {
  const count = await telos.forgetChoices();
  terminal.say(count === 0 ? 'Nothing was learned yet.' : `Forgot ${counted(count, 'choice')}.`);
  return 0;
}

/** Returns the tag in `LC_ALL`, `LC_MESSAGES` or `LANG`, such as `de-DE`. */
function systemLanguage(env: Readonly<Record<string, string>>): string | undefined {
  const tag = (env['LC_ALL'] || env['LC_MESSAGES'] || env['LANG'] || '').replace(/[.@].*$/, '');
  return /^[a-z]{2,3}(?:_[A-Za-z]+)*$/.test(tag) ? tag.replaceAll('_', '-') : undefined;
}
