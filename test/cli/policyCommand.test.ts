/** `telos policy` over a policy.toml that changes between one call and the next, as it does with two windows. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CliHome, cliHome } from './cliProcess.ts';

const rule = (command: string): string =>
  `[[allow]]\nagent = "kairos"\ntool = "run_command"\ncommand = "${command}"\n\n`;

describe('telos policy', () => {
  let home: CliHome;
  beforeEach(() => {
    home = cliHome({ 'config/policy.toml': rule('make one') + rule('make two') + rule('make two') });
  });
  afterEach(() => home.remove());
  const file = (): string => join(home.folder.path, 'config/policy.toml');
  const list = async (): Promise<{ id: string; rule: { command: string } }[]> =>
    JSON.parse((await home.run(['policy', 'list', '--json'])).stdout);

  it('names a permission by an id that stays when the list changes', async () => {
    const [one, two, again] = await list();
    assert.ok(one && two && again);
    assert.match(one.id, /^r[\da-f]{7}$/);
    assert.notEqual(one.id, two.id);
    assert.equal(two.id, again.id);
    assert.ok((await home.run(['policy', 'list'])).stdout.includes(one.id));
    writeFileSync(file(), rule('make zero') + readFileSync(file(), 'utf8'));
    const { code, stderr } = await home.run(['policy', 'revoke', one.id]);
    assert.deepEqual([code, stderr], [0, 'Revoked: kairos, allow run_command: make one\n']);
    assert.deepEqual(
      (await list()).map(({ rule: { command } }) => command),
      ['make zero', 'make two', 'make two'],
    );
    // What grants the same goes with it, or nothing would be taken back.
    assert.equal((await home.run(['policy', 'revoke', two.id])).code, 0);
    assert.equal(readFileSync(file(), 'utf8').trimEnd(), rule('make zero').trimEnd());
  });

  it('switches off no tool of an agent or a server that does not exist, and adds no other address', async () => {
    home.folder.add({
      'skills/kairos/skills/go/SKILL.md': '---\ndescription: M\n---\nB',
      'skills/kairos/mcp.json': '{ "mcpServers": { "beds": { "command": "true" } } }',
    });
    const before = readFileSync(file(), 'utf8');
    const refused: [args: string[], why: RegExp][] = [
      [['off', 'nope', 'beds', 'dig'], /^There is no agent 'nope'\. Your agents: .*kairos/],
      [['off', 'kairos', 'nope', 'dig'], /^Agent 'kairos' has no MCP server 'nope'\./],
      [['add', 'kairos', 'bad', 'ftp://x'], /^ftp:\/\/x is not an address of a server/],
    ];
    for (const [args, why] of refused) {
      const { code, stderr } = await home.run(['mcp', ...args]);
      assert.equal(code, 2, args.join(' '));
      assert.match(stderr, why);
    }
    assert.equal(readFileSync(file(), 'utf8'), before);
    assert.doesNotMatch(readFileSync(join(home.skillsDir, 'kairos/mcp.json'), 'utf8'), /ftp/);
    assert.equal((await home.run(['mcp', 'off', 'kairos', 'beds', 'dig'])).code, 0);
    assert.match(readFileSync(file(), 'utf8'), /dig/);
    assert.equal((await home.run(['mcp', 'on', 'kairos', 'beds', 'dig'])).code, 0);
  });

  it('warns of a rule that is wider than it looks', async () => {
    const wide = '[[allow]]\nagent = "*"\ntool = "run_command"\nargv = ["find", "*"]\n';
    writeFileSync(file(), `${rule('make one')}${wide}`);
    const { code, stdout, stderr } = await home.run(['policy', 'list']);
    assert.equal(code, 0);
    assert.ok(stdout.includes('["find","*"]'), stdout);
    assert.match(stderr, /line 6: .*find can write files or start programs/);
  });

  it('does not say that nothing is granted where rules cannot be read, nor that there are no servers', async () => {
    const before = readFileSync(file(), 'utf8');
    writeFileSync(file(), '[[allow]\n');
    home.folder.add({
      'skills/beds/mcp.json': '{ broken',
      'skills/beds/skills/dig/SKILL.md': '---\ndescription: d\n---\nDig.\n',
    });
    const rules = await home.run(['policy', 'list']);
    assert.match(rules.stderr, /policy\.toml could not be read/);
    assert.doesNotMatch(rules.stderr, /Nothing is granted/);
    const listed = await home.run(['mcp', 'list']);
    assert.match(listed.stderr, /mcp\.json:1:3 is not JSON from there on/);
    assert.deepEqual([rules.code, listed.code], [1, 1]);
    writeFileSync(file(), before);
  });

  it('takes no place in the list, which can be that of another one by now, and says so', async () => {
    const before = readFileSync(file(), 'utf8');
    const { code, stderr } = await home.run(['policy', 'revoke', '1']);
    assert.equal(code, 2);
    assert.match(stderr, /Grant '1' not found\. .*telos policy list.*another one/);
    assert.equal(readFileSync(file(), 'utf8'), before);
  });

  it('cites the default rule that decides, and lists them all', async () => {
    const { code, stdout } = await home.run(['policy', 'explain', 'read_file', '{"path": "/srv/.env"}']);
    assert.equal(code, 0);
    assert.match(stdout, /^ask \(rule read\.sensitive\)\n/);
    assert.match(stdout, /\nDefault rule: .*passwords.* \(ask; approval applies to this run at most\)/);
    const all = await home.run(['policy', 'explain']);
    assert.equal(all.code, 0);
    assert.match(all.stdout, /^The first of these.*:\n1\. Hard limits.*\n2\. Prohibitions/);
    assert.match(all.stdout, /\n\nfloor\.telos-files: deny\n {2}A call reads/);
    assert.match(all.stdout, /\nrun\.box: allow\n/);
    const rules = JSON.parse((await home.run(['policy', 'explain', '--json'])).stdout);
    assert.equal(rules['write.executed'].action, 'ask');
    assert.equal((await home.run(['policy', 'explain', 'read_file'])).code, 2);
  });

  it('explains which rule lets a command run in the box, where one works', async () => {
    const words = ['policy', 'explain', 'run_command', '{"command": "npm test"}'];
    const without = (await home.run(words)).stdout;
    assert.match(without, /^ask \(rule run\.command\)/);
    const env = { TELOS_SANDBOX: 'auto' };
    const doctor = (await home.run(['doctor'], { env })).stdout;
    const inBox = (await home.run(words, { env })).stdout;
    if (/Commands:\n {2}run in a sandbox/.test(doctor))
      assert.match(
        inBox,
        /^allow \(rule run\.box\)[\s\S]*Where: in the sandbox\n[\s\S]*Default rule: The command runs in a box/,
      );
    else assert.match(inBox, /no sandbox for commands works here/);
    const publish = ['policy', 'explain', 'run_command', '{"command": "npm publish", "outside_box": true}'];
    const required = (await home.run(['--sandbox', 'required', ...publish])).stdout;
    assert.match(
      required,
      /^ask \(rule run\.command\)[\s\S]*Where: in the sandbox\nWhy: Runs in a sandbox|^deny \(rule run\.box-required\)/,
    );
  });
});
