/** Sets the wall clock of a process that is started, and nothing else of it: timers and the monotonic clock go on as they are. */

/**
 * Variables under which a Node process believes that it begins at `now`, an ISO date. Its clock jumps `by` milliseconds once the file of
 * `jump` is there; a stopped one stays at `now`.
 */
export function clockAt(
  now: string,
  { jump, stands = false }: { jump?: { file: string; by: number }; stands?: boolean } = {},
): Record<string, string> {
  const script = `
    import { existsSync } from 'node:fs';
    const Real = Date, start = Real.now(), begin = ${Date.parse(now)};
    const jump = ${JSON.stringify(jump ?? null)};
    const read = () => {
      const passed = ${stands ? '0' : 'Real.now() - start'};
      return begin + passed + (jump && existsSync(jump.file) ? jump.by : 0);
    };
    globalThis.Date = class Date extends Real {
      constructor(...given) { if (given.length === 0) super(read()); else super(...given); }
      static now() { return read(); }
    };`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` };
}
