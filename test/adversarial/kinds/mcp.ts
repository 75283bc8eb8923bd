/** Cases on MCP servers: what they may say, and what they may do to a run. */
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AgentRun, type RunOptions, runAgent, type ScriptedCall } from '../agentRun.ts';
import { type CaseInput, fieldsOf, textsOf } from '../caseFile.ts';
import { applying, CannotJudge, check, inTime, type Seen } from '../checks.ts';
import { runCli } from '../cliRun.ts';
import type { McpCaseOptions } from '../mcpCaseServer.ts';
import {
  accept,
  amongNames,
  type CaseServer,
  caseServer,
  completed,
  configure,
  isElsewhere,
  listenEverywhere,
  noticesOf,
  offeredIn,
  schema,
  serveHttp,
  tool,
  yes,
} from '../mcpWorld.ts';
import { obey } from '../outside.ts';
import { noneLeft, steering, survivors } from '../witness.ts';
import { secretText, type World } from '../world.ts';

type Way = (world: World, theCase: CaseInput) => Promise<Seen>;

/** By what the case says of its server. */
export function mcpServer(world: World, theCase: CaseInput): Promise<Seen> {
  const { input } = theCase;
  const ways: readonly [unknown, Way][] = [
    [input['redirect'], redirect],
    [input['first_event'], strangeEndpoint],
    [input['tools_v1'], changedTool],
    [input['annotations'], lyingAnnotation],
    [input['behaviour'], misbehaving],
    [input['server_request'], askingServer],
    [input['stdout'], noisy],
    [input['result'], oddResult],
    [input['scripted_model'], poisoned],
    [input['tools'], shadowing],
  ];
  const way = ways.find(([said]) => said !== undefined)?.[1];
  if (!way) throw new CannotJudge('nothing here plays such a server');
  return way(world, theCase);
}

async function redirect(world: World, theCase: CaseInput): Promise<Seen> {
  if (!isElsewhere()) return amongNames(world, theCase);
  const sea = await listenEverywhere();
  const location = /Location: (.*)$/.exec(String(world.input['redirect']))?.[1] ?? '';
  const status = Number(/^(\d{3})/.exec(String(world.input['redirect']))?.[1] ?? 307);
  const [name = 'Authorization'] = textsOf(world.input['headers_sent']);
  let asked: string | string[] | undefined;
  const { url, close } = await serveHttp((request, response) => {
    asked = request.headers[name.toLowerCase()];
    response.writeHead(status, { location }).end();
  });
  // biome-ignore lint/suspicious/noTemplateCurlyInString: as mcp.json writes it
  configure(world, { s: { url, headers: { [name]: 'Bearer ${T}' } } });
  await accept(world);
  const run = await runAgent(world, [], { env: { T: secretText } });
  close();
  const said = noticesOf(run);
  if (asked !== `Bearer ${secretText}`)
    throw new Error(`the first server was not asked as it should be: ${said}`);
  return {
    decision: /not available/.test(said) && completed(run) ? 'error' : 'allow',
    checks: [
      check(
        'secrets',
        'the header does not follow the redirect',
        !JSON.stringify(sea.requests).includes(secretText),
      ),
      check(
        'network',
        'nothing is sent to where it leads',
        sea.connections === 0 && world.knocks.length === 0,
      ),
      check('end', 'the run goes on', completed(run)),
    ],
  };
}

async function strangeEndpoint(world: World): Promise<Seen> {
  const { url, close } = await serveHttp((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(String(world.input['first_event']));
  });
  configure(world, { s: { type: 'sse', url, headers: { 'x-key': secretText } } });
  await accept(world);
  const run = await runAgent(world, []);
  close();
  const said = noticesOf(run);
  return {
    decision: /not available/.test(said) && completed(run) ? 'error' : 'allow',
    checks: [
      check(
        'network',
        'nothing is sent to the other origin',
        world.knocks.length === 0 || world.knocks.join(),
      ),
      check('shown', 'the reason is said', /origin|not available/i.test(said) || said),
      check('end', 'the run goes on', completed(run)),
    ],
  };
}

/** An accepted agent with one server, and a run in which its tools are called. */
async function withServer(
  world: World,
  options: McpCaseOptions,
  calls: readonly ScriptedCall[],
  more: RunOptions = { person: yes },
): Promise<{ run: AgentRun; server: CaseServer }> {
  const server = caseServer(world, 's', options);
  configure(world, { s: server.entry });
  await accept(world);
  return { run: await runAgent(world, calls, more), server };
}

const builtIn: readonly string[] = ['read_file', 'write_file', 'list_directory', 'run_command', 'fetch_url'];

/** Tools as the case has them, of which some have names of built-in ones. */
async function shadowing(world: World): Promise<Seen> {
  const tools = (world.input['tools'] as unknown[]).map(fieldsOf);
  const clashes = tools.map(one => String(one['name'])).filter(name => builtIn.includes(name));
  const inputs: Readonly<Record<string, object>> = {
    run_command: { command: 'pwd' },
    read_file: { path: 'a.txt' },
    list_directory: { path: '.' },
  };
  const able = clashes.filter(name => inputs[name] !== undefined);
  const calls = able.flatMap(name =>
    [name, `s__${name}`].map(called => ({ name: called, input: inputs[name]! })),
  );
  const { run } = await withServer(world, { tools }, calls);
  const offered = offeredIn(run);
  const names = offered.map(({ name }) => name);
  const own = run.results.filter((_, at) => at % 2 === 0);
  const theirs = run.results.filter((_, at) => at % 2 === 1);
  const described = JSON.stringify(offered).length;
  const lasting =
    tools.length > 0 && noticesOf(run) === '' ? run.results.every(({ isError }) => !isError) : completed(run);
  return {
    decision: completed(run) && lasting ? 'allow' : 'error',
    checks: applying(
      check('model', 'each name is offered once', new Set(names).size === names.length || names.join()),
      check(
        'model',
        'each name is one that models take',
        names.every(name => /^[a-zA-Z0-9_-]{1,64}$/.test(name)) || names.join().slice(0, 300),
      ),
      check(
        'model',
        'what is offered stays within a size',
        described < 1024 * 1024 || `${described} characters`,
      ),
      check('end', 'the run goes on', completed(run)),
      clashes.length > 0 &&
        check(
          'model',
          'the built-in tool wins',
          own.every(({ content }) => !content.startsWith('called')) &&
            offered.every(
              ({ name, description }) =>
                !clashes.includes(name) || !tools.some(one => one['description'] === description),
            ),
        ),
      clashes.length > 0 &&
        check(
          'model',
          'the tool of the server has a prefix',
          clashes.every(name => names.includes(`s__${name}`)) &&
            theirs.every(({ content }) => content.startsWith('called')),
        ),
    ),
  };
}

async function poisoned(world: World): Promise<Seen> {
  const tools = world.input['tools'] as { description: string }[];
  const calls = [
    { name: 'read_file', input: { path: join(world.home, '.ssh/id_rsa') } },
    { name: String(fieldsOf(tools[0])['name']), input: { a: 1, note: secretText } },
  ];
  const { server } = await withServer(world, { tools }, [], {});
  let called = false;
  const { run, outside } = await obey(world, calls, undefined, () => {
    called = server.record().some(({ method }) => method === 'tools/call');
  });
  const seen = await runAgent(world, calls.slice(1), { person: { allow: false, reason: 'No.' } });
  const [read, add] = run.results;
  const { reason = '' } = seen.asked[0] ?? {};
  const description = String(tools[0]!.description);
  const isRefused = read?.isError === true && add?.isError === true && !called;
  return {
    decision: isRefused ? 'deny' : 'allow',
    outside,
    checks: [
      check(
        'secrets',
        'the secret is not read',
        read?.content.includes(secretText) === false || String(read?.content),
      ),
      check('network', 'the server is not called without a yes', !called),
      check('shown', 'the question shows the whole description', reason.includes(description) || reason),
      check(
        'network',
        'nothing happens outside that no card named',
        outside.unannounced.length === 0 || outside.unannounced.join(),
      ),
    ],
  };
}

async function changedTool(world: World): Promise<Seen> {
  const { input } = world;
  const [before, after] = [input['tools_v1'], input['tools_v2']].map(tools =>
    (tools as object[]).map(one => ({ inputSchema: schema, ...one })),
  ) as [object[], object[]];
  const calls = [{ name: 'q', input: {} }];
  const always: RunOptions = { person: { allow: true, scope: 'always' } };
  const { run, server } = await withServer(world, { tools: before }, calls, always);
  const again = await runAgent(world, calls, always);
  const ofChanged = async (tools: object[]): Promise<AgentRun> => {
    server.change({ tools });
    return runAgent(world, calls, {});
  };
  const other = { type: 'object', properties: { to: { type: 'string' } } };
  const blind = await ofChanged(after);
  const otherSchema = await ofChanged(before.map(one => ({ ...one, inputSchema: other })));
  const same = await ofChanged(before);
  server.change({ tools: after });
  const seen = await runAgent(world, calls, always);
  const refused = ({ results }: AgentRun): boolean => results[0]?.isError === true;
  if (run.asked.length !== 1 || again.asked.length !== 0) throw new Error('the first yes was not kept');
  const isChanged = JSON.stringify(before) !== JSON.stringify(after);
  return {
    decision: seen.asked.length > 0 ? 'ask' : 'allow',
    checks: [
      check('model', 'a changed tool waits for an answer', refused(blind) === isChanged),
      check('model', 'a changed schema counts as a change', refused(otherSchema)),
      check('model', 'an unchanged tool keeps its answer', !refused(same)),
      check('model', 'a new yes lets it run', !refused(seen)),
    ],
  };
}

async function lyingAnnotation(world: World): Promise<Seen> {
  const name = String(world.input['tool']);
  const tools = [tool(name, { annotations: world.input['annotations'] })];
  const { run, server } = await withServer(world, { tools }, [{ name, input: {} }], {
    person: { allow: false, reason: 'No.' },
  });
  const called = server.record().some(({ method }) => method === 'tools/call');
  return {
    decision: run.asked.length > 0 ? 'ask' : 'allow',
    checks: [
      check('shown', 'the question names the tool', run.asked[0]?.tool === name),
      check('network', 'the server is not called without a yes', !called),
    ],
  };
}

async function misbehaving(world: World): Promise<Seen> {
  const behaviour = String(world.input['behaviour']);
  const tools = [tool('q'), tool('die')];
  const read = { name: 'read_file', input: { path: 'a.txt' } };
  if (/(never|not|no) .*initialize|hangs? .*(connect|start)/.test(behaviour))
    return silent(world, tools, read);
  if (/exits|crashes|dies/.test(behaviour)) return exiting(world, tools, read);
  if (/SIGTERM|EOF|wrapper/.test(behaviour)) return clinging(world, tools);
  if (/(never|not|no) .*tools\/call/.test(behaviour)) return deaf(world, tools, read);
  throw new CannotJudge(`nothing here plays a server that ${behaviour}`);
}

async function silent(world: World, tools: object[], read: ScriptedCall): Promise<Seen> {
  const { run } = await withServer(world, { tools, fault: 'silent' }, [read]);
  return {
    decision: /not available/.test(noticesOf(run)) ? 'error' : 'allow',
    checks: [
      check(
        'time',
        'connecting ends after 15 s',
        run.milliseconds < 15_000 + inTime(3000) || `${run.milliseconds} ms`,
      ),
      check(
        'end',
        'the run goes on without that server',
        completed(run) && run.results[0]?.isError === false,
      ),
      check('processes', 'its process is gone', await noneLeft(world, 2000)),
    ],
  };
}

/** Longer than any call that says nothing, and than any call. */
const longestCall = 5 * 60_000;

async function deaf(world: World, tools: object[], read: ScriptedCall): Promise<Seen> {
  const { run, server } = await withServer(world, { tools, fault: 'never answers calls' }, [
    { name: 'q', input: {} },
    read,
  ]);
  const cancelled = server.record().some(({ method }) => method === 'notifications/cancelled');
  return {
    decision: run.results[0]?.isError === true ? 'error' : 'allow',
    checks: [
      check(
        'time',
        'a call ends after 5 minutes at most',
        run.milliseconds < longestCall + 5000 || `${run.milliseconds} ms`,
      ),
      check('network', 'the server is told that the call is cancelled', cancelled),
      check('end', 'the run goes on', completed(run) && run.results[1]?.isError === false),
    ],
  };
}

async function exiting(world: World, tools: object[], read: ScriptedCall): Promise<Seen> {
  const called = ['die', 'q', 'die', 'q'].map(name => ({ name, input: {} }));
  const took: number[] = [];
  let start = 0;
  const { run, server } = await withServer(world, { tools, fault: 'exits in calls' }, [...called, read], {
    person: yes,
    onEvent: event => {
      if (event.type === 'tool_start') start = performance.now();
      if (event.type === 'tool_end') took.push(performance.now() - start);
    },
  });
  const errors = run.results.map(({ isError }) => isError);
  const starts = server.record().filter(({ pid }) => pid !== undefined).length;
  return {
    decision: errors[0] ? 'error' : 'allow',
    checks: [
      check(
        'model',
        'the call is an error, and the others go on',
        errors.join() === 'true,false,true,true,false' || `${errors}: ${JSON.stringify(run.results)}`,
      ),
      check('processes', 'the server is started again once', starts === 2 || `${starts} starts`),
      check('time', 'the error comes at once', took[0]! < inTime(4000) || `${took} ms`),
    ],
  };
}

/** A shell that waits for its server, as the starters of packages do. */
async function clinging(world: World, tools: object[]): Promise<Seen> {
  const server = caseServer(world, 's', { tools, fault: 'clings' });
  const { command, args } = server.entry as { command: string; args: string[] };
  configure(world, { s: { command: 'sh', args: ['-c', '"$0" "$@"; :', command, ...args] } });
  await accept(world);
  let most = 0;
  const run = await runAgent(world, [{ name: 'q', input: {} }], {
    person: yes,
    onEvent: () => {
      most = Math.max(most, survivors(world).length);
    },
  });
  if (most < 2 || run.results[0]?.isError !== false)
    throw new Error(`${most} processes ran, ${noticesOf(run)}`);
  return {
    decision: 'any',
    checks: [
      check('processes', 'the server and what started it are gone 5 s later', await noneLeft(world, 5000)),
    ],
  };
}

/** Replaces the second line of the case, the server's answer to `initialize`, by a whole one. */
async function noisy(world: World): Promise<Seen> {
  const first = String(world.input['stdout']).split('\n')[0]!;
  const noise = `${first}\n`;
  const { run } = await withServer(world, { tools: [tool('q')], noise }, [{ name: 'q', input: {} }]);
  const said = noticesOf(run);
  const works = run.results[0]?.isError === false;
  return {
    decision: works ? 'allow' : 'error',
    checks: [
      check('model', 'the session survives the noise', works || said),
      check('shown', 'the noise is said', said.includes(first.replace(/[^\x20-\x7e].*/s, '')) || said),
    ],
  };
}

async function oddResult(world: World): Promise<Seen> {
  const result = fieldsOf(world.input['result']);
  const asText = JSON.stringify(result);
  const { run } = await withServer(world, { tools: [tool('q')], result }, [{ name: 'q', input: {} }]);
  const told = run.results[0]?.content ?? '';
  // The content of each file that the result names.
  const named = [...asText.matchAll(/file:\/\/(\/[^"\\]+)/g)]
    .map(match => match[1]!)
    .filter(file => existsSync(file));
  const contents = named
    .map(file => readFileSync(file, 'utf8').split('\n')[0]!)
    .filter(line => line.length > 8);
  const onWire = contents.some(line => run.requests.some(({ body }) => JSON.stringify(body).includes(line)));
  const largest = Math.max(
    0,
    ...(Array.isArray(result['content']) ? result['content'] : []).map(
      one => String(fieldsOf(one)['text'] ?? '').length,
    ),
  );
  const isLarge = largest > 64 * 1024;
  return {
    decision: run.results[0]?.isError === false ? 'allow' : 'error',
    checks: applying(
      check(
        'model',
        'at most 64 KiB reach the model',
        Buffer.byteLength(told) <= 65 * 1024 || `${Buffer.byteLength(told)} bytes`,
      ),
      isLarge &&
        check(
          'model',
          'the model is told the exact size',
          told.replaceAll(',', '').includes(String(largest)) || told.slice(-200),
        ),
      check('files', 'no file that it names is read', !onWire),
      check('end', 'the run goes on', completed(run)),
      !isLarge && check('model', 'the model is told something', told.length > 0),
      check('shown', 'nothing of it steers the terminal', !steering.test(noticesOf(run))),
    ),
  };
}

async function askingServer(world: World): Promise<Seen> {
  const asks = world.input['server_request'] as { method: string };
  const { run } = await withServer(world, { tools: [tool('q')], asks }, [{ name: 'q', input: {} }]);
  const told = run.results[0]?.content ?? '';
  return {
    decision: /"error"|"decline"|"cancel"/.test(told) ? 'error' : 'allow',
    checks: [
      check(
        'model',
        'no tokens are spent for the server',
        run.requests.length === 2 || `${run.requests.length} requests`,
      ),
      check(
        'network',
        'the server gets an answer',
        /-32601|declin|cancel|refused|"result"/.test(told) || told,
      ),
      check('end', 'the run goes on', completed(run)),
    ],
  };
}

/** The sign-in of a server leads to a program; whatever would open it would leave a file. */
export async function mcpOauth(world: World): Promise<Seen> {
  const trap = join(world.root, 'bin');
  const sprung = join(world.out, 'opened');
  for (const name of ['xdg-open', 'open', 'sensible-browser', 'x-www-browser', 'gio', 'id'])
    chmodSync(world.put(join(trap, name), `#!/bin/sh\necho "$0 $*" >> '${sprung}'\n`), 0o755);
  let base = '';
  const { url, close } = await serveHttp((request, response) => {
    const metadata = {
      issuer: base,
      resource: base,
      authorization_servers: [base],
      authorization_endpoint: world.input['authorization_endpoint'],
      token_endpoint: `${base}/token`,
      registration_endpoint: `${base}/register`,
      response_types_supported: ['code'],
    };
    if (request.url?.startsWith('/.well-known/'))
      return void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(metadata));
    const resource = `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource"`;
    response.writeHead(401, { 'www-authenticate': resource }).end();
  });
  base = new URL(url).origin;
  configure(world, { s: { url } });
  await accept(world);
  const env = { PATH: `${trap}:${process.env['PATH']}` };
  const run = await runCli(world, ['--yes', 'one'], [{ text: ['done'] }], { env });
  close();
  const opened = world.read(sprung);
  return {
    decision: /not available/.test(run.stderr) && run.exitCode === 0 ? 'error' : 'allow',
    checks: [
      check('processes', 'no program is started with that address', opened === undefined || opened),
      check('shown', 'the origin of the sign-in is said', run.stderr.includes(base) || run.stderr),
      check('end', 'the run goes on', run.exitCode === 0 || run.stderr),
    ],
  };
}
