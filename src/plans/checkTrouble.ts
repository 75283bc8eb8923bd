/** Reads from the output of a check what of its surroundings it lacked: a program, a package, the network, a service or a file elsewhere. */

import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { isInside } from '@telos/engine/files';
import type { CheckResult, PlanCheck } from '@telos/protocol/plan';

/** What a check lacked. The last three are there for the user and not in the sandbox. */
export type Trouble =
  | { kind: 'program' | 'package'; name: string }
  | { kind: 'network'; name: string }
  | { kind: 'localhost'; port: number }
  | { kind: 'path'; path: string };

/** The last part of an output, in which the reason stands. In characters. */
const longestOutput = 8_000;

const noNetwork =
  /\b(?:EAI_AGAIN|ENOTFOUND|ENETUNREACH)\b|Could not resolve host|Temporary failure in name resolution|Name or service not known|Network is unreachable|no such host|nodename nor servname|dial tcp: lookup|Failed to establish a new connection/;
const host = /(?:getaddrinfo \w+ |resolve host: |lookup |https?:\/\/|host=')([a-z0-9-]+(?:\.[a-z0-9-]+)+)/i;
/** A program of the user's or of the packages, as shells say that it is not there. */
const noProgram = [
  /(?:^|[:\s])([\w.+@-]+): (?:command )?not found\b/m,
  /(?:^|\s)((?:\.venv|venv|node_modules)\/[\w./+@-]+): (?:No such file or directory|(?:command )?not found)/m,
  /'([\w.+-]+)' is not recognized as an internal or external command/,
];
const noPackage = [
  /Cannot find (?:package|module) '((?:@[\w.-]+\/)?[\w-][\w.-]*)(?:\/[^']*)?'/,
  /ModuleNotFoundError: No module named '([\w-]+)/,
  /\/python[\d.]*: No module named ([\w-]+)/,
];

/** Returns what kept a check from saying anything about the work; undefined if nothing shows that. */
export function troubleIn({ exitCode, output }: CheckResult): Trouble | undefined {
  if (exitCode === 0) return undefined;
  const text = output.slice(-longestOutput);
  if (noNetwork.test(text)) return { kind: 'network', name: host.exec(text)?.[1] ?? '' };
  const program =
    exitCode === 127 || exitCode === 126 || exitCode === 9009 ? firstOf(noProgram, text) : undefined;
  if (program !== undefined) return { kind: 'program', name: program };
  const name = firstOf(noPackage, text);
  return name === undefined ? undefined : { kind: 'package', name };
}

/** Lines of an output that say what went wrong, and those that only look like it. */
const saysWhy = /\b(?:err(?:or)?|fatal|fail(?:ed|ure)?|cannot|invalid|unable|denied)\b|not found/i;
const saysNothing = /\bnotice\b|complete log of this run|^npm error code\b/i;
const mostReasons = 4;

/** Returns why a command that sets up the worktrees of a plan failed, and what helps. */
export function setupFailure(result: CheckResult, plan: string): string {
  const { name, exitCode, output } = result;
  const how = exitCode === null ? 'did not end by itself' : `failed with exit code ${exitCode}`;
  const trouble = troubleIn(result);
  const lines = output.trim().split('\n');
  const why = lines.filter(line => saysWhy.test(line) && !saysNothing.test(line)).slice(0, mostReasons);
  const said = (why.length > 0 ? why : lines.slice(-mostReasons)).join('\n');
  const helps = {
    program: () =>
      `Install ${trouble?.kind === 'program' ? trouble.name : ''}, or set the worktrees up otherwise`,
    network: () => 'Look whether its server can be reached, or set the worktrees up otherwise',
  };
  const advice =
    trouble?.kind === 'program' || trouble?.kind === 'network'
      ? helps[trouble.kind]()
      : 'Mend that, or set the worktrees up otherwise';
  return `"${name}" ${how} while the worktree was set up.\n${said}\n${advice}: telos plan setup --plan ${plan} "..."`;
}

const firstOf = (patterns: readonly RegExp[], text: string): string | undefined =>
  patterns.map(pattern => pattern.exec(text)?.[1]).find(found => found !== undefined);

/**
 * Returns what of the user's machine a check lacked in the sandbox, where `dir` is its work tree: the network, a service that listens there,
 * or a file elsewhere that exists. Undefined if its output names none of them.
 */
export async function sandboxTrouble(
  { command }: PlanCheck,
  result: CheckResult,
  dir: string,
): Promise<Trouble | undefined> {
  const text = result.output.slice(-longestOutput);
  const found = troubleIn(result);
  if (found?.kind === 'network') return found;
  if (
    /ECONNREFUSED|connection ?refused|could not connect to server|Failed to connect to (?:localhost|127)/i.test(
      text,
    )
  )
    for (const port of portsIn(`${text}\n${command}`))
      if (await listens(port)) return { kind: 'localhost', port };
  const path = /no such file|ENOENT|cannot (?:open|access|find)|permission denied|EACCES|read-only/i.test(
    text,
  )
    ? pathsIn(text).find(one => !isInside(dir, one) && existsSync(one))
    : undefined;
  return path === undefined ? undefined : { kind: 'path', path };
}

const mostTried = 5;

function portsIn(text: string): number[] {
  const near = [...text.matchAll(/(?:localhost|127\.0\.0\.1|::1|0\.0\.0\.0|\bport)\W{1,4}(\d{2,5})\b/gi)];
  return [...new Set(near.map(([, port]) => Number(port)))].filter(port => port < 65_536).slice(0, mostTried);
}

function pathsIn(text: string): string[] {
  const lines = text
    .split('\n')
    .filter(line => /no such file|ENOENT|cannot|permission denied|EACCES|read-only/i.test(line));
  const paths = lines.flatMap(line =>
    [...line.matchAll(/(?<![\w.:/-])\/[\w.@+-]+(?:\/[\w.@+-]+)+/g)].map(([path]) => path),
  );
  return [...new Set(paths)]
    .filter(path => !/^\/(?:proc|sys|dev|usr|bin|sbin|lib\w*|etc|nix)\//.test(path))
    .slice(0, mostTried);
}

/** In milliseconds. It is this machine. */
const patience = 500;

/** Returns true if something of the user's listens on the port. */
function listens(port: number): Promise<boolean> {
  return new Promise(done => {
    const socket = connect({ port, host: '127.0.0.1', timeout: patience });
    const end = (isThere: boolean): void => {
      socket.destroy();
      done(isThere);
    };
    socket.once('connect', () => end(true));
    socket.once('timeout', () => end(false));
    socket.once('error', () => end(false));
  });
}

/** Returns what a check needs that the sandbox does not have, in a few words. */
export function needOf(trouble: Trouble): string {
  switch (trouble.kind) {
    case 'localhost':
      return `the service on localhost:${trouble.port}`;
    case 'path':
      return `${trouble.path}, which lies outside of the project`;
    case 'network':
      return trouble.name === '' ? 'the network' : `the network (${trouble.name})`;
    default:
      return trouble.name;
  }
}
