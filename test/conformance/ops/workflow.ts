/** The long work: interview, plan, stories, the loop, and its command line. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseAgentLine } from '../../../src/cli/agentCommand.ts';
import { CommanderError } from '../../../src/cli/parser.ts';
import { TelosError } from '../../../src/engine/core/errors.ts';
import { estimateCost } from '../../../src/plans/estimate.ts';
import { nextItem, storiesIn } from '../../../src/plans/inPlaceAttempt.ts';
import { isRepositoryUrl, isSkip, jsonIn, parseRound } from '../../../src/plans/interview.ts';
import { Orchestrator, type OrchestratorOptions, type RalphResult } from '../../../src/plans/orchestrator.ts';
import { PlanFolder } from '../../../src/plans/planFolder.ts';
import { parsePrd } from '../../../src/plans/prdFile.ts';
import { type StepAnswer, toolsOf, verdictIn, writtenVerdict } from '../../../src/plans/stepTools.ts';
import { calls, done, type ScriptedTurn, says } from '../../fakes/scriptedProvider.ts';
import { type AskedModel, scriptedTelos } from '../../fakes/scriptedTelos.ts';
import { isRecord, type Json, type JsonRecord, strings } from '../caseFile.ts';
import type { CaseWorld } from '../caseWorld.ts';
import type { Observed } from '../expectations.ts';
import type { Operations } from '../operations.ts';
import { terminalFor } from './runs.ts';

export const workflowOperations: Operations = {
  extract_json: async ({ when }) => ({ value: jsonIn(String(when['text'])) ?? null }),

  async parse_round({ when }) {
    try {
      const { ready, questions } = parseRound(String(when['output']));
      return { ready, questions };
    } catch (error) {
      return { error: error instanceof TelosError };
    }
  },

  is_skip: async ({ when }) => ({ value: isSkip(String(when['text'])) }),
  repo_url_ok: async ({ when }) => ({ value: isRepositoryUrl(String(when['url'])) }),

  async process_round({ given }, world) {
    const { orchestrator, asked } = open(world, () => [says(String(given['model_output'] ?? '')), done()]);
    const interview = orchestrator.interview();
    const transcript = String(given['transcript']);
    const noMoreQuestions = given['no_more_questions'] === true;
    return attempt(async () => {
      const round = await interview.processRound({ transcript, noMoreQuestions });
      const tools = asked[0]?.tools ?? [];
      return {
        ...round,
        model_calls: asked.length,
        context: interview.getContext(),
        prompt: asked[0]?.words,
        tools: tools.flatMap(name => otherNames[name] ?? name),
      };
    });
  },

  orchestrator_defaults: async (_case, world) => {
    const { orchestrator } = open(world, () => []);
    const { maxIterations, model, timeout, contextDir } = orchestrator;
    return { max_iterations: maxIterations, model, timeout, context_dir: contextDir };
  },

  without_plan: async (_case, world) =>
    attempt(async () => ({ path: await open(world, () => [says('x'), done()]).orchestrator.generatePrds() })),

  async generate_plan({ given, when }, world) {
    const { orchestrator, asked } = open(world, () => {
      const text = String(given['model_output_plan'] ?? '');
      return Number(given['exit'] ?? 0) === 0 ? [says(text), done()] : [new Error('The model failed.')];
    });
    return attempt(async () => {
      await orchestrator.generatePlan(String(when['context']));
      return { base: world.cwd, prompt: asked[0]?.words };
    });
  },

  async generate_prds({ given }, world) {
    world.write({ 'plan.md': given['plan'] ?? '' }, 'cwd');
    const files = isRecord(given['prds_written']) ? Object.entries(given['prds_written']) : [];
    const handedIn = files.map(([name, text], at) =>
      calls(`s${at}`, 'submit_story', storyOf(name, String(text))),
    );
    const { orchestrator, asked } = open(world, ({ turn }) =>
      turn === 0 && handedIn.length > 0 ? [...handedIn, done('tool_use')] : [says('That is all.'), done()],
    );
    return attempt(async () => {
      await orchestrator.generatePrds();
      const paths = new PlanFolder(world.cwd, world.cwd)
        .readPrds()
        .map(({ path }) => path.replace('prds/', ''));
      return { files: paths, prompt: asked[0]?.words };
    });
  },

  ralph: async ({ given }, world) => ralph(given, world),

  async loop({ given }, world) {
    world.write(
      given['prds'] ? described(given) : { 'prds/01-a.md': '# A\n- [ ] one\n- [ ] two\n- [ ] three\n' },
      'cwd',
    );
    const isLimited = given['rate_limited'] === true;
    const { result, asked } = await run(
      world,
      one => {
        if (isLimited) return [new TelosError('rate_limit', 'No more requests for now.')];
        if (!one.tools.includes('approve') || one.turn > 0) return [says('Done.'), done()];
        return [calls('v', 'approve', { summary: 'fine' }), done('tool_use')];
      },
      2,
    );
    return {
      success: result.success,
      stops: asked.length === 1,
      partial_progress: result.iterationResults.some(({ status }) => status === 'approved-partial'),
    };
  },

  async pick_next(_case, world) {
    world.write(
      { 'prds/01-a.md': '# A\n- [x] a\n', 'prds/02-b.md': '# B\n- [x] b\n- [ ] c\n- [ ] d\n' },
      'cwd',
    );
    const next = nextItem(storiesIn(new PlanFolder(world.cwd, world.cwd)));
    const isFirst = next?.item.text === 'c';
    return { prd: next?.story.prd.replace('prds/', ''), item: isFirst ? 'first unticked' : next?.item.text };
  },

  async verdict({ when }) {
    const answers: StepAnswer[] = [];
    const tools = toolsOf('reviewer', answers);
    const replies: string[] = [];
    for (const call of (when['calls'] ?? []) as readonly Json[]) {
      const [name, text] = strings(call);
      const tool = tools.find(({ definition }) => definition.name === name);
      const input = name === 'approve' ? { summary: text } : { reason: text };
      const { signal } = new AbortController();
      replies.push((await tool?.execute(input, { signal } as never))?.content ?? 'no such tool');
    }
    const verdict = verdictIn(answers);
    const written = verdict && writtenVerdict(verdict);
    return {
      json: written,
      reply: replies.join('\n'),
      timestamp_iso8601: written?.timestamp === new Date(written?.timestamp ?? '').toISOString(),
    };
  },

  async verdict_access(_case, world) {
    const { asked } = await everyStep(world);
    const [allowed, others] = partOf(asked, 'reviewer');
    return { allowed: allowed.every(decides), others: others.some(decides) };
  },

  async context_access({ given }, world) {
    const { asked } = await everyStep(world);
    const knows = ({ tools }: AskedModel): boolean =>
      tools.includes('answerQuestion') && tools.includes('summarize');
    const actors = strings(given['actors']).flatMap(actor => stepOf[actor] ?? actor);
    const found = asked.filter(one => actors.includes(nameOf(one)));
    return { allowed: found.length > 0 && found.every(knows) };
  },

  async prd_progress({ given }, world) {
    if (given['missing'] !== true) {
      mkdirSync(join(world.cwd, 'prds'));
      const files = isRecord(given['files']) ? Object.entries(given['files']) : [];
      world.write(Object.fromEntries(files.map(([name, text]) => [`prds/${name}`, text])), 'cwd');
    }
    const prds = new PlanFolder(world.cwd, world.cwd).readPrds().map(({ path, text }) => {
      const { items, title } = parsePrd(path, text).story;
      const shown = items.map(item => ({ text: item.text, checked: item.ticked }));
      const [total, done] = [items.length, items.filter(({ ticked }) => ticked).length];
      const percent = total === 0 ? 0 : Math.round((done / total) * 1000) / 10;
      return { filename: path.replace('prds/', ''), title, items: shown, total, done, percent };
    });
    return { prds, order: prds.map(({ filename }) => filename) };
  },

  async estimate({ given }) {
    const { low, typical, high, stories } = estimateCost({
      transcriptLength: Number(given['transcript_len']),
      elements: Number(given['total_elements']),
      maxIterations: Number(given['max_iterations']),
      model: String(given['model']),
      ...(typeof given['prd_count'] === 'number' && { stories: given['prd_count'] }),
    });
    return { low_usd: low, typical_usd: typical, high_usd: high, estimated_prd_count: stories };
  },

  async agent_cli({ when }) {
    const screen = { stdout: '' };
    try {
      const { options } = await parseAgentLine(strings(when['args']), terminalFor(screen));
      const { maxIterations, model, timeout, transcript } = options;
      return { exit: 0, parsed: { max_iterations: maxIterations, model, timeout, transcript } };
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      return { exit: error.exitCode === 0 ? 0 : 2, stdout: screen.stdout };
    }
  },
};

/** The stories that a case describes in words: `01-a.md all ticked`, or `02-b.md has unticked items`. */
const described = ({ prds }: JsonRecord): Record<string, string> =>
  Object.fromEntries(
    strings(prds).map(words => {
      const name = words.split(' ')[0] ?? '';
      const rest = words.includes('all ticked') ? '- [x] c\n' : '- [ ] c\n- [ ] d\n';
      return [`prds/${name}`, `# ${name}\n- [x] b\n${rest}`];
    }),
  );

/** Our tools by the names that the cases have for them. A shell that only looks is none that runs commands. */
const otherNames: Readonly<Record<string, string[]>> = {
  read_file: ['Read'],
  glob: ['Glob'],
  search_files: ['Grep'],
  write_file: ['Write'],
  edit_file: ['Edit'],
};

type Answer = Parameters<typeof scriptedTelos>[1];

function open(world: CaseWorld, answer: Answer, options: Partial<OrchestratorOptions> = {}) {
  const { telos, asked } = scriptedTelos(world.loadConfig(), answer);
  return { asked, orchestrator: new Orchestrator({ projectDir: world.cwd, ...options }, async () => telos) };
}

/** Returns what was observed, or what was thrown. */
async function attempt(action: () => Promise<Observed>): Promise<Observed> {
  try {
    return await action();
  } catch (error) {
    return { throws: true, message: error instanceof Error ? error.message : String(error) };
  }
}

function storyOf(name: string, text: string): JsonRecord {
  const boxes = [...text.matchAll(/^- \[[ x]\] (.+)$/gm)].map(([, words = '']) => words);
  return { title: name.replace(/^\d+-|\.md$/g, ''), criteria: boxes, checks: [] };
}

async function run(
  world: CaseWorld,
  answer: Answer,
  maxIterations: number,
  timeout = 900,
): Promise<{ result: RalphResult; asked: AskedModel[] }> {
  const { orchestrator, asked } = open(world, answer, { maxIterations, timeout });
  return { result: await orchestrator.execute(), asked };
}

/** Each iteration of a case is a coder's answer and a reviewer's verdict. After the last one both are silent. */
async function ralph(given: JsonRecord, world: CaseWorld): Promise<Observed> {
  const script = (given['iterations'] ?? []) as readonly Json[];
  world.write(given['existing'], 'cwd');
  const prds = isRecord(given['prds'])
    ? Object.entries(given['prds'])
    : [['01-main.md', '# Main\nWithout boxes.\n']];
  world.write(Object.fromEntries(prds.map(([name, text]) => [`prds/${name}`, text ?? ''])), 'cwd');
  const existed = world.read('AGENTS.md', 'cwd') !== undefined;
  const prompts: string[] = [];
  const answer: Answer = one => {
    if (one.turn > 0) return [says('That is all.'), done()];
    const isReviewer = one.tools.includes('approve');
    // A step that fails at once is tried again without tools.
    if (!isReviewer && one.tools.length > 0) prompts.push(one.words);
    const iteration = script[prompts.length - 1];
    const { verdict, stdout, exit, stderr, timeout } = isRecord(iteration) ? iteration : {};
    if (timeout === true) return new Promise(() => undefined);
    if (Number(exit ?? 0) !== 0) return [failureOf(String(stderr ?? ''))];
    return isReviewer ? verdictTurn(verdict) : [says(String(stdout ?? '')), done()];
  };
  const hasTimeout = script.some(one => isRecord(one) && one['timeout'] === true);
  const { result } = await run(world, answer, Number(given['max_iterations']), hasTimeout ? 0.3 : 60);
  const progress = world.read('progress.txt', 'cwd') ?? '';
  return {
    success: result.success,
    iterations: result.iterations,
    statuses: result.iterationResults.map(({ status }) => status),
    details: result.iterationResults.map(({ details }) => details),
    denial_streak: result.denialStreak,
    error: result.error,
    final_verdict: result.finalVerdict,
    progress,
    progress_iteration_headings: progress.match(/^## Iteration \d+ — /gm)?.length ?? 0,
    prompts,
    seeded: !existed && world.read('AGENTS.md', 'cwd') !== undefined ? ['AGENTS.md'] : [],
    base: world.cwd,
  };
}

/** A refused key is an error of ours by the time it reaches the loop. */
const failureOf = (stderr: string): Error =>
  /^40[13]/.test(stderr) ? new TelosError('auth', stderr) : new Error(stderr);

function verdictTurn(verdict: Json | undefined): ScriptedTurn {
  if (!isRecord(verdict)) return [says('Hm.'), done()];
  const { approved, summary, reason } = verdict;
  const input = approved === true ? { summary } : { ...(reason !== undefined && { reason }) };
  return [calls('v', approved === true ? 'approve' : 'deny', input), done('tool_use')];
}

/** Has every step run once, so that the tools can be seen that each really gets. */
async function everyStep(world: CaseWorld): Promise<{ asked: AskedModel[] }> {
  const { orchestrator, asked } = open(world, ({ tools, turn }) => {
    if (turn > 0) return [says('That is all.'), done()];
    if (tools.includes('submit_round')) return [calls('r', 'submit_round', { ready: true, questions: [] })];
    if (tools.includes('submit_plan')) return [calls('p', 'submit_plan', { text: '# P' })];
    if (tools.includes('submit_story')) return [calls('s', 'submit_story', storyOf('a', '- [ ] x'))];
    return tools.includes('approve') ? [calls('v', 'approve', { summary: 'fine' })] : [says('Done.'), done()];
  });
  await orchestrator.interview().processRound({ transcript: 'T' });
  await orchestrator.planAndExecute('T');
  return { asked };
}

/** The steps by the names of the cases. Code chooses the next story, so that no model has the orchestrator's part. */
const stepOf: Readonly<Record<string, string>> = { prd: 'split' };

const nameOf = ({ tools }: AskedModel): string =>
  ({ submit_round: 'interview', submit_plan: 'plan', submit_story: 'split', approve: 'reviewer' })[
    tools.find(name => /^submit_(?:round|plan|story)$|^approve$/.test(name)) ?? ''
  ] ?? 'coder';

const decides = ({ tools }: AskedModel): boolean => tools.includes('approve') || tools.includes('deny');

const partOf = (asked: readonly AskedModel[], name: string): [AskedModel[], AskedModel[]] => [
  asked.filter(one => nameOf(one) === name),
  asked.filter(one => nameOf(one) !== name),
];
