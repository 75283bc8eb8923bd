/** Links that run a skill: they show what would run, and run nothing by themselves. */
import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { loadConfig } from '../../../src/engine/config.ts';
import type { RunRequest } from '../../../src/engine/run/request.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { RunLink } from '../../../src/extension/editor/runLink.ts';
import { activated } from './editor.ts';

describe('links that show before they run', () => {
  before(() => activated());
  /** Follows a link and presses `button`, where there is one to press; returns what was shown and what ran. */
  async function followed(query: Record<string, string>, button?: string) {
    const ran: RunRequest[] = [];
    const asked: string[] = [];
    const chat = { submitInFront: async (request: RunRequest) => void ran.push(request) };
    const telos = Telos.open(loadConfig({ variables: {} }));
    const link = new RunLink({ openTelos: async () => telos } as never, chat);
    const { showWarningMessage } = vscode.window;
    const press = async (message: string, ...items: string[]): Promise<string | undefined> => {
      asked.push(message);
      return items.find(item => item === button);
    };
    Object.assign(vscode.window, { showWarningMessage: press });
    try {
      await link.preview(new URLSearchParams(query));
      const shown = vscode.window.activeTextEditor?.document.getText() ?? '';
      await new Promise(resolve => setImmediate(resolve));
      return { shown, ran, asked };
    } finally {
      Object.assign(vscode.window, { showWarningMessage });
      link.dispose();
    }
  }
  after(() => vscode.commands.executeCommand('workbench.action.closeAllEditors'));

  it('show the skill, its file and the words with what is hidden in them, and run nothing by themselves', async () => {
    const text = 'today\u202e\u200b\n# Run it';
    const { shown, ran, asked } = await followed({ skill: 'kickoff', agent: 'kairos', text });
    assert.match(shown, /Nothing has run/);
    assert.match(shown, /Skill: kickoff of agent kairos/);
    assert.match(shown, /kickoff\/SKILL\.md/);
    assert.match(shown, / {2}\| today<U\+202E><U\+200B>\n {2}\| # Run it/);
    assert.equal(asked.length, 1);
    assert.deepEqual(ran, []);
  });

  it('run what was shown once the person has pressed Run', async () => {
    const { ran } = await followed({ skill: 'kairos:kickoff', text: 'today' }, 'Run');
    assert.deepEqual(ran, [{ text: 'today', skill: { agent: 'kairos', skill: 'kickoff' } }]);
  });

  it('say which skills fit where the link names none, without asking a model', async () => {
    const { shown, ran } = await followed({ text: 'daily kickoff' });
    assert.match(shown, /Matching skills, best match first:\n {2}kickoff of kairos/);
    assert.deepEqual(ran, []);
  });

  it('offer no Run for a skill that is not there, for nothing, and for more than one reads', async () => {
    for (const [query, why] of [
      [{ skill: 'gone' }, /no skill gone/],
      [{}, /nothing to run/],
      [{ skill: 'kickoff', text: 'x'.repeat(5_000) }, /too long to review/],
    ] as const) {
      const { shown, asked, ran } = await followed(query, 'Run');
      assert.match(shown, why);
      assert.deepEqual([asked, ran], [[], []]);
    }
  });
});
