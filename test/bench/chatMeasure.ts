/** Watches a page while it draws: the time of its main thread, its long tasks, the frames that it missed, its memory. */
import type { Browser, CDPSession, Page } from 'playwright-core';

export interface Drawing {
  /** What the page's main thread was busy with, the bench's own questions left out. */
  renderMs: number;
  scriptMs: number;
  layoutMs: number;
  styleMs: number;
  /** Tasks over 50 ms by the clock. */
  longTasks: number;
  /** Those of them that took over 50 ms of the processor, too: the others were kept waiting by the machine. */
  ownLongTasks: number;
  longestMs: number;
  frames: number;
  droppedFrames: number;
  /** Those of them in whose time the page's own work took more of the processor than a frame has. */
  ownDroppedFrames: number;
  /** After a collection, of the script and of the document. */
  heapMegabytes: number;
}

const frameMs = 1000 / 60;
const longTaskMs = 50;
const clockMark = 'bench clock';

/** Keeps the time of each frame; runs before the page's own script. */
export function watchFrames(): void {
  const times: number[] = [];
  Object.assign(window, { frameTimes: times });
  const tick = (time: number): void => {
    times.push(time);
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

/** What the page does while `act` goes on. */
export async function measureDrawing(
  browser: Browser,
  page: Page,
  act: () => Promise<void>,
): Promise<Drawing> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'timeTicks' });
  await browser.startTracing(page, { categories: ['toplevel', 'blink.user_timing'] });
  const before = await metrics(session);
  const markedAt = await page.evaluate(name => {
    (window as unknown as { frameTimes: number[] }).frameTimes.length = 0;
    return performance.mark(name).startTime;
  }, clockMark);
  await act();
  const times = await page.evaluate(() => (window as unknown as { frameTimes: number[] }).frameTimes.slice());
  const after = await metrics(session);
  const tasks = tasksIn(await browser.stopTracing(), markedAt);
  const longTasks = tasks.filter(({ clockMs }) => clockMs > longTaskMs);
  await session.detach();
  const heapMegabytes = await heapOf(page);
  const spent = (name: string): number => ((after[name] ?? 0) - (before[name] ?? 0)) * 1000;
  return {
    renderMs: spent('TaskDuration') - spent('DevToolsCommandDuration'),
    scriptMs: spent('ScriptDuration'),
    layoutMs: spent('LayoutDuration'),
    styleMs: spent('RecalcStyleDuration'),
    longTasks: longTasks.length,
    ownLongTasks: longTasks.filter(({ cpuMs }) => cpuMs > longTaskMs).length,
    longestMs: Math.max(0, ...longTasks.map(({ clockMs }) => clockMs)),
    ...framesIn(times),
    ownDroppedFrames: ownDroppedFrames(times, tasks),
    heapMegabytes,
  };
}

async function metrics(session: CDPSession): Promise<Record<string, number>> {
  const { metrics: all } = await session.send('Performance.getMetrics');
  return Object.fromEntries(all.map(({ name, value }) => [name, value]));
}

/** Of the script and of the nodes that it holds, without what could be collected. In MB. */
export async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize, embedderHeapUsedSize = 0 } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return (usedSize + embedderHeapUsedSize) / 1e6;
}

/** Frames that should have been shown between the first time and the last, and how many of them were not. */
export function framesIn(times: readonly number[]): { frames: number; droppedFrames: number } {
  let droppedFrames = 0;
  for (let at = 1; at < times.length; at++) {
    const gap = (times[at] ?? 0) - (times[at - 1] ?? 0);
    droppedFrames += Math.max(0, Math.round(gap / frameMs) - 1);
  }
  return { frames: times.length + droppedFrames, droppedFrames };
}

/** Of the frames that were not shown, those in whose time the page's tasks took longer than a frame of the processor. */
function ownDroppedFrames(times: readonly number[], tasks: readonly Task[]): number {
  let dropped = 0;
  let first = 0;
  for (let at = 1; at < times.length; at++) {
    const [from, to] = [times[at - 1] ?? 0, times[at] ?? 0];
    const missed = Math.round((to - from) / frameMs) - 1;
    while (first < tasks.length && endOf(tasks[first]) < from) first++;
    if (missed < 1) continue;
    let cpuMs = 0;
    for (let index = first; index < tasks.length && (tasks[index]?.startMs ?? 0) < to; index++) {
      cpuMs += tasks[index]?.cpuMs ?? 0;
    }
    dropped += Math.min(missed, Math.floor(cpuMs / frameMs));
  }
  return dropped;
}

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  ts: number;
  dur?: number;
  tdur?: number;
  args?: { name?: string };
}

/** One task of the page's main thread; its start by the page's own clock, `performance.now()`. */
interface Task {
  startMs: number;
  clockMs: number;
  /** Of the processor; less than `clockMs` when something else had it. */
  cpuMs: number;
}

const endOf = (task: Task | undefined): number => (task ? task.startMs + task.clockMs : 0);

/** The tasks in their order. `markedAt` is what the page's clock showed at the mark in the trace. */
function tasksIn(trace: Buffer, markedAt: number): Task[] {
  const { traceEvents: events } = JSON.parse(trace.toString('utf8')) as { traceEvents: TraceEvent[] };
  const mark = events.find(({ name }) => name === clockMark);
  if (!mark) throw new Error('The trace of the page holds no mark of its clock.');
  return events
    .filter(event => event.ph === 'X' && event.name === 'ThreadControllerImpl::RunTask')
    .filter(({ pid, tid }) => pid === mark.pid && tid === mark.tid)
    .map(({ ts, dur = 0, tdur = 0 }) => ({
      startMs: (ts - mark.ts) / 1000 + markedAt,
      clockMs: dur / 1000,
      cpuMs: tdur / 1000,
    }))
    .sort((a, b) => a.startMs - b.startMs);
}
