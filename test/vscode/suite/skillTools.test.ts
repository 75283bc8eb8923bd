/** The tools that Telos gives to other agents of the editor, called as those call them. */
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { activated, answering, scriptModels, until } from './editor.ts';

const skillsDir = process.env['TELOS_SKILLS_DIR'] ?? '';
const pack = join(skillsDir, 'tool-agent');

async function called(name: string, input: object): Promise<string> {
  const result = await vscode.lm.invokeTool(name, { input, toolInvocationToken: undefined });
  return result.content
    .map(part => (part instanceof vscode.LanguageModelTextPart ? part.value : ''))
    .join('');
}

describe('the language-model tools', () => {
  before(async () => {
    await activated();
    await mkdir(join(pack, 'skills', 'echo'), { recursive: true });
    await writeFile(
      join(pack, 'skills', 'echo', 'SKILL.md'),
      '---\ndescription: Says [it](command:workbench.action.quit) again\n---\nSay it again.\n',
    );
    await scriptModels([{ id: 'plain' }], []);
    await vscode.commands.executeCommand('telos.refresh');
  });
  after(async () => {
    await scriptModels([], []);
    await rm(pack, { recursive: true });
    await vscode.commands.executeCommand('telos.refresh');
  });

  it('are known to the editor with a text for models', () => {
    const names = ['telos_listSkills', 'telos_runSkill'];
    for (const name of names) {
      const tool = vscode.lm.tools.find(known => known.name === name);
      assert.ok(tool?.description && tool.inputSchema, name);
    }
  });

  it('list the skills, all or those of one agent', async () => {
    assert.match(await called('telos_listSkills', {}), /^kairos:kickoff: /m);
    const own = await called('telos_listSkills', { agent: 'tool-agent' });
    assert.equal(own, 'tool-agent:echo: Says [it] (command:workbench.action.quit) again');
  });

  it('run a skill and return its answer; what is risky waits for a yes in a list that has the no on top', async () => {
    const call = { id: 'c1', name: 'run_command', input: { command: '/bin/echo loud > said.txt' } };
    await scriptModels(undefined, [[{ text: 'I try.' }, { call }], [{ text: 'It was not allowed.' }]]);
    let answer = '';
    // A window under test agrees to the editor's question by itself; the one about the command stays unanswered.
    const asked = await answering({}, async () => {
      answer = await called('telos_runSkill', { skill: 'echo', request: 'hello' });
    });
    assert.equal(answer, 'I try.\n\nIt was not allowed.');
    assert.match(asked.lists[0]?.[0] ?? '', /Deny/);
    assert.ok(asked.lists[0]?.some(label => /Allow Once/.test(label)));
    const requests = (await vscode.commands.executeCommand('telos-lm.requests')) as { messages: unknown[] }[];
    assert.match(JSON.stringify(requests[0]?.messages), /Say it again.*hello/s);
    assert.match(JSON.stringify(requests[1]?.messages.at(-1)), /closed the question without a yes/);
  });

  it('ask in a list that neither Enter nor letters answer, since these may be meant for a text', async () => {
    const call = { id: 'c1', name: 'run_command', input: { command: '/bin/echo loud > said.txt' } };
    await scriptModels(undefined, [[{ call }], [{ text: 'It was not allowed.' }]]);
    const { createQuickPick } = vscode.window;
    const lists: vscode.QuickPick<vscode.QuickPickItem>[] = [];
    Object.assign(vscode.window, {
      createQuickPick: () => {
        const list = createQuickPick();
        lists.push(list);
        return list;
      },
    });
    try {
      let answer: string | undefined;
      const running = called('telos_runSkill', { skill: 'echo', request: 'hello' }).then(text => {
        answer = text;
      });
      await until(() => lists.length === 1);
      let pressed = 0;
      lists[0]?.onDidAccept(() => pressed++);
      const press = async (): Promise<void> => {
        const before = pressed;
        await until(async () => {
          await vscode.commands.executeCommand('workbench.action.acceptSelectedQuickOpenItem');
          return pressed > before;
        });
      };
      await press();
      await press();
      assert.equal(answer, undefined, 'Enter answered');
      await until(async () => {
        await vscode.commands.executeCommand('workbench.action.quickOpenSelectNext');
        return lists[0]?.activeItems.length === 1;
      });
      await press();
      await running;
      assert.equal(answer, 'It was not allowed.');
    } finally {
      Object.assign(vscode.window, { createQuickPick });
    }
  });

  it('stop with the call that started them', async () => {
    await scriptModels(undefined, [[{ text: 'waiting' }, { hang: true }]]);
    const source = new vscode.CancellationTokenSource();
    const input = { skill: 'tool-agent:echo' };
    const running = vscode.lm.invokeTool(
      'telos_runSkill',
      { input, toolInvocationToken: undefined },
      source.token,
    );
    const requests = () =>
      vscode.commands.executeCommand('telos-lm.requests') as Thenable<{ cancelled: boolean }[]>;
    await until(async () => (await requests()).length === 1);
    source.cancel();
    await assert.rejects(Promise.resolve(running));
    await until(async () => (await requests())[0]?.cancelled === true);
    source.dispose();
  });

  it('tell a calling model which skills there are when it names one that is not there', async () => {
    await assert.rejects(called('telos_runSkill', { skill: 'gone' }), /no skill 'gone'.*tool-agent:echo/s);
  });
});
