/** Cases on keys and passwords: wherever they come by, nobody reads them. */
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { AnthropicTurn } from '../../fakes/anthropicServer.ts';
import { decisionOf, runAgent } from '../agentRun.ts';
import { fieldsOf, textsOf } from '../caseFile.ts';
import { runCli, turnsFor } from '../cliRun.ts';
import type { Seen } from '../judge.ts';
import { agentName, type World } from '../world.ts';
import { filesBelow } from './files.ts';

/** Every spelling under which a value counts as seen. */
function spellings(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const base64 = bytes.toString('base64').replace(/=+$/, '');
  return [
    secret,
    base64,
    bytes.toString('hex'),
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
  ];
}

const holds = (text: string, secret: string): boolean => spellings(secret).some(form => text.includes(form));

const everywhere =
  'the secret value or its base64/hex/URL/JSON-escaped form appears in the JSONL, the output channel, the webview state, Discord, or stderr';

/** The command line says what the run's events hold, which is all that a channel, a chat view or a bot is told. */
export async function secretFlow(world: World): Promise<Seen> {
  const secret = String(world.input['secret']);
  const { turns, env = {}, args = [] } = wayOf(world, secret);
  const outputs: string[] = [];
  for (const mode of [['--json'], ['--verbose']]) {
    const run = await runCli(world, [...mode, '--yes', ...args, 'one'], turns, {
      env: { ANTHROPIC_API_KEY: secret, ...env },
    });
    outputs.push(run.stdout, run.stderr);
  }
  const logs = filesBelow(world.data).map(file => readFileSync(file, 'utf8'));
  if (logs.length === 0 && !env['NODE_OPTIONS']) throw new Error('the runs wrote no log');
  const leaks = [...outputs, ...logs].filter(text => holds(text, secret));
  return { decision: 'any', facts: { [everywhere]: leaks.length > 0 } };
}

function wayOf(
  world: World,
  secret: string,
): { turns: AnthropicTurn[]; env?: Record<string, string>; args?: string[] } {
  const path = String(world.input['path']);
  if (path.startsWith('provider 401')) {
    const message = `invalid x-api-key: ${secret} (${Buffer.from(secret).toString('base64')})`;
    return {
      turns: [
        { status: 401, errorBody: { type: 'error', error: { type: 'authentication_error', message } } },
      ],
    };
  }
  if (path.startsWith('tool output')) {
    const command = `printf '%s\\n' 'KEY=${secret}'; printf '%s' '${secret}' | base64`;
    return { turns: turnsFor([{ name: 'run_command', input: { command } }]) };
  }
  if (path.startsWith('skill text')) return { turns: [{ text: [`Your key is ${secret}.`] }] };
  if (path.startsWith('key split'))
    return { turns: [{ text: ['It is ', secret.slice(0, 17), secret.slice(17), ' there.'] }] };
  if (path.startsWith('HTTP MCP header')) {
    const server = {
      url: `http://127.0.0.1:${world.port}/mcp`,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: as mcp.json writes it
      headers: { Authorization: 'Bearer ${MCP_TOKEN}' },
    };
    world.put(join(world.pack, 'mcp.json'), JSON.stringify({ mcpServers: { s: server } }));
    return { turns: [{ text: ['done'] }], env: { MCP_TOKEN: secret } };
  }
  if (path.startsWith('crash')) {
    const crash = `setTimeout(() => { throw new Error('boom ' + JSON.stringify(process.env)); }, 150)`;
    return {
      turns: [{ text: ['slow'], stallMs: 3000 }],
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(crash)}` },
    };
  }
  throw new Error(`no way is known for: ${path}`);
}

export async function childEnvironment(world: World): Promise<Seen> {
  const { input, pack, put } = world;
  const declared = textsOf(input['declared_env']);
  const loaded = { ...fieldsOf(input['loaded_env']), ...fieldsOf(input['shell_exported']) };
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(loaded))
    if (name !== 'PATH')
      env[name] = /KEY|TOKEN/.test(name) ? `value-of-${name}-${String(value)}` : String(value);
  for (const name of declared) env[name] = `value-of-${name}`;
  const requires = `metadata: {"openclaw": {"requires": {"env": ${JSON.stringify(declared)}}}}`;
  put(join(pack, 'skills/one/SKILL.md'), `---\ndescription: d\n${requires}\n---\nDo it.\n`);
  const telos = Telos.open(world.configFor());
  await telos.acceptCard(await telos.agentCard(agentName));
  const command = String(input['run_command']);
  const calls = [{ name: 'run_command', input: { command } }];
  // What a command could read of its parent is only seen where the parent was started with it.
  if (input['shell_exported']) return exportedKeys(world, calls, env);
  const run = await runAgent(world, calls, { person: { allow: true, scope: 'once' }, env });
  const told = run.results[0]?.content ?? '';
  const logs = filesBelow(world.data)
    .map(file => readFileSync(file, 'utf8'))
    .join('');
  const token = env[declared[0] ?? ''] ?? '';
  return {
    decision: decisionOf({ ...run, asked: [] }),
    facts: {
      'PATH, HOME, LANG, TERM present':
        ['PATH', 'HOME', 'LANG', 'TERM'].every(name => told.includes(`${name}=`)) || told,
      'ANTHROPIC_API_KEY or DISCORD_BOT_TOKEN in the child':
        /ANTHROPIC_API_KEY|DISCORD_BOT_TOKEN|value-of-/.test(told),
      'present in the child, redacted in the log':
        (told.includes(token) && !logs.includes(token)) || `${told} / ${logs.includes(token)}`,
    },
  };
}

async function exportedKeys(
  world: World,
  calls: { name: string; input: object }[],
  env: Record<string, string>,
): Promise<Seen> {
  const run = await runCli(world, ['--yes', 'one'], turnsFor(calls), { env });
  const told = JSON.stringify(run.requests.at(-1)?.body?.messages ?? '');
  const sentence =
    'with the OS sandbox: not readable; without: documented, and the CLI re-execs or warns when keys are exported in the shell';
  const warned = /ANTHROPIC_API_KEY.*(exported|environment|shell)/i.test(run.stderr);
  return {
    decision: 'any',
    facts: {
      [sentence]:
        !told.includes(env['ANTHROPIC_API_KEY'] ?? '\0') ||
        warned ||
        'a command reads the exported key from its parent, without a warning',
    },
  };
}

export async function environmentFile(world: World): Promise<Seen> {
  const { input, cfg, work, pack, put } = world;
  const location = input['location'];
  const file = put(typeof location === 'string' ? location : join(cfg, '.env'), String(input['text']));
  if (typeof input['mode'] === 'string') chmodSync(file, Number.parseInt(input['mode'], 8));
  if (typeof location === 'string') put(join(pack, '.env'), String(input['text']));
  const cwd = typeof location === 'string' ? join(location, '..') : work;
  const config = loadConfig({
    env: { HOME: world.home },
    home: world.home,
    cwd,
    workspaceFolders: [{ name: 'w', path: cwd }],
  });
  const is = (name: string, value: string): boolean => config.env[name] === value;
  const sentence = "A='x y', B='q=1', C='a=b=c', D=''";
  return {
    decision: 'allow',
    facts: {
      [sentence]:
        (is('A', 'x y') && is('B', 'q=1') && is('C', 'a=b=c') && is('D', '')) || JSON.stringify(config.env),
      'warns that the file is readable by others': config.problems.some(problem =>
        /readable by others|can be read by/.test(problem),
      ),
      'load a workspace or pack .env':
        config.env['ANTHROPIC_BASE_URL'] !== undefined || config.configDir.includes('.telos'),
    },
  };
}

export async function logPermissions(world: World): Promise<Seen> {
  await runAgent(world, []);
  const folder = join(world.data, 'logs');
  const modes = [
    statSync(folder).mode & 0o777,
    ...readdirSync(folder).map(name => statSync(join(folder, name)).mode & 0o777),
  ];
  const envMode = statSync(join(world.cfg, '.env')).mode & 0o077;
  const checked =
    envMode === 0 ||
    world.configFor().problems.some(problem => /readable by others|can be read by/.test(problem));
  return {
    decision: 'any',
    facts: {
      'logs directory 0700, files 0600, config .env checked':
        (modes[0] === 0o700 && modes.slice(1).every(mode => mode === 0o600) && checked) ||
        `${modes.map(mode => mode.toString(8)).join(' ')}, .env ${checked ? '' : 'not '}checked`,
    },
  };
}

export async function logInjection(world: World): Promise<Seen> {
  world.put(join(world.work, 'x.txt'), String(world.input['tool_output']));
  await runAgent(world, [{ name: 'read_file', input: { path: 'x.txt' } }]);
  const lines = filesBelow(join(world.data, 'logs')).flatMap(file =>
    readFileSync(file, 'utf8').trimEnd().split('\n'),
  );
  const names = lines.map(line => String(fieldsOf(JSON.parse(line))['event']));
  return {
    decision: 'any',
    facts: {
      'one physical line per record; newline inside strings escaped':
        (names.join() === 'skill_start,tool_call,skill_end' && existsSync(world.data)) || names.join(),
    },
  };
}
