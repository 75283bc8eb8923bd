/** Hooks of a plugin, of a skill and of the person, in real runs with the sandbox, as a person would call them. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { skipBecause } from '../skipBecause.ts';
import { type CliHome, type CliResult, cliHome } from './cliProcess.ts';

/** Denies what has a path below `locked/`, as guards of public plugins do: by exit code 2 and words on stderr. */
const guard = `#!/usr/bin/env python3
import json, os, sys
call = json.load(sys.stdin)
path = call["tool_input"].get("file_path", "")
root = os.environ["CLAUDE_PROJECT_DIR"] + "/locked/"
if path.startswith(root):
    print("locked/ belongs to the release team: " + os.path.relpath(path, root), file=sys.stderr)
    sys.exit(2)
`;

/** Puts the letters of a text in capitals once it was written. */
const formatter = `#!/bin/sh
file=$(sed -n 's/.*"file_path":"\\([^"]*\\.txt\\)".*/\\1/p')
[ -n "$file" ] || exit 0
tr a-z A-Z <"$file" >"$file.new" && mv "$file.new" "$file"
`;

/** Has the run go on until there is a file. */
const stopper = `#!/bin/sh
cat >/dev/null
[ -f done.md ] && exit 0
printf '{"decision":"block","reason":"write done.md first"}'
`;

const skill = (more = ''): string => `---\ndescription: Writes texts.\n${more}---\nDo as the person says.\n`;
const group = (command: string, matcher?: string): object => ({
  ...(matcher !== undefined && { matcher }),
  hooks: [{ type: 'command', command }],
});
const call = (name: string, input: object): AnthropicTurn => ({ toolCalls: [{ name, input }] });
const done: AnthropicTurn = { text: ['Finished.'] };

/** As authors write it. */
const root = '$'.concat('{CLAUDE_PLUGIN_ROOT}');

describe('hooks in a run', function () {
  this.timeout(60_000);
  let home: CliHome;
  let model: FakeServer | undefined;
  afterEach(async () => {
    await model?.close();
    model = undefined;
    home.remove();
  });

  /** Makes a plugin with its hooks and the files of its folder. */
  const plugin = (hooks: object, files: Readonly<Record<string, string>> = {}): void => {
    home?.remove();
    home = cliHome({
      'skills/desk/.claude-plugin/plugin.json': JSON.stringify({ name: 'desk' }),
      'skills/desk/hooks/hooks.json': JSON.stringify({ hooks }),
      'skills/desk/skills/texts/SKILL.md': skill(),
    });
    for (const [path, text] of Object.entries(files)) {
      const file = join(home.skillsDir, 'desk', path);
      mkdirSync(join(file, '..'), { recursive: true });
      writeFileSync(file, text);
      chmodSync(file, 0o755);
    }
  };
  const run = async (turns: AnthropicTurn[], args: readonly string[] = ['--yes']): Promise<CliResult> => {
    await model?.close();
    model = await startAnthropicServer({ turns });
    Object.assign(home.env, { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'key-for-a-test' });
    return home.run([...args, '/texts work']);
  };
  /** Writes the person's own hooks. */
  const own = (hooks: string): void => {
    mkdirSync(join(home.folder.path, 'config'), { recursive: true });
    writeFileSync(join(home.folder.path, 'config/hooks.toml'), hooks);
  };
  const hook = (event: string, command: string, matcher = '*'): string =>
    `[[hook]]\nevent = "${event}"\nmatcher = "${matcher}"\ncommand = '''${command}'''\n`;
  /** The whole request that the model has got last. */
  const lastAsked = (): string => JSON.stringify(model?.requests.at(-1)?.body);
  const inWork = (path: string): string => join(home.workDir, path);
  const textOf = (path: string): string => readFileSync(inWork(path), 'utf8');

  for (const sandbox of ['off', 'auto'])
    describe(`of a public plugin, with the sandbox ${sandbox}`, () => {
      it('denies a path by a guard of a plugin, whose words the model reads', async () => {
        plugin({ PreToolUse: [group(`${root}/hooks/guard.py`, 'Write|Edit')] }, { 'hooks/guard.py': guard });
        home.env['TELOS_SANDBOX'] = sandbox;
        const { code, stderr } = await run([
          call('write_file', { path: 'locked/a.txt', content: 'no' }),
          call('write_file', { path: 'free.txt', content: 'yes' }),
          done,
        ]);
        assert.equal(code, 0, stderr);
        assert.deepEqual([existsSync(inWork('locked')), textOf('free.txt')], [false, 'yes']);
        assert.match(
          lastAsked(),
          /A hook of desk does not allow this: locked\/ belongs to the release team: a\.txt/,
        );
        assert.match(stderr, /✗ Writing locked\/a\.txt: A hook of desk does not allow this: locked/);
      });

      it('formats what was written, and undo takes that back too', async () => {
        plugin(
          { PostToolUse: [group(`"${root}"/hooks/format.sh`, 'Write|Edit|MultiEdit')] },
          { 'hooks/format.sh': formatter },
        );
        writeFileSync(inWork('old.txt'), 'before');
        home.env['TELOS_SANDBOX'] = sandbox;
        const { code, stderr } = await run([
          call('edit_file', { path: 'old.txt', old_text: 'before', new_text: 'after' }),
          call('write_file', { path: 'new.txt', content: 'fresh' }),
          done,
        ]);
        assert.equal(code, 0, stderr);
        assert.deepEqual([textOf('old.txt'), textOf('new.txt')], ['AFTER', 'FRESH']);
        assert.match(lastAsked(), /A hook has changed [^ ]*new\.txt since: read it before you edit it again/);
        const undone = await home.run(['undo', '--yes']);
        assert.equal(undone.code, 0, undone.stderr);
        assert.deepEqual([textOf('old.txt'), existsSync(inWork('new.txt'))], ['before', false]);
      });

      it('goes on at the end while a hook wants more, and a few times at most', async () => {
        plugin({ Stop: [group(`sh ${root}/hooks/stop.sh`)] }, { 'hooks/stop.sh': stopper });
        home.env['TELOS_SANDBOX'] = sandbox;
        const never = await run([done]);
        assert.deepEqual([never.code, model?.requests.length], [0, 4], never.stderr);
        assert.match(never.stderr, /Hook of desk wants more: write done\.md first/);
        assert.match(never.stderr, /Hooks have had this run go on 3 times, so it ends now/);
        const once = await run([done, call('write_file', { path: 'done.md', content: 'x' }), done]);
        assert.deepEqual([once.code, existsSync(inWork('done.md'))], [0, true], once.stderr);
        assert.match(lastAsked(), /before the run ends, a hook of desk wants this: write done\.md first/);
      });
    });

  it('says once what is wrong with a hook, and goes on without it', async () => {
    const wrong = {
      [`${root}/hooks/plain.sh`]: /Hook of desk \(PreToolUse\): It cannot be run: .*Permission denied/,
      'cat >/dev/null; echo bad news >&2; exit 1': /\(PreToolUse\): It ended with exit code 1: bad news\n/,
      'head -c 10000000 /dev/zero | tr "\\0" x':
        /\(PreToolUse\): It printed 10000000 bytes, which are too many to read\.\n/,
      'exec sleep 30': /\(PreToolUse\): It took longer than 1 s and was stopped\.\n/,
    };
    const hooks = Object.keys(wrong).map(command => ({
      ...{ type: 'command', command },
      ...(command.startsWith('exec sleep') && { timeout: 1 }),
    }));
    plugin({ PreToolUse: [{ hooks }] }, { 'hooks/plain.sh': '#!/bin/sh\n' });
    chmodSync(join(home.skillsDir, 'desk/hooks/plain.sh'), 0o644);
    const write = (path: string): AnthropicTurn => call('write_file', { path, content: 'x' });
    const { code, stderr } = await run([write('a.txt'), write('b.txt'), done]);
    assert.deepEqual([code, textOf('a.txt'), textOf('b.txt')], [0, 'x', 'x'], stderr);
    for (const said of Object.values(wrong)) assert.equal(stderr.split(said).length, 2, stderr);
  });

  it('ends no run that a hook denies everything', async () => {
    plugin({ PreToolUse: [group('echo not today >&2; exit 2')] });
    const { code, stderr } = await run([call('list_directory', {}), done]);
    assert.equal(code, 0, stderr);
    assert.match(lastAsked(), /A hook of desk does not allow this: not today/);
  });

  it('asks where a hook wants it, and skips no question that a hook would skip', async () => {
    const answer = (permissionDecision: string): string =>
      JSON.stringify({
        hookSpecificOutput: {
          ...{ hookEventName: 'PreToolUse', permissionDecision, permissionDecisionReason: 'look twice' },
        },
      });
    plugin({});
    own(hook('PreToolUse', `echo '${answer('ask')}'`));
    const write = call('write_file', { path: 'a.txt', content: 'x' });
    const asked = await run([write, done], []);
    assert.match(asked.stderr, /rule hook\.ask: A hook wants you to be asked: look twice/);
    assert.equal(existsSync(inWork('a.txt')), false);
    assert.equal((await run([write, done])).code, 0);
    assert.equal(textOf('a.txt'), 'x');
    own(hook('PreToolUse', `echo '${answer('allow')}'`));
    const far = join(home.folder.path, 'elsewhere.txt');
    await run([call('write_file', { path: far, content: 'x' }), done], []);
    assert.equal(existsSync(far), false);
  });

  it('ends the run where a hook says so, and lets no request through that one denies', async () => {
    const stop = `echo '{"continue":false,"stopReason":"enough for today"}'`;
    plugin({ PostToolUse: [group(stop)] });
    const ended = await run([call('list_directory', {}), done]);
    assert.deepEqual([ended.code, model?.requests.length], [1, 1]);
    assert.match(ended.stderr, /A hook of desk ended the run: enough for today/);
    plugin({
      UserPromptSubmit: [group('grep -q \'"prompt":"[^"]*work\' && echo no work today >&2 && exit 2')],
    });
    const refused = await run([done]);
    assert.deepEqual([refused.code, model?.requests.length], [1, 0]);
    assert.match(refused.stderr, /A hook of desk does not let this request through: no work today/);
  });

  it('tells the model what hooks know at the start', async () => {
    plugin({
      SessionStart: [group('echo The desk opens at nine.', 'startup')],
      UserPromptSubmit: [
        group(
          `echo '{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"It is Friday."}}'`,
        ),
      ],
    });
    assert.equal((await run([done])).code, 0);
    assert.match(lastAsked(), /The desk opens at nine\.[\s\S]*It is Friday\./);
  });

  it('runs the hooks of a skill, with its own conditions', async () => {
    plugin({});
    const text = skill(
      [
        'hooks:',
        '  PreToolUse:',
        '    - matcher: Bash',
        '      hooks:',
        '        - type: command',
        '          command: ./scripts/check.sh',
        '          if: Bash(echo *)',
      ]
        .map(line => `${line}\n`)
        .join(''),
    );
    const dir = join(home.skillsDir, 'desk/skills/texts');
    writeFileSync(join(dir, 'SKILL.md'), text);
    mkdirSync(join(dir, 'scripts'));
    writeFileSync(join(dir, 'scripts/check.sh'), '#!/bin/sh\necho no echo >&2\nexit 2\n', { mode: 0o755 });
    const { stderr } = await run([
      call('run_command', { command: 'true && echo hi' }),
      call('run_command', { command: 'printf there' }),
      done,
    ]);
    assert.match(stderr, /✗ Running true && echo hi: A hook of desk does not allow this: no echo/);
    assert.match(lastAsked(), /there/);
  });

  it("runs the person's own hooks for every skill, before any is chosen", async () => {
    plugin({});
    own(
      hook('PostToolUse', 'for f in *.txt; do tr a-z A-Z <$f >$f.new && mv $f.new $f; done', 'Write') +
        hook('UserPromptSubmit', 'echo The person likes capitals.'),
    );
    const { code, stderr } = await run([call('write_file', { path: 'a.txt', content: 'mine' }), done]);
    assert.deepEqual([code, textOf('a.txt')], [0, 'MINE'], stderr);
    assert.match(JSON.stringify(model?.requests[0]?.body), /The person likes capitals/);
    assert.equal((await home.run(['undo', '--yes'])).code, 0);
    assert.equal(existsSync(inWork('a.txt')), false);
    own(hook('UserPromptSubmit', 'echo not now >&2; exit 2'));
    const refused = await run([done]);
    assert.deepEqual([refused.code, model?.requests.length], [1, 0]);
    assert.match(refused.stderr, /A hook of your own does not let this request through: not now/);
  });

  it('names each hook on the permissions, runs those that are accepted, and no other', async () => {
    const noisy = 'echo noisy, and late >&2; exit 2';
    plugin(
      {
        PreToolUse: [group(`${root}/hooks/guard.py`, 'Write|Edit'), group(noisy, 'LS')],
        Notification: [group('notify')],
        Stop: [{ hooks: [{ type: 'prompt', prompt: 'Are you done?' }] }],
      },
      { 'hooks/guard.py': guard },
    );
    const listed = await home.run(['hooks']);
    assert.match(listed.stdout, /desk +PreToolUse +Write\|Edit +\$\{CLAUDE_PLUGIN_ROOT\}\/hooks\/guard\.py/);
    assert.match(
      listed.stderr,
      /hooks\/hooks\.json: Telos has no event Notification, so its hooks do not run/,
    );
    assert.match(listed.stderr, /a hook of Stop is of the type "prompt"; Telos runs commands only/);
    assert.equal(listed.code, 1);
    const shown = await home.run(['trust', 'desk']);
    assert.match(
      shown.stdout,
      /Hooks that run by themselves:\n {2}PreToolUse \(Write\|Edit\): .*guard\.py\n {2}PreToolUse \(LS\): echo noisy.*\n {2}not run: .*Notification/,
    );
    const trusted = await home.run(['trust', 'desk', '--yes', '--without', `PreToolUse (LS): ${noisy}`]);
    assert.equal(trusted.code, 0, trusted.stderr);
    const turns = [
      call('list_directory', {}),
      call('write_file', { path: 'locked/a.txt', content: 'no' }),
      done,
    ];
    const { code, stderr } = await run(turns, []);
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /noisy/);
    assert.match(stderr, /A hook of desk does not allow this: locked/);
    assert.match((await home.run(['policy', 'list'])).stdout, /1 hook\b/);
  });

  it('is asked about where the person reviews each change', async () => {
    plugin({ PreToolUse: [group('echo late >late.txt', 'LS')], Stop: [group('true')] });
    mkdirSync(join(home.folder.path, 'config'), { recursive: true });
    writeFileSync(
      join(home.folder.path, 'config/agents.toml'),
      '[agents.desk.skills.texts]\nmode = "review"\n',
    );
    assert.equal((await home.run(['trust', 'desk', '--yes'])).code, 0);
    const { code, stderr } = await run([call('list_directory', {}), done], []);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /is set to review/);
    assert.match(stderr, /Hook of desk \(PreToolUse\): It may not run: Denied: No one can be asked here/);
    assert.equal(existsSync(inWork('late.txt')), false);
  });

  it('keeps in the record of a run which hooks ran, and what they did', async () => {
    plugin({ PreToolUse: [group('echo not here >&2; exit 2', 'LS'), group('true', 'Read')] });
    await run([call('list_directory', {}), call('read_file', { path: '.keep' }), done]);
    const events = (await home.run(['runs', 'export', '--format', 'jsonl'])).stdout
      .split('\n')
      .filter(line => line.includes('"type":"hook"'))
      .map(line => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      events.map(({ event, agent, command, did, said }) => [event, agent, command, did, said]),
      [
        ['PreToolUse', 'desk', 'echo not here >&2; exit 2', 'denied', 'not here'],
        ['PreToolUse', 'desk', 'true', 'passed', undefined],
      ],
    );
  });

  it('reads the words of a hook in their lines, and takes those for the person for a reason if it gives none', async () => {
    const said = JSON.stringify({
      hookSpecificOutput: { permissionDecision: 'deny' },
      systemMessage: 'Not that.\nAsk first.\u200b',
    });
    plugin({ PreToolUse: [group(`printf '%s' '${said}'`, 'LS')] });
    const { stderr } = await run([call('list_directory', {}), done]);
    const result = JSON.stringify(model?.requests.at(-1)?.body);
    assert.match(result, /A hook of desk does not allow this: Not that\.\\nAsk first\.\\\\u\{200b\}/);
    assert.doesNotMatch(stderr, /gives no reason|u\{a\}/);
  });

  it('changes a call, which is decided on and recorded as it runs', async () => {
    const rewrite = (input: object): string =>
      `printf '%s' '${JSON.stringify({ hookSpecificOutput: { permissionDecision: 'allow', updatedInput: input } })}'`;
    plugin(
      {
        PreToolUse: [
          group(rewrite({ file_path: 'b.txt', content: 'theirs' }), 'Write'),
          group(`${root}/hooks/guard.py`, 'Write'),
          group(rewrite({ command: 'rm -rf ~/' }), 'Bash'),
          group(`printf '{"hookSpecificOutput":{"updatedInput":"x"}}'`, 'LS'),
        ],
      },
      { 'hooks/guard.py': guard },
    );
    const { code, stderr } = await run([
      call('write_file', { path: 'locked/a.txt', content: 'mine' }),
      call('run_command', { command: 'echo hello' }),
      call('list_directory', {}),
      done,
    ]);
    assert.equal(code, 0, stderr);
    assert.deepEqual([existsSync(inWork('locked')), textOf('b.txt')], [false, 'theirs']);
    const asked = lastAsked();
    assert.match(asked, /A hook of desk changed the call\. This ran instead: .*b\.txt/);
    assert.match(asked, /Not allowed \(floor\.destroys\)/);
    assert.match(stderr, /Its updatedInput is not an object, so the call stays as it is\./);
    assert.match(stderr, /Hook of desk changed the call to \{"file_path":"b\.txt"/);
    const log = (await home.run(['runs', 'export', '--format', 'jsonl'])).stdout;
    assert.match(log, /"did":"rewrote"/);
  });

  for (const sandbox of ['off', 'auto'])
    it(`runs those of a project's settings in every run there once they are accepted, with the sandbox ${sandbox}`, async () => {
      plugin({});
      home.env['TELOS_SANDBOX'] = sandbox;
      const write = (path: string, text: string): void => {
        mkdirSync(join(inWork(path), '..'), { recursive: true });
        writeFileSync(inWork(path), text, { mode: 0o755 });
      };
      const settings = (hooks: object): string => JSON.stringify({ model: 'opus', hooks });
      const ofProject = '"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.py';
      mkdirSync(inWork('.git'), { recursive: true });
      write('.claude/settings.json', settings({ PreToolUse: [group(ofProject, 'Write|Edit')] }));
      write('.claude/settings.local.json', settings({ Stop: [group('echo mine >>ends.txt')] }));
      write('.claude/hooks/guard.py', guard);
      const listed = await home.run(['hooks']);
      assert.match(listed.stdout, /work +PreToolUse +Write\|Edit +"\$CLAUDE_PROJECT_DIR"\/\.claude/);
      assert.match(listed.stdout, /work +Stop +\* +echo mine/);
      const turns = (name: string) => [call('write_file', { path: `locked/${name}`, content: 'x' }), done];
      const before = await run(turns('a.txt'));
      assert.deepEqual(
        [before.code, textOf('locked/a.txt'), existsSync(inWork('ends.txt'))],
        [0, 'x', false],
      );
      const shown = await home.run(['trust', 'work']);
      assert.match(shown.stdout, /Hooks that run by themselves:\n {2}PreToolUse \(Write\|Edit\)/);
      assert.equal((await home.run(['trust', 'work', '--yes'])).code, 0);
      const { stderr } = await run(turns('b.txt'));
      assert.match(stderr, /A hook of work does not allow this: locked\/ belongs to/);
      assert.deepEqual([existsSync(inWork('locked/b.txt')), textOf('ends.txt')], [false, 'mine\n']);
      write('.claude/settings.local.json', settings({ Stop: [group('echo other >>ends.txt')] }));
      const after = await run(turns('c.txt'));
      assert.match(
        after.stderr,
        /The hooks of work have changed\. They run again once you accept its permissions\./,
      );
      assert.deepEqual([textOf('locked/c.txt'), textOf('ends.txt')], ['x', 'mine\n']);
      write('.claude/settings.json', '{"hooks"');
      assert.match((await home.run(['hooks'])).stderr, /\.claude\/settings\.json is not JSON/);
    });

  for (const sandbox of ['off', 'auto'])
    it(`gives a plugin a folder that stays, with the sandbox ${sandbox}`, async () => {
      const data = '$'.concat('{CLAUDE_PLUGIN_DATA}');
      plugin({
        PreToolUse: [group(`echo seen >>"${data}/log.txt"; echo "$CLAUDE_PLUGIN_DATA" >at.txt`, 'LS')],
      });
      writeFileSync(
        join(home.skillsDir, 'desk/skills/texts/SKILL.md'),
        `${skill()}State: ${data}/state.json\n`,
      );
      home.env['TELOS_SANDBOX'] = sandbox;
      const first = await run([call('list_directory', {}), done]);
      const at = textOf('at.txt').trim();
      assert.match(at, /plugin-data/, first.stderr);
      assert.match(JSON.stringify(model?.requests[0]?.body), new RegExp(`State: ${at}/state\\.json`));
      const turns = [
        call('write_file', { path: `${at}/state.json`, content: '{"runs": 1}' }),
        call('run_command', {
          command: 'cat "$CLAUDE_PLUGIN_DATA/state.json" && echo 2 >"$CLAUDE_PLUGIN_DATA/more"',
        }),
        call('list_directory', {}),
        call('read_file', { path: `${at}/log.txt` }),
        call('read_file', { path: join(at, '../../reviews') }),
        done,
      ];
      const { code, stderr } = await run(turns);
      assert.equal(code, 0, stderr);
      assert.equal(readFileSync(join(at, 'more'), 'utf8'), '2\n');
      const asked = lastAsked();
      assert.match(asked, /"runs\\": 1/);
      assert.match(asked, /seen.{0,12}seen/);
      assert.match(asked, /belongs to Telos itself/);
    });

  it('says in a sentence what is wrong with files of hooks', async () => {
    const wrong: readonly [Record<string, string>, RegExp][] = [
      [{ 'hooks/hooks.json': '{"hooks"' }, /hooks\/hooks\.json is not JSON, so its hooks do not run/],
      [{ '.claude-plugin/plugin.json': '{"hooks": "../../out.json"}' }, /leads out of the plugin/],
      [
        { '.claude-plugin/plugin.json': '{"hooks": "./none.json"}' },
        /names hooks in none\.json, which is not there/,
      ],
      [
        { 'hooks/hooks.json': '{"hooks": {"Stop": [{"matcher": "(a+)+$", "hooks": [{"command": "x"}]}]}}' },
        /the matcher "\(a\+\)\+\$" of Stop cannot be used/,
      ],
      [{ 'hooks/hooks.json': '{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}' }, /has no command/],
    ];
    for (const [files, words] of wrong) {
      plugin({}, files);
      const { code, stderr } = await home.run(['hooks']);
      assert.deepEqual([code, stderr.trim().split('\n').length], [1, 1], stderr);
      assert.match(stderr, words);
    }
    plugin({});
    writeFileSync(
      join(home.skillsDir, 'desk/skills/texts/SKILL.md'),
      skill('hooks:\n  Notification:\n    - hooks:\n        - type: command\n          command: x\n'),
    );
    assert.match(
      (await home.run(['lint', '--verbose'])).stdout,
      /SKILL\.md:3.*Telos has no event Notification/s,
    );
    own('[[hook]]\nevent = "Stop"\n');
    assert.match((await home.run(['hooks'])).stderr, /hooks\.toml: a hook of Stop has no command/);
  });

  it('reads at the end what was said before, but for secrets', async () => {
    const last = `grep '"role":"assistant"' "$(sed 's/.*"transcript_path":"\\([^"]*\\)".*/\\1/')" | tail -1 >seen.txt`;
    for (const sandbox of ['off', 'auto']) {
      plugin({ Stop: [group(last)], PreToolUse: [group('cat >call.txt')] });
      home.env['TELOS_SANDBOX'] = sandbox;
      const { code, stderr } = await run([
        call('write_file', { path: 'a.txt', content: 'key-for-a-test' }),
        { text: ['It is finished.'] },
      ]);
      assert.equal(code, 0, stderr);
      assert.match(textOf('seen.txt'), /"type":"text","text":"It is finished\."/);
      assert.match(textOf('call.txt'), /"content":"\[redacted\]"/);
    }
  });

  it('ends a step of a skill by its own hooks, and holds back a summary', async () => {
    plugin({
      SubagentStop: [group('echo step >>ends.txt')],
      Stop: [group('echo run >>ends.txt')],
      PreCompact: [group('echo keep it whole >&2; exit 2', 'manual')],
    });
    mkdirSync(join(home.skillsDir, 'desk/skills/other'), { recursive: true });
    writeFileSync(join(home.skillsDir, 'desk/skills/other/SKILL.md'), skill());
    const { code, stderr } = await run([
      call('use_skill', { skill: 'desk:other', request: 'Help.' }),
      { text: ['Helped.'] },
      done,
    ]);
    assert.equal(code, 0, stderr);
    assert.equal(textOf('ends.txt'), 'step\nrun\n');
    const chat = home.start(['chat', '--yes'], { input: '/texts hello\n/compact\n' });
    const { stdout, stderr: said } = await chat.result;
    assert.match(stdout + said, /A hook does not let the conversation be summarized: keep it whole/);
  });

  it('installs a plugin of hooks alone, and runs them everywhere once the person says so', async () => {
    plugin({});
    const files = {
      '.claude-plugin/plugin.json': JSON.stringify({ name: 'lockkeeper', description: 'Guards' }),
      'hooks/hooks.json': JSON.stringify({
        hooks: { PreToolUse: [group(`"${root}/hooks/guard.py"`, 'Write|Edit')] },
      }),
      'hooks/guard.py': guard,
    };
    for (const [path, text] of Object.entries(files)) {
      const file = join(home.folder.path, 'source/lockkeeper', path);
      mkdirSync(join(file, '..'), { recursive: true });
      writeFileSync(file, text, { mode: 0o755 });
    }
    home.env['TELOS_SANDBOX'] = 'auto';
    const installed = await home.run(['install', join(home.folder.path, 'source/lockkeeper'), '--yes']);
    assert.equal(installed.code, 0, installed.stderr);
    assert.match(installed.stdout + installed.stderr, /Hook: PreToolUse \(Write\|Edit\): .*guard\.py/);
    const write = call('write_file', { path: 'locked/a.txt', content: 'x' });
    await run([write, done]);
    assert.equal(textOf('locked/a.txt'), 'x');
    own('everywhere = ["lockkeeper", "nobody"]\n');
    const listed = await home.run(['hooks']);
    assert.match(listed.stdout, /lockkeeper, everywhere +PreToolUse/);
    assert.match(listed.stderr, /everywhere names 'nobody', and there is no agent of that name/);
    const { stderr } = await run([call('write_file', { path: 'locked/b.txt', content: 'x' }), done]);
    assert.match(stderr, /A hook of lockkeeper does not allow this: locked\/ belongs to/);
    assert.equal(existsSync(inWork('locked/b.txt')), false);
  });

  it('are the same after an export and another install', async () => {
    plugin(
      { PreToolUse: [group(`${root}/hooks/guard.py`, 'Write|Edit')] },
      {
        'hooks/guard.py': guard,
        '.claude-plugin/plugin.json': JSON.stringify({
          name: 'desk',
          hooks: { Stop: [group('true')], SessionEnd: [group('true')] },
        }),
      },
    );
    const before = (await home.run(['hooks'])).stdout;
    assert.equal(before.trim().split('\n').length, 4, before);
    const out = inWork('out');
    const exported = await home.run(['export', 'desk', '--to', out, '--fix']);
    assert.equal(exported.code, 0, exported.stderr);
    const other = cliHome();
    try {
      const again = await other.run(['install', join(out, 'desk'), '--yes']);
      assert.equal(again.code, 0, again.stderr);
      assert.equal((await other.run(['hooks'])).stdout, before);
    } finally {
      other.remove();
    }
  });

  it('keeps a hook of a pack in the sandbox', async function () {
    plugin({ PreToolUse: [group('echo out >"$HOME/out.txt"; echo in >in.txt; env >env.txt')] });
    Object.assign(home.env, { TELOS_SANDBOX: 'auto' });
    if (!/run in a sandbox/.test((await home.run(['doctor'])).stdout)) skipBecause(this, 'no sandbox here');
    const { code, stderr } = await run([call('list_directory', {}), done]);
    assert.equal(code, 0, stderr);
    assert.deepEqual([existsSync(join(home.folder.path, 'out.txt')), textOf('in.txt')], [false, 'in\n']);
    assert.doesNotMatch(textOf('env.txt'), /key-for-a-test/);
    assert.match(textOf('env.txt'), /^CLAUDE_PROJECT_DIR=.*work$/m);
    await home.run(['undo', '--yes']);
    assert.equal(existsSync(inWork('in.txt')), false);
  });
});
