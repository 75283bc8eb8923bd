/** Implements `telos-agent serve`: the orchestrator for programs in other languages, as JSON-RPC in lines. */

import { resolve } from 'node:path';
import { allowAll, denyAll, type Human } from '@telos/engine/run';
import { Telos } from '@telos/engine/telos';
import { RpcError, type RpcPeer, serveLines, unknownMethod } from '@telos/plans/context';
import {
  type CallOptions,
  type InterviewRunner,
  Orchestrator,
  type RalphResult,
} from '@telos/plans/orchestrator';
import type { JsonObject } from '@telos/protocol/run';
import { configFor } from './cliConfig.ts';
import type { Terminal } from './terminal.ts';

/** State of one connection. */
interface Session {
  orchestrator: Orchestrator;
  interviews: InterviewRunner[];
  sendsEvents: boolean;
}

/** Serves until stdin ends or a signal comes. Returns the exit code. */
export async function serveAgent(terminal: Terminal): Promise<number> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  process.once('SIGINT', end).once('SIGTERM', end);
  let session: Session | undefined;
  const opened = (): Session => {
    if (session) return session;
    throw new RpcError(-32002, 'Call initialize first, with project_dir.');
  };
  try {
    await serveLines(
      process.stdin,
      process.stdout,
      async (method, params, { peer, signal }) => {
        if (method === 'initialize') {
          await session?.orchestrator.close();
          session = open(params, peer, terminal);
          return { name: 'telos-agent', protocol: 1 };
        }
        const call = Object.hasOwn(methods, method) ? methods[method] : undefined;
        if (!call) throw unknownMethod(method);
        const { sendsEvents } = opened();
        const onEvent = sendsEvents ? (event: object) => peer.notify('event', { event }) : undefined;
        return call(opened(), params, { signal, onEvent });
      },
      stop.signal,
    );
  } finally {
    await session?.orchestrator.close();
  }
  return 0;
}

function open(params: JsonObject, peer: RpcPeer, terminal: Terminal): Session {
  const config = configFor({ cwd: '.' }, terminal);
  if (!config)
    throw new RpcError(-32000, 'The folder of telos-agent no longer exists. Start it in another one.');
  const projectDir = textIn(params, 'project_dir');
  if (projectDir === undefined) throw new RpcError(-32602, 'Give the project as project_dir.');
  const orchestrator = new Orchestrator(
    {
      projectDir,
      contextDir: listIn(params, 'context_dir'),
      maxIterations: numberIn(params, 'max_iterations'),
      model: textIn(params, 'model'),
      timeout: numberIn(params, 'timeout'),
      planDir: textIn(params, 'plan_dir'),
      human: humanOf(params['approve'], peer),
    },
    async () => Telos.open({ ...config, cwd: resolve(projectDir) }),
  );
  return { orchestrator, interviews: [], sendsEvents: params['events'] === true };
}

/** `ask` sends each question to the client, `all` is a yes to everything, and anything else is a no. */
function humanOf(approve: unknown, peer: RpcPeer): Human {
  if (approve === 'all') return allowAll;
  if (approve !== 'ask') return denyAll;
  return {
    async approve({ tool, subject, folder, rule, reason }) {
      const answer = await peer
        .request('approve', { tool, subject, folder, rule, reason })
        .catch(() => false);
      return answer === true
        ? { allow: true, scope: 'once' }
        : { allow: false, reason: 'The program said no.' };
    },
    async ask(questions) {
      const answers = await peer.request('ask', { questions }).catch(() => []);
      return questions.map((_, at) => (Array.isArray(answers) ? String(answers[at] ?? '') : ''));
    },
  };
}

type Method = (session: Session, params: JsonObject, options: CallOptions) => Promise<unknown>;

const methods: Readonly<Record<string, Method>> = {
  async interview({ orchestrator, interviews }) {
    return { interview: interviews.push(orchestrator.interview()) };
  },
  async process_round(session, params, options) {
    const transcript = neededText(params, 'transcript');
    const noMoreQuestions = params['no_more_questions'] === true;
    return interviewIn(session, params).processRound({ transcript, noMoreQuestions, ...options });
  },
  async get_context(session, params) {
    return interviewIn(session, params).getContext();
  },
  async generate_plan({ orchestrator }, params, options) {
    return orchestrator.generatePlan(neededText(params, 'context'), options);
  },
  async generate_prds({ orchestrator }, _params, options) {
    return orchestrator.generatePrds(options);
  },
  async execute({ orchestrator }, _params, options) {
    return snakeCased(await orchestrator.execute(options));
  },
  async plan_and_execute({ orchestrator }, params, options) {
    return snakeCased(await orchestrator.planAndExecute(neededText(params, 'context'), options));
  },
};

function interviewIn({ interviews }: Session, params: JsonObject): InterviewRunner {
  const found = interviews[Number(params['interview'] ?? interviews.length) - 1];
  if (!found) throw new RpcError(-32602, 'There is no such interview. Call interview first.');
  return found;
}

const snakeCased = (result: RalphResult) => ({
  success: result.success,
  iterations: result.iterations,
  final_verdict: result.finalVerdict,
  error: result.error,
  iteration_results: result.iterationResults,
  denial_streak: result.denialStreak,
  checks_not_run: result.checksNotRun,
});

function textIn(params: JsonObject, name: string): string | undefined {
  const value = params[name] ?? undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw new RpcError(-32602, `${name} is not a text.`);
}

function neededText(params: JsonObject, name: string): string {
  const text = textIn(params, name);
  if (text !== undefined) return text;
  throw new RpcError(-32602, `${name} is missing.`);
}

function numberIn(params: JsonObject, name: string): number | undefined {
  const value = params[name] ?? undefined;
  if (value === undefined || typeof value === 'number') return value;
  throw new RpcError(-32602, `${name} is not a number.`);
}

function listIn(params: JsonObject, name: string): string[] | undefined {
  const value = params[name] ?? undefined;
  if (value === undefined) return undefined;
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (list.every(one => typeof one === 'string')) return list as string[];
  throw new RpcError(-32602, `${name} is neither a folder nor a list of folders.`);
}
