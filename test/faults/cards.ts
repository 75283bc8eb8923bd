/** Whether an ordinary skill still feels light: how often a person is asked in its first run and in its second, when they say yes for always. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/engine/config.ts';
import { boxState } from '../../src/engine/run/openBox.ts';
import type { CountedSkill } from './cardsProcess.ts';
import { type Extent, type Figure, percentile } from './figure.ts';

/** `corpus` is a folder with SKILL.md files of many owners, `<owner>/.../SKILL.md`; without it our own skills alone are counted. */
export async function cardFigures(extent: Extent, corpus?: string): Promise<Figure[]> {
  const without = await countedFigures('off', extent, corpus);
  const { state } = await boxState(loadConfig());
  if (!state || state.works) return [...without, ...(await countedFigures('auto', extent, corpus))];
  const value = `not counted, since no sandbox works here: ${state.why}`;
  return [...without, { name: 'the same in a sandbox', value, limit: 'none', met: true }];
}

async function countedFigures(sandbox: 'auto' | 'off', extent: Extent, corpus?: string): Promise<Figure[]> {
  const program = fileURLToPath(new URL('cardsProcess.ts', import.meta.url));
  const child = fork(program, corpus ? [sandbox, corpus] : [sandbox]);
  try {
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`The process that runs the skills ended with ${code}.`);
    });
    const [counted] = (await Promise.race([once(child, 'message'), ended])) as [CountedSkill[]];
    if (extent === 'whole') {
      console.log(sandbox === 'auto' ? 'Commands in a sandbox:' : 'Commands without a sandbox:');
      for (const line of table(counted)) console.log(line);
    }
    const groups: [string, CountedSkill[]][] = [
      ['the sample packs', counted.filter(({ kind }) => kind === 'sample')],
      ['a skill for each thing that a card is about', counted.filter(({ kind }) => kind === 'written')],
      ['ordinary skills of the corpus', counted.filter(({ kind }) => kind === 'corpus')],
      ['skills of the corpus that reach no host', counted.filter(({ kind }) => kind === 'hostless')],
    ];
    return groups.flatMap(([name, skills]) => {
      if (skills.length === 0) return [];
      return sandbox === 'off' ? figuresOf(name, skills) : boxFigures(`in a sandbox, ${name}`, skills);
    });
  } finally {
    child.kill('SIGKILL');
  }
}

/** Nothing leaves the box in a run that reaches no host and runs no command outside. */
function boxFigures(name: string, skills: readonly CountedSkill[]): Figure[] {
  const [all = '', second, did] = figuresOf(name, skills);
  const inside = skills.filter(({ reachesNoHost, runs: [first] }) => first?.outside === 0 && reachesNoHost);
  const questions = inside.map(({ runs }) => runs[0]?.asked.length ?? Number.NaN);
  const quiet: Figure = {
    name: `${name}: questions in the first run where nothing leaves the sandbox`,
    value: questionCounts(questions),
    limit: 'median 0',
    met: questions.length === 0 || percentile(questions, 0.5) === 0,
  };
  return [all, quiet, second, did].filter(figure => typeof figure === 'object');
}

/** Returns the middle, the most, and how many there are of each. */
function questionCounts(values: readonly number[]): string {
  const kinds = [...new Set(values)].sort((a, b) => a - b);
  const shares = kinds.map(value => `${values.filter(one => one === value).length} with ${value}`);
  return `median ${percentile(values, 0.5)}, most ${Math.max(...values)} (${shares.join(', ')}), ${values.length} skills`;
}

function figuresOf(name: string, skills: readonly CountedSkill[]): Figure[] {
  const [first = [], second = []] = [0, 1].map(run =>
    skills.map(({ runs }) => runs[run]?.asked.length ?? Number.NaN),
  );
  const failed = skills.filter(({ runs }) => runs.some(({ outcome }) => outcome !== 'completed'));
  return [
    {
      name: `${name}: questions in the first run`,
      value: questionCounts(first),
      limit: 'median at most 1',
      met: percentile(first, 0.5) <= 1,
    },
    {
      name: `${name}: questions in the second run`,
      value: questionCounts(second),
      limit: 'median 0',
      met: percentile(second, 0.5) === 0,
    },
    {
      name: `${name}: runs that did all they wanted`,
      value: `${skills.length - failed.length} of ${skills.length}${failed[0] ? ` (${failed[0].name}: ${failed[0].runs.map(({ outcome }) => outcome).join(' | ')})` : ''}`,
      limit: 'all',
      met: failed.length === 0,
    },
  ];
}

function table(counted: readonly CountedSkill[]): string[] {
  const width = Math.max(...counted.map(({ name }) => name.length)) + 2;
  return [
    `${'skill'.padEnd(width)}first  second  other words  what it does beside reading and writing`,
    ...counted.flatMap(({ name, runs, does }) => {
      const [first, second, third] = runs.map(({ asked }) => String(asked.length));
      const asked = runs.flatMap((run, index) =>
        run.asked.map(what => `    run ${index + 1} asked: ${what}`),
      );
      return [
        `${name.padEnd(width)}${first?.padEnd(7)}${second?.padEnd(8)}${third?.padEnd(13)}${does.join('; ')}`,
        ...asked,
      ];
    }),
  ];
}
