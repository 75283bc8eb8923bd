/** Skills that MCP servers serve: listed without being read, installed as they were looked at, and refused if they are anything else. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CliHome, cliHome, program } from './cliProcess.ts';

const fake = fileURLToPath(new URL('../fakes/skillServer.ts', import.meta.url));
const skill = (name: string, text = 'Rake.'): string =>
  `---\nname: ${name}\ndescription: Does ${name}\n---\n${text}\n`;

describe('skills of MCP servers', function () {
  this.timeout(60_000);
  let home: CliHome;
  const served = (): string => join(home.folder.path, 'served');
  const installed = (path: string): string => join(home.folder.path, 'skills', path);
  const log = (): string => join(home.folder.path, 'requests.log');
  const requests = (): string => readFileSync(log(), 'utf8');

  beforeEach(() => {
    home = cliHome({
      'skills/garden/skills/sow/SKILL.md': skill('sow'),
      'served/rake/SKILL.md': skill('rake'),
      'served/rake/beds/long beds.md': 'All beds.\n',
      'served/water/SKILL.md': skill('water'),
    });
  });
  afterEach(() => home.remove());

  const serve = async (...more: string[]): Promise<void> => {
    const entry = { command: process.execPath, args: [fake, served(), log(), ...more] };
    home.folder.add({ 'skills/garden/mcp.json': JSON.stringify({ mcpServers: { shed: entry } }) });
    assert.equal((await home.run(['trust', 'garden', '--yes'])).code, 0);
  };

  it('are listed with their server, and not read before they are installed', async () => {
    await serve();
    const { stdout, stderr } = await home.run(['mcp', 'list', '--start']);
    assert.match(stdout, /shed +garden +0 tools, 2 skills/);
    assert.match(stderr, /Skill 'rake' of 'shed': telos install mcp:garden:shed\/rake/);
    const { servers } = JSON.parse((await home.run(['mcp', 'list', '--start', '--json'])).stdout);
    assert.deepEqual(servers[0].skills, ['rake', 'water']);
    assert.doesNotMatch(requests(), /resources\/read/);
  });

  it('are installed one by one after a look, with their digest, and need a yes to another one', async () => {
    await serve();
    const looked = await home.run(['install', 'mcp:shed/rake', '--list']);
    assert.equal(looked.code, 0, looked.stderr);
    assert.match(looked.stdout, /the MCP server 'shed' of garden/);
    assert.equal(existsSync(installed('rake')), false);
    const { code, stderr } = await home.run(['install', 'mcp:shed/rake', '--yes']);
    assert.equal(code, 0, stderr);
    const [file] = ['skills/rake/SKILL.md', 'SKILL.md']
      .map(one => installed(`rake/${one}`))
      .filter(existsSync);
    assert.equal(readFileSync(file ?? '', 'utf8'), skill('rake'));
    assert.equal(readFileSync(join(file ?? '', '../beds/long beds.md'), 'utf8'), 'All beds.\n');
    assert.doesNotMatch(requests(), /resources\/read skill:\/\/water/);
    const lock = JSON.parse(readFileSync(installed('telos-lock.json'), 'utf8'));
    const { resolved, source } = lock.packs.rake;
    assert.equal(source, 'mcp:shed/rake');
    assert.deepEqual([resolved.kind, resolved.agent, resolved.server], ['mcp', 'garden', 'shed']);
    assert.match(resolved.digest, /^sha256:[0-9a-f]{64}$/);
    const routed = await home.run(['route', '/rake', 'the beds']);
    assert.match(routed.stdout, /rake/);

    writeFileSync(join(served(), 'rake/SKILL.md'), skill('rake', 'Rake twice.'));
    rmSync(installed('rake'), { recursive: true });
    const frozen = await home.run(['install', '--frozen']);
    assert.equal(frozen.code, 1);
    assert.match(frozen.stderr, /serves other files now than those that were looked at/);
    assert.equal(existsSync(installed('rake')), false);
    const again = await home.run(['install', 'mcp:shed/rake', '--yes']);
    assert.equal(again.code, 0, again.stderr);
  });

  it('that changed are offered as an update, with what is different', async () => {
    await serve();
    assert.equal((await home.run(['install', 'mcp:shed/rake', '--yes'])).code, 0);
    const same = await home.run(['update', '--dry-run']);
    assert.match(same.stderr, /rake: [0-9a-f]{7} is the newest version/);
    writeFileSync(join(served(), 'rake/SKILL.md'), skill('rake', 'Rake twice.'));
    const { stdout, stderr } = await home.run(['update', '--dry-run']);
    assert.match(stdout + stderr, /^-Rake\.\n\+Rake twice\.$/m);
    const updated = await home.run(['update', '--yes']);
    assert.equal(updated.code, 0, updated.stderr);
    const [file] = ['skills/rake/SKILL.md', 'SKILL.md']
      .map(one => installed(`rake/${one}`))
      .filter(existsSync);
    assert.match(readFileSync(file ?? '', 'utf8'), /Rake twice/);
  });

  it('are installed all at once as one pack of the server', async () => {
    await serve();
    const { code, stderr } = await home.run(['install', 'mcp:garden:shed', '--yes']);
    assert.equal(code, 0, stderr);
    assert.ok(existsSync(installed('shed/skills/rake/SKILL.md')));
    assert.ok(existsSync(installed('shed/skills/water/SKILL.md')));
  });

  it('are refused where a file is not what was listed, leads out, or is made anew each time', async () => {
    const reasons = {
      tampers: /does not serve its skills as it lists them: .*(?:digest|bytes)/,
      escapes: /serves no skills|does not serve|leads out/,
      dynamic: /makes the files of the skill 'rake' anew each time/,
    };
    for (const [fault, reason] of Object.entries(reasons)) {
      await serve(fault);
      const { code, stderr } = await home.run(['install', 'mcp:shed/rake', '--yes']);
      assert.equal(code, 1, stderr);
      assert.match(stderr, reason);
      assert.equal(existsSync(installed('rake')), false);
      assert.equal(existsSync(join(home.folder.path, 'escaped.md')), false);
    }
    assert.match(requests(), /resources\/read skill:\/\/rake\/SKILL\.md/);
    assert.doesNotMatch(requests(), /long/);
  });

  it('come from no server that is unknown, not accepted, or named by a project', async () => {
    await serve();
    const unknown = await home.run(['install', 'mcp:barn', '--yes']);
    assert.match(unknown.stderr, /No agent has an MCP server 'barn'/);
    const nothing = await home.run(['install', 'mcp:shed/dig', '--yes']);
    assert.equal(nothing.code, 2);
    assert.match(nothing.stdout + nothing.stderr, /mcp:garden:shed\/rake/);
    const project = await home.run(['install', 'mcp:shed', '--project', '--yes']);
    assert.match(project.stderr, /neither a link nor a project can name/);
    home.folder.add({ 'skills/other/mcp.json': JSON.stringify({ mcpServers: { barn: { command: 'x' } } }) });
    home.folder.add({ 'skills/other/skills/dig/SKILL.md': skill('dig') });
    const refused = await home.run(['install', 'mcp:barn', '--yes']);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /does not start before its agent other is reviewed/);
  });

  it('of another Telos are installed from its `telos mcp-serve`', async () => {
    home.folder.add({ 'there/kitchen/skills/bake/SKILL.md': skill('bake', 'Bake.') });
    const entry = {
      command: process.execPath,
      args: [program(), 'mcp-serve'],
      env: {
        TELOS_SKILLS_DIR: join(home.folder.path, 'there'),
        TELOS_DATA_DIR: join(home.folder.path, 'data-there'),
        TELOS_CONFIG_DIR: join(home.folder.path, 'config-there'),
      },
    };
    home.folder.add({ 'skills/garden/mcp.json': JSON.stringify({ mcpServers: { there: entry } }) });
    assert.equal((await home.run(['trust', 'garden', '--yes'])).code, 0);
    const { code, stderr } = await home.run(['install', 'mcp:there/bake', '--yes']);
    assert.equal(code, 0, stderr);
    const [file] = ['skills/bake/SKILL.md', 'SKILL.md']
      .map(one => installed(`bake/${one}`))
      .filter(existsSync);
    assert.match(readFileSync(file ?? '', 'utf8'), /^Bake\.$/m);
  });
});
