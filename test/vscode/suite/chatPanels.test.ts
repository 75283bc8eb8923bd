/** Chats in editors, and what the editor knows of them: their tabs, their commands, a kept conversation that is played again. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { activated, until } from './editor.ts';

const chatTabs = (): vscode.Tab[] =>
  vscode.window.tabGroups.all
    .flatMap(group => group.tabs)
    .filter(
      ({ input }) => input instanceof vscode.TabInputWebview && input.viewType.endsWith('telos.chatPanel'),
    );

/** Puts the file of a run where Telos keeps them. */
async function keepRun(runId: string, lines: readonly object[]): Promise<void> {
  const folder = join(process.env['TELOS_DATA_DIR'] ?? assert.fail('no data folder'), 'runs');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${runId}.jsonl`), lines.map(line => `${JSON.stringify(line)}\n`).join(''));
}

describe('chats in editors', () => {
  before(async () => {
    await activated();
    const startedAt = '2026-01-05T08:00:00.000Z';
    const request = 'water the garden';
    await keepRun('kept-run', [
      {
        type: 'run',
        version: 1,
        runId: 'kept-run',
        conversation: 'kept-talk',
        door: 'chat',
        startedAt,
        request,
        pid: 1,
      },
      { type: 'run_start', runId: 'kept-run', text: request, startedAt },
      { type: 'text', text: 'Done.' },
      { type: 'run_end', outcome: 'completed', rounds: 1, toolCalls: 0, durationMs: 10, messages: [] },
    ]);
  });

  afterEach(async () => {
    await vscode.window.tabGroups.close(chatTabs());
  });

  it('open beside each other', async () => {
    await vscode.commands.executeCommand('telos.openChatInEditor');
    await vscode.commands.executeCommand('telos.openChatInEditor');
    await until(() => chatTabs().length === 2);
    assert.deepEqual(
      chatTabs().map(({ label }) => label),
      ['Telos', 'Telos'],
    );
  });

  it('show a kept conversation once, by its name or by one of its runs', async () => {
    await vscode.commands.executeCommand('telos.openConversation', { runId: 'kept-run', panel: true });
    await until(() => chatTabs().some(({ label }) => label === 'water the garden'));
    const wanted = { conversationId: 'kept-talk', panel: true };
    await vscode.commands.executeCommand('telos.openConversation', wanted);
    await vscode.commands.executeCommand('telos.openConversation', { runId: 'kept-run' });
    assert.equal(chatTabs().length, 1);
  });

  it('play a run again beside the conversation that it belongs to', async () => {
    await vscode.commands.executeCommand('telos.openConversation', { runId: 'kept-run', panel: true });
    await vscode.commands.executeCommand('telos.openConversation', { runId: 'kept-run', replay: true });
    await until(() => chatTabs().length === 2);
    const labels = (): string[] => chatTabs().map(({ label }) => label);
    await until(() => labels().sort().join() === 'Replay: water the garden,water the garden');
  });

  it('say that a conversation is gone, and open nothing', async () => {
    void vscode.commands.executeCommand('telos.openConversation', { runId: 'no-such-run' });
    void vscode.commands.executeCommand('telos.openConversation', { conversationId: '../../etc' });
    await new Promise(resolve => setTimeout(resolve, 300));
    assert.deepEqual(chatTabs(), []);
  });
});
