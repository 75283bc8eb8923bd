/** Runs one skill: announces it, gives the model its prompt, its tools and its folders, and lets the loop go. */
import { readdirSync } from 'node:fs';
import type { RunEvent, RunOutcome } from '../protocol/run.ts';
import type { Agent, Skill } from './agents/agent.ts';
import type { Config } from './config.ts';
import type { RunState } from './frame.ts';
import type { Human } from './human.ts';
import { firstMessage, systemPrompt } from './prompt.ts';
import { priceOf } from './providers/prices.ts';
import type { Provider } from './providers/provider.ts';
import type { Match } from './route.ts';
import { runLoop } from './run.ts';
import { builtinTools } from './tools/builtin.ts';
import { commandEnvironment } from './tools/command.ts';
import type { RunFolders } from './tools/tool.ts';

/** Returns how the run ended; throws what stands in its way. `words` is the request with what was selected. */
export async function* runSkill(
  match: Match,
  words: string,
  { provider, human, state, config }: { provider: Provider; human: Human; state: RunState; config: Config },
  signal: AbortSignal,
): AsyncGenerator<RunEvent, RunOutcome> {
  const { agent, skill } = match;
  const folders = foldersOf(agent, skill);
  yield announcement(match, provider);
  for (const { message } of skill.diagnostics.filter(diagnostic => diagnostic.severity === 'error')) {
    yield { type: 'notice', level: 'warning', message: `${skill.file}: ${message}` };
  }
  state.messages.push({ role: 'user', content: firstMessage(skill.body, words, new Date()) });
  return yield* runLoop(
    {
      provider,
      human,
      system: systemPrompt(agent, skill, folders),
      skillDir: skill.dir,
      tools: builtinTools,
      context: { ...folders, env: commandEnvironment({ ...config.env, HOME: config.home }, folders) },
      policy: { ...folders, home: config.home, protectedDirs: [config.configDir, config.dataDir] },
      messages: state.messages,
      counts: state.counts,
      priceOf: tokens => priceOf(provider.name, provider.model, tokens),
    },
    signal,
  );
}

function announcement({ agent, skill, reason }: Match, provider: Provider): RunEvent {
  return {
    type: 'routed',
    agent: agent.name,
    skill: skill.id,
    description: skill.description,
    reason,
    provider: provider.name,
    model: provider.model,
    workingDir: agent.workingDir,
    hasMcp: agent.mcpConfig !== undefined,
    ...(provider.recording ? { recording: provider.recording } : {}),
  };
}

/** Commands run in the pack's folder, or in the skill's own when files lie there that its text may name. */
export function foldersOf(agent: Agent, skill: Skill): RunFolders {
  const companions = readdirSync(skill.dir).filter(
    name => !/^(skills?\.md|recording\.jsonl|\..*)$/i.test(name),
  );
  return {
    workingDir: agent.workingDir,
    packDir: agent.packDir,
    skillDir: skill.dir,
    commandDir: companions.length > 0 ? skill.dir : agent.packDir,
  };
}
