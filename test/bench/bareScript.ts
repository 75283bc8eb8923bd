/**
 * The yardstick of the bench: what somebody would write by hand on the same SDK. Streams answers to stdout and runs one tool until the model
 * asks for nothing more. No routing, no log, no limits.
 */
import { readFile } from 'node:fs/promises';
import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic();
const messages: Anthropic.MessageParam[] = [{ role: 'user', content: process.argv[2] ?? 'Hello' }];
const tools: Anthropic.Tool[] = [
  {
    name: 'read_file',
    description: 'Reads a file.',
    input_schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  },
];

for (;;) {
  const stream = await client.messages.create({
    model: 'claude-haiku-4-5',
    max_tokens: 16384,
    messages,
    tools,
    stream: true,
  });
  let text = '';
  let json = '';
  let call: Anthropic.ToolUseBlock | undefined;
  for await (const event of stream) {
    if (event.type === 'content_block_start' && event.content_block.type === 'tool_use') {
      call = event.content_block as Anthropic.ToolUseBlock;
      json = '';
    } else if (event.type === 'content_block_delta') {
      if (event.delta.type === 'text_delta') {
        text += event.delta.text;
        process.stdout.write(event.delta.text);
      } else if (event.delta.type === 'input_json_delta') json += event.delta.partial_json;
    }
  }
  if (!call) break;
  const input = JSON.parse(json) as { path: string };
  messages.push({
    role: 'assistant',
    content: [...(text ? [{ type: 'text' as const, text }] : []), { ...call, input }],
  });
  const content = await readFile(input.path, 'utf8');
  messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content }] });
}
