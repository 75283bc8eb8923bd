/** The built command line, as a process of its own. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type StartOptions, startCli } from '../../cli/cliProcess.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { type JsonRecord, strings, texts } from '../caseFile.ts';
import { type CaseWorld, fillWorld } from '../caseWorld.ts';
import type { Observed } from '../expectations.ts';
import type { Operations } from '../operations.ts';

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
    if (there()) throw new Error('uninstall --yes removes nothing');
    return { removed };
  },
};

async function run(
  args: readonly string[],
  env: NonNullable<StartOptions['env']>,
  input: string,
  world: CaseWorld,
): Promise<{ exit: number | null; stdout: string; output: string }> {
  const { child, result } = startCli(world, args, { env, input });
  const limit = setTimeout(() => child.kill(), 20_000);
  const { code, stdout, stderr } = await result;
  clearTimeout(limit);
  return { exit: code, stdout, output: stdout + stderr };
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
  const config = join(world.config, 'agents.toml');
  const exists = existsSync(config);
  return {
    base: world.skills,
    config_exists: exists,
    config_equals: exists ? readFileSync(config, 'utf8') : undefined,
    skills_dir_exists: existsSync(world.skills),
  };
}
