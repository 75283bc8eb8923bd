/** What is left in memory of the servers of runs that have ended, counted in objects. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { loadConfig } from '../../src/engine/config.ts';
import { allowAll } from '../../src/engine/human.ts';
import { RenewableServer } from '../../src/engine/mcp/renewableServer.ts';
import { Client, StdioClientTransport } from '../../src/engine/mcp/sdk.ts';
import { Telos } from '../../src/engine/telos.ts';
import { calls, done, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

const fake = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const kinds = { RenewableServer, Client, StdioClientTransport };

/** At night as many as show whether memory grows too. */
const runs = process.env['TELOS_NIGHTLY'] === '1' ? 300 : 6;

/** Returns how many objects of each kind are still in use. */
async function inUse(): Promise<Record<string, number>> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 3; round++) {
    collect();
    await wait(20);
  }
  return Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => [name, Number(queryObjects(kind as never))]),
  );
}

describe('the servers of runs that have ended', () => {
  it('are let go, however many runs one engine and one signal have', async function () {
    this.timeout(60_000 + runs * 5_000);
    const folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/mcp.json': JSON.stringify({
        mcpServers: { beds: { command: process.execPath, args: [fake] } },
      }),
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows the beds\n---\nSow.',
    });
    try {
      const config = loadConfig({
        env: {
          PATH: process.env['PATH'],
          TELOS_SKILLS_DIR: join(folder.path, 'skills'),
          TELOS_DATA_DIR: join(folder.path, 'data'),
          TELOS_CONFIG_DIR: join(folder.path, 'config'),
          TELOS_PROVIDER: 'scripted',
        },
        home: join(folder.path, 'home'),
        cwd: join(folder.path, 'work'),
      });
      const create = async () =>
        scriptedProvider([
          [calls('1', 'say', { text: 'hello' }), done('tool_use')],
          [says('Done.'), done()],
        ]);
      const telos = Telos.open(config, {
        providers: { scripted: { model: async () => 'script', create } },
      });
      await telos.acceptCard(await telos.agentCard('garden'));
      const { signal } = new AbortController();
      const request = { text: 'sow', skill: { agent: 'garden', skill: 'sow' } };
      const before = await inUse();
      let heap = 0;
      for (let run = 0; run < runs; run++) {
        let said = '';
        for await (const event of telos.run(request, allowAll, signal))
          if (event.type === 'tool_end') said = event.result.content;
        equal(said, 'hello');
        if (run + 1 !== Math.floor(runs / 3)) continue;
        deepEqual(await inUse(), before);
        heap = process.memoryUsage().heapUsed;
      }
      deepEqual(await inUse(), before);
      const now = process.memoryUsage().heapUsed;
      ok(runs < 300 || now < 1.1 * heap, `${heap} bytes after a third of the runs, ${now} at the end`);
    } finally {
      folder.remove();
    }
  });
});
