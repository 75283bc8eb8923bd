/** Implements the commands that other programs start and speak with: `telos acp`, `telos mcp-serve` and `telos context-server`. */

import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { Telos } from '@telos/engine/telos';
import { contextModel, ProjectContext, serveContext } from '@telos/plans/context';
import { sentence } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { terminalLine, terminalText } from './terminalText.ts';

/** The variable with the token of HTTP. Without it a fresh one is made and shown. */
const tokenVariable = 'TELOS_MCP_TOKEN';

/** Serves an editor in the Agent Client Protocol until it closes stdin or a signal comes. Returns the exit code. */
export function acpCommand(options: ConfigOptions, terminal: Terminal, version: string): Promise<number> {
  const { stdin: input, stdout: output } = terminal.surroundings;
  const open = (cwd: string, choices: ConfigOptions): Telos => {
    const config = configFor({ ...options, ...choices, cwd }, terminal);
    if (config) return Telos.open(config);
    throw new TelosError('config', [sentence('The folder {0} does not exist.', cwd)]);
  };
  return interruptible(terminal, async signal => {
    const { serveAcp } = await import('@telos/acp/server');
    await serveAcp({ input, output, version, open }, signal);
    return 0;
  });
}

/** Runs the user's skills for other programs, over MCP. Returns the exit code. */
export async function mcpServeCommand(
  options: ConfigOptions & { http?: string },
  terminal: Terminal,
  version: string,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const parts = { telos: Telos.open(config), version };
  const { stdin, stdout, env } = terminal.surroundings;
  return interruptible(terminal, async signal => {
    const { serveMcp, serveMcpHttp } = await import('@telos/mcpServe/serve');
    if (options.http === undefined) {
      await serveMcp(parts, stdin as never, stdout as never, signal);
      return 0;
    }
    const given = env[tokenVariable];
    const token = given || randomBytes(32).toString('base64url');
    const ready = (address: string): void => {
      terminal.say(terminalLine(`Ready at ${address}. Ctrl-C ends it.`));
      terminal.say(
        given ? `Its token is that of ${tokenVariable}.` : `Send this token as the bearer: ${token}`,
      );
    };
    await serveMcpHttp(parts, { port: Number(options.http), token }, ready, signal);
    return 0;
  });
}

/** Answers questions about a project, over MCP. Returns the exit code: 2 if a folder does not exist. */
export async function contextServerCommand(
  options: ConfigOptions & { project?: string; context?: readonly string[] },
  terminal: Terminal,
  version: string,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const folders = [options.project ?? '.', ...(options.context ?? [])].map(path => resolve(config.cwd, path));
  const missing = folders.find(path => !statSync(path, { throwIfNoEntry: false })?.isDirectory());
  if (missing !== undefined) {
    terminal.say(`The folder ${terminalText(missing)} does not exist.`);
    return 2;
  }
  const { stdin, stdout } = terminal.surroundings;
  return interruptible(terminal, async signal => {
    const context = new ProjectContext(folders, () => contextModel(config));
    await serveContext(context, stdin as never, stdout as never, version, signal);
    return 0;
  });
}
