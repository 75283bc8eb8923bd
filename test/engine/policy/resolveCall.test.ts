// biome-ignore-all lint/suspicious/noTemplateCurlyInString: skills write these names of their folder.
/** What a call of a skill's text means: the tool, the file and the words of a command, before anything is decided on. */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type ResolveFolders, resolveCall } from '../../../src/engine/policy/resolveCall.ts';
import { useSkillTool } from '../../../src/engine/run/useSkill.ts';
import { skillTools } from '../../../src/engine/tools/builtin.ts';
import type { JsonObject } from '../../../src/protocol/run.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('resolveCall', () => {
  let folder: TempFolder;
  let foreign: ResolveFolders;
  /** The same skill in a pack of Telos, whose commands run in the pack. */
  let telos: ResolveFolders;
  let skill: string;
  const at = (path: string): string => join(folder.path, path);

  beforeEach(() => {
    folder = tempFolder({
      'home/.skills/pack/skills/todo/SKILL.md': 'x',
      'home/.skills/pack/skills/todo/scripts/run.py': 'x',
      'home/.skills/pack/skills/todo/scripts/todo.sh': 'x',
      'home/.skills/pack/skills/todo/references/guide.md': 'x',
      'home/.skills/pack/skills/todo/assets/page.html': 'x',
      'home/.skills/pack/skills/other/scripts/other.sh': 'x',
      'home/.skills/pack/tool.py': 'x',
      'project/data.json': '{}',
      'vault/plan.json': '{}',
      'home/secret.txt': 'x',
    });
    skill = at('home/.skills/pack/skills/todo');
    const places = {
      home: at('home'),
      skillDir: skill,
      packDir: at('home/.skills/pack'),
      personDir: at('project'),
    };
    foreign = { ...places, workingDir: at('project'), commandDir: at('project') };
    telos = { ...places, workingDir: at('vault'), commandDir: at('home/.skills/pack') };
  });
  afterEach(() => folder.remove());

  const resolved = (name: string, input: JsonObject, folders = foreign) =>
    resolveCall({ id: '1', name, input }, skillTools, folders);
  const pathOf = (path: string, folders = foreign): unknown =>
    resolved('read_file', { path }, folders).call.input['path'];
  const ran = (command: string, folders = foreign): string =>
    String(resolved('run_command', { command }, folders).call.input['command']).replaceAll(skill, '<skill>');

  describe('a path', () => {
    it('that is relative means a file of the skill where the run has none of that name', () => {
      assert.equal(pathOf('references/guide.md'), join(skill, 'references/guide.md'));
      assert.equal(pathOf('./references/guide.md'), join(skill, 'references/guide.md'));
      assert.equal(pathOf('tool.py'), at('home/.skills/pack/tool.py'));
      assert.equal(pathOf('data.json'), 'data.json');
      assert.equal(pathOf('data.json', telos), at('project/data.json'));
      assert.equal(pathOf('no-such-file'), 'no-such-file');
      for (const tool of ['list_directory', 'search_files', 'glob'])
        assert.equal(
          resolved(tool, { path: 'references', pattern: 'x' }).call.input['path'],
          join(skill, 'references'),
          tool,
        );
      const { input } = resolved('glob', { pattern: 'references/**/*.md' }).call;
      assert.deepEqual(input, { path: join(skill, 'references'), pattern: '**/*.md' });
    });

    it('means the skill by each name that other runners give its folder', () => {
      for (const name of [
        'skills/todo',
        './skills/todo',
        '.claude/skills/todo',
        '~/clawd/skills/todo',
        '~/.claude/skills/todo',
        '{WORKSPACE}/skills/todo',
        '$WORKSPACE/skills/todo',
        '${CLAUDE_PLUGIN_ROOT}',
        '${CLAUDE_PLUGIN_ROOT}/skills/todo',
        '{baseDir}',
        '${baseDir}',
        '${CLAUDE_SKILL_DIR}',
        '$SKILL_DIR',
        '<skill_dir>',
        join(at('home'), '.claude/skills/todo'),
      ])
        assert.equal(pathOf(`${name}/references/guide.md`), join(skill, 'references/guide.md'), name);
    });

    it('never means the file of a skill in place of the one that the person has', () => {
      folder.add({
        'project/references/guide.md': 'mine',
        'home/.claude/skills/todo/references/guide.md': 'mine',
      });
      const { call, notes } = resolved('read_file', { path: 'references/guide.md' });
      assert.equal(call.input['path'], 'references/guide.md');
      assert.match(
        notes.join(),
        /guide\.md is .*project\/references\/guide\.md; there is .*todo\/references/,
      );
      assert.equal(
        pathOf('~/.claude/skills/todo/references/guide.md'),
        '~/.claude/skills/todo/references/guide.md',
      );
      // What leads nowhere is there all the same.
      symlinkSync('gone', at('project/tool.py'));
      assert.equal(pathOf('tool.py'), 'tool.py');
    });

    it('in the folder of another skill never means this one, nor does a name that looks alike', () => {
      folder.add({ 'home/.skills/pack/skills/todo/scripts/other.sh': 'x' });
      for (const path of [
        '.claude/skills/other/scripts/other.sh',
        '~/.claude/skills/other/scripts/other.sh',
        '{WORKSPACE}/skills/other/scripts/other.sh',
        'skills/Todo/scripts/run.py',
        'skills/todo-2/scripts/run.py',
        'myskills/todo/scripts/run.py',
        'src/skills/todo/scripts/run.py',
      ])
        assert.equal(pathOf(path), path);
      assert.equal(
        pathOf('skills/other/scripts/other.sh'),
        at('home/.skills/pack/skills/other/scripts/other.sh'),
      );
      assert.equal(pathOf('skills/other/scripts/run.py'), 'skills/other/scripts/run.py');
    });

    it('leads out of the skill neither over a link nor upwards', () => {
      symlinkSync(at('home/secret.txt'), join(skill, 'references/link.md'));
      symlinkSync(at('home'), join(skill, 'home'));
      for (const path of [
        'references/link.md',
        'home/secret.txt',
        'skills/todo/../../../../secret.txt',
        'references/../../../../../secret.txt',
        '../../../../secret.txt',
        '../../..',
        '../todo/references/link.md',
      ])
        assert.equal(pathOf(path), path);
      mkdirSync(join(skill, 'deep'));
      symlinkSync('../references/guide.md', join(skill, 'deep/guide.md'));
      assert.equal(pathOf('deep/guide.md'), join(skill, 'references/guide.md'));
    });

    it('that leads up from the skill to a file of its pack means that file, if the run has none of that name', () => {
      folder.add({ 'home/.skills/pack/skills/shared/words.md': 'x', 'home/.skills/elsewhere.md': 'x' });
      const words = at('home/.skills/pack/skills/shared/words.md');
      for (const path of ['../shared/words.md', './../shared/words.md', 'references/../../shared/words.md'])
        assert.equal(pathOf(path), words, path);
      assert.equal(pathOf('../../tool.py'), at('home/.skills/pack/tool.py'));
      assert.equal(ran('cat ../shared/words.md'), `cat ${words}`);
      const { input } = resolved('list_directory', { path: '../shared' }).call;
      assert.equal(input['path'], at('home/.skills/pack/skills/shared'));
      assert.equal(
        resolved('write_file', { path: '../shared/words.md' }).call.input['path'],
        '../shared/words.md',
      );
      // Out of the pack, over a link, or in a folder of skills that do not belong together.
      symlinkSync(at('home/secret.txt'), at('home/.skills/pack/skills/shared/link.md'));
      symlinkSync(at('home'), at('home/.skills/pack/out'));
      for (const path of [
        '../../../elsewhere.md',
        '../shared/link.md',
        '../../out/secret.txt',
        '../shared/gone.md',
      ])
        assert.equal(pathOf(path), path);
      const loose = { ...foreign, packDir: at('home/.skills/pack/skills') };
      assert.equal(pathOf('../shared/words.md', loose), '../shared/words.md');
      folder.add({ 'shared/words.md': 'mine' });
      assert.equal(pathOf('../shared/words.md'), '../shared/words.md');
    });

    it('that is written stays where it says, but for a name of the skill itself', () => {
      const written = (path: string) => resolved('write_file', { path, content: '' }).call.input['path'];
      assert.equal(written('references/guide.md'), 'references/guide.md');
      assert.equal(written('skills/todo/references/guide.md'), 'skills/todo/references/guide.md');
      assert.equal(written('{baseDir}/new.md'), join(skill, 'new.md'));
    });
  });

  describe('the words of a command', () => {
    it('name a script and its files by their absolute paths where only the skill has them', () => {
      const rows: [string, string][] = [
        ['python3 scripts/run.py data.json', 'python3 <skill>/scripts/run.py data.json'],
        ['python3 -u scripts/run.py', 'python3 -u <skill>/scripts/run.py'],
        ['/usr/bin/env python3 scripts/run.py', '/usr/bin/env python3 <skill>/scripts/run.py'],
        ['FOO=1 python3.11 scripts/run.py', 'FOO=1 python3.11 <skill>/scripts/run.py'],
        ['uv run --with pandas scripts/run.py x', 'uv run --with pandas <skill>/scripts/run.py x'],
        ['./scripts/todo.sh add "a b"', '<skill>/scripts/todo.sh add "a b"'],
        ['bash skills/todo/scripts/todo.sh add', 'bash <skill>/scripts/todo.sh add'],
        ['bash ~/clawd/skills/todo/scripts/todo.sh', 'bash <skill>/scripts/todo.sh'],
        ['bash {WORKSPACE}/skills/todo/scripts/todo.sh', 'bash <skill>/scripts/todo.sh'],
        ['bash "${CLAUDE_PLUGIN_ROOT}/scripts/todo.sh" add', 'bash <skill>/scripts/todo.sh add'],
        ['bash <skill_dir>/scripts/todo.sh add', 'bash <skill>/scripts/todo.sh add'],
        ['bash $SKILL_DIR/scripts/todo.sh', 'bash <skill>/scripts/todo.sh'],
        ['cat references/guide.md | wc -l', 'cat <skill>/references/guide.md | wc -l'],
        ['python3 $SKILL_PATH/scripts/run.py', 'python3 <skill>/scripts/run.py'],
        ['python3 /srv/clawd/skills/todo/scripts/run.py', 'python3 <skill>/scripts/run.py'],
        ['python3 run.py data.json', 'python3 <skill>/scripts/run.py data.json'],
        ['bash ./todo.sh references/guide.md', 'bash <skill>/scripts/todo.sh <skill>/references/guide.md'],
        ['todo.sh add && run.py', '<skill>/scripts/todo.sh add && <skill>/scripts/run.py'],
        ['cp assets/page.html page.html', 'cp <skill>/assets/page.html page.html'],
        [
          'echo hi | python3 scripts/run.py > out.json',
          'echo hi | python3 <skill>/scripts/run.py > out.json',
        ],
        [
          'python3 scripts/run.py --template assets/page.html',
          'python3 <skill>/scripts/run.py --template <skill>/assets/page.html',
        ],
        ['mkdir -p out && ls references', 'mkdir -p out && ls <skill>/references'],
        ['echo "It says: $(cat references/guide.md)"', 'echo "It says: $(cat <skill>/references/guide.md)"'],
        [
          'echo $(echo $(head -1 references/guide.md | wc -c)) "$(python3 scripts/run.py)"',
          'echo $(echo $(head -1 <skill>/references/guide.md | wc -c)) "$(python3 <skill>/scripts/run.py)"',
        ],
      ];
      for (const [written, meant] of rows) assert.equal(ran(written), meant);
    });

    it('mean the skill by the name that its own file gives it, where no skill of that name is', () => {
      const named = { ...foreign, skillName: 'chores' };
      assert.equal(ran('bash ~/clawd/skills/chores/scripts/todo.sh', named), 'bash <skill>/scripts/todo.sh');
      assert.equal(ran('bash skills/todo/scripts/todo.sh', named), 'bash <skill>/scripts/todo.sh');
      folder.add({ 'home/clawd/skills/chores/scripts/todo.sh': 'x' });
      for (const skillName of ['chores', '..', '.*', 'a/b', ''])
        for (const line of [
          'bash ~/clawd/skills/chores/scripts/todo.sh',
          'bash skills/other/scripts/todo.sh',
        ])
          assert.equal(ran(line, { ...foreign, skillName }), line);
    });

    it('stay as they are where they are data, or a place to write, or lead somewhere already', () => {
      for (const line of [
        'echo scripts/run.py',
        'printf "%s" scripts/run.py',
        'grep scripts/run.py data.json',
        'python3 data.json "assets/page.html"',
        "python3 data.json 'references/guide.md'",
        'python3 data.json -o assets/page.html',
        'python3 data.json --output assets/page.html',
        'python3 data.json --output=assets/page.html',
        'cp data.json assets/page.html',
        'echo run.py',
        'cat run.py',
        'rm todo.sh',
        'python3 -c run.py',
        'node other.sh',
        'other.sh',
        'guide.md',
        '../todo.sh',
        'todo',
        'echo x > assets/page.html',
        'touch assets/page.html',
        'mkdir scripts',
        'rm assets/page.html',
        'rm -rf references',
        'mv data.json assets/page.html',
        'tee assets/page.html',
        'ln -s data.json scripts/run.py',
        'chmod +x scripts/todo.sh',
        'git add references/guide.md',
        'git commit -m references/guide.md',
        'sed -i s/a/b/ assets/page.html',
        'sort data.json -o assets/page.html',
        'find references -delete',
        'find references -exec rm {} +',
        'python3 -c assets/page.html references/guide.md',
        'bash -c "scripts/todo.sh"',
        'node --require scripts/run.py data.json',
        'for f in references/guide.md; do cat "$f"; done',
        'export SKILL_DIR=/tmp; bash $SKILL_DIR/scripts/todo.sh',
        'cd data && python3 scripts/run.py',
        'python3 "scripts/run.py',
        'cat <<EOF\nscripts/run.py\nEOF',
        'python3 scripts/*.py',
        '',
      ])
        assert.equal(ran(line), line);
    });

    it('never mean the skill where the person has a file of that name, and the result says so', () => {
      folder.add({ 'project/scripts/run.py': 'mine', 'project/todo.sh': 'mine' });
      for (const line of ['todo.sh add', 'bash todo.sh', './todo.sh']) assert.equal(ran(line), line);
      const { call, notes } = resolved('run_command', { command: 'python3 scripts/run.py' });
      assert.equal(call.input['command'], 'python3 scripts/run.py');
      assert.match(
        notes.join(),
        /scripts\/run\.py is the one in .*project; there is .*todo\/scripts\/run\.py too/,
      );
    });

    it('never mean the script of another skill, a link out of this one, or another case', () => {
      symlinkSync(at('home/secret.txt'), join(skill, 'scripts/out.sh'));
      folder.add({ 'home/away/skills/todo/x.sh': 'x' });
      for (const line of [
        'bash .claude/skills/other/scripts/todo.sh',
        'bash skills/other/scripts/todo.sh',
        'bash scripts/out.sh',
        'out.sh',
        `bash ${at('home/away/skills/todo/x.sh')}`,
        '/srv/skills/todo/../other/scripts/other.sh',
        'bash ../../../other/scripts/other.sh',
        'bash skills/TODO/scripts/todo.sh',
      ])
        assert.equal(ran(line), line);
    });

    it('in a pack of Telos mean the files of the working folder and of the person', () => {
      assert.equal(
        ran('python3 tool.py plan.json data.json', telos),
        `python3 tool.py ${at('vault/plan.json')} ${at('project/data.json')}`,
      );
      assert.equal(ran('python3 scripts/run.py', telos), 'python3 <skill>/scripts/run.py');
    });

    it('run in the pack of Telos whose files they name, if it works in the current folder, and else where the person is', () => {
      const here = { ...foreign, scriptDir: at('home/.skills/pack') };
      const asRun = (command: string, more: JsonObject = {}) =>
        resolved('run_command', { command, ...more }, here).call.input;
      assert.deepEqual(asRun('python3 tool.py --all'), {
        command: 'python3 tool.py --all',
        cwd: at('home/.skills/pack'),
      });
      assert.deepEqual(asRun('npm test'), { command: 'npm test' });
      assert.deepEqual(asRun('cat data.json'), { command: 'cat data.json' });
      const both = asRun('python3 tool.py data.json');
      assert.deepEqual(both, { command: `python3 ${at('home/.skills/pack/tool.py')} data.json` });
      assert.equal(asRun('python3 tool.py', { cwd: at('vault') })['cwd'], at('vault'));
    });

    it('are one word to the shell, whatever the path is called', () => {
      folder.add({ "home/.skills/pack/skills/a b; 'c'/x.sh": '' });
      const skillDir = at("home/.skills/pack/skills/a b; 'c'");
      const { call } = resolved('run_command', { command: 'bash x.sh' }, { ...foreign, skillDir });
      assert.equal(call.input['command'], `bash '${skillDir.replaceAll("'", "'\\''")}/x.sh'`);
    });

    it('are told to the model as they ran', () => {
      const { notes } = resolved('run_command', { command: 'python3 scripts/run.py' });
      assert.deepEqual(notes, [`Ran as: python3 ${skill}/scripts/run.py`]);
    });
  });

  describe('a call in the words of another runner', () => {
    it('takes the tools of other runners that hand on a step for use_skill', () => {
      const folders = { workingDir: '/w', packDir: '/p', skillDir: '/p/s', commandDir: '/w', home: '/h' };
      const meant = (name: string, input: JsonObject): JsonObject =>
        resolveCall({ id: '1', name, input }, [useSkillTool], folders).call.input;
      const step = { skill: 'scout', request: 'Look.' };
      assert.deepEqual(meant('Task', { subagent_type: 'scout', description: 'look', prompt: 'Look.' }), step);
      assert.deepEqual(meant('Skill', { skill: '/scout', args: 'Look.' }), step);
      assert.deepEqual(meant('Skill', { command: 'scout' }), {
        skill: 'scout',
        request: 'Carry out scout.',
      });
      assert.deepEqual(meant('use_skill', { ...step, name: 'other' }), step);
      assert.deepEqual(meant('Task', { prompt: 'Look.' }), { prompt: 'Look.' });
    });

    it('is the same call', () => {
      const rows: [string, JsonObject, string, JsonObject][] = [
        ['Read', { file_path: 'data.json' }, 'read_file', { path: 'data.json' }],
        ['read', { filePath: 'data.json', limit: '5' }, 'read_file', { path: 'data.json', limit: 5 }],
        ['Write', { file_path: 'a', content: 'b' }, 'write_file', { path: 'a', content: 'b' }],
        [
          'Edit',
          { file_path: 'a', old_string: 'b', new_string: 'c', replace_all: 'true' },
          'edit_file',
          { path: 'a', old_text: 'b', new_text: 'c', replace_all: true },
        ],
        ['BASH', { command: 'ls', description: 'List' }, 'run_command', { command: 'ls' }],
        ['exec', { cmd: 'ls', timeout: 30 }, 'run_command', { command: 'ls', timeout_s: 30 }],
        ['Bash', { command: 'ls', timeout: 120000 }, 'run_command', { command: 'ls', timeout_s: 120 }],
        ['Bash', { command: 'ls', timeout: 1800 }, 'run_command', { command: 'ls', timeout_s: 1800 }],
        [
          'run_command',
          { command: 'ls', timeout_s: 3600 },
          'run_command',
          { command: 'ls', timeout_s: 3600 },
        ],
        [
          'Grep',
          { pattern: 'x', path: '.', '-i': true },
          'search_files',
          { pattern: 'x', path: '.', ignore_case: true },
        ],
        ['Glob', { pattern: '*.md' }, 'glob', { pattern: '*.md' }],
        ['LS', { path: '.' }, 'list_directory', { path: '.' }],
        ['WebFetch', { url: 'https://example.com' }, 'fetch_url', { url: 'https://example.com' }],
        ['read_file', { path: 'data.json', offset: null, limit: null }, 'read_file', { path: 'data.json' }],
        ['search_files', { pattern: 42 }, 'search_files', { pattern: '42' }],
        [
          'edit_file',
          { path: 'a', edits: '[{"old_text":"b","new_text":"c"}]' },
          'edit_file',
          { path: 'a', edits: [{ old_text: 'b', new_text: 'c' }] },
        ],
        ['edit_file', { path: 'a', edits: '[1' }, 'edit_file', { path: 'a', edits: '[1' }],
      ];
      for (const [name, input, tool, own] of rows) {
        const { call, notes } = resolved(name, input);
        assert.deepEqual([call.name, call.input, notes], [tool, own, []], name);
      }
    });

    it('names the folder of a command, and what is not understood', () => {
      const { call, notes } = resolved('exec', { command: 'ls', workdir: 'skills/todo', pty: true, env: {} });
      assert.deepEqual(call.input, { command: 'ls', cwd: skill });
      assert.deepEqual(notes, ['Not understood by run_command, so without effect: pty, env.']);
      const two = resolved('Read', { path: 'data.json', file_path: '/etc/passwd' });
      assert.equal(two.call.input['path'], 'data.json');
      assert.match(two.notes.join(), /file_path/);
    });

    it('is known behind the name of a place for tools', () => {
      for (const name of [
        'functions.read_file',
        'default_api:read_file',
        'tools.Read',
        'functions.read_file:0',
        'read_file<|channel|>commentary',
      ])
        assert.equal(resolved(name, { path: 'data.json' }).call.name, 'read_file', name);
      assert.equal(resolved('server.read_file', { path: 'data.json' }).call.name, 'server.read_file');
    });

    it('of a tool of a server has the kinds of values that its schema wants, and its own name', () => {
      const schema = (properties: JsonObject): JsonObject => ({ type: 'object', properties });
      const tool = (inputSchema: JsonObject) => [
        { definition: { name: 'find', description: '', inputSchema } },
      ];
      const properties = {
        ids: { type: 'array' },
        opts: { type: ['object', 'null'] },
        n: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
        flag: { type: 'boolean' },
        text: { type: 'string' },
        any: {},
      };
      const input = { ids: '[1,2]', opts: '{"a":1}', n: '5', flag: 'true', text: 7, any: '[1]', more: '2' };
      const meant = (name: string, given: JsonObject) =>
        resolveCall({ id: '1', name, input: given }, tool(schema(properties)), foreign).call;
      assert.deepEqual(meant('functions.find:3', input), {
        id: '1',
        name: 'find',
        input: { ids: [1, 2], opts: { a: 1 }, n: 5, flag: true, text: '7', any: '[1]', more: '2' },
      });
      const unclear = { ids: '{"a":1}', opts: '[1]', n: '5.5', flag: 'yes', text: null };
      assert.deepEqual(meant('find', unclear).input, unclear);
    });

    it('is left alone where a tool of a server has that very name, or no tool has it', () => {
      const server = { definition: { name: 'Read', description: '', inputSchema: {} } };
      const call = { id: '1', name: 'Read', input: { file_path: 'x' } };
      assert.equal(resolveCall(call, [...skillTools, server], foreign).call, call);
      assert.equal(resolved('Write_File', { path: 'x' }).call.name, 'Write_File');
      const withoutCommands = skillTools.filter(({ definition }) => definition.name !== 'run_command');
      const bash = { id: '1', name: 'Bash', input: { command: 'ls' } };
      assert.equal(resolveCall(bash, withoutCommands, foreign).call, bash);
    });
  });
});
