/** What `npm test` and `npm run test:night` run: one row a layer. `npm test -- --list` prints it. */

export interface Layer {
  name: string;
  /** What it shows, for `--list`. */
  shows: string;
  /** Two lanes run at once: one computes, the other mostly waits for windows and other programs. */
  lane: 'computes' | 'waits';
  /** By day for each change; at night everything runs, with `TELOS_NIGHTLY=1`. */
  when: 'day' | 'night';
  /** Whether it starts what is in `dist/`. */
  needsBuild: boolean;
  /** A variable without which it does not run, and what it names. */
  needs?: { variable: string; names: string };
  command: LayerCommand;
  /** CPU time that it may take, as a multiple of the CPU time of `types` in the same run; by day, then at night. */
  budget: { day: number; night: number };
}

export type LayerCommand =
  /** Files of tests for mocha, each of which can run alone. `jobs` at once, in processes of their own. */
  | {
      kind: 'mocha';
      specs: readonly string[];
      ignore?: readonly string[];
      testLimitMs: number;
      jobs?: number;
    }
  /** Another program of Node's, by file and arguments. `prints` tells whose results can be read. */
  | { kind: 'node'; args: readonly string[]; prints: 'mocha' | 'nothing' }
  | { kind: 'npm'; script: string };

const parts = ['engine/box', 'engine/tools', 'engine/providers', 'engine/mcp', 'packs/sources', 'plans'];
const slow = [...parts.map(part => `test/${part}/**`), 'test/engine/sameEvents.test.ts'];
const layerFolders = [
  'vscode',
  'e2e',
  'cli',
  'mcp',
  'conformance',
  'adversarial',
  'faults',
  'realSkills',
  'plan',
  'fleet',
];

/** Kills, other programs, other versions of Node, the image of a worker, and long conversations through a terminal. */
const cliAtNight = ['killedInstall', 'otherClients', 'farRun', 'nodes', 'workerImage'].map(
  name => `test/cli/${name}.test.ts`,
);

/** In the order in which a lane runs them. */
export const layers: readonly Layer[] = [
  {
    name: 'types',
    shows: 'the types of src, webview and test',
    lane: 'computes',
    when: 'day',
    needsBuild: false,
    command: { kind: 'npm', script: 'typecheck' },
    budget: { day: 1, night: 1 },
  },
  {
    name: 'lint',
    shows: 'the formatter and the linter',
    lane: 'computes',
    when: 'day',
    needsBuild: false,
    command: { kind: 'npm', script: 'lint' },
    budget: { day: 1, night: 1 },
  },
  {
    name: 'unit',
    shows: 'functions and rooms by themselves, and the rules of the house',
    lane: 'computes',
    when: 'day',
    needsBuild: false,
    command: {
      kind: 'mocha',
      specs: ['test/**/*.test.ts'],
      ignore: [...layerFolders.map(folder => `test/${folder}/**`), ...slow],
      testLimitMs: 20_000,
    },
    budget: { day: 13, night: 15 },
  },
  {
    name: 'parts',
    shows: 'sandbox, tools, providers, MCP, sources and plans with real files, processes and local servers',
    lane: 'computes',
    when: 'day',
    needsBuild: false,
    command: {
      kind: 'mocha',
      specs: slow.map(path => path.replace(/\*\*$/, '**/*.test.ts')),
      testLimitMs: 40_000,
    },
    budget: { day: 11, night: 16 },
  },
  {
    name: 'cli',
    shows: 'the command line',
    lane: 'computes',
    when: 'day',
    needsBuild: true,
    command: { kind: 'mocha', specs: ['test/cli/**/*.test.ts'], ignore: cliAtNight, testLimitMs: 60_000 },
    budget: { day: 10, night: 14 },
  },
  {
    name: 'conformance',
    shows: 'recorded behaviour',
    lane: 'computes',
    when: 'day',
    needsBuild: true,
    command: { kind: 'mocha', specs: ['test/conformance/**/*.test.ts'], testLimitMs: 60_000 },
    budget: { day: 1, night: 1 },
  },
  {
    name: 'mcp',
    shows: 'MCP servers, public ones too',
    lane: 'computes',
    when: 'day',
    needsBuild: false,
    command: { kind: 'mocha', specs: ['test/mcp/**/*.test.ts'], testLimitMs: 60_000 },
    budget: { day: 8, night: 9 },
  },
  {
    name: 'adversarial',
    shows: 'hostile skills, pages, servers and commands',
    lane: 'computes',
    when: 'day',
    needsBuild: true,
    command: {
      kind: 'mocha',
      specs: ['test/adversarial/adversarial.test.ts', 'test/adversarial/box/box.test.ts'],
      testLimitMs: 900_000,
    },
    budget: { day: 20, night: 40 },
  },
  {
    name: 'host',
    shows: 'the extension in the extension host of a real VS Code',
    lane: 'waits',
    when: 'day',
    needsBuild: true,
    command: { kind: 'node', args: ['test/vscode/hostSuite.ts'], prints: 'mocha' },
    budget: { day: 4, night: 4 },
  },
  {
    name: 'editor',
    shows: 'the chat view and the pages, clicked in a real VS Code',
    lane: 'waits',
    when: 'day',
    needsBuild: true,
    command: { kind: 'node', args: ['test/vscode/editorSuite.ts', '--part', 'day'], prints: 'mocha' },
    budget: { day: 24, night: 28 },
  },
  {
    name: 'plan',
    shows: 'plans from goal to merge',
    lane: 'waits',
    when: 'day',
    needsBuild: true,
    command: { kind: 'mocha', specs: ['test/plan/**/*.test.ts'], testLimitMs: 120_000, jobs: 2 },
    budget: { day: 9, night: 22 },
  },
  {
    name: 'cli-night',
    shows: 'the command line: kills, other clients, long conversations',
    lane: 'computes',
    when: 'night',
    needsBuild: true,
    command: { kind: 'mocha', specs: cliAtNight, testLimitMs: 300_000 },
    budget: { day: 3, night: 6 },
  },
  {
    name: 'editor-night',
    shows: 'kills, published skills, German and several windows in a real VS Code',
    lane: 'waits',
    when: 'night',
    needsBuild: true,
    command: { kind: 'node', args: ['test/vscode/editorSuite.ts', '--part', 'night'], prints: 'mocha' },
    budget: { day: 20, night: 30 },
  },
  {
    name: 'fleet',
    shows: 'workers and their database',
    lane: 'waits',
    when: 'night',
    needsBuild: true,
    command: { kind: 'mocha', specs: ['test/fleet/**/*.test.ts'], testLimitMs: 120_000, jobs: 3 },
    budget: { day: 10, night: 15 },
  },
  {
    name: 'faults',
    shows:
      'kills, cuts, full disks, many and long runs; at night also random ones, each time with another seed',
    lane: 'computes',
    when: 'night',
    needsBuild: true,
    command: { kind: 'mocha', specs: ['test/faults/faults.test.ts'], testLimitMs: 1_800_000 },
    budget: { day: 15, night: 60 },
  },
  {
    name: 'real-skills',
    shows: 'skills as people publish them',
    lane: 'computes',
    when: 'night',
    needsBuild: true,
    command: { kind: 'mocha', specs: ['test/realSkills/realSkills.test.ts'], testLimitMs: 1_800_000 },
    budget: { day: 10, night: 20 },
  },
  {
    name: 'mutate',
    shows: 'which of 150 small breaks no test notices',
    lane: 'computes',
    when: 'night',
    needsBuild: false,
    command: { kind: 'node', args: ['test/mutate/run.ts', '--count', '150'], prints: 'nothing' },
    budget: { day: 60, night: 60 },
  },
  {
    name: 'bench',
    shows: 'that times and sizes stay within their ratios to a bare counterpart',
    lane: 'computes',
    when: 'night',
    needsBuild: true,
    command: { kind: 'node', args: ['test/bench/bench.ts'], prints: 'nothing' },
    budget: { day: 60, night: 60 },
  },
  {
    name: 'electron',
    shows: 'the extension in the extension host of a desktop VS Code',
    lane: 'waits',
    when: 'night',
    needsBuild: true,
    needs: { variable: 'TELOS_CODE', names: 'a desktop VS Code' },
    command: { kind: 'node', args: ['test/vscode/electronSuite.ts'], prints: 'mocha' },
    budget: { day: 5, night: 5 },
  },
];

/** Returns the table as text: when, lane, name, and what a layer shows. */
export function drawTable(): string {
  const rows = layers.map(
    ({ when, lane, name, shows, budget }) =>
      [when, lane, name, when === 'day' ? `${budget.day}` : '-', `${budget.night}`, shows] as const,
  );
  const widths = [7, 10, 14, 5, 7];
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('')
      .trimEnd();
  return [
    line(['when', 'lane', 'layer', 'day', 'night', 'shows']),
    ...rows.map(line),
    '',
    'By day, the rows of the day run; at night all rows do, with TELOS_NIGHTLY=1.',
    'Day and night: the CPU time that a layer may take, as a multiple of that of types.',
  ].join('\n');
}
