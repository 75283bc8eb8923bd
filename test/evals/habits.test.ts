/** What is asked for again and again becomes a proposal: measured on recorded days with planted habits. */
import assert from 'node:assert/strict';
import { declineHabit, type Habit, newHabit } from '../../src/evals/habits.ts';
import { type Machine, openMachine } from '../harness/machine.ts';
import { answersOf, storeAnswer } from './recordedDays.ts';

interface Measured {
  answers: number;
  planted: number;
  found: Set<string>;
  right: number;
  wrong: string[];
}

describe('a habit', () => {
  let machine: Machine;
  beforeEach(() => {
    machine = openMachine();
  });
  afterEach(() => machine.remove());

  /** Lives through the days: after each answer, what the user would be offered. */
  async function livedThrough(file: string): Promise<Measured> {
    const config = machine.loadConfig();
    const answers = answersOf(file);
    const byId = new Map(answers.map(one => [one.runId, one]));
    const found = new Set<string>();
    const wrong: string[] = [];
    let right = 0;
    for (const answer of answers) {
      storeAnswer(config.dataDir, answer);
      const habit = await newHabit(answer.runId, config);
      if (!habit) continue;
      const kinds = habit.runs.map(({ runId }) => byId.get(runId)?.habit);
      if (answer.habit !== undefined && kinds.every(kind => kind === answer.habit)) {
        right++;
        found.add(answer.habit);
      } else wrong.push(habit.runs.map(({ request }) => request).join(' / '));
    }
    const times = new Map<string, number>();
    for (const { habit } of answers) if (habit) times.set(habit, (times.get(habit) ?? 0) + 1);
    const planted = [...times.values()].filter(count => count >= 3).length;
    return { answers: answers.length, planted, found, right, wrong };
  }

  for (const file of ['days.txt', 'otherDays.txt'])
    it(`is seen in ${file}: four of five proposals are right, and one answer in a hundred at most gets a wrong one`, async () => {
      const { answers, planted, found, right, wrong } = await livedThrough(file);
      const figures = `${right} right and ${wrong.length} wrong after ${answers} answers, ${found.size} of ${planted} habits found`;
      if (process.env['SHOW_FIGURES']) console.log(figures, [...found], wrong);
      assert.ok(right / (right + wrong.length) >= 0.8, `${figures}: ${wrong.join('\n')}`);
      assert.ok(wrong.length / answers <= 0.01, `${figures}: ${wrong.join('\n')}`);
      assert.ok(found.size / planted >= 0.7, figures);
    });

  it('is no request that was only said again, and none that was declined', async () => {
    const config = machine.loadConfig();
    const asked = async (conversation: string, ...requests: string[]): Promise<Habit | undefined> => {
      let habit: Habit | undefined;
      for (const request of requests) {
        const runId = `run-${count}`;
        const startedAt = new Date(Date.UTC(2026, 3, 1, 8, count++)).toISOString();
        storeAnswer(
          config.dataDir,
          { runId, request, startedAt, habit: undefined, tools: ['write_file'] },
          conversation,
        );
        habit = await newHabit(runId, config);
      }
      return habit;
    };
    let count = 0;
    const first = 'Write the packing list for Rome';
    assert.equal(await asked('a', first, first, `${first}, but shorter`), undefined);
    assert.equal(await asked('b', 'Write the packing list for Oslo'), undefined);
    const habit = await asked('b', 'Write the packing list for Bath');
    assert.equal(habit?.name, 'packing-list');
    assert.ok(habit);
    await declineHabit(habit, config);
    assert.equal(
      await asked('c', ...['Bonn', 'Ghent', 'Turin'].map(town => `Write the packing list for ${town}`)),
      undefined,
    );
  });
});
