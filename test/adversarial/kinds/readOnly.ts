/** Cases on commands that only look, for a step whose role is to look. */
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { denyAll } from '../../../src/engine/human.ts';
import { decide } from '../../../src/engine/policy/decide.ts';
import { runPolicy } from '../../../src/engine/policy/decision.ts';
import { approveCall } from '../../../src/engine/run/approval.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import { findRipgrep } from '../../../src/engine/tools/search.ts';
import { fetchCodeServer } from '../../vscode/codeServer.ts';
import { cacheDir } from '../../vscode/paths.ts';
import { fieldsOf } from '../caseFile.ts';
import { applying, CannotJudge, check, inTime, type Seen } from '../checks.ts';
import { referenceRun, sameLines } from '../reference.ts';
import { changesSince, snapshot, steering } from '../witness.ts';
import { applySetup, secretText, type World } from '../world.ts';

const mebibyte = 1024 * 1024;

/** The one on the PATH, or the one of the VS Code that the other tests fetch. */
let ripgrep = findRipgrep({ env: { PATH: process.env['PATH'] ?? '' } }) ?? fetchedRipgrep();

async function needRipgrep(): Promise<void> {
  if (!ripgrep) await fetchCodeServer(console.error, AbortSignal.timeout(600_000)).catch(() => undefined);
  ripgrep ??= fetchedRipgrep();
  if (!ripgrep) throw new CannotJudge('ripgrep is not on this machine');
}

function fetchedRipgrep(): string | undefined {
  const program = `node_modules/@vscode/ripgrep-universal/bin/${process.platform}-${process.arch}/rg`;
  const servers = existsSync(cacheDir) ? readdirSync(cacheDir) : [];
  return servers.map(name => join(cacheDir, name, program)).find(path => existsSync(path));
}

/** The folder that these cases were written for. */
function fillRoot({ root, out, put }: World): void {
  put(join(root, 'a.txt'), 'alpha 1\nplain\nbeta 2\n');
  put(join(root, 'b.txt'), 'one\ntwo\n');
  put(join(root, 'SKILL.md'), Array.from({ length: 200 }, (_, at) => `line ${at + 1}`).join('\n'));
  put(join(root, 'notes with space.md'), 'spaced\n');
  put(join(root, 'skills/one/SKILL.md'), 'one\n');
  put(join(root, 'a.txt.gz'), gzipSync('alpha'));
  chmodSync(put(join(root, 'pre.sh'), `#!/bin/sh\ntouch '${out}/ran'\ncat "$1"\n`), 0o755);
  put(join(root, 'evil.sed'), `w ${out}/w\n`);
  put(join(root, 'rgrc'), `--pre=${root}/pre.sh\n`);
  mkdirSync(join(root, 'sub'), { recursive: true });
  symlinkSync(out, join(root, 'outlink'));
  symlinkSync(join(out, 'secret.txt'), join(root, 'link.txt'));
}

/** Programs that no such command may start; each leaves a file when it is started. */
const traps =
  'id sh bash dash env rm cp mv ln chmod touch tee dd awk perl python python3 node xargs nohup sudo curl wget less more'.split(
    ' ',
  );

function layTraps({ home, put }: World): { folder: string; sprung: string } {
  const base = dirname(home);
  const sprung = join(base, 'sprung');
  for (const name of traps)
    chmodSync(put(join(base, 'traps', name), `#!/bin/sh\necho '${name}' >> '${sprung}'\n`), 0o755);
  return { folder: join(base, 'traps'), sprung };
}

export async function readOnlyCommand(world: World): Promise<Seen> {
  const { input, root, out, home } = world;
  fillRoot(world);
  applySetup(world);
  const { folder, sprung } = layTraps(world);
  const command = String(input['command']);
  const env: Record<string, string> = { PATH: `${folder}:${process.env['PATH'] ?? ''}` };
  for (const [name, value] of Object.entries(fieldsOf(input['env']))) env[name] = String(value);
  const config = world.configFor(env);
  const folders = {
    workingDir: root,
    packDir: root,
    skillDir: root,
    commandDir: String(input['cwd'] ?? root),
  };
  const policy = { ...runPolicy(config, undefined, folders), role: 'read-only' as const };
  world.mayChange = [];
  const before = snapshot(world);
  const rss = process.memoryUsage().rss;
  const start = performance.now();
  const call = { id: '1', name: 'run_command', input: { command } };
  const decision = await decide(call, policy);
  const decidedIn = performance.now() - start;
  const gate = approveCall(
    call,
    { tools: builtinTools, human: denyAll, policy },
    new AbortController().signal,
  );
  let step = await gate.next();
  while (!step.done) step = await gate.next();
  const permit = step.value;
  let told = permit.granted ? '' : permit.refusal;
  if (permit.granted) {
    if (/^rg\b/.test(command)) await needRipgrep();
    const context = {
      ...folders,
      env: { HOME: home, ...env },
      signal: new AbortController().signal,
      approvedSubject: permit.approvedSubject,
      ...(ripgrep ? { ripgrep } : {}),
    };
    told = (await permit.tool.execute(call.input, context)).content;
  }
  const growth = process.memoryUsage().rss - rss;
  const changed = changesSince(before, snapshot(world));
  const started = [sprung, join(out, 'ran'), join(out, 'w')].filter(existsSync).map(file => world.read(file));
  return {
    decision: decision.action,
    checks: [
      check('processes', 'only the allowed program is started', started.length === 0 || started.join()),
      check('files', 'no file is created or changed', changed.length === 0 || changed.join()),
      check('secrets', 'nothing from outside is returned', !told.includes(secretText)),
      check('memory', 'memory grows by less than 96 MiB', growth < 96 * mebibyte || `${growth} bytes more`),
      ...(permit.granted ? await ofResult(world, command, told) : ofRefusal(command, told, decidedIn)),
    ],
  };
}

function ofRefusal(command: string, told: string, decidedIn: number): Seen['checks'] {
  return [
    check('shown', 'the refusal names the word that is refused', namesWordOf(told, command) || told),
    check('shown', 'the refusal is short', Buffer.byteLength(told) < 1024 || `${told.length} bytes`),
    check('shown', 'the refusal steers no terminal', !steering.test(told)),
    check('time', 'the refusal comes at once', decidedIn < inTime(1000) || `${decidedIn} ms`),
  ];
}

/** What is returned is what the command says in a plain shell, up to the cap. */
async function ofResult(world: World, command: string, told: string): Promise<Seen['checks']> {
  const path = [...(ripgrep ? [dirname(ripgrep)] : []), process.env['PATH']].join(':');
  const cwd = String(world.input['cwd'] ?? world.root);
  const plain = await referenceRun(world, command, {
    cwd,
    env: { PATH: path },
    limitMs: 10_000,
    limitBytes: 256 * 1024,
  });
  const size = Buffer.byteLength(told);
  return applying(
    check('shown', 'at most 256 KiB are returned', size <= 257 * 1024 || `${size} bytes`),
    plain?.flooded &&
      check('shown', 'a note says that it was cut', /cut|bytes/i.test(told) || told.slice(-200)),
    plain?.exitCode === 0 &&
      check(
        'shown',
        'it says what a plain shell says',
        saysSame(told, plain.stdout.toString('utf8')) || told.slice(0, 300),
      ),
    plain?.exitCode !== undefined &&
      plain.exitCode > 0 &&
      check('shown', 'it says that nothing was found, or what went wrong', told.length > 0),
  );
}

const saysSame = (told: string, stdout: string): boolean =>
  stdout.trim() === '' ? /no output/.test(told) || told.trim() === '' : sameLines(told, stdout);

/** Returns true if the text contains a piece of the command, in quotes or as it is; of a long word its beginning. */
function namesWordOf(told: string, command: string): boolean {
  const pieces = command
    .slice(0, 2000)
    .split(/[\s"']+/)
    .flatMap(word => [word, ...word.split(/[=,;|&]/)]);
  const special = [...command.slice(0, 2000)].filter(character => /[^\w\s./-]/.test(character));
  const names = [...pieces, ...special].filter(piece => piece !== '').map(piece => piece.slice(0, 20));
  return (
    names.some(name => told.includes(name) || told.includes(JSON.stringify(name).slice(1, -1))) ||
    /\\n|newline|control|characters/.test(told)
  );
}
