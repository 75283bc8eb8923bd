/** Waiting in tests for what comes by itself, but only soon on a machine that is not busy. */
import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';

/** What has not come by then does not come. Milliseconds; below the limit of every layer that waits for processes. */
const usualLimitMs = 18_000;

/** Checks again until nothing is thrown any more; what was thrown last is the failure. Resolves with what the check returned. */
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

/** Asks again until it is so. `what` is said when it never was. */
export function until(
  isSo: () => boolean | Promise<boolean>,
  what = 'what was waited for has not come',
  limitMs = usualLimitMs,
): Promise<void> {
  return eventually(async () => assert.ok(await isSo(), what), limitMs);
}

/** What waits for `opened` goes on once the test calls `open`. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => {};
  const opened = new Promise<void>(resolve => {
    open = resolve;
  });
  return { opened, open };
}

/** For what shall not go on at all. */
export const never: Promise<never> = new Promise(() => {});
