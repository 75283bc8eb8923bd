/** Text that is piped into a request goes with it, and the part that is not sent is said. */
import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';

const turns: AnthropicTurn[] = [{ text: ['Done.'] }];

describe('text that is piped in', function () {
  this.timeout(60_000);
  let home: CliHome;
  let server: FakeServer;
  beforeEach(async () => {
    home = cliHome();
    server = await startAnthropicServer({ turns });
  });
  afterEach(async () => {
    await server.close();
    home.remove();
  });
  const env = () => ({ ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' });
  const ask = (input: string | undefined) =>
    home.runProcess(['ask', 'review', 'this'], { env: env(), ...(input !== undefined && { input }) });
  const read = (): string => JSON.stringify(server.requests[0]?.body ?? {});

  it('goes with the request as material', async () => {
    const { code, stdout, stderr } = await ask('-leeks\n+garlic\n');
    deepEqual([code, stdout], [0, 'Done.\n'], stderr);
    match(read(), /material for the request.*piped text:.*-leeks\\n\+garlic/);
  });

  it('is said to be empty or too large', async () => {
    match((await ask(' \n')).stderr, /The piped text is empty/);
    doesNotMatch(read(), /piped text/);
    match(
      (await ask('0123456789'.repeat(60_000))).stderr,
      /too large: only its first 64,000 characters are sent/,
    );
    match(
      JSON.stringify(server.requests[1]?.body),
      /Cut here, after 64,000 characters: there are 600,000 bytes/,
    );
  });

  it('is not waited for where a program leaves its pipe open, or there is none', async () => {
    equal((await ask(undefined)).code, 0);
    const saidBy = (command: string, words: string[]) =>
      new Promise<string>((resolve, reject) =>
        execFile(
          command,
          words,
          { cwd: home.workDir, env: { ...home.env, ...env() } },
          (error, stdout, stderr) => (error ? reject(error) : resolve(stdout + stderr)),
        ),
      );
    const words = [program(), 'ask', 'review', 'this'];
    match(await saidBy(process.execPath, words), /^Done\.\nno skill/);
    const line = `sleep 5 | '${process.execPath}' '${words.join("' '")}'`;
    match(await saidBy('sh', ['-c', line]), /^Done\.\nNothing came through the pipe in 3 seconds/);
  });
});
