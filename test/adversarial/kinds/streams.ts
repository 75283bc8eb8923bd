/** Cases on the answers of models, byte by byte, and on servers that refuse, stall and break off. */
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Provider } from '../../../src/engine/core/ports.ts';
import { createAnthropic } from '../../../src/engine/providers/anthropic.ts';
import { standardLimits, type TurnLimits } from '../../../src/engine/providers/failures.ts';
import { createOpenaiCompatible } from '../../../src/engine/providers/openai.ts';
import type { FakeServer, ReceivedRequest } from '../../fakes/loopback.ts';
import { type AgentRun, runAgent } from '../agentRun.ts';
import { fieldsOf, textsOf } from '../caseFile.ts';
import { applying, CannotJudge, check, inTime, type Seen } from '../checks.ts';
import { runCli } from '../cliRun.ts';
import { clockAt } from '../clock.ts';
import { readScript, type Script } from '../streamScript.ts';
import { plainAnswer, startWire, toldIn, type WireAnswer } from '../wire.ts';
import { agentName, type World } from '../world.ts';

const apiKey = 'sk-ant-api03-1111111111111111111111';
/** Shortens the pauses between tries; all else is as in the product. */
const quick: TurnLimits = { ...standardLimits, firstPauseMs: 10 };

type Dialect = 'anthropic' | 'openai';
const dialectOf = (world: World): Dialect =>
  world.input['provider'] === 'anthropic' ? 'anthropic' : 'openai';

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

/** Puts the number of each repetition in for 990099. */
function numbered(text: string): string {
  let next = 0;
  return text.replace(/event: content_block_start\n(?:.*\n)*?event: content_block_stop\n.*\n/g, block =>
    block.includes('990099') ? block.replaceAll('990099', String(next++)) : block,
  );
}

const textFields = (value: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(fieldsOf(value)).map(([name, text]) => [name, String(text)]));

const hasResults = (request: ReceivedRequest): boolean => toldIn(request).length > 0;

/** A run on a server that gives `answer` until a tool has run or the case says that it recovers. */
function serve(world: World, answer: WireAnswer): Promise<FakeServer> {
  const recovers = world.input['then'] === 200;
  return startWire((request, index) =>
    hasResults(request) || (recovers && index > 0) ? plainAnswer('done', dialectOf(world)) : answer,
  );
}

/** The engine on the real wire; with `limits`, tries again sooner than in life. */
async function runOn(
  world: World,
  wire: FakeServer,
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
  const answer = answerOf(world);
  const script = readScript(answer, dialectOf(world));
  const wire = await serve(world, answer);
  try {
    // An error event that comes first is tried again at the real pace, since the pauses are what the case is about.
    const run = await runOn(world, wire, script.error && script.events === 1 ? undefined : quick);
    return {
      decision: decisionOn(run, wire),
      checks: [
        ...ofStream(world, run, wire, script),
        ...(script.calls.length > 8
          ? [check('network', 'at most 8 calls run at once', await parallelCalls(world))]
          : []),
        ...(script.text && !script.isWhole ? await onTerminal(world, script) : []),
      ],
    };
  } finally {
    await wire.close();
  }
}

function decisionOn({ events }: AgentRun, { requests }: FakeServer): string {
  const end = events.at(-1);
  if (end?.type !== 'run_end' || end.outcome !== 'completed') return 'error';
  return toldIn(requests.at(-1)!).at(-1)?.isError ? 'error' : 'allow';
}

/** What a run comes to follows from what the stream says and how it ends. */
function ofStream(world: World, run: AgentRun, { requests }: FakeServer, script: Script): Seen['checks'] {
  const told = requests.length > 0 ? toldIn(requests.at(-1)!) : [];
  const end = run.events.at(-1);
  const error = end?.type === 'run_end' ? (end.error?.message ?? '') : '';
  const completed = end?.type === 'run_end' && end.outcome === 'completed';
  const text = textOf(run);
  const { calls, isWhole, stop } = script;
  const ran = run.events.filter(({ type }) => type === 'tool_end').length;
  const isCut = stop === 'max_tokens' || stop === 'length';
  const gaps = requests.slice(1).map(({ arrivedAt }, index) => arrivedAt - requests[index]!.arrivedAt);
  const early = script.error && script.events === 1;
  const saw = `${completed}, ${requests.length} requests, ${error}`;
  return applying(
    !isWhole &&
      check('files', 'nothing runs of an answer that is not whole', ran === 0 || `${ran} tools ran`),
    !isWhole && check('end', 'the run does not end as done', !completed || saw),
    !isWhole &&
      !early &&
      check('network', 'the round is tried again 4 times at most', requests.length <= 5 || saw),
    script.isStream &&
      !isWhole &&
      script.error &&
      !early &&
      check('network', 'what was begun is tried again once at most', requests.length <= 2 || saw),
    early &&
      check(
        'network',
        'it is tried again with growing pauses',
        (requests.length > 1 && requests.length <= 5 && gaps.every((gap, at) => gap > 450 * 2 ** at)) ||
          `${saw}, ${gaps.map(Math.round)} ms apart`,
      ),
    early && check('shown', 'the reason is said', error.includes(script.error) || error),
    !script.isStream &&
      check(
        'shown',
        'it is said that this is no stream of events',
        /not an event stream/.test(error) || error,
      ),
    !script.isStream && check('shown', 'at most 200 bytes of it are repeated', echoed(error) <= 200 || error),
    isWhole && !isCut && check('end', 'the run ends as done', completed || saw),
    isWhole &&
      !isCut &&
      check(
        'time',
        'the end of the message ends the turn',
        run.milliseconds < inTime(10_000) || `${run.milliseconds} ms`,
      ),
    isWhole &&
      isCut &&
      check(
        'end',
        'an answer that was cut is not reported as done',
        (!completed && /length limit/.test(error)) || saw,
      ),
    isWhole &&
      !isCut &&
      check('network', 'the round is asked for once', requests.length === (calls.length > 0 ? 2 : 1) || saw),
    isWhole &&
      script.text !== '' &&
      check('shown', 'the text is whole', text.startsWith(script.text) || text),
    isWhole &&
      calls.length > 0 &&
      check('model', 'each call has its result', told.length === calls.length || `${told.length} results`),
    isWhole &&
      calls.length > 1 &&
      check(
        'model',
        'the results are in order',
        resultIds(requests).join() === calls.map(({ id }) => id).join(),
      ),
    ...(isWhole ? calls.slice(0, 3).flatMap((call, at) => ofCall(world, call, told[at]?.content ?? '')) : []),
  );
}

/** One call of a whole answer. */
function ofCall(world: World, { name, input }: Script['calls'][number], told: string): Seen['checks'] {
  const path = String(input?.['path'] ?? '');
  const written = world.read(join(world.work, path || 'a.md'));
  const known = ['read_file', 'write_file', 'list_directory', 'run_command', 'fetch_url'].includes(name);
  return applying(
    !known &&
      check('model', 'the model is told that there is no such tool', /unknown tool/i.test(told) || told),
    known &&
      !input &&
      check('model', 'the model is told that its arguments are no JSON', /JSON/.test(told) || told),
    known && !input && check('files', 'nothing is written', written === undefined),
    name === 'write_file' &&
      input &&
      check('files', 'the file has exactly that content', written === input['content'] || String(written)),
    name === 'read_file' &&
      input &&
      check(
        'model',
        'the file is read',
        told.includes(world.read(join(world.work, path))?.trim() ?? '\0') || told,
      ),
  );
}

/** Bytes of the text between the quotation marks. */
const echoed = (error: string): number => Buffer.byteLength(/“(.*)”/s.exec(error)?.[1] ?? '');

const textOf = ({ events }: AgentRun): string =>
  events.map(event => (event.type === 'text' ? event.text : '')).join('');

function resultIds(requests: readonly ReceivedRequest[]): unknown[] {
  const messages = requests.at(-1)?.body['messages'];
  const all = (Array.isArray(messages) ? messages : []).map(fieldsOf);
  const blocks = all.flatMap(({ content }) => (Array.isArray(content) ? content : [])).map(fieldsOf);
  const results = blocks.filter(block => block['type'] === 'tool_result').map(block => block['tool_use_id']);
  return results.length > 0
    ? results
    : all.filter(({ role }) => role === 'tool').map(message => message['tool_call_id']);
}

/** The same stream at the command line: what a person reads of an answer that breaks off. */
async function onTerminal(world: World, { text }: Script): Promise<Seen['checks']> {
  if (dialectOf(world) !== 'anthropic') return [];
  const wire = await serve(world, answerOf(world));
  try {
    const { stdout, stderr, exitCode } = await runCli(world, ['one'], [], {
      env: { ANTHROPIC_BASE_URL: wire.url },
    });
    return [
      check('shown', 'the text is not shown twice', stdout.split(text).length === 2 || stdout),
      check(
        'shown',
        'the answer is marked as incomplete',
        (/incomplete/.test(stderr) && exitCode !== 0) || `${exitCode}: ${stderr}`,
      ),
    ];
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
      if (!mayRun && !/was lost/.test(error ?? '')) problems.push(`cut at byte ${at}: ${error}`);
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
    checks: [
      check('files', 'no tool runs unless the message has ended', none(/tools ran/)),
      check('shown', 'it is said that the answer broke off', none(/^cut at/)),
      check('network', 'the round is tried again only when none of its tools ran', none(/tools ran|tries/)),
      check('end', 'nothing is left unhandled', unhandled.length === 0),
    ],
  };
}

/** The server says something and then nothing more, for as long as one cares to wait. */
async function silence(world: World): Promise<Seen> {
  const wire = await serve(world, answerOf(world));
  try {
    const control = new AbortController();
    // Of a server elsewhere: one on this machine, as this one is, has longer.
    const stopped = runOn(world, wire, standardLimits, control);
    await delay(300);
    const abortedAt = performance.now();
    control.abort();
    const cancelled = (await stopped).events.at(-1);
    const took = performance.now() - abortedAt;
    const run = await runOn(world, wire, standardLimits);
    const end = run.events.at(-1);
    const error = end?.type === 'run_end' ? (end.error?.message ?? '') : '';
    const { milliseconds } = run;
    return {
      decision: decisionOn(run, wire),
      checks: [
        check(
          'time',
          'the turn ends after 90 s without an event',
          (milliseconds > 89_000 && milliseconds < 90_000 + inTime(10_000)) || `${milliseconds} ms`,
        ),
        check('shown', 'the reason is said', /sent nothing for 90 seconds/.test(error) || error),
        check(
          'time',
          'a cancel works at once',
          (cancelled?.type === 'run_end' && cancelled.outcome === 'cancelled' && took < inTime(1000)) ||
            `${took} ms`,
        ),
        check(
          'files',
          'nothing runs of an answer that is not whole',
          !run.events.some(({ type }) => type === 'tool_end'),
        ),
      ],
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
    `[[allow]]\nagent = "${agentName}"\ntool = "fetch_url"\nhost = ${JSON.stringify(host)}\n`,
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

export function providerHttp(world: World): Promise<Seen> {
  return world.input['error'] === undefined ? refused(world) : nobodyThere(world);
}

/** Seconds that a refusal asks to wait; undefined where it says nothing that can be read. */
function waitIn({ headers, clock }: World['input']): number | undefined {
  const value = textFields(headers)['retry-after'];
  if (value === undefined) return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value);
  const at = /[a-z]/i.test(value) ? Date.parse(value) : Number.NaN;
  const seconds = (at - (typeof clock === 'string' ? Date.parse(clock) : Date.now())) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

async function refused(world: World): Promise<Seen> {
  const { input } = world;
  const status = Number(input['status']);
  const body = String(input['body'] ?? '');
  const answer: WireAnswer = {
    status,
    headers: { 'content-type': 'application/json', ...textFields(input['headers']) },
    chunks: [Buffer.from(body)],
    finish: 'end',
  };
  const wire = await serve(world, answer);
  try {
    // The clock does not move, so that a slow start does not take from the pause.
    const clock = typeof input['clock'] === 'string' ? clockAt(input['clock'], { stands: true }) : {};
    const cli = await runCli(world, ['one'], [], {
      env: { ANTHROPIC_BASE_URL: wire.url, ANTHROPIC_API_KEY: apiKey, ...clock },
    });
    const { requests } = wire;
    const { stderr, stdout, exitCode } = cli;
    const waits = requests.slice(1).map(({ arrivedAt }, index) => arrivedAt - requests[index]!.arrivedAt);
    const saw = `${exitCode}, ${requests.length} requests, waited ${waits.map(Math.round)} ms: ${stderr}`;
    const seconds = waitIn(input);
    const isSpent = /enforced_spend_limit_reached/.test(body);
    const isTooLong = seconds !== undefined && seconds > 120;
    const isTriedAgain = (status === 429 || status === 529 || status >= 500) && !isSpent && !isTooLong;
    const recovers = input['then'] === 200 && isTriedAgain;
    const waitsAsAsked = isTriedAgain && seconds !== undefined && seconds > 0;
    return {
      decision: exitCode === 0 && stdout.includes('done') ? 'allow' : 'error',
      checks: applying(
        check('secrets', 'the key is not shown', !(stdout + stderr).includes(apiKey)),
        check(
          'network',
          isTriedAgain ? 'it is tried again, 5 times in all at most' : 'it is tried once',
          (isTriedAgain ? requests.length === (recovers ? 2 : 5) : requests.length === 1) || saw,
        ),
        isTooLong && check('time', 'so long is not waited', cli.milliseconds < inTime(20_000) || saw),
        isTooLong &&
          check(
            'shown',
            'how long it would be is said',
            new RegExp(`${Math.round(seconds / 60)} min|${Math.round(seconds / 3600)} hour`).test(stderr) ||
              saw,
          ),
        isSpent &&
          check('shown', 'the limit of spending is named', /spending limit .*is reached/.test(stderr) || saw),
        (status === 401 || status === 403) &&
          check('shown', 'the variable to set is named', /ANTHROPIC_API_KEY/.test(stderr) || saw),
        !recovers && check('shown', 'the reason is said', stderr.trim() !== '' && exitCode !== 0),
        waitsAsAsked &&
          check(
            'time',
            'the pause is as long as it was asked for',
            (waits[0]! >= seconds * 1000 - 1500 && waits[0]! < seconds * 1000 + inTime(2500)) || saw,
          ),
        waitsAsAsked &&
          typeof input['clock'] !== 'string' &&
          check('shown', 'the pause is shown', new RegExp(`${Math.round(seconds)} s`).test(stderr) || saw),
        waitsAsAsked &&
          typeof input['clock'] !== 'string' &&
          check('time', 'a cancel works in the pause', await cancelsInWait(world, answer)),
        isTriedAgain &&
          seconds === undefined &&
          check('time', 'the pauses grow and differ', await backsOff(world, answer)),
      ),
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
  return (
    end?.type === 'run_end' &&
    end.outcome === 'cancelled' &&
    took < inTime(1000) &&
    wire.requests.length === 1
  );
}

/** Two servers that never recover: five tries each, the pauses grow and are not the same. */
async function backsOff(world: World, answer: WireAnswer): Promise<boolean> {
  const gapsOf = async (): Promise<number[]> => {
    const wire = await startWire(() => answer);
    await runOn(world, wire, { ...standardLimits, firstPauseMs: 60 });
    await wire.close();
    return wire.requests.slice(1).map(({ arrivedAt }, index) => arrivedAt - wire.requests[index]!.arrivedAt);
  };
  const [one, other] = [await gapsOf(), await gapsOf()];
  const grow = (gaps: number[]): boolean => gaps.every((gap, at) => gap >= 60 * 2 ** at * 0.5);
  const differ = one.some((gap, at) => Math.abs(gap - (other[at] ?? 0)) > 2);
  return one.length === 4 && other.length === 4 && grow(one) && grow(other) && differ;
}

/** An address at which nothing listens, or a name that leads nowhere. */
async function nobodyThere(world: World): Promise<Seen> {
  const { provider, error: code } = world.input;
  const isName = code === 'ENOTFOUND' || code === 'EAI_AGAIN';
  if (!isName && code !== 'ECONNREFUSED') throw new CannotJudge(`nothing here brings about ${code}`);
  const listener = createServer();
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve));
  const address = listener.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await new Promise(resolve => listener.close(resolve));
  const base = isName ? 'http://nowhere.invalid' : `http://localhost:${port}`;
  const env: Record<string, string> =
    provider === 'ollama'
      ? { TELOS_PROVIDER: 'ollama', OLLAMA_BASE_URL: `${base}/v1`, TELOS_MODEL: 'm' }
      : provider === 'openai'
        ? { TELOS_PROVIDER: 'openai', OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: `${base}/v1` }
        : { ANTHROPIC_BASE_URL: base };
  const run = await runAgent(world, [], { env });
  const end = run.events.at(-1);
  const error = end?.type === 'run_end' ? (end.error?.message ?? '') : '';
  const isLocal = provider === 'ollama' && !isName;
  return {
    decision: end?.type === 'run_end' && end.outcome === 'failed' ? 'error' : 'allow',
    checks: applying(
      check('shown', 'the address is named', error.includes(new URL(base).host) || error),
      isLocal &&
        check(
          'shown',
          'it is said that the program does not run',
          /Ollama is not running/.test(error) || error,
        ),
      isLocal &&
        check('time', 'it is said at once', run.milliseconds < inTime(4000) || `${run.milliseconds} ms`),
      check(
        'time',
        'it is given up in the end',
        run.milliseconds < inTime(60_000) || `${run.milliseconds} ms`,
      ),
    ),
  };
}
