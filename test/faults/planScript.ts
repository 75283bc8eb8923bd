/** What the model of a plan does in the fault harness, story by story. */

export interface ScriptedAttempt {
  files: Record<string, string>;
  /** The reviewer says no. */
  denied?: boolean;
  /** The boxes that it approves; all of them if missing. */
  items?: number[];
}

export interface ScriptedStory {
  attempts: ScriptedAttempt[];
  /** The command of its check. */
  check: string;
  touches: string[];
  after?: string;
}

export const idOf = (number: number): string => `US-${String(number).padStart(3, '0')}`;

const textOf = (number: number, what: string): string =>
  `${`story ${number} ${what}. `.repeat(40).trimEnd()}\n`;

/** Every fifth story is denied once, every sixth passes in two parts, the check of every seventh leaves a process running. */
export function faultyStory(number: number): ScriptedStory {
  const text = (what: string): string => textOf(number, what);
  const [main, part] = [`story/${number}.txt`, `story/${number}-part.txt`];
  const whole: ScriptedAttempt = {
    files: { [main]: text('whole'), [`story/deep/${number}/b.txt`]: text('deep') },
  };
  const denied: ScriptedAttempt = { files: { [main]: text('wrong') }, denied: true };
  const half: ScriptedAttempt = { files: { [part]: text('part') }, items: [1] };
  const before = number % 5 === 0 ? [denied] : number % 6 === 0 ? [half] : [];
  const leave = number % 7 === 0 ? 'setsid sleep 600 > /dev/null 2>&1 & ' : '';
  return {
    attempts: [...before, whole],
    check: `${leave}test -f ${main} -o -f ${part}`,
    touches: [main, part, `story/deep/${number}/**`],
    ...(number % 4 === 0 && { after: idOf(number - 1) }),
  };
}

/** Passes at once, with a check that does nothing, and touches no file of another story. */
export const plainStory = (number: number): ScriptedStory => ({
  attempts: [{ files: { [`story/${number}.txt`]: textOf(number, 'whole') } }],
  check: 'true',
  touches: [`story/${number}.txt`],
});

/** Changes the one file that all stories change. */
export const sameFileStory = (number: number): ScriptedStory => ({
  attempts: [{ files: { 'story/all.txt': textOf(number, 'whole') } }],
  check: 'true',
  touches: ['story/all.txt'],
});

export const prdOf = (id: string, { check, touches, after }: ScriptedStory): string =>
  [
    '---',
    `id: ${id}`,
    ...(after ? [`depends_on: [${after}]`] : []),
    `touches: ${JSON.stringify(touches)}`,
    'check:',
    `  - {name: files, command: ${JSON.stringify(check)}}`,
    '---',
    `# Story ${Number(id.slice(3))}`,
    '- [ ] 1. The file is there',
    '- [ ] 2. It is whole',
    '',
  ].join('\n');
