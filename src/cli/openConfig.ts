/** From the options of the command line to the engine's configuration. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Config, loadConfig } from '../engine/config.ts';
import { isSecretName } from '../engine/redact.ts';
import { hideStartEnvironment } from './startEnvironment.ts';
import type { Terminal } from './terminal.ts';
import { terminalText } from './terminalText.ts';

/** As they were given; paths may be relative to the folder of the call. */
export interface ConfigOptions {
  model?: string;
  provider?: string;
  cwd?: string;
  /** How a skill is found, where the command lets one say so. */
  mode?: string;
  replay?: string;
  maxCost?: string;
  maxTokens?: string;
  maxMinutes?: string;
}

/** Absolute; undefined where there is none any more. */
function folderOfCall(wanted: string | undefined): string | undefined {
  try {
    return resolve(wanted ?? process.cwd());
  } catch {
    return undefined;
  }
}

/** Undefined when the folder of the call, or that of `--cwd`, is none; that has been said then, and is wrong usage. */
export function configFor(options: ConfigOptions, terminal: Terminal): Config | undefined {
  const cwd = folderOfCall(options.cwd);
  if (cwd === undefined) {
    terminal.say('The folder that telos was called in is gone. Go to another one first.');
    return undefined;
  }
  if (options.cwd !== undefined && !statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    terminal.say(`--cwd: there is no folder ${terminalText(cwd)}.`);
    return undefined;
  }
  const config = loadConfig({
    cwd,
    model: options.model,
    provider: options.provider ?? (options.replay === undefined ? undefined : 'replay'),
    replayFile: options.replay === undefined ? undefined : resolve(options.replay),
    routingMode: options.mode,
    maxCost: options.maxCost,
    maxTokens: options.maxTokens,
    maxMinutes: options.maxMinutes,
  });
  hideStartEnvironment(isSecretName);
  for (const problem of config.problems) terminal.say(terminal.style.yellow(terminalText(problem)));
  return config;
}
