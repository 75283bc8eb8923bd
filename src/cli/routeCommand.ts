/** Implements `telos route`: explains which skill a request means without running it. */

import { Telos } from '@telos/engine/telos';
import { describeRoute } from '@telos/protocol/describe';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { sayError, table, terminalJson, terminalLine, terminalText } from './terminalText.ts';

/** Options of `telos route`. */
export interface RouteOptions extends ConfigOptions {
  agent?: string;
  json?: boolean;
  mode?: string;
}

/** Entries of the ranking that are shown. */
const shownRanking = 3;

/** Returns the exit code: 1 if no skill fits, 2 if it is unclear what is wanted. */
export async function routeCommand(text: string, options: RouteOptions, terminal: Terminal): Promise<number> {
  if (text === '') {
    terminal.say('Type a request, for example: telos route "plan my day"');
    return 2;
  }
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  return interruptible(terminal, signal => explain(telos, text, options, terminal, signal), {
    refused: error => sayError(error, terminal),
  });
}

async function explain(
  telos: Telos,
  text: string,
  { agent: agentName, json }: RouteOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const request = { text, ...(agentName === undefined ? {} : { agent: agentName }) };
  const match = await telos.route(request, signal);
  if (match.notice) terminal.say(terminal.style.yellow(terminalText(match.notice)));
  const ranking = (await telos.ranking(request))
    .slice(0, shownRanking)
    .map(({ agent, skill, score, words }) => ({
      agent: agent.name,
      skill: skill.id,
      score: Math.round(score * 1000) / 1000,
      words,
    }));
  const code = match.skill ? 0 : 1;
  if (json) {
    const { agent, skill } = match;
    const decision = skill
      ? { agent: agent.name, skill: skill.id, description: skill.description, reason: match.reason }
      : {
          agent: null,
          skill: null,
          choices: match.choices,
          ...(match.didYouMean !== undefined && { didYouMean: match.didYouMean }),
          suggestions: match.suggestions.slice(0, shownRanking),
        };
    terminal.out(`${terminalJson({ ...decision, ranking })}\n`);
    return code;
  }
  if (match.skill) {
    const { agent, skill, reason } = match;
    const { rule, score, runnerUp } = reason;
    const facts = [
      `rule ${rule}`,
      ...(score === undefined ? [] : [`score ${score}`]),
      ...(runnerUp ? [`runner-up ${runnerUp.skill} of ${runnerUp.agent}${scored(runnerUp.score)}`] : []),
    ];
    terminal.out(`Would run ${terminalLine(describeRoute(agent.name, skill.id, reason))}\n`);
    terminal.out(`(${terminalLine(facts.join(', '))})\n`);
  } else {
    const likely = match.choices.length > 0;
    terminal.out(
      likely
        ? `${doYouMean(match.didYouMean)}\n`
        : 'Would run nothing: no skill fits. /<name> at the beginning names one.\n',
    );
  }
  if (ranking.length > 0) {
    const rows = ranking.map(({ agent, skill, score, words }, index) => [
      `${index + 1}.`,
      skill,
      agent,
      score.toFixed(2),
      words.join(', '),
    ]);
    terminal.out(`\n${table(['', 'Skill', 'Agent', 'Score', 'Words'], rows, terminal.outWidth)}\n`);
  }
  return code;
}

const doYouMean = (name: string | undefined): string =>
  name === undefined
    ? 'Would ask which of the first is meant: none fits well enough to run unasked.'
    : `Would ask: Did you mean ${terminalLine(name)}?`;

const scored = (score: number | undefined): string => (score === undefined ? '' : ` with ${score}`);
