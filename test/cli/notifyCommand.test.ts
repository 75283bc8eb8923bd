/** `telos notify`: messengers are set up, tried and removed; what was not accepted is never called sent. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { ntfyServer, telegramServer } from '../fakes/messengerServers.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

const token = '123456:AAbbCCdd';

describe('telos notify', () => {
  let home: CliHome;
  const file = (): string => join(home.folder.path, 'config/.env');

  beforeEach(() => {
    home = cliHome();
  });
  afterEach(() => home.remove());

  it('sets up a topic that nobody guesses, for the user alone to read, and removes it', async () => {
    const { code, stdout } = await home.run(['notify', 'add', 'ntfy']);
    assert.equal(code, 0);
    const [, topic = ''] = /Subscribe to (telos-[\w-]{20}) in the ntfy app/.exec(stdout) ?? [];
    assert.match(readFileSync(file(), 'utf8'), new RegExp(`^TELOS_NTFY_TOPIC=${topic}\n$`));
    assert.equal(statSync(file()).mode & 0o077, 0);
    const listed = await home.run(['notify', 'list']);
    assert.match(listed.stdout, /ntfy +https:\/\/ntfy\.sh, a topic/);
    assert.doesNotMatch(listed.stdout + listed.stderr, new RegExp(topic));
    assert.equal((await home.run(['notify', 'remove', 'ntfy'])).code, 0);
    assert.doesNotMatch(readFileSync(file(), 'utf8'), /NTFY/);
    assert.match((await home.run(['notify', 'list'])).stderr, /No messenger is set up\./);
    assert.equal((await home.run(['notify', 'remove', 'ntfy'])).code, 1);
  });

  it('reads the token of a bot from a pipe, asks its users, and shows the answer', async () => {
    const server = await telegramServer(token);
    const added = await home.runProcess(['notify', 'add', 'telegram', '4711', '--server', server.url], {
      input: `${token}\n`,
    });
    assert.equal(added.code, 0);
    assert.doesNotMatch(added.stdout + added.stderr, /AAbb/);
    const testing = home.run(['notify', 'test', '--wait', '30']);
    await eventually(() => assert.equal(server.messages.length, 1));
    const { buttons, text, chat } = server.messages[0]!;
    assert.match(text, /nothing runs, whatever you answer/);
    assert.equal(chat, '4711');
    server.press('4711', buttons[0]!.callback_data);
    const { code, stdout } = await testing;
    assert.equal(code, 0);
    assert.match(stdout, /Telegram: sent\..*\nTelegram: answered, once\./);
    assert.deepEqual(server.refused, []);
    await server.close();
  });

  it('says that nothing was sent where the service refuses it', async () => {
    const server = await ntfyServer('tk_somebody');
    const env = { TELOS_NTFY_TOPIC: 'a-topic', TELOS_NTFY_SERVER: server.url };
    const { code, stdout, stderr } = await home.run(['notify', 'test'], { env });
    assert.equal(code, 1);
    assert.match(stderr, /ntfy: not sent\. ntfy did not accept it \(HTTP 403\)/);
    assert.doesNotMatch(stdout, /sent/);
    await server.close();
  });

  it('keeps nothing of what cannot work, and says why', async () => {
    const wrong: readonly (readonly [args: string[], why: RegExp])[] = [
      [['ntfy', 'a topic'], /at most 50 letters/],
      [['ntfy', 'topic', '--server', 'http://ntfy.example'], /not an https address/],
      [['webhook', 'http://me.example'], /https address/],
      [['telegram', '-1001'], /ids of those who may answer|unknown option/],
      [['telegram', 'ann'], /ids of those who may answer/],
      [['pigeon'], /'pigeon' is not one of ntfy, webhook, telegram/],
    ];
    for (const [args, why] of wrong) {
      const { code, stderr } = await home.run(['notify', 'add', ...args]);
      assert.match(stderr, why);
      assert.equal(code, 2);
    }
    assert.equal(existsSync(file()), false);
  });

  it('is in the report of doctor, with what is wrong', async () => {
    const env = { TELOS_NTFY_TOPIC: 'a-topic', TELOS_TELEGRAM_TOKEN: token };
    const { stdout } = await home.run(['doctor'], { env });
    assert.match(stdout, /Messengers: ntfy, as set up/);
    assert.match(stdout, /TELOS_TELEGRAM_USERS has no ids of users/);
    assert.doesNotMatch(stdout, /AAbb/);
  });
});
