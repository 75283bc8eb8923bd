/**
 * The model of the concurrent runs, in a process of its own so that its work is not the engine's: answers after a pause, checks that a request
 * holds nothing of another run, and tells how long after an answer the next request came. Speaks to its parent by messages.
 */
import { type AnthropicTurn, type ReceivedRequest, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { seeded } from './figure.ts';

export interface ServerReport {
  /** From the last byte of an answer to the next request of the same run, in milliseconds, by the tool that was called between. */
  gaps: Record<string, number[]>;
  /** The same of the loops without an engine, whose numbers come after those of the runs. */
  bareGaps: number[];
  /** What stood in a request and belonged to another run. */
  foreign: string[];
}

const [rounds = 20, pauseMs = 300, runs = 50] = process.argv.slice(2).map(Number);
const report: ServerReport = { gaps: {}, bareGaps: [], foreign: [] };
const random = seeded(7);
const last = new Map<string, { request: ReceivedRequest; tool: string }>();

/** One round of each run, not the same one in all of them as they would not be in life. */
const commandRound = (run: string): number => 3 + (Number(run.slice(1)) % 13);

/** Most rounds read, write or change a file; two ask a person; one of them runs a command. */
function callOf(run: string, round: number): { name: string; input: object } {
  if (round === commandRound(run))
    return { name: 'run_command', input: { command: `echo mark-${run}-; true` } };
  if (round === 17)
    return { name: 'write_file', input: { path: `${run}/AGENTS.md`, content: `mark-${run}-` } };
  const file = `${run}/notes.md`;
  switch (round % 4) {
    case 0:
      return { name: 'write_file', input: { path: file, content: `mark-${run}- ${'text '.repeat(400)}` } };
    case 1:
      return { name: 'read_file', input: { path: file } };
    case 2:
      return {
        name: 'edit_file',
        input: { path: file, old_text: `mark-${run}-`, new_text: `mark-${run}- ` },
      };
    default:
      return { name: 'list_directory', input: { path: run } };
  }
}

function turn(request: ReceivedRequest): AnthropicTurn {
  const text = JSON.stringify(request.body.messages);
  const run = /mark-(r\d+)-/.exec(text)?.[1] ?? '?';
  for (const [, other] of text.matchAll(/mark-(r\d+)-/g))
    if (other !== run) report.foreign.push(`${run} was sent a mark of ${other}`);
  const before = last.get(run);
  if (before) {
    const gap = request.arrivedAt - (before.request.endedAt ?? Number.NaN);
    const isBare = Number(run.slice(1)) >= runs;
    if (isBare) report.bareGaps.push(gap);
    else report.gaps[before.tool] = [...(report.gaps[before.tool] ?? []), gap];
  }
  const round = request.body.messages.filter(
    (message: { role: string }) => message.role === 'assistant',
  ).length;
  const call = callOf(run, round);
  last.set(run, { request, tool: call.name });
  const delivery = { stallMs: pauseMs * (0.5 + random()) };
  const words = [`mark-${run}-`, ` round ${round}.`];
  if (round === rounds - 1) return { ...delivery, text: words };
  return { ...delivery, text: words, toolCalls: [call] };
}

const server = await startAnthropicServer({ turns: turn });
process.on('message', () => {
  process.send?.(report);
  process.disconnect();
  void server.close();
});
process.on('disconnect', () => process.exit());
process.send?.(server.url);
