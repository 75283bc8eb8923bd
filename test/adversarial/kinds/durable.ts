/** Cases on what is written down: by many at once, by processes that are killed, and on disks that are full or closed. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { logPath } from '../../../src/engine/records/logFile.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';
import { type AgentRun, runAgent } from '../agentRun.ts';
import { type CaseInput, fieldsOf } from '../caseFile.ts';
import { CannotJudge, check, inTime, type Seen } from '../checks.ts';
import { runCli, turnsFor } from '../cliRun.ts';
import type { World } from '../world.ts';
import { filesBelow } from './files.ts';
import { inOwnNetwork } from './pages.ts';

const appender = fileURLToPath(new URL('../../faults/appendProcess.ts', import.meta.url));
const stateProgram = fileURLToPath(new URL('../stateProcess.ts', import.meta.url));

/** Starts programs, and lets them all begin at the same moment. */
async function together(commands: readonly (readonly string[])[]): Promise<void> {
  const children = commands.map(words =>
    spawn(process.execPath, [...words], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  const exits = children.map(child => once(child, 'exit'));
  await Promise.all(children.map(child => once(child.stdout, 'data')));
  for (const child of children) child.stdin.end();
  const codes = (await Promise.all(exits)).map(([code]) => code as number);
  if (codes.some(code => code !== 0)) throw new Error(`the processes ended with ${codes}`);
}

/** Lines of a file that are whole records of this run's kind, and those that are not. */
async function countLines(file: string): Promise<{ whole: Set<string>; broken: number }> {
  const whole = new Set<string>();
  let broken = 0;
  for await (const line of createInterface({ input: createReadStream(file) })) {
    if (line === '') continue;
    try {
      whole.add(String(JSON.parse(line).run_id));
    } catch {
      broken++;
    }
  }
  return { whole, broken };
}

export async function appendRace(world: World): Promise<Seen> {
  const { processes, records, record_bytes: bytes } = world.input;
  const file = logPath(world.data);
  const one = (_: unknown, at: number): string[] => [
    appender,
    `p${at}`,
    file,
    String(records),
    String(bytes),
  ];
  await together(Array.from({ length: Number(processes) }, one));
  const { whole, broken } = await countLines(file);
  const wanted = Number(processes) * Number(records);
  return {
    decision: 'any',
    checks: [
      check('records', 'each record is there', whole.size === wanted || `${whole.size} of ${wanted}`),
      check('records', 'no line is broken', broken === 0 || `${broken} broken`),
    ],
  };
}

export async function killedAppend(world: World): Promise<Seen> {
  const { kills, record_bytes: bytes } = world.input;
  const problems: string[] = [];
  let torn = 0;
  let lost = 0;
  let written = 0;
  for (let kill = 0; kill < Number(kills); kill++) {
    const file = join(world.data, `${kill}.jsonl`);
    const child = spawn(process.execPath, [appender, 'p0', file, '40', String(bytes)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const exit = once(child, 'exit');
    await once(child.stdout, 'data');
    child.stdin.end();
    await delay(Math.random() * inTime(60));
    child.kill('SIGKILL');
    await exit;
    await together([[appender, 'later', file, '2', '1000']]);
    const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
    const good = lines.map(line => {
      try {
        return String(JSON.parse(line).run_id);
      } catch {
        return undefined;
      }
    });
    const broken = good.flatMap((id, at) => (id === undefined ? [at] : []));
    torn += broken.length;
    written += good.length;
    if (good.slice(-2).join() !== 'later-0,later-1') lost++;
    if (broken.length > 1 || broken.some(at => at !== good.length - 3))
      problems.push(`${broken.length} broken lines at ${broken} of ${good.length}`);
    rmSync(file);
  }
  if (written < Number(kills) * 3) throw new CannotJudge('the processes were killed before they wrote');
  return {
    decision: 'any',
    checks: [
      check(
        'records',
        'a kill tears one line at most, the last one',
        problems.length === 0 || `${problems.join('; ')}, ${torn} torn`,
      ),
      check('records', 'no later record is lost', lost === 0 || `lost after ${lost} kills`),
    ],
  };
}

/** On a small disk of its own. */
export async function enospc(world: World, theCase: CaseInput): Promise<Seen> {
  if (process.env['TELOS_ADVERSARIAL_NETWORK'] === undefined) return inOwnNetwork(world, theCase);
  const size = /size=(\w+)/.exec(String(world.input['fs']))?.[1] ?? '64k';
  const write = String(world.input['write']);
  const isLog = /JSONL|log/i.test(write);
  if (!isLog && !/write_file/.test(write)) throw new CannotJudge(`nothing here fills a disk with: ${write}`);
  const place = isLog ? join(world.data, 'logs') : world.work;
  mkdirSync(place, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'none', place]);
  try {
    return await (isLog ? fullLog(world, place) : fullWrite(world));
  } finally {
    execFileSync('umount', ['-l', place]);
  }
}

async function fullLog(world: World, place: string): Promise<Seen> {
  const ballast = join(place, 'ballast');
  writeFileSync(ballast, Buffer.alloc(48 * 1024));
  const run = (): Promise<AgentRun> => runAgent(world, [], { lastWords: 'x'.repeat(10_000) });
  const said = (one: AgentRun): string[] =>
    one.events.flatMap(event => (event.type === 'notice' ? [event.message] : []));
  const outcome = ({ events }: AgentRun): string => {
    const end = events.at(-1);
    return end?.type === 'run_end' ? end.outcome : 'none';
  };
  let full: AgentRun | undefined;
  for (let count = 0; count < 40 && !full; count++) {
    const one = await run();
    if (said(one).some(message => message.includes(place))) full = one;
  }
  if (!full) throw new Error('the disk never became full');
  const before = linesOf(logPath(world.data));
  rmSync(ballast);
  await run();
  const after = linesOf(logPath(world.data));
  const listed = await runCli(world, ['cost', '--json'], []);
  const known = countedRuns(listed.stdout);
  const whole = after.filter(isJson);
  const added = after.slice(before.length).filter(isJson).length;
  const ends = whole.filter(line => line.includes('"skill_end"')).length;
  return {
    decision: 'any',
    checks: [
      check(
        'end',
        'the run goes on and says that its log does not',
        (outcome(full) === 'completed' && said(full).some(message => message.includes(place))) ||
          said(full).join(),
      ),
      check('records', 'new records are whole once there is space', added === 2 || `${added} of 2 records`),
      check(
        'records',
        'readers skip a torn line',
        (listed.exitCode === 0 && known >= ends && ends > 0 && after.length - whole.length <= 2) ||
          `${known} counted, ${ends} ends, ${after.length - whole.length} torn: ${listed.stderr}`,
      ),
    ],
  };
}

/** Returns how many runs `telos cost --json` has counted. */
const countedRuns = (stdout: string): number =>
  (JSON.parse(stdout) as { total: { runs: number } }).total.runs;

const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n').filter(Boolean);

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

async function fullWrite(world: World): Promise<Seen> {
  const file = join(world.work, 'a.md');
  const old = 'old text\n'.repeat(1000);
  writeFileSync(file, old);
  const call = { name: 'write_file', input: { path: 'a.md', content: 'new '.repeat(30_000) } };
  const run = await runAgent(world, [call]);
  const left = readdirSync(world.work);
  const whole = readFileSync(file, 'utf8') === old;
  return {
    decision: run.results[0]?.isError === true ? 'error' : 'allow',
    checks: [
      check('files', 'the old content is whole', whole),
      check('files', 'no temporary file is left', left.join() === 'a.md' || left.join()),
      check('model', 'the model is told why', (run.results[0]?.content.length ?? 0) > 10),
    ],
  };
}

/** The user may read the folder of the logs, and not write to it. */
export async function closedLogs(world: World): Promise<Seen> {
  if (!/read-?only|not writable|0?555/.test(String(world.input['state'])))
    throw new CannotJudge(`nothing here brings the logs into the state ${world.input['state']}`);
  const logs = join(world.data, 'logs');
  mkdirSync(logs, { recursive: true });
  const user = 65_534;
  const isRoot = process.getuid?.() === 0;
  if (isRoot) {
    chmodSync(dirname(world.home), 0o755);
    execFileSync('chown', ['-R', `${user}:${user}`, world.home, world.work, world.skills]);
    chownSync(logs, 0, 0);
  }
  chmodSync(logs, 0o555);
  const calls = turnsFor([{ name: 'read_file', input: { path: 'a.txt' } }]);
  const run = await runCli(world, ['one'], calls, isRoot ? { uid: user } : {});
  chmodSync(logs, 0o755);
  const warnings = run.stderr
    .split('\n')
    .filter(line => /cannot be written|EACCES|permission denied/i.test(line));
  const written = readdirSync(logs).length;
  if (written > 0) throw new CannotJudge('the folder was not closed');
  return {
    decision: 'any',
    checks: [
      check(
        'end',
        'the skill runs all the same',
        (run.exitCode === 0 && run.stdout.includes('done')) || `${run.exitCode}: ${run.stderr}`,
      ),
      check('shown', 'one warning is shown', warnings.length === 1 || run.stderr),
    ],
  };
}

export async function reader(world: World): Promise<Seen> {
  const file = logPath(world.data);
  const ids = ['one', 'two', 'three', 'four'];
  const run = (id: string): string => {
    const about = { ts: new Date().toISOString(), run_id: id, agent: 'kairos', skill: 'one' };
    const start = { ...about, event: 'skill_start', provider: 'p', model: 'm', has_mcp: false };
    const counts = { duration_s: 1, rounds: 1, tool_calls: 0, input_tokens: 1, output_tokens: 1, cost: 0 };
    const cache = { cache_read_tokens: 0, cache_write_tokens: 0 };
    const end = {
      ...about,
      event: 'skill_end',
      ...counts,
      ...cache,
      error: null,
      outcome: 'completed',
      messages: [],
    };
    return `${JSON.stringify(start)}\n${JSON.stringify(end)}\n`;
  };
  world.put(file, run('one'));
  appendFileSync(file, `${run('torn').slice(0, 80)}\n${run('two')}`);
  appendFileSync(
    file,
    `{"ts":"2026-01-01T00:00:00Z","event":"skill_end","messages":${'['.repeat(60_000_000)}\n`,
  );
  appendFileSync(file, run('three') + run('four'));
  appendFileSync(file, Buffer.alloc(100_000));
  const start = performance.now();
  const { stdout, stderr, exitCode } = await runCli(world, ['cost', '--json'], []);
  const milliseconds = performance.now() - start;
  const found = countedRuns(stdout);
  return {
    decision: 'any',
    checks: [
      check(
        'records',
        'all whole records are counted',
        found === ids.length || `${found}: ${stdout.slice(0, 300)}`,
      ),
      check('time', 'they are counted soon', milliseconds < inTime(4000) || `${milliseconds} ms`),
      check('end', 'the count ends well', exitCode === 0 || `${exitCode}: ${stderr.slice(0, 300)}`),
    ],
  };
}

/** Ten processes that each accept cards and keep rules of their own, on the same folders. */
export async function stateRace(world: World): Promise<Seen> {
  const processes = Number(world.input['processes']);
  const each = Math.ceil(Number(world.input['writes']) / processes);
  const { home, skills, work, cfg, put } = world;
  const agents: string[] = [];
  for (let at = 0; at < processes; at++)
    for (let number = 0; number < each; number += 2) agents.push(`p${at}-${number}`);
  for (const agent of agents) {
    put(join(skills, agent, 'agent.toml'), `name = "${agent}"\nworking_dir = "."\n`);
    put(join(skills, agent, 'skills/one/SKILL.md'), '---\ndescription: One.\n---\nDo it.\n');
  }
  const policy = join(cfg, 'policy.toml');
  let broken = 0;
  let looks = 0;
  const looking = setInterval(() => {
    const text = world.read(policy);
    if (text === undefined) return;
    looks++;
    if (!isWholePolicy(text)) broken++;
  }, 5);
  const one = (_: unknown, at: number): string[] => [
    stateProgram,
    home,
    skills,
    work,
    `p${at}`,
    String(each),
  ];
  try {
    await together(Array.from({ length: processes }, one));
  } finally {
    clearInterval(looking);
  }
  const text = world.read(policy) ?? '';
  const kept = agents.filter(agent => text.includes(`"true ${agent}"`)).length;
  const reviews = filesBelow(join(home))
    .filter(file => /review/.test(file))
    .map(file => readFileSync(file, 'utf8'));
  const reviewed = agents.filter(agent =>
    reviews.some(review => review.includes(`${agent}"`) || review.includes(`${agent}/`)),
  );
  const wanted = agents.length;
  return {
    decision: 'any',
    checks: [
      check(
        'records',
        'the file is whole at any moment',
        (looks > 0 && broken === 0 && isWholePolicy(text)) || `broken at ${broken} of ${looks} looks`,
      ),
      check('records', 'no rule is lost', kept === wanted || `${kept} of ${wanted} rules`),
      check(
        'records',
        'no review is lost',
        reviewed.length === wanted || `${reviewed.length} of ${wanted} reviews`,
      ),
    ],
  };
}

/** Comments, empty lines, headers, and lines with one whole value; every header has its command behind it. */
function isWholePolicy(text: string): boolean {
  const line = /^(|#.*|\[\[(allow|deny|ask)\]\]|\w+ = ("(?:[^"\\]|\\.)*"|\[.*\]))$/;
  const headers = text.match(/^\[\[allow\]\]$/gm)?.length ?? 0;
  const commands = text.match(/^command = /gm)?.length ?? 0;
  return text.endsWith('\n') && text.split('\n').every(one => line.test(one)) && headers === commands;
}

/** Two engines on the same folders, as two windows are, each with a person of its own. */
export async function twoWindows(world: World): Promise<Seen> {
  const windows = ['a', 'b'].map(async name => {
    const asked: string[] = [];
    const command = `echo ${name} > '${join(world.out, name)}'`;
    const run = await runAgent(world, [{ name: 'run_command', input: { command } }], {
      person: async (request: ApprovalRequest) => {
        asked.push(request.subject);
        await delay(100);
        return { allow: name === 'a', ...(name === 'a' ? { scope: 'once' } : { reason: 'No.' }) } as never;
      },
    });
    const start = run.events[0];
    return { asked, command, id: start?.type === 'run_start' ? start.runId : '' };
  });
  const [one, other] = await Promise.all(windows);
  const lines = linesOf(logPath(world.data));
  const own = (id: string): string =>
    lines
      .map(line => fieldsOf(JSON.parse(line)))
      .filter(record => record['run_id'] === id)
      .map(record => record['event'])
      .join();
  const logs = [one!, other!].every(({ id }) => own(id) === 'skill_start,tool_call,skill_end');
  const toItself = [one!, other!].every(({ asked, command }) => asked.join() === command);
  const did = existsSync(join(world.out, 'a')) && !existsSync(join(world.out, 'b'));
  return {
    decision: 'any',
    checks: [
      check('records', 'each run has a number of its own', one!.id !== other!.id),
      check('records', 'the records of each run are whole', logs),
      check('shown', 'a question goes to the window that asks', toItself),
      check('files', 'each answer counts for its own window', did),
    ],
  };
}
