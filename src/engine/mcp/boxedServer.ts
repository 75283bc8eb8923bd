/** Starts an MCP server in the box, with the further descriptors that its box needs. The SDK hands down no more than three. */
import { type ChildProcess, spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { giveInputs } from '../tools/processStart.ts';
import type { AskHost, CommandBox, CommandStart, EnclosedCommand } from '../tools/tool.ts';
import type { StdioClientTransport } from './sdk.ts';

/** Opens the box of a server, in which it finds the files that its arguments name. Throws TelosError `mcp` where none works. */
export type OpenBox = (
  server: string,
  args: readonly string[],
) => Promise<{ box: CommandBox; askHost?: AskHost }>;

/** A server's program in its box. */
export interface BoxedStart {
  start: CommandStart;
  inputs: NonNullable<EnclosedCommand['inputs']>;
  /** Ends what belongs to the box, once no process of the server is alive any more. The second call does nothing. */
  end(): Promise<void>;
}

/** Returns how the server starts in the box. Throws TelosError if it cannot, and then it must not start. */
export async function boxedStart(server: string, plain: CommandStart, open: OpenBox): Promise<BoxedStart> {
  const { box, askHost } = await open(server, plain.args);
  const start = await box.enclose({ ...plain, folder: realpathSync.native(plain.folder) }, askHost);
  let ended: Promise<unknown> | undefined;
  return {
    start,
    inputs: start.inputs ?? [],
    async end() {
      ended ??= start.end();
      await ended;
    },
  };
}

/** What of the SDK's transport belongs to its process. */
interface OwnProcess {
  _process: ChildProcess | undefined;
  _stderrStream: NodeJS.WritableStream | null;
  _readBuffer: { append(chunk: Buffer): void };
  processReadBuffer(): void;
}

/** Starts the process of a transport as the SDK does, with descriptors of its own. Rejects if there is no such program. */
export function startProcess(
  transport: StdioClientTransport,
  { program, args, env, folder }: CommandStart,
  inputs: BoxedStart['inputs'],
): Promise<void> {
  const own = transport as unknown as OwnProcess;
  const further = inputs.map(each => (typeof each === 'number' ? each : ('pipe' as const)));
  const child = spawn(program, args, { cwd: folder, env, stdio: ['pipe', 'pipe', 'pipe', ...further] });
  own._process = child;
  giveInputs(child, inputs);
  const fail = (error: Error): void => transport.onerror?.(error);
  for (const stream of [child.stdin, child.stdout]) stream?.on('error', fail);
  child.stdout?.on('data', chunk => {
    try {
      own._readBuffer.append(chunk);
      own.processReadBuffer();
    } catch (error) {
      fail(error as Error);
      transport.close().catch(() => undefined);
    }
  });
  if (own._stderrStream) child.stderr?.pipe(own._stderrStream);
  child.on('close', () => {
    own._process = undefined;
    transport.onclose?.();
  });
  return new Promise((resolve, reject) => {
    child.on('error', error => {
      reject(error);
      fail(error);
    });
    child.once('spawn', resolve);
  });
}
