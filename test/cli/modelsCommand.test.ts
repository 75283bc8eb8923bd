/** `telos models`: the models of a provider, with what it says of them, and the one in use marked. */
import assert from 'node:assert/strict';
import { listen, sendJson } from '../fakes/loopback.ts';
import { type CliHome, callCli, cliHome } from './cliProcess.ts';

describe('telos models', () => {
  let home: CliHome;
  let server: Awaited<ReturnType<typeof listen>>;
  before(async () => {
    home = cliHome();
    const data = [
      { id: 'claude-haiku-5-5', max_input_tokens: 1_000_000, retires_at: '2027-10-07T00:00:00Z' },
      { id: 'claude-\u001b[2Jodd' },
    ];
    server = await listen(async (_, response) => sendJson(response, 200, { data }));
  });
  after(() => {
    home.remove();
  });

  const models = (...args: string[]) => {
    const set = {
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_BASE_URL: server.address,
      TELOS_MODEL: 'claude-haiku-5-5',
    };
    return callCli(home.workDir, { ...home.env, ...set }, ['models', ...args]);
  };

  it('shows window, price, efforts and the day on which a model ends', async () => {
    const { code, stdout } = await models();
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^\* claude-haiku-5-5 +1M +0\.1\/0\.5, more above 100k +off low .*max +retires on 2027-10-07$/m,
    );
    assert.match(stdout, /^ {2}claude-.*odd +200k +unknown/m);
    assert.ok(!stdout.includes('\u001b'));
  });

  it('always has the model in use, marked, also one that the provider does not list', async () => {
    const { stdout } = await models('--model', 'claude-haiku-4-5');
    assert.match(stdout, /^\* claude-haiku-4-5 +200k +1\/5/m);
    assert.equal(stdout.match(/^\* /gm)?.length, 1);
  });

  it('has the same as JSON, and says what is not set up or does not exist', async () => {
    const { stdout } = await models('anthropic', '--json');
    assert.equal(JSON.parse(stdout)[0].models[0].retires, '2027-10-07');
    const missing = await models('openai');
    assert.equal(missing.code, 1);
    assert.match(missing.stdout, /gpt-6-luna +272k of 1\.05M +0\.1\/0\.5, more above 272k/);
    assert.match(missing.stderr, /openai is not set up.*telos key openai/);
    assert.equal((await models('nobody')).code, 2);
  });

  it('shows prices of your own, and says which cannot be read, and that those of Telos are old', async () => {
    home.folder.add({ 'config/config.toml': '[prices]\n"claude-haiku-5-5" = { input = 7, output = 9 }\n' });
    assert.match((await models()).stdout, /^\* claude-haiku-5-5 +1M +7\/9 /m);
    home.folder.add({ 'config/config.toml': '[prices]\n"claude-haiku-5-5" = { input = 7 }\n' });
    const broken = await models();
    assert.match(broken.stdout, /^\* claude-haiku-5-5 +1M +0\.1\/0\.5/m);
    assert.match(broken.stderr, /^The price of claude-haiku-5-5 in .*config\.toml cannot be read.*\n$/);
    home.folder.add({ 'config/config.toml': '' });
    const later =
      'data:text/javascript,const now=Date.now;Date.now=()=>now()+5e10;globalThis.Date=class extends Date{constructor(...a){super(...(a.length?a:[Date.now()]))}}';
    const env = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: server.address };
    const old = await home.runProcess(['models'], { env: { ...env, NODE_OPTIONS: `--import="${later}"` } });
    assert.match(old.stderr, /^The prices that Telos knows are of 2026-11-28, more than a year ago\./m);
  });

  it('says that a provider has not answered, and fails if it was to be asked', async () => {
    const before = await models('anthropic');
    await server.close();
    const again = await models('anthropic', '--refresh');
    assert.equal(again.code, 1);
    assert.match(again.stderr, /No answer from anthropic: these are the models that were known before\./);
    assert.equal(again.stdout, before.stdout);
    const kept = await models('anthropic');
    assert.deepEqual([kept.code, kept.stderr], [0, ''], 'what it said within a day counts');
  });
});
