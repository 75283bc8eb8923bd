/** Ten megabytes from every tool: what of it reaches the model, and whether the model is told how much there was. */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ToolResultBlock } from '../../src/protocol/run.ts';
import { calls, done, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { type EngineWorld, endOf, engineWorld, eventsOf, ofType } from './engineWorld.ts';
import type { Extent, Figure } from './figure.ts';

const large = 10 * 1024 * 1024;
const mostForModel = 64 * 1024;
const longName = 200;
const fault = fileURLToPath(new URL('mcpFaultServer.ts', import.meta.url));

interface LargeCall {
  label: string;
  tool: string;
  input: Readonly<Record<string, unknown>>;
  /** The whole size, as the model must be told. */
  size: number;
}

export async function largeResultFigures(extent: Extent): Promise<Figure[]> {
  const line = 'needle in a line of some length, again and again\n';
  const big = line.repeat(Math.ceil(large / line.length)).slice(0, large);
  const quarter = line.repeat(Math.ceil(large / 4 / line.length));
  const world = engineWorld({
    'work/big.txt': big,
    // Larger files are not searched.
    ...Object.fromEntries([1, 2, 3, 4].map(part => [`work/parts/${part}.txt`, quarter])),
    'skills/kairos/mcp.json': JSON.stringify({
      mcpServers: { faults: { command: process.execPath, args: [fault] } },
    }),
  });
  const names = extent === 'whole' ? Math.ceil(large / longName) : 3000;
  addNames(world, names);
  const server = createServer((request, response) => {
    const length = request.url === '/told' ? { 'content-length': String(large) } : {};
    response.writeHead(200, { 'content-type': 'text/plain', ...length });
    response.end(big);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const lines = Math.ceil(large / 4 / line.length) * 4;
  try {
    return await resultsOf(world, [
      { label: 'read_file', tool: 'read_file', input: { path: 'big.txt' }, size: large },
      {
        label: 'run_command',
        tool: 'run_command',
        input: { command: `head -c ${large} /dev/zero | tr '\\0' c` },
        size: large,
      },
      {
        label: 'run_command, to stderr',
        tool: 'run_command',
        input: { command: `head -c ${large} /dev/zero | tr '\\0' e >&2` },
        size: large,
      },
      {
        label: 'run_command that only looks',
        tool: 'run_command',
        input: { command: `cat ${join(world.workDir, 'big.txt')}` },
        size: large,
      },
      { label: 'fetch_url', tool: 'fetch_url', input: { url: `${url}/told` }, size: large },
      { label: 'list_directory', tool: 'list_directory', input: { path: 'names' }, size: names },
      {
        label: 'search_files',
        tool: 'search_files',
        input: { pattern: 'needle', path: 'parts' },
        size: lines,
      },
      { label: 'glob', tool: 'glob', input: { pattern: 'names/*' }, size: names },
      { label: 'an MCP tool', tool: 'large', input: { bytes: large }, size: large },
      { label: 'write_file', tool: 'write_file', input: { path: 'new.txt', content: big }, size: large },
    ]);
  } finally {
    server.close();
    server.closeAllConnections();
    world.remove();
  }
}

/** Files whose names together are as long as the other results. */
function addNames({ workDir }: EngineWorld, count: number): void {
  const folder = join(workDir, 'names');
  mkdirSync(folder);
  for (let index = 0; index < count; index++) {
    const hash = createHash('sha256').update(String(index)).digest('hex');
    writeFileSync(join(folder, hash.repeat(4).slice(0, longName)), '');
  }
}

async function resultsOf(world: EngineWorld, wanted: readonly LargeCall[]): Promise<Figure[]> {
  const provider = scriptedProvider([
    ...wanted.map(({ tool, input }, index) => [calls(`c${index}`, tool, input), done('tool_use')]),
    [says('Done.'), done()],
  ]);
  const events = await eventsOf(
    world.open(() => provider),
    'large',
  );
  const end = endOf(events);
  if (end.outcome !== 'completed') throw new Error(`The run ended as ${end.outcome}: ${end.error?.message}`);
  const blocks = end.messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.filter((block): block is ToolResultBlock => block.type === 'tool_result'),
  );
  const shown = new Map(blocks.map(block => [block.tool_use_id, textOf(block)]));
  const notices = ofType(events, 'notice').map(notice => notice.message);
  return wanted.map(({ label, size }, index) => {
    const text = shown.get(`c${index}`) ?? '';
    const bytes = Buffer.byteLength(text);
    const told = text.replaceAll(',', '').includes(String(size));
    const why = told ? 'told' : `not told: ${JSON.stringify(text.slice(-160))} ${notices.join(' ')}`;
    return {
      name: `10 MB from ${label}`,
      value: `${bytes} bytes for the model, of ${size} in all (${why})`,
      limit: 'at most 64 KiB, with the exact size',
      met: bytes <= mostForModel && told,
    };
  });
}

const textOf = ({ content }: ToolResultBlock): string =>
  typeof content === 'string'
    ? content
    : content.map(part => (part.type === 'text' ? part.text : '')).join('');
