/** Carries out one case in a network of its own; prints what was seen as one line of JSON. */
import { readFileSync } from 'node:fs';
import type { AdversarialCase } from './caseFile.ts';
import { fieldsOf } from './caseFile.ts';
import { fetchHere, serveNetwork } from './kinds/pages.ts';
import { type Execute, executeFor } from './kinds.ts';
import { namesAsked, startNameServer } from './nameServer.ts';
import { openWorld } from './world.ts';

const fetchCase: Execute = async world => fetchHere(world, await serveNetwork(world.input));
const theCase = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as AdversarialCase;
const world = await openWorld(theCase);
const asked = await startNameServer(fieldsOf(world.input['netns'])['dns']);
namesAsked.add(asked);
const execute = theCase.input.kind === 'fetch_url' ? fetchCase : executeFor(theCase)!;
const seen = await execute(world, theCase);
await world.remove();
process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0));
