/** Carries out one case in a network of its own; prints what was seen as one line of JSON. */
import { readFileSync } from 'node:fs';
import { type CaseInput, fieldsOf } from './caseFile.ts';
import { CannotJudge } from './checks.ts';
import { fetchHere, serveNetwork } from './kinds/pages.ts';
import { type Execute, executeFor } from './kinds.ts';
import { namesAsked, startNameServer } from './nameServer.ts';
import { watched } from './witness.ts';
import { openWorld } from './world.ts';

const fetchCase: Execute = async world => fetchHere(world, await serveNetwork(world.input));
const theCase = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as CaseInput;
const world = await openWorld(theCase);
const asked = await startNameServer(fieldsOf(world.input['netns'])['dns']);
namesAsked.add(asked);
const execute = theCase.input.kind === 'fetch_url' ? fetchCase : executeFor(theCase)!;
const said = await watched(world, theCase, execute).catch((error: unknown) => {
  if (error instanceof CannotJudge) return { cannotJudge: error.message };
  throw error;
});
await world.remove();
process.stdout.write(`${JSON.stringify(said)}\n`, () => process.exit(0));
