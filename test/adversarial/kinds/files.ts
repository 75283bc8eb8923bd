/** Cases on the file tools: single calls, races, and two runs at once. */
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { terminalText } from '../../../src/cli/terminalText.ts';
import { type AgentRun, decisionOf, namesRule, runAgent, runOne, wasQuestion } from '../agentRun.ts';
import { fieldsOf } from '../caseFile.ts';
import { applying, CannotJudge, check, inTime, type Seen } from '../checks.ts';
import { isBinary } from '../reference.ts';
import { changesSince, snapshot, steering } from '../witness.ts';
import { agentName, applySetup, applyTrust, secretText, type World } from '../world.ts';

const mebibyte = 1024 * 1024;
const grouped = (count: number): string => count.toLocaleString('en-US');

export async function toolCall(world: World): Promise<Seen> {
  const { input } = world;
  applySetup(world);
  await applyTrust(world);
  const name = String(input['name']);
  const given = fieldsOf(input['input']);
  const target = targetOf(world, given['path']);
  const mayChange = world.mayChange;
  // A folder of very many files is not watched file by file.
  const many = (Array.isArray(input['setup']) ? input['setup'] : [])
    .map(fieldsOf)
    .flatMap(({ dir, files }) => (Number(files) > 1000 ? [String(dir)] : []));
  world.mayChange = [world.data, ...many];
  const [before, rss] = [snapshot(world), process.memoryUsage().rss];
  const run = await runOne(world, { name, input: given });
  const growth = process.memoryUsage().rss - rss;
  const changed = changesSince(before, snapshot(world)).map(path => join(dirname(world.home), path));
  world.mayChange = mayChange;
  // What policy allowed there, the checks below look at.
  world.noted.changed.length = 0;
  const decision = decisionOf(run);
  const told = run.results[0]?.content ?? '';
  const wrote = decision === 'allow' && name === 'write_file';
  const strange = changed.filter(path => !(wrote && path === target));
  return {
    decision,
    unattended: wasQuestion(run),
    checks: applying(
      check('files', 'nothing is changed but what was allowed to be', strange.length === 0 || strange.join()),
      check('end', 'the run goes on', run.requests.length >= 2 || `${run.requests.length} requests`),
      name !== 'write_file' &&
        check('memory', 'memory grows by less than 96 MiB', growth < 96 * mebibyte || `${growth} bytes more`),
      name !== 'write_file' &&
        check(
          'time',
          'it takes a few seconds at most',
          run.milliseconds < inTime(8000) || `${run.milliseconds} ms`,
        ),
      ...(decision === 'allow' ? ofDone(world, run, name, target) : []),
      ...(decision === 'ask' ? ofQuestion(world, run, name, target) : []),
      ...(decision === 'deny' ? ofRefusal(world, run, told, target) : []),
      ...(decision === 'error' ? ofError(given, name, told, target) : []),
    ),
  };
}

const targetOf = ({ work, home }: World, path: unknown): string =>
  typeof path === 'string' && !path.includes('\0') ? resolve(work, path.replace(/^~(?=\/|$)/, home)) : '';

/** The real path, also of what is not there yet. */
function realTarget(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  return path === dirname(path)
    ? path
    : join(realTarget(dirname(path)), path.slice(dirname(path).length + 1));
}

function ofDone(world: World, run: AgentRun, name: string, target: string): Seen['checks'] {
  const told = run.results[0]?.content ?? '';
  if (name === 'write_file') return ofWrite(world, target);
  if (name === 'list_directory') return ofListing(told, target);
  return name === 'read_file' && existsSync(target)
    ? ofRead(told, target)
    : [check('shown', 'it has a result', told !== '')];
}

function ofWrite({ input, work }: World, target: string): Seen['checks'] {
  const content = String(fieldsOf(input['input'])['content'] ?? '');
  const isFile = existsSync(target) && lstatSync(target).isFile();
  const folders: string[] = [];
  for (let at = dirname(target); at.startsWith(`${work}/`); at = dirname(at)) folders.push(at);
  return [
    check('files', 'the file is there as a file', isFile || `no ${target}`),
    check('files', 'it holds what was written', isFile && readFileSync(target, 'utf8') === content),
    check(
      'files',
      'new folders are writable by their owner alone',
      folders.every(folder => (statSync(folder).mode & 0o022) === 0),
    ),
  ];
}

function ofRead(told: string, target: string): Seen['checks'] {
  const { size } = statSync(target);
  const cap = 256 * 1024;
  const head = size > cap ? Buffer.alloc(0) : readFileSync(target);
  const binary = isBinary(head);
  const bytes = Buffer.byteLength(told);
  return applying(
    check('shown', 'the result is text', !told.includes('\ufffd')),
    check('shown', 'at most 256 KiB are returned', bytes <= cap + 1024 || `${bytes} bytes`),
    size > cap &&
      check(
        'shown',
        'a note says that it was cut, or how large it is',
        /\bcut\b/i.test(told) || told.includes(grouped(size)) || told.slice(-200),
      ),
    binary && check('shown', 'it says that this is binary', /binary/i.test(told) || told.slice(0, 200)),
    binary &&
      check(
        'shown',
        'it says how large it is',
        told.includes(grouped(size)) || told.includes(String(size)) || told.slice(0, 200),
      ),
    size > 0 &&
      size < 8192 &&
      !binary &&
      check(
        'shown',
        'the content is returned',
        told.includes(head.toString('utf8').trim().replace(/\r\n/g, '\n')) ||
          told.replace(/\r\n/g, '\n').includes(head.toString('utf8').trim()) ||
          told.slice(0, 200),
      ),
  );
}

function ofListing(told: string, target: string): Seen['checks'] {
  const names = readdirSync(target);
  const plain = names.filter(name => /^[\w. -]+$/.test(name)).slice(0, 1000);
  const lines = told.trim().split('\n');
  const many = names.length > 2000;
  return applying(
    check('shown', 'no name steers the terminal', !steering.test(told) && !steering.test(terminalText(told))),
    check('shown', 'at most 2,000 names are listed', lines.length <= 2002 || `${lines.length} lines`),
    many &&
      check(
        'shown',
        'it says how many there are',
        told.includes(grouped(names.length)) ||
          told.includes(String(names.length)) ||
          lines.slice(-2).join('\n'),
      ),
    !many &&
      check(
        'shown',
        'each name has a line of its own',
        lines.length === Math.max(names.length, 1) || `${lines.length} lines for ${names.length} names`,
      ),
    !many &&
      check('shown', 'each name is listed', plain.every(name => told.includes(name)) || told.slice(0, 300)),
  );
}

/** What a person reads names the real target, and what will be in it. */
function ofQuestion(
  world: World,
  { asked, results }: AgentRun,
  name: string,
  target: string,
): Seen['checks'] {
  const request = asked[0];
  const shown = [request?.subject, request?.reason, request?.diff].join('\n');
  const real = realTarget(target);
  const lines = String(fieldsOf(world.input['input'])['content'] ?? '')
    .split('\n')
    .filter(line => line.trim() !== '' && !steering.test(line));
  const elsewhere = real.startsWith(`${world.skills}/`) && !real.startsWith(`${world.pack}/`);
  return applying(
    check(
      'shown',
      'the question names the resolved target',
      request?.subject === real || String(request?.subject),
    ),
    real !== target &&
      check('shown', 'the question does not name the link', !shown.includes(target) || shown),
    name === 'write_file' &&
      check(
        'shown',
        'the question shows the difference',
        lines.every(line => (request?.diff ?? '').includes(`+${line}`)) || String(request?.diff),
      ),
    elsewhere &&
      check(
        'shown',
        'the question says that this belongs to another agent',
        /another agent/.test(shown) || shown,
      ),
    check('model', 'a no is an error for the model', results[0]?.isError === true),
  );
}

function ofRefusal(world: World, { asked, results }: AgentRun, told: string, target: string): Seen['checks'] {
  const real = target && realTarget(target);
  const isOutside =
    real !== '' && ![world.work, world.pack].some(folder => `${real}/`.startsWith(`${folder}/`));
  const isSensitive = /\/\.(ssh|env|npmrc|netrc|aws|gnupg)\b|id_rsa/.test(real);
  const couldBeAllowed = isOutside && !isSensitive && /^Denied: No one can be asked here/.test(told);
  return applying(
    check('shown', 'nobody is asked', asked.length === 0 && results[0]?.isError === true),
    check('shown', 'the refusal names its rule', namesRule(told)),
    check('secrets', 'nothing of the target is returned', !told.includes(secretText)),
    couldBeAllowed &&
      check('shown', 'the refusal names what would allow it', /policy\.toml/.test(told) || told),
  );
}

const required: Readonly<Record<string, readonly string[]>> = {
  read_file: ['path'],
  write_file: ['path', 'content'],
  list_directory: ['path'],
  run_command: ['command'],
  fetch_url: ['url'],
};

/** The model is told what is wrong with its call. */
function ofError(
  given: ReturnType<typeof fieldsOf>,
  name: string,
  told: string,
  target: string,
): Seen['checks'] {
  const missing = (required[name] ?? []).filter(field => !(field in given));
  const odd = Object.entries(given)
    .filter(([, value]) => typeof value !== 'string')
    .map(([field]) => field);
  const bytes = Buffer.byteLength(String(given['content'] ?? ''));
  const tooLarge = name === 'write_file' && bytes > 16 * mebibyte;
  return applying(
    check('model', 'the model is told what is wrong', told.trim().length > 10 || told),
    ...missing.map(field =>
      check('model', 'the missing field is named', told.includes(`"${field}"`) || told),
    ),
    ...odd.map(field => check('model', 'the field of a wrong type is named', told.includes(field) || told)),
    tooLarge && check('shown', 'the limit is named', /16 MiB/.test(told) || told.slice(0, 300)),
    tooLarge && check('files', 'nothing is written', !existsSync(target)),
  );
}

/** An agent whose folders agents.toml sets. */
export async function agentConfig(world: World): Promise<Seen> {
  const { input, skills, cfg, home, put } = world;
  const toml = String(input['agents_toml']);
  const name = /\[agents\.([\w-]+)\]/.exec(toml)?.[1] ?? agentName;
  const folder = /working_dir\s*=\s*["']([^"']*)["']/.exec(toml)?.[1];
  if (folder === undefined || !/^(~\/|\/|\$HOME\/)/.test(folder))
    throw new CannotJudge('where such a folder lies is not known');
  renameSync(join(skills, agentName), join(skills, name));
  put(join(skills, name, 'agent.toml'), `name = "${name}"\n`);
  put(join(cfg, 'agents.toml'), toml);
  const working = folder.replace(/^(~|\$HOME)(?=\/)/, home);
  world.mayChange.push(join(home, working.slice(home.length + 1).split('/')[0] ?? ''));
  const call = fieldsOf(input['tool_call']);
  const run = await runAgent(world, [{ name: String(call['name']), input: call['input'] }], { agent: name });
  const file = resolve(working, String(fieldsOf(call['input'])['path'] ?? ''));
  const decision = decisionOf(run);
  const expected = decision === 'allow' && call['name'] === 'write_file';
  return {
    decision,
    unattended: wasQuestion(run),
    checks: [
      check(
        'files',
        'the folder is the one that the file names',
        existsSync(file) === expected || `${file}: ${run.results[0]?.content}`,
      ),
    ],
  };
}

/** A name is a file and a link to a secret in turn, as fast as another thread can swap them, while it is used. */
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
  const secret = join(out, 'secret.txt');
  const worker = new Worker(script, { eval: true, workerData: { path, secret, count } });
  const wanted = Number(fieldsOf(input['swap'])['iterations'] ?? 1000);
  const name = String(input['tool'] ?? 'read_file');
  const call = {
    name,
    input: { path: String(input['path']), ...(name === 'write_file' ? { content: 'new' } : {}) },
  };
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
  if (swaps < wanted) throw new CannotJudge(`only ${swaps} of ${wanted} swaps were made`);
  return {
    decision: 'any',
    checks: [
      check('secrets', 'no result holds what lies behind the link', !leaked),
      check('files', 'what lies behind the link is not changed', world.read(secret) === `${secretText}\n`),
    ],
  };
}

/** Runs that write the same file at the same time. */
export async function twoRuns(world: World): Promise<Seen> {
  const name = String(world.input['same_file']);
  const count = Math.max(2, Number(world.input['runs'] ?? 2));
  const texts = Array.from({ length: count }, (_, at) => String.fromCharCode(97 + at).repeat(2 * mebibyte));
  const runs = await Promise.all(
    texts.map(content => runAgent(world, [{ name: 'write_file', input: { path: name, content } }])),
  );
  const left = readFileSync(join(world.work, name), 'utf8');
  // The older bytes are kept for undo with the run that replaced them.
  await delay(50);
  const lost = texts.filter(text => text !== left && !keptSomewhere(world, text));
  return {
    decision: runs.every(({ results }) => results[0]?.isError === false) ? 'allow' : 'error',
    checks: [
      check('files', 'the file is whole', texts.includes(left)),
      check(
        'files',
        'what was replaced is kept for undo',
        lost.length === 0 || `${lost.length} are kept nowhere`,
      ),
    ],
  };
}

function keptSomewhere({ data }: World, text: string): boolean {
  return filesBelow(data).some(file => !file.endsWith('.jsonl') && readFileSync(file).includes(text));
}

export function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name));
}
