/** The figures of the suite, and the bar under which it fails. */
import type { CallKind } from './caseFile.ts';
import type { SkillOutcome } from './runSkill.ts';
import type { Layout } from './skillWorld.ts';

export interface Figures {
  layout: Layout;
  skills: number;
  possible: number;
  complete: number;
  completeAgain: number;
  /** Possible skills whose every call was right as written. */
  allAsWritten: number;
  /** Calls that worked as written, of all, by kind. */
  calls: Record<CallKind, readonly [asWritten: number, all: number]>;
  packsChanged: number;
  /** Questions of each possible skill. */
  firstQuestions: number[];
  secondQuestions: number[];
  /** Impossible skills of which the run said so before the model was asked. */
  toldMissing: readonly [told: number, all: number];
  /** Complete skills that were warned about. */
  warnedForNothing: number;
}

export function figuresOf(outcomes: readonly SkillOutcome[], layout: Layout): Figures {
  const mine = outcomes.filter(each => each.layout === layout);
  const possible = mine.filter(({ impossible }) => impossible === undefined);
  const steps = possible.flatMap(({ first }) => first.steps);
  const calls = (kind: CallKind): [number, number] => {
    const all = steps.filter(step => step.kind === kind);
    return [all.filter(({ asWritten }) => asWritten).length, all.length];
  };
  const missing = mine.filter(({ one }) => one.missing !== undefined);
  return {
    layout,
    skills: mine.length,
    possible: possible.length,
    complete: possible.filter(({ first }) => first.complete).length,
    completeAgain: possible.filter(({ second }) => second?.complete).length,
    allAsWritten: possible.filter(isAsWritten).length,
    calls: { read: calls('read'), command: calls('command'), write: calls('write'), look: calls('look') },
    packsChanged: mine.filter(changesItsPack).length,
    firstQuestions: possible.map(({ first }) => first.questions.length),
    secondQuestions: possible.map(({ second }) => second?.questions.length ?? 0),
    toldMissing: [missing.filter(tellsMissing).length, missing.length],
    warnedForNothing: possible.filter(({ first }) => first.warnings.length > 0).length,
  };
}

export const isAsWritten = ({ first, one }: SkillOutcome): boolean =>
  first.steps.length === one.steps.length && first.steps.every(({ asWritten }) => asWritten);

/** Of a skill whose own script adds files, only what was there counts. */
export const changesItsPack = ({ one, first, second }: SkillOutcome): boolean =>
  [first, second].some(run => run && (run.changed.length > 0 || (run.added.length > 0 && !one.adds)));

export const tellsMissing = ({ one, first }: SkillOutcome): boolean =>
  first.warnings.some(message => new RegExp(one.missing ?? '', 'i').test(message));

/** Returns a sentence for each figure that is below the bar. */
export function belowTheBar(figures: Figures): string[] {
  const { layout, possible, complete, completeAgain, allAsWritten, firstQuestions, secondQuestions } =
    figures;
  const fails = (isMet: boolean, what: string): string[] => (isMet ? [] : [`${layout}: ${what}`]);
  return [
    ...fails(complete >= 0.95 * possible, `${complete} of ${possible} complete, at least 95 % should be`),
    ...fails(completeAgain >= 0.95 * possible, `${completeAgain} of ${possible} complete the second time`),
    ...fails(
      allAsWritten >= 0.9 * possible,
      `every call right in ${allAsWritten} of ${possible}, 90 % should be`,
    ),
    ...fails(figures.packsChanged === 0, `${figures.packsChanged} packs were changed by their own run`),
    ...fails(median(firstQuestions) <= 1, `${median(firstQuestions)} questions in the first run, by median`),
    ...fails(most(firstQuestions) <= 2, `${most(firstQuestions)} questions in a first run`),
    ...fails(most(secondQuestions) === 0, `${most(secondQuestions)} questions in a second run`),
    ...fails(
      figures.toldMissing[0] === figures.toldMissing[1],
      'a skill that cannot work is not warned about',
    ),
    ...fails(figures.warnedForNothing === 0, `${figures.warnedForNothing} skills that work are warned about`),
  ];
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0;
const most = (values: readonly number[]): number => Math.max(0, ...values);
const some = (values: readonly number[], least: number): number =>
  values.filter(value => value > least).length;

/** Returns the figures as a table of Markdown, a column for each layout. */
export function tableOf(columns: readonly Figures[]): string {
  const share = (part: number, whole: number): string =>
    `${part} of ${whole} (${whole === 0 ? 100 : Math.round((100 * part) / whole)} %)`;
  const callsOf = ({ calls }: Figures, kinds: readonly CallKind[]): string =>
    share(
      ...(kinds.map(kind => calls[kind]).reduce(([a, b], [c, d]) => [a + c, b + d], [0, 0]) as [
        number,
        number,
      ]),
    );
  const rows: [string, (figures: Figures) => string][] = [
    ['complete with only the card, of the possible', one => share(one.complete, one.possible)],
    ['- again, with other arguments', one => share(one.completeAgain, one.possible)],
    ['every call right as written', one => share(one.allAsWritten, one.possible)],
    ['calls that work as written', one => callsOf(one, ['read', 'command', 'write', 'look'])],
    ['- reading a named file', one => callsOf(one, ['read'])],
    ['- a command', one => callsOf(one, ['command'])],
    ['- writing a file', one => callsOf(one, ['write'])],
    ['- listing and searching', one => callsOf(one, ['look'])],
    ['packs changed by their own run', one => String(one.packsChanged)],
    [
      'questions first run: median / max / skills with more than one',
      ({ firstQuestions: asked }) => `${median(asked)} / ${most(asked)} / ${some(asked, 1)}`,
    ],
    [
      'questions second run: median / max / skills with any',
      ({ secondQuestions: asked }) => `${median(asked)} / ${most(asked)} / ${some(asked, 0)}`,
    ],
    ['cannot work here, and the run says so', one => share(...(one.toldMissing as [number, number]))],
    ['works, and is warned about all the same', one => String(one.warnedForNothing)],
  ];
  const head = `| ${columns[0]?.skills ?? 0} skills | ${columns.map(({ layout }) => layout).join(' | ')} |`;
  const line = `|---|${columns.map(() => '---|').join('')}`;
  const body = rows.map(([name, cell]) => `| ${name} | ${columns.map(cell).join(' | ')} |`);
  return [head, line, ...body].join('\n');
}

/** Returns what a person looks at next: every skill that is not complete, not as written, or asks too often. */
export function findings(outcomes: readonly SkillOutcome[]): string[] {
  return outcomes.flatMap(outcome => {
    const { one, layout, first, second, impossible } = outcome;
    const lines = impossible === undefined ? runFindings(outcome) : [];
    if (changesItsPack(outcome))
      lines.push(
        `changes its pack: ${[first, second].flatMap(run => [...(run?.added ?? []), ...(run?.changed ?? [])])}`,
      );
    if (one.missing !== undefined && !tellsMissing(outcome))
      lines.push(`the run does not say /${one.missing}/; it says: ${first.warnings.join(' ') || 'nothing'}`);
    if (impossible === undefined && first.warnings.length > 0)
      lines.push(`warned: ${first.warnings.join(' ')}`);
    return lines.length === 0
      ? []
      : [`${one.name} (${layout}; ${one.shape})`, ...lines.map(line => `  ${line}`)];
  });
}

function runFindings({ first, second }: SkillOutcome): string[] {
  const retried = first.steps.filter(({ asWritten, worked }) => worked && !asWritten);
  return [
    ...first.problems.map(problem => `first run: ${problem}`),
    ...retried.map(({ call, told }) => `only at a second try: ${call} -> ${told[0]?.slice(0, 300)}`),
    ...(first.questions.length > 1 || first.questions.some(asked => !asked.includes('(card)'))
      ? first.questions.map(asked => `first run asks ${asked}`)
      : []),
    ...(second?.problems ?? []).map(problem => `second run: ${problem}`),
    ...(second?.questions ?? []).map(asked => `second run asks ${asked}`),
  ];
}
