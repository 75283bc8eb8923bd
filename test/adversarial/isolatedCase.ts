/** Carries out one case of the web tool in a network of its own; prints what was seen as one line of JSON. */
import { readFileSync } from 'node:fs';
import type { AdversarialCase } from './caseFile.ts';
import { fieldsOf } from './caseFile.ts';
import { fetchHere, serveNetwork } from './kinds/pages.ts';
import { startNameServer } from './nameServer.ts';
import { openWorld } from './world.ts';

const theCase = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as AdversarialCase;
const world = await openWorld(theCase);
await startNameServer(fieldsOf(world.input['netns'])['dns']);
const network = await serveNetwork(world.input);
const seen = await fetchHere(world, network);
await world.remove();
process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0));
