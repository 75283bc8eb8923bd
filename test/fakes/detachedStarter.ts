/** Starts a plan in a process of its own, as an editor does: `node detachedStarter.ts RUNNER`, with the order in its input. */
import { text } from 'node:stream/consumers';
import { runDetached } from '../../src/plans/detachedRun.ts';

await runDetached(process.argv[2] ?? '', JSON.parse(await text(process.stdin)));
