/**
 * Lands what a command has written in its layer: what is harmless at once, what others run or obey after a yes. What does not land is
 * said, and goes with the layer.
 */
import { relative } from 'node:path';
import type { RunEvent, ToolCall } from '@telos/protocol/run';
import { asMessage, type Sentence, sentence, spoken } from '@telos/protocol/text';
import { falseObjects } from '../changes/gitObjects.ts';
import { foldersFor, type Landed, landChanges } from '../changes/landing.ts';
import type { RunBytes } from '../changes/landingRecord.ts';
import { type LayerChanges, readLayer } from '../changes/layerRead.ts';
import { type TreesElsewhere, withoutTreesElsewhere } from '../changes/treesElsewhere.ts';
import { reasonOf } from '../core/errors.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { findGit } from '../tools/programPath.ts';
import type { CommandLayer } from '../tools/tool.ts';
import { type ApprovalContext, askPerson } from './approval.ts';
import { judgeLayer, type WaitingChange } from './judgeLayer.ts';
import { byOf, namesOf, questionAbout } from './obeyedQuestion.ts';

export interface LookedAfter {
  /** Files that the command created, changed or removed. Absolute paths. */
  changedFiles: string[];
  /** What the model must know. */
  notes: string[];
}

/** Maximum number of files that a result names. */
const mostReported = 500;

/**
 * Lands a layer and removes it. Call it when no process of the command lives any more. On abort, what needs an answer does not land.
 * Never throws for what the command did.
 */
export async function* landLayer(
  call: ToolCall,
  layer: CommandLayer,
  context: Pick<ApprovalContext, 'human' | 'policy'>,
  run: RunBytes,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, LookedAfter> {
  const root = layer.roots[0]?.path ?? '';
  // Set once some of it may be in its place.
  let landed: Landed | undefined;
  try {
    const read = await readLayer(layer);
    if (isEmpty(read)) return { changedFiles: [], notes: [] };
    const { found, made, kept } = withoutTreesElsewhere(read, layer.roots);
    const { free: all, waiting } = judgeLayer(found, layer, context.policy);
    const { env = {}, ...places } = context.policy;
    const forged = await falseObjects(all, findGit({ ...places, env }));
    const free = all.filter(file => !forged.has(file));
    const later = waiting.flatMap(({ files }) => files);
    layer.landing();
    const folders = foldersFor(free, later, found.folders);
    landed = await landChanges({ files: free, folders }, layer, run);
    const { refusal, isAway } = yield* answerOn(waiting, call, root, context, signal);
    if (isAway) yield { type: 'notice', level: 'warning', ...asMessage(unheard(waiting, root)) };
    if (refusal === undefined && later.length > 0)
      merge(landed, await landChanges({ files: later, folders: found.folders }, layer, run));
    const notes = refusal === undefined ? [] : [notKept(waiting, refusal, root)];
    notes.push(
      ...(yield* told(found, landed, { forged: [...forged].map(({ path }) => path), made, kept }, root)),
    );
    return { changedFiles: landed.changed.slice(0, mostReported), notes };
  } catch (error) {
    const why = landed
      ? sentence('Not all that the command did was kept: {0}', reasonOf(error))
      : sentence(
          'What the command changed could not be read, so nothing of it was kept: {0}',
          reasonOf(error),
        );
    yield { type: 'notice', level: 'warning', ...asMessage(why) };
    return { changedFiles: landed?.changed.slice(0, mostReported) ?? [], notes: [spoken([why])] };
  } finally {
    await layer.drop().catch(() => undefined);
  }
}

const isEmpty = (found: LayerChanges): boolean => Object.values(found).every(({ length }) => length === 0);

/** Asks about the changes that others run or obey. Returns why they do not land, and whether nobody was there to say so. */
async function* answerOn(
  waiting: readonly WaitingChange[],
  call: ToolCall,
  root: string,
  context: Pick<ApprovalContext, 'human' | 'policy'>,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, { refusal?: string; isAway?: boolean }> {
  if (waiting.length === 0) return {};
  if (signal.aborted) return { refusal: 'The run was cancelled.', isAway: true };
  const asked: ToolCall = { id: `keep-${call.id}`, name: 'keep_changes', input: {} };
  return yield* askPerson(asked, questionAbout(waiting, namesOf(waiting, root)), context, signal);
}

/** Tells a person who was not asked: who said no knows it. */
const unheard = (waiting: readonly WaitingChange[], root: string): Sentence =>
  sentence(
    'Not kept, since no one said yes to it: what the command did to {0}. Such files are run or obeyed by others ({1}).',
    namesOf(waiting, root),
    byOf(waiting),
  );

const notKept = (waiting: readonly WaitingChange[], refusal: string, root: string): string =>
  `What the command did to ${namesOf(waiting, root)} was not kept: ${byOf(waiting)} run or obey such files. ${refusal}`;

function merge(one: Landed, other: Landed): void {
  one.changed.push(...other.changed);
  one.conflicts.push(...other.conflicts);
  one.problems.push(...other.problems);
}

/** Tells the person of each change that is not in its place. Returns the same for the model. */
function* told(
  { dropped, unnamed, tooDeep, attributed }: LayerChanges,
  { conflicts, problems }: Landed,
  { forged, made, kept }: Pick<TreesElsewhere, 'made' | 'kept'> & { forged: readonly string[] },
  root: string,
): Generator<RunEvent, string[]> {
  const nameOf = (path: string): string => escapeInvisible(relative(root, path));
  const named = (paths: readonly string[]): string =>
    namesOf(
      paths.map(path => ({ path })),
      root,
    );
  const all = conflicts.map(({ path, isGone, kept }) =>
    conflictSentence(nameOf(path), isGone, kept && nameOf(kept)),
  );
  if (forged.length > 0)
    all.push(sentence('Objects of Git that are not what their names say were not kept: {0}.', named(forged)));
  for (const tree of made)
    all.push(
      sentence(
        'The work tree {0} is outside of the working folder, so it was not kept. Make it in a folder below.',
        escapeInvisible(tree),
      ),
    );
  for (const tree of kept)
    all.push(
      sentence('The work tree {0} is still there, so its repository still lists it.', escapeInvisible(tree)),
    );
  if (attributed.length > 0)
    all.push(sentence('Extended attributes of folders were not kept: {0}.', named(attributed)));
  if (unnamed.length > 0)
    all.push(sentence('Files whose names are not UTF-8 were not kept: {0}.', named(unnamed)));
  if (tooDeep.length > 0)
    all.push(sentence('Folders that lie too deep in others were not kept: {0}.', named(tooDeep)));
  const [first, ...others] = problems;
  if (first !== undefined)
    all.push(
      sentence(
        'Not all that the command did was kept: {0}',
        escapeInvisible(first) + (others.length > 0 ? ` (+${others.length})` : ''),
      ),
    );
  for (const each of all) yield { type: 'notice', level: 'warning', ...asMessage(each) };
  // They could not have been used by anyone else, so the person need not know.
  const ended =
    dropped.length === 0
      ? []
      : [`Pipes, sockets and devices end with their command, so these are gone: ${named(dropped)}.`];
  return [...all.map(each => spoken([each])), ...ended];
}

/** Says which version of a file is where. `kept` is undefined if the command left no file. */
function conflictSentence(name: string, isGone: boolean, kept: string | undefined): Sentence {
  if (kept === undefined && isGone)
    return sentence('{0} was removed by another program while the command ran, so it stays removed.', name);
  if (kept === undefined)
    return sentence('{0} was changed by another program while the command ran, so it stays as it is.', name);
  if (isGone)
    return sentence(
      '{0} was removed by another program while the command ran, so it stays removed. The version of the command is in {1}.',
      name,
      kept,
    );
  return sentence(
    '{0} was changed by another program while the command ran, so it stays as it is. The version of the command is in {1}.',
    name,
    kept,
  );
}
