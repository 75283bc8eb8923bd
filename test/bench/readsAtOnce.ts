/**
 * A turn of the built command line that reads sixteen web pages, each of which takes a while: how many it reads at the same time, whether
 * their results stand in order, and how long it takes beside a loop that reads eight at a time.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { inLanes } from '../faults/figure.ts';
import { alternate, type Figure, median, runOnce, type Side } from './measure.ts';

const pages = 16;
const pageMs = 150;
/** What a run may read at the same time. */
export const mostAtOnce = 8;

export interface ReadsAtOnce {
  /** From the model's answer to the next request. */
  ms: number[];
  /** The same pages, read by a loop. */
  bareMs: number[];
  /** Most that the command line has read at the same time. */
  most: number;
  /** The pages in the order of the results that the model was sent. */
  order: string[];
}

/** Measures it `times` times with a command line that runs a skill of `agent`, whose model is at the address; `config` is its configuration folder. */
export async function readsAtOnce(
  sideAt: (url: string) => Side,
  { agent, config, times }: { agent: string; config: string; times: number },
): Promise<ReadsAtOnce> {
  const site = await slowSite();
  const toolCalls = Array.from({ length: pages }, (_, page) => ({
    name: 'fetch_url',
    input: { url: `${site.url}/${page}` },
  }));
  const server = await startAnthropicServer({
    turns: (_request, index) => (index % 2 === 0 ? { toolCalls } : { text: ['Read.'] }),
  });
  mkdirSync(config, { recursive: true });
  const host = new URL(site.url).host;
  writeFileSync(
    join(config, 'policy.toml'),
    `[[allow]]\nagent = "${agent}"\ntool = "fetch_url"\nhost = "${host}"\n`,
  );
  const { env, ...side } = sideAt(server.url);
  try {
    const once = async (): Promise<number> => {
      await runOnce({ ...side, env: { ...env, TELOS_CONFIG_DIR: config } });
      const [asked, next] = server.requests.slice(-2);
      return (next?.arrivedAt ?? Number.NaN) - (asked?.arrivedAt ?? Number.NaN);
    };
    const bare = async (): Promise<number> => {
      const start = performance.now();
      await inLanes(toolCalls, mostAtOnce, async ({ input }) => {
        await (await fetch(input.url)).text();
      });
      return performance.now() - start;
    };
    site.forget();
    await once();
    const most = site.most();
    const measured = await alternate(times, once, bare);
    const said = JSON.stringify(server.requests.at(-1)?.body.messages);
    const order = [...said.matchAll(/The words of page (\d+)\./g)].map(([, page]) => page!);
    return { ms: measured.ours, bareMs: measured.bare, most, order };
  } finally {
    await server.close();
    site.close();
  }
}

/** Serves pages, of which a later one takes less long, so that the answers come in another order than they are asked for. */
async function slowSite() {
  let open = 0;
  let most = 0;
  const server = createServer(({ url = '' }, response) => {
    most = Math.max(most, ++open);
    const page = Number(url.slice(1));
    setTimeout(() => {
      open--;
      response.end(`The words of page ${page}.\n`);
    }, pageMs - page);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    most: () => most,
    forget: () => {
      most = 0;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Returns what is measured as a figure. Throws if more was read at the same time than may be, or in another order. */
export function readsFigure({ ms, bareMs, most, order }: ReadsAtOnce): Figure {
  if (most > mostAtOnce) throw new Error(`${most} pages were read at the same time.`);
  const asked = Array.from({ length: pages }, (_, page) => String(page));
  if (order.join() !== asked.join()) throw new Error(`The results are those of ${order.join()}.`);
  const name = `${pages} reads of one turn, ${most} at a time`;
  return { name, unit: 'ms', ours: median(ms), bare: median(bareMs), limit: 1.5 };
}
