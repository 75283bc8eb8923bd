/** The Testing view: skills with their evals and requests, played and failing at their line. */
import assert from 'node:assert/strict';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as vscode from 'vscode';
import { activated, scriptModels, until } from './editor.ts';

describe('the Testing view', () => {
  const skillDir = join(process.env['TELOS_SKILLS_DIR'] ?? '', 'tested-agent', 'skills', 'sums-up');
  const put = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(skillDir, path)), { recursive: true });
    await writeFile(join(skillDir, path), text);
  };

  before(async () => {
    await activated();
    await put('SKILL.md', '---\ndescription: Sums up harvest notes\n---\nWrite a summary.\n');
    await put(
      'evals/trigger.json',
      '[\n  {"query": "sum up my harvest notes", "should_trigger": true},\n  {"query": "paint the fence", "should_trigger": true}\n]\n',
    );
    const checks = [{ file: 'out.md', contains: 'plums' }];
    await put(
      'evals/evals.json',
      JSON.stringify({ evals: [{ id: 1, name: 'a summary', prompt: 'Sum up', checks }] }),
    );
    await vscode.commands.executeCommand('telos.refresh');
  });
  after(async () => {
    await rm(join(skillDir, '../..'), { recursive: true, force: true });
    await scriptModels([], []);
    await vscode.commands.executeCommand('telos.refresh');
  });

  /** Returns what the view would show after a run: `passed`, `skipped`, or the words of a failure with its line. */
  async function results(records: boolean): Promise<Map<string, string>> {
    const { evalTests } = (await activated()).exports;
    await until(() => evalTests.view !== undefined);
    const { controller, playing, recording } = evalTests.view ?? assert.fail('nothing is shown');
    await controller.refreshHandler?.(new vscode.CancellationTokenSource().token);
    const item = controller.items.get('tested-agent:sums-up');
    assert.ok(item, 'the skill is listed');
    const shown = new Map<string, string>();
    const said = (
      given: vscode.TestItem,
      words: vscode.TestMessage | readonly vscode.TestMessage[],
    ): void => {
      const [first] = [words].flat();
      const line = first?.location?.range.start.line;
      shown.set(given.label, `line ${(line ?? -1) + 1}: ${first?.message}`);
    };
    const { createTestRun } = controller;
    controller.createTestRun = (...args) => {
      const run = createTestRun.apply(controller, args);
      const { passed, failed, errored, skipped } = run;
      run.passed = given => {
        shown.set(given.label, 'passed');
        passed.call(run, given);
      };
      run.skipped = given => {
        shown.set(given.label, 'skipped');
        skipped.call(run, given);
      };
      run.failed = (given, words) => {
        said(given, words);
        failed.call(run, given, words);
      };
      run.errored = (given, words) => {
        said(given, words);
        errored.call(run, given, words);
      };
      return run;
    };
    try {
      const profile = records ? recording : playing;
      const token = new vscode.CancellationTokenSource().token;
      await profile.runHandler(new vscode.TestRunRequest([item], undefined, profile), token);
    } finally {
      controller.createTestRun = createTestRun;
    }
    return shown;
  }

  it('plays what is recorded, and shows a failure at its line', async function () {
    this.timeout(60_000);
    const before = await results(false);
    assert.equal(before.get('sum up my harvest notes'), 'passed');
    assert.match(before.get('paint the fence') ?? '', /^line 3: It runs no skill\./);
    assert.match(before.get('a summary') ?? '', /^line 1: Nothing is recorded yet\./);
  });

  const lenses = async (uri: vscode.Uri): Promise<vscode.Command[]> => {
    const found = await vscode.commands.executeCommand<vscode.CodeLens[]>(
      'vscode.executeCodeLensProvider',
      uri,
    );
    return found.flatMap(({ command }) => (command && /Evals|Record/.test(command.title) ? [command] : []));
  };

  it('runs from the lines above a SKILL.md, which say what came of it until the skill is changed', async function () {
    this.timeout(60_000);
    const uri = vscode.Uri.file(join(skillDir, 'SKILL.md'));
    // Nothing that an earlier try has left counts.
    const words = `Write a summary. ${Date.now()}`;
    await put('SKILL.md', `---\ndescription: Sums up harvest notes\n---\n${words}\n`);
    const document = await vscode.workspace.openTextDocument(uri);
    await until(() => document.getText().includes(words));
    await until(async () => (await lenses(uri))[0]?.title === '$(beaker) Run Evals');
    const [run, record] = await lenses(uri);
    assert.equal(record?.title, 'Record...');
    await vscode.commands.executeCommand(run?.command ?? '', ...(run?.arguments ?? []));
    assert.equal((await lenses(uri))[0]?.title, '$(error) Run Evals · 1 of 3 pass · 1 to record');
    const edit = new vscode.WorkspaceEdit();
    edit.insert(uri, new vscode.Position(document.lineCount, 0), 'Be brief.\n');
    await vscode.workspace.applyEdit(edit);
    assert.ok(await document.save());
    assert.equal((await lenses(uri))[0]?.title, '$(beaker) Run Evals');
    const bare = join(skillDir, '..', 'bare', 'SKILL.md');
    await put('../bare/SKILL.md', '---\ndescription: Has no evals\n---\nDo it.\n');
    await vscode.workspace.openTextDocument(bare);
    assert.deepEqual(await lenses(vscode.Uri.file(bare)), []);
  });

  it('records with the model of the editor after a yes, and goes stale with the skill', async function () {
    this.timeout(60_000);
    const settings = vscode.workspace.getConfiguration('telos');
    await settings.update('provider', 'vscode', vscode.ConfigurationTarget.Global);
    const write = { id: 'w', name: 'write_file', input: { path: 'out.md', content: 'Two plums' } };
    await scriptModels([{ id: 'gardener', tools: true }], [[{ call: write }], [{ text: 'Done.' }]]);
    const { showInformationMessage } = vscode.window;
    const asked: string[] = [];
    let answer: string | undefined;
    Object.assign(vscode.window, {
      showInformationMessage: async (question: string) => {
        asked.push(question);
        return answer;
      },
    });
    try {
      assert.equal((await results(true)).get('a summary'), 'skipped');
      answer = 'Run and Record';
      assert.equal((await results(true)).get('a summary'), 'passed');
    } finally {
      Object.assign(vscode.window, { showInformationMessage });
      await settings.update('provider', undefined, vscode.ConfigurationTarget.Global);
    }
    assert.match(asked[0] ?? '', /^Run 1 eval with .*gardener and keep the recording\?$/);
    assert.equal((await readdir(join(skillDir, 'evals/recordings'))).length, 1);
    assert.equal((await results(false)).get('a summary'), 'passed');
    await put('SKILL.md', '---\ndescription: Sums up harvest notes\n---\nWrite a summary!\n');
    await vscode.commands.executeCommand('telos.refresh');
    await until(async () =>
      /The files of the skill have changed/.test((await results(false)).get('a summary') ?? ''),
    );
  });
});
