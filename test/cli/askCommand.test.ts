/** `telos ask`: a request for which Telos looks for a skill itself. */
import assert from 'node:assert/strict';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('telos ask', function () {
  this.timeout(30_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome({});
  });
  afterEach(() => home.remove());

  it('runs without any skill, and logs it', async () => {
    const toolCalls = [{ name: 'run_command', input: { command: 'pwd' } }];
    const server = await startAnthropicServer({ turns: [{ toolCalls }, { text: ['Nothing there.'] }] });
    try {
      const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
      const { code, stdout, stderr } = await home.run(['ask', 'when', 'is', 'high', 'tide'], { env });
      assert.deepEqual([code, stdout], [0, 'Nothing there.\n']);
      assert.match(stderr, /^no skill: Telos looks for one\n→ run_command pwd\nDone in [^\n]*\n$/);
      const log = await home.log();
      assert.deepEqual(
        log.map(record => record.event),
        ['skill_start', 'tool_call', 'skill_end'],
      );
    } finally {
      await server.close();
    }
  });

  it('says what would run', async () => {
    const { code, stdout } = await home.run(['--dry-run', 'ask', 'x']);
    assert.deepEqual([code, stdout], [0, 'Would run no skill: Telos looks for one\n']);
    assert.equal((await home.run(['ask'])).code, 2);
  });
});
