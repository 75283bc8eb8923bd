/** What lies behind the path of a settings file can be anything: nothing waits for it, and no more is read than fits. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { readEnvFile } from '../../../src/engine/envFile.ts';
import {
  loadRegularFile,
  loadText,
  readGiven,
  readOpenFile,
  readRegularFile,
  readText,
} from '../../../src/engine/files/regularFile.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { RunEvent } from '../../../src/protocol/run.ts';
import { calls, done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const isWindows = process.platform === 'win32';
const devices = isWindows ? [] : ['/dev/zero', '/dev/random'];

describe('a file that is read as a whole', () => {
  let folder: TempFolder;
  const at = (name: string): string => join(folder.path, name);
  beforeEach(() => {
    folder = tempFolder({ 'a.txt': 'wörds\n', 'empty.txt': '' });
    if (!isWindows) execFileSync('mkfifo', [at('pipe')]);
    if (!isWindows) symlinkSync(at('pipe'), at('link-to-pipe'));
    for (const device of devices) symlinkSync(device, at(`link-to${device.replaceAll('/', '-')}`));
  });
  afterEach(() => folder.remove());

  it('is read behind a link, when it is empty, and when its size says nothing', async () => {
    symlinkSync(at('a.txt'), at('link'));
    for (const name of ['a.txt', 'link']) {
      assert.equal(readText(at(name)), 'wörds\n');
      assert.equal(await loadText(at(name)), 'wörds\n');
      assert.equal(readGiven(at(name)), 'wörds\n');
    }
    assert.equal(readText(at('empty.txt')) + (await loadText(at('empty.txt'))), '');
    if (process.platform === 'linux')
      for (const read of [readText, loadText]) assert.match(await read('/proc/self/stat'), /^\d+ \(/);
  });

  it('is refused at once if it is a pipe, a device or a folder', async () => {
    const others = isWindows
      ? []
      : ['pipe', 'link-to-pipe', ...devices.map(d => `link-to${d.replaceAll('/', '-')}`)];
    for (const name of others) {
      assert.throws(() => readRegularFile(at(name)), /a pipe, a socket or a device/, name);
      await assert.rejects(loadRegularFile(at(name)), /a pipe, a socket or a device/, name);
      assert.match(JSON.stringify(readEnvFile(at(name)).problem), /a pipe, a socket, a device/, name);
    }
    assert.throws(() => readText(folder.path), { code: 'EISDIR' });
    await assert.rejects(loadText(folder.path), { code: 'EISDIR' });
    assert.throws(() => readText(at('none')), { code: 'ENOENT' });
  });

  it('is not read if it is larger than its limit, also if that shows only while it is read', async () => {
    writeFileSync(at('large'), 'x'.repeat(1_001));
    assert.throws(() => readText(at('large'), 1_000), /1001 bytes; the maximum is 1000/);
    await assert.rejects(loadText(at('large'), 1_000), /1001 bytes; the maximum is 1000/);
    assert.equal(readText(at('large'), 1_001).length, 1_001);
    truncateSync(at('large'), 3 * 1024 * 1024 * 1024);
    assert.throws(() => readText(at('large')), /the maximum is/);
    for (const device of devices) {
      const fd = openSync(device, 'r');
      assert.throws(() => readOpenFile(fd, 1_000_000), /more than 1000000 bytes/);
      closeSync(fd);
    }
  });

  it('stops no run, whatever lies behind the files of a pack, of a folder and of the settings', async () => {
    const names = [
      'agent.toml',
      'mcp.json',
      'policy.toml',
      'plugin.json',
      'README.md',
      '.gitignore',
      '.gitattributes',
    ];
    folder.add({ 'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows\n---\nSow.\n' });
    const own = ['agents.toml', 'policy.toml', '.env', 'mcp.json', 'reviews.json', 'disabled.json'];
    folder.add({ 'config/.k': '', 'data/.k': '', 'work/.k': '' });
    if (!isWindows) {
      for (const name of names) symlinkSync(at('pipe'), at(`skills/garden/${name}`));
      for (const name of names) symlinkSync('/dev/zero', at(`work/${name}`));
      for (const name of own) symlinkSync('/dev/zero', at(`config/${name}`));
    }
    const env = {
      ...{ TELOS_SKILLS_DIR: at('skills'), TELOS_DATA_DIR: at('data'), TELOS_CONFIG_DIR: at('config') },
      PATH: process.env['PATH'],
    };
    const provider = scriptedProvider([
      [calls('1', 'search_files', { pattern: 'beds' }), done('tool_use')],
      [calls('2', 'run_command', { command: 'git status' }), done('tool_use')],
      [says('done'), done()],
    ]);
    const config = loadConfig({
      env: { ...env, TELOS_PROVIDER: 'scripted' },
      home: at('home'),
      cwd: at('work'),
    });
    const telos = Telos.open(config, {
      providers: { scripted: { model: async () => 's', create: async () => provider } },
    });
    await telos.agentCard('garden').catch(() => undefined);
    await telos.ranking({ text: 'sow the beds' });
    const skill = { agent: 'garden', skill: 'sow' };
    let end: RunEvent | undefined;
    for await (end of telos.run({ text: 'go', skill }, denyAll, new AbortController().signal));
    assert.equal(end?.type, 'run_end');
  });
});
