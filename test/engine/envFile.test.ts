/** The `.env` of the config folder: what a line means, and which side wins. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { mergeEnvironment, parseEnvText, readEnvFile } from '../../src/engine/envFile.ts';
import { spoken } from '../../src/protocol/text.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

describe('parseEnvText', () => {
  const parsed = (text: string) => ({ ...parseEnvText(text) });

  it('takes values as they stand: equal signs, hashes and backslashes belong to them', () => {
    assert.deepEqual(parsed('E=a=b\nH=val#1 # note\nJ="a\\nb"\nS=\'x y\'\nI=""\n'), {
      E: 'a=b',
      H: 'val#1',
      J: 'a\\nb',
      S: 'x y',
      I: '',
    });
  });

  it('skips comments, blank lines and lines without a value; the last of equal names wins', () => {
    assert.deepEqual(parsed('\uFEFF# C=1\r\n\r\nN\r\n  export X = 2 \r\nD=1\nD=2\n=3\n'), { X: '2', D: '2' });
  });

  it('takes a name of the prototype for a name', () => {
    parseEnvText('__proto__=polluted');
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });
});

describe('readEnvFile', () => {
  it('says why a file that is there cannot be read, and nothing where there is none', () => {
    const folder = tempFolder({ '.env/x': 'a folder' });
    const file = join(folder.path, '.env');
    assert.match(spoken(readEnvFile(file).problem ?? []), /\.env could not be read/);
    assert.equal(readEnvFile(join(folder.path, 'absent/.env')).problem, undefined);
    folder.remove();
  });
});

describe('mergeEnvironment', () => {
  const merge = (text: string, environment: Record<string, string>) =>
    mergeEnvironment(environment, { file: '.env', variables: parseEnvText(text) });

  it('lets the process win for what is a setting of Telos, and the file for everything else', () => {
    const merged = merge('TELOS_MODEL=file\nANTHROPIC_API_KEY=file\nCLICKUP_TOKEN=file\n', {
      TELOS_MODEL: 'process',
      ANTHROPIC_API_KEY: '',
      CLICKUP_TOKEN: 'process',
      PATH: '/bin',
    });
    assert.deepEqual(merged, {
      TELOS_MODEL: 'process',
      ANTHROPIC_API_KEY: 'file',
      CLICKUP_TOKEN: 'file',
      PATH: '/bin',
    });
  });
});
