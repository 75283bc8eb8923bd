/** The one place that says what a tool call may do: allow it, ask a person, or refuse it. */
import { relative } from 'node:path';
import type { ApprovalScope, ToolCall } from '../../protocol/run.ts';
import { hostKind, isNeverReached, parseWebAddress } from '../tools/addresses.ts';
import { type McpToolFacts, mcpSubject } from '../tools/mcpTools.ts';
import { folderHolding, isInside, PathProblem, refuseSpecialFile, resolvePath } from '../tools/paths.ts';
import type { RunFolders } from '../tools/tool.ts';
import { isInsideFolded, isSensitive, whatObeys } from './fileNames.ts';

export interface PolicyContext extends RunFolders {
  /** What `~` means. Absolute. */
  home: string;
  /** Telos's own configuration and data; no call reads or writes in them. Absolute. */
  protectedDirs: readonly string[];
  /** The server and the tool behind a name; undefined for the names of other tools. */
  mcpTool?: (name: string) => McpToolFacts | undefined;
}

/**
 * `rule` is stable and greppable; one that begins with `floor.` is lifted by no answer. `subject` is exactly what the call would touch: the
 * real path, the normal form of the address, or the command. Whoever carries out the call hands it to the tool as `approvedSubject`, so that what was decided on
 * is what is done.
 */
export type Decision =
  | { action: 'allow'; rule: string; subject: string }
  | {
      action: 'ask';
      rule: string;
      reason: string;
      subject: string;
      folder?: string;
      scopes: readonly ApprovalScope[];
      /** See `ApprovalRequest`. */
      grant?: string;
    }
  | { action: 'deny'; rule: string; reason: string };

const scopes: readonly ApprovalScope[] = ['once', 'run'];

const allow = (rule: string, subject: string): Decision => ({ action: 'allow', rule, subject });
const ask = (rule: string, subject: string, reason: string): Decision => ({
  action: 'ask',
  rule,
  reason,
  subject,
  scopes,
});
const deny = (rule: string, reason: string): Decision => ({ action: 'deny', rule, reason });

/** Decides on a call of a built-in tool, or of one of an MCP server, whose input has been checked. Asks nobody, changes nothing, and sends nothing. */
export async function decide(call: ToolCall, context: PolicyContext): Promise<Decision> {
  switch (call.name) {
    case 'read_file':
    case 'list_directory':
      return decideOnFile(call.input['path'] ?? '.', context, decideOnRead);
    case 'write_file':
      return decideOnFile(call.input['path'], context, decideOnWrite);
    case 'run_command':
      return decideOnCommand(call.input['command'], context);
    case 'fetch_url':
      return decideOnFetch(call.input['url']);
    default:
      return decideOnMcpTool(call, context.mcpTool?.(call.name));
  }
}

/** Each tool of a server is asked about before its first use; a yes for the run ends with the description and schema it was given for. */
function decideOnMcpTool(call: ToolCall, facts: McpToolFacts | undefined): Decision {
  if (!facts) return deny('tool.undecided', `There is no rule about the tool ${call.name}.`);
  const { server, tool, digest } = facts;
  return {
    action: 'ask',
    rule: 'mcp.first-use',
    reason: `${JSON.stringify(tool)} of the MCP server ${JSON.stringify(server)} can do whatever that server can. A yes for the run is for this tool with any input.`,
    subject: mcpSubject(facts, call.input),
    scopes,
    grant: JSON.stringify([server, tool, digest]),
  };
}

async function decideOnFile(
  given: unknown,
  context: PolicyContext,
  decideOnPath: (path: string, context: PolicyContext) => Promise<Decision>,
): Promise<Decision> {
  if (typeof given !== 'string') return deny('input.invalid', 'The path must be a string.');
  try {
    const path = await resolvePath(given, context.workingDir, context.home);
    for (const folder of context.protectedDirs) {
      const real = await resolvePath(folder, folder, context.home);
      if (isInsideFolded(real, path))
        return deny('floor.telos-files', `${path} belongs to Telos itself: no run may read or change it.`);
    }
    await refuseSpecialFile(path);
    return await decideOnPath(path, context);
  } catch (error) {
    if (!(error instanceof PathProblem)) throw error;
    return deny(error.kind === 'special' ? 'floor.special-file' : 'input.invalid', error.message);
  }
}

async function decideOnRead(path: string, context: PolicyContext): Promise<Decision> {
  if (isSensitive(path))
    return ask('read.sensitive', path, `${path} looks like it holds keys, passwords or other secrets.`);
  const { workingDir, packDir, skillDir, home } = context;
  if ((await folderHolding(path, [workingDir, packDir, skillDir], home)) !== undefined)
    return allow('read.own-folders', path);
  return ask(
    'read.outside',
    path,
    `${path} is outside working_dir (${workingDir}) and the agent's own folder.`,
  );
}

async function decideOnWrite(path: string, context: PolicyContext): Promise<Decision> {
  const { workingDir, packDir, skillDir, home } = context;
  const work = await resolvePath(workingDir, workingDir, home);
  const inWork = isInside(work, path);
  const ownFolder = await folderHolding(path, [packDir, skillDir], home);
  switch (whatObeys(path, inWork ? relative(work, path) : path)) {
    case 'agent': {
      const whose = ownFolder === undefined ? 'another agent' : 'this agent';
      return ask(
        'write.executed',
        path,
        `${path} instructs an agent: writing it changes what ${whose} does.`,
      );
    }
    case 'program':
      return ask(
        'write.executed',
        path,
        `Other programs run or obey ${path}: what is written there can act later.`,
      );
  }
  // A working folder inside the pack is for work; a pack inside the working folder is still the pack.
  const worksInside = ownFolder !== undefined && (await folderHolding(work, [ownFolder], home)) !== undefined;
  if (ownFolder !== undefined && !(inWork && worksInside))
    return ask(
      'write.pack',
      path,
      `${path} is part of the agent itself, which may work differently afterwards.`,
    );
  if (inWork) return allow('write.working-dir', path);
  return ask('write.outside', path, `${path} is outside working_dir (${workingDir}).`);
}

const networkPrograms =
  /(^|[\s;&|(`/])(curl|wget|ssh|scp|sftp|rsync|nc|ncat|netcat|telnet|ftp|git|gh|npm|npx|pnpm|yarn|bun|bunx|pip3?|pipx|uvx?|cargo|go|gem|brew|apt(-get)?|docker|podman)(?=$|[\s;&|)`])/;

async function decideOnCommand(given: unknown, context: PolicyContext): Promise<Decision> {
  if (typeof given !== 'string') return deny('input.invalid', 'The command must be a string.');
  const program = networkPrograms.exec(given)?.[2];
  const network = program === undefined ? '' : ` It names ${program}, which can reach the network.`;
  const folder = await resolvePath(context.commandDir, context.commandDir, context.home).catch(
    () => context.commandDir,
  );
  return {
    action: 'ask',
    rule: 'run.command',
    reason: `A command can do whatever you can do on this machine.${network}`,
    subject: given,
    folder,
    scopes,
  };
}

/** Looks at the address alone and resolves no name: that question would itself leave the machine before anybody has agreed. */
function decideOnFetch(given: unknown): Decision {
  if (typeof given !== 'string') return deny('input.invalid', 'The URL must be a string.');
  const parsed = parseWebAddress(given);
  if ('problem' in parsed)
    return deny(parsed.scheme === undefined ? 'input.invalid' : 'floor.fetch-scheme', parsed.problem);
  const { url } = parsed;
  const kind = hostKind(url.hostname);
  if (isNeverReached(kind))
    return deny('floor.fetch-address', `${url.host} is a ${kind} address, which is never fetched.`);
  if (kind === 'public') return ask('fetch.public', url.href, `The agent wants to contact ${url.host}.`);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  const place = kind === 'loopback' ? 'on this machine' : 'in your private network';
  return ask(
    'fetch.private',
    url.href,
    `The agent wants to contact ${url.hostname}, port ${port}, ${place}.`,
  );
}
