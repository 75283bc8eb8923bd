/** A server that takes longer to start than a run waits: the run begins without it, and has its tools once it is there. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectServers, type McpServers } from '../../src/engine/mcp/servers.ts';
import { builtinTools } from '../../src/engine/tools/builtin.ts';
import { until } from '../eventually.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const fake = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const never = new AbortController().signal;

describe('an MCP server that is late', () => {
  let folder: TempFolder;
  let opened: McpServers | undefined;
  beforeEach(() => {
    folder = tempFolder({ 'pack/.keep': '' });
    const server = (fault: string) => ({
      command: process.execPath,
      args: [fake, fault, join(folder.path, fault)],
    });
    folder.add({
      'pack/mcp.json': JSON.stringify({ mcpServers: { slow: server('late'), quick: server('slow') } }),
    });
  });
  afterEach(async () => {
    await opened?.close();
    folder.remove();
  });

  const start = (): void => writeFileSync(join(folder.path, 'late.go'), '');
  const names = (): string[] =>
    opened!
      .merged()
      .tools.slice(builtinTools.length)
      .map(({ definition }) => definition.name);
  const mcpConfig = (): string => join(folder.path, 'pack/mcp.json');

  async function connect(signal = never): Promise<McpServers> {
    const agent = { name: 'pack', mcpConfig: mcpConfig(), packDir: join(folder.path, 'pack') };
    const config = { env: {}, home: '/nowhere', dataDir: folder.path };
    const limits = { connectMs: 30_000, callMs: 8_000, longestCallMs: 60_000 };
    // The quick one has as long as it needs: no clock decides.
    const quick = () =>
      existsSync(join(folder.path, 'slow')) &&
      readFileSync(join(folder.path, 'slow'), 'utf8').includes('tools/list');
    const env = { PATH: process.env['PATH'] ?? '' };
    opened = await connectServers(config, agent, builtinTools, env, signal, { limits, patienceMs: 4_000 });
    await until(quick);
    return opened;
  }

  it('keeps no other from its run, and joins it', async () => {
    const servers = await connect();
    assert.deepEqual([names(), servers.late(), servers.problems], [['slow'], ['slow'], []]);
    start();
    await servers.arrived();
    assert.deepEqual(servers.late(), []);
    assert.ok(names().includes('say'));
  });

  it('is ended with its run, also while it starts', async () => {
    const servers = await connect();
    await servers.close();
    assert.deepEqual(servers.late(), []);
    const pid = Number(JSON.parse(readFileSync(join(folder.path, 'late'), 'utf8').split('\n')[0]!).pids[0]);
    await until(() => {
      try {
        return !process.kill(pid, 0);
      } catch {
        return true;
      }
    });
  });
});
