/** Implements `telos context-server`: an MCP server on stdin and stdout that answers questions about a project. */

import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { contextModel, ProjectContext, serveContext } from '@telos/plans/context';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import type { Terminal } from './terminal.ts';
import { terminalText } from './terminalText.ts';

interface ContextOptions extends ConfigOptions {
  project?: string;
  context?: readonly string[];
}

/** Serves until stdin ends or a signal comes. Returns the exit code: 2 if a folder does not exist. */
export async function contextServerCommand(
  options: ContextOptions,
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
  const stop = new AbortController();
  const end = (): void => stop.abort();
  process.once('SIGINT', end).once('SIGTERM', end);
  const context = new ProjectContext(folders, () => contextModel(config));
  await serveContext(context, process.stdin, process.stdout, version, stop.signal);
  return 0;
}
