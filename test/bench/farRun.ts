/**
 * A run that goes far: 200 rounds of a scripted model in the built command line, each of which reads a page of 26 KB. The server counts
 * tokens, refuses a prompt that its model could not take, and keeps a cache as Anthropic describes it. The model says in its next words
 * what it has found in a page, as models do, and its summary has those facts that it can still see.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { ReceivedRequest } from '../fakes/loopback.ts';
import { type Figure, runWithPeak, type Side } from './measure.ts';

const rounds = 200;
const pageLines = 262;
const usualWindow = 200_000;
const charactersPerToken = 4;

/** Rounds whose pages hold a fact. That of round 100 stands at the beginning of its page, and the model does not mention it. */
const facts = new Map(
  [1, 50, 100, 150].map(round => [round, `The code word of page ${round} is heron-${round * 7919}.`]),
);
const unmentioned = 100;

export interface FarRun {
  rounds: number;
  /** Bytes that tools have returned. */
  resultBytes: number;
  /** Tokens of the longest prompt. */
  longestPrompt: number;
  /** Share of the tokens from the second round on that no cache had. In percent. */
  uncached: number;
  /** Facts that a later prompt did not have. */
  lost: string[];
  summaries: number;
  totalMs: number;
  peakMegabytes: number;
}

/** Runs it with a command line and its folders, whose server is the one at this address. `window` are the tokens of its model. */
export async function farRun(sideAt: (url: string) => Side, window = usualWindow): Promise<FarRun> {
  const cache = new PromptCache();
  const lost = new Set<string>();
  const seen = { rounds: 0, resultBytes: 0, longestPrompt: 0, tokens: 0, cached: 0, summaries: 0 };
  const answer = (request: ReceivedRequest): AnthropicTurn => {
    const text = JSON.stringify(request.body);
    const tokens = Math.ceil(text.length / charactersPerToken);
    if (tokens > window)
      return { status: 400, errorBody: tooLong(`prompt is too long: ${tokens} tokens > ${window} maximum`) };
    seen.longestPrompt = Math.max(seen.longestPrompt, tokens);
    const cached = Math.min(tokens, Math.floor(cache.use(request.body) / charactersPerToken));
    for (const [round, fact] of facts) if (seen.rounds > round && !text.includes(fact)) lost.add(fact);
    const isFirst = seen.rounds === 0;
    seen.tokens += isFirst ? 0 : tokens;
    seen.cached += isFirst ? 0 : cached;
    const usage = { input_tokens: tokens - cached, cache_read_input_tokens: cached };
    if (text.includes('Write that summary, for yourself.')) {
      seen.summaries++;
      const found = [...new Set(text.match(/The code word of page \d+ is heron-\d+\./g))];
      return { text: [`The pages up to ${seen.rounds} are read.\n${found.join('\n')}`], usage };
    }
    seen.rounds++;
    const fact = seen.rounds - 1 === unmentioned ? undefined : facts.get(seen.rounds - 1);
    const words = fact ? { text: [`Noted: ${fact}`] } : {};
    if (seen.rounds > rounds) return { text: ['All pages are read.'], usage };
    seen.resultBytes += pageOf(seen.rounds).length;
    return {
      ...words,
      toolCalls: [{ name: 'read_file', input: { path: `pages/${seen.rounds}.txt` } }],
      usage,
    };
  };
  // The requests themselves would take more memory than what is measured.
  const server = await startAnthropicServer({
    turns: answer,
    onRequest: request => {
      request.body = { stream: true };
    },
  });
  try {
    const side = sideAt(server.url);
    mkdirSync(join(side.cwd, 'pages'), { recursive: true });
    for (let round = 1; round <= rounds; round++)
      writeFileSync(join(side.cwd, 'pages', `${round}.txt`), pageOf(round));
    const { totalMs, peakMegabytes } = await runWithPeak({
      ...side,
      args: [...side.args, '--max-rounds', String(rounds + 1)],
    });
    const { tokens, cached, ...counted } = seen;
    const uncached = (100 * (tokens - cached)) / tokens;
    return { ...counted, rounds: seen.rounds - 1, uncached, lost: [...lost], totalMs, peakMegabytes };
  } finally {
    await server.close();
  }
}

const tooLong = (message: string): object => ({
  type: 'error',
  error: { type: 'invalid_request_error', message },
});

function pageOf(round: number): string {
  const line = (number: number): string =>
    `Page ${round}, line ${number}: ${createHash('sha256').update(`${round} ${number}`).digest('hex')} and more of it\n`;
  const lines = Array.from({ length: pageLines }, (_, number) => line(number));
  const fact = facts.get(round);
  if (fact) lines[round === unmentioned ? 1 : pageLines / 2] = `${fact}\n`;
  return lines.join('');
}

/** Blocks before a mark among which a stored beginning is looked for. */
const lookedBack = 20;

interface WireBody {
  system?: object[];
  tools?: object[];
  messages: { role: string; content: string | object[] }[];
}

/** What a server keeps of prompts: their beginnings up to the marks in them. */
class PromptCache {
  readonly #stored = new Set<string>();

  /** Returns the characters of the prompt that the cache had, and stores its beginnings. */
  use({ tools = [], system = [], messages }: WireBody): number {
    const said = messages.flatMap(({ role, content }) =>
      (typeof content === 'string' ? [{ type: 'text', text: content }] : content).map(block => ({
        role,
        ...block,
      })),
    );
    let before = '';
    let characters = 0;
    const beginnings = [...tools, ...system, ...said].map(block => {
      const { cache_control: mark, ...rest } = block as { cache_control?: object };
      const text = JSON.stringify(rest);
      before = createHash('sha1').update(before).update(text).digest('hex');
      characters += text.length;
      return { hash: before, characters, isMarked: mark !== undefined };
    });
    let found = 0;
    for (const [index, { isMarked }] of beginnings.entries()) {
      if (!isMarked) continue;
      for (const each of beginnings.slice(Math.max(0, index - lookedBack), index + 1))
        if (this.#stored.has(each.hash)) found = Math.max(found, each.characters);
    }
    for (const { hash, isMarked } of beginnings) if (isMarked) this.#stored.add(hash);
    return found;
  }
}

/** Returns what is measured as figures. Throws if the run did not get as far as it should. */
export function farFigures(run: FarRun): Figure[] {
  if (run.rounds !== rounds) throw new Error(`The run ended after ${run.rounds} rounds.`);
  const one = (name: string, unit: string, ours: number, limit: number): Figure => ({
    name,
    unit,
    ours,
    bare: undefined,
    limit,
  });
  return [
    one(`${rounds} rounds, longest prompt`, 'tokens', run.longestPrompt, usualWindow),
    one('the same, facts that are not sent any more', `of ${facts.size}`, run.lost.length, 0),
    one('the same, input that no cache has', '%', run.uncached, 20),
    one('the same, peak memory', 'MB', run.peakMegabytes, 200),
  ];
}
