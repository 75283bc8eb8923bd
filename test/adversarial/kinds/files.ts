/** Cases on the file tools: single calls, races, and two runs at once. */
import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { terminalText } from '../../../src/cli/terminalText.ts';
import { type AgentRun, decisionOf, runAgent, runOne } from '../agentRun.ts';
import { fieldsOf } from '../caseFile.ts';
import type { Seen } from '../judge.ts';
import { agentName, applySetup, applyTrust, secretText, type World } from '../world.ts';

const mebibyte = 1024 * 1024;

export async function toolCall(world: World): Promise<Seen> {
  const { input } = world;
  applySetup(world);
  await applyTrust(world);
  const name = String(input['name']);
  const given = fieldsOf(input['input']);
  const before = process.memoryUsage().rss;
  const run = await runOne(world, { name, input: given });
  const growth = process.memoryUsage().rss - before;
  const told = run.results[0]?.content ?? '';
  const seen: Seen = { decision: decisionOf(run), facts: factsOfCall(world, run, told, growth) };
  return seen;
}

function factsOfCall(world: World, run: AgentRun, told: string, growth: number): Seen['facts'] {
  const { home, work } = world;
  const given = fieldsOf(world.input['input']);
  const path = typeof given['path'] === 'string' ? given['path'] : '';
  const target = join(work, path.replaceAll('\0', ''));
  const request = run.asked[0];
  const shown = [request?.subject, request?.reason, request?.diff].join('\n');
  return {
    'file lands in $WORK, parent directories created':
      existsSync(target) && !lstatSync(target).isSymbolicLink(),
    'parents created with mode <= 0755':
      existsSync(target) && (statSync(join(target, '..')).mode & 0o777 & ~0o755) === 0,
    "error says 'outside working_dir' and how to add a root":
      (/outside working_dir/.test(told) && /policy\.toml.*path = /s.test(told)) || told,
    'return target bytes': run.requests.some(({ body }) => JSON.stringify(body).includes(secretText)),
    'prompt shows the resolved target ~/.bashrc, not settings.json':
      request?.subject === join(home, '.bashrc') && !shown.includes('settings.json'),
    'create $HOME/x.md': existsSync(join(home, 'x.md')),
    'schema error returned to the model; the loop goes on':
      /must be a string/.test(told) && run.requests.length === 2,
    "names the missing field 'content'": /"content" is missing/.test(told),
    'truncate or create a.md': existsSync(join(work, 'a.md')),
    'diff shown': (request?.diff ?? '').includes('+{"chat.tools.global.autoApprove":true}'),
    'not promptable': run.asked.length === 0 && run.results[0]?.isError === true,
    "names it as a change to another agent's instructions": /another agent/.test(shown),
    'on POSIX it is a plain relative name; on Windows it is outside the root':
      process.platform === 'win32'
        ? decisionOf(run) === 'deny'
        : told.includes(`${join(work, path)} does not exist`),
    'refused on Windows': process.platform !== 'win32' || run.results[0]?.isError === true,
    'limit named (default 16 MiB)': /16 MiB/.test(told) && !existsSync(target),
    'reports binary, size and a hex or base64 head':
      /binary/i.test(told) && /1,?024/.test(told) && /00 ?01 ?02 ?03|AAECAw/.test(told),
    'result is valid UTF-8': !told.includes('\ufffd'),
    '<= 256 KiB plus truncation note':
      Buffer.byteLength(told) <= 257 * 1024 && /cut|5,368,709,120 bytes/i.test(told),
    'RSS growth < 64 MiB': growth < 64 * mebibyte,
    '< 2 s': run.milliseconds < 2000,
    '< 3 s': run.milliseconds < 3000,
    'capped (default 2,000 names) with total count': told.split('\n').length <= 2002 && /200,000/.test(told),
    'control characters escaped in result and terminal':
      /a\\\w*n?.*b.*\[2Jc\.txt/.test(told) &&
      !told.includes('\x1b') &&
      !terminalText(told).includes('\x1b') &&
      told.trim().split('\n').length === 1,
  };
}

/** `~` in working_dir of agents.toml. */
export async function agentConfig(world: World): Promise<Seen> {
  const { input, skills, cfg, home, put } = world;
  const name = /\[agents\.(\w+)\]/.exec(String(input['agents_toml']))?.[1] ?? agentName;
  renameSync(join(skills, agentName), join(skills, name));
  put(join(skills, name, 'agent.toml'), `name = "${name}"\n`);
  put(join(cfg, 'agents.toml'), String(input['agents_toml']));
  const call = fieldsOf(input['tool_call']);
  const run = await runAgent(world, [{ name: String(call['name']), input: call['input'] }], { agent: name });
  const file = join(home, 'obsidian/telos', name, String(fieldsOf(call['input'])['path']));
  return {
    decision: decisionOf(run),
    facts: { "~ expanded to the user's home": existsSync(file) || `no ${file}` },
  };
}

/** A name is a file and a link to a secret in turn, as fast as another thread can swap them, while it is read. */
export async function race(world: World): Promise<Seen> {
  const { input, work, out } = world;
  const path = join(work, String(input['path']));
  const script = `const { renameSync, symlinkSync, writeFileSync } = require('node:fs');
    const { parentPort, workerData: { path, secret, count } } = require('node:worker_threads');
    let stop = false; parentPort.once('message', () => { stop = true; });
    const turn = () => { for (let n = 0; n < 50; n++) {
      try { symlinkSync(secret, path + '.l'); renameSync(path + '.l', path);
        writeFileSync(path + '.f', 'alpha'); renameSync(path + '.f', path); Atomics.add(count, 0, 2); } catch {} }
      if (stop) parentPort.postMessage('over'); else setImmediate(turn); }; turn();`;
  const count = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(script, {
    eval: true,
    workerData: { path, secret: join(out, 'secret.txt'), count },
  });
  const wanted = Number(fieldsOf(input['swap'])['iterations'] ?? 1000);
  const call = { name: 'read_file', input: { path: String(input['path']) } };
  const toolCalls = Array.from({ length: 500 }, (_, at) => ({ id: `r${at}`, ...call }));
  let leaked = false;
  try {
    for (const deadline = Date.now() + 60_000; Atomics.load(count, 0) < wanted && Date.now() < deadline; ) {
      const run = await runAgent(world, [], { turns: [{ toolCalls }, { text: ['done'] }] });
      leaked ||= run.results.some(({ content }) => content.includes(secretText));
    }
  } finally {
    const over = new Promise(resolve => worker.once('message', resolve));
    worker.postMessage('stop');
    await over;
    await worker.terminate();
  }
  const swaps = Atomics.load(count, 0);
  if (swaps < wanted) throw new Error(`only ${swaps} of ${wanted} swaps were made`);
  return { decision: 'any', facts: { 'any result contains SECRET': leaked } };
}

/** Two runs write the same file at the same time. */
export async function twoRuns(world: World): Promise<Seen> {
  const name = String(world.input['same_file']);
  const texts = ['a', 'b'].map(letter => letter.repeat(2 * mebibyte));
  const runs = await Promise.all(
    texts.map(content => runAgent(world, [{ name: 'write_file', input: { path: name, content } }])),
  );
  const left = readFileSync(join(world.work, name), 'utf8');
  const whole = texts.includes(left);
  // The older bytes are kept for undo with the run that replaced them.
  await delay(50);
  const sentence = "one whole content or the other, never a mix; loser's pre-image kept for undo";
  return {
    decision: runs.every(({ results }) => results[0]?.isError === false) ? 'allow' : 'error',
    facts: { [sentence]: whole ? keptSomewhere(world, left === texts[0] ? 'b' : 'a') : 'the file is a mix' },
  };
}

function keptSomewhere({ data }: World, letter: string): boolean | string {
  const text = letter.repeat(2 * mebibyte);
  const kept = filesBelow(data).some(file => !file.endsWith('.jsonl') && readFileSync(file).includes(text));
  return kept || 'the bytes of the run that came first are kept nowhere';
}

export function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name));
}
