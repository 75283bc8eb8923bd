/**
 * How soon a window that comes back knows of a plan that runs, as the extension host counts it: loading Telos, and from `activate()` to
 * the text in the status bar and the row. Beside it, in the same windows, when the page shows both, and when it shows the status bar
 * item and the row of an extension that only reads one file: what the machine and VS Code themselves take.
 */
import { spawn } from 'node:child_process';
import { cp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PlanDesk } from '../e2e/planDesk.ts';
import { eventually } from '../eventually.ts';
import { root } from '../vscode/paths.ts';
import { type Figure, figureLine, median } from './measure.ts';

const windows = 5;
const storyCount = 12;
const stories = Array.from({ length: storyCount }, (_, index) => ({
  id: `US-${String(index + 1).padStart(3, '0')}`,
}));

/** When a page shows what, in milliseconds since 1970. */
interface Shown {
  status?: number;
  row?: number;
  bare?: number;
  bareRow?: number;
}

/** In milliseconds, each from the `activate()` of its extension but for `known`, in which the loading of the code is counted too. */
interface ComingBack extends Required<Shown> {
  known: number;
}

/** Runs a plan whose model never answers, and loads the window again and again. */
export async function planFigures(): Promise<Figure[]> {
  const undo: (() => unknown)[] = [];
  const marks = join(tmpdir(), `telos-marks-${process.pid}.json`);
  try {
    const desk = await PlanDesk.open({
      model: { turns: () => ({ text: [], stallMs: 30 * 60_000 }) },
      variables: { TELOS_PROVIDER: 'anthropic', TELOS_MARKS_FILE: marks },
      prepare: ({ extensions }) =>
        cp(
          join(root, 'test', 'fixtures', 'bare-status-extension'),
          join(extensions, 'telos.telos-bare-status-0.0.1'),
          { recursive: true },
        ),
    });
    undo.push(
      () => rm(marks, { force: true }),
      () => desk.close(),
    );
    await desk.makeOf('bakery', stories);
    undo.push(runInTerminal(desk));
    await desk.row('bakery, running').waitFor();
    await desk.workbench.page.addInitScript(noteWhatIsShown, storyCount);
    const times: ComingBack[] = [];
    for (let index = 0; index < windows; index++) times.push(await comeBack(desk, marks));
    const all = (of: keyof ComingBack): string => times.map(time => Math.round(time[of])).join(', ');
    console.log(
      `(a running plan in a window that comes back: known after ${all('known')} ms; the page shows the status bar after ${all('status')} ms, the row after ${all('row')} ms, a bare status bar item after ${all('bare')} ms, a bare row after ${all('bareRow')} ms)`,
    );
    const middle = (of: keyof ComingBack): number => median(times.map(time => time[of]));
    const name = 'a running plan is shown, window back';
    return [{ name, unit: 'ms', ours: middle('status'), bare: middle('bare'), limit: 1.5 }];
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

/** Returns what ends the runner. */
function runInTerminal({ terminal, session }: PlanDesk): () => void {
  const model = { ANTHROPIC_BASE_URL: session.model.url, ANTHROPIC_API_KEY: 'bench-key-0123456789' };
  const runner = spawn(process.execPath, [join(root, 'dist', 'cli.js'), 'plan', 'run', 'bakery'], {
    cwd: terminal.cwd,
    env: { ...terminal.env, ...model },
    stdio: 'ignore',
  });
  return () => runner.kill();
}

/** Loads the window again, and waits until it shows everything. */
async function comeBack(desk: PlanDesk, file: string): Promise<ComingBack> {
  const { page } = desk.workbench;
  await rm(file, { force: true });
  await page.reload();
  return eventually(async () => {
    const shown: Shown = await page.evaluate(() => (globalThis as { telosShown?: Shown }).telosShown ?? {});
    const marks: { name: string; startTime: number }[] = JSON.parse(await readFile(file, 'utf8'));
    const at = (name: string): number => marks.find(mark => mark.name === name)?.startTime ?? Number.NaN;
    const of = (what: string, id = 'telos.telos'): number => at(`code/extHost/${what}/${id}`);
    const active = of('willActivateExtension');
    const bareActive = of('willActivateExtension', 'telos.telos-bare-status');
    const loading = of('didLoadExtensionCode') - of('willLoadExtensionCode');
    const times = {
      known: loading + at('telos.plans.shown') - active,
      status: (shown.status ?? Number.NaN) - active,
      row: (shown.row ?? Number.NaN) - active,
      bare: (shown.bare ?? Number.NaN) - bareActive,
      bareRow: (shown.bareRow ?? Number.NaN) - bareActive,
    };
    if (Object.values(times).some(Number.isNaN))
      throw new Error(`Not all is shown: ${JSON.stringify(times)}`);
    return times;
  }, 60_000);
}

/** Runs in the page. */
function noteWhatIsShown(count: number): void {
  const shown: Shown = {};
  (globalThis as { telosShown?: Shown }).telosShown = shown;
  const says = (id: string): boolean =>
    document.querySelector(`.statusbar-item[id$="${id}"]`)?.textContent?.includes(`0/${count}`) === true;
  const hasRow = (start: string): boolean =>
    document.querySelector(`.monaco-list-row[aria-label^="${start}"]`) !== null;
  new MutationObserver(() => {
    if (says('telos.plans')) shown.status ??= Date.now();
    if (says('telosBare.status')) shown.bare ??= Date.now();
    if (hasRow('bakery, running')) shown.row ??= Date.now();
    if (hasRow('Bare 0/')) shown.bareRow ??= Date.now();
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
}

if (import.meta.main) for (const figure of await planFigures()) console.log(figureLine(figure));
