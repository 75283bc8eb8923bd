/** Runs that the chat does not show: seen and stopped from the status bar; skills on what is selected in a terminal. */
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { activated, answering, scriptModels, until } from './editor.ts';

const pack = join(process.env['TELOS_SKILLS_DIR'] ?? '', 'native-agent');
const command = (name: string): Promise<unknown> => Promise.resolve(vscode.commands.executeCommand(name));
const requests = () =>
  vscode.commands.executeCommand('telos-lm.requests') as Thenable<
    { messages: unknown[]; cancelled: boolean }[]
  >;

describe('runs outside of the chat', () => {
  before(async () => {
    await activated();
    for (const name of ['wait', 'sum']) {
      await mkdir(join(pack, 'skills', name), { recursive: true });
      await writeFile(join(pack, 'skills', name, 'SKILL.md'), `---\ndescription: Can ${name}\n---\nDo it.\n`);
    }
    await scriptModels([{ id: 'plain' }], []);
    await command('telos.refresh');
  });
  after(async () => {
    await scriptModels([], []);
    await rm(pack, { recursive: true });
    await command('telos.refresh');
    await command('workbench.action.closeAllEditors');
  });

  it('show in the status bar while they go on, and stop from there', async () => {
    const { status } = (await activated()).exports;
    await scriptModels(undefined, [[{ text: 'waiting' }, { hang: true }]]);
    const input = { skill: 'native-agent:wait' };
    const running = vscode.lm.invokeTool('telos_runSkill', { input, toolInvocationToken: undefined });
    const ended = Promise.resolve(running).then(
      () => 'done',
      (error: Error) => error.message,
    );
    await until(async () => (await requests()).length === 1);
    await until(() => /loading~spin.*telos-lm\/plain/.test(status.text));
    const asked = await answering({ picked: [/Stop wait of native-agent/] }, () =>
      command('telos.showRunning'),
    );
    assert.deepEqual(asked.titles, ['Running skills']);
    assert.match(await ended, /stopped/);
    await until(async () => (await requests())[0]?.cancelled === true);
    await until(() => !/loading/.test(status.text));
  });

  it('take the selection of a terminal along, leave the clipboard as it was, and put what was used last on top', async () => {
    await vscode.env.clipboard.writeText('mine');
    const written = new vscode.EventEmitter<string>();
    const pty = { onDidWrite: written.event, open: () => written.fire('total 42 files'), close: () => {} };
    const terminal = vscode.window.createTerminal({ name: 'listing', pty });
    try {
      terminal.show();
      await until(async () => {
        await command('workbench.action.terminal.selectAll');
        await command('workbench.action.terminal.copySelection');
        return (await vscode.env.clipboard.readText()).includes('total 42');
      });
      await vscode.env.clipboard.writeText('mine');
      await scriptModels(undefined, [[{ text: 'It is 42.' }]]);
      await answering({ picked: ['sum', /New Document/], typed: ['add it up'] }, () =>
        command('telos.runSkillOnTerminalSelection'),
      );
      assert.equal(vscode.window.activeTextEditor?.document.getText(), 'It is 42.');
      assert.match(
        JSON.stringify((await requests())[0]?.messages),
        /add it up.*terminal listing.*total 42 files/s,
      );
      assert.equal(await vscode.env.clipboard.readText(), 'mine');
      const asked = await answering({}, () => command('telos.runSkill'));
      assert.deepEqual(asked.lists[0]?.slice(0, 2), ['Last used', 'sum']);
    } finally {
      terminal.dispose();
      written.dispose();
    }
  });
});
