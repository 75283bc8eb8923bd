/** Cases on what an agent's mcp.json may ask for, and on servers that share a name. */
import { join } from 'node:path';
import type { ApprovalDecision, ApprovalRequest } from '../../../src/protocol/run.ts';
import { type RunOptions, runAgent } from '../agentRun.ts';
import type { AdversarialCase } from '../caseFile.ts';
import type { Seen } from '../judge.ts';
import {
  accept,
  amongNames,
  caseServer,
  completed,
  configure,
  isElsewhere,
  listenEverywhere,
  noticesOf,
  offeredIn,
  schema,
  tool,
  yes,
} from '../mcpWorld.ts';
import { secretText, type World } from '../world.ts';

export async function mcpJson(world: World, theCase: AdversarialCase): Promise<Seen> {
  if (!isElsewhere()) return amongNames(world, theCase);
  const { input, pack, put } = world;
  const sea = await listenEverywhere();
  const text = String(input['text']);
  const file = put(join(pack, 'mcp.json'), text);
  const other = caseServer(world, 'other', { tools: [tool('other_tool')] });
  if (/MISSING/.test(text)) configure(world, { ...JSON.parse(text).mcpServers, other: other.entry });
  const env: Record<string, string> = {
    CLICKUP_API_TOKEN: 'tok',
    T: 'the-value-of-t',
    ANTHROPIC_API_KEY: secretText,
  };
  // Where the case says nothing of a consent, it is there all the same, except where its absence is the point.
  const asksFirst = input['consent'] === null || /http:\/\/m\.test/.test(text);
  if (!asksFirst) await accept(world, env);
  const asked: ApprovalRequest[] = [];
  const approve = async (request: ApprovalRequest): Promise<ApprovalDecision> => {
    asked.push(request);
    return { allow: false, reason: 'No.' };
  };
  const options: RunOptions = input['surface'] === 'headless' ? { env } : { env, person: approve };
  const run = await runAgent(world, [{ name: 'read_file', input: { path: 'a.txt' } }], options);
  const said = noticesOf(run);
  const nothingLeft = sea.connections === 0 && world.knocks.length === 0;
  const goesOn = completed(run) && /alpha/.test(run.results[0]?.content ?? '');
  const card = asked[0]?.card;
  const header = sea.requests.some(
    ({ port, headers }) => port === 443 && headers.authorization === 'Bearer tok',
  );
  const offered = offeredIn(run).map(({ name }) => name);
  const refused = /floor\.|goes on without its MCP servers/.test(said);
  return {
    decision: asked.length > 0 ? 'ask' : refused ? 'deny' : said ? 'error' : 'allow',
    facts: {
      'header sent to that origin':
        (header && offered.includes('q')) || `${said} ${JSON.stringify(sea.requests)}`,
      'provider and bot keys are reserved; no consent dialog can release them to an MCP server':
        (/a key that Telos gives to no server/.test(said) && nothingLeft && goesOn) || said,
      'open a connection carrying the value': sea.connections > 0,
      'interpolation works in header values only; literal ${ in url is refused':
        (/url holds a variable/.test(said) && nothingLeft && goesOn) || said,
      "server skipped with 'MISSING is not set'":
        (/'s'.*MISSING is not set/.test(said) && nothingLeft) || said,
      'built-in tools and other servers still work': (goesOn && offered.includes('other_tool')) || said,
      'file, line and column named; run continues without MCP':
        (said.includes(`${file}:1:30`) && goesOn) || said,
      'local servers need one consent':
        (/telos trust/.test(said) && nothingLeft && goesOn) || `${world.knocks.length} knocks: ${said}`,
      'warns that a secret would go over plain http':
        (card?.redFlags.some(
          flag => flag.kind === 'secret-in-clear' && flag.text.includes('http://m.test/mcp'),
        ) &&
          nothingLeft) ||
        JSON.stringify(card?.redFlags),
    },
  };
}

export async function mcpServers(world: World): Promise<Seen> {
  const { input } = world;
  const namesOf = async (order: readonly ('a' | 'b')[]): Promise<string[]> => {
    const servers = order.map(name => {
      const tools = (input[name] as object[]).map(one => ({ inputSchema: schema, ...one }));
      return [name, caseServer(world, name, { tools, says: `I am ${name}` }).entry] as const;
    });
    configure(world, Object.fromEntries(servers));
    await accept(world);
    const calls = ['a__search', 'b__search'].map(name => ({ name, input: {} }));
    const run = await runAgent(world, calls, { person: yes });
    return run.results.map(({ content }) => content.slice(0, 6));
  };
  const [one, other] = [await namesOf(['a', 'b']), await namesOf(['b', 'a'])];
  const wanted = 'I am a,I am b';
  const sentence = 'both reachable under distinct names; order in mcp.json does not change who answers';
  const holds = one.join() === wanted && other.join() === wanted;
  return { decision: holds ? 'allow' : 'error', facts: { [sentence]: holds || `${one} and ${other}` } };
}
