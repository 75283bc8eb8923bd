/** The tools with which a model reads and ends what it runs in the background. */
import type { JsonObject } from '@telos/protocol/run';
import { type Tool, type ToolContext, toolError } from './tool.ts';

/** Seconds that a call may wait for output. */
const longestWait = 60;

const idProperty = {
  type: 'string',
  description: 'The name that run_command gave it, such as cmd-1.',
} as const;

function commandOf(input: Readonly<Record<string, unknown>>, { background }: ToolContext) {
  const id = String(input['id'] ?? '');
  return (
    background?.commands.named(id) ??
    toolError(background?.commands.unknown(id) ?? 'No command runs in the background.')
  );
}

const readOutputTool: Tool = {
  definition: {
    name: 'read_output',
    description: 'Returns the new output of a background command, and whether it still runs.',
    inputSchema: {
      type: 'object',
      properties: {
        id: idProperty,
        wait_s: {
          type: 'number',
          description: `Seconds to wait for something new, at most ${longestWait}.`,
        },
      },
      required: ['id'],
    },
  },
  access: 'network',
  async execute(input, context) {
    const command = commandOf(input, context);
    if ('isError' in command) return command;
    const { wait_s: seconds } = input;
    if (typeof seconds === 'number' && seconds > 0 && command.end === undefined) {
      const late = AbortSignal.timeout(Math.min(seconds, longestWait) * 1000);
      const signal = AbortSignal.any([context.signal, late]);
      await Promise.race([command.output.some(signal), command.over]);
      context.signal.throwIfAborted();
    }
    return { content: command.report(), isError: false };
  },
};

const stopCommandTool: Tool = {
  definition: {
    name: 'stop_command',
    description: 'Ends a background command, and returns the rest of its output.',
    inputSchema: {
      type: 'object',
      properties: { id: idProperty },
      required: ['id'],
    },
  },
  access: 'network',
  async execute(input, context) {
    const command = commandOf(input, context);
    if ('isError' in command) return command;
    await command.stop();
    return { content: command.report(), isError: false };
  },
};

const ownTools: readonly Tool[] = [readOutputTool, stopCommandTool];

/** Names of the tools that `withBackground` adds. */
export const backgroundNames: readonly string[] = ownTools.map(({ definition }) => definition.name);

/** Returns the tools as a run offers them whose commands may go on in the background. */
export const withBackground = (tools: readonly Tool[]): readonly Tool[] => [
  ...tools.map(tool => (tool.definition.name === 'run_command' ? mayGoOn(tool) : tool)),
  ...ownTools,
];

function mayGoOn({ definition, ...tool }: Tool): Tool {
  const { inputSchema } = definition;
  const properties = {
    ...(inputSchema['properties'] as JsonObject),
    background: {
      type: 'boolean',
      description: 'For a server or a watcher: it goes on after this call, for read_output and stop_command.',
    },
  };
  return { ...tool, definition: { ...definition, inputSchema: { ...inputSchema, properties } } };
}
