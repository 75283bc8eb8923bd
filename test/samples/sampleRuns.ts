/** The model of the sample's recordings: written by hand, since a recording in a repository must not depend on a key. */
import type { StreamEvent } from '../../src/engine/core/ports.ts';

type Call = readonly [name: string, input: Readonly<Record<string, unknown>>];

/** Returns a turn: a text, and the calls after it. */
export const turn = (text: string, ...calls: readonly Call[]): StreamEvent[] => [
  { type: 'text', text },
  ...calls.map(
    ([name, input], index): StreamEvent => ({
      type: 'tool_call',
      call: { id: `${name}_${index + 1}`, name, input },
    }),
  ),
  { type: 'done', stopReason: calls.length > 0 ? 'tool_use' : 'end_turn' },
];

const read = (path: string): Call => ['read_file', { path }];
const write = (path: string, ...lines: string[]): Call => [
  'write_file',
  { path, content: `${lines.join('\n')}\n` },
];

/** Turns by skill and eval. The first evals of kickoff and weekly-summary play what the sample itself plays. */
export const sampleRuns: Readonly<Record<string, Readonly<Record<string, StreamEvent[][]>>>> = {
  kickoff: {
    2: [
      turn('I look for your tasks and notes.', ['list_directory', { path: '.' }]),
      turn(
        'There is no `tasks.md` here yet. Which three things are on your mind today? Tell me, and I make the list from them.',
      ),
    ],
  },
  'weekly-summary': {
    2: [
      turn('I look for notes beside the task list.', ['list_directory', { path: '.' }], read('tasks.md')),
      turn(
        'There is only the task list.',
        write(
          'weekly-summary.md',
          '# Weekly summary',
          '',
          '**In one sentence:** a week of which only the task list tells.',
          '',
          '## Done',
          '',
          '- Room, projector and invitation for the workshop; the photos are in the new gallery.',
          '',
          '## Loose ends',
          '',
          '- The exercise sheet: exercise 3 has no sample solution. Next step: write it, it goes to print.',
          '- The travel receipts from October. Next step: hand them in by Friday.',
          '',
          '## Next week',
          '',
          '1. Fix the contact form.',
        ),
      ),
      turn(
        'A week of which only the task list tells: there are no notes, so I have left out what was learned. The page is `weekly-summary.md`.',
      ),
    ],
  },
  shutdown: {
    1: [
      turn('I read the plan of the morning and the log.', read('today.md'), read('log.md')),
      turn(
        'Two things are done, one is begun.',
        write(
          'log.md',
          '# Log',
          '',
          '## Monday',
          '',
          '- Walked through exercises 1 and 2.',
          '',
          '**Tomorrow first:** exercise 3.',
          '',
          '## Tuesday',
          '',
          '- The exercise sheet is finished.',
          '- The whole exercise ran on an old laptop.',
          '- Begun: the contact form. Next step: set the charset in the mail header.',
          '',
          '**Tomorrow first:** the contact form.',
        ),
      ),
      turn(
        'The exercise sheet is done, and that was the day. Tomorrow begins with the contact form. Have a good evening!',
      ),
    ],
    2: [
      turn('I look for the plan of today.', read('today.md')),
      turn('There is none, so I go by the task list.', read('tasks.md')),
      turn(
        'Nothing says what was done today.',
        write(
          'log.md',
          '# Log',
          '',
          '## Today',
          '',
          '- No plan to compare with. Open with a deadline: the exercise sheet, the travel receipts.',
          '',
          '**Tomorrow first:** the sample solution of exercise 3.',
        ),
      ),
      turn(
        'There was no plan for today, so I went by your task list. Tomorrow begins with exercise 3, which goes to print. Have a good evening!',
      ),
    ],
  },
};
