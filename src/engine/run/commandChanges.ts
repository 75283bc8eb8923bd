/** Runs the tool of a call. What a command has written in its layer lands when it has ended, also if it fails or is stopped. */
import { relative } from 'node:path';
import type { RunEvent, ToolResult } from '@telos/protocol/run';
import type { KeptWrites } from '../changes/keptWrites.ts';
import type { Human } from '../core/ports.ts';
import { realPlace } from '../files/paths.ts';
import { escapeInvisible } from '../files/plainText.ts';
import type { BackgroundCommand } from '../tools/background.ts';
import type { CommandBox, CommandLayer, ToolContext } from '../tools/tool.ts';
import type { ApprovalContext, Granted } from './approval.ts';
import type { LookedAfter } from './landLayer.ts';

type Call = Pick<Granted, 'tool' | 'call'>;
type RunOfCall = Pick<ApprovalContext, 'human' | 'policy'> & {
  context: { changes?: KeptWrites | undefined };
};
/** Shows the events, and returns the result that follows them. */
type Through = <Result>(events: AsyncGenerator<RunEvent, Result>) => Promise<Result>;

/** Runs the tool. Throws what it throws, after the changes have landed. */
export async function executeTool(
  granted: Call,
  context: ToolContext,
  run: RunOfCall,
  through: Through,
): Promise<ToolResult> {
  const { tool, call } = granted;
  const { changes } = run.context;
  if (tool.access !== 'execute') return tool.execute(call.input, context);
  if (call.name !== 'run_command' || !changes) {
    changes?.noteCommand();
    return tool.execute(call.input, context);
  }
  // What goes on in the background works in the folder itself: others see its files, and it sees theirs.
  const isLayered = context.box?.hasLayers && call.input['background'] !== true;
  const { shown, look } = isLayered
    ? layered(granted, { ...context, box: context.box! }, run, changes)
    : { shown: context, look: await direct(granted, context, changes) };
  let left: BackgroundCommand | undefined;
  const place = context.background && {
    ...context.background,
    left: (command: BackgroundCommand): void => {
      left = command;
      command.lookAtEnd = () => notesOf(look(away, never, unseen), changes);
    },
  };
  let result: ToolResult;
  try {
    result = await tool.execute(call.input, { ...shown, ...(place && { background: place }) });
  } catch (error) {
    await look(run.human, context.signal, through);
    throw error;
  }
  if (left) return isLayered ? withNotes(result, [ownCopy]) : result;
  const { changedFiles, notes } = await look(run.human, context.signal, through);
  return { ...withNotes(result, notes), ...(changedFiles.length > 0 && { changedFiles }) };
}

const ownCopy = 'It works on a copy of the folder: what it writes is in the folder when it has ended.';
const never = new AbortController().signal;

/** Looks at the changes of a command that has ended. Questions go to the person of the first argument. */
type Look = (human: Human, signal: AbortSignal, through: Through) => Promise<LookedAfter>;

/** Returns the context in which the command writes into a layer, and what lands that. */
function layered(
  { call }: Call,
  context: ToolContext & { box: CommandBox },
  { policy }: RunOfCall,
  changes: KeptWrites,
): { shown: ToolContext; look: Look } {
  let layer: CommandLayer | undefined;
  const box: CommandBox = {
    async enclose(start, ask) {
      const enclosed = await context.box.enclose(start, ask, true);
      layer = enclosed.layer;
      return enclosed;
    },
  };
  return {
    shown: { ...context, box },
    async look(human, signal, through) {
      // Nothing was started.
      if (!layer) return { changedFiles: [], notes: [] };
      const { landLayer } = await import('./landLayer.ts');
      return through(landLayer(call, layer, { human, policy }, changes.layered(), signal));
    },
  };
}

/** Notes that a command works in the folder itself: what it changes there is not known. In the background, the names that come there are. */
async function direct({ call }: Call, context: ToolContext, changes: KeptWrites): Promise<Look> {
  changes.noteCommand();
  const namesSince = call.input['background'] === true ? await watchNames(context.workingDir) : undefined;
  return async () => ({ changedFiles: [], notes: (await namesSince?.()) ?? [] });
}

/** Maximum number of files that a sentence names. */
const mostNamed = 5;

/**
 * Looks at the names in a folder in which a boxed command is about to work directly. What it returns says which names that others obey came
 * there since. Never throws.
 */
async function watchNames(workingDir: string): Promise<() => Promise<string[]>> {
  const { FolderNames } = await import('../box/folderNames.ts');
  const names = new FolderNames(realPlace(workingDir) ?? workingDir);
  const obeyed = async (): Promise<string[] | undefined> => {
    const marked = await names.look().catch(() => undefined);
    return marked?.flatMap(({ path, kind }) => (/^(?:obeyed|link|repository)$/.test(kind) ? [path] : []));
  };
  const before = await obeyed();
  const known = new Set(before);
  return async () => {
    const now = before && (await obeyed());
    if (!now) return ['It is not known whether files that others run or obey came into the folder'];
    const fresh = now.filter(path => !known.has(path)).map(path => relative(names.root, path));
    if (fresh.length === 0) return [];
    const more = fresh.length > mostNamed ? ` (+${fresh.length - mostNamed})` : '';
    const named = fresh
      .slice(0, mostNamed)
      .map(name => escapeInvisible(name))
      .join(', ');
    return [`While the command ran, files that others run or obey came into the folder: ${named}${more}`];
  };
}

/** Returns the result with what the model must know besides. */
export function withNotes(result: ToolResult, notes: readonly string[]): ToolResult {
  if (notes.length === 0) return result;
  return { ...result, content: [result.content, ...notes.map(note => `[${note}]`)].join('\n') };
}

/** Answers for a command in the background, whose questions no one would see. */
export const away: Human = {
  isAway: true,
  approve: async () => ({ allow: false, reason: 'A command in the background cannot ask the user.' }),
  ask: async questions => questions.map(() => ''),
};

/** Returns the result of events that no one sees. */
export async function unseen<Result>(events: AsyncGenerator<RunEvent, Result>): Promise<Result> {
  for (;;) {
    const step = await events.next();
    if (step.done) return step.value;
  }
}

/** Returns sentences for the model about a command that has ended in the background: warnings that no one sees, and notes. */
async function notesOf(looking: Promise<LookedAfter>, changes: KeptWrites): Promise<string[]> {
  const { notes } = await looking;
  for (let problem = changes.takeProblem(); problem !== undefined; problem = changes.takeProblem())
    notes.push(problem);
  return notes;
}
