/** Commands for the runner of a plan, from any process: one file each, written whole, carried out once. */

import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { createWhole, isLink, jsonLine } from '@telos/engine/files';
import type { Actor, PlanLimits, SteerCommand } from '@telos/protocol/plan';
import { type Sentence, sentence, spoken } from '@telos/protocol/text';
import type { PlanFolder } from './planFolder.ts';
import type { PlanState } from './planState.ts';
import { sealPlace } from './sealPlace.ts';

export interface SentCommand {
  id: string;
  command: SteerCommand;
  by: Actor;
  /** It lay there before the run began. */
  isEarlier?: boolean;
  /** Call it once the journal has the command with its id: until then it is handed out again after a crash. */
  done(): Promise<void>;
}

/** Longest text of a command. In characters. */
const mostText = 100_000;

let sent = 0;

/** Returns the command's id once the disk has it. Ids sort by time. */
export async function send(folder: PlanFolder, command: SteerCommand, by: Actor): Promise<string> {
  const time = Date.now().toString(36).padStart(9, '0');
  const count = (sent++ % 36 ** 3).toString(36).padStart(3, '0');
  const id = `${time}${count}${randomBytes(5).toString('hex')}`;
  const json = JSON.stringify({ command, by });
  await folder.seal?.ready();
  const text = folder.seal ? folder.seal.sealed(aboutOf(folder, id, true), json) : json;
  await createWhole(folder.own('inbox', `${id}.json`), `${text}\n`);
  return id;
}

/** What the seal of a command is about: the plan in its repository. With its id it is carried out once. */
const aboutOf = ({ name, dir }: PlanFolder, id: string, make = false): string =>
  `inbox ${name} ${id} in ${sealPlace(dir, make)}`;

/**
 * Returns the commands that wait, the oldest first. `isKnown` says whether the journal has a command; such a one is only removed. What
 * is not a command, or was not sent from this machine, is put aside with the ending `.refused`, and reported to `refuse`.
 */
export async function take(
  folder: PlanFolder,
  isKnown: (id: string) => boolean,
  refuse: (sentence: string) => void = () => {},
): Promise<SentCommand[]> {
  const found: SentCommand[] = [];
  for (const name of waiting(folder)) {
    const [path, id] = [folder.path('inbox', name), idOf(name)];
    const done = (): Promise<void> => rm(path, { force: true });
    const read = isKnown(id) ? undefined : readCommand(folder, name);
    if (isKnown(id)) await done();
    else if (read !== undefined && read !== 'foreign') found.push({ ...read, id, done });
    else {
      await rename(path, `${path}.refused`).catch(() => undefined);
      refuse(
        read === 'foreign'
          ? `${path} was not sent by a person on this machine, so it was put aside.`
          : `${path} is not a command for a plan, so it was put aside.`,
      );
    }
  }
  return found;
}

/** Returns the ids of the commands that wait, the oldest first. */
export const waitingIds = (folder: PlanFolder): string[] => waiting(folder).map(idOf);

/** Returns the ids of the questions to which a person has sent an answer that no runner has read yet. */
export const answeredIds = (folder: PlanFolder): Set<string> =>
  new Set(
    waiting(folder).flatMap(name => {
      const read = readCommand(folder, name);
      return read !== undefined && read !== 'foreign' && read.command.kind === 'answer'
        ? [read.command.id]
        : [];
    }),
  );

const idOf = (name: string): string => name.replace(/\.json$/, '');

function waiting(folder: PlanFolder): string[] {
  if (isLink(folder.path('inbox'))) return [];
  try {
    return readdirSync(folder.path('inbox'))
      .filter(name => /^[0-9a-z]{1,64}\.json$/i.test(name))
      .sort();
  } catch {
    return [];
  }
}

function readCommand(
  folder: PlanFolder,
  name: string,
): { command: SteerCommand; by: Actor } | 'foreign' | undefined {
  let text: string | undefined;
  try {
    text = folder.read('inbox', name);
  } catch {
    return undefined;
  }
  if (text === undefined || text.length > 2 * mostText) return undefined;
  const json = folder.seal ? folder.seal.opened(aboutOf(folder, idOf(name)), text) : text;
  if (json === undefined) return 'foreign';
  return jsonLine(json, value => {
    if (!isFields(value) || !isFields(value['command'])) return undefined;
    const { command, by } = value;
    const actor = actors.find(one => one === by) ?? 'other';
    return isCommand(command) ? { command: command as unknown as SteerCommand, by: actor } : undefined;
  });
}

const actors: readonly Actor[] = ['chat', 'cli', 'discord', 'editor', 'other', 'file'];

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): boolean => typeof value === 'string' && value.length <= mostText;
const isMaybe = (value: unknown): boolean => value === undefined || isText(value);

const ofStory = ({ story, why }: Fields): boolean => isText(story) && isMaybe(why);

const shapes: Readonly<Record<SteerCommand['kind'], (command: Fields) => boolean>> = {
  pause: () => true,
  resume: () => true,
  stop: ({ when }) => when === 'now' || when === 'after-step',
  tell: ({ story, text }) => isMaybe(story) && isText(text),
  answer: ({ id, text }) => isText(id) && isText(text),
  skip: ofStory,
  redo: ofStory,
  reopen: ofStory,
  accept: ofStory,
  split: ofStory,
  reorder: ({ story, before }) => isText(story) && isText(before),
  budget: ({ add }) => isFields(add) && isLimits(add),
  model: ({ model, role }) => isText(model) && isMaybe(role),
  parallel: ({ slots }) => Number.isInteger(slots) && Number(slots) >= 1 && Number(slots) <= 16,
};

function isCommand(command: Fields): boolean {
  const { kind } = command;
  return (
    typeof kind === 'string' && Object.hasOwn(shapes, kind) && shapes[kind as SteerCommand['kind']](command)
  );
}

function isLimits(add: Fields): boolean {
  const names: readonly (keyof PlanLimits)[] = ['maxCost', 'maxTokens', 'maxMinutes'];
  return names.every(name => {
    const value = add[name];
    return value === undefined || (typeof value === 'number' && Number.isFinite(value) && value >= 0);
  });
}

/** Why a command for a runner changes nothing while there is none. */
export const idle = sentence('The plan is not running.');
export const notRunning = spoken([idle]);

/** Whether the command means the run that is there, and no later one. */
export const isForThisRun = ({ kind }: SteerCommand): boolean =>
  kind === 'pause' || kind === 'resume' || kind === 'stop';

/** Returns why a command would change nothing, or take from a story what it has passed; undefined for one that makes sense. */
export function vainCommand(
  command: SteerCommand,
  state: Pick<PlanState, 'story' | 'questions'>,
): Sentence | undefined {
  switch (command.kind) {
    case 'answer':
      return state.questions.some(({ id }) => id === command.id)
        ? undefined
        : sentence('There is no open question {0}.', command.id);
    case 'skip':
    case 'accept':
    case 'split':
      return state.story(command.story)?.status === 'passed'
        ? sentence('{0} has passed already.', command.story)
        : undefined;
    case 'redo':
    case 'reopen':
      // Its work is on the branch: who builds it once more would find nothing to do.
      return state.story(command.story)?.status === 'passed' && !command.why?.trim()
        ? sentence('{0} has passed. Say what is to be different, as the reason.', command.story)
        : undefined;
    default:
      return undefined;
  }
}
