/** Runs the attempts of one area on a machine of its own, with or without the box; prints what each came to as one line of JSON. */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { AnthropicTurn } from '../../fakes/anthropicServer.ts';
import { runCli } from '../cliRun.ts';
import { stateOf } from '../witness.ts';
import { applyTrust, openWorld, secretText } from '../world.ts';
import { type Attempt, type Part, parts, type Script, scriptOf } from './attempt.ts';
import { type Canaries, openCanaries, startVictim, type Victim } from './canaries.ts';
import { differences, filesAround, type Look, leaks, lookAround, processes, strangers } from './look.ts';
import { otherConversation } from './otherConversation.ts';

/** What one attempt came to. */
export interface AttemptSeen {
  id: string;
  /** The box, or a shell without one, has started it. */
  ran: boolean;
  /** Everything that happened outside; empty if nothing escaped. */
  escapes: string[];
  told: string;
}

interface Order {
  attempts: Attempt[];
  /** Without Telos and its box: shows that what is looked at would be seen. */
  bare: boolean;
}

const { attempts, bare } = JSON.parse(process.env['BOX_ORDER'] ?? '{}') as Order;
const world = await openWorld({ area: 'box', input: { kind: 'box', trust: 'reviewed' } });
const { work, home, out, data, put } = world;
const template = '/srv/world/template';
const bareTemporary = join(data, 'tmp');
const secretsInWork = ['.env', 'keys/id_rsa', 'sub/.env.local', 'odd\nname/.env'];

/** Makes the working folder and what lies around it as it is before each attempt. */
function reset(): void {
  // By the system's programs: Node cannot delete names that are no text, nor folders deeper than a path is long.
  spawnSync('sh', ['-c', cleared, work, out, template], { cwd: '/' });
  rmSync(bareTemporary, { recursive: true, force: true });
  mkdirSync(bareTemporary, { recursive: true });
  rmSync(join(data, 'python-cache'), { recursive: true, force: true });
  const secrets = [
    '.ssh/id_rsa',
    '.netrc',
    '.npmrc',
    '.git-credentials',
    '.aws/credentials',
    '.docker/config.json',
    '.kube/config',
    '.config/gh/hosts.yml',
    '.config/google-chrome/Default/Cookies',
    '.mozilla/firefox/x.default/logins.json',
    '.local/share/keyrings/login.keyring',
    '.bash_history',
    'Documents/private.md',
  ];
  for (const path of secrets) put(join(home, path), `${secretText}\n`);
  put(join(home, '.bashrc'), '# bashrc\n');
  put(join(home, '.profile'), '# profile\n');
  put(join(home, '.gitconfig'), '[user]\n\tname = Ada\n\temail = ada@example.org\n');
  put(join(home, '.local/bin/greet'), '#!/bin/sh\necho hello\n');
  put(join(out, 'secret.txt'), `${secretText}\n`);
  put(join(out, 'plain.txt'), 'plain\n');
  put(join(data, 'canary.txt'), `${secretText}\n`);
}

/** Empties the working folder and the folder outside, and fills the first from the template. */
const cleared = `
while umount "$0/m" 2>/dev/null; do :; done
for folder in "$0" "$1"; do
  test -d "$folder" && ! test -L "$folder" || { rm -f "$folder"; mkdir "$folder"; }
  find "$folder" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
done
cp -a "$2/." "$0"`;

/** Makes what lies in the working folder before each attempt. */
function makeTemplate(): void {
  put(join(template, 'notes/today.md'), 'today\n');
  put(join(template, 'a.txt'), 'alpha\n');
  for (const path of secretsInWork) put(join(template, path), `${secretText}\n`);
  put(join(template, '.vscode/settings.json'), '{}\n');
  put(join(template, 'AGENTS.md'), 'Be kind.\n');
  put(join(template, '.gitignore'), '.env*\nkeys\n');
  const git = (...words: string[]): unknown =>
    spawnSync('git', ['-C', template, ...words], { env: personEnv });
  git('init', '-q', '-b', 'main');
  git('add', 'a.txt', 'notes', '.gitignore');
  git('-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', 'commit', '-qm', 'first');
}

const personEnv = { HOME: home, PATH: `${home}/.local/bin:${process.env['PATH']}`, LANG: 'C.UTF-8' };
const places = {
  out,
  home,
  work,
  data,
  cfg: world.cfg,
  pack: world.pack,
  root: join(home, '..'),
  program: new URL('../../../dist/cli.js', import.meta.url).pathname,
};

makeTemplate();
reset();
const canaries: Canaries = await openCanaries(home);
const usual = { ...world.env, ...personEnv };
/** The files around the working folder as they are at first. */
const originals = new Map(filesAround(world).map(path => [path, readFileSync(path)]));
let victim: Victim = await startVictim(usual);
const victimPlaces = () => ({
  pid: String(victim.pid),
  tty: victim.tty,
  address: String(victim.address),
  length: String(victim.length),
});
const keptOf = (attempt: Attempt): Look =>
  new Map((attempt.keeps ?? []).map(path => [`file ${path} in the working folder`, stateIn(path)]));

function stateIn(path: string): string {
  try {
    return lstatSync(join(work, path)).isDirectory() ? 'folder' : stateOf(join(work, path));
  } catch {
    return 'nothing';
  }
}

interface Before {
  victim: number;
  secrets: Set<bigint>;
  look: Look;
  kept: Look;
  processes: Set<number>;
}

async function prepare(
  attempt: Attempt,
): Promise<{ before: Before; scripts: Partial<Record<Part, Script>> }> {
  reset();
  const all = { ...places, ...victimPlaces() };
  const scripts = Object.fromEntries(
    parts.flatMap(part => {
      const script = scriptOf(attempt, part, all);
      return script ? [[part, script]] : [];
    }),
  );
  for (const { path, text } of Object.values(scripts)) put(join(work, path), text);
  const before = {
    victim: victim.pid,
    secrets: new Set(secretsInWork.map(path => lstatSync(join(work, path), { bigint: true }).ino)),
    look: lookAround(world, victim),
    kept: keptOf(attempt),
    processes: new Set(processes().keys()),
  };
  await canaries.listenIn(work);
  canaries.knocks();
  await victim.seen();
  return { before, scripts };
}

async function judge(attempt: Attempt, before: Before, told: string): Promise<AttemptSeen> {
  const escapes: string[] = [];
  await delay(30);
  // A mount that has come about there would be looked through too.
  spawnSync('sh', ['-c', `while umount -l '${work}/m'; do :; done`], { stdio: 'ignore' });
  escapes.push(...leaks(told, work, before.secrets), ...strangers(work));
  escapes.push(...(await leftProcesses(before.processes)).map(what => `left running: ${what}`));
  escapes.push(...differences(before.kept, keptOf(attempt)));
  if (stateIn('said') !== 'nothing' && attempt.said)
    escapes.push(`${attempt.said}: ${readFileSync(join(work, 'said'), 'utf8').trim()}`);
  if (attempt.person) await asPerson(filled(attempt.person));
  escapes.push(...canaries.knocks().map(what => `knocked: ${what}`));
  const seen = await victim.seen();
  if (seen === undefined) {
    escapes.push('the victim is gone');
    await newVictim();
  } else {
    const { signals, shown, typed, memory, size } = JSON.parse(seen);
    if (signals.length > 0) escapes.push(`the victim got signals ${signals}`);
    if (shown !== '') escapes.push(`on the terminal: ${shown}`);
    if (typed > 0) escapes.push(`typed into the terminal: ${typed} characters`);
    if (!memory) {
      escapes.push('the memory of the victim was changed');
      await newVictim();
    }
    if (!/^0+$/.test(size)) escapes.push('the size of the terminal was changed');
  }
  const isSame = victim.pid === before.victim;
  const changed = differences(before.look, lookAround(world, victim)).filter(
    what => isSame || !what.includes('victim'),
  );
  escapes.push(...changed);
  if (changed.length > 0) undo(changed);
  return { id: attempt.id, ran: /^begun$/m.test(told), escapes, told: told.slice(0, 1500) };
}

async function newVictim(): Promise<void> {
  victim.close();
  victim = await startVictim(usual);
}

/** Puts everything back, so that an attempt that has escaped does not disturb the next. */
function undo(changes: readonly string[]): void {
  const script = [
    `umount '${out}/mounted' 2>/dev/null`,
    'hostname box-world; echo 0 > /proc/sys/net/ipv4/ip_forward',
    'for c in /sys/fs/cgroup/canary-* /sys/fs/cgroup/*/canary-*; do rmdir "$c"; done',
    'ip link del canary0; ipcrm -a',
    `${forgetKeys}`,
  ].join('\n');
  spawnSync('sh', ['-c', script], { stdio: 'ignore' });
  for (const change of changes) {
    const path = / (?:file|folder) (\/.*)$/s.exec(change)?.[1];
    if (path === undefined) continue;
    if (change.startsWith('new: ')) rmSync(path, { recursive: true, force: true });
    else if (originals.has(path)) put(path, originals.get(path)!);
  }
}

/** Invalidates the keys that attempts have planted. */
const forgetKeys = `/usr/bin/python3 -c "
import ctypes, platform
number = {'x86_64': 250, 'aarch64': 219}[platform.machine()]
for line in open('/proc/keys'):
    if 'planted' in line: ctypes.CDLL(None).syscall(number, 21, int(line.split()[0], 16))
"`;

/** Processes that were not there before, a while after the command has ended; they are ended then. */
async function leftProcesses(before: ReadonlySet<number>): Promise<string[]> {
  const left = (): [number, string][] =>
    [...processes()].filter(([pid, words]) => !before.has(pid) && !/telos|cli\.js|guard/.test(words));
  for (let rounds = 0; rounds < 20 && left().length > 0; rounds++) await delay(50);
  const found = left();
  for (const [pid] of found) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {} // it has just ended
  }
  return found.map(([, words]) => words.slice(0, 200));
}

const filled = (text: string): string => text.replaceAll('{{data}}', data).replaceAll('{{out}}', out);

const asPerson = (line: string): Promise<void> =>
  new Promise(resolve => {
    const child = execFile('sh', ['-c', line], { cwd: work, env: personEnv, timeout: 10_000 }, () =>
      resolve(),
    );
    child.stdin?.end();
  });

/** Starts a script as a shell of the person would, in a session of its own. `text` is what it has said so far. */
function startBare({ command }: Script) {
  const child = spawn('sh', ['-c', command], {
    cwd: work,
    env: { ...personEnv, TMPDIR: bareTemporary, PYTHONPYCACHEPREFIX: join(data, 'python-cache') },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const started = { child, text: '', close: () => [child.stdout, child.stderr].map(each => each.destroy()) };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', piece => {
      started.text += piece;
    });
  return started;
}

async function runBare(script: Script): Promise<string> {
  const started = startBare(script);
  await Promise.race([once(started.child, 'exit'), delay(15_000)]);
  await delay(20);
  started.close();
  return started.text;
}

/** Starts a script that goes on. Returns what ends it. */
async function leaveBare(script: Script): Promise<() => void> {
  const started = startBare(script);
  for (let rounds = 0; rounds < 100 && !started.text.includes('ready'); rounds++) await delay(50);
  return () => {
    started.close();
    process.kill(-started.child.pid!, 'SIGKILL');
  };
}

async function allBare(): Promise<AttemptSeen[]> {
  const seen: AttemptSeen[] = [];
  for (const attempt of attempts) {
    const { before, scripts } = await prepare(attempt);
    const stops: (() => void)[] = [];
    for (const script of [scripts.beside, scripts.behind]) if (script) stops.push(await leaveBare(script));
    let told = '';
    for (const script of [scripts.run, scripts.then]) if (script) told += `${await runBare(script)}\n`;
    if (attempt.meanwhile) await asPerson(filled(attempt.meanwhile));
    for (const stop of stops) stop();
    seen.push(await judge(attempt, before, told));
  }
  return seen;
}

/** One call of the model. */
interface Step {
  attempt: Attempt;
  does: 'behind' | 'run' | 'then' | 'stop';
}

const stepsOf = (attempt: Attempt): Step[] => [
  ...(attempt.behind ? [{ attempt, does: 'behind' } as const] : []),
  { attempt, does: 'run' },
  ...(attempt.then ? [{ attempt, does: 'then' } as const] : []),
  ...(attempt.behind ? [{ attempt, does: 'stop' } as const] : []),
];

const boxEnv = { PATH: personEnv.PATH!, TELOS_SANDBOX: 'auto' };

/** One conversation of the command line, in which the model has one command after the other run. */
async function allBoxed(): Promise<{ seen: AttemptSeen[]; stderr: string }> {
  const seen: AttemptSeen[] = [];
  const steps = attempts.flatMap(stepsOf);
  let current: Awaited<ReturnType<typeof prepare>> | undefined;
  let endOther: (() => Promise<void>) | undefined;
  let told = '';
  let left = 0;
  const between = async (step: number, said: string): Promise<void> => {
    const last = steps[step - 1];
    const next = steps[step];
    told = last && last.attempt === steps[step - 2]?.attempt ? `${told}\n${said}` : said;
    const isOver = last && last.attempt !== next?.attempt;
    if (last?.attempt.meanwhile && (isOver || next?.does === 'stop'))
      await asPerson(filled(last.attempt.meanwhile));
    if (isOver) {
      await endOther?.();
      endOther = undefined;
      if (current) seen.push(await judge(last.attempt, current.before, told));
    }
    if (!next || last?.attempt === next.attempt) return;
    current = await prepare(next.attempt);
    const { beside } = current.scripts;
    if (beside) endOther = await otherConversation(world, beside.command, boxEnv);
  };
  const callOf = ({ attempt, does }: Step) => {
    if (does === 'stop') return { name: 'stop_command', input: { id: `cmd-${left}` } };
    if (does === 'behind') left++;
    const { command } = scriptOf(attempt, does, places)!;
    const input = { command, cwd: work, ...(does === 'behind' ? { background: true } : { timeout: 15 }) };
    return { name: 'run_command', input };
  };
  const turns = (request: { body: { messages?: unknown[] } }, index: number): AnthropicTurn => {
    const result = JSON.stringify(request.body?.messages?.at(-1) ?? '');
    const until = between(index, resultIn(result));
    const next = steps[index];
    if (!next) return { text: ['done'], hold: { behind: 'message_start', until } };
    return {
      toolCalls: [{ id: `toolu_${index}`, ...callOf(next) }],
      hold: { behind: 'message_start', until },
    };
  };
  const { stderr } = await runCli(world, ['--json', '--max-rounds', '400', 'one'], turns, {
    env: boxEnv,
    limitMs: 560_000,
  });
  return { seen, stderr };
}

/** The text of the last tool result, as it stands in the request. */
function resultIn(message: string): string {
  const blocks = (JSON.parse(message).content ?? []) as { type?: string; content?: unknown }[];
  if (!Array.isArray(blocks)) return '';
  const last = blocks.filter(({ type }) => type === 'tool_result').at(-1);
  return typeof last?.content === 'string'
    ? last.content
    : ((last?.content ?? []) as { text?: string }[]).map(({ text }) => text ?? '').join('\n');
}

await applyTrust(world);
const done = bare ? { seen: await allBare(), stderr: '' } : await allBoxed();
process.stdout.write(`${JSON.stringify(done)}\n`, () => process.exit(0));
