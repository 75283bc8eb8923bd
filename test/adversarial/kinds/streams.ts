/** Cases on the answers of models, byte by byte, and on servers that refuse, stall and break off. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createAnthropic } from '../../../src/engine/providers/anthropic.ts';
import { createOpenaiCompatible } from '../../../src/engine/providers/openaiCompatible.ts';
import type { Provider } from '../../../src/engine/providers/provider.ts';
import { standardLimits, type TurnLimits } from '../../../src/engine/providers/turnLimits.ts';
import { type AgentRun, runAgent } from '../agentRun.ts';
import { fieldsOf, textsOf } from '../caseFile.ts';
import { runCli } from '../cliRun.ts';
import { clockAt } from '../clock.ts';
import type { Seen } from '../judge.ts';
import { plainAnswer, startWire, toldIn, type Wire, type WireAnswer, type WireRequest } from '../wire.ts';
import type { World } from '../world.ts';

const apiKey = 'sk-ant-api03-1111111111111111111111';
/** Nobody waits here for the pauses between tries; all else is as it is. */
const quick: TurnLimits = { ...standardLimits, firstPauseMs: 10 };

type Dialect = 'anthropic' | 'openai';
const dialectOf = (world: World): Dialect => (world.input['provider'] === 'openai' ? 'openai' : 'anthropic');

/** The answer that the case writes down. */
function answerOf({ input }: World): WireAnswer {
  const { chunks, finish, note } = input;
  const whole = fieldsOf(chunks)['body'];
  const texts = typeof whole === 'string' ? [whole] : textsOf(chunks);
  let pieces = texts.map(text => Buffer.from(numbered(text)));
  const everyByte =
    fieldsOf(chunks)['split'] === 'every byte' || /split inside the multi-byte/.test(String(note));
  if (everyByte) pieces = [...Buffer.concat(pieces)].map(byte => Buffer.from([byte]));
  return {
    status: Number(input['status']),
    headers: { 'content-type': 'text/event-stream', ...textFields(input['headers']) },
    chunks: pieces,
    finish: finish === 'destroy' ? 'destroy' : finish === 'end' ? 'end' : 'open',
  };
}

/** 990099 stands for the number of each repetition. */
function numbered(text: string): string {
  let next = 0;
  return text.replace(/event: content_block_start\n(?:.*\n)*?event: content_block_stop\n.*\n/g, block =>
    block.includes('990099') ? block.replaceAll('990099', String(next++)) : block,
  );
}

const textFields = (value: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(fieldsOf(value)).map(([name, text]) => [name, String(text)]));

const hasResults = (request: WireRequest): boolean => toldIn(request).length > 0;

/** A run on a server that gives `answer` until a tool has run or the case says that it recovers. */
function serve(world: World, answer: WireAnswer): Promise<Wire> {
  const recovers = world.input['then'] === 200;
  return startWire((request, index) =>
    hasResults(request) || (recovers && index > 0) ? plainAnswer('done', dialectOf(world)) : answer,
  );
}

/** The engine on the real wire; with `limits`, tries again sooner than in life. */
async function runOn(
  world: World,
  wire: Wire,
  limits?: TurnLimits,
  control = new AbortController(),
): Promise<AgentRun> {
  const openai = dialectOf(world) === 'openai';
  const own = { name: 'openai', keyVariable: 'OPENAI_API_KEY', baseUrlVariable: 'OPENAI_BASE_URL' } as const;
  const provider = (): Provider =>
    openai
      ? createOpenaiCompatible({ ...own, apiKey, model: 'm', baseUrl: `${wire.url}/v1`, limits: limits! })
      : createAnthropic({ apiKey, model: 'm', baseUrl: wire.url, limits: limits! });
  const env: Record<string, string> = limits
    ? { TELOS_PROVIDER: 'brought' }
    : openai
      ? { TELOS_PROVIDER: 'openai', OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: `${wire.url}/v1` }
      : { ANTHROPIC_BASE_URL: wire.url, ANTHROPIC_API_KEY: apiKey };
  const parts = { providers: { brought: { model: async () => 'm', create: async () => provider() } } };
  return runAgent(world, [], { env, control, ...(limits ? { parts } : {}) });
}

export function providerStream(world: World): Promise<Seen> {
  const chunks = fieldsOf(world.input['chunks']);
  if (typeof chunks['cut'] === 'string') return cutEverywhere(world);
  if (world.input['finish'] === 'silent_forever') return silence(world);
  return oneStream(world);
}

async function oneStream(world: World): Promise<Seen> {
  world.put(join(world.work, 'a'), 'alpha');
  const wire = await serve(world, answerOf(world));
  try {
    // An error event that comes first is tried again at the real pace, since the pauses are what the case is about.
    const firstIsError = /^event: error/.test(String(textsOf(world.input['chunks'])[0]));
    const run = await runOn(world, wire, firstIsError ? undefined : quick);
    const seen = { decision: decisionOn(run, wire), facts: factsOfStream(world, run, wire) };
    return textsOf(world.input['chunks']).join('').includes('Overloaded') && !firstIsError
      ? { ...seen, facts: { ...seen.facts, ...(await onTerminal(world)) } }
      : seen;
  } finally {
    await wire.close();
  }
}

function decisionOn({ events }: AgentRun, { requests }: Wire): string {
  const end = events.at(-1);
  if (end?.type !== 'run_end' || end.outcome !== 'completed') return 'error';
  return toldIn(requests.at(-1)!).at(-1)?.isError ? 'error' : 'allow';
}

function factsOfStream(world: World, run: AgentRun, { requests }: Wire): Seen['facts'] {
  const { work } = world;
  const written = world.read(join(work, 'a.md'));
  const told = requests.length > 0 ? toldIn(requests.at(-1)!) : [];
  const end = run.events.at(-1);
  const error = end?.type === 'run_end' ? (end.error?.message ?? '') : '';
  const completed = end?.type === 'run_end' && end.outcome === 'completed';
  const text = textOf(run);
  const once = (content: string): boolean | string =>
    (written === content && told.length === 1 && completed) || `${written}, ${told.length} results, ${error}`;
  const gaps = requests.slice(1).map(({ at }, index) => at - requests[index]!.at);
  return {
    'write_file executed once with exact content': once('hello'),
    'same result': once('hello'),
    'one write_file': once('x'),
    'write a.md': written !== undefined,
    'finishes on message_stop without waiting for EOF (pi #5592)':
      (once('hello') === true && run.milliseconds < 10_000) || `${run.milliseconds} ms, ${error}`,
    'text intact': text.startsWith('café 😀') || text,
    'unknown events ignored': (completed && text === 'x') || `${text} ${error}`,
    'invalid_json tool_result sent to the model; loop continues; nothing written':
      (told.length === 1 && /JSON/.test(told[0]!.content) && completed && written === undefined) ||
      `${JSON.stringify(told)} ${error}`,
    "'unknown tool' result; loop continues":
      (/unknown tool/i.test(told[0]?.content ?? '') && completed) || JSON.stringify(told),
    'retried with backoff (no content yet), <= 5 tries, then a clear message':
      (requests.length > 1 &&
        requests.length <= 5 &&
        gaps.every((gap, at) => gap > 450 * 2 ** at) &&
        /Overloaded/.test(error)) ||
      `${requests.length} tries, ${gaps.map(Math.round)} ms apart: ${error}`,
    'partial text marked incomplete': /incomplete/.test(error) || error,
    'at most one automatic retry of the round': requests.length <= 2 || `${requests.length} requests`,
    'stop_reason max_tokens shown; not reported as success':
      (!completed && /length limit \(max_tokens\)/.test(error)) || `completed ${completed}: ${error}`,
    'says the reply was not an event stream; body not echoed beyond 200 bytes':
      (/not an event stream/.test(error) && error.includes('captive portal') && echoed(error) <= 200) ||
      error,
    'all 200 results returned in order, or a cap error':
      (told.length === 200 && told.every(({ content }) => content.includes('alpha')) && inOrder(requests)) ||
      `${told.length} results`,
  };
}

/** Bytes of the text between the quotation marks. */
const echoed = (error: string): number => Buffer.byteLength(/“(.*)”/s.exec(error)?.[1] ?? '');

const textOf = ({ events }: AgentRun): string =>
  events.map(event => (event.type === 'text' ? event.text : '')).join('');

function inOrder(requests: readonly WireRequest[]): boolean {
  const messages = requests.at(-1)?.body['messages'];
  const ids = (Array.isArray(messages) ? messages : [])
    .flatMap(message => fieldsOf(message)['content'] ?? [])
    .map(fieldsOf)
    .filter(block => block['type'] === 'tool_result')
    .map(block => block['tool_use_id']);
  return ids.join() === Array.from({ length: 200 }, (_, at) => `t${at}`).join();
}

/** The same stream at the command line: what a person reads of it. */
async function onTerminal(world: World): Promise<Seen['facts']> {
  const wire = await serve(world, answerOf(world));
  try {
    const { stdout, stderr, exitCode } = await runCli(world, ['one'], [], {
      env: { ANTHROPIC_BASE_URL: wire.url },
    });
    const marked = /incomplete/.test(stderr) && exitCode !== 0;
    return {
      'text not printed twice': stdout.split('partial').length === 2 || stdout,
      'partial text marked incomplete': marked || `${exitCode}: ${stderr}`,
    };
  } finally {
    await wire.close();
  }
}

/** The answer breaks off behind every byte at the first try, and comes whole at the second one. */
async function cutEverywhere(world: World): Promise<Seen> {
  const body = Buffer.from(String(fieldsOf(world.input['chunks'])['body']));
  const stop = body.indexOf('event: message_stop');
  const messageEnd = body.indexOf('\n\n', stop) + 2;
  const whole = { ...answerOf(world), chunks: [body] };
  const problems: string[] = [];
  const unhandled: unknown[] = [];
  const keep = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', keep);
  try {
    for (let at = 0; at <= body.length; at++) {
      const cut: WireAnswer = { ...whole, chunks: [body.subarray(0, at)], finish: 'destroy' };
      const wire = await startWire((request, index) =>
        hasResults(request) ? plainAnswer('done', 'anthropic') : at % 2 === 0 || index === 0 ? cut : whole,
      );
      const run = await runOn(world, wire, { ...quick, firstPauseMs: 1 });
      const tools = run.events.filter(({ type }) => type === 'tool_end').length;
      const mayRun = at >= messageEnd || (at % 2 === 1 && wire.requests.length > 1);
      const end = run.events.at(-1);
      const error = end?.type === 'run_end' ? end.error?.message : undefined;
      if (tools !== (mayRun ? 1 : 0)) problems.push(`${tools} tools ran, cut at byte ${at}`);
      if (!mayRun && !/broke off/.test(error ?? '')) problems.push(`cut at byte ${at}: ${error}`);
      if (wire.requests.length > 6) problems.push(`${wire.requests.length} tries, cut at byte ${at}`);
      await wire.close();
    }
    await delay(20);
  } finally {
    process.off('unhandledRejection', keep);
  }
  const none = (part: RegExp): boolean | string => problems.find(one => part.test(one)) ?? true;
  return {
    decision: 'any',
    facts: {
      'tool executed 0 times unless message_stop arrived': none(/tools ran/),
      // The product has no class of that name; the one that it has says "broke off".
      'error class stream_truncated': none(/^cut at/),
      'retry only if no tool of this round ran': none(/tools ran|tries/),
      'no unhandled rejection': unhandled.length === 0,
    },
  };
}

/** The server says something and then nothing more, for as long as one cares to wait. */
async function silence(world: World): Promise<Seen> {
  const wire = await serve(world, answerOf(world));
  try {
    const control = new AbortController();
    const stopped = runOn(world, wire, undefined, control);
    await delay(300);
    const abortedAt = performance.now();
    control.abort();
    const cancelled = (await stopped).events.at(-1);
    const took = performance.now() - abortedAt;
    const run = await runOn(world, wire);
    const end = run.events.at(-1);
    const error = end?.type === 'run_end' ? (end.error?.message ?? '') : '';
    const { milliseconds } = run;
    return {
      decision: decisionOn(run, wire),
      facts: {
        'idle deadline (default 90 s without a semantic event) ends the turn':
          (milliseconds > 89_000 && milliseconds < 95_000 && /sent nothing for 90 seconds/.test(error)) ||
          `${milliseconds} ms: ${error}`,
        'cancel works at any moment':
          (cancelled?.type === 'run_end' && cancelled.outcome === 'cancelled' && took < 1000) || `${took} ms`,
      },
    };
  } finally {
    await wire.close();
  }
}

/** So many calls at once as one turn asks for, counted by a server that takes its time. */
export async function parallelCalls(world: World): Promise<boolean | string> {
  let open = 0;
  let most = 0;
  const slow = createServer(socket => {
    most = Math.max(most, ++open);
    socket.on('error', () => undefined);
    setTimeout(() => {
      open--;
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok');
    }, 30);
  });
  await new Promise<void>(resolve => slow.listen(0, '127.0.0.1', resolve));
  const address = slow.address();
  const host = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  world.put(
    join(world.cfg, 'policy.toml'),
    `[[allow]]\nagent = "*"\ntool = "fetch_url"\nhost = ${JSON.stringify(host)}\n`,
  );
  const toolCalls = Array.from({ length: 40 }, (_, at) => ({
    id: `f${at}`,
    name: 'fetch_url',
    input: { url: `http://${host}/${at}` },
  }));
  const run = await runAgent(world, [], { turns: [{ toolCalls }, { text: ['done'] }] });
  slow.close();
  const fetched = run.results.filter(({ content }) => content.includes('ok')).length;
  return (fetched === 40 && most > 1 && most <= 8) || `${fetched} pages, ${most} at once`;
}

export async function manyCalls(world: World): Promise<Seen> {
  const seen = await oneStream(world);
  return { ...seen, facts: { ...seen.facts, 'bounded parallelism (<= 8)': await parallelCalls(world) } };
}

export function providerHttp(world: World): Promise<Seen> {
  return world.input['error'] === 'ECONNREFUSED' ? nobodyThere(world) : refused(world);
}

async function refused(world: World): Promise<Seen> {
  const { input } = world;
  const answer: WireAnswer = {
    status: Number(input['status']),
    headers: { 'content-type': 'application/json', ...textFields(input['headers']) },
    chunks: [Buffer.from(String(input['body'] ?? ''))],
    finish: 'end',
  };
  const wire = await serve(world, answer);
  try {
    const clock = typeof input['clock'] === 'string' ? clockAt(input['clock']) : {};
    const cli = await runCli(world, ['one'], [], {
      env: { ANTHROPIC_BASE_URL: wire.url, ANTHROPIC_API_KEY: apiKey, ...clock },
    });
    const { requests } = wire;
    const waits = requests.slice(1).map(({ at }, index) => at - requests[index]!.at);
    const waited = waits[0] ?? 0;
    const { stderr, stdout, exitCode } = cli;
    const saw = `${exitCode}, ${requests.length} requests, waited ${waits.map(Math.round)} ms: ${stderr}`;
    const retriesOf = Math.round(waited) >= 3000 && waited < 4500;
    return {
      decision: exitCode === 0 && stdout.includes('done') ? 'allow' : 'error',
      facts: {
        'waits 3 s +- jitter, then succeeds; the UI shows the wait and Cancel works during it':
          (retriesOf && /Trying again in 3 s/.test(stderr) && (await cancelsInWait(world, answer))) || saw,
        'waits about 5 s': (waited > 3500 && waited < 6500) || saw,
        'not slept: above the cap (default 120 s) the run stops with the time named; the workflow pauses instead':
          (requests.length === 1 && cli.milliseconds < 20_000 && /wait 1440 minutes/.test(stderr)) || saw,
        'no retry; says the spend limit is reached':
          (requests.length === 1 && /spend limit is reached/.test(stderr)) || saw,
        'exponential backoff with full jitter; total tries counted once (SDK retries and ours must not multiply)':
          (requests.length === 2 && (await backsOff(world, answer))) || saw,
        'no retry; says which variable to set; key not printed':
          (requests.length === 1 &&
            /ANTHROPIC_API_KEY/.test(stderr) &&
            !(stdout + stderr).includes(apiKey)) ||
          saw,
      },
    };
  } finally {
    await wire.close();
  }
}

async function cancelsInWait(world: World, answer: WireAnswer): Promise<boolean> {
  const wire = await startWire(() => answer);
  const control = new AbortController();
  const running = runOn(world, wire, undefined, control);
  while (wire.requests.length === 0) await delay(20);
  await delay(300);
  const at = performance.now();
  control.abort();
  const end = (await running).events.at(-1);
  const took = performance.now() - at;
  await wire.close();
  return end?.type === 'run_end' && end.outcome === 'cancelled' && took < 1000 && wire.requests.length === 1;
}

/** Two servers that never recover: five tries each, the pauses grow and are not the same. */
async function backsOff(world: World, answer: WireAnswer): Promise<boolean> {
  const gapsOf = async (): Promise<number[]> => {
    const wire = await startWire(() => answer);
    await runOn(world, wire, { ...standardLimits, firstPauseMs: 60 });
    await wire.close();
    return wire.requests.slice(1).map(({ at }, index) => at - wire.requests[index]!.at);
  };
  const [one, other] = [await gapsOf(), await gapsOf()];
  const grow = (gaps: number[]): boolean => gaps.every((gap, at) => gap >= 60 * 2 ** at * 0.5);
  const differ = one.some((gap, at) => Math.abs(gap - (other[at] ?? 0)) > 2);
  return one.length === 4 && other.length === 4 && grow(one) && grow(other) && differ;
}

/** An address at which nothing listens. */
async function nobodyThere(world: World): Promise<Seen> {
  const listener = createServer();
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve));
  const address = listener.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await new Promise(resolve => listener.close(resolve));
  const base = `http://localhost:${port}`;
  const env = { TELOS_PROVIDER: 'ollama', OLLAMA_BASE_URL: `${base}/v1`, TELOS_MODEL: 'm' };
  const run = await runAgent(world, [], { env });
  const end = run.events.at(-1);
  const error = end?.type === 'run_end' ? (end.error?.message ?? '') : '';
  const usual = readFileSync(new URL('../../../src/engine/providers/create.ts', import.meta.url), 'utf8');
  const said =
    error.includes(`Ollama is not running at ${base}.`) && usual.includes('http://localhost:11434/v1');
  return {
    decision: end?.type === 'run_end' && end.outcome === 'failed' ? 'error' : 'allow',
    facts: {
      "'Ollama is not running at http://localhost:11434' in < 2 s":
        (said && run.milliseconds < 2000) || `${run.milliseconds} ms: ${error}`,
    },
  };
}
