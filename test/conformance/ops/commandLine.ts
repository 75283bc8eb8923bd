/** The built command line, as a process of its own. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { type JsonRecord, strings, texts } from '../caseFile.ts';
import { type CaseWorld, fillWorld } from '../caseWorld.ts';
import type { Observed } from '../expectations.ts';
import { NotBuilt } from '../notBuilt.ts';
import type { Operations } from '../operations.ts';

const program = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url));

export const commandLineOperations: Operations = {
  async cli({ given, when }, world) {
    fillWorld(world, given, 'tmp');
    if (!given['files']) addAgents(strings(given['agents']), world);
    const args = strings(when['args']);
    const server = await startAnthropicServer({ turns: [{ text: ['done'] }] });
    // Only a case that gives agents and no environment has a model; what it runs is told by its events.
    const withModel = given['agents'] !== undefined;
    const key = withModel ? 'k' : undefined;
    const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: key, ...texts(given['env']) };
    try {
      const ran = await run(withModel ? ['--json', ...args] : args, env, '', world);
      return {
        ...ran,
        ...told(ran.stdout, withModel),
        ...inFolders(world),
        provider_calls: server.requests.length,
        executed: server.requests.length > 0,
      };
    } finally {
      await server.close();
    }
  },

  async uninstall_interactive({ given }, world) {
    const name = String(given['agent_installed']);
    addAgents([name], world);
    const there = (): boolean => existsSync(join(world.skills, name));
    await run(['uninstall', name], {}, `${String(given['confirm'] ?? 'no')}\n`, world);
    const removed = !there();
    // A command that never removes anything has not asked either.
    await run(['uninstall', name, '--yes'], {}, '', world);
    if (there()) throw new NotBuilt();
    return { removed };
  },
};

interface Ran {
  exit: number | null;
  stdout: string;
  output: string;
}

function run(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  input: string,
  world: CaseWorld,
): Promise<Ran> {
  if (!existsSync(program)) throw new Error(`${program} is missing: run \`npm run build\` first.`);
  const folders = {
    TELOS_SKILLS_DIR: world.skills,
    TELOS_CONFIG_DIR: join(world.root, 'config'),
    TELOS_DATA_DIR: world.data,
  };
  const all = {
    PATH: process.env['PATH'],
    HOME: world.home,
    OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1',
    ...folders,
    ...env,
  };
  const child = spawn(process.execPath, [program, ...args], {
    cwd: world.cwd,
    env: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
    timeout: 20_000,
  });
  let stdout = '';
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stdin.on('error', () => {}); // a program that asks nothing has gone before it reads
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', exit => resolve({ exit, stdout, output }));
  });
}

/** Agents of a case that does not care what their skills say. */
function addAgents(names: readonly string[], world: CaseWorld): void {
  for (const agent of names.length > 0 ? names : ['kairos']) {
    for (const skill of ['shutdown', 'frontpage', 'kickoff']) {
      world.write({ [`@skills/${agent}/skills/${skill}/SKILL.md`]: '---\ndescription: D\n---\nB' });
    }
  }
}

function told(stdout: string, events: boolean): Observed {
  if (!events) return tableIn(stdout);
  const lines = stdout.split('\n').filter(line => line.startsWith('{'));
  const routed = lines.map(line => JSON.parse(line) as JsonRecord).find(event => event['type'] === 'routed');
  return { agent: routed?.['agent'], skill: routed?.['skill'] };
}

/** The headings of a table, and by which of them its rows are sorted. */
function tableIn(stdout: string): Observed {
  const [head = '', ...rows] = stdout
    .split('\n')
    .filter(line => /\S/.test(line) && !/^[\s─━┄+|-]+$/.test(line));
  const first = rows.map(row => row.trim().split(/\s{2,}/)[0] ?? '');
  const sorted =
    first.length > 1 && first.every((name, index) => index === 0 || (first[index - 1] ?? '') <= name);
  return { columns: head.trim().split(/\s{2,}/), sorted_by: sorted ? 'skill name' : undefined };
}

function inFolders(world: CaseWorld): Observed {
  const config = join(world.root, 'config/agents.toml');
  const exists = existsSync(config);
  return {
    base: world.skills,
    config_exists: exists,
    config_equals: exists ? readFileSync(config, 'utf8') : undefined,
    skills_dir_exists: existsSync(world.skills),
  };
}
