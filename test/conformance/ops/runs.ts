/** Whole runs with a model whose turns are written down in the case. */

import { mkdirSync } from 'node:fs';
import { textPrinter } from '../../../src/cli/runPrinter.ts';
import type { Terminal } from '../../../src/cli/terminal.ts';
import { TelosError } from '../../../src/engine/core/errors.ts';
import { logPath, readLog } from '../../../src/engine/records/logFile.ts';
import { record } from '../../../src/engine/records/record.ts';
import { firstMessage } from '../../../src/engine/run/prompt.ts';
import { newRun } from '../../../src/engine/run/request.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { loopRun } from '../../fakes/loopRun.ts';
import { calls, done, type ScriptedTurn, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { isRecord, type Json, type JsonRecord } from '../caseFile.ts';
import type { CaseWorld } from '../caseWorld.ts';
import type { Observed } from '../expectations.ts';
import type { Operations } from '../operations.ts';
import { runWithServers } from './mcp.ts';
import { bench } from './tools.ts';

export const runOperations: Operations = {
  build_prompt: async ({ given, when }) => ({
    content: firstMessage(String(given['body']), String(when['user_request'] ?? ''), new Date()),
  }),

  async execute({ given, when }, world) {
    if (given['mcp_json']) return runWithServers(world);
    const endless = [calls('1', 'list_directory', {})];
    const rounds = Array.isArray(given['provider_rounds']) ? given['provider_rounds'].map(turnOf) : undefined;
    const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const counted: ScriptedTurn = [says('k'), { type: 'done', stopReason: 'end_turn', usage }];
    const turns = rounds ?? [given['provider_usage'] ? counted : endless];
    return execute(turns, String(when['body'] ?? 'BODY'), String(when['user_request'] ?? ''), world);
  },
};

/** A round is a list of events, or `raise` with a message in the place of one or of all. */
function turnOf(round: Json): ScriptedTurn {
  const events = Array.isArray(round) && round[0] === 'raise' ? [round] : (round as readonly Json[]);
  return events.map(event => {
    const [kind, first, second, input] = event as readonly Json[];
    // A status is an error of ours by the time it reaches the loop.
    if (kind === 'raise' && /^4\d\d /.test(String(first))) return new TelosError('auth', String(first));
    if (kind === 'raise') return new Error(String(first));
    if (kind === 'text') return says(String(first));
    if (kind === 'done') return done(String(first));
    return calls(String(first), String(second), (isRecord(input) ? input : {}) as JsonRecord);
  });
}

async function execute(
  turns: readonly ScriptedTurn[],
  body: string,
  words: string,
  world: CaseWorld,
): Promise<Observed> {
  const provider = scriptedProvider(turns);
  const tools = bench(world.cwd, world.cwd, world);
  mkdirSync(world.data, { recursive: true });
  const run = newRun({ text: words }, tools.human, world.loadConfig());
  run.messages.push({ role: 'user', content: firstMessage(body, words, new Date()) });
  const spec = { ...tools, provider, system: 'S', skillDir: world.cwd, priceOf: () => 0.001 };
  const events: RunEvent[] = [];
  const screen = { stdout: '' };
  const print = textPrinter(terminalFor(screen));
  for await (const event of record(loopRun(run, spec, new AbortController().signal), run, world.data)) {
    events.push(event);
    print(event);
  }
  const end = events.find(event => event.type === 'run_end');
  const { records } = await readLog(logPath(world.data));
  const log = records.find(record => record.event === 'skill_end');
  const ended = events.filter(event => event.type === 'tool_end');
  const [first] = provider.requests[0]?.messages ?? [];
  return {
    stdout: screen.stdout,
    provider_calls: provider.requests.length,
    tools_offered: provider.requests[0]?.tools.length,
    tools_offered_per_call: provider.requests.map(request => request.tools.length),
    firstUser: first?.content,
    second_call_tail: provider.requests[1]?.messages.slice(-2),
    tool_errors: ended.filter(({ result }) => result.isError).map(({ name }) => name),
    max_rounds: end?.outcome === 'round_limit' ? provider.requests.length : undefined,
    log:
      log && 'cost' in log && log.input_tokens > 0 && log.cost === 0.001
        ? 'tokens and cost in the JSONL log'
        : log,
    log_messages_roles: log && 'messages' in log ? log.messages.map(({ role }) => role) : undefined,
    warning:
      events.some(event => event.type === 'notice' && event.level === 'warning') || end?.error !== undefined,
    // A remark of the specification on its own state.
    future: true,
    ...(end?.error ? { throws: end.error.message } : {}),
  };
}

/** Returns a terminal whose output is kept. */
export function terminalFor(screen: { stdout: string }): Terminal {
  const same = (text: string): string => text;
  return {
    out(text) {
      screen.stdout += text;
    },
    say() {},
    flush() {},
    endLine() {
      if (screen.stdout && !screen.stdout.endsWith('\n')) screen.stdout += '\n';
    },
    canAsk: false,
    surroundings: process,
    outWidth: undefined,
    sayWidth: 80,
    style: { dim: same, bold: same, red: same, yellow: same },
  };
}
