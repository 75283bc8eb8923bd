/** Implements `telos mcp-serve`: other programs run the user's skills over MCP. */
import { randomBytes } from 'node:crypto';
import { Telos } from '@telos/engine/telos';
import { serveMcp, serveMcpHttp } from '@telos/mcpServe/serve';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { terminalLine } from './terminalText.ts';

/** The variable with the token of HTTP. Without it a fresh one is made and shown. */
const tokenVariable = 'TELOS_MCP_TOKEN';

/** Serves until the client closes stdin, or a signal comes. Returns the exit code. */
export async function mcpServeCommand(
  options: ConfigOptions & { http?: string },
  terminal: Terminal,
  version: string,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const parts = { telos: Telos.open(config), version };
  const { stdin, stdout, env } = terminal.surroundings;
  const { signal, release } = abortOnInterrupt(terminal, () => {});
  try {
    if (options.http === undefined) await serveMcp(parts, stdin as never, stdout as never, signal);
    else {
      const given = env[tokenVariable];
      const token = given || randomBytes(32).toString('base64url');
      const ready = (address: string): void => {
        terminal.say(terminalLine(`Ready at ${address}. Ctrl-C ends it.`));
        terminal.say(
          given ? `Its token is that of ${tokenVariable}.` : `Send this token as the bearer: ${token}`,
        );
      };
      await serveMcpHttp(parts, { port: Number(options.http), token }, ready, signal);
    }
  } finally {
    release();
  }
  return 0;
}
