/** What is in force, and where it was said. */
import assert from 'node:assert/strict';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { type ConfigOverrides, effortFor, expandPath, loadConfig } from '../../src/engine/config.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

describe('loadConfig', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const load = (env: Record<string, string> = {}, more: ConfigOverrides = {}) =>
    loadConfig({ env, home: folder.path, cwd: join(folder.path, 'call'), ...more });

  it('has a place for everything when nothing is set', () => {
    const { configDir, dataDir, skillsDir, workingRoot, provider, origins } = load();
    const below = (path: string) => join(folder.path, path);
    assert.deepEqual(
      [configDir, dataDir, skillsDir, workingRoot, provider],
      [
        below('.config/telos'),
        below('.local/share/telos'),
        below('.skills'),
        below('obsidian/telos'),
        undefined,
      ],
    );
    assert.deepEqual(origins['skillsDir'], { value: below('.skills'), origin: 'default' });
  });

  it('takes no HOME for the home folder that would be a folder of the call', () => {
    for (const HOME of ['', 'relative']) {
      const { configDir, skillsDir } = loadConfig({ env: { HOME }, cwd: folder.path });
      assert.equal(configDir, join(userInfo().homedir, '.config/telos'));
      assert.equal(skillsDir, join(userInfo().homedir, '.skills'));
    }
  });

  it('takes folders from variables, from the home folder or from the folder of the call on', () => {
    const { configDir, dataDir } = load({ TELOS_CONFIG_DIR: '~/c', TELOS_DATA_DIR: 'd' });
    assert.deepEqual([configDir, dataDir], [join(folder.path, 'c'), join(folder.path, 'call/d')]);
  });

  it('says that nothing can be kept below /proc, and takes the usual folder', () => {
    const { dataDir, problems } = loadConfig({
      env: { TELOS_DATA_DIR: '/proc/nope' },
      home: '/h',
      cwd: '/c',
    });
    assert.equal(dataDir, '/h/.local/share/telos');
    assert.match(
      problems[0]?.message ?? '',
      /^TELOS_DATA_DIR is \/proc\/nope, where nothing can be kept, so/,
    );
  });

  it('puts a flag over the environment, the environment over .env, .env over the default', () => {
    folder.add({
      '.config/telos/.env': 'TELOS_MODEL=from-file\nTELOS_PROVIDER=from-file\nTELOS_SKILLS_DIR=~/s\n',
    });
    const env = { TELOS_MODEL: 'from-process', TELOS_PROVIDER: 'from-process' };
    const config = load(env, { model: 'from-flag' });
    assert.deepEqual(
      [config.model, config.provider, config.skillsDir],
      ['from-flag', 'from-process', join(folder.path, 's')],
    );
    const file = join(folder.path, '.config/telos/.env');
    assert.deepEqual(
      ['model', 'provider', 'skillsDir', 'dataDir'].map(name => config.origins[name]?.origin),
      ['flag', 'environment', '.env', 'default'],
    );
    assert.equal(config.origins['skillsDir']?.file, file);
    assert.equal(load(env, { model: 'm', overridesAre: 'setting' }).origins['model']?.origin, 'setting');
  });

  it('reads limits as people write amounts, and says which is none', () => {
    const { budget, origins, problems } = load(
      { TELOS_MAX_COST: '$0.50', TELOS_MAX_TOKENS: '1_000_000', TELOS_MAX_COST_PER_DAY: '-1' },
      { maxMinutes: '5' },
    );
    assert.deepEqual(budget, {
      maxCost: 0.5,
      maxTokens: 1_000_000,
      maxMinutes: 5,
      maxCostPerDay: Number.NaN,
    });
    assert.deepEqual(
      [origins['maxCost'], origins['maxMinutes']?.origin],
      [{ value: '$0.50', origin: 'environment' }, 'flag'],
    );
    assert.match(
      problems.map(({ message }) => message).join(),
      /TELOS_MAX_COST_PER_DAY is '-1', which is not a number, so nothing runs/,
    );
  });

  it('tells that a key is set and where, and never shows it', () => {
    folder.add({ '.config/telos/.env': 'OPENAI_API_KEY=secret-a\n' });
    const { env, origins } = load(
      { OLLAMA_BASE_URL: 'http://me:secret-b@h:1/v1?key=secret-c' },
      { variables: { ANTHROPIC_API_KEY: 'secret-d' } },
    );
    assert.equal(env['OPENAI_API_KEY'], 'secret-a');
    assert.deepEqual(
      [origins['OPENAI_API_KEY']?.origin, origins['ANTHROPIC_API_KEY']?.origin],
      ['.env', 'setting'],
    );
    assert.equal(origins['OLLAMA_BASE_URL']?.value, 'http://h:1/v1');
    assert.doesNotMatch(JSON.stringify(origins), /secret/);
  });

  it('says that .env cannot be read, and goes on', () => {
    folder.add({ '.config/telos/.env/x': 'a folder' });
    assert.match(load().problems[0]?.message ?? '', /\.env could not be read/);
  });

  it('reads whether commands run in a box, the strongest source first, and wants one for a word that it does not know', () => {
    assert.deepEqual([load({}).sandbox, load({}).origins['sandbox']?.origin], ['auto', 'default']);
    const set = load({ TELOS_SANDBOX: 'off' });
    assert.deepEqual([set.sandbox, set.origins['sandbox']?.origin], ['off', 'environment']);
    const both = load({ TELOS_SANDBOX: 'off' }, { sandbox: 'required', overridesAre: 'setting' });
    assert.deepEqual([both.sandbox, both.origins['sandbox']?.origin], ['required', 'setting']);
    const unknown = load({ TELOS_SANDBOX: 'yes' });
    assert.equal(unknown.sandbox, 'required');
    assert.match(
      unknown.problems.map(({ message }) => message).join(),
      /'yes' is unknown, so required is used\. Known modes: auto, required, off/,
    );
  });

  it('takes the protocol and how much each model thinks, and says what it does not know', () => {
    assert.deepEqual([load({}).protocol, load({ TELOS_PROTOCOL: 'chat' }).protocol], ['auto', 'chat']);
    const set = load({ TELOS_EFFORT: 'gpt-5.4=low, qwen3:8b = 8_000, *=high' });
    assert.deepEqual(
      ['gpt-5.4', 'qwen3:8b', 'constructor', 'o3'].map(model => effortFor(set, model)),
      ['low', 8_000, 'high', 'high'],
    );
    assert.equal(effortFor(load({ TELOS_EFFORT: 'm=low' }), 'constructor'), undefined);
    assert.equal(effortFor(load({ TELOS_EFFORT: 'm=low' }, { effort: 'MAX' }), 'm'), 'max');
    const odd = load({ TELOS_PROTOCOL: 'grpc', TELOS_EFFORT: 'much, m=7, high' });
    assert.equal(odd.protocol, 'auto');
    assert.equal(effortFor(odd, 'm'), 'high');
    const said = odd.problems.map(({ message }) => message).join('\n');
    assert.match(
      said,
      /protocol 'grpc' is unknown.*\n.*effort 'much' is unknown.*from 1024 to 64000.*\n.*effort 'm=7'/,
    );
  });
});

describe('expandPath', () => {
  it('knows the home folder, absolute and relative paths', () => {
    assert.deepEqual(
      ['~', '~/a', '/b', '.', 'c'].map(path => expandPath(path, '/home', '/call')),
      ['/home', '/home/a', '/b', '/call', '/call/c'],
    );
  });
});
