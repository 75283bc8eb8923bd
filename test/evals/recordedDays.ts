/** Stores the recorded days of a fixture as runs, one after the other. */
import { readFileSync } from 'node:fs';
import type { RunEvent } from '../../src/protocol/run.ts';
import { writeRun } from '../engine/records/storedRuns.ts';

export interface RecordedAnswer {
  runId: string;
  /** What it is planted as. Undefined for a request that is no habit. */
  habit: string | undefined;
  request: string;
  tools: readonly string[];
  startedAt: string;
}

/** Returns the answers of a file, the first one first. */
export function answersOf(name: string): RecordedAnswer[] {
  const text = readFileSync(new URL(`../fixtures/habits/${name}`, import.meta.url), 'utf8');
  let [day, count] = [1, 0];
  const answers: RecordedAnswer[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue;
    const [habit = '', tools = '', request] = line.split('|').map(part => part.trim());
    if (request === undefined) {
      [day, count] = [day + 1, 0];
      continue;
    }
    answers.push({
      runId: `run-${String(answers.length).padStart(4, '0')}`,
      habit: habit === '-' ? undefined : habit,
      request,
      tools: tools.split(',').filter(Boolean),
      startedAt: new Date(Date.UTC(2026, 2, day, 8, 10 * count++)).toISOString(),
    });
  }
  return answers;
}

/** Stores the run of an answer as one without a skill. */
export function storeAnswer(
  dataDir: string,
  { runId, request, tools, startedAt }: RecordedAnswer,
  conversation = runId,
): void {
  const events = tools.map((tool, index): RunEvent => {
    const [name = '', ...command] = tool.split(' ');
    const input = name === 'run_command' ? { command: command.join(' ') } : { path: `file-${runId}.md` };
    return { type: 'tool_start', call: { id: `call-${index}`, name, input } };
  });
  writeRun(dataDir, { runId, conversation, request, startedAt, agent: 'telos', skill: '', events });
}
