/** The manifest of Agent Plugins as a host has to read it: each test is a line of the appendix of its specification. */
import { equal, match, rejects } from 'node:assert/strict';
import { findPacks } from '../../../src/packs/sources/findPacks.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const schema = (version: string): string => `https://agent-plugins.org/schemas/${version}/plugin.schema.json`;
const skill = '---\nname: s\ndescription: D\n---\nB\n';

describe('a plugin of agent-plugins.org', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({ 'skills/s/SKILL.md': skill });
  });
  afterEach(() => folder.remove());
  const look = (manifest: unknown) => {
    folder.add({ 'plugin.json': typeof manifest === 'string' ? manifest : JSON.stringify(manifest) });
    return findPacks(folder.path, '', 'usual');
  };
  const plugin = (more: object = {}) => look({ $schema: schema('1.0.0'), name: 'acme.tools', ...more });
  const refused = (found: Promise<unknown>, says: RegExp) =>
    rejects(found, error => {
      match(String(error), says);
      match(String(error), /Nothing was installed\.$/);
      return true;
    });

  it('Parse and validate plugin.json', async () => {
    const whole = {
      version: 'not semver',
      description: 'Does it',
      author: { name: 'A', email: 'none', url: 'none' },
      homepage: 'none',
      repository: 'none',
      license: 'mine',
      keywords: ['a'],
    };
    const { way, candidates } = await plugin(whole);
    equal(way, 'plugin.json');
    equal(JSON.stringify(candidates), '[{"name":"acme.tools","description":"Does it","path":""}]');
    await refused(look(`{"$schema": "${schema('1.0.0')}",`), /plugin\.json is not JSON/);
    for (const [field, value] of Object.entries({
      version: 1,
      description: null,
      homepage: [],
      repository: {},
      license: false,
      keywords: ['a', 1],
      author: { name: 'A', age: 'B' },
    }))
      await refused(plugin({ [field]: value }), new RegExp(`In plugin\\.json, '${field}' `));
    await refused(plugin({ keywords: 'a' }), /'keywords' is not a list of texts/);
    await refused(plugin({ author: { name: 1 } }), /'author' may hold name, email and url/);
    await refused(plugin({ author: 'A' }), /'author' may hold/);
  });

  it('Validate required $schema and name fields', async () => {
    await refused(look({ $schema: schema('1.0.0') }), /'name' has to be/);
    for (const version of ['2.0.0', '1.0', '1.0.0/x'])
      await refused(look({ $schema: schema(version), name: 'a' }), /which this Telos does not know/);
    await refused(look({ $schema: 'https://evil.agent-plugins.org/x.json', name: 'a' }), /does not know/);
    equal(
      (await look({ $schema: schema('1.1.0'), name: 'a', displayName: 'A', icon: './a.png' })).way,
      'plugin.json',
    );
    await refused(look({ $schema: schema('1.1.0'), name: 'a', icon: 1 }), /'icon' is not text/);
  });

  it('Validate plugin name against naming constraints', async () => {
    for (const name of [
      '',
      'My-Plugin',
      '-start',
      'end.',
      'has--double',
      'too..many',
      'a b',
      'a'.repeat(65),
      1,
      null,
    ])
      await refused(plugin({ name }), /'name' has to be 1 to 64/);
    for (const name of ['a', 'lint3r', 'acme.tools', 'my-plugin', 'a'.repeat(64)])
      equal((await plugin({ name })).candidates[0]?.name, name);
  });

  it('Report and ignore unknown plugin.json fields', async () => {
    const { way, candidates } = await plugin({ hooks: { a: 1 }, displayName: 'A', constructor: 1 });
    equal(candidates[0]?.name, 'acme.tools');
    for (const name of ['hooks', 'displayName', 'constructor'])
      match(way, new RegExp(`'${name}' is not a field of Agent Plugins 1\\.0\\.0`));
    match((await plugin({ extensions: [] })).way, /'extensions' is not an object/);
  });

  it('Ignore unimplemented namespaces in extensions without validating the contents of their values', async () => {
    equal((await plugin({ extensions: { 'com.example.client': 7 } })).way, 'plugin.json');
  });
});
