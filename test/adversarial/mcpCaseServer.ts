/**
 * An MCP server over stdin and stdout that does what a case wants: `node mcpCaseServer.ts <options.json> <record.jsonl>`. Its process, and then each
 * message that it is sent, go to the record.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Fields } from './caseFile.ts';

export interface McpCaseOptions {
  tools: unknown[];
  /** Put before each answer of a tool. */
  says?: string;
  /** In place of a text. */
  result?: unknown;
  fault?: 'silent' | 'never answers calls' | 'exits in calls' | 'clings';
  /** Written in front of the answer to `initialize`. */
  noise?: string;
  /** Asked of the client while a call runs, whose answer is then the call's. */
  asks?: { method: string };
}

const [file = '', record = ''] = process.argv.slice(2);
const options = JSON.parse(readFileSync(file, 'utf8')) as McpCaseOptions;
const write = (entry: unknown): void => appendFileSync(record, `${JSON.stringify(entry)}\n`);
const send = (message: object): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
write({ pid: process.pid });
if (options.fault === 'clings') {
  process.on('SIGTERM', () => undefined);
  setInterval(() => undefined, 1000);
}
let waiting: number | undefined;

createInterface({ input: process.stdin })
  .on('line', line => {
    write(JSON.parse(line));
    if (options.fault !== 'silent') answer(JSON.parse(line));
  })
  .on('close', () => {
    if (options.fault !== 'clings') process.exit(0);
  });

function answer(message: { id?: number; method?: string; params?: Fields }): void {
  const { id, method, params } = message;
  if (method === 'initialize') {
    if (options.noise) process.stdout.write(options.noise);
    const capabilities = { tools: { listChanged: true } };
    const serverInfo = { name: 'case', version: '1' };
    send({ id, result: { protocolVersion: params?.['protocolVersion'], capabilities, serverInfo } });
  } else if (method === 'tools/list') send({ id, result: { tools: options.tools } });
  else if (method === 'tools/call') call(id, params ?? {});
  else if (method === undefined && id === 9000) {
    send({ id: waiting, result: { content: [{ type: 'text', text: JSON.stringify(message) }] } });
  }
}

function call(id: number | undefined, params: Fields): void {
  if (options.fault === 'exits in calls' && params['name'] === 'die') process.exit(1);
  if (options.fault === 'never answers calls') return;
  if (options.asks) {
    waiting = id;
    send({ id: 9000, method: options.asks.method, params: { messages: [], maxTokens: 10 } });
    return;
  }
  const text = `${options.says ?? 'called'} ${JSON.stringify(params)}`;
  send({ id, result: options.result ?? { content: [{ type: 'text', text }] } });
}
