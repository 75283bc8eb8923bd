/**
 * Examines the whole set-up: values and their origins, folders, agents, the provider and the MCP servers.
 * Runs nothing that is not accepted.
 */

import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type DoctorAgent,
  type DoctorBox,
  type DoctorFinding,
  type DoctorFolder,
  type DoctorProvider,
  type DoctorReport,
  type DoctorServer,
  type DoctorValue,
  notSet,
} from '@telos/protocol/doctorReport';
import type { Remedy } from '@telos/protocol/run';
import { asMessage, asSaid, type Sentence, sentence, spoken } from '@telos/protocol/text';
import { readAwaySettings } from './away/settings.ts';
import { budgetProblems, type Config, withoutPassword } from './config.ts';
import { TelosError } from './core/errors.ts';
import { homesIn } from './files/agentHome.ts';
import { shellWord } from './files/plainText.ts';
import { type Diagnostic, readToml } from './files/settingsFile.ts';
import type { SignInPort } from './human.ts';
import { hiddenIn, missingVariables, readMcpConfig } from './mcp/config.ts';
import { describeServers, type McpReach, type McpServerReport, usualLimits } from './mcp/servers.ts';
import { openPolicyFile, openReviews } from './policy/decision.ts';
import { boxesOf, decideOnAgent, serverEnvironment } from './policy/serverPrograms.ts';
import { isKnown, keyedProviders, listSource, type ProviderChoice } from './providers/create.ts';
import { pingProvider } from './providers/keys.ts';
import { endOf } from './providers/listedModels.ts';
import { oldPrices, ownPrices } from './providers/models.ts';
import { mapStrings, redactor, secretsIn } from './redact.ts';
import type { Discovery, FileAgent } from './skills/discover.ts';
import { type Machine, thisMachine } from './skills/machine.ts';
import { ownHooks } from './skills/readHooks.ts';
import { readinessOf } from './skills/readiness.ts';
import { workFoldersOf } from './skills/workFolders.ts';
import { hasTraces, readTraceSettings, type TraceSettings } from './traces/traceSettings.ts';

/** In milliseconds. A server that takes longer would make every run wait. */
const serverPatienceMs = 10_000;
/** Maximum number of defects of files that are listed. `telos lint` lists all. */
const shownDefects = 20;

/**
 * Returns the report. `choose` throws the reason if there is no provider.
 * Throws the abort reason on abort, and nothing else.
 */
export async function examine(
  config: Config,
  { agents, diagnostics }: Pick<Discovery, 'agents' | 'diagnostics'>,
  choose: () => Promise<ProviderChoice>,
  box: DoctorBox,
  signal: AbortSignal,
  signIn?: SignInPort,
): Promise<DoctorReport> {
  const findings: DoctorFinding[] = [];
  const redact = redactor(secretsIn(config.env));
  for (const { mcpConfig } of agents) if (mcpConfig) redact.learn(hiddenIn(mcpConfig, config.env));
  const folders = foldersOf(config, agents, findings);
  const [provider, servers] = await Promise.all([
    lookAtProvider(config, choose, findings, signal),
    lookAtServers(config, agents, findings, signal, { signIn, redact }),
  ]);
  const stopping = budgetProblems(config);
  for (const problem of config.problems) {
    const stops = stopping.some(({ message }) => message === problem.message);
    findings.push({ severity: stops ? 'error' : 'warning', ...problem });
  }
  findings.push(...ruleDefects(config), ...defectsIn(botFileDefects(config)));
  for (const problem of ownHooks(config.configDir).problems)
    findings.push({ severity: 'error', ...asMessage(asSaid(problem)) });
  const { places, problems } = readAwaySettings(config);
  for (const problem of problems) findings.push({ severity: 'error', ...asMessage(problem) });
  const tracing = hasTraces(config.env) ? readTraceSettings(config.env) : undefined;
  for (const problem of tracing?.problems ?? [])
    findings.push({ severity: 'warning', ...asMessage(problem) });
  for (const defect of defectsIn([...diagnostics, ...agents.flatMap(diagnosticsOf)])) findings.push(defect);
  const closed = boxFinding(box);
  if (closed) findings.push(closed);
  findings.push(...lacksOf(agents, thisMachine(config.env)));
  if (agents.length === 0) {
    const remedy: Remedy = { kind: 'add_skill', folder: config.skillsDir };
    findings.push({ severity: 'warning', ...asMessage(sentence('There are no agents.')), remedy });
  }
  const report: DoctorReport = {
    platform: `Node ${process.versions.node} on ${process.platform} ${process.arch}`,
    values: valuesOf(config),
    folders,
    agents: agents.map(describeAgent),
    provider,
    servers,
    box,
    messengers: places.map(({ kind }) => kind),
    collectors: collectorsOf(tracing?.settings),
    findings: findings.sort((one, other) => rank(one) - rank(other)),
  };
  return mapStrings(report, redact.text);
}

/** Returns where traces and metrics go, without what an address may hold as a key. */
const collectorsOf = ({ traces, metrics }: Partial<TraceSettings> = {}): string[] => [
  ...new Set([traces, metrics].flatMap(place => (place ? [new URL(place.url).origin] : []))),
];

const rank = ({ severity }: DoctorFinding): number => (severity === 'error' ? 0 : 1);

/** Returns the values in force, and a line for each provider's key that is not set. */
function valuesOf({ origins }: Config): DoctorValue[] {
  const unset = keyedProviders.filter(({ keyVariable }) => !Object.hasOwn(origins, keyVariable));
  return [
    ...Object.entries(origins).map(([name, value]) => ({ name, ...value })),
    ...unset.map(({ keyVariable }) => ({
      name: keyVariable,
      value: notSet,
      origin: 'default' as const,
    })),
  ];
}

function foldersOf(config: Config, agents: readonly FileAgent[], findings: DoctorFinding[]): DoctorFolder[] {
  const { skillsDir, configDir, dataDir, workingRoot } = config;
  const wanted: { name: string; agent?: string; path: string; write: boolean }[] = [
    { name: 'skills', path: skillsDir, write: false },
    { name: 'configuration', path: configDir, write: false },
    { name: 'data and logs', path: dataDir, write: true },
    { name: 'working folders', path: workingRoot, write: true },
    { name: 'home folders in the sandbox', path: homesIn(dataDir), write: true },
    ...agents.map(({ name, workingDir }) => ({
      name: `working folder of ${name}`,
      agent: name,
      path: workingDir,
      write: true,
    })),
  ];
  return wanted.map(({ name, agent, path, write }) => {
    const state = stateOf(path, write);
    if (state !== 'ok' && state !== 'missing') {
      const next = sentence('Change its permissions, or set another folder.');
      findings.push({ severity: 'error', ...asMessage(folderProblem(path, state), next) });
    }
    return { name, ...(agent !== undefined && { agent }), path, state };
  });
}

function folderProblem(path: string, state: 'not readable' | 'not writable' | 'not a folder'): Sentence {
  switch (state) {
    case 'not readable':
      return sentence('The folder {0} is not readable.', path);
    case 'not writable':
      return sentence('The folder {0} is not writable.', path);
    case 'not a folder':
      return sentence('{0} is not a folder.', path);
  }
}

/** Returns the state of a folder. A missing folder is fine if it can be made. */
function stateOf(path: string, write: boolean): DoctorFolder['state'] {
  let stats: Stats | undefined;
  try {
    stats = statSync(path, { throwIfNoEntry: false });
  } catch {
    return 'not readable'; // a folder above it cannot be read
  }
  if (stats && !stats.isDirectory()) return 'not a folder';
  if (stats) {
    if (!mayAccess(path, constants.R_OK | constants.X_OK)) return 'not readable';
    return !write || mayAccess(path, constants.W_OK) ? 'ok' : 'not writable';
  }
  if (!write) return 'missing';
  const parent = dirname(path);
  const above = parent === path ? 'not writable' : stateOf(parent, true);
  return above === 'ok' || above === 'missing' ? 'missing' : 'not writable';
}

function mayAccess(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

const diagnosticsOf = (agent: FileAgent): Diagnostic[] => [
  ...agent.diagnostics,
  ...agent.skills.flatMap(skill => skill.diagnostics),
];

function describeAgent(agent: FileAgent): DoctorAgent {
  const all = diagnosticsOf(agent);
  const count = (wanted: Diagnostic['severity']): number =>
    all.filter(({ severity }) => severity === wanted).length;
  const { name, source, skills } = agent;
  return { name, source, skills: skills.length, errors: count('error'), warnings: count('warning') };
}

/** Returns what is wrong with the user's rules, each with file and line. While a rule cannot be read, nothing runs. */
function ruleDefects(config: Config): DoctorFinding[] {
  const { problems, warnings } = openPolicyFile(config).read();
  const findingsOf = (texts: readonly string[], severity: DoctorFinding['severity']): DoctorFinding[] =>
    texts.map(text => ({ severity, ...asMessage(asSaid(text)) }));
  return [...findingsOf(problems, 'error'), ...findingsOf(warnings, 'warning')];
}

/** Returns why the settings of the bot cannot be read. What they mean is said when it starts. */
const botFileDefects = ({ configDir }: Config): readonly Diagnostic[] =>
  readToml(join(configDir, 'config.toml'), 'config', [
    sentence('The bot does not start with it.'),
    sentence('The prices in it do not count.'),
  ]).diagnostics;

/** Returns errors only. A file with a warning still works. */
function defectsIn(diagnostics: readonly Diagnostic[]): DoctorFinding[] {
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  const shown = errors.slice(0, shownDefects).map(({ file, line, message, fix, ...said }) => {
    const sentences = said.sentences ?? [asSaid(message)];
    const next = said.fixSentence ? [said.fixSentence] : fix === undefined ? [] : [asSaid(fix)];
    return {
      severity: 'error' as const,
      ...asMessage(asSaid(`${file}:${line}:`), ...sentences, ...next),
    };
  });
  const more = errors.length - shown.length;
  if (more === 0) return shown;
  return [
    ...shown,
    {
      severity: 'error',
      ...asMessage(sentence('{0} more errors in skill files.', more)),
      remedy: { kind: 'lint' },
    },
  ];
}

/** Returns what is missing on this machine for skills. A broken file is among the defects. */
function lacksOf(agents: readonly FileAgent[], machine: Machine): DoctorFinding[] {
  const all = agents.flatMap(agent =>
    agent.skills.map(skill => ({ agent, skill, ...readinessOf(skill, machine) })),
  );
  const lacking = all.filter(({ missing }) => missing.some(({ kind }) => kind !== 'file'));
  const shown = lacking.slice(0, shownDefects).map(({ agent, skill, missing }) => {
    const [first] = missing;
    const said = asMessage(
      sentence('The skill {0} of {1} is not ready.', skill.id, agent.name),
      ...(first ? [first.sentences.reason, first.sentences.nextStep] : []),
      ...(missing.length > 1 ? [sentence('It also needs {0} more.', missing.length - 1)] : []),
    );
    return { severity: 'warning' as const, ...said };
  });
  const rest = lacking.length - shown.length;
  const more = asMessage(sentence('{0} more skills are not ready, as the list of skills says.', rest));
  return rest > 0 ? [...shown, { severity: 'warning', ...more }] : shown;
}

/** Returns what a person should know of a box that does not work; undefined if there is nothing to say. */
function boxFinding({ wanted, state }: DoctorBox): DoctorFinding | undefined {
  if (!state || state.works) return undefined;
  const { why, mend } = state;
  const first =
    wanted === 'required'
      ? sentence('Commands cannot run: a sandbox is required (telos.sandbox), and none works here. {0}', why)
      : sentence('Every command is asked about, since no sandbox for commands works here. {0}', why);
  const next =
    mend === undefined
      ? []
      : mend.includes('\n')
        ? [sentence('The command that fixes it is below, under Commands.')]
        : [sentence('To fix it: {0}', mend)];
  return { severity: wanted === 'required' ? 'error' : 'warning', ...asMessage(first, ...next) };
}

async function lookAtProvider(
  config: Config,
  choose: () => Promise<ProviderChoice>,
  findings: DoctorFinding[],
  signal: AbortSignal,
): Promise<DoctorProvider | undefined> {
  let choice: ProviderChoice;
  try {
    choice = await choose();
  } catch (error) {
    const found = error instanceof TelosError ? error.runError : { message: String(error) };
    findings.push({ severity: 'error', ...found });
    return undefined;
  }
  const { name, model, why, sentences, baseUrl, recording } = choice;
  const provider: DoctorProvider = {
    name,
    model,
    why,
    ...(sentences && { sentences }),
    ...(baseUrl ? { baseUrl: withoutPassword(baseUrl) } : {}),
  };
  if (recording && !config.provider && !config.replayFile) {
    const said = asMessage(sentence('No model is set up, so skills can only play recorded runs.'));
    findings.push({ severity: 'warning', ...said, remedy: { kind: 'set_up_model' } });
  }
  const { problem } = ownPrices(config)(choice);
  for (const said of [problem, oldPrices()])
    if (said) findings.push({ severity: 'warning', ...asMessage(...said) });
  const ping = await pingProvider(config, choice, signal);
  if (!ping) return provider;
  if (!ping.ok) {
    findings.push({ severity: 'error', message: ping.problem });
    return { ...provider, answer: ping };
  }
  for (const finding of [missingModel(choice, ping.models), await endingModel(config, choice)])
    if (finding) findings.push(finding);
  return { ...provider, answer: { ...ping, models: ping.models.length } };
}

/** How long before its end a model is named, in milliseconds. */
const noticeMs = 90 * 86_400_000;

/** Returns a finding if the model ends soon, or has ended. */
async function endingModel(
  config: Config,
  { name, model }: ProviderChoice,
): Promise<DoctorFinding | undefined> {
  const end = isKnown(name) ? await endOf(listSource(config, name), model) : undefined;
  if (end === undefined || Date.parse(end) - Date.now() > noticeMs) return undefined;
  const said = asMessage(sentence('The model {0} answers no more from {1} on.', model, end));
  return { severity: 'warning', ...said, remedy: { kind: 'choose_model' } };
}

/** Returns a finding if the model is not listed. Ollama lists all that it has; other lists may be incomplete. */
function missingModel({ name, model }: ProviderChoice, models: readonly string[]): DoctorFinding | undefined {
  if (name === 'ollama') {
    if (models.some(id => id === model || id === `${model}:latest`)) return undefined;
    return {
      severity: 'error',
      ...asMessage(
        sentence('Ollama does not have the model {0}.', model),
        sentence('Get it with: {0}', `ollama pull ${shellWord(model)}`),
      ),
    };
  }
  if (models.length === 0 || models.some(id => id === model || id === `models/${model}`)) return undefined;
  // Names without a date mean the latest of their kind.
  if (models.some(id => id.startsWith(`${model}-`))) return undefined;
  const said = asMessage(sentence('{0} does not list the model {1}.', name, model));
  return { severity: 'warning', ...said, remedy: { kind: 'choose_model' } };
}

/** Examines one agent after the other, since each server may be a program that starts. */
async function lookAtServers(
  config: Config,
  agents: readonly FileAgent[],
  findings: DoctorFinding[],
  signal: AbortSignal,
  reach: McpReach,
): Promise<DoctorServer[]> {
  const reviews = openReviews(config);
  const servers: DoctorServer[] = [];
  for (const agent of agents) {
    if (agent.mcpConfig === undefined) continue;
    signal.throwIfAborted();
    const state = await reviews.stateOf(agent).then(
      review => review.state,
      () => 'new' as const,
    );
    const decision = await decideOnAgent(config, agent, agents);
    if (decision.action !== 'allow') {
      const why =
        state === 'reviewed'
          ? sentence('not tried: {0}', decision.reason)
          : state === 'new'
            ? sentence('not tried: the agent is not reviewed yet.')
            : sentence('not tried: the agent has changed since it was reviewed.');
      findings.push(...entriesLacking(config, agent, agent.mcpConfig));
      const remedy: Remedy | undefined =
        state === 'reviewed' ? undefined : { kind: 'review_agent', agent: agent.name };
      servers.push({
        agent: agent.name,
        server: '*',
        place: agent.mcpConfig,
        outcome: { state: 'not tried', why: spoken([why]), sentences: [why], ...(remedy && { remedy }) },
      });
      continue;
    }
    const limits = { ...usualLimits, connectMs: serverPatienceMs };
    const workFolders = workFoldersOf(config, agents);
    const answered = await describeServers(config, agent, serverEnvironment(config, agent), signal, {
      ...reach,
      openBox: boxesOf(config, agent),
      limits,
      workFolders,
    });
    findings.push(
      ...answered.problems.map(problem => ({ severity: 'error' as const, ...asMessage(problem) })),
    );
    for (const report of answered.servers) servers.push(describeServer(agent, report, findings));
    // That nothing of it can start is not that it has none.
    if (answered.servers.length === 0 && answered.problems.length > 0)
      servers.push({
        agent: agent.name,
        server: '*',
        place: agent.mcpConfig,
        outcome: { state: 'failed', problem: spoken(answered.problems.flat()) },
      });
  }
  return servers;
}

/** Returns what the servers of an agent that is not accepted lack, so that a person can set it before accepting. */
function entriesLacking({ env }: Config, { name: agent }: FileAgent, mcpConfig: string): DoctorFinding[] {
  const { servers, problems } = readMcpConfig(mcpConfig);
  const broken = problems.map(problem => ({ severity: 'error' as const, ...asMessage(asSaid(problem)) }));
  const lacking = [...servers].flatMap(([name, server]): DoctorFinding[] => {
    const missing = missingVariables(server, env);
    if (missing === undefined) return [];
    const said = asMessage(
      sentence("The MCP server '{0}' of {1} will not start: {2}.", name, agent, missing),
      sentence("Set it in the environment or in Telos's .env file."),
    );
    return [{ severity: 'warning', ...said }];
  });
  return [...broken, ...lacking];
}

function describeServer(agent: FileAgent, report: McpServerReport, findings: DoctorFinding[]): DoctorServer {
  const { server, place, milliseconds, outcome } = report;
  const which = { agent: agent.name, server, place };
  if (!('error' in outcome)) return { ...which, outcome: { state: 'ok', ...outcome, milliseconds } };
  const said = asMessage(
    sentence("The MCP server '{0}' of {1} does not work: {2}.", server, agent.name, outcome.error),
    sentence('It is configured in {0}.', agent.mcpConfig ?? ''),
  );
  findings.push({ severity: 'error', ...said });
  return { ...which, outcome: { state: 'failed', problem: spoken([outcome.error]) } };
}
