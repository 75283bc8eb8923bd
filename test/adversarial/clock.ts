/** Sets the wall clock of a process that is started, and nothing else of it: timers and the monotonic clock go on as they are. */

/**
 * Variables under which a Node process believes that it begins at `now`, an ISO date; `jumps` are `[after, by]` in milliseconds. A clock that
 * stands stays at `now`.
 */
export function clockAt(
  now: string,
  { jumps = [], stands = false }: { jumps?: readonly (readonly [number, number])[]; stands?: boolean } = {},
): Record<string, string> {
  const script = `
    const Real = Date, start = Real.now(), begin = ${Date.parse(now)};
    const jumps = ${JSON.stringify(jumps)};
    const read = () => {
      const passed = ${stands ? '0' : 'Real.now() - start'};
      return begin + passed + jumps.reduce((sum, [after, by]) => sum + (passed >= after ? by : 0), 0);
    };
    globalThis.Date = class Date extends Real {
      constructor(...given) { if (given.length === 0) super(read()); else super(...given); }
      static now() { return read(); }
    };`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` };
}
