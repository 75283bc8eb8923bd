/**
 * Fakes an MCP server that speaks one revision only, over its standard streams: `modern` refuses what the older ones begin with, `old`
 * exits at anything before its greeting, and `future` and `distant` speak what no client of today knows. Arguments: the revision, and
 * what is wrong with it.
 */
import { createInterface } from 'node:readline';

type Fields = Readonly<Record<string, unknown>>;
interface Message {
  id?: number | string;
  method: string;
  params?: Fields;
}

const [, , kind = 'modern', fault = ''] = process.argv;
const revision = kind === 'future' ? '2027-03-01' : '2026-07-28';
const metaKey = (name: string): string => `io.modelcontextprotocol/${name}`;
const schema = { type: 'object', properties: {} };
let isChanged = false;
let listening: number | string | undefined;

const send = (message: Fields): void => {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
};
const complete = (id: Message['id'], result: Fields): void =>
  send({ id, result: { resultType: 'complete', ...result } });

createInterface({ input: process.stdin })
  .on('line', line => answers(JSON.parse(line) as Message))
  .on('close', () => process.exit(0));

const answers = { old: answerAsBefore, distant: answerFromAfar }[kind] ?? answer;
let isGreeted = false;

function answerAsBefore({ id, method, params }: Message): void {
  if (method !== 'initialize' && !isGreeted) process.exit(1);
  isGreeted = true;
  const { protocolVersion } = params ?? {};
  const about = { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'old', version: '0' } };
  if (method === 'initialize') send({ id, result: about });
  if (method === 'tools/list') send({ id, result: { tools: tools() } });
  if (method === 'tools/call') send({ id, result: { content: [{ type: 'text', text: 'hello' }] } });
}

/** Greets as the older ones do, in a revision of its own. */
function answerFromAfar({ id, method }: Message): void {
  const about = { capabilities: {}, serverInfo: { name: 'distant', version: '9' } };
  if (method === 'initialize') return void send({ id, result: { protocolVersion: '2029-01-01', ...about } });
  if (id !== undefined) send({ id, error: { code: -32601, message: 'Method not found' } });
}

function answer({ id, method, params = {} }: Message): void {
  const meta = (params['_meta'] ?? {}) as Fields;
  if (meta[metaKey('protocolVersion')] !== revision) {
    if (id === undefined) return;
    const data = { supported: [revision], requested: meta[metaKey('protocolVersion')] };
    return void send({ id, error: { code: -32022, message: 'Unsupported protocol version', data } });
  }
  if (method === 'server/discover')
    return void complete(id, {
      supportedVersions: [revision],
      capabilities:
        fault === 'lies' ? { prompts: {}, resources: {}, tools: {} } : { tools: { listChanged: true } },
      ttlMs: 0,
      cacheScope: 'private',
      _meta: { [metaKey('serverInfo')]: { name: 'strict', version: '1' } },
    });
  if (method === 'subscriptions/listen') {
    listening = id;
    const about = { [metaKey('subscriptionId')]: id };
    const acknowledged = { notifications: { toolsListChanged: true }, _meta: about };
    return void send({ method: 'notifications/subscriptions/acknowledged', params: acknowledged });
  }
  if (method === 'tools/list' && fault !== 'lies')
    return void complete(id, { tools: tools(), ttlMs: 0, cacheScope: 'private' });
  if (method === 'tools/call') return void call(id, params);
  if (id !== undefined) send({ id, error: { code: -32601, message: 'Method not found' } });
}

function tools(): Fields[] {
  const names = ['greet', 'forever', 'grow', 'many', ...(isChanged ? ['grown'] : [])];
  return names.map(name => ({ name, description: `Does ${name}.`, inputSchema: schema }));
}

const question = (message: string): Fields => ({
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message,
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  },
});

function call(id: Message['id'], params: Fields): void {
  const text = (content: string): void => complete(id, { content: [{ type: 'text', text: content }] });
  const ask = (inputRequests: Fields): void =>
    send({ id, result: { resultType: 'input_required', inputRequests, requestState: 'kept "as it is"' } });
  const given = params['inputResponses'] as Readonly<Record<string, Fields>> | undefined;
  switch (params['name']) {
    case 'greet': {
      if (!given) return void ask({ who: question('Who is it?') });
      const { action, content } = given['who'] ?? {};
      return void text(`${action} ${(content as Fields | undefined)?.['name']} ${params['requestState']}`);
    }
    case 'forever':
      return void ask({ who: question('And now?') });
    case 'many':
      return void ask(
        Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`${at}`, question(`${at}?`)])),
      );
    case 'grow': {
      isChanged = true;
      const about = { [metaKey('subscriptionId')]: listening };
      if (listening !== undefined)
        send({ method: 'notifications/tools/list_changed', params: { _meta: about } });
      return void text('grown');
    }
    default:
      return void text('?');
  }
}
