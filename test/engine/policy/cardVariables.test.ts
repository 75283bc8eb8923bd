/** Variables that only texts and scripts name: on the card, given to commands once it is accepted, each to switch off. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { ReviewedAgent } from '../../../src/engine/policy/agentFiles.ts';
import { type PolicyContext, runPolicy } from '../../../src/engine/policy/decision.ts';
import { grantedVariables } from '../../../src/engine/policy/grants.ts';
import { commandEnvironment } from '../../../src/engine/tools/command.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('variables that a skill names without declaring them', () => {
  let folder: TempFolder;
  let agent: ReviewedAgent;
  let context: PolicyContext;
  const at = (path: string): string => join(folder.path, path);
  const env = {
    WORK_ROOT: '/w',
    OUT_DIR: '/o',
    NOTES_HOME: '/n',
    WEATHER_API_KEY: 'k',
    DECLARED_KEY: 'd',
    OTHER_DIR: '/x',
  };
  beforeEach(() => {
    folder = tempFolder({
      'pack/SKILL.md':
        '---\ndescription: d\nmetadata: {"openclaw": {"requires": {"env": ["DECLARED_KEY"]}}}\n---\n' +
        'First check `WORK_ROOT`. Then `curl -H "$WEATHER_API_KEY"`, `$SSH_AUTH_SOCK`, `LD_PRELOAD`, `DATABASE_URL`.\n' +
        '```bash\nexport OUT_DIR=~/out\nMY_FILE=a\ncat "$MY_FILE"\n```\n',
      'pack/go.py': "import os\nhome = os.environ.get('NOTES_HOME')\nos.getenv('GIT_SSH_COMMAND')\n",
      'pack/go.sh': '#!/bin/sh\nSCRIPT_DIR=.\necho "$SCRIPT_DIR"\n',
    });
    const skill = { dir: at('pack'), file: at('pack/SKILL.md') };
    agent = { name: 'a', packDir: at('pack'), workingDir: at('work'), source: 'user', skills: [skill] };
    const folders = {
      workingDir: at('work'),
      packDir: at('pack'),
      skillDir: at('pack'),
      commandDir: at('pack'),
    };
    context = runPolicy(
      { configDir: at('config'), dataDir: at('data'), home: at('home'), env },
      agent,
      folders,
    );
  });
  afterEach(() => folder.remove());
  const accept = async (without?: readonly string[]): Promise<void> => {
    const reviews = context.reviews!;
    await reviews.accept(agent, await reviews.cardOf(agent), new Date(), without);
  };

  it('are lines of the card; keys and what opens or loads something are not', async () => {
    const { variables } = await context.reviews!.cardOf(agent);
    assert.deepEqual(variables, ['DECLARED_KEY', 'NOTES_HOME', 'OUT_DIR', 'WORK_ROOT']);
  });

  it('reach commands once the card is accepted, but for those that were switched off', async () => {
    assert.deepEqual(await grantedVariables(context), {});
    await accept();
    const all = { DECLARED_KEY: 'd', NOTES_HOME: '/n', OUT_DIR: '/o', WORK_ROOT: '/w' };
    assert.deepEqual(await grantedVariables(context), all);
    await accept(['WORK_ROOT', 'DECLARED_KEY']);
    assert.deepEqual(await grantedVariables(context), { NOTES_HOME: '/n', OUT_DIR: '/o' });
  });
});

describe('the environment of a command', () => {
  it('has the places of the user and the proxy, and no proxy with a password', () => {
    const given = {
      https_proxy: 'http://proxy:3128',
      NO_PROXY: 'localhost',
      VIRTUAL_ENV: '/v',
      JAVA_HOME: '/j',
      ...{
        NVM_DIR: '/n',
        XDG_CONFIG_HOME: '/c',
        HTTP_PROXY: 'http://me:word@proxy',
        SSH_AUTH_SOCK: '/s',
        X_KEY: 'k',
      },
    };
    const { https_proxy, NO_PROXY, VIRTUAL_ENV, JAVA_HOME, NVM_DIR, XDG_CONFIG_HOME, ...rest } =
      commandEnvironment(given, { packDir: '/p', skillDir: '/p' });
    assert.deepEqual(
      [https_proxy, NO_PROXY, VIRTUAL_ENV, JAVA_HOME, NVM_DIR, XDG_CONFIG_HOME],
      ['http://proxy:3128', 'localhost', '/v', '/j', '/n', '/c'],
    );
    for (const name of ['HTTP_PROXY', 'SSH_AUTH_SOCK', 'X_KEY']) assert.ok(!(name in rest), name);
  });
});
