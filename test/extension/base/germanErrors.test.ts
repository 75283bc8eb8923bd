/** What fails in the engine is said in German in a German editor. Each error is a real one, on the way on which the editor shows it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { TelosError } from '../../../src/engine/core/errors.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { type McpServer, resolveServer } from '../../../src/engine/mcp/config.ts';
import { phraseOf } from '../../../src/engine/mcp/renewableServer.ts';
import type { RunRequest } from '../../../src/engine/run/request.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { describeError, localized, speak, translated } from '../../../src/extension/base/labels.ts';
import { openPlan, Plan } from '../../../src/plans/plan.ts';
import type { PlanCaller } from '../../../src/plans/planRun.ts';
import { english, type Say, sentence, withValues } from '../../../src/protocol/text.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const bundle = new URL('../../../l10n/bundle.l10n.de.json', import.meta.url);
const german: Record<string, string> = JSON.parse(readFileSync(bundle, 'utf8'));
const inGerman: Say = (text, ...values) => withValues(german[text] ?? text, values);
const never = new AbortController().signal;

describe('errors of the engine in a German editor', () => {
  let folder: TempFolder;
  let repo: string;
  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows the beds\n---\nSow.',
    });
    repo = join(folder.path, 'shop');
    mkdirSync(repo);
    speak(inGerman, 'de');
  });
  afterEach(() => {
    speak(english, 'en');
    folder.remove();
  });

  const open = (env: Record<string, string> = {}): Telos =>
    Telos.open(
      loadConfig({
        env: {
          PATH: process.env['PATH'],
          XDG_CACHE_HOME: join(folder.path, 'cache'),
          TELOS_SKILLS_DIR: join(folder.path, 'skills'),
          TELOS_DATA_DIR: join(folder.path, 'data'),
          TELOS_CONFIG_DIR: join(folder.path, 'config'),
          ...env,
        },
        home: join(folder.path, 'home'),
        cwd: repo,
      }),
    );
  const caller = (): PlanCaller => ({ runs: open(), human: denyAll, by: 'editor' });

  /** Returns what the chat shows of the error with which the run ends. */
  async function shownOf(request: RunRequest, telos = open()): Promise<string> {
    for await (const event of telos.run(request, denyAll, never)) {
      const shown = localized(event);
      if (shown.type === 'run_end') return shown.error?.message ?? shown.outcome;
    }
    return 'no end';
  }

  /** Returns what the editor says of the error that the work throws. */
  const saidOf = (work: Promise<unknown>): Promise<string> => work.then(() => 'no error', describeError);

  it('are those of hooks, too', async () => {
    const hook = (command: string): string =>
      `[[hook]]\nevent = "UserPromptSubmit"\ncommand = '${command}'\n`;
    folder.add({ 'config/hooks.toml': hook('echo oh >&2; exit 1') + hook('echo heute nicht >&2; exit 2') });
    const shown: string[] = [];
    for await (const event of open().run({ text: '/sow' }, denyAll, never)) {
      const said = localized(event);
      if (said.type === 'notice') shown.push(said.message);
      if (said.type === 'run_end') shown.push(said.error?.message ?? '');
    }
    assert.deepEqual(shown, [
      'Hook von Ihnen (UserPromptSubmit): Er endete mit dem Exitcode 1: oh',
      'Ein Hook von Ihnen lässt diese Anforderung nicht durch: heute nicht',
    ]);
  });

  it('says which agent, which skill and which address a run could not find', async () => {
    assert.equal(
      await shownOf({ text: 'the beds', agent: 'nobody' }),
      'Der Agent „nobody“ wurde nicht gefunden. Verfügbare Agents: garden',
    );
    assert.equal(
      await shownOf({ text: 'the beds', skill: { agent: 'garden', skill: 'reap' } }),
      'Den Skill „reap“ des Agents „garden“ gibt es nicht mehr.',
    );
    const telos = open({
      TELOS_PROVIDER: 'anthropic',
      ANTHROPIC_API_KEY: 'sk-ant-test',
      ANTHROPIC_BASE_URL: 'localhost',
    });
    assert.equal(
      await shownOf({ text: 'the beds', skill: { agent: 'garden', skill: 'sow' } }, telos),
      'ANTHROPIC_BASE_URL ist „localhost“ und damit keine Adresse. Legen Sie eine Adresse fest, die mit http:// oder https:// beginnt.',
    );
  });

  it('says that the files of an agent have changed while its card was open', async () => {
    const telos = open();
    const card = await telos.agentCard('garden');
    folder.add({ 'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows\n---\nReap.' });
    assert.match(
      await saidOf(telos.acceptCard(card)),
      /^Die Dateien des Agents „garden“ haben sich geändert, während Sie seine Berechtigungen geprüft haben\. Prüfen Sie sie erneut\. Prüfen Sie/,
    );
  });

  it('says what keeps a plan from running', async () => {
    const start = () => Plan.create(repo, 'A shop', caller(), 'shop');
    assert.equal(
      await saidOf((async () => openPlan(repo, 'shop', caller()))()),
      'Es gibt keinen Plan „shop“. Hier gibt es noch keine Pläne.',
    );
    const plan = await start();
    assert.equal(
      await saidOf(start()),
      'Es gibt bereits einen Plan „shop“. Wählen Sie einen anderen Namen, oder fahren Sie mit ihm fort.',
    );
    assert.equal(await saidOf(plan.steer({ kind: 'pause' })), 'Der Plan läuft nicht.');
    assert.equal(
      await saidOf(plan.run({ slots: 1 }, never)),
      `${repo} ist nicht in einem Git-Repository. Erstellen Sie eines mit "git init" und einem ersten Commit.`,
    );
    execFileSync('git', ['init', '--quiet', repo]);
    assert.equal(
      await saidOf(plan.run({ slots: 1 }, never)),
      'Das Repository hat keine Commits, und ein Plan beginnt mit einem. Erstellen Sie einen ersten Commit.',
    );
    assert.equal(
      await saidOf(plan.steer({ kind: 'skip', story: 'US-009' })),
      'Im Plan „shop“ gibt es keine Story „US-009“.',
    );
  });

  it('says why an MCP server cannot start', () => {
    const server: McpServer = { type: 'stdio', command: 'node', args: [`\${TOKEN}`, `\${HOST}`], env: {} };
    const resolved = resolveServer(server, { HOST: '' });
    assert.equal(
      'refusal' in resolved && translated(resolved.refusal),
      'TOKEN ist nicht festgelegt, HOST ist leer; legen Sie dies in der Umgebung oder in der .env-Datei von Telos fest',
    );
    const box = new TelosError('config', [
      sentence('The working folder {0} was removed.', '/srv/shop'),
      sentence('Nothing was run.'),
    ]);
    assert.equal(
      translated(phraseOf(box)),
      'Der Arbeitsordner /srv/shop wurde entfernt. Es wurde nichts ausgeführt.',
    );
  });
});
