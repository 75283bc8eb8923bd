/** Implements `telos acp`: an editor starts it, and speaks the Agent Client Protocol over stdin and stdout. */
import { serveAcp } from '@telos/acp/server';
import { TelosError } from '@telos/engine/errors';
import { Telos } from '@telos/engine/telos';
import { sentence } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';

/** Serves until the editor closes stdin or a signal comes. Returns the exit code. */
export async function acpCommand(
  options: ConfigOptions,
  terminal: Terminal,
  version: string,
): Promise<number> {
  const { surroundings } = terminal;
  const { signal, release } = abortOnInterrupt(terminal, () => {});
  const open = (cwd: string, choices: ConfigOptions): Telos => {
    const config = configFor({ ...options, ...choices, cwd }, terminal);
    if (config) return Telos.open(config);
    throw new TelosError('config', [sentence('The folder {0} does not exist.', cwd)]);
  };
  try {
    await serveAcp({ input: surroundings.stdin, output: surroundings.stdout, version, open }, signal);
  } finally {
    release();
  }
  return 0;
}
