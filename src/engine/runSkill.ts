/** Runs one skill: announces it, gives the model its prompt, its tools and its folders, and lets the loop go. */
import { readdirSync } from 'node:fs';
import type { RunEvent, RunOutcome } from '../protocol/run.ts';
import type { Agent, Skill } from './agents/agent.ts';
import type { Config } from './config.ts';
import type { RunState } from './frame.ts';
import type { Human } from './human.ts';
import { mayConnectServers, policyNotices } from './permit.ts';
import type { PolicyContext } from './policy/decision.ts';
import { runPolicy } from './policy/runPolicy.ts';
import { firstMessage, systemPrompt } from './prompt.ts';
import { priceOf } from './providers/prices.ts';
import type { Provider } from './providers/provider.ts';
import type { Match } from './route.ts';
import { type RunSpec, runLoop } from './run.ts';
import { builtinTools } from './tools/builtin.ts';
import { commandEnvironment } from './tools/command.ts';
import { connectServers, type McpServers } from './tools/mcpServers.ts';
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
  const env = commandEnvironment({ ...config.env, HOME: config.home }, folders);
  let mcp: McpServers | undefined;
  const policy: PolicyContext = {
    ...runPolicy(config, agent, folders),
    mcpTool: name => mcp?.merged().facts.get(name),
  };
  yield* policyNotices(policy);
  if (agent.mcpConfig && (yield* mayConnectServers({ human, policy }, signal)))
    mcp = await connectServers(config, agent, builtinTools, env, signal);
  try {
    for (const message of mcp?.problems ?? []) yield { type: 'notice', level: 'warning', message };
    const spec: RunSpec = {
      provider,
      human,
      system: systemPrompt(agent, skill, folders),
      skillDir: skill.dir,
      // Looked up in every round: a server may change its tools.
      get tools() {
        return mcp?.merged().tools ?? builtinTools;
      },
      context: { ...folders, env },
      policy,
      messages: state.messages,
      counts: state.counts,
      priceOf: tokens => priceOf(provider.name, provider.model, tokens),
    };
    return yield* runLoop(spec, signal);
  } finally {
    await mcp?.close();
  }
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
