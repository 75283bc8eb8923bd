/** What Telos offers to the rest of the editor: its models, the MCP servers of accepted agents, and links that show before they run. */
import assert from 'node:assert/strict';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { loadConfig } from '../../../src/engine/config.ts';
import { logPath } from '../../../src/engine/records/logFile.ts';
import type { RunRequest } from '../../../src/engine/run/request.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { lmModels } from '../../../src/extension/editor/lmProvider.ts';
import { offeredServers } from '../../../src/extension/editor/offeredServers.ts';
import { RunLink } from '../../../src/extension/editor/runLink.ts';
import { type OpenaiTurn, startOpenaiServer } from '../../fakes/openaiServer.ts';
import { activated, until } from './editor.ts';

const skillsDir = process.env['TELOS_SKILLS_DIR'] ?? '';
const pack = join(skillsDir, 'offer-agent');

/** As mcp.json writes it. */
const variable = (name: string): string => `\${${name}}`;

const set = (name: string, value: unknown) =>
  vscode.workspace.getConfiguration('telos').update(name, value, vscode.ConfigurationTarget.Global);

/** A Telos of its own, as the extension would open it now. */
const opened = (variables: Record<string, string> = {}) => {
  const telos = Telos.open(loadConfig({ variables }));
  return { openTelos: async () => telos };
};

describe('what is offered to the editor', () => {
  before(() => activated());

  describe('models', () => {
    const turns: OpenaiTurn[] = [];
    let server: Awaited<ReturnType<typeof startOpenaiServer>>;
    const ours = () => vscode.lm.selectChatModels({ vendor: 'telos' });
    const asked = async (
      text: string,
      options: vscode.LanguageModelChatRequestOptions = {},
      token?: vscode.CancellationToken,
    ) => {
      const [model] = await ours();
      assert.ok(model);
      const messages = [vscode.LanguageModelChatMessage.User(text)];
      const parts: unknown[] = [];
      for await (const part of (await model.sendRequest(messages, options, token)).stream) parts.push(part);
      return parts;
    };

    before(async () => {
      server = await startOpenaiServer({
        turns: (_request, index) => turns[index] ?? {},
        other: ({ path }) => (path === '/v1/models' ? { data: [{ id: 'local-model' }] } : undefined),
      });
      await set('openai.baseUrl', server.url);
    });
    after(async () => {
      await set('offerModels', undefined);
      await set('openai.baseUrl', undefined);
      await server.close();
    });

    it('are there only once the setting says so, and are none of those that Telos uses itself', async () => {
      assert.deepEqual(await ours(), []);
      await set('offerModels', true);
      await until(async () => (await ours()).length > 0);
      const [model] = await ours();
      assert.deepEqual([model?.id, model?.family], ['openai/local-model', 'local-model']);
      assert.ok(!(await lmModels()).some(({ vendor }) => vendor === 'telos'));
      assert.ok(((await model?.countTokens('four words of text')) ?? 0) > 2);
    });

    it('stream their text, are told of tools, and hand calls on', async () => {
      turns.push({ text: ['It ', 'rains.'], toolCalls: [{ id: 'c1', name: 'look', input: { at: 'sky' } }] });
      const tools = [{ name: 'look', description: 'Looks', inputSchema: { type: 'object' } }];
      const parts = await asked('How is it?', { tools });
      const texts = parts.filter(part => part instanceof vscode.LanguageModelTextPart);
      assert.equal(texts.map(({ value }) => value).join(''), 'It rains.');
      const call = parts.find(part => part instanceof vscode.LanguageModelToolCallPart);
      assert.deepEqual([call?.callId, call?.name, call?.input], ['c1', 'look', { at: 'sky' }]);
      const sent = JSON.stringify(server.requests.at(-1)?.body);
      assert.match(sent, /How is it\?/);
      assert.match(sent, /"name":"look"/);
    });

    it('are written down with the door through which they were asked, and without the words', async () => {
      const { dataDir } = (await opened().openTelos()).config;
      const log = await readFile(logPath(dataDir), 'utf8');
      const calls = log.split('\n').filter(line => line.includes('"door":"editor"'));
      assert.match(calls.at(-1) ?? '', /"outcome":"completed".*"model":"local-model"/);
      assert.doesNotMatch(calls.join('\n'), /How is it|It rains/);
    });

    it('refuse with the kind of error that the editor knows, and end with the one who asked', async () => {
      turns.push({ status: 401 });
      await assert.rejects(asked('Hello'), (error: Error) => {
        assert.match(error.message, /key|401/i);
        return true;
      });
      const before = server.requests.length;
      turns[before] = { text: ['a', 'b'], stallAfterStartMs: 600_000 };
      const source = new vscode.CancellationTokenSource();
      const asking = asked('Wait', {}, source.token);
      await until(() => server.requests.length > before);
      source.cancel();
      await asking.catch(() => {}); // the test's own limit is shorter than the silence
      source.dispose();
    });
  });

  describe('MCP servers', () => {
    const servers = {
      quiet: {
        command: 'node',
        args: ['server.js', variable('OFFER_TOKEN')],
        env: { TOKEN: variable('OFFER_TOKEN') },
      },
      web: {
        type: 'http',
        url: 'https://mcp.example.com/',
        headers: { authorization: `Bearer ${variable('OFFER_TOKEN')}` },
      },
      boxed: { command: 'node', args: ['server.js'], sandbox: true },
      greedy: { command: 'node', env: { KEY: variable('ANTHROPIC_API_KEY') } },
    };
    before(async () => {
      await mkdir(join(pack, 'skills', 'offer'), { recursive: true });
      await writeFile(join(pack, 'skills', 'offer', 'SKILL.md'), '---\ndescription: Offers\n---\nOffer.\n');
      await writeFile(join(pack, 'mcp.json'), JSON.stringify({ mcpServers: servers }));
      process.env['OFFER_OTHER_SECRET'] = 'of the editor';
    });
    after(async () => {
      delete process.env['OFFER_OTHER_SECRET'];
      await set('offerMcpServers', undefined);
      await rm(pack, { recursive: true });
      await rm(join(process.env['TELOS_CONFIG_DIR'] ?? '', 'reviews'), { recursive: true });
    });

    it('need the setting and an accepted card, and get their variables only when they start', async () => {
      const current = opened({ OFFER_TOKEN: 's3cret', ANTHROPIC_API_KEY: 'k3y' });
      const telos = await current.openTelos();
      const provider = offeredServers(current);
      await telos.acceptCard(await telos.agentCard('offer-agent'));
      assert.deepEqual(await provider.provideMcpServerDefinitions(), []);
      await set('offerMcpServers', true);
      const definitions = await provider.provideMcpServerDefinitions();
      assert.deepEqual(
        definitions.map(({ label }) => label),
        ['quiet of offer-agent', 'web of offer-agent', 'greedy of offer-agent'],
      );
      assert.doesNotMatch(JSON.stringify(definitions), /s3cret|k3y/);

      const [quiet, web, greedy] = definitions;
      assert.ok(quiet && web && greedy);
      const started = await provider.resolveMcpServerDefinition(quiet);
      assert.ok(started instanceof vscode.McpStdioServerDefinition);
      assert.deepEqual(started.args, ['server.js', 's3cret']);
      assert.equal(started.env['TOKEN'], 's3cret');
      assert.equal(started.env['OFFER_OTHER_SECRET'], null, 'the environment of the editor went along');
      const reached = await provider.resolveMcpServerDefinition(web);
      assert.ok(reached instanceof vscode.McpHttpServerDefinition);
      assert.deepEqual(reached.headers, { authorization: 'Bearer s3cret' });
      await assert.rejects(
        provider.resolveMcpServerDefinition(greedy),
        /ANTHROPIC_API_KEY.*gives to no server/,
      );
    });

    it('are no longer there once a file of their agent has changed', async () => {
      const current = opened({ OFFER_TOKEN: 's3cret' });
      const provider = offeredServers(current);
      const [quiet] = await provider.provideMcpServerDefinitions();
      assert.ok(quiet);
      await writeFile(join(pack, 'skills', 'offer', 'run.sh'), 'echo other\n');
      await assert.rejects(
        provider.resolveMcpServerDefinition(quiet),
        /card of agent offer-agent is not accepted/,
      );
      assert.deepEqual(await provider.provideMcpServerDefinitions(), []);
    });
  });

  describe('links', () => {
    /** Follows a link and presses `button`, where there is one to press; returns what was shown and what ran. */
    async function followed(query: Record<string, string>, button?: string) {
      const ran: RunRequest[] = [];
      const asked: string[] = [];
      const chat = { submitInFront: async (request: RunRequest) => void ran.push(request) };
      const link = new RunLink({ openTelos: opened().openTelos } as never, chat);
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
});
