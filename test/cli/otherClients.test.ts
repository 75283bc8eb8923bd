/**
 * What other programs make of what Telos writes: the published clients of ClawHub and `skills`, and with TELOS_NIGHTLY Claude Code, which
 * npx fetches then.
 */
import { deepEqual, equal, match } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type SourceServers, sourceServers } from '../fakes/sourceServers.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

/** Its program is larger than all that is built here, so it is none of what `npm ci` brings. */
const claudeCode = '@anthropic-ai/claude-code@2.1.330';
const installed = fileURLToPath(new URL('../../node_modules/.bin/', import.meta.url));

const skill = (name: string, more = ''): string =>
  `---\nname: ${name}\ndescription: Does ${name}.\n---\n# ${name}\n${more}`;

describe('other clients', function () {
  this.timeout(300_000);
  let home: CliHome;
  let servers: SourceServers;
  beforeEach(async () => {
    servers = await sourceServers();
    home = cliHome({});
  });
  afterEach(async () => {
    home.remove();
    await servers.close();
  });

  const telos = (...words: string[]) => home.run(words, { env: servers.env });
  /** Runs a client in a home of its own. */
  const client = async (
    name: 'clawhub' | 'skills' | 'claude',
    args: string[],
    cwd = home.workDir,
  ): Promise<string> => {
    const [program, first] =
      name === 'claude' ? ['npx', ['--yes', '--package', claudeCode, name]] : [join(installed, name), []];
    const certificates = process.env['NODE_EXTRA_CA_CERTS'];
    const env = {
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      HOME: home.folder.path,
      ...(certificates === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificates }),
      CLAWHUB_REGISTRY: servers.url,
      CLAWHUB_DISABLE_TELEMETRY: '1',
      DO_NOT_TRACK: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_AUTOUPDATER: '1',
      CI: '1',
    };
    try {
      const { stdout, stderr } = await promisify(execFile)(program, [...first, ...args], { cwd, env });
      return stdout + stderr;
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string };
      throw new Error(`${name} ${args.join(' ')}: ${stdout}${stderr}`);
    }
  };

  it('of ClawHub list and update what Telos installed, and Telos knows what they installed', async () => {
    const versions = { '1.0.0': { 'SKILL.md': skill('weather') } };
    const weather = { owner: 'bob', latest: '1.0.0', versions };
    servers.clawhub.skills.set('weather', [weather]);
    equal((await telos('install', 'clawhub:weather', '--yes')).code, 0);
    const at = ['--workdir', home.skillsDir, '--dir', '.', '--no-input'];
    match(await client('clawhub', [...at, 'list']), /weather\s+1\.0\.0/);
    weather.latest = '1.1.0';
    Object.assign(versions, { '1.1.0': { 'SKILL.md': skill('weather', 'Newer.\n') } });
    match(await client('clawhub', [...at, 'update', '--all']), /1\.1\.0/);
    match(readFileSync(join(home.skillsDir, 'weather/SKILL.md'), 'utf8'), /Newer/);
    match((await telos('verify')).stdout, /weather: edited/);
    servers.clawhub.skills.set('rain', [
      { owner: 'bob', latest: '1.0.0', versions: { '1.0.0': { 'SKILL.md': skill('rain') } } },
    ]);
    await client('clawhub', [...at, 'install', 'rain']);
    match((await telos('verify', 'rain')).stdout, /^rain: /);
  });

  /** Exports an agent with two skills and a server, and returns the folder of its marketplace. */
  const exported = async (): Promise<string> => {
    home.folder.add({
      'skills/kairos/agent.toml': 'name = "kairos"\ndescription = "Plans"\n',
      'skills/kairos/mcp.json': '{"mcpServers": {"notes": {"command": "node", "args": ["server.js"]}}}',
      'skills/kairos/skills/plan/SKILL.md': skill('plan'),
      'skills/kairos/skills/review/SKILL.md': skill('review'),
    });
    const out = join(home.workDir, 'dist');
    equal((await telos('export', 'kairos', '--to', out, '--marketplace', 'my-agents')).code, 0);
    return out;
  };

  it('of skills installs every skill of an export, byte for byte', async () => {
    const out = await exported();
    const project = join(home.workDir, 'project');
    mkdirSync(project);
    const added = await client(
      'skills',
      ['add', join(out, 'kairos'), '-y', '-s', '*', '-a', 'codex'],
      project,
    );
    match(added, /plan/);
    deepEqual(readdirSync(join(project, '.agents/skills')).sort(), ['plan', 'review']);
    for (const name of ['plan', 'review'])
      equal(readFileSync(join(project, `.agents/skills/${name}/SKILL.md`), 'utf8'), skill(name));
  });

  if (process.env['TELOS_NIGHTLY'])
    it('of Claude Code installs and lists every skill and server of an export', async () => {
      const out = await exported();
      for (const folder of [join(out, 'kairos'), out])
        await client('claude', ['plugin', 'validate', '--strict', folder]);
      await client('claude', ['plugin', 'marketplace', 'add', out]);
      await client('claude', ['plugin', 'install', 'kairos@my-agents']);
      const details = await client('claude', ['plugin', 'details', 'kairos@my-agents']);
      for (const name of ['plan', 'review', 'notes']) match(details, new RegExp(`\\b${name}\\b`));
    });
});
