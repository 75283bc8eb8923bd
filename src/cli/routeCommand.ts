/**
 * Implements `telos route`: explains which skill a request means without running it, or measures how well skills are
 * distinguished.
 */

import { resolve } from 'node:path';
import { TelosError } from '../engine/errors.ts';
import type { RouteFigures } from '../engine/routing/routeBenchmark.ts';
import { Telos } from '../engine/telos.ts';
import { describeRoute } from '../protocol/describe.ts';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { abortOnInterrupt, cancelledExitCode, type Terminal } from './terminal.ts';
import { errorText, table, terminalJson, terminalLine, terminalText } from './terminalText.ts';

/** Options of `telos route`. Paths may be relative to the folder of the call. */
export interface RouteOptions extends ConfigOptions {
  agent?: string;
  json?: boolean;
  mode?: string;
  pairs?: string;
  packs?: string;
  corpus?: string;
  negatives?: string;
  conversations?: string;
}

/** Entries of the ranking that are shown. */
const shownRanking = 3;

/** Returns the exit code: 1 if no skill fits, 2 if it is unclear what is wanted. */
export async function routeCommand(text: string, options: RouteOptions, terminal: Terminal): Promise<number> {
  const { pairs, packs, corpus, negatives, conversations } = options;
  const lines = pairs ?? conversations;
  const measures = [lines, packs, corpus, negatives].some(option => option !== undefined);
  if (measures && (lines === undefined || packs === undefined || corpus === undefined)) {
    terminal.say('To measure, give --pairs or --conversations, with --packs and --corpus.');
    return 2;
  }
  if (measures ? text !== '' : text === '') {
    terminal.say('Type a request, for example: telos route "plan my day"');
    return 2;
  }
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  const { signal, release } = abortOnInterrupt(() => {});
  try {
    if (packs === undefined || corpus === undefined)
      return await explain(telos, text, options, terminal, signal);
    const files = { ...options, packs, corpus };
    if (conversations !== undefined)
      return await measureConversations(telos, { ...files, conversations }, terminal, signal);
    return await measure(telos, { ...files, pairs: pairs ?? '' }, terminal, signal);
  } catch (error) {
    if (signal.aborted) return cancelledExitCode;
    if (!(error instanceof TelosError)) throw error;
    terminal.say(terminal.style.red(errorText(error)));
    return 1;
  } finally {
    release();
  }
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

/** Measures the routing. Without a mode no model is asked, since each sentence would be a call that costs. */
async function measure(
  telos: Telos,
  options: RouteOptions & Required<Pick<RouteOptions, 'pairs' | 'packs' | 'corpus'>>,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { pairs, packs, corpus, negatives, mode } = options;
  const { runRouteBenchmark } = await import('../engine/routing/routeBenchmark.ts');
  const result = await runRouteBenchmark(
    {
      pairsFile: resolve(pairs),
      packsFile: resolve(packs),
      corpusDir: resolve(corpus),
      dataDir: telos.config.dataDir,
      ...(negatives === undefined ? {} : { negativesFile: resolve(negatives) }),
      mode: mode === undefined ? 'local' : telos.config.routingMode,
      provider: () => telos.routingProvider(),
    },
    signal,
  );
  if (options.json) {
    terminal.out(`${terminalJson(result)}\n`);
    return 0;
  }
  const rows = Object.entries(result.packs).map(([name, figures]) => cells(name, figures));
  const headings = [
    'Pack',
    'Sentences',
    'Top 1',
    'Top 3',
    'Right',
    'Wrong',
    'None',
    'Negatives fired',
    'Time',
  ];
  terminal.out(`${table(headings, [...rows, cells('All', result.overall)], terminal.outWidth)}\n`);
  return 0;
}

async function measureConversations(
  telos: Telos,
  options: RouteOptions & Required<Pick<RouteOptions, 'conversations' | 'packs' | 'corpus'>>,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { conversations, packs, corpus, mode } = options;
  const { runConversationBenchmark } = await import('../engine/routing/routeBenchmark.ts');
  const result = await runConversationBenchmark(
    {
      conversationsFile: resolve(conversations),
      packsFile: resolve(packs),
      corpusDir: resolve(corpus),
      dataDir: telos.config.dataDir,
      mode: mode === undefined ? 'local' : telos.config.routingMode,
      provider: () => telos.routingProvider(),
    },
    signal,
  );
  if (options.json) {
    terminal.out(`${terminalJson(result)}\n`);
    return 0;
  }
  const { n, switched, byChip, stayed, wrongSwitch, msPerRoute } = result.overall;
  const shares = [switched, byChip, stayed, wrongSwitch].map(share => `${(share * 100).toFixed(1)} %`);
  const headings = ['Conversations', 'Switched', 'By chip', 'Stayed', 'Wrong', 'Time'];
  terminal.out(
    `${table(headings, [[String(n), ...shares, `${msPerRoute.toFixed(2)} ms`]], terminal.outWidth)}\n`,
  );
  return 0;
}

function cells(name: string, figures: RouteFigures): string[] {
  const { n, top1, top3, right, wrong, abstained, negativesFired, msPerRoute } = figures;
  const shares = [top1, top3, right, wrong, abstained, negativesFired].map(
    share => `${(share * 100).toFixed(1)} %`,
  );
  return [name, String(n), ...shares, `${msPerRoute.toFixed(2)} ms`];
}
