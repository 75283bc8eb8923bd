/**
 * Starts the run of a plan in a process of its own, which goes on when its starter ends. What it needs, keys too, reaches it
 * through its input alone: neither its arguments nor its environment name them.
 */

import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { isSecretName } from '@telos/engine/policy';
import type { LocalizedMessage } from '@telos/protocol/run';
import { sentence, sentencesOf } from '@telos/protocol/text';
import type { PlanRunEnd } from './planRun.ts';

/** What the process is to do. Plain data. */
export interface RunOrder {
  config: Config;
  /** Top folder of the repository, and the plan's name in it. */
  repo: string;
  plan: string;
  slots: number;
  retry?: true;
  /** The last story that is worked on. */
  until?: string;
  /** Begins although checks fail on the base. */
  goOnRed?: true;
  ripgrep?: string;
  /** Has the stories worked on by the workers of this database, which have this version of Telos. */
  workers?: { url: string; version: string };
}

/** What the process says when it is done. */
export type RunAnswer = { end: PlanRunEnd } | { error: LocalizedMessage };

/** What the process says before, such as that no worker is there. */
export interface RunnerLine {
  log: string;
}

/**
 * Runs the plan by `program`, a script for Node. `heard` gets what it says meanwhile. Throws TelosError if it fails or ends without an
 * answer.
 */
export async function runDetached(
  program: string,
  order: RunOrder,
  heard: (line: string) => void = () => undefined,
): Promise<PlanRunEnd> {
  const child = spawn(process.execPath, [program], {
    cwd: order.repo,
    detached: true,
    windowsHide: true,
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { ...withoutSecrets(process.env), ELECTRON_RUN_AS_NODE: '1' },
  });
  child.unref();
  (child.stdout as Socket).unref?.();
  const failed = new Promise<never>((_, reject) => child.once('error', reject));
  // It may end before it has read everything; its answer says why.
  child.stdin.on('error', () => undefined);
  child.stdin.end(JSON.stringify(order));
  const answer = await Promise.race([answerIn(child.stdout, heard), failed]);
  if (answer && 'end' in answer) return answer.end;
  if (answer) {
    const { remedy } = answer.error;
    throw new TelosError('internal', sentencesOf(answer.error), { remedy });
  }
  throw new TelosError('internal', [
    sentence('The process that ran the plan has ended before its time.'),
    sentence('Run the plan to go on with it.'),
  ]);
}

const withoutSecrets = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !isSecretName(name)));

/** Returns the last line, or undefined if that is nothing that the process could have said. */
async function answerIn(said: Readable, heard: (line: string) => void): Promise<RunAnswer | undefined> {
  let answer: RunAnswer | undefined;
  for await (const line of createInterface({ input: said })) {
    const read = parsed(line);
    if (read && 'log' in read) heard(read.log);
    else answer = read;
  }
  return answer;
}

function parsed(line: string): RunAnswer | RunnerLine | undefined {
  try {
    return JSON.parse(line) as RunAnswer | RunnerLine;
  } catch {
    return undefined;
  }
}

/** Returns the order as it was given. A limit that cannot be read stays one: JSON has no word for it. */
export function readOrder(written: string): RunOrder {
  const order = JSON.parse(written) as RunOrder;
  const budget = Object.fromEntries(
    Object.entries(order.config.budget).map(([name, limit]) => [name, limit ?? Number.NaN]),
  );
  return { ...order, config: { ...order.config, budget } };
}
