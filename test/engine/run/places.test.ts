/** Where a run works, reads and runs its commands, and what stays of its skill's own folder. Real files and real commands. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, loadConfig } from '../../../src/engine/config.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { projectFoldersAt } from '../../../src/engine/skills/workFolders.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { ApprovalRequest, JsonObject, RunEvent, ToolCall } from '../../../src/protocol/run.ts';
import { calls, done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const skillText = '---\ndescription: d\n---\nGo.\n';
const slug = 'home/.skills/count/';

describe('the places of a run', () => {
  let folder: TempFolder;
  const at = (path: string): string => join(folder.path, path);

  beforeEach(() => {
    folder = tempFolder({
      'project/data.txt': 'one\ntwo\n',
      [`${slug}SKILL.md`]: skillText,
      [`${slug}references/guide.md`]: 'the guide',
      [`${slug}scripts/count.sh`]: 'wc -l < "$1" | tr -d " " > lines.txt; pwd; cat lines.txt',
    });
  });
  afterEach(() => folder.remove());

  function config(cwd: string): Config {
    const { PATH = '' } = process.env;
    const read = loadConfig({
      env: { PATH, TELOS_PROVIDER: 'scripted', TELOS_SANDBOX: 'off' },
      home: at('home'),
      cwd: at(cwd),
    });
    return { ...read, projectFolders: projectFoldersAt(read) };
  }

  /** Does the calls one after the other, and denies whatever is asked. */
  async function run(
    wanted: [string, JsonObject][],
    { cwd = 'project', agent = 'count', accept = true } = {},
  ) {
    const provider = scriptedProvider([
      ...wanted.map(([name, input], index) => [calls(`c${index}`, name, input), done('tool_use')]),
      [says('ok'), done()],
    ]);
    const scripted = { model: async () => 'script', create: async () => provider };
    const telos = Telos.open(config(cwd), { providers: { scripted } });
    if (accept) await telos.acceptCard(await telos.agentCard(agent));
    const asked: ApprovalRequest[] = [];
    const approve = async (request: ApprovalRequest) => {
      asked.push(request);
      return { allow: false, reason: 'no' } as const;
    };
    const skill = (await telos.agents()).find(({ name }) => name === agent)?.skills[0]?.id ?? '';
    const events: RunEvent[] = [];
    const { signal } = new AbortController();
    for await (const event of telos.run(
      { text: 'go', skill: { agent, skill } },
      { ...denyAll, approve },
      signal,
    ))
      events.push(event);
    return {
      asked: asked.map(({ rule }) => rule),
      notices: events.flatMap(event => (event.type === 'notice' ? event.message : [])),
      started: events.flatMap(event => (event.type === 'tool_start' ? event.call : [])) as ToolCall[],
      results: events.flatMap(event => (event.type === 'tool_end' ? event.result.content : [])),
      system: provider.requests[0]?.system ?? '',
    };
  }

  it('of a foreign skill are where the person stands: its text is taken at its word, and nothing is asked', async () => {
    const { asked, results, started, system, notices } = await run([
      ['Read', { file_path: 'references/guide.md' }],
      ['Read', { file_path: 'data.txt' }],
      ['Bash', { command: 'sh scripts/count.sh data.txt' }],
      ['Write', { file_path: 'out/report.md', content: 'done' }],
    ]);
    assert.deepEqual(asked, []);
    assert.match(results[0] ?? '', /^the guide\n/);
    assert.match(results[1] ?? '', /^one\ntwo/);
    assert.match(results[2] ?? '', new RegExp(`^${at('project')}\n2\n`));
    assert.deepEqual(
      started.map(({ name, input }) => [name, input['path'] ?? input['command']]),
      [
        ['read_file', at(`${slug}references/guide.md`)],
        ['read_file', 'data.txt'],
        ['run_command', `sh ${at(`${slug}scripts/count.sh`)} data.txt`],
        ['write_file', 'out/report.md'],
      ],
    );
    assert.equal(readFileSync(at('project/lines.txt'), 'utf8'), '2\n');
    assert.ok(existsSync(at('project/out/report.md')));
    assert.deepEqual(readdirSync(at(slug)).sort(), ['SKILL.md', 'references', 'scripts']);
    assert.ok(system.includes(`Commands run in ${at('project')}.`), system);
    assert.deepEqual(notices, ['Works in: this folder']);
    const again = await run([['Bash', { command: 'sh scripts/count.sh out/report.md' }]], { accept: false });
    assert.deepEqual([again.asked, again.notices], [[], ['Works in: this folder']]);
  });

  it('of a plugin are where the person stands, whatever lies beside its skills', async () => {
    const beside = [
      'agents/reviewer.md',
      'commands/fix.md',
      'hooks/hooks.json',
      'CLAUDE.md',
      'package.json',
      '.claude-plugin/plugin.json',
      'plugin.json',
      'gemini-extension.json',
      'docs/guide.md',
      'scripts/tool.sh',
      'lib/core.js',
      'README.md',
    ];
    for (const [number, file] of [...beside, beside].entries()) {
      const agent = `kit-${number}`;
      const files = [file].flat().map(path => [`home/.skills/${agent}/${path}`, '{}']);
      folder.add({ ...Object.fromEntries(files), [`home/.skills/${agent}/skills/fix/SKILL.md`]: skillText });
      const wanted: [string, JsonObject][] = [
        ['write_file', { path: `${agent}.js`, content: 'fixed' }],
        ['run_command', { command: 'pwd' }],
      ];
      const { asked, results, notices } = await run(wanted, { agent });
      assert.deepEqual([asked, notices], [[], ['Works in: this folder']], String(file));
      assert.equal(readFileSync(at(`project/${agent}.js`), 'utf8'), 'fixed');
      assert.equal(results[1]?.trim(), at('project'), String(file));
    }
    assert.equal(existsSync(at('home/obsidian')), false);
  });

  it('of a plugin are called by their former folder once, if its work may be there', async () => {
    folder.add({
      'home/.skills/kit/skills/fix/SKILL.md': skillText,
      'home/.skills/kit/commands/fix.md': 'Fix.',
      'home/obsidian/telos/kit/app.js': 'fixed',
      'other/app.js': '',
    });
    const { notices } = await run([], { agent: 'kit' });
    assert.deepEqual(notices, [
      'Works in: this folder',
      `Earlier versions of Telos let agent 'kit' work in ${at('home/obsidian/telos/kit')}; now it works in ${at('project')}. What it wrote stays there; move it if you need it.`,
    ]);
    for (const cwd of ['project', 'other'])
      assert.deepEqual((await run([], { agent: 'kit', cwd })).notices, ['Works in: this folder']);
    assert.equal(readFileSync(at('home/obsidian/telos/kit/app.js'), 'utf8'), 'fixed');
  });

  it('of a pack of Telos that chooses the current folder are there for commands, too', async () => {
    folder.add({ [`${slug}agent.toml`]: 'working_dir = "."' });
    const { results, asked, notices } = await run([
      ['run_command', { command: 'cat data.txt' }],
      ['run_command', { command: 'pwd' }],
      ['run_command', { command: 'sh scripts/count.sh data.txt' }],
    ]);
    assert.deepEqual([asked, notices], [[], ['Works in: this folder']]);
    assert.match(results[0] ?? '', /^one\ntwo\n/);
    assert.equal(results[1]?.trim(), at('project'));
    assert.match(results[2] ?? '', new RegExp(`^${at('project')}\n2\n`));
    assert.equal(existsSync(at(`${slug}lines.txt`)), false);
  });

  it('of a foreign skill are its own folder for a person at home, or in the skill', async () => {
    for (const cwd of ['home', slug, 'home/.skills']) {
      const { results, asked } = await run([['run_command', { command: 'sh scripts/count.sh data.txt' }]], {
        cwd,
      });
      assert.deepEqual(asked, [], cwd);
      assert.match(results[0] ?? '', new RegExp(`^${at('home/obsidian/telos/count')}\n`), cwd);
    }
    folder.add({ 'home/private.txt': 'x' });
    const { asked } = await run([['read_file', { path: at('home/private.txt') }]], { cwd: 'home' });
    assert.deepEqual(asked, ['read.outside']);
  });

  it('of a pack of Telos are its working folder, and its pack for commands', async () => {
    folder.add({ [`${slug}agent.toml`]: '' });
    const { results, asked, system } = await run([
      ['write_file', { path: 'plan.txt', content: 'a\nb\nc\n' }],
      ['run_command', { command: 'sh scripts/count.sh plan.txt' }],
      ['read_file', { path: 'data.txt' }],
      ['read_file', { path: at('project/data.txt') }],
      ['write_file', { path: at('project/data.txt'), content: '' }],
    ]);
    assert.ok(existsSync(at('home/obsidian/telos/count/plan.txt')));
    assert.match(results[1] ?? '', new RegExp(`^${at(slug).replace(/\/$/, '')}\n3\n`));
    assert.match(results[2] ?? '', /^one\ntwo/);
    assert.match(results[3] ?? '', /^one\ntwo/);
    assert.deepEqual(asked, ['write.outside']);
    assert.ok(system.includes(`The person works in ${at('project')};`), system);
  });

  it('never contain a folder that a command names outside them', async () => {
    mkdirSync(at('elsewhere'));
    const { results } = await run([
      ['exec', { command: 'ls', workdir: at('elsewhere') }],
      ['exec', { command: 'ls', workdir: '../elsewhere' }],
      ['exec', { command: 'ls', workdir: 'scripts' }],
    ]);
    assert.match(results[0] ?? '', /outside the folders of this run/);
    assert.match(results[1] ?? '', /outside the folders of this run/);
    assert.match(results[2] ?? '', /^count\.sh/);
  });

  it('tell in a line what a granted script adds to its skill, and show the card for what it changes', async () => {
    folder.add({
      [`${slug}scripts/keep.sh`]: 'echo "$1" >> "$(dirname "$0")/../state.json"',
      [`${slug}scripts/grow.sh`]: 'echo "echo evil" > "$(dirname "$0")/new.sh"',
      [`${slug}scripts/change.sh`]: 'echo "more" >> "$(dirname "$0")/../references/guide.md"',
    });
    const keep: [string, JsonObject] = ['run_command', { command: 'sh scripts/keep.sh a' }];
    const kept = await run([keep, keep]);
    assert.deepEqual(kept.asked, []);
    assert.match(kept.notices.join('\n'), /Its script wrote state\.json into the folder of agent 'count'/);
    const later = await run([keep], { accept: false });
    assert.deepEqual(later.asked, []);
    for (const script of ['grow', 'change']) {
      const { asked } = await run([['run_command', { command: `sh scripts/${script}.sh` }], keep]);
      assert.deepEqual(asked, ['card.changed'], script);
    }
  });

  it('of a project’s own skill are behind its card, and never a folder that holds the home', async () => {
    folder.add({
      'project/.git/HEAD': '',
      'project/.claude/skills/ship/SKILL.md': skillText,
      'project/src/a.txt': 'a',
    });
    const wanted: [string, JsonObject][] = [
      ['read_file', { path: 'a.txt' }],
      ['write_file', { path: 'b.txt', content: '' }],
    ];
    const ship = { cwd: 'project/src', agent: 'project' };
    const first = await run(wanted, { ...ship, accept: false });
    assert.deepEqual(first.asked, ['card.new']);
    assert.equal(first.results[0], 'a');
    const second = await run(wanted, ship);
    assert.deepEqual(second.asked, []);
    assert.ok(existsSync(at('project/src/b.txt')));
    // Another folder of the same project is covered too.
    assert.deepEqual((await run([wanted[1]!], { ...ship, cwd: 'project', accept: false })).asked, []);
  });
});

describe('projectFoldersAt', () => {
  it('goes up to the root of the repository, and nowhere near the home folder', () => {
    const folder = tempFolder({ 'repo/.git/HEAD': '', 'repo/a/b/x': '', 'loose/a/x': '', 'home/p/q/x': '' });
    const at = (path: string): string => join(folder.path, path);
    const found = (cwd: string): string[] => projectFoldersAt({ cwd: at(cwd), home: at('home') });
    try {
      assert.deepEqual(found('repo/a/b'), ['repo/a/b', 'repo/a', 'repo'].map(at));
      assert.deepEqual(found('loose/a'), [at('loose/a')]);
      folder.add({ 'home/.git/HEAD': '', '.git/HEAD': '' });
      assert.deepEqual(found('home/p/q'), [at('home/p/q')]);
      assert.deepEqual([found('home'), found('')], [[], []]);
    } finally {
      folder.remove();
    }
  });
});
