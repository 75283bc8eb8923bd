/** Waits in tests for results that arrive by themselves, soon only if the machine is not busy. */
import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';

/** Time after which a result counts as missing. In milliseconds; below the limit of every layer that waits for processes. */
const usualLimitMs = 18_000;

/** Repeats the check until it throws no more, and resolves with its result. At the limit it fails with the last error. */
export async function eventually<Value>(
  check: () => Value | Promise<Value>,
  limitMs = usualLimitMs,
): Promise<Value> {
  for (const deadline = performance.now() + limitMs; ; ) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await wait(20);
  }
}

/** Repeats the question until it is true. `what` is the message if it never was. */
export function until(
  isSo: () => boolean | Promise<boolean>,
  what = 'what was waited for has not come',
  limitMs = usualLimitMs,
): Promise<void> {
  return eventually(async () => assert.ok(await isSo(), what), limitMs);
}

/** Returns a promise, `opened`, that resolves when the test calls `open`. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => {};
  const opened = new Promise<void>(resolve => {
    open = resolve;
  });
  return { opened, open };
}

/** A promise that never settles. */
export const never: Promise<never> = new Promise(() => {});
