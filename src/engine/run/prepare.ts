/** Prepares a run: its prompt, its tools, its folders and its policy. Asks nothing and starts nothing. */
import type { RunEvent } from '@telos/protocol/run';
import { atMost } from '../cancellation.ts';
import { type Config, effortFor } from '../config.ts';
import type { Provider, TokenCount } from '../core/ports.ts';
import type { McpServers } from '../mcp/servers.ts';
import type { PolicyContext } from '../policy/decision.ts';
import { windowOf } from '../providers/contextWindow.ts';
import { costOf } from '../providers/models.ts';
import type { Match } from '../routing/routeName.ts';
import type { Tool } from '../tools/tool.ts';
import { endCommands } from './conversationCommands.ts';
import type { Engine, Run } from './request.ts';
import { realFolders } from './runFolders.ts';
import { planOpen, planSkill, planStep, type RunPlan } from './runPlans.ts';
import type { RunSetup } from './runSetup.ts';
import { searchOf } from './runTools.ts';
import type { ServerGate } from './serverGate.ts';

export interface PreparedRun {
  /** Notices for the person, before anything is asked. */
  opening: readonly RunEvent[];
  policy: PolicyContext;
  /** Starts the agent's MCP servers. Missing if the run uses none. */
  connect?: (signal: AbortSignal) => Promise<McpServers>;
  /** Returns what the loop runs with. `gate` holds the servers that are not connected yet. */
  spec(gate?: ServerGate): RunSetup;
  /** Ends the servers. */
  close(): Promise<void>;
}

/** It takes this thread alone: of many that begin together, the first are ready sooner if they do not all wait for each other. */
const inTurn = atMost(4);

/** Prepares the run of a skill, of a step of a plan, or one without a skill. Throws errors that prevent it. */
export function prepareRun(
  match: Match | undefined,
  run: Run,
  provider: Provider,
  engine: Engine,
): Promise<PreparedRun> {
  const { step } = run.request;
  return inTurn(async () => {
    const plan = step
      ? await planStep(step, match, run, engine)
      : match
        ? await planSkill(match, run, provider, engine)
        : await planOpen(run, provider, engine);
    return prepare(plan, match, run, provider, engine);
  });
}

/** Returns what each run has in the same way, around what its plan says. */
async function prepare(
  { policy, folders, env, servers: wanted, opening, ...plan }: RunPlan,
  match: Match | undefined,
  run: Run,
  provider: Provider,
  engine: Engine,
): Promise<PreparedRun> {
  const { config, ripgrep } = engine;
  let servers: McpServers | undefined;
  policy.mcpTool = name => servers?.merged().facts.get(name);
  const protectedDirs = await realFolders(policy);
  const opened = await plan.box;
  Object.assign(policy, opened?.facts);
  const box = opened?.box;
  const search = match && searchOf(match.agent, config, provider, () => servers);
  const own = [...plan.tools(opened?.offered ?? (tools => tools)), ...(search?.tools ?? [])];
  const offered = (gate?: ServerGate): readonly Tool[] => {
    const { tools = own, facts } = servers?.merged() ?? {};
    return [...plan.offered(tools, facts), ...(gate?.tools ?? [])];
  };
  return {
    opening,
    policy,
    ...(wanted && {
      async connect(signal) {
        const { connectRunServers } = await import('./runServers.ts');
        const served = { ...wanted, run, engine, policy, folders, env };
        servers = await connectRunServers(served, own, signal);
        const { tools, facts } = servers.merged();
        wanted.tape?.keepServers(
          tools.map(({ definition }) => definition).filter(({ name }) => facts.has(name)),
        );
        return servers;
      },
    }),
    spec: gate => ({
      // Before the other fields, which have what it is made of.
      system: plan.system(offered(gate).map(({ definition }) => definition.name)),
      ...loopFields(run, provider, config),
      ...plan.loop,
      get tools() {
        return offered(gate);
      },
      search,
      gate,
      context: {
        ...folders,
        env,
        ripgrep,
        protectedDirs,
        // Lets tools return what the model can see.
        ...(provider.media && { media: provider.media }),
        ...(plan.keeper && { changes: plan.keeper() }),
        ...(box && { box, standIns: opened.facts.standIns ?? [] }),
      },
      policy,
    }),
    async close() {
      await servers?.close();
      // No one could stop them any more.
      if (run.request.conversationId === undefined) await endCommands(run.id);
      box?.rest?.();
      await plan.ended?.();
    },
  };
}

const loopFields = (
  { human, messages, counts, budget, redact, firstParts, effort, useSkill }: Run,
  provider: Provider,
  config: Config,
) => ({
  provider,
  effort: effort ?? effortFor(config, provider.model),
  human,
  messages,
  counts,
  budget,
  firstParts,
  useSkill,
  window: windowOf(config, provider),
  redact: redact.text,
  priceOf: (tokens: TokenCount) => costOf(provider, tokens),
});
