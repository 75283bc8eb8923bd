/** What lies on disk becomes agents and skills; one broken file never hides the others. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type ConfigOverrides, loadConfig } from '../../../src/engine/config.ts';
import { discover as discoverEverything } from '../../../src/engine/skills/discover.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const skill = (description: string) => `---\ndescription: ${description}\n---\nBody`;

/** As root, who may read everything, the same is done as somebody else. */
function withoutRights<Result>(act: () => Result): Result {
  if (process.getuid?.() !== 0) return act();
  process.seteuid?.(65534);
  try {
    return act();
  } finally {
    process.seteuid?.(0);
  }
}

describe('discover', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const discoverAll = (more: ConfigOverrides = {}) =>
    discoverEverything(
      loadConfig({
        env: { TELOS_SKILLS_DIR: join(folder.path, 'skills') },
        home: join(folder.path, 'home'),
        cwd: join(folder.path, 'call'),
        workspaceFolders: [{ name: 'shop', path: join(folder.path, 'shop') }],
        ...more,
      }),
    );
  const discover = (more?: ConfigOverrides) => discoverAll(more).agents;

  it('reads the skills that other runners keep in the home folder and in a workspace', () => {
    folder.add({
      'home/.codex/skills/knot/SKILL.md': skill('Ties'),
      'home/.copilot/skills/sail/SKILL.md': skill('Sails'),
      'shop/.opencode/skills/row/SKILL.md': skill('Rows'),
    });
    assert.deepEqual(
      discover().map(({ name, skills }) => [name, ...skills.map(({ id }) => id)]),
      [
        ['personal', 'knot', 'sail'],
        ['shop', 'row'],
      ],
    );
  });

  it('reads a pack with agent.toml, and one without, which works where the person stands', () => {
    folder.add({
      'call/notes.md': '',
      'skills/hn-pack/skills/frontpage/SKILL.md': skill('News'),
      'skills/hn-pack/agent.toml': 'name = "hackernews"\ndescription = "news"\nworking_dir = "~/x/y"\n',
      'skills/plain/skills/b/SKILL.md': skill('Second'),
      'skills/plain/skills/a/SKILL.md': skill('First'),
      'skills/call/skills/c/SKILL.md': skill('Here'),
      'skills/call/agent.toml': 'working_dir = "."',
    });
    const [call, hackernews, plain] = discover();
    assert.deepEqual(
      [hackernews?.name, hackernews?.description, hackernews?.workingDir],
      ['hackernews', 'news', join(folder.path, 'home/x/y')],
    );
    assert.deepEqual([plain?.description, plain?.workingDir], ['First', join(folder.path, 'call')]);
    assert.deepEqual(
      [call, hackernews, plain].map(agent => agent?.isForeign),
      [false, false, true],
    );
    assert.deepEqual(
      plain?.skills.map(({ id }) => id),
      ['a', 'b'],
    );
    assert.equal(call?.workingDir, join(folder.path, 'call'));
  });

  it('lets a pack choose a folder for its work, but none that holds what is not its business', () => {
    const home = join(folder.path, 'home');
    const usual = join(home, 'obsidian/telos/pack');
    folder.add({ 'skills/other/skills/a/SKILL.md': skill('A'), 'skills/pack/skills/b/SKILL.md': skill('B') });
    folder.add({ 'home/notes.md': 'x' });
    symlinkSync(home, join(folder.path, 'to-home'));
    const rows = [
      ['~/obsidian/telos/news', join(home, 'obsidian/telos/news')],
      ['~/Documents', join(home, 'Documents')],
      ['.', join(folder.path, 'call')],
      ['out', join(folder.path, 'call/out')],
      [join(folder.path, 'data'), join(folder.path, 'data')],
      [join(folder.path, 'skills/pack/work'), join(folder.path, 'skills/pack/work')],
      ['~', usual],
      ['~/', usual],
      ['~/x/..', usual],
      ['/', usual],
      ['/etc', usual],
      ['/etc/cron.d', usual],
      ['/srv', usual],
      ['..', usual],
      ['../data', usual],
      ['~/.ssh', usual],
      ['~/.config', usual],
      ['~/.config/autostart', usual],
      ['~/.claude/skills/other', usual],
      ['.vscode', usual],
      ['.github/workflows', usual],
      [join(folder.path, 'data/.git/hooks'), usual],
      ['~/bin', usual],
      ['~/Library/LaunchAgents', usual],
      ['/var/spool/cron', usual],
      ['/opt/tool', usual],
      [folder.path, usual],
      [join(folder.path, 'to-home'), usual],
      [join(folder.path, 'skills'), usual],
      [join(folder.path, 'skills/other'), usual],
    ];
    for (const [written, expected] of rows) {
      folder.add({ 'skills/pack/agent.toml': `working_dir = ${JSON.stringify(written)}` });
      const pack = discover().find(({ name }) => name === 'pack');
      assert.equal(pack?.workingDir, expected, written);
      const codes = pack?.diagnostics.map(({ code }) => code);
      assert.deepEqual(codes, expected === usual ? ['agent-working-dir'] : [], written);
    }
  });

  it('refuses a folder that holds everything, for the user and for a pack, with the line that names it', () => {
    const own = join(folder.path, 'home/work');
    const all = [
      '/',
      '//',
      '/.',
      '~',
      '~/',
      '~/.',
      '..',
      folder.path,
      join(folder.path, 'to-home'),
      '~/.config',
      '$HOME',
      `\${HOME}/notes`,
      '~root',
      '%USERPROFILE%',
    ];
    folder.add({ 'skills/pack/agent.toml': 'description = "x"\n\nworking_dir = "~/work"\n' });
    folder.add({ 'skills/pack/skills/b/SKILL.md': skill('B'), 'home/notes.md': 'x' });
    symlinkSync(join(folder.path, 'home'), join(folder.path, 'to-home'));
    for (const written of all) {
      folder.add({
        'home/.config/telos/agents.toml': `# mine\n[agents.other]\ndescription = "x"\n[agents.pack]\n\nworking_dir = ${JSON.stringify(written)}\n`,
      });
      const { agents, diagnostics } = discoverAll();
      assert.equal(agents.find(({ name }) => name === 'pack')?.workingDir, own, written);
      const [told] = diagnostics.filter(({ code }) => code === 'agents-toml-working-dir');
      assert.deepEqual([told?.severity, told?.line], ['error', 6], written);
      assert.match(
        told?.message ?? '',
        /No agent can work in '.*', which (is a whole disk|holds all of|names a variable or the home of another)/,
      );
    }
    for (const written of ['/', '$HOME']) {
      folder.add({
        'home/.config/telos/agents.toml': '',
        'skills/pack/agent.toml': `description = "x"\n\nworking_dir = "${written}"\n`,
      });
      const pack = discoverAll().agents.find(({ name }) => name === 'pack');
      assert.deepEqual(
        pack?.diagnostics.map(({ code, line }) => [code, line]),
        [['agent-working-dir', 3]],
      );
    }
  });

  it('lets no pack have the folder of another agent for its own, by whatever name', () => {
    folder.add({
      'skills/daily-notes/agent.toml': '',
      'skills/daily-notes/skills/a/SKILL.md': skill('A'),
      'skills/evil/agent.toml': 'name = "daily:notes"',
      'skills/evil/skills/a/SKILL.md': skill('A'),
      'skills/kairos/skills/a/SKILL.md': skill('A'),
      'skills/zzz/agent.toml': 'name = "kairos"\nworking_dir = "~/obsidian/telos/kairos"',
      'skills/zzz/skills/a/SKILL.md': skill('Theirs'),
      'home/.claude/skills/mine/SKILL.md': skill('Mine'),
      'skills/personal/agent.toml': 'name = "friendly"',
      'skills/personal/skills/a/SKILL.md': skill('A'),
      'home/.config/telos/agents.toml': '[agents.kairos]\nworking_dir = "~/plans"\n',
    });
    const root = join(folder.path, 'home/obsidian/telos');
    // At home, foreign skills too have folders of their own.
    const found = new Map(discover({ cwd: join(folder.path, 'home') }).map(agent => [agent.name, agent]));
    const folderOf = (name: string): string => relative(root, found.get(name)?.workingDir ?? '');
    assert.deepEqual(['daily-notes', 'daily:notes', 'personal'].map(folderOf), [
      'daily-notes',
      'evil',
      'personal',
    ]);
    assert.match(folderOf('friendly'), /^personal-[\da-f]{8}$/);
    const kairos = found.get('kairos');
    assert.deepEqual(
      [kairos?.packDir, kairos?.workingDir],
      [join(folder.path, 'skills/kairos'), join(folder.path, 'home/plans')],
    );
    assert.deepEqual(
      kairos?.diagnostics.map(({ code }) => code),
      ['agent-name-clash'],
    );
  });

  it('says where an agent worked that is called otherwise than its pack, unless another one works there', () => {
    folder.add({
      'skills/hn-pack/agent.toml': 'name = "hackernews"',
      'skills/hn-pack/skills/a/SKILL.md': skill('A'),
      'home/obsidian/telos/hackernews/page.md': 'x',
    });
    const told = () => discover().find(({ name }) => name === 'hackernews')?.diagnostics ?? [];
    assert.match(told()[0]?.message ?? '', /work in .*\/telos\/hackernews; now .* hn-pack/);
    folder.add({
      'skills/hackernews/agent.toml': 'name = "other"',
      'skills/hackernews/skills/a/SKILL.md': skill('A'),
    });
    assert.deepEqual(told(), []);
  });

  describe('in a clone', () => {
    const clone = (path: string): string => join(folder.path, 'shop', path);
    const codes = () => discoverAll().diagnostics.map(({ code, file }) => [code, file]);
    beforeEach(() => {
      folder.add({
        'home/notes/private.md': '---\ndescription: Private\n---\nPrivate',
        'home/notes/x/SKILL.md': skill('Private'),
        'shop/.claude/skills/good/SKILL.md': skill('Good'),
        'shop/shared/inner/SKILL.md': skill('Inner'),
      });
    });

    it('takes no skill over a link that leads out of the project, and says so', () => {
      mkdirSync(clone('.agents'));
      symlinkSync('../../home/notes', clone('.agents/skills'));
      symlinkSync('../../../home/notes', clone('.claude/skills/bad'));
      symlinkSync('../../shared', clone('.claude/skills/in'));
      folder.add({ 'shop/.github/skills/file/more.md': '' });
      symlinkSync('../../../../home/notes/private.md', clone('.github/skills/file/SKILL.md'));
      mkdirSync(clone('.github/skills/later'));
      symlinkSync('../../../../home/later.md', clone('.github/skills/later/SKILL.md'));
      symlinkSync('../home/notes/private.md', clone('mcp.json'));
      const [shop] = discover();
      assert.deepEqual(
        shop?.skills.map(({ id }) => id),
        ['good', 'inner'],
      );
      assert.equal(shop?.mcpConfig, undefined);
      assert.deepEqual(codes().sort(), [
        ['project-outside', clone('.agents/skills')],
        ['project-outside', clone('.claude/skills/bad')],
        ['project-outside', clone('.github/skills/file/SKILL.md')],
        ['project-outside', clone('.github/skills/later/SKILL.md')],
        ['project-outside', clone('mcp.json')],
      ]);
      assert.match(
        discoverAll().diagnostics[0]?.message ?? '',
        /leads out of the project .*, to .*home\/notes/,
      );
    });

    it('lets the project file name nothing over a link that leads out, and no agent of the user', () => {
      mkdirSync(join(folder.path, 'call/in'), { recursive: true });
      for (const name of ['out', 'elsewhere', 'mcp.json'])
        symlinkSync('../home/notes', join(folder.path, 'call', name));
      symlinkSync('../not-yet', join(folder.path, 'call/later'));
      folder.add({
        'skills/kairos/skills/s/SKILL.md': skill('Mine'),
        'skills/kairos/mcp.json': '{}',
        'call/skills/a/SKILL.md': skill('A'),
        'call/config/agents.toml': [
          '[agents.one]\nskills_dir = "skills"\nworking_dir = "out"\nmcp_config = "mcp.json"',
          '[agents.two]\nskills_dir = "elsewhere"',
          '[agents.three]\nskills_dir = "skills"\nworking_dir = "later"',
          '[agents.four]\nskills_dir = "skills"\nworking_dir = "in"',
          '[agents.kairos]\nskills_dir = "skills"',
        ].join('\n'),
      });
      const { agents, diagnostics } = discoverAll();
      const found = new Map(agents.map(agent => [agent.name, agent]));
      const lines = diagnostics.filter(({ code }) => code === 'agents-toml-outside').map(({ line }) => line);
      assert.deepEqual(lines, [1, 1, 5, 7]);
      assert.equal(found.has('two'), false);
      assert.equal(found.get('four')?.workingDir, join(folder.path, 'call/in'));
      for (const name of ['one', 'three', 'kairos']) {
        assert.equal(found.get(name)?.workingDir, join(folder.path, 'call'));
        assert.deepEqual(
          [found.get(name)?.mcpConfig, found.get(name)?.packDir],
          [undefined, join(folder.path, 'call/skills')],
        );
      }
    });

    it('is none where the person is at home, or above it', () => {
      const toml = '[agents.a]\nskills_dir = "s"\nworking_dir = "."\n';
      folder.add({
        'home/config/agents.toml': toml,
        'home/s/a/SKILL.md': skill('A'),
        'config/agents.toml': toml,
        's/a/SKILL.md': skill('A'),
      });
      for (const cwd of [join(folder.path, 'home'), folder.path]) {
        const { agents, diagnostics } = discoverAll({ cwd, workspaceFolders: [] });
        assert.deepEqual([agents, diagnostics.map(({ code }) => code)], [[], ['agents-toml-outside']]);
        assert.match(diagnostics[0]?.message ?? '', /contains your home folder/);
      }
    });

    it('is not read over a link of its file', () => {
      folder.add({ 'home/agents.toml': '[agents.a]\nskills_dir = "s"\n', 'call/s/a/SKILL.md': skill('A') });
      mkdirSync(join(folder.path, 'call/config'), { recursive: true });
      symlinkSync('../../home/agents.toml', join(folder.path, 'call/config/agents.toml'));
      const { agents, diagnostics } = discoverAll({ workspaceFolders: [] });
      assert.deepEqual([agents, diagnostics.map(({ code }) => code)], [[], ['agents-toml-outside']]);
    });
  });

  it('reads no skill that by its real name is a file of secrets, whoever has linked it', () => {
    const secret = '---\nname: SECRET\ndescription: SECRET\n---\nSECRET';
    folder.add({
      'home/.netrc': secret,
      'home/.aws/SKILL.md': secret,
      'skills/pack/skills/file/x.md': '',
      'home/.claude/skills/two/x.md': '',
      'home/elsewhere/three/x.md': '',
      'home/.config/telos/agents.toml': '[agents.linked]\nskills_dir = "~/elsewhere"\n',
    });
    const at = (path: string): string => join(folder.path, path);
    symlinkSync(at('home/.netrc'), at('skills/pack/skills/file/SKILL.md'));
    symlinkSync(at('home/.aws'), at('skills/pack/skills/folder'));
    symlinkSync(at('home/.netrc'), at('home/.claude/skills/two/SKILL.md'));
    symlinkSync(at('home/.netrc'), at('home/elsewhere/three/skills.md'));
    mkdirSync(at('skills/bare'));
    symlinkSync(at('home/.netrc'), at('skills/bare/SKILL.md'));
    const skills = discover().flatMap(agent => agent.skills);
    assert.deepEqual(skills.map(({ id }) => id).sort(), ['bare', 'file', 'folder', 'three', 'two']);
    for (const one of skills) {
      const seen = JSON.stringify([one.names, one.name, one.description, one.synopsis, one.body, one.fields]);
      assert.doesNotMatch(seen, /SECRET/, one.file);
      const [diagnostic] = one.diagnostics;
      assert.match(
        diagnostic?.message ?? '',
        /^It leads to .*(\.netrc|\.aws), which looks like it holds keys/,
        one.file,
      );
    }
  });

  it('reads as a skill no other file of the user that a pack’s link leads to, and no file of Telos', () => {
    const own = '---\nname: DIARY\ndescription: DIARY\n---\nDIARY';
    folder.add({
      'home/Documents/diary.txt': own,
      'home/.local/share/telos/runs/1.jsonl': own,
      'home/dotfiles/SKILL.md': '---\ndescription: kept elsewhere\n---\nGo.',
      'skills/pack/README.md': '---\ndescription: of the pack\n---\nGo.',
    });
    const targets = {
      diary: 'home/Documents/diary.txt',
      log: 'home/.local/share/telos/runs/1.jsonl',
      kept: 'home/dotfiles/SKILL.md',
      own: 'skills/pack/README.md',
    };
    for (const [name, target] of Object.entries(targets)) {
      mkdirSync(join(folder.path, 'skills/pack/skills', name), { recursive: true });
      symlinkSync(join(folder.path, target), join(folder.path, 'skills/pack/skills', name, 'SKILL.md'));
    }
    const [agent] = discover().filter(({ name }) => name === 'pack');
    const read = Object.fromEntries(agent!.skills.map(({ id, description }) => [id, description]));
    assert.deepEqual(read, {
      diary: '(no description)',
      kept: 'kept elsewhere',
      log: '(no description)',
      own: 'of the pack',
    });
    assert.doesNotMatch(JSON.stringify(agent!.skills.map(one => [one.names, one.name, one.body])), /DIARY/);
    assert.match(agent!.skills[0]?.diagnostics[0]?.message ?? '', /diary\.txt, which is not a skill file/);
  });

  it('takes no way for a name', () => {
    folder.add({
      'skills/one/skills/a/SKILL.md': skill('A'),
      'skills/one/agent.toml': 'name = "../../.."',
      'skills/two/skills/a/SKILL.md': skill('A'),
      'skills/two/agent.toml': 'name = ".."',
    });
    const linked = '[agents."../../x"]\nskills_dir = "~/x"\n[agents."..."]\nskills_dir = "~/y"\n';
    folder.add({
      'home/.config/telos/agents.toml': linked,
      'home/x/a/SKILL.md': skill('A'),
      'home/y/a/SKILL.md': skill('A'),
    });
    const root = join(folder.path, 'home/obsidian/telos');
    const found = discover({ cwd: join(folder.path, 'home') }).map(({ workingDir }) => workingDir);
    assert.deepEqual(
      found.sort(),
      ['-', '..-..-x', 'one', 'two'].map(name => join(root, name)),
    );
  });

  it('takes a bare skill folder as an agent of one skill, and a workspace as an agent of its own', () => {
    folder.add({
      'skills/solo/SKILL.md': skill('Alone'),
      'shop/.claude/skills/deploy/skill.md': skill('Ship it'),
    });
    const [shop, solo] = discover();
    assert.deepEqual([solo?.name, solo?.skills.map(({ id }) => id)], ['solo', ['solo']]);
    assert.deepEqual([shop?.name, shop?.skills[0]?.id, shop?.source], ['shop', 'deploy', 'project']);
    assert.equal(shop?.workingDir, join(folder.path, 'shop'));
  });

  it('loads an agent whose agent.toml is broken, and names file and line', () => {
    folder.add({
      'skills/bad/skills/s/SKILL.md': skill('D'),
      'skills/bad/agent.toml': 'description = "ok"\nname = \n',
    });
    const [bad] = discover();
    assert.deepEqual(
      [bad?.name, bad?.diagnostics[0]?.code, bad?.diagnostics[0]?.line],
      ['bad', 'agent-toml', 2],
    );
    assert.equal(bad?.diagnostics[0]?.file, join(folder.path, 'skills/bad/agent.toml'));
  });

  it('loads an agent whose agent.toml would never end, and says so', () => {
    folder.add({ 'skills/odd/skills/s/SKILL.md': skill('D') });
    symlinkSync('/dev/zero', join(folder.path, 'skills/odd/agent.toml'));
    const [odd] = discover();
    assert.deepEqual([odd?.name, odd?.diagnostics[0]?.code], ['odd', 'agent-toml']);
    assert.match(odd?.diagnostics[0]?.message ?? '', /a device, not a file/);
  });

  it('says of each key of agent.toml that it is no text, and uses the others', () => {
    folder.add({
      'skills/odd/skills/s/SKILL.md': skill('D'),
      'skills/odd/agent.toml': 'name = 7\ndescription = "ok"\nworking_dir = ["x"]\nmore = 1\n',
    });
    const [odd] = discover();
    assert.deepEqual([odd?.name, odd?.description], ['odd', 'ok']);
    assert.deepEqual(
      odd?.diagnostics.map(({ message }) => message),
      ['name is not text, so it is ignored.', 'working_dir is not text, so it is ignored.'],
    );
  });

  it('lists a skill that is no text with its defect, and its neighbours without', () => {
    folder.add({
      'skills/a/skills/good/SKILL.md': skill('Fine'),
      'skills/a/skills/bad/SKILL.md': new Uint8Array([0xff, 0xfe, 0]),
      'skills/a/skills/odd/SKILL.md/x': 'the skill file is a folder',
    });
    const skills = discover()[0]?.skills ?? [];
    assert.deepEqual(
      skills.map(({ id, diagnostics }) => [id, diagnostics.map(({ code }) => code)]),
      [
        ['bad', ['skill-unreadable']],
        ['good', []],
        ['odd', ['skill-unreadable']],
      ],
    );
    assert.match(skills[2]?.diagnostics[0]?.message ?? '', /^It is a folder, not a file\.$/);
  });

  it('lists what cannot be looked into with the reason, and its neighbours without', () => {
    folder.add({
      'skills/a/skills/good/SKILL.md': skill('Fine'),
      'skills/a/skills/closed/SKILL.md': skill('Nobody can tell'),
      'skills/a/skills/endless/notes.md': 'Its skill file would never end.',
      'skills/a/skills/gone/notes.md': 'Its skill file lies elsewhere.',
      'skills/a/skills/pipe/notes.md': 'Nobody writes into its skill file.',
      'skills/a/skills/ring/notes.md': 'So does this one.',
      'skills/shut/skills/s/SKILL.md': skill('Nobody can tell'),
      'skills/fine/skills/s/SKILL.md': skill('Fine'),
    });
    const at = (path: string): string => join(folder.path, 'skills', path);
    symlinkSync(at('nowhere'), at('a/skills/gone/SKILL.md'));
    symlinkSync('SKILL.md', at('a/skills/ring/SKILL.md'));
    symlinkSync('/dev/zero', at('a/skills/endless/SKILL.md'));
    execFileSync('mkfifo', [at('a/skills/pipe/SKILL.md')]);
    symlinkSync(at('nowhere'), at('a/skills/moved'));
    symlinkSync(at('nowhere'), at('lost'));
    // As editors lay them.
    symlinkSync('me@here.1:2', at('.#notes.md'));
    symlinkSync('me@here.1:2', at('a/skills/.#notes.md'));
    chmodSync(folder.path, 0o755);
    chmodSync(at('a/skills/closed'), 0);
    chmodSync(at('shut/skills'), 0);
    try {
      const found = withoutRights(() =>
        discover().flatMap(({ name, skills }) =>
          skills.map(({ names: [id], diagnostics }) => [
            name,
            id,
            ...diagnostics.map(({ message }) => message),
          ]),
        ),
      );
      const closed = 'You do not have permission to read it.';
      const noFile = 'It is a pipe, a socket or a device, not a file.';
      const lost = 'The link to it is broken.';
      assert.deepEqual(found, [
        ['a', 'closed', closed],
        ['a', 'endless', noFile],
        ['a', 'gone', lost],
        ['a', 'good'],
        ['a', 'moved', lost],
        ['a', 'pipe', noFile],
        ['a', 'ring', lost],
        ['fine', 's'],
        ['lost', 'lost', lost],
        ['shut', at('shut/skills'), closed],
      ]);
    } finally {
      chmodSync(at('a/skills/closed'), 0o700);
      chmodSync(at('shut/skills'), 0o700);
    }
  });

  it('finds skills below group folders, tells equal names apart, and survives link cycles', () => {
    folder.add({
      'skills/a/skills/ann/tool/SKILL.md': skill('Hers'),
      'skills/a/skills/bob/tool/SKILL.md': skill('His'),
      'skills/a/skills/bob/tool/nested/SKILL.md': skill('Part of it'),
      'skills/a/skills/.git/x/SKILL.md': skill('Never'),
    });
    symlinkSync(join(folder.path, 'skills/a'), join(folder.path, 'skills/a/skills/loop'));
    assert.deepEqual(
      discover()[0]?.skills.map(({ id }) => id),
      ['ann/tool', 'bob/tool'],
    );
  });

  it('finds nothing where there is nothing', () => {
    assert.deepEqual(discover(), []);
  });

  it('looks into all the places where workspaces and other runners keep skills, in a fixed order', () => {
    folder.add({
      'shop/.github/skills/deploy/SKILL.md': skill('Third'),
      'shop/.agents/skills/deploy/SKILL.md': skill('Second'),
      'shop/.claude/skills/deploy/SKILL.md': skill('First'),
      'home/.agents/skills/notes/SKILL.md': skill('Notes'),
      'home/.claude/skills/diary/SKILL.md': skill('Diary'),
    });
    const [own, shop] = discover();
    assert.deepEqual([own?.name, own?.skills.map(({ id }) => id)], ['personal', ['diary', 'notes']]);
    assert.deepEqual(
      shop?.skills.map(({ id, description, shadowedBy }) => [id, description, shadowedBy?.skill]),
      [
        ['.agents/deploy', 'Second', 'deploy'],
        ['.github/deploy', 'Third', 'deploy'],
        ['deploy', 'First', undefined],
      ],
    );
  });

  it('looks into the parts of a repository, two folders deep, and into none of another folder', () => {
    folder.add({
      'shop/.claude/skills/deploy/SKILL.md': skill('All'),
      'shop/packages/web/.claude/skills/deploy/SKILL.md': skill('Web'),
      'shop/packages/web/.claude/skills/style/SKILL.md': skill('Style'),
      'shop/api/.agents/skills/route/SKILL.md': skill('Route'),
      'shop/node_modules/x/.claude/skills/no/SKILL.md': skill('No'),
      'shop/.cache/x/.claude/skills/no/SKILL.md': skill('No'),
      'shop/a/b/c/.claude/skills/no/SKILL.md': skill('No'),
    });
    const idsOf = (): string[] => discover().flatMap(({ skills }) => skills.map(({ id }) => id));
    assert.deepEqual(idsOf(), ['deploy']);
    mkdirSync(join(folder.path, 'shop/.git'));
    symlinkSync('..', join(folder.path, 'shop/packages/loop'));
    assert.deepEqual(idsOf(), ['deploy', 'packages/web/.claude/deploy', 'route', 'style']);
  });

  it('gives the name of a workspace and of a shared agent up to an agent that was given it', () => {
    folder.add({
      'skills/shop/skills/a/SKILL.md': skill('A'),
      'skills/personal/skills/b/SKILL.md': skill('B'),
      'shop/.claude/skills/c/SKILL.md': skill('C'),
      'home/.claude/skills/d/SKILL.md': skill('D'),
    });
    assert.deepEqual(
      discover().map(({ name }) => name),
      ['personal', 'personal (user)', 'shop', 'shop (workspace)'],
    );
  });

  it('lets project win over user over built-in, and names the winner at the shadowed skill', () => {
    folder.add({
      'builtin/plan/SKILL.md': skill('Built in'),
      'builtin/review/SKILL.md': skill('Built in'),
      'skills/mine/skills/plan/SKILL.md': skill('User'),
      'skills/mine/skills/review/SKILL.md': skill('User'),
      'skills/other/skills/review/SKILL.md': skill('User'),
      'shop/.claude/skills/plan/SKILL.md': skill('Project'),
    });
    const shadows = discover({ builtinSkillsDir: join(folder.path, 'builtin') }).map(agent => [
      agent.name,
      agent.skills.map(({ id, shadowedBy }) => `${id} < ${shadowedBy?.agent}`),
    ]);
    assert.deepEqual(shadows, [
      ['mine', ['plan < shop', 'review < undefined']],
      ['other', ['review < undefined']],
      ['shop', ['plan < undefined']],
      ['telos', ['plan < shop', 'review < mine']],
    ]);
  });

  it('reads the packs of version 3, and tells of two packs with one name', () => {
    folder.add({
      'home/.local/share/telos/agents/gmail/skills/check/SKILL.md': skill('Old'),
      'home/.local/share/telos/agents/slack/skills/check/SKILL.md': skill('Only'),
      'skills/gmail/skills/check/SKILL.md': skill('New'),
    });
    const [gmail, slack] = discover();
    assert.equal(gmail?.packDir, join(folder.path, 'skills/gmail'));
    assert.match(gmail?.diagnostics[0]?.message ?? '', /agents\/gmail is not used/);
    assert.equal(slack?.packDir, join(folder.path, 'home/.local/share/telos/agents/slack'));
  });

  it('does not take what an install has left half done for an agent', () => {
    folder.add({ 'skills/.telos-1234/skills/a/SKILL.md': skill('Half') });
    assert.deepEqual(discover(), []);
    folder.add({ 'skills/telos-1234/skills/a/SKILL.md': skill('Whole') });
    assert.deepEqual(
      discover().map(({ name }) => name),
      ['telos-1234'],
    );
  });

  describe('with agents.toml', () => {
    const toml = (text: string) => folder.add({ 'home/.config/telos/agents.toml': text });

    it('lays its values over an agent, and leaves unknown keys alone', () => {
      folder.add({ 'skills/pk/skills/s/SKILL.md': skill('D') });
      toml(
        '[agents.pk]\nworking_dir = "~/out"\ndescription = "over"\nmcp_config = "~/m.json"\nunknown = 1\n',
      );
      const [pk] = discover();
      assert.deepEqual(
        [pk?.workingDir, pk?.description, pk?.mcpConfig],
        [join(folder.path, 'home/out'), 'over', join(folder.path, 'home/m.json')],
      );
    });

    it('reads a linked agent where it lies, live', () => {
      folder.add({ 'vault/skills/notes/SKILL.md': skill('Notes') });
      toml(
        `[agents.vault]\nskills_dir = ${JSON.stringify(join(folder.path, 'vault/skills'))}\nworking_dir = "."\n`,
      );
      assert.deepEqual(
        discover()[0]?.skills.map(({ id, source }) => [id, source]),
        [['notes', 'linked']],
      );
      folder.add({ 'vault/skills/tasks/SKILL.md': skill('Tasks') });
      assert.deepEqual(
        discover()[0]?.skills.map(({ id }) => id),
        ['notes', 'tasks'],
      );
    });

    it('lists an agent whose folder is missing, and says so', () => {
      toml('[agents.gone]\nmode = "installed"\n[agents.vault]\nskills_dir = "/nowhere"\n');
      assert.deepEqual(
        discover().map(({ name, diagnostics }) => [name, diagnostics[0]?.code, diagnostics[0]?.line]),
        [
          ['gone', 'agent-missing', 1],
          ['vault', 'agent-linked-empty', 3],
        ],
      );
    });

    it('tells what is wrong in it, by line, and loads the rest', () => {
      folder.add({ 'skills/pk/skills/s/SKILL.md': skill('D') });
      const told = (text: string) => {
        toml(text);
        const { agents, diagnostics } = discoverAll();
        assert.deepEqual(
          agents.map(({ name }) => name),
          ['pk'],
        );
        return diagnostics.map(({ code, line }) => `${code}:${line}`);
      };
      assert.deepEqual(told('# x\nbad ='), ['agents-toml:2']);
      assert.deepEqual(told('[defaults]\ndefault_agent = "nobody"\n'), ['agents-toml-default:1']);
      assert.deepEqual(told('[agents.k]\nmode = "linked"\n'), ['agents-toml-linked:1']);
      assert.deepEqual(told('\n[agents.k]\ndescription = "x"\n'), ['agents-toml-unknown:2']);
      assert.deepEqual(told('[agents."../x"]\nmode = "installed"\n'), ['agents-toml-unknown:1']);
      assert.deepEqual(told('agents = { pk = 1 }\n'), ['agents-toml-entry:1']);
      assert.deepEqual(told('\n[agents.pk]\ndescription = 7\nworking_dir = ["x"]\n'), [
        'agents-toml-value:2',
        'agents-toml-value:2',
      ]);
    });

    it('takes the project file where there is no config folder, and lets it name only folders of the project', () => {
      folder.add({
        'skills/pk/skills/s/SKILL.md': skill('D'),
        'call/local/a/SKILL.md': skill('A'),
        'call/config/agents.toml':
          '[agents.local]\nskills_dir = "local"\nworking_dir = "."\n[agents.pk]\nworking_dir = "../../etc"\n',
      });
      const { agents, diagnostics } = discoverAll();
      assert.deepEqual(
        agents.map(({ name, workingDir, source }) => [name, workingDir, source]),
        [
          ['local', join(folder.path, 'call'), 'project'],
          ['pk', join(folder.path, 'call'), 'user'],
        ],
      );
      assert.deepEqual(
        diagnostics.map(({ code, line }) => [code, line]),
        [['agents-toml-outside', 4]],
      );
      toml('');
      assert.deepEqual(
        discover().map(({ name }) => name),
        ['pk'],
      );
    });
  });
});
