/** Which skill a request means, by its name alone or with a model asked over the wire. */
import { Telos } from '../../../src/engine/telos.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { startOpenaiServer } from '../../fakes/openaiServer.ts';
import { isRecord, type JsonRecord, strings, texts } from '../caseFile.ts';
import type { CaseWorld } from '../caseWorld.ts';
import type { Observed } from '../expectations.ts';
import type { Operation, Operations } from '../operations.ts';

type Environment = Record<string, string | undefined>;

export const routingOperations: Operations = {
  async keyword_match({ given, when }, world) {
    addAgents({ one: given['skills'] ?? [] }, world);
    const { skill } = await routed(String(when['input']), undefined, world, { TELOS_ROUTING_MODE: 'name' });
    return { match: skill };
  },

  llm_route: withModel,
  route: withModel,

  async route_across({ given, when }, world) {
    addAgents(given['agents'], world);
    const replies = Object.values(texts(given['model_replies_by_agent']));
    const agent = typeof when['agent'] === 'string' ? when['agent'] : undefined;
    return withAnthropic(replies[0] ?? 'NONE', { ANTHROPIC_API_KEY: 'k' }, env =>
      routed(String(when['input']), agent, world, env),
    );
  },
};

async function withModel({ given, when }: Parameters<Operation>[0], world: CaseWorld): Promise<Observed> {
  addAgents({ one: given['skills'] ?? ['kickoff', 'shutdown'] }, world);
  if (isRecord(given['env_file'])) {
    const lines = Object.entries(texts(given['env_file'])).map(([name, value]) => `${name}=${value}`);
    world.write({ '@config/.env': `${lines.join('\n')}\n` });
  }
  const input = String(when['input']);
  if (given['provider'] === 'ollama') {
    const server = await startOpenaiServer({ turns: [{ text: ['shutdown'] }] });
    try {
      const env = { TELOS_PROVIDER: 'ollama', OLLAMA_BASE_URL: server.url };
      const { skill } = await routed(input, undefined, world, env);
      return {
        match: skill,
        llm_calls: server.requests.length,
        provider: server.requests.length > 0 && 'ollama',
      };
    } finally {
      await server.close();
    }
  }
  return withAnthropic(String(given['model_reply']), texts(given['env']), async env => {
    const { skill } = await routed(input, undefined, world, env);
    return { match: skill };
  });
}

/** Adds what the model was asked. */
async function withAnthropic(
  reply: string,
  env: Environment,
  route: (env: Environment) => Promise<Observed>,
): Promise<Observed> {
  const server = await startAnthropicServer({ turns: [{ text: [reply] }] });
  try {
    const observed = await route({ ...env, ANTHROPIC_BASE_URL: server.url });
    const request = server.requests[0]?.body;
    return {
      ...observed,
      llm_calls: server.requests.length,
      ...(request
        ? { request, system: textIn(request.system), userMessage: textIn(request.messages[0].content) }
        : {}),
    };
  } finally {
    await server.close();
  }
}

const textIn = (content: unknown): string =>
  Array.isArray(content)
    ? content.map(block => (isRecord(block) ? String(block['text'] ?? '') : '')).join('\n')
    : String(content ?? '');

/** An agent that is not there, or none at all, is an error that says so; no skill is matched then. */
async function routed(
  text: string,
  agent: string | undefined,
  world: CaseWorld,
  env: Environment,
): Promise<{ agent?: string | undefined; skill?: string | undefined }> {
  const telos = Telos.open(world.loadConfig(env));
  try {
    const result = await telos.route({ text, ...(agent ? { agent } : {}) }, AbortSignal.timeout(10_000));
    return result.skill ? { agent: result.agent.name, skill: result.skill.id } : {};
  } catch (error) {
    if (/No agents found|not found/.test(String(error))) return {};
    throw error;
  }
}

function addAgents(agents: unknown, world: CaseWorld): void {
  for (const [agent, skills] of Object.entries((agents ?? {}) as JsonRecord)) {
    for (const skill of strings(skills)) {
      world.write({ [`@skills/${agent}/skills/${skill}/SKILL.md`]: '---\ndescription: d\n---\nB' });
    }
  }
}
