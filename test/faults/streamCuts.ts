/** Answers of a model that are cut at every byte: by a reset, by an end as if they were whole, and by silence. */
import { readFileSync } from 'node:fs';
import type { Provider } from '../../src/engine/core/ports.ts';
import { createAnthropic } from '../../src/engine/providers/anthropic.ts';
import { standardLimits, type TurnLimits } from '../../src/engine/providers/failures.ts';
import { createGemini } from '../../src/engine/providers/gemini.ts';
import { createOpenaiCompatible } from '../../src/engine/providers/openai.ts';
import { createOpenaiResponses } from '../../src/engine/providers/openaiResponses.ts';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { Delivery, FakeServer, ReceivedRequest } from '../fakes/loopback.ts';
import { type MakerDialect, startMakerServer } from '../fakes/makerServer.ts';
import { startOpenaiServer } from '../fakes/openaiServer.ts';
import { type EngineWorld, endOf, engineWorld, eventsOf, ofType } from './engineWorld.ts';
import { type Extent, type Figure, inLanes } from './figure.ts';

type Dialect = 'anthropic' | 'openai' | MakerDialect;

interface RecordedStream {
  name: string;
  dialect: Dialect;
  bytes: Buffer;
  /** From this byte on the message has ended, whatever follows. */
  messageEnd: number;
}

type Cut = 'reset' | 'end' | 'silence';

interface Case {
  stream: RecordedStream;
  cut: Cut;
  at: number;
}

/** The result of a run. */
interface Seen {
  text: string;
  tools: number;
  asked: number;
  outcome: string;
  milliseconds: number;
}

const hangMs = 5_000;
const finalText = 'Fertig.';
/** Shortens the pauses between tries; all else is as in the product, so that a hang is one. */
const quickRetries: TurnLimits = { ...standardLimits, firstPauseMs: 1 };
const quickSilence: TurnLimits = { ...quickRetries, firstByteMs: 500, idleMs: 500, lingerMs: 100 };

export async function streamCutFigures(extent: Extent): Promise<Figure[]> {
  const streams = readStreams();
  const step = extent === 'whole' ? 1 : 41;
  const cases = streams.flatMap(stream => [
    ...cutsOf(stream, 'reset', step),
    ...cutsOf(stream, 'end', step),
    ...cutsOf(stream, 'silence', step * 8),
  ]);
  const world = engineWorld({ 'work/a.md': 'A', 'work/täglich.md': 'T' });
  const bench = await openBench(world);
  const problems: string[] = [];
  let longest = 0;
  try {
    const references = new Map<RecordedStream, Seen>();
    for (const stream of streams) references.set(stream, await bench.run({ stream, cut: 'end', at: -1 }));
    const judge = (one: Case, seen: Seen): void => {
      longest = Math.max(longest, seen.milliseconds);
      for (const problem of problemsOf(one, seen, references.get(one.stream)!))
        problems.push(`${one.stream.name} cut by ${one.cut} at byte ${one.at}: ${problem}`);
    };
    const again: Case[] = [];
    await inLanes(cases, 24, async one => {
      const seen = await bench.run(one);
      const isOff = problemsOf(one, seen, references.get(one.stream)!).length > 0;
      if (seen.milliseconds > hangMs || (isOff && one.cut === 'silence')) again.push(one);
      else judge(one, seen);
    });
    // What hangs, or takes a slow answer for silence, does so again, alone; what the machine held up does not.
    for (const one of again) judge(one, await bench.run(one));
  } finally {
    await bench.close();
    world.remove();
  }
  const hangs = problems.filter(problem => problem.includes('hung'));
  const early = problems.filter(problem => problem.includes('tool'));
  const rest = problems.filter(problem => !hangs.includes(problem) && !early.includes(problem));
  const on = `${cases.length} cuts of ${streams.length} streams in four dialects`;
  const counted = (list: string[]): string => `${list.length}${list[0] ? ` (first: ${list[0]})` : ''}`;
  return [
    {
      name: 'stream cut anywhere: runs that hang',
      value: `${counted(hangs)}, longest ${Math.round(longest)} ms, ${on}`,
      limit: 'none over 5 s, with the limits of silence shortened to 500 ms',
      met: hangs.length === 0,
    },
    {
      name: "stream cut anywhere: tools run without their message's end",
      value: `${counted(early)}, ${on}`,
      limit: 'none',
      met: early.length === 0,
    },
    {
      name: 'stream cut anywhere: text twice, lost or invented',
      value: `${counted(rest)}, ${on}`,
      limit: 'none',
      met: rest.length === 0,
    },
  ];
}

function readStreams(): RecordedStream[] {
  const read = (path: string, dialect: RecordedStream['dialect'], crlf = false): RecordedStream => {
    const text = readFileSync(new URL(path, import.meta.url), 'utf8');
    const bytes = Buffer.from(crlf ? text.replaceAll('\n', '\r\n') : text);
    return { name: path.replace(/^.*\//, ''), dialect, bytes, messageEnd: messageEndOf(bytes, dialect) };
  };
  return [
    read('../fixtures/wire/anthropic.sse', 'anthropic'),
    read('streams/anthropic-words.sse', 'anthropic'),
    read('streams/anthropic-silent-call.sse', 'anthropic', true),
    read('../fixtures/wire/openai.sse', 'openai'),
    read('streams/openai-words.sse', 'openai'),
    read('streams/openai-silent-call.sse', 'openai', true),
    read('../fixtures/wire/responses.sse', 'responses'),
    read('streams/responses-words.sse', 'responses'),
    read('streams/responses-silent-call.sse', 'responses', true),
    read('../fixtures/wire/gemini.sse', 'gemini'),
    read('streams/gemini-words.sse', 'gemini'),
    read('streams/gemini-silent-call.sse', 'gemini', true),
  ];
}

/** What ends a message: an event of its own, or the first chunk with a reason to finish. */
const endMarks: Readonly<Record<Dialect, RegExp>> = {
  anthropic: /"type":\s*"message_stop"/,
  openai: /"finish_reason":\s*"/,
  responses: /"type":\s*"response\.completed"/,
  gemini: /"finishReason":\s*"/,
};

/** Behind the empty line of the event that ends the message. */
function messageEndOf(bytes: Buffer, dialect: RecordedStream['dialect']): number {
  const text = bytes.toString('latin1');
  const from = text.search(endMarks[dialect]);
  const ends = /\r?\n\r?\n/g;
  ends.lastIndex = from;
  const end = ends.exec(text);
  if (from < 0 || !end) throw new Error('A recorded stream has no end.');
  return end.index + end[0].length;
}

function cutsOf(stream: RecordedStream, cut: Cut, step: number): Case[] {
  const cases: Case[] = [];
  for (let at = 0; at < stream.bytes.length; at += step) cases.push({ stream, cut, at });
  return cases;
}

function problemsOf({ stream, at }: Case, seen: Seen, reference: Seen): string[] {
  const problems: string[] = [];
  if (seen.milliseconds > hangMs) problems.push(`hung for ${Math.round(seen.milliseconds)} ms`);
  const triedAgain = seen.asked > 1;
  const mayBeWhole = triedAgain || at >= stream.messageEnd;
  if (!mayBeWhole && seen.tools > 0) problems.push(`${seen.tools} tools ran`);
  if (mayBeWhole && seen.tools !== reference.tools)
    problems.push(`${seen.tools} tools ran instead of ${reference.tools}`);
  if (mayBeWhole && seen.text !== reference.text) problems.push(`said ${JSON.stringify(seen.text)}`);
  if (!mayBeWhole && !reference.text.startsWith(seen.text))
    problems.push(`said ${JSON.stringify(seen.text)}`);
  if (mayBeWhole !== (seen.outcome === 'completed')) problems.push(`ended as ${seen.outcome}`);
  return problems;
}

interface Bench {
  run(one: Case): Promise<Seen>;
  close(): Promise<void>;
}

/** Each run carries its number in its request, by which the server knows what to do to it. */
async function openBench(world: EngineWorld): Promise<Bench> {
  const running = new Map<string, { one: Case; asked: number }>();
  const turn = (request: ReceivedRequest): Delivery & { text?: string[] } => {
    const { messages, input, contents } = request.body;
    const said: readonly object[] = messages ?? input ?? contents;
    const id = /run-(\d+)!/.exec(JSON.stringify(said))?.[1] ?? '';
    const state = running.get(id);
    if (!state) return { status: 400 };
    if (/"(?:tool|tool_result|function_call_output|functionResponse)"/.test(JSON.stringify(said.at(-1))))
      return { text: [finalText] };
    state.asked++;
    const { stream, at, cut } = state.one;
    const whole = { rawBody: stream.bytes };
    if (at < 0 || state.asked > 1) return whole;
    return { ...whole, cutAfterBytes: at, ...(cut === 'reset' ? {} : { cutBy: cut }) };
  };
  const anthropic = await startAnthropicServer({ turns: turn });
  const openai = await startOpenaiServer({ turns: turn });
  const responses = await startMakerServer({ dialect: 'responses', turns: turn });
  const gemini = await startMakerServer({ dialect: 'gemini', turns: turn });
  const servers: readonly FakeServer[] = [anthropic, openai, responses, gemini];
  const provider = ({ stream, cut }: Case): Provider => {
    const limits = cut === 'silence' ? quickSilence : quickRetries;
    if (stream.dialect === 'anthropic')
      return createAnthropic({ apiKey: 'key-for-tests', model: 'm', baseUrl: anthropic.url, limits });
    if (stream.dialect === 'responses')
      return createOpenaiResponses({ apiKey: 'k', model: 'gpt-5.4', baseUrl: responses.url, limits });
    if (stream.dialect === 'gemini')
      return createGemini({ apiKey: 'k', model: 'gemini-3.8-flash', baseUrl: gemini.url, limits });
    const own = { name: 'openai', keyVariable: undefined, baseUrlVariable: 'OPENAI_BASE_URL' } as const;
    return createOpenaiCompatible({ ...own, apiKey: 'k', model: 'm', baseUrl: openai.url, limits });
  };
  const dialects = new Map<string, Provider>();
  const cachedProvider = (one: Case): Provider => {
    const key = `${one.stream.dialect} ${one.cut === 'silence'}`;
    const made = dialects.get(key) ?? provider(one);
    dialects.set(key, made);
    return made;
  };
  let next = 0;
  return {
    async run(one) {
      const id = String(next++);
      const state = { one, asked: 0 };
      running.set(id, state);
      const started = performance.now();
      const events = await eventsOf(
        world.open(() => cachedProvider(one)),
        `run-${id}!`,
      );
      running.delete(id);
      // What the servers keep of each request would fill the memory.
      if (next % 500 === 0) for (const server of servers) server.requests.length = 0;
      return {
        text: ofType(events, 'text')
          .map(event => event.text)
          .join(''),
        tools: ofType(events, 'tool_end').length,
        asked: state.asked,
        outcome: endOf(events).outcome,
        milliseconds: performance.now() - started,
      };
    },
    close: async () => void (await Promise.all(servers.map(server => server.close()))),
  };
}
