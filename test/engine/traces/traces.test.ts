/** Runs as a collector of OpenTelemetry reads them: names of the conventions, nothing of what was said, never a secret, never a delay. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { runIfDue } from '../../../src/engine/schedule/due.ts';
import { Schedules } from '../../../src/engine/schedule/schedules.ts';
import { inWorkflow } from '../../../src/engine/traces/traced.ts';
import { hasTraces, pairsIn, readTraceSettings } from '../../../src/engine/traces/traceSettings.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { otlpCollector, type ReadSpan } from '../../fakes/otlpCollector.ts';
import type { ScriptedTurn } from '../../fakes/scriptedProvider.ts';
import { scriptedTelos } from '../../fakes/scriptedTelos.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const key = 'sk-secret-0123456789';
const done = (stopReason: string): ScriptedTurn[number] => ({
  type: 'done',
  stopReason,
  usage: { inputTokens: 100, outputTokens: 20, cacheReadTokens: 30, cacheWriteTokens: 0 },
});
/** Two tools, of which the user denies one; the last words have a secret. */
const turns: readonly ScriptedTurn[] = [
  [
    { type: 'text', text: 'I look into notes.md.' },
    { type: 'tool_call', call: { id: 'c1', name: 'read_file', input: { path: 'notes.md' } } },
    { type: 'tool_call', call: { id: 'c2', name: 'run_command', input: { command: 'rm -rf old' } } },
    done('tool_use'),
  ],
  [{ type: 'text', text: `The key is ${key}.` }, done('end_turn')],
];

const denies: Human = {
  approve: async () => ({ allow: false, reason: 'not that' }),
  ask: async () => [],
};

describe('traces of runs', () => {
  let folder: TempFolder;
  let collector: Awaited<ReturnType<typeof otlpCollector>>;

  beforeEach(async () => {
    folder = tempFolder({ 'work/notes.md': 'THE NOTES OF ANN\n' });
    collector = await otlpCollector();
  });
  afterEach(async () => {
    await collector.close();
    folder.remove();
    assert.deepEqual(collector.refused, []);
  });

  const env = (more: Record<string, string> = {}): Record<string, string> => ({
    PATH: process.env['PATH'] ?? '',
    TELOS_SANDBOX: 'off',
    A_KEY: key,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=ann%20header%20key',
    OTEL_SERVICE_NAME: 'garden',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=other',
    ...more,
  });

  async function run(more: Record<string, string> = {}, request = {}): Promise<RunEvent[]> {
    const config = loadConfig({ env: env(more), home: folder.path, cwd: join(folder.path, 'work') });
    const { telos } = scriptedTelos(config, (_, index) => turns[index] ?? turns[1]!);
    const events: RunEvent[] = [];
    const asked = { text: 'tidy up THE GARDEN', withoutSkill: true, origin: 'cli' as const, ...request };
    for await (const event of telos.run(asked, denies, new AbortController().signal)) events.push(event);
    return events;
  }

  const named = (start: string): ReadSpan[] => collector.spans.filter(({ name }) => name.startsWith(start));

  it('have the agent, its questions to the model and its calls, by the names of the conventions', async () => {
    await run();
    const [root, ...others] = named('invoke_agent');
    assert.ok(root);
    assert.deepEqual(others, []);
    assert.equal(root.name, 'invoke_agent telos');
    assert.equal(root.parentSpanId, undefined);
    const { attributes } = root;
    assert.equal(attributes['gen_ai.operation.name'], 'invoke_agent');
    assert.equal(attributes['gen_ai.provider.name'], 'scripted');
    assert.equal(attributes['gen_ai.request.model'], 'script');
    assert.equal(attributes['gen_ai.usage.input_tokens'], 260);
    assert.equal(attributes['gen_ai.usage.output_tokens'], 40);
    assert.equal(attributes['telos.origin'], 'cli');
    assert.equal(attributes['telos.outcome'], 'completed');
    assert.equal(attributes['telos.denials'], 1);
    const chats = named('chat script');
    assert.deepEqual(
      chats.map(one => one.attributes['gen_ai.usage.input_tokens']),
      [130, 130],
    );
    assert.ok(chats.every(one => one.kind === 3 && one.parentSpanId === root.spanId));
    const [read] = named('execute_tool read_file');
    const [command] = named('execute_tool run_command');
    assert.equal(read?.name, 'execute_tool read_file');
    assert.equal(read?.attributes['gen_ai.tool.call.id'], 'c1');
    assert.equal(read?.attributes['telos.decision'], 'allow');
    assert.match(String(read?.attributes['telos.decision.rule']), /\w/);
    assert.equal(read?.isError, false);
    assert.equal(command?.name, 'execute_tool run_command');
    assert.equal(command?.attributes['telos.decision.answer'], 'no');
    assert.equal(command?.attributes['error.type'], 'denied');
    assert.equal(command?.isError, true);
    assert.equal(new Set(collector.spans.map(({ traceId }) => traceId)).size, 1);
    assert.equal(collector.spans.length, 5);
    assert.equal(collector.resource()['service.name'], 'garden');
    assert.equal(collector.resource()['deployment.environment.name'], 'test');
    assert.equal(collector.headers[0]?.['x-api-key'], 'ann header key');
  });

  it('have metrics of tokens, time and denials', async () => {
    await run();
    const tokens = collector.metrics.get('gen_ai.client.token.usage');
    const sums = tokens.map((one: { attributes: Record<string, unknown>; sum: number }) => [
      one.attributes['gen_ai.token.type'],
      one.sum,
    ]);
    assert.deepEqual(sums, [
      ['input', 260],
      ['output', 40],
    ]);
    assert.equal(collector.metrics.get('gen_ai.client.operation.duration')[0].count, 2);
    assert.equal(collector.metrics.get('gen_ai.invoke_agent.duration')[0].count, 1);
    assert.equal(collector.metrics.get('gen_ai.execute_tool.duration').length, 2);
    assert.equal(collector.metrics.get('telos.denials')[0].value, 1);
  });

  it('are the same in both forms of the protocol', async () => {
    const shape = ({ name, kind, isError, attributes }: ReadSpan) => ({ name, kind, isError, attributes });
    await run();
    const inJson = collector.spans.splice(0).map(shape);
    const denials = collector.metrics.get('telos.denials');
    await run({ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' });
    assert.equal(collector.headers.at(-1)?.['content-type'], 'application/x-protobuf');
    assert.deepEqual(collector.spans.map(shape).map(withoutRun), inJson.map(withoutRun));
    assert.equal(collector.spans.length, 5);
    assert.equal(new Set(collector.spans.map(({ traceId }) => traceId)).size, 1);
    assert.equal(collector.metrics.get('gen_ai.client.operation.duration')[0].count, 2);
    assert.equal(collector.metrics.get('telos.denials')[0].value, denials[0].value);
    assert.equal(collector.resource()['service.name'], 'garden');
  });

  it('have nothing of what was said, read or done', async () => {
    await run();
    const all = collector.raw.join('\n');
    assert.doesNotMatch(all, /GARDEN|NOTES OF ANN|notes\.md|rm -rf|I look|not that/);
    assert.doesNotMatch(all, new RegExp(`${key}|ann header key|${folder.path}`));
  });

  it('have it if that is wanted, without secrets', async () => {
    await run({ OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true' });
    const [root] = named('invoke_agent');
    const input = JSON.parse(String(root?.attributes['gen_ai.input.messages']));
    assert.deepEqual(input, [{ role: 'user', parts: [{ type: 'text', content: 'tidy up THE GARDEN' }] }]);
    assert.match(String(root?.attributes['gen_ai.output.messages']), /The key is \[redacted\]\./);
    const [read] = named('execute_tool read_file');
    const [command] = named('execute_tool run_command');
    assert.match(String(read?.attributes['gen_ai.tool.call.result']), /THE NOTES OF ANN/);
    assert.equal(command?.attributes['gen_ai.tool.call.arguments'], '{"command":"rm -rf old"}');
    assert.doesNotMatch(collector.raw.join('\n'), /sk-secret|ann header key/);
  });

  it('are below the span that is named, and below that of a plan', async () => {
    const parent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    await run({ TRACEPARENT: parent });
    const [root] = named('invoke_agent');
    assert.deepEqual([root?.traceId, root?.parentSpanId], ['a'.repeat(32), 'b'.repeat(16)]);
    collector.spans.length = 0;
    await inWorkflow(env(), 'plan garden', async traceParent => {
      await run({}, { traceParent });
      await run({}, { traceParent });
    });
    const [plan] = named('invoke_workflow plan garden');
    const steps = named('invoke_agent');
    assert.equal(plan?.attributes['gen_ai.operation.name'], 'invoke_workflow');
    assert.deepEqual(
      steps.map(({ traceId, parentSpanId }) => [traceId, parentSpanId]),
      Array(2).fill([plan?.traceId, plan?.spanId]),
    );
  });

  it('are below that of the schedule that runs them, which has how it ended', async () => {
    folder.add({ 'skills/home/skills/tidy/SKILL.md': '---\nname: tidy\ndescription: Tidies\n---\nTidy.' });
    const config = loadConfig({
      env: env({ TELOS_SKILLS_DIR: join(folder.path, 'skills'), TELOS_DATA_DIR: join(folder.path, 'data') }),
      home: folder.path,
      cwd: join(folder.path, 'work'),
    });
    const { telos } = scriptedTelos(config, (_, index) => turns[index] ?? turns[1]!);
    const schedules = new Schedules(config.dataDir);
    const { digest } = await telos.agentCard('home');
    const skill = { agent: 'home', skill: 'tidy' };
    const since = new Date().toISOString();
    const when = { at: 'every day 08:30', cwd: config.cwd, missed: 'once' as const, since };
    const draft = schedules.draft({ request: 'tidy up', skill, digest, clock: 'none', ...when });
    await schedules.keep(draft);
    const parts = { schedules, open: () => telos, signal: new AbortController().signal };
    await runIfDue(draft.id, true, parts);
    const [root] = named('invoke_workflow');
    const [below] = named('invoke_agent');
    assert.equal(root?.name, `invoke_workflow schedule ${draft.id}`);
    assert.equal(root?.attributes['telos.outcome'], 'completed');
    assert.deepEqual([below?.traceId, below?.parentSpanId], [root?.traceId, root?.spanId]);
    assert.equal(below?.attributes['telos.origin'], 'schedule');
    collector.spans.length = 0;
    rmSync(join(folder.path, 'skills/home/skills/tidy'), { recursive: true });
    telos.refresh();
    await runIfDue(draft.id, true, parts);
    const [alone, ...others] = collector.spans;
    assert.deepEqual(others, []);
    assert.equal(alone?.attributes['error.type'], 'blocked');
    assert.equal(alone?.isError, true);
  });

  it('are left out as the sampler says, but for the metrics', async () => {
    await run({ OTEL_TRACES_SAMPLER: 'always_off' });
    await run({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' });
    const unsampled = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`;
    await run({ TRACEPARENT: unsampled });
    assert.deepEqual(collector.spans, []);
    assert.equal(collector.metrics.get('telos.denials')[0].value, 1);
    await run({ OTEL_TRACES_SAMPLER: 'always_on', TRACEPARENT: unsampled });
    assert.equal(collector.spans.length, 5);
  });

  it('are dropped and counted while the collector is down, and the run is the same', async () => {
    const server = createServer();
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise(resolve => server.close(resolve));
    // The metrics reach one that works.
    const more = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${port}/v1/traces` };
    const events = await run(more);
    const shapes = (some: RunEvent[]) => some.map(({ type }) => type);
    assert.deepEqual(shapes(events), shapes(await run({ OTEL_SDK_DISABLED: 'true' })));
    assert.equal(events.at(-1)?.type, 'run_end');
    assert.deepEqual(collector.spans, []);
    assert.equal(collector.metrics.get('telos.spans.dropped')[0].value, 5);
  });

  it('are not waited for at a collector that never answers', async () => {
    const server = createServer(() => undefined);
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const more = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` };
    // It ends while the request is still open.
    assert.equal((await run(more)).at(-1)?.type, 'run_end');
    server.closeAllConnections();
    server.close();
  });
});

/** What differs from run to run. */
const withoutRun = <Of extends { attributes: Record<string, unknown> }>({ attributes, ...rest }: Of) => ({
  ...rest,
  attributes: Object.fromEntries(
    Object.entries(attributes).filter(([key]) => !/run|conversation|duration|time/.test(key)),
  ),
});

describe('variables of OpenTelemetry', () => {
  const endpoint = 'http://127.0.0.1:4318';

  it('are off where none is set, and where they say so', () => {
    assert.equal(hasTraces({}), false);
    assert.equal(hasTraces({ OTEL_SERVICE_NAME: 'x' }), false);
    assert.equal(hasTraces({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }), true);
    assert.equal(hasTraces({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'TRUE' }), false);
  });

  it('name a base, to which the kind is added, or the address itself', () => {
    const base = readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/x/` }).settings;
    assert.deepEqual(
      [base.traces?.url, base.metrics?.url],
      [`${endpoint}/x/v1/traces`, `${endpoint}/x/v1/metrics`],
    );
    const own = readTraceSettings({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/mine`,
      OTEL_EXPORTER_OTLP_HEADERS: 'a=1',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'b=2',
    }).settings;
    assert.deepEqual(own.traces, { url: `${endpoint}/mine`, headers: { b: '2' }, protocol: 'http/json' });
    assert.equal(own.metrics, undefined);
    const none = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_METRICS_EXPORTER: 'none' };
    assert.equal(readTraceSettings(none).settings.metrics, undefined);
  });

  it('that cannot be followed are said', () => {
    const said = (more: Record<string, string>): string[] =>
      readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...more }).problems.map(({ text }) => text);
    const refusal = said({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' });
    assert.equal(refusal.length, 1);
    assert.match(refusal[0] ?? '', /^Nothing is exported there/);
    assert.match(
      said({ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'thrift' })[0] ?? '',
      /^Nothing is exported there/,
    );
    assert.match(said({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' })[0] ?? '', /not an http address/);
    assert.match(said({ OTEL_TRACES_SAMPLER: 'jaeger_remote' })[0] ?? '', /unknown/);
    assert.deepEqual(said({ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }), []);
    assert.deepEqual(pairsIn('a=1, b=x%3Dy ,c,=d'), { a: '1', b: 'x=y' });
  });
});
