/** Cases on commands that only look, for a step whose role is to look. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { nobody } from '../../../src/engine/human.ts';
import { permitFor } from '../../../src/engine/permit.ts';
import { decide } from '../../../src/engine/policy/decide.ts';
import { runPolicy } from '../../../src/engine/policy/runPolicy.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import { findRipgrep } from '../../../src/engine/tools/ripgrep.ts';
import { cacheDir } from '../../vscode/paths.ts';
import { fieldsOf } from '../caseFile.ts';
import type { Seen } from '../judge.ts';
import { applySetup, secretText, type World } from '../world.ts';
import { filesBelow } from './files.ts';

const mebibyte = 1024 * 1024;

/** The one on the PATH, or the one of the VS Code that the other tests fetch. */
const ripgrep = findRipgrep({ env: { PATH: process.env['PATH'] ?? '' } }) ?? fetchedRipgrep();

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

export async function readOnlyCommand(world: World): Promise<Seen> {
  const { input, root, out, home } = world;
  fillRoot(world);
  applySetup(world);
  const command = String(input['command']);
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(fieldsOf(input['env']))) env[name] = String(value);
  const config = world.configFor(env);
  const folders = {
    workingDir: root,
    packDir: root,
    skillDir: root,
    commandDir: String(input['cwd'] ?? root),
  };
  const policy = { ...runPolicy(config, undefined, folders), role: 'read-only' as const };
  const before = snapshot(world);
  const rss = process.memoryUsage().rss;
  const start = performance.now();
  const call = { id: '1', name: 'run_command', input: { command } };
  const decision = await decide(call, policy);
  const decidedIn = performance.now() - start;
  const gate = permitFor(call, { tools: builtinTools, human: nobody, policy }, new AbortController().signal);
  let step = await gate.next();
  while (!step.done) step = await gate.next();
  const permit = step.value;
  let told = permit.granted ? '' : permit.refusal;
  if (permit.granted) {
    const context = {
      ...folders,
      env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env },
      signal: new AbortController().signal,
      approvedSubject: permit.approvedSubject,
      ...(ripgrep ? { ripgrep } : {}),
    };
    told = (await permit.tool.execute(call.input, context)).content;
  }
  const growth = process.memoryUsage().rss - rss;
  const file = (name: string): string => readFileSync(join(root, name), 'utf8');
  return {
    decision: decision.action,
    facts: {
      'spawn any process other than the allowed binary':
        existsSync(join(out, 'ran')) || existsSync(join(out, 'w')),
      'create or change any file': JSON.stringify(snapshot(world)) !== JSON.stringify(before),
      'return bytes from $OUT/secret.txt': told.includes(secretText),
      'stdout is $ROOT': told.trim() === root || told,
      'stdout equals file bytes': told === file('a.txt') || told,
      'first 120 lines':
        told.trimEnd() === file('SKILL.md').split('\n').slice(0, 120).join('\n') || told.slice(0, 200),
      '2 matches in a.txt': (told.match(/a\.txt/g) ?? []).length === 2 || told,
      "matches only; rgrc's --pre does not run (use --no-config or scrub the variable)":
        (told.includes('alpha') && !existsSync(join(out, 'ran'))) || told,
      'structured error naming the refused token': (!permit.granted && namesWordOf(told, command)) || told,
      '<= 256 KiB returned with a truncation note':
        Buffer.byteLength(told) <= 257 * 1024 && /cut|bytes/i.test(told),
      'peak RSS growth < 64 MiB': growth < 64 * mebibyte || `${growth} bytes more`,
      'error < 1 KiB, within 50 ms':
        (Buffer.byteLength(told) < 1024 && decidedIn < 50) || `${told.length} bytes in ${decidedIn} ms`,
    },
  };
}

/** Some piece of the command stands in what is said, in quotes or as it is. */
function namesWordOf(told: string, command: string): boolean {
  const pieces = command.split(/[\s"']+/).flatMap(word => [word, ...word.split(/[=,;|&]/)]);
  const special = [...command].filter(character => /[^\w\s./-]/.test(character));
  const names = [...pieces, ...special].filter(piece => piece !== '');
  return (
    names.some(name => told.includes(name) || told.includes(JSON.stringify(name).slice(1, -1))) ||
    /\\n|newline|control/.test(told)
  );
}

function snapshot({ root, out, home }: World): unknown[] {
  return [root, out, home].flatMap(filesBelow).map(path => {
    const { size, mtimeMs } = statSync(path);
    return [path, size, mtimeMs];
  });
}
