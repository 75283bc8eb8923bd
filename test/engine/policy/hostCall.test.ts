import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decide } from '../../../src/engine/policy/decide.ts';
import { type Decision, type PolicyContext, runPolicy } from '../../../src/engine/policy/decision.ts';
import { listPermissions, recordAnswer, revokePermission } from '../../../src/engine/policy/grants.ts';
import { hostCall } from '../../../src/engine/policy/subject.ts';
import type { ToolCall } from '../../../src/protocol/run.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

/** Which hosts a boxed command may reach: cards, rules and answers, with real files. */
describe('a host that a boxed command wants', () => {
  let run: TemporaryRun;
  let context: PolicyContext;
  beforeEach(() => {
    run = temporaryRun();
    run.put(
      'pack/skills/one/SKILL.md',
      '---\ndescription: d\n---\nSee https://named.test/api and http://plain.test/\n',
    );
    context = freshRun();
  });
  afterEach(() => run.remove());

  const config = () => ({
    configDir: join(run.home, '.config/telos'),
    dataDir: join(run.home, '.local/share/telos'),
    home: run.home,
    env: {},
  });
  function freshRun(): PolicyContext {
    const { workingDir, packDir, skillDir, commandDir } = run.context;
    const skills = [{ dir: run.skill, file: join(run.skill, 'SKILL.md') }];
    const agent = { name: 'kairos', packDir, workingDir, source: 'user' as const, skills };
    return runPolicy(config(), agent, { workingDir, packDir, skillDir, commandDir });
  }
  const policy = (text: string): string => run.put('home/.config/telos/policy.toml', text);
  const callFor = (place: string): ToolCall => ({
    id: '1',
    name: hostCall,
    input: { url: `${place.endsWith(':80') ? 'http' : 'https'}://${place}/`, program: 'npm' },
  });
  const about = (place: string): Promise<Decision> => decide(callFor(place), context);
  const short = async (place: string): Promise<string> => {
    const { action, rule } = await about(place);
    return `${action} ${rule.replace(/:\d+$/, '')}`;
  };
  const expectAll = async (rows: Readonly<Record<string, string>>): Promise<void> => {
    for (const [place, wanted] of Object.entries(rows)) assert.equal(await short(place), wanted, place);
  };
  async function trust(): Promise<void> {
    const { agent, reviews } = context;
    assert.ok(agent && reviews);
    const card = await reviews.cardOf(agent);
    await reviews.accept(agent, card, new Date());
  }

  it('is granted by the accepted card for the ports of its addresses, and by no card before', async () => {
    await expectAll({ 'named.test:443': 'ask card.new' });
    await trust();
    await expectAll({
      'named.test:443': 'allow card.host',
      'named.test:80': 'ask run.host',
      'named.test:22': 'ask run.host',
      'plain.test:80': 'allow card.host',
      'sub.named.test:443': 'ask run.host',
      'other.test:443': 'ask run.host',
      'localhost:3000': 'ask run.host-private',
      '10.0.0.1:443': 'ask run.host-private',
      '[::1]:443': 'ask run.host-private',
      '169.254.169.254:80': 'deny floor.fetch-address',
      '[fe80::1]:443': 'deny floor.fetch-address',
    });
  });

  it('is granted by rules about commands, with its port or for the ports of the web', async () => {
    await trust();
    const hosts = ['exact.test:8443', 'web.test', '*.wild.test', 'localhost:4873', 'intern.local'];
    policy(hosts.map(host => `[[allow]]\nagent = "*"\ntool = "run_command"\nhost = "${host}"\n`).join('\n'));
    await expectAll({
      'exact.test:8443': 'allow policy.allow',
      'exact.test:443': 'ask run.host',
      'web.test:443': 'allow policy.allow',
      'web.test:80': 'allow policy.allow',
      'web.test:22': 'ask run.host',
      'a.wild.test:443': 'allow policy.allow',
      'wild.test:443': 'ask run.host',
      'localhost:4873': 'allow policy.allow',
      'localhost:4874': 'ask run.host-private',
      'intern.local:443': 'ask run.host-private',
    });
    const fetching = { id: '1', name: 'fetch_url', input: { url: 'https://web.test/' } };
    assert.equal((await decide(fetching, context)).action, 'ask');
  });

  it('is not granted by a rule about pages, and forbidden by one', async () => {
    await trust();
    const rule = (effect: string, host: string): string =>
      `[[${effect}]]\nagent = "kairos"\ntool = "fetch_url"\nhost = "${host}"\n`;
    policy(rule('allow', 'pages.test') + rule('deny', 'named.test'));
    await expectAll({ 'pages.test:443': 'ask run.host', 'named.test:443': 'deny policy.deny' });
    policy('[[deny]]\nagent = "*"\ntool = "run_command"\nhost = "named.test"\n');
    await expectAll({ 'named.test:443': 'deny policy.deny' });
    const command = { id: '1', name: 'run_command', input: { command: 'curl https://named.test/x' } };
    assert.equal((await decide(command, context)).action, 'deny');
    const fetching = { id: '1', name: 'fetch_url', input: { url: 'https://named.test/' } };
    assert.equal((await decide(fetching, context)).action, 'allow');
  });

  it('is asked about in one sentence, and the answer holds as long as it says', async () => {
    await trust();
    const answer = async (place: string, scope: 'once' | 'run' | 'always'): Promise<void> => {
      const question = await about(place);
      assert.ok(question.action === 'ask');
      assert.deepEqual([question.reason, question.subject], [`npm wants to reach ${place}.`, place]);
      assert.deepEqual(question.scopes, ['once', 'run', 'always']);
      assert.deepEqual(await recordAnswer(callFor(place), question, scope, context), {});
    };
    await answer('one.test:443', 'once');
    await answer('run.test:443', 'run');
    await answer('always.test:8443', 'always');
    await expectAll({
      'one.test:443': 'ask run.host',
      'run.test:443': 'allow grant.run',
      'run.test:80': 'ask run.host',
      'always.test:8443': 'allow policy.allow',
    });
    context = freshRun();
    await expectAll({ 'run.test:443': 'ask run.host', 'always.test:8443': 'allow policy.allow' });
    const file = join(run.home, '.config/telos/policy.toml');
    assert.match(readFileSync(file, 'utf8'), /tool = "run_command"\nhost = "always\.test:8443"/);
    const { permissions } = await listPermissions(config());
    const rule = permissions.find(({ kind }) => kind === 'rule')!;
    assert.equal(await revokePermission(rule, config()), true);
    await expectAll({ 'always.test:8443': 'ask run.host' });
  });

  it('is asked about each time once the run has read a file with secrets, also if it is granted', async () => {
    await trust();
    context.memory!.sensitive = '/home/x/.env';
    const question = await about('named.test:443');
    assert.ok(question.action === 'ask');
    assert.deepEqual([question.rule, question.scopes], ['run.after-sensitive', ['once']]);
    assert.match(
      question.reason,
      /has read \/home\/x\/\.env, and named\.test would get whatever the command sends/,
    );
  });
});
