/** Defines the doctor's report on the whole set-up, and the words in which every frontend shows it. */
import type { LocalizedMessage, Remedy } from './run.ts';
import { english, type Say, type Sentence } from './text.ts';

/** Its message states the problem and what it affects. */
export interface DoctorFinding extends LocalizedMessage {
  /** `error`: something that is set up does not work. */
  severity: 'error' | 'warning';
}

export interface DoctorValue {
  /** Name of a setting or a variable. */
  name: string;
  /** The value; for a secret, only whether it is set. Empty if nothing is set. */
  value: string;
  origin: 'flag' | 'setting' | 'environment' | '.env' | 'default';
  /** The file that contains the value, if it comes from a file. */
  file?: string;
}

export interface DoctorFolder {
  /** Purpose of the folder. */
  name: string;
  /** The agent whose folder for work it is. */
  agent?: string;
  path: string;
  /** `missing`: the folder does not exist yet, and can be made. */
  state: 'ok' | 'missing' | 'not readable' | 'not writable' | 'not a folder';
}

export interface DoctorAgent {
  name: string;
  /** `user`, `linked`, `project` or `builtin`. */
  source: string;
  skills: number;
  /** Number of errors in the agent's own files and those of its skills. */
  errors: number;
  warnings: number;
}

export interface DoctorProvider {
  name: string;
  model: string;
  /** Why this provider is used, in a sentence. */
  why: string;
  /** Those of `why`. */
  sentences?: readonly Sentence[];
  baseUrl?: string;
  /** Undefined if there is nothing to ask: a recording, or models of the editor. */
  answer?: { ok: true; milliseconds: number; models: number } | { ok: false; problem: string };
}

export interface DoctorServer {
  agent: string;
  server: string;
  /** Command line or address, without the values of variables. Empty if the server was not examined. */
  place: string;
  outcome:
    | { state: 'ok'; name: string; version: string; tools: readonly string[]; milliseconds: number }
    | { state: 'failed'; problem: string }
    /** The server was not started or reached; `why` is the reason. */
    | { state: 'not tried'; why: string; sentences?: readonly Sentence[]; remedy?: Remedy };
}

/** Whether a box for commands works here. `mend` is the exact command that makes it work, if there is one. */
export type BoxState =
  /** `isDirect` means that nothing holds the changes of commands back here, `lacksPerl` that Perl is missing for that. */
  | { works: true; kind: 'bubblewrap' | 'seatbelt'; isDirect?: true; lacksPerl?: true }
  | { works: false; why: string; mend?: string };

/** What is wanted of the box, and whether one works. `state` is missing where the person wants none. */
export interface DoctorBox {
  wanted: 'auto' | 'required' | 'off';
  state?: BoxState;
}

export interface DoctorReport {
  /** For example `Node 24.1.0 on linux x64`. */
  platform: string;
  values: readonly DoctorValue[];
  folders: readonly DoctorFolder[];
  agents: readonly DoctorAgent[];
  provider: DoctorProvider | undefined;
  servers: readonly DoctorServer[];
  box: DoctorBox;
  /** By which questions reach the user elsewhere. They are set up; only `telos notify test` sends something. */
  messengers: readonly string[];
  /** To which traces and metrics are exported, by their addresses. Nothing was sent. */
  collectors: readonly string[];
  findings: readonly DoctorFinding[];
}

/** Returns true if something that is set up does not work. */
export const isBroken = ({ findings }: DoctorReport): boolean =>
  findings.some(({ severity }) => severity === 'error');

/**
 * Returns the report as lines for a person. `tell` says a message and what to do, in the words of the frontend. Text of files and
 * servers is included as is: the caller makes it safe to show.
 */
export function describeReport(report: DoctorReport, tell: (message: LocalizedMessage) => string): string[] {
  return [...describeSetup(report, tell), '', ...describeFindings(report, tell)];
}

/** Returns what does not work, with what to do, and last how many errors that are and which servers were not tried. */
function describeFindings(report: DoctorReport, tell: (message: LocalizedMessage) => string): string[] {
  const untried = report.servers
    .filter(({ outcome }) => outcome.state === 'not tried')
    .map(server => serverName(server));
  const count = doctorHeadline(report);
  return [
    ...report.findings.map(finding => `${finding.severity === 'error' ? '✗' : '!'} ${tell(finding)}`),
    untried.length > 0 ? `${count} MCP servers that were not tried: ${untried.join(', ')}.` : count,
  ];
}

/** Returns how many problems there are, in a sentence. */
export function doctorHeadline({ findings, servers }: DoctorReport, say: Say = english): string {
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  if (errors > 1) return say('{0} problems to fix.', errors);
  if (errors === 1) return say('1 problem to fix.');
  const isUntried = servers.some(({ outcome }) => outcome.state === 'not tried');
  return findings.length > 0 || isUntried ? say('No errors.') : say('Everything works.');
}

/** Returns which server is meant, or that all of an agent are. */
export const serverName = ({ server, agent }: DoctorServer, say: Say = english): string =>
  server === '*' ? say('all of {0}', agent) : `${server} (${agent})`;

/** A part of what is set up, in columns. */
export interface SetupSection {
  title: string;
  /** What there is to say in place of rows. */
  value?: string;
  rows: readonly (readonly string[])[];
}

/** Returns what is set up as lines: settings, folders, agents, the provider and MCP servers. */
function describeSetup(report: DoctorReport, tell: (message: LocalizedMessage) => string): string[] {
  const parts = setupSections(report, tell).map(({ title, value, rows }) =>
    value === undefined
      ? [title.startsWith('Agents: ') ? title : `${title}:`, ...columns(rows)]
      : [`${title}: ${value}`],
  );
  return [report.platform, ...parts.flatMap(lines => ['', ...lines])];
}

/** Returns what is set up: settings, folders, agents, the provider, the sandbox, and what Telos reaches. */
export function setupSections(
  { values, folders, agents, provider, servers, box, messengers, collectors }: DoctorReport,
  tell: (message: LocalizedMessage) => string,
  say: Say = english,
): SetupSection[] {
  const skills = agents.reduce((sum, agent) => sum + agent.skills, 0);
  const skillsOf = (count: number): string => (count === 1 ? say('1 skill') : say('{0} skills', count));
  return [
    {
      title: say('Settings'),
      rows: values.map(({ name, value, origin, file }) => [
        name,
        value === notSet
          ? say('(not set)')
          : value === '(set)'
            ? say('(set)')
            : value || emptyWord(name, say),
        file ?? originWord(origin, say),
      ]),
    },
    {
      title: say('Folders'),
      rows: folders.map(folder => [folderName(folder, say), folder.path, stateWord(folder.state, say)]),
    },
    {
      title: say('Agents: {0}, with {1}', agents.length, skillsOf(skills)),
      rows: agents.map(agent => [
        agent.name,
        skillsOf(agent.skills),
        sourceWord(agent.source, say),
        defects(agent, say),
      ]),
    },
    { title: say('Provider'), rows: providerLines(provider, tell, say).map(line => [line]) },
    { title: say('Commands'), rows: boxLines(box, say).map(line => [line]) },
    {
      title: say('Messengers'),
      value: messengers.length === 0 ? say('none') : say('{0}, as set up', messengers.join(', ')),
      rows: [],
    },
    {
      title: 'OpenTelemetry',
      value: collectors.length === 0 ? say('off') : say('to {0}, as set up', collectors.join(', ')),
      rows: [],
    },
    {
      title: say('MCP servers'),
      ...(servers.length === 0 && { value: say('none') }),
      rows: servers.map(({ agent, server, place, outcome }) => [
        agent,
        server,
        outcomeText(outcome, tell, say),
        place,
      ]),
    },
  ];
}

/** The value of a variable that is not set. */
export const notSet = '(not set)';

/** Returns what is shown for a setting without a value. */
function emptyWord(name: string, say: Say): string {
  switch (name) {
    case 'provider':
      return say('chosen automatically');
    case 'model':
    case 'effort':
    case 'routingModel':
      return say('default');
    case 'replayFile':
      return say('none');
    case 'contextWindow':
      return say('as known of the model');
    case 'maxRounds':
      return say('20, unless a skill sets others');
    default:
      return name.startsWith('max') ? say('no limit') : notSet;
  }
}

function originWord(origin: DoctorValue['origin'], say: Say): string {
  switch (origin) {
    case 'default':
      return say('default');
    case 'environment':
      return say('environment');
    case 'flag':
      return say('flag');
    case 'setting':
      return say('setting');
    case '.env':
      return origin;
  }
}

function folderName({ name, agent }: DoctorFolder, say: Say): string {
  if (agent !== undefined) return say('working folder of {0}', agent);
  switch (name) {
    case 'skills':
      return say('skills');
    case 'configuration':
      return say('configuration');
    case 'data and logs':
      return say('data and logs');
    case 'working folders':
      return say('working folders');
    case 'home folders in the sandbox':
      return say('home folders in the sandbox');
    default:
      return name;
  }
}

function stateWord(state: DoctorFolder['state'], say: Say): string {
  switch (state) {
    case 'ok':
      return say('ok');
    case 'missing':
      return say('missing');
    case 'not readable':
      return say('not readable');
    case 'not writable':
      return say('not writable');
    case 'not a folder':
      return say('not a folder');
  }
}

function sourceWord(source: string, say: Say): string {
  switch (source) {
    case 'user':
      return say('user');
    case 'linked':
      return say('linked');
    case 'project':
      return say('project');
    case 'builtin':
      return say('builtin');
    default:
      return source;
  }
}

function defects({ errors, warnings }: DoctorAgent, say: Say): string {
  return [
    ...(errors > 0 ? [errors === 1 ? say('1 error') : say('{0} errors', errors)] : []),
    ...(warnings > 0 ? [warnings === 1 ? say('1 warning') : say('{0} warnings', warnings)] : []),
  ].join(', ');
}

function providerLines(
  provider: DoctorProvider | undefined,
  tell: (message: LocalizedMessage) => string,
  say: Say,
): string[] {
  if (!provider) return [say('none')];
  const { name, model, why, sentences, baseUrl, answer } = provider;
  const first = baseUrl
    ? say('{0}, model {1}, at {2}', name, model, baseUrl)
    : say('{0}, model {1}', name, model);
  const reason = tell({ message: why, ...(sentences && { sentences }) });
  return [first, reason, ...(answer ? [answerText(answer, say)] : [])];
}

function boxLines({ wanted, state }: DoctorBox, say: Say): string[] {
  if (!state) return [say('run without a sandbox, as the setting says: each is asked about')];
  if (state.works)
    return [
      say('run in a sandbox ({0})', state.kind),
      ...(state.isDirect ? [say('and are asked about, since their changes cannot be held back here')] : []),
      ...(state.lacksPerl ? [say('To fix it:'), `  ${say('Install Perl.')}`] : []),
      ...(wanted === 'required' ? [say('and nowhere else, as the setting says')] : []),
    ];
  const { why, mend } = state;
  return [
    wanted === 'required'
      ? say('do not run, since the setting wants a sandbox and none works here')
      : say('are asked about, since no sandbox works here'),
    why,
    ...(mend === undefined ? [] : [say('To fix it:'), ...mend.split('\n').map(line => `  ${line}`)]),
  ];
}

function answerText(answer: NonNullable<DoctorProvider['answer']>, say: Say): string {
  if (!answer.ok) return answer.problem;
  const { milliseconds, models } = answer;
  if (models === 0) return say('It answered in {0} ms.', milliseconds);
  return models === 1
    ? say('It answered in {0} ms and offers 1 model.', milliseconds)
    : say('It answered in {0} ms and offers {1} models.', milliseconds, models);
}

function outcomeText(
  outcome: DoctorServer['outcome'],
  tell: (message: LocalizedMessage) => string,
  say: Say,
): string {
  switch (outcome.state) {
    case 'ok': {
      const { name, version, tools, milliseconds } = outcome;
      return tools.length === 1
        ? say('{0} {1}: 1 tool in {2} ms', name, version, milliseconds)
        : say('{0} {1}: {2} tools in {3} ms', name, version, tools.length, milliseconds);
    }
    case 'failed':
      return say('does not work');
    case 'not tried': {
      const { why, sentences, remedy } = outcome;
      return tell({ message: why, ...(sentences && { sentences }), ...(remedy && { remedy }) });
    }
  }
}

/** Returns indented lines. Every column but the last is as wide as its widest cell. */
function columns(rows: readonly (readonly string[])[]): string[] {
  const width = (column: number): number =>
    rows.reduce((widest, row) => Math.max(widest, (row[column] ?? '').length), 0);
  return rows.map(row => {
    const cells = row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(width(column))));
    return `  ${cells.join('  ').trimEnd()}`;
  });
}
