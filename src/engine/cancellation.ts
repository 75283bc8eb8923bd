/** Waiting that ends on abort, work that waits for its turn, and long work that gives others theirs. */
import { setImmediate as yieldToOthers } from 'node:timers/promises';

/** Resolves or rejects as `work` does, but rejects with the abort reason on abort. The abandoned work may still fail, unheard. */
export async function untilAborted<Value>(
  work: PromiseLike<Value>,
  signal: AbortSignal | undefined,
): Promise<Value> {
  if (!signal) return work;
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    work.then(undefined, () => undefined);
  }
}

/**
 * Returns what `begin` yields. A reader that leaves while it waits for what comes next aborts the signal that `begin` gets: a generator alone
 * would first finish what it is at.
 */
export function endedByReader<Value, Result>(
  begin: (signal: AbortSignal) => AsyncGenerator<Value, Result>,
  signal: AbortSignal,
): AsyncGenerator<Value, Result> {
  const left = new AbortController();
  const values = begin(AbortSignal.any([signal, left.signal]));
  const [next, end] = [values.next.bind(values), values.return.bind(values)];
  let waiting = 0;
  values.next = () => {
    waiting++;
    return next().finally(() => waiting--);
  };
  values.return = result => {
    if (waiting > 0) left.abort();
    return end(result);
  };
  return values;
}

/** In milliseconds. */
const longestTurn = 15;

/** Returns a function for a loop: it lets others have their turn if it was not called for too long, and then throws the abort reason. */
export function takingTurns(signal?: AbortSignal): () => Promise<void> | void {
  let since = performance.now();
  return () => {
    if (performance.now() - since < longestTurn) return;
    return yieldToOthers().then(() => {
      signal?.throwIfAborted();
      since = performance.now();
    });
  };
}

/** Returns a function that calls what it is given, in order and at most `count` at the same time. It never calls it before it returns. */
export function atMost(count: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let working = 0;
  return async work => {
    const turn = working === count && new Promise<void>(resolve => waiting.push(resolve));
    if (!turn) working++;
    await turn;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else working--;
    }
  };
}
