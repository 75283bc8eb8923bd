/** JSON-RPC in lines, whatever arrives and however it arrives. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { type RpcHandler, serveLines, unknownMethod } from '../../src/plans/jsonRpcLines.ts';

interface Answer {
  id?: unknown;
  result?: unknown;
  error?: { code: number; message: string };
  method?: string;
}

/** Sends the pieces and returns what was answered once the input has ended. */
async function answers(pieces: readonly (string | Buffer)[], handle: RpcHandler): Promise<Answer[]> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const served = serveLines(input, output, handle, new AbortController().signal);
  for (const piece of pieces) {
    input.write(piece);
    await new Promise(resolve => setImmediate(resolve));
  }
  input.end();
  await served;
  output.end();
  const text = (await output.toArray()).join('');
  return text === ''
    ? []
    : text
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line));
}

const call = (id: unknown, method: string, params?: object): string =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;

describe('JSON-RPC in lines', () => {
  const echo: RpcHandler = async (method, params) => {
    if (method === 'echo') return params;
    if (method === 'fail') throw new Error('It broke.');
    throw unknownMethod(method);
  };

  it('answers each call once, in whatever pieces it arrives', async () => {
    const bytes = Buffer.from(call(1, 'echo', { word: 'Käse' }));
    const at = bytes.indexOf(0xc3) + 1;
    const found = await answers(
      [bytes.subarray(0, at), bytes.subarray(at), call('b', 'fail') + call(2, 'none')],
      echo,
    );
    assert.deepEqual(
      found.map(({ id }) => id),
      [1, 'b', 2],
    );
    assert.deepEqual(found[0]?.result, { word: 'Käse' });
    assert.deepEqual(
      found.map(({ error }) => error?.code),
      [undefined, -32000, -32601],
    );
  });

  it('takes a line of many megabytes in small pieces without looking at it again and again, and none without end', async () => {
    const length = async (_method: string, { text }: { text?: unknown }) => String(text).length;
    const piece = 'x'.repeat(1024);
    const line = (count: number) => [
      '{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":"',
      ...Array.from({ length: count }, () => piece),
      '"}}\n',
    ];
    // Some 20,000 pieces; the time is that of a test, not of hours.
    assert.deepEqual(
      (await answers(line(20_000), length)).map(({ result }) => result),
      [20_480_000],
    );
    const [refused] = await answers(line(40_000), length);
    assert.match(JSON.stringify(refused), /too long/);
  });

  it('refuses what is no message, and goes on', async () => {
    const lines = [
      '{',
      '[]',
      '"x"',
      'null',
      '{"id":{},"method":"echo"}',
      '{"method":"notifications/other"}',
      '{"id":9}',
    ];
    const found = await answers([`${lines.join('\n')}\n${call(3, 'echo')}`], echo);
    assert.deepEqual(
      found.map(({ error, id }) => error?.code ?? id),
      [-32700, -32600, -32600, -32600, 3],
    );
  });

  it('runs calls side by side, and ends the one that is cancelled without an answer', async () => {
    const ended: string[] = [];
    const handle: RpcHandler = async (method, _params, { signal }) => {
      if (method === 'quick') return 'quick';
      await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
      ended.push(method);
      throw signal.reason;
    };
    const cancel = `${JSON.stringify({ method: 'notifications/cancelled', params: { requestId: 1 } })}\n`;
    const found = await answers(
      [call(1, 'slow'), call(2, 'quick'), cancel, call(1, 'quick'), call(4, 'slower')],
      handle,
    );
    assert.deepEqual(
      found.map(({ id, result }) => [id, result]),
      [
        [2, 'quick'],
        [1, 'quick'],
      ],
    );
    assert.deepEqual(ended, ['slow', 'slower']);
  });

  it('asks the other side, and takes its answer, its refusal or its end', async () => {
    const handle: RpcHandler = async (_method, _params, { peer }) =>
      peer.request('approve', {}).catch(error => error.message);
    const found = await answers(
      [call(1, 'x'), '{"id":"s1","result":true}\n', call(2, 'x'), '{"id":"s2","error":{"message":"no"}}\n'],
      handle,
    );
    assert.deepEqual(
      found.filter(({ method }) => method === undefined).map(({ result }) => result),
      [true, 'no'],
    );
  });
});
