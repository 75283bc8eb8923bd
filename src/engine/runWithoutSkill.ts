/** Answers a request for which no skill was chosen: the model looks for one itself, with tools that only read. */
import { existsSync } from 'node:fs';
import type { RunEvent, RunOutcome } from '../protocol/run.ts';
import type { Diagnostic } from './agents/agent.ts';
import { workFoldersOf } from './agents/knownWorkFolders.ts';
import { existingSkillRoots, type SkillRoot } from './agents/skillRoots.ts';
import type { Config } from './config.ts';
import { policyNotices } from './permit.ts';
import type { PolicyContext } from './policy/decision.ts';
import { runPolicy } from './policy/runPolicy.ts';
import { firstMessage, withAttachments, withoutSkillPrompt } from './prompt.ts';
import { priceOf } from './providers/prices.ts';
import { runLoop } from './run.ts';
import { realFolders, type SkillBench } from './runSkill.ts';
import { skillTools } from './tools/builtin.ts';
import { commandEnvironment } from './tools/command.ts';
import { isInside } from './tools/paths.ts';
import { readOnlyShellTool } from './tools/readOnlyShell.ts';
import type { RunFolders, Tool } from './tools/tool.ts';

/** What such a run is offered. */
export const lookingTools: readonly Tool[] = [
  ...skillTools.filter(tool => tool.access === 'read'),
  readOnlyShellTool,
];

/** Returns how the run ended; throws what stands in its way. `words` is the request with what was selected. */
export async function* runWithoutSkill(
  words: string,
  {
    provider,
    human,
    state,
    earlier = [],
    attachments = [],
    config,
    budget,
    ripgrep,
    workFolders,
  }: SkillBench,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RunOutcome> {
  const diagnostics: Diagnostic[] = [];
  const roots = existingSkillRoots(config, diagnostics);
  const folders: RunFolders = {
    ...foldersWithoutSkill(config, roots),
    workFolders: workFolders ?? workFoldersOf(config, []),
  };
  yield {
    type: 'routed',
    agent: 'telos',
    skill: '',
    description: '',
    reason: { rule: 'without_skill' },
    provider: provider.name,
    model: provider.model,
    workingDir: folders.workingDir,
    hasMcp: false,
    ...(provider.recording ? { recording: provider.recording } : {}),
  };
  for (const { file, message } of diagnostics)
    yield { type: 'notice', level: 'warning', message: `${file}: ${message}` };
  const content = withAttachments(firstMessage('', words, new Date()), attachments);
  state.messages.push(...earlier, { role: 'user', content });
  const policy: PolicyContext = { ...runPolicy(config, undefined, folders), role: 'read-only' };
  yield* policyNotices(policy);
  const env = commandEnvironment({ ...config.env, HOME: config.home }, folders);
  return yield* runLoop(
    {
      provider,
      human,
      system: withoutSkillPrompt(folders, roots),
      tools: lookingTools,
      context: { ...folders, env, ripgrep, protectedDirs: await realFolders(policy) },
      policy,
      messages: state.messages,
      counts: state.counts,
      budget,
      priceOf: tokens => priceOf(provider.name, provider.model, tokens),
    },
    signal,
  );
}

/** The folder of the call; but a home folder is more than anybody wants to show, so there it is the folder where agents work. */
function foldersWithoutSkill({ cwd, home, workingRoot }: Config, roots: readonly SkillRoot[]): RunFolders {
  const workingDir = isInside(cwd, home) ? workingRoot : cwd;
  const paths = roots.map(({ path }) => path);
  // A program needs a folder that is there.
  const commandDir = [workingDir, ...paths].find(path => existsSync(path)) ?? workingDir;
  return { workingDir, packDir: workingDir, skillDir: workingDir, commandDir, alsoReadable: paths };
}
