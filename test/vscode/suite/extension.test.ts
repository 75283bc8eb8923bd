/** The extension as the editor sees it: which views there are, what the tree lists, how a key is kept. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import type { ExtensionExports } from '../../../src/extension/extension.ts';

const extensionId = 'telos.telos';

async function activated(): Promise<vscode.Extension<ExtensionExports>> {
  const extension = vscode.extensions.getExtension<ExtensionExports>(extensionId);
  assert.ok(extension, `${extensionId} is not installed`);
  await extension.activate();
  return extension;
}

/** The labels of the tree: agents, and below each its skills. */
async function listedSkills(): Promise<Map<string, string[]>> {
  const { skillTree } = (await activated()).exports;
  const agents = new Map<string, string[]>();
  for (const agent of await skillTree.getChildren()) {
    const skills = await skillTree.getChildren(agent);
    agents.set(
      String(skillTree.getTreeItem(agent).label),
      skills.map(skill => String(skillTree.getTreeItem(skill).label)),
    );
  }
  return agents;
}

describe('the views', () => {
  it('open by their commands, the tree and the chat', async () => {
    await activated();
    const known = await vscode.commands.getCommands(true);
    for (const view of ['telos.skills', 'telos.chat']) assert.ok(known.includes(`${view}.focus`), view);
    await vscode.commands.executeCommand('telos.skills.focus');
    await vscode.commands.executeCommand('telos.chat.focus');
  });
});

describe('the tree Agents & Skills', () => {
  const skillsDir = process.env['TELOS_SKILLS_DIR'] ?? '';
  const pack = join(skillsDir, 'suite-agent');
  const addSkill = async (name: string, text: string): Promise<void> => {
    await mkdir(join(pack, 'skills', name), { recursive: true });
    await writeFile(join(pack, 'skills', name, 'SKILL.md'), text);
  };

  before(() => assert.ok(skillsDir, 'TELOS_SKILLS_DIR must name a folder of this test alone'));
  afterEach(() => rm(pack, { recursive: true, force: true }));

  /** Resolves once the tree, asked again at each of its changes, lists what is wanted; mocha's limit ends the waiting. */
  async function untilListed(wanted: (agents: Map<string, string[]>) => boolean): Promise<void> {
    const { skillTree } = (await activated()).exports;
    await new Promise<void>((resolve, reject) => {
      const check = (): void => {
        listedSkills().then(agents => {
          if (!wanted(agents)) return;
          following.dispose();
          resolve();
        }, reject);
      };
      const following = skillTree.onDidChangeTreeData(check);
      check();
    });
  }

  /** The editor sets its watchers up in its own time; from then on every change arrives. */
  async function untilWatched(): Promise<void> {
    const { skillTree } = (await activated()).exports;
    await listedSkills(); // opens the engine, which asks for the watchers
    let watched = false;
    const following = skillTree.onDidChangeTreeData(() => {
      watched = true;
    });
    for (let count = 1; !watched; count++) {
      await addSkill('probe', `Take ${count}.\n`);
      await wait(500);
    }
    following.dispose();
    await rm(pack, { recursive: true });
    await untilListed(agents => !agents.has('suite-agent'));
  }

  it('lists a pack and follows its files without being told', async () => {
    await untilWatched();
    await addSkill('first', '---\ndescription: The first\n---\nDo it.\n');
    await untilListed(agents => agents.get('suite-agent')?.join() === 'first');
    await addSkill('second', '---\ndescription: The second\n---\nDo it.\n');
    await untilListed(agents => agents.get('suite-agent')?.join() === 'first,second');
    await rm(pack, { recursive: true });
    await untilListed(agents => !agents.has('suite-agent'));
  });

  it('shows descriptions without links and icons, and a broken skill with its defect', async () => {
    await addSkill(
      'sly',
      '---\ndescription: "[Free](command:workbench.action.quit) $(trash)"\n---\nDo it.\n',
    );
    await addSkill('torn', '---\ndescription: [\n---\nDo it.\n');
    await vscode.commands.executeCommand('telos.refresh');
    const { skillTree } = (await activated()).exports;
    const agent = (await skillTree.getChildren()).find(node => node.agent.name === 'suite-agent');
    const items = await Promise.all(
      (await skillTree.getChildren(agent)).map(node =>
        skillTree.resolveTreeItem(skillTree.getTreeItem(node), node),
      ),
    );
    const [sly] = items;
    assert.equal(sly?.description, '[Free] (command:workbench.action.quit) $ (trash)');
    assert.equal(typeof sly?.tooltip, 'string');
    const icons = items.map(({ iconPath }) => (iconPath instanceof vscode.ThemeIcon ? iconPath.id : ''));
    assert.deepEqual(icons, ['book', 'warning']);
  });
});

describe('Telos: Set API Key...', () => {
  const { showInputBox, showQuickPick } = vscode.window;
  const titles: string[] = [];

  /** Answers the next questions in place of a person: the input box with `typed`, the lists with their entries `picked`. */
  function answerWith(typed: string, ...picked: string[]): void {
    titles.length = 0;
    vscode.window.showInputBox = async (options?: vscode.InputBoxOptions) => {
      titles.push(options?.title ?? '');
      assert.equal(options?.password, true);
      return typed;
    };
    const pick = async (
      items: readonly vscode.QuickPickItem[] | Promise<readonly vscode.QuickPickItem[]>,
      options?: vscode.QuickPickOptions,
    ) => {
      titles.push(options?.title ?? '');
      const wanted = picked.shift();
      return (await items).find(({ label }) => label === wanted);
    };
    Object.assign(vscode.window, { showQuickPick: pick });
  }

  afterEach(() => {
    Object.assign(vscode.window, { showInputBox, showQuickPick });
  });

  it('keeps a key, offers to clear it, and forgets it', async () => {
    await activated();
    answerWith('key-of-the-suite', 'Gemini');
    await vscode.commands.executeCommand('telos.setApiKey');
    assert.deepEqual(titles, ['Which provider?', 'API key for Gemini']);
    answerWith('', 'Gemini', 'Clear the key');
    await vscode.commands.executeCommand('telos.setApiKey');
    assert.deepEqual(titles, ['Which provider?', 'A key for Gemini is set']);
    answerWith('', 'Gemini');
    await vscode.commands.executeCommand('telos.setApiKey');
    assert.deepEqual(titles, ['Which provider?', 'API key for Gemini']);
  });

  it('checks a key with its provider, keeps none that is refused, and offers the models with one that counts', async () => {
    await activated();
    const server = createServer((request, response) => {
      response.statusCode = request.headers['x-api-key'] === 'good-key' ? 200 : 401;
      response.end('{"data":[]}');
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const settings = vscode.workspace.getConfiguration('telos');
    const keys = ['bad-key', 'bad-key', 'good-key'];
    const refusals: unknown[] = [];
    try {
      await settings.update(
        'anthropic.baseUrl',
        `http://127.0.0.1:${port}`,
        vscode.ConfigurationTarget.Global,
      );
      answerWith('', 'Anthropic');
      vscode.window.showInputBox = async (options?: vscode.InputBoxOptions) => {
        titles.push(options?.title ?? '');
        refusals.push(options?.prompt?.includes('rejected this key') ? options.prompt : undefined);
        return keys.shift();
      };
      await vscode.commands.executeCommand('telos.setApiKey');
      const refused = 'Anthropic rejected this key. Check it, or enter another one.';
      assert.deepEqual(refusals, [undefined, refused, refused]);
      const asked = Array.from({ length: 3 }, () => 'API key for Anthropic');
      assert.deepEqual(titles, ['Which provider?', ...asked, 'Choose Model']);
      answerWith('', 'Anthropic', 'Clear the key');
      await vscode.commands.executeCommand('telos.setApiKey');
      assert.deepEqual(titles, ['Which provider?', 'A key for Anthropic is set']);
    } finally {
      await settings.update('anthropic.baseUrl', undefined, vscode.ConfigurationTarget.Global);
      server.close();
    }
  });

  it('clears all that is kept after one question, and says when there is nothing', async () => {
    await activated();
    const { showWarningMessage, setStatusBarMessage } = vscode.window;
    const said: string[] = [];
    let answer: string | undefined;
    Object.assign(vscode.window, {
      showWarningMessage: async (message: string) => {
        said.push(message);
        return answer;
      },
      setStatusBarMessage: (message: string) => void said.push(message),
    });
    const clear = async (answering?: string): Promise<void> => {
      answer = answering;
      await vscode.commands.executeCommand('telos.clearSecrets');
    };
    try {
      for (const provider of ['OpenAI', 'Gemini']) {
        answerWith('key-of-the-suite', provider);
        await vscode.commands.executeCommand('telos.setApiKey');
      }
      said.length = 0;
      await clear(undefined);
      await clear('Clear');
      await clear();
    } finally {
      Object.assign(vscode.window, { showWarningMessage, setStatusBarMessage });
    }
    const question = 'Clear the OpenAI key and the Gemini key?';
    assert.deepEqual(said.slice(0, 3), [question, question, 'The secrets of Telos are cleared.']);
    assert.match(said[3] ?? '', /keeps nothing/);
  });
});

describe("the command 'telos' for terminals", () => {
  const folder = join(homedir(), '.local', 'bin');
  const file = join(folder, 'telos');
  const { showInformationMessage, showWarningMessage } = vscode.window;

  afterEach(async () => {
    Object.assign(vscode.window, { showInformationMessage, showWarningMessage });
    await rm(folder, { recursive: true, force: true });
  });

  /** Runs the command, answers its question with this button, and returns what was said. */
  async function install(answer?: string): Promise<string[]> {
    await activated();
    const said: string[] = [];
    const show = async (message: string, ...items: unknown[]): Promise<unknown> => {
      said.push(message);
      return items.find(item => item === answer);
    };
    Object.assign(vscode.window, { showInformationMessage: show, showWarningMessage: show });
    await vscode.commands.executeCommand('telos.installCommand');
    return said;
  }

  it('is a script that starts the command line of the extension, and says what to add to PATH', async () => {
    const said = await install();
    assert.match(said[0] ?? '', /add it with: export PATH="\$HOME\/\.local\/bin:\$PATH"/);
    const { stdout } = await promisify(execFile)(file, ['--version'], { env: { HOME: homedir() } });
    const version = vscode.extensions.getExtension('telos.telos')?.packageJSON.version;
    assert.equal(stdout.trim(), version);
    assert.equal((await install()).length, 1, 'it has asked about its own script');
  });

  it('replaces a program of that name, or a link to one, only after a yes, and leaves alone what the link leads to', async () => {
    await mkdir(folder, { recursive: true });
    const other = join(folder, 'other-telos');
    await writeFile(other, 'mine');
    await symlink(other, file);
    assert.match((await install())[0] ?? '', /^Replace .*telos\?$/);
    assert.equal(await readFile(file, 'utf8'), 'mine');
    await install('Replace');
    assert.match(await readFile(file, 'utf8'), /^#!\/bin\/sh/);
    assert.equal(await readFile(other, 'utf8'), 'mine');
  });
});
