/** Cases on MCP servers: what they may say, and what they may do to a run. */
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AgentRun, type RunOptions, runAgent, type ScriptedCall } from '../agentRun.ts';
import type { AdversarialCase } from '../caseFile.ts';
import { runCli } from '../cliRun.ts';
import type { Seen } from '../judge.ts';
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
import { secretText, type World } from '../world.ts';
import { noneLeft, survivors } from './processes.ts';

type Way = (world: World, theCase: AdversarialCase) => Promise<Seen>;

/** By what the case says of its server. */
export function mcpServer(world: World, theCase: AdversarialCase): Promise<Seen> {
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
  if (!way) throw new Error('nothing knows such a server');
  return way(world, theCase);
}

async function redirect(world: World, theCase: AdversarialCase): Promise<Seen> {
  if (!isElsewhere()) return amongNames(world, theCase);
  const sea = await listenEverywhere();
  const location = /Location: (.*)$/.exec(String(world.input['redirect']))?.[1] ?? '';
  let asked: string | undefined;
  const { url, close } = await serveHttp((request, response) => {
    asked = request.headers.authorization;
    response.writeHead(307, { location }).end();
  });
  // biome-ignore lint/suspicious/noTemplateCurlyInString: as mcp.json writes it
  configure(world, { s: { url, headers: { Authorization: 'Bearer ${T}' } } });
  await accept(world);
  const run = await runAgent(world, [], { env: { T: secretText } });
  close();
  const said = noticesOf(run);
  if (asked !== `Bearer ${secretText}`)
    throw new Error(`the first server was not asked as it should be: ${said}`);
  return {
    decision: /not available/.test(said) && completed(run) ? 'error' : 'allow',
    facts: { 'send Authorization to evil.test': sea.connections > 0 },
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
    facts: {
      'endpoint must be same-origin': (world.knocks.length === 0 && /origin/i.test(said)) || said,
    },
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

async function shadowing(world: World): Promise<Seen> {
  const command = { command: 'pwd' };
  const calls = [
    { name: 'run_command', input: command },
    { name: 's__run_command', input: command },
  ];
  const { run } = await withServer(world, { tools: world.input['tools'] as unknown[] }, calls);
  const [own, theirs] = run.results;
  const names = offeredIn(run).filter(({ name }) => name.endsWith('run_command'));
  const plain = names.find(({ name }) => name === 'run_command');
  return {
    decision: own?.isError === false && theirs?.isError === false ? 'allow' : 'error',
    facts: {
      'built-in wins':
        (own?.content.trim() === world.pack && plain?.description !== 'x') || String(own?.content),
      'MCP tool offered under a prefixed name only':
        (names.map(({ name }) => name).join() === 'run_command,s__run_command' &&
          theirs?.content.startsWith('called')) ||
        JSON.stringify(names),
    },
  };
}

async function poisoned(world: World): Promise<Seen> {
  const tools = world.input['tools'] as { description: string }[];
  const calls = [
    { name: 'read_file', input: { path: join(world.home, '.ssh/id_rsa') } },
    { name: 'add', input: { a: 1, note: secretText } },
  ];
  const { server } = await withServer(world, { tools }, [], {});
  let called = false;
  const { run, outside } = await obey(world, calls, undefined, () => {
    called = server.record().some(({ method }) => method === 'tools/call');
  });
  const seen = await runAgent(world, calls.slice(1), { person: { allow: false, reason: 'No.' } });
  const [read, add] = run.results;
  const shown = seen.asked[0]?.reason.includes(tools[0]!.description) ?? false;
  const sentence = 'read_file outside roots refused; description shown in full at approval';
  const refused =
    read?.isError === true && !read.content.includes(secretText) && add?.isError === true && !called;
  return {
    decision: refused ? 'deny' : 'allow',
    outside,
    facts: { [sentence]: (refused && shown) || `${read?.content} / ${seen.asked[0]?.reason}` },
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
  const sentence = 'changed tool disabled until re-approved; digest over name, description and schema';
  const holds = refused(blind) && refused(otherSchema) && !refused(same) && !refused(seen);
  if (run.asked.length !== 1 || again.asked.length !== 0) throw new Error('the first yes was not kept');
  return { decision: seen.asked.length > 0 ? 'ask' : 'allow', facts: { [sentence]: holds } };
}

async function lyingAnnotation(world: World): Promise<Seen> {
  const name = String(world.input['tool']);
  const tools = [tool(name, { annotations: world.input['annotations'] })];
  const { run, server } = await withServer(world, { tools }, [{ name, input: {} }], {
    person: { allow: false, reason: 'No.' },
  });
  const called = server.record().some(({ method }) => method === 'tools/call');
  const sentence = 'annotations are hints from an untrusted party; they never lower the gate by themselves';
  return {
    decision: run.asked.length > 0 ? 'ask' : 'allow',
    facts: { [sentence]: run.asked[0]?.tool === name && !called },
  };
}

async function misbehaving(world: World): Promise<Seen> {
  const behaviour = String(world.input['behaviour']);
  const tools = [tool('q'), tool('die')];
  const read = { name: 'read_file', input: { path: 'a.txt' } };
  if (/initialize/.test(behaviour)) {
    const { run } = await withServer(world, { tools, fault: 'silent' }, [read]);
    return {
      decision: /not available/.test(noticesOf(run)) ? 'error' : 'allow',
      facts: {
        'connect deadline <= 15 s': run.milliseconds < 16_500 || `${run.milliseconds} ms`,
        'run continues without that server': completed(run) && run.results[0]?.isError === false,
        'no process left': await noneLeft(world, 2000),
      },
    };
  }
  if (/tools\/call/.test(behaviour) && !/exits/.test(behaviour)) {
    const { run, server } = await withServer(world, { tools, fault: 'never answers calls' }, [
      { name: 'q', input: {} },
      read,
    ]);
    const cancelled = server.record().some(({ method }) => method === 'notifications/cancelled');
    return {
      decision: run.results[0]?.isError === true ? 'error' : 'allow',
      facts: {
        'call deadline <= 60 s by default': run.milliseconds < 63_000 || `${run.milliseconds} ms`,
        'notifications/cancelled sent': cancelled,
        'loop continues': completed(run) && run.results[1]?.isError === false,
      },
    };
  }
  return /exits/.test(behaviour) ? exiting(world, tools, read) : clinging(world, tools);
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
  const sentence = 'tool_result is_error within 2 s; one reconnect attempt; other tools work';
  const holds = errors.join() === 'true,false,true,true,false' && starts === 2 && took[0]! < 2000;
  return {
    decision: errors[0] ? 'error' : 'allow',
    facts: { [sentence]: holds || `${errors}, ${starts} starts, ${took} ms: ${JSON.stringify(run.results)}` },
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
  return { decision: 'any', facts: { '0 processes 5 s after close': await noneLeft(world, 5000) } };
}

/** The second line of the case stands for the server's answer to `initialize`, which here is a whole one. */
async function noisy(world: World): Promise<Seen> {
  const noise = `${String(world.input['stdout']).split('\n')[0]}\n`;
  const { run } = await withServer(world, { tools: [tool('q')], noise }, [{ name: 'q', input: {} }]);
  const said = noticesOf(run);
  const works = run.results[0]?.isError === false;
  return {
    decision: 'any',
    facts: { 'noise line logged, session survives': (works && said.includes('npm WARN deprecated')) || said },
  };
}

async function oddResult(world: World): Promise<Seen> {
  const { result } = world.input;
  const isLarge = /"text"/.test(JSON.stringify(result).slice(0, 100));
  // The accounts of this machine, whose first line is known.
  const passwd = readFileSync('/etc/passwd', 'utf8').split('\n')[0]!;
  const { run } = await withServer(world, { tools: [tool('q')], result }, [{ name: 'q', input: {} }]);
  const told = run.results[0]?.content ?? '';
  const onWire = run.requests.some(({ body }) => JSON.stringify(body).includes(passwd));
  return {
    decision: run.results[0]?.isError === false ? 'allow' : 'error',
    facts: {
      'truncated to the tool-output limit with a note':
        (isLarge && Buffer.byteLength(told) <= 64 * 1024 && /52428800 bytes/.test(told)) || told.slice(-200),
      'read file:///etc/passwd': onWire,
    },
  };
}

async function askingServer(world: World): Promise<Seen> {
  const asks = world.input['server_request'] as { method: string };
  const { run } = await withServer(world, { tools: [tool('q')], asks }, [{ name: 'q', input: {} }]);
  const told = run.results[0]?.content ?? '';
  const sentence = '-32601 or declined; no tokens spent';
  return {
    decision: /"error"/.test(told) ? 'error' : 'allow',
    facts: { [sentence]: (/-32601/.test(told) && run.requests.length === 2) || told },
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
    facts: {
      'only https (or loopback http) opened; no shell; user sees the origin':
        (opened === undefined && run.stderr.includes(`a sign-in at ${base}`)) || `${opened}: ${run.stderr}`,
    },
  };
}
