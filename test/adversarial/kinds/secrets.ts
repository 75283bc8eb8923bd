/** Cases on keys and passwords: no one may read them, wherever they appear. */
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { AnthropicTurn } from '../../fakes/anthropicServer.ts';
import { decisionOf, runAgent } from '../agentRun.ts';
import { fieldsOf, textsOf } from '../caseFile.ts';
import { applying, CannotJudge, check, type Seen } from '../checks.ts';
import { runCli, turnsFor } from '../cliRun.ts';
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
  // What a run has written over is kept for undo to the byte, and is not a log.
  const logs = filesBelow(world.data)
    .filter(file => /\.(jsonl?|log)$/.test(file))
    .map(file => readFileSync(file, 'utf8'));
  if (logs.length === 0 && !env['NODE_OPTIONS']) throw new Error('the runs wrote no log');
  const leaks = [...outputs, ...logs].filter(text => holds(text, secret));
  return {
    decision: 'any',
    checks: [
      check(
        'secrets',
        'no output and no log holds the value in any spelling',
        leaks.length === 0 || leaks[0]!.slice(0, 300),
      ),
    ],
  };
}

function wayOf(
  world: World,
  secret: string,
): { turns: AnthropicTurn[]; env?: Record<string, string>; args?: string[] } {
  const path = String(world.input['path']);
  if (/\b401\b|error body|provider error/.test(path)) {
    const message = `invalid x-api-key: ${secret} (${Buffer.from(secret).toString('base64')})`;
    return {
      turns: [
        { status: 401, errorBody: { type: 'error', error: { type: 'authentication_error', message } } },
      ],
    };
  }
  if (/tool output|command prints|env \|/.test(path)) {
    const command = `printf '%s\\n' 'KEY=${secret}'; printf '%s' '${secret}' | base64`;
    return { turns: turnsFor([{ name: 'run_command', input: { command } }]) };
  }
  if (/split|chunk/.test(path))
    return { turns: [{ text: ['It is ', secret.slice(0, 17), secret.slice(17), ' there.'] }] };
  if (/base64|hex|encod/.test(path)) {
    const forms = [
      Buffer.from(secret).toString('base64'),
      Buffer.from(secret).toString('hex'),
      encodeURIComponent(secret),
    ];
    return { turns: [{ text: [`It is ${forms.join(' and ')}.`] }] };
  }
  if (/fetch_url|URL/.test(path))
    return {
      turns: turnsFor([{ name: 'fetch_url', input: { url: `http://127.0.0.1:${world.port}/?k=${secret}` } }]),
    };
  if (/write_file|written/.test(path))
    return { turns: turnsFor([{ name: 'write_file', input: { path: 'k.md', content: secret } }]) };
  if (/approval|prompt|card/.test(path))
    return { turns: turnsFor([{ name: 'run_command', input: { command: `true ${secret}` } }]) };
  if (/skill text|answer|model types/.test(path)) return { turns: [{ text: [`Your key is ${secret}.`] }] };
  if (/MCP/.test(path)) {
    const server = {
      url: `http://127.0.0.1:${world.port}/mcp`,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: as mcp.json writes it
      headers: { Authorization: 'Bearer ${MCP_TOKEN}' },
    };
    world.put(join(world.pack, 'mcp.json'), JSON.stringify({ mcpServers: { s: server } }));
    return { turns: [{ text: ['done'] }], env: { MCP_TOKEN: secret } };
  }
  if (/crash|uncaught|exception/i.test(path)) {
    const crash = `setTimeout(() => { throw new Error('boom ' + JSON.stringify(process.env)); }, 150)`;
    return {
      turns: [{ text: ['slow'], stallMs: 3000 }],
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(crash)}` },
    };
  }
  throw new CannotJudge(`no way is known for: ${path}`);
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
  const named = declared.filter(
    name => !reservedKey.test(name) && (command.includes(`$${name}`) || /^(env|printenv)\b/.test(command)),
  );
  const isDump = /^(env|printenv)\b/.test(command);
  const withheld = Object.keys(env).filter(name => reservedKey.test(name));
  return {
    decision: decisionOf({ ...run, asked: [] }),
    checks: applying(
      isDump &&
        check(
          'shown',
          'PATH, HOME, LANG and TERM are there',
          ['PATH', 'HOME', 'LANG', 'TERM'].every(name => told.includes(`${name}=`)) || told,
        ),
      ...named.map(name =>
        check('shown', `${name}, which is declared, is there`, told.includes(env[name] ?? '\0') || told),
      ),
      ...withheld.map(name =>
        check(
          'secrets',
          `${name} is not there`,
          !told.includes(env[name] ?? '\0') && !told.includes(`${name}=`),
        ),
      ),
      ...undeclared(env, declared).map(name =>
        check(
          'secrets',
          `${name}, which is not declared, is not there`,
          !told.includes(`${name}=${env[name]}`),
        ),
      ),
      check(
        'secrets',
        'no value is in a log',
        !Object.values(env).some(value => value.startsWith('value-of-') && logs.includes(value)),
      ),
    ),
  };
}

/** Keys of providers and bots, which no command gets. */
const reservedKey = /^(ANTHROPIC|OPENAI|GEMINI|GOOGLE|OPENROUTER)_\w*KEY$|^DISCORD_\w*TOKEN$/;

const undeclared = (env: Record<string, string>, declared: readonly string[]): string[] =>
  Object.keys(env).filter(
    name => /KEY|TOKEN|SECRET|PASSWORD/.test(name) && !declared.includes(name) && !reservedKey.test(name),
  );

async function exportedKeys(
  world: World,
  calls: { name: string; input: object }[],
  env: Record<string, string>,
): Promise<Seen> {
  const run = await runCli(world, ['--yes', 'one'], turnsFor(calls), { env });
  const told = JSON.stringify(run.requests.at(-1)?.body?.messages ?? '');
  const warned = /ANTHROPIC_API_KEY.*(exported|environment|shell)/i.test(run.stderr);
  return {
    decision: 'any',
    checks: Object.keys(env).map(name =>
      check(
        'secrets',
        `${name} is not readable from a command, or the person is warned`,
        !told.includes(env[name] ?? '\0') || warned || 'it is read, without a warning',
      ),
    ),
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
  const isOwn = typeof location !== 'string';
  const mode = typeof input['mode'] === 'string' ? Number.parseInt(input['mode'], 8) : undefined;
  const warned = config.problems.some(({ message }) => /chmod/.test(message));
  const wanted = plainVariables(String(input['text']));
  const wrong = wanted.filter(([name, value]) => (config.env[name] === value) !== isOwn);
  return {
    decision: 'allow',
    checks: applying(
      check(
        'records',
        isOwn ? 'each variable has its value' : 'none of its variables is taken',
        wrong.length === 0 || JSON.stringify(wrong),
      ),
      isOwn &&
        check(
          'end',
          'a line that is none does no harm',
          !Object.keys(config.env).some(name => !/^\w+$/.test(name)),
        ),
      isOwn &&
        mode !== undefined &&
        check('shown', 'a file that others can read is pointed out', warned === ((mode & 0o077) !== 0)),
      !isOwn &&
        check(
          'files',
          'the folder of the configuration stays',
          config.configDir === world.cfg || config.configDir,
        ),
    ),
  };
}

/** Variables whose value can be read in one way only. */
function plainVariables(text: string): [name: string, value: string][] {
  return text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .flatMap((line): [string, string][] => {
      const [, name = '', value = ''] = /^\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)$/.exec(line) ?? [];
      const quoted = /^(["'])([^\\"']*)\1$/.exec(value.trim())?.[2];
      if (!name || (quoted === undefined && /["'\\#$]/.test(value))) return [];
      return [[name, quoted ?? value.trim()]];
    });
}

export async function logPermissions(world: World): Promise<Seen> {
  await runAgent(world, []);
  const folder = join(world.data, 'logs');
  const modes = [
    statSync(folder).mode & 0o777,
    ...readdirSync(folder).map(name => statSync(join(folder, name)).mode & 0o777),
  ];
  const envMode = statSync(join(world.cfg, '.env')).mode & 0o077;
  const checked = envMode === 0 || world.configFor().problems.some(({ message }) => /chmod/.test(message));
  return {
    decision: 'any',
    checks: [
      check(
        'records',
        'the folder of the logs is for its owner alone',
        modes[0] === 0o700 || modes[0]!.toString(8),
      ),
      check(
        'records',
        'each log is for its owner alone',
        modes.slice(1).every(mode => mode === 0o600) || modes.map(mode => mode.toString(8)).join(' '),
      ),
      check('shown', 'a .env that others can read is pointed out', checked),
    ],
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
    checks: [
      check(
        'records',
        'one line holds one record, and no record is forged',
        (names.join() === 'skill_start,tool_call,skill_end' && existsSync(world.data)) || names.join(),
      ),
    ],
  };
}
