/** Special files that a skill's text says it writes: lines of the card, each to switch off, and nothing besides. */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { denyAll } from '../../../src/engine/human.ts';
import type { ReviewedAgent } from '../../../src/engine/policy/agentFiles.ts';
import { decide } from '../../../src/engine/policy/decide.ts';
import {
  type Decision,
  type PolicyContext,
  RunMemory,
  runPolicy,
} from '../../../src/engine/policy/decision.ts';
import { promisedIn } from '../../../src/engine/policy/promisedFiles.ts';
import { approveCall } from '../../../src/engine/run/approval.ts';
import { builtinTools } from '../../../src/engine/tools/builtin.ts';
import { describeCard } from '../../../src/protocol/agentCard.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const promises = (text: string, ...names: string[]): string[] => promisedIn(text, ['purse-watch', ...names]);

describe('the special files that a text promises', () => {
  it('are named as the text has them', () => {
    for (const [text, ...expected] of [
      ['Write the orders to `AGENTS.md`.', 'AGENTS.md'],
      ['6) Update AGENTS.md if you learned more.', 'AGENTS.md'],
      ['touch PROMPT.md AGENTS.md PLAN.md', 'AGENTS.md'],
      ['Then append it to **docs/CLAUDE.md**.', 'docs/CLAUDE.md'],
      ['### Write the SKILL.md', 'SKILL.md'],
      ['Create `<new>/SKILL.md`, `{name}/SKILL.md`', 'SKILL.md'],
      ['Keep each in `.claude/notes/<topic>.md`, add a line to `.claude/notes/index.md`', '.claude/notes'],
      ['State: .claude/purse-watch.local.md', '.claude/purse-watch.local.md'],
      ['Persist to `~/.purse_watch/`:', '~/.purse_watch'],
      // biome-ignore lint/suspicious/noTemplateCurlyInString: as a shell writes it
      ['cat "$HOME/.purse-watch/a.json" ${HOME}/.pursewatch/b.json', '~/.purse-watch', '~/.pursewatch'],
    ] as const)
      assert.deepEqual(promises(text), expected, text);
  });

  it('are none where the text reads or forbids them', () => {
    for (const text of [
      'Read `AGENTS.md` first.',
      'Never write AGENTS.md.',
      'Do not keep notes in `.claude/notes`.',
      'Write `README.md` and notes/today.md.',
    ])
      assert.deepEqual(promises(text), [], text);
  });

  it('are none where others keep secrets, programs or their settings', () => {
    const text = [
      ...[
        '~/.ssh/config',
        '~/.bashrc',
        '~/.config/telos/policy.toml',
        '~/.config/purse-watch/a.json',
        '~/.local/bin/x',
      ],
      ...[
        '.git/hooks/pre-commit',
        '.github/workflows/ci.yml',
        '.vscode/tasks.json',
        '.husky/pre-push',
        '.envrc',
      ],
      ...[
        '../x',
        '../AGENTS.md',
        '~',
        '~/',
        '/',
        '~/.',
        '~/..',
        '/etc/AGENTS.md',
        '~/AGENTS.md',
        '/root/.purse_watch/x',
      ],
      ...[
        '~/.claude/settings.json',
        '.claude/settings.json',
        '.claude/settings.local.json',
        '.claude/commands/x.md',
      ],
      ...[
        '.claude/skills/x/SKILL.mdx',
        '.claude/agents/a.md',
        '.claude/hooks/x.json',
        '.mcp.json',
        'mcp.json',
        'agent.toml',
      ],
      ...[
        '~/.other_watch/x.json',
        '~/.purse_watch/../.ssh/config',
        '~/purse_watch/x.json',
        'package.json',
        'Makefile',
      ],
      // Letters of other alphabets, and characters that are not seen.
      ...[
        '~/.рurse_watch/x.json',
        '.сlaude/notes/x.md',
        'АGENTS.md',
        '~/.purse_wаtch/x',
        '~/.purse\u200B_watch/x',
        'Z\u0301AGENTS.md',
      ],
      ...['.claude/notes/../settings.json', '.claude\\notes\\x.md', '.claude//notes', '.claude/./notes'],
    ];
    for (const path of text) assert.deepEqual(promises(`Write \`${path}\` and save ${path}`), [], path);
  });

  it('give no skill a folder of others for being called like it', () => {
    for (const name of [
      'ssh',
      'config',
      'claude',
      'telos',
      'local',
      'cargo',
      'openclaw',
      'aws',
      'env',
      'bashrc',
      'vscode',
      'npm',
      'skills',
      'git',
    ])
      assert.deepEqual(
        promisedIn(`Write ~/.${name}/x.md and save \`~/.${name}/config.json\``, [name]),
        [],
        name,
      );
    for (const name of [
      'settings',
      'hooks',
      'commands',
      'output-styles',
      'settings-local',
      'cli-agents',
      'mcp-servers',
    ])
      assert.deepEqual(
        promisedIn(`Write .claude/${name}/x.md, .claude/${name}.json, .claude/${name}`, [name]),
        [],
        name,
      );
    assert.deepEqual(
      promisedIn('Write .claude/settings.local.json', ['settings.local', 'settings-local']),
      [],
    );
  });

  it('are found in a time that grows only with the text', () => {
    for (const piece of ['a/', '<', '*', '.claude/', '~/', '`AGENTS.md', 'write ', '{}>.', '$HOME/'])
      assert.ok(Array.isArray(promises(piece.repeat(200_000 / piece.length))));
    const many = Array.from({ length: 500 }, (_, index) => `write d${index}/AGENTS.md`).join('\n');
    assert.equal(promises(many).length, 20);
  });
});

describe('a card with special files', () => {
  let folder: TempFolder;
  let agent: ReviewedAgent;
  let context: PolicyContext;
  const at = (path: string): string => join(folder.path, path);
  beforeEach(() => {
    folder = tempFolder({
      'pack/SKILL.md':
        '---\nname: purse-watch\ndescription: d\n---\nWrite `AGENTS.md`, `<new>/SKILL.md`, `.claude/notes/<topic>.md`. State: `~/.purse_watch/state.json`\n',
      'home/.ssh/config': 'Host\n',
      'home/.bashrc': '\n',
      'home/work/old/SKILL.md': '---\ndescription: d\n---\n',
    });
    const skill = { dir: at('pack'), file: at('pack/SKILL.md') };
    const workingDir = at('home/work');
    agent = { name: 'purse-watch', packDir: at('pack'), workingDir, source: 'user', skills: [skill] };
    const folders = { workingDir, packDir: at('pack'), skillDir: at('pack'), commandDir: workingDir };
    const config = {
      configDir: at('home/.config/telos'),
      dataDir: at('home/.local/share/telos'),
      home: at('home'),
    };
    context = runPolicy({ ...config, env: {} }, agent, folders);
  });
  afterEach(() => folder.remove());
  const accept = async (without?: readonly string[]): Promise<void> => {
    const reviews = context.reviews!;
    await reviews.accept(agent, await reviews.cardOf(agent), new Date(), without);
  };
  const on = (name: string, path: string): Promise<Decision> => {
    const input = name === 'write_file' ? { path, content: 'x' } : { path };
    return decide({ id: '1', name, input }, context);
  };
  const writing = async (path: string): Promise<string> => (await on('write_file', path)).rule;
  const reading = async (path: string): Promise<string> => (await on('read_file', path)).rule;

  const promised = [
    ...['AGENTS.md', './AGENTS.md', 'tea/SKILL.md', 'skills/tea/SKILL.md', '.claude/notes/a.md'],
    ...['.claude/notes/2026/b.json', '~/.purse_watch/state.json', '~/.purse_watch/reports/05.html'],
  ];

  it('shows them, asks with the card at the first, and no more once it is accepted', async () => {
    const card = await context.reviews!.cardOf(agent);
    assert.deepEqual(card.writes, ['.claude/notes', 'AGENTS.md', 'SKILL.md', '~/.purse_watch']);
    const lines = describeCard(card).join('\n');
    assert.match(
      lines,
      /Files that its text says it writes:\n {2}\.claude\/notes\n {2}AGENTS\.md\n {2}SKILL\.md/,
    );
    for (const path of promised) {
      const asked = await on('write_file', path);
      assert.ok(asked.action === 'ask' && asked.card && asked.scopes.includes('always'), path);
    }
    await accept();
    for (const path of promised) assert.equal(await writing(path), 'card.file', path);
    mkdirSync(at('home/.purse_watch/reports'), { recursive: true });
    assert.equal(await reading('~/.purse_watch/state.json'), 'card.file');
    assert.equal((await on('list_directory', '~/.purse_watch')).rule, 'card.file');
    assert.equal((await on('list_directory', '~/.purse_watch/reports')).rule, 'card.file');
  });

  it('asks about those that were switched off, and about all when a byte has changed', async () => {
    await accept(['AGENTS.md', '~/.purse_watch']);
    assert.equal(await writing('AGENTS.md'), 'write.executed');
    assert.equal(await writing('~/.purse_watch/state.json'), 'write.outside');
    assert.equal(await reading('~/.purse_watch/state.json'), 'read.outside');
    assert.equal(await writing('.claude/notes/a.md'), 'card.file');
    folder.add({ 'pack/more.txt': 'x' });
    assert.equal(await writing('.claude/notes/a.md'), 'card.changed');
  });

  it('covers nothing else: not what is obeyed or secret, not a program, not a skill that is there', async () => {
    await accept();
    for (const path of [
      ...[
        'CLAUDE.md',
        'docs/AGENTS.md',
        'agents.md',
        '.claude/settings.json',
        '.claude/notes',
        '.claude/notes.md',
      ],
      ...[
        '.claude/notes/package.json',
        '.claude/notes/CLAUDE.md',
        '.claude/notes/x.sh',
        '.claude/notes/run',
        '.claude/notes/.env',
      ],
      ...[
        '.claude/notes/../settings.json',
        '.claude/notes/.git/config.md',
        '.claude/notesx/a.md',
        '.claude/notes/x.py',
      ],
      ...[
        'old/SKILL.md',
        '.claude/skills/tea/SKILL.md',
        '.agents/skills/x/SKILL.md',
        '.github/SKILL.md',
        'node_modules/x/SKILL.md',
      ],
      ...[
        '~/.ssh/config',
        '~/.bashrc',
        '~/.purse_watch',
        '~/.purse_watch/x.sh',
        '~/.purse_watch/api_key',
        '~/.purse_watch/env',
      ],
      ...[
        '~/.purse_watch/../.bashrc',
        '~/.purse_watch/.bashrc',
        '~/.purse_watch2/state.json',
        '~/.Purse_watch/state.json',
      ],
      ...[
        '~/.purse_watch/bin/Makefile',
        '~/.purse_watch/id_rsa',
        '~/.purse_watch/credentials.json',
        '~/AGENTS.md',
        '~/tea/SKILL.md',
      ],
    ]) {
      const asked = await on('write_file', path);
      assert.ok(
        asked.action === 'ask' && !asked.card && asked.rule !== 'card.file',
        `${path}: ${asked.rule}`,
      );
    }
    assert.equal((await on('write_file', '~/.config/telos/policy.toml')).action, 'deny');
    assert.equal((await on('write_file', '../../pack/SKILL.md')).rule, 'write.executed');
    assert.equal(await reading('~/.purse_watch/credentials.json'), 'read.sensitive');
  });

  it('follows no link at the place that was promised', async () => {
    await accept();
    mkdirSync(at('home/work/.claude'));
    symlinkSync(at('home/.bashrc'), at('home/work/AGENTS.md'));
    symlinkSync(at('home/.ssh'), at('home/.purse_watch'));
    symlinkSync(at('home/.ssh'), at('home/work/.claude/notes'));
    symlinkSync(at('home/work/old'), at('home/work/new'));
    for (const path of ['AGENTS.md', '~/.purse_watch/state.json', '.claude/notes/a.md', 'new/SKILL.md'])
      assert.notEqual(await writing(path), 'card.file', path);
    assert.notEqual(await reading('~/.purse_watch/config'), 'card.file');
  });

  it('lets a run go on with the skill that it has made, and no other run', async () => {
    await accept();
    context.memory!.made.add(at('home/work/tea/SKILL.md'));
    folder.add({ 'home/work/tea/SKILL.md': 'x' });
    assert.equal(await writing('tea/SKILL.md'), 'card.file');
    assert.equal(
      (
        await decide(
          { id: '1', name: 'write_file', input: { path: 'tea/SKILL.md', content: 'x' } },
          { ...context, memory: new RunMemory() },
        )
      ).rule,
      'write.executed',
    );
  });

  it('lets a run go on with the skill that its own call has made', async () => {
    await accept();
    const isGranted = async (): Promise<boolean> => {
      const call = { id: '1', name: 'write_file', input: { path: 'tea/SKILL.md', content: 'x' } };
      const deciding = approveCall(
        call,
        { tools: builtinTools, human: denyAll, policy: context },
        new AbortController().signal,
      );
      let step = await deciding.next();
      while (!step.done) step = await deciding.next();
      return step.value.granted;
    };
    assert.equal(await isGranted(), true);
    folder.add({ 'home/work/tea/SKILL.md': 'x' });
    assert.equal(await isGranted(), true);
    context = { ...context, memory: new RunMemory() };
    assert.equal(await isGranted(), false, 'another run did not make it');
  });
});
