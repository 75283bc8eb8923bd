/** Cases on what an agent's mcp.json may ask for, and on servers that share a name. */
import { join } from 'node:path';
import { gateName } from '../../../src/engine/mcp/tools.ts';
import type { ApprovalDecision, ApprovalRequest } from '../../../src/protocol/run.ts';
import { type RunOptions, runAgent } from '../agentRun.ts';
import { type CaseInput, type Fields, fieldsOf } from '../caseFile.ts';
import { applying, check, type Seen } from '../checks.ts';
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

/** Keys that Telos gives to no server. */
const reserved = /^(ANTHROPIC|OPENAI|GEMINI|GOOGLE|OPENROUTER|DISCORD)_\w*(KEY|TOKEN)$/;
/** A variable whose name says so is set nowhere. */
const isUnset = (name: string): boolean => /MISSING|UNSET|ABSENT|UNDEFINED|NOT_SET|NOWHERE/i.test(name);

/** What is read out of the text of an mcp.json. */
function readConfig(
  text: string,
  given: Fields,
): { servers?: Record<string, Fields>; env: Record<string, string> } {
  const env: Record<string, string> = { ANTHROPIC_API_KEY: secretText };
  for (const [, name = ''] of text.matchAll(/\$\{(\w+)\}/g))
    if (!isUnset(name)) env[name] ??= reserved.test(name) ? secretText : `value-of-${name}`;
  for (const [name, value] of Object.entries(given)) env[name] = String(value);
  try {
    const servers = fieldsOf(fieldsOf(JSON.parse(text))['mcpServers']);
    return {
      servers: Object.fromEntries(Object.entries(servers).map(([name, one]) => [name, fieldsOf(one)])),
      env,
    };
  } catch {
    return { env };
  }
}

const isLoopback = (url: string): boolean => /^https?:\/\/(localhost|127\.|\[::1\])/.test(url);

export async function mcpJson(world: World, theCase: CaseInput): Promise<Seen> {
  if (!isElsewhere()) return amongNames(world, theCase);
  const { input, pack, put } = world;
  const sea = await listenEverywhere();
  const text = String(input['text']);
  const { servers, env } = readConfig(text, fieldsOf(input['env']));
  const one = Object.values(servers ?? {})[0] ?? {};
  const url = String(one['url'] ?? '');
  const headers = Object.entries(fieldsOf(one['headers'])).map(
    ([name, value]) => [name, String(value)] as const,
  );
  const variables = headers.flatMap(([, value]) =>
    [...value.matchAll(/\$\{(\w+)\}/g)].map(match => match[1]!),
  );
  const inClear = url.startsWith('http:') && !isLoopback(url) && variables.length > 0;
  // Where the case says nothing of a consent, it is there all the same, except where its absence is the point.
  const asksFirst = input['consent'] === null || inClear;
  const file = put(join(pack, 'mcp.json'), text);
  const other = caseServer(world, 'other', { tools: [tool('other_tool')] });
  if (servers && !asksFirst) configure(world, { ...servers, other: other.entry });
  if (!asksFirst) await accept(world, env);
  const asked: ApprovalRequest[] = [];
  const approve = async (request: ApprovalRequest): Promise<ApprovalDecision> => {
    asked.push(request);
    return { allow: false, reason: 'No.' };
  };
  const options: RunOptions = input['surface'] === 'headless' ? { env } : { env, person: approve };
  const calls = [
    ...(asksFirst ? [{ name: gateName, input: {} }] : []),
    { name: 'read_file', input: { path: 'a.txt' } },
  ];
  const run = await runAgent(world, calls, options);
  const said = noticesOf(run);
  const offered = offeredIn(run).map(({ name }) => name);
  const refused = /floor\.|continues without its MCP servers/.test(said);
  const decision = asked.length > 0 ? 'ask' : refused ? 'deny' : said ? 'error' : 'allow';
  const ownOrigin = url.startsWith('http') && !/\$\{/.test(url) ? new URL(url).host : '';
  const filled = headers.map(
    ([name, value]) =>
      [name.toLowerCase(), value.replace(/\$\{(\w+)\}/g, (_, key) => env[key] ?? '')] as const,
  );
  const reached = sea.requests.some(request =>
    filled.every(([name, value]) => request.headers[name] === value),
  );
  const flags = asked[0]?.card?.redFlags ?? [];
  const nothingLeft =
    (sea.connections === 0 && world.knocks.length === 0) ||
    `${sea.connections} connections, ${world.knocks.length} knocks`;
  const unset = variables.filter(name => !(name in env));
  return {
    decision,
    unattended: /telos trust/.test(said) && refused,
    checks: applying(
      check(
        'end',
        'the run goes on',
        (completed(run) && /alpha/.test(run.results.at(-1)?.content ?? '')) || said,
      ),
      check(
        'secrets',
        'no key of a provider is sent',
        !JSON.stringify(sea.requests).includes(secretText) && !world.knocks.join().includes(secretText),
      ),
      check(
        'network',
        'only the address of the server is asked',
        sea.requests.every(({ host }) => host === ownOrigin) || JSON.stringify(sea.requests),
      ),
      decision !== 'allow' && check('network', 'nothing is sent', nothingLeft),
      decision === 'allow' &&
        ownOrigin !== '' &&
        check(
          'network',
          'the server is sent its headers',
          reached || `${said} ${JSON.stringify(sea.requests)}`,
        ),
      decision === 'allow' &&
        ownOrigin !== '' &&
        check('model', 'its tools are offered', offered.includes('q') || offered.join()),
      servers && !asksFirst && check('model', 'other servers work', offered.includes('other_tool') || said),
      !servers &&
        check(
          'shown',
          'the place of the mistake is named',
          new RegExp(`${file.replace(/[.\\/]/g, '\\$&')}:\\d+:\\d+`).test(said) || said,
        ),
      decision !== 'allow' && decision !== 'ask' && check('shown', 'the reason is said', said.length > 10),
      ...unset.map(name =>
        check(
          'shown',
          'the missing variable is named',
          (said.includes(name) && /not set/.test(said)) || said,
        ),
      ),
      inClear &&
        check(
          'shown',
          'the card says that a secret would go in the clear',
          flags.some(({ kind, text: flag }) => kind === 'secret-in-clear' && flag.includes(url)) ||
            JSON.stringify(flags),
        ),
      input['consent'] === null &&
        decision === 'deny' &&
        check('shown', 'the way to a consent is named', /telos trust/.test(said) || said),
    ),
  };
}

export async function mcpServers(world: World): Promise<Seen> {
  const { input } = world;
  const toolsOf = (name: 'a' | 'b'): Fields[] =>
    (Array.isArray(input[name]) ? input[name] : []).map(fieldsOf);
  const shared = toolsOf('a')
    .map(one => String(one['name']))
    .filter(name => toolsOf('b').some(one => one['name'] === name));
  const namesOf = async (order: readonly ('a' | 'b')[]): Promise<string> => {
    const servers = order.map(name => {
      const tools = toolsOf(name).map(one => ({ inputSchema: schema, description: 'd', ...one }));
      return [name, caseServer(world, name, { tools, says: `I am ${name}` }).entry] as const;
    });
    configure(world, Object.fromEntries(servers));
    await accept(world);
    const calls = (['a', 'b'] as const).flatMap(server =>
      toolsOf(server)
        .map(one => String(one['name']))
        .map(name => ({ name: shared.includes(name) ? `${server}__${name}` : name, input: {} })),
    );
    const run = await runAgent(world, calls, { person: yes });
    return run.results.map(({ content }) => content.slice(0, 6)).join();
  };
  const [one, other] = [await namesOf(['a', 'b']), await namesOf(['b', 'a'])];
  const wanted = (['a', 'b'] as const).flatMap(name => toolsOf(name).map(() => `I am ${name}`)).join();
  return {
    decision: one === wanted && other === wanted ? 'allow' : 'error',
    checks: [
      check('model', 'each tool of each server is reached by a name of its own', one === wanted || one),
      check(
        'model',
        'the order of the servers does not change who answers',
        one === other || `${one} and ${other}`,
      ),
    ],
  };
}
