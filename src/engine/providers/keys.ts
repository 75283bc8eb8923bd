/** Checks the key of a provider by asking its server, and keeps it in the `.env` of the config folder. */

import { join } from 'node:path';
import { sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { reasonOf, TelosError } from '../core/errors.ts';
import { writeWhole } from '../files/atomicWrite.ts';
import { loadText } from '../files/regularFile.ts';
import { keyedProviders, type ProviderName, providerAddress, providerSetups } from './create.ts';
import { type Ping, pingProvider } from './models.ts';

/** Returns the provider whose key is meant: by its name in any case, or by its variable. Undefined if none is. */
export const keyedProvider = (name: string): (typeof keyedProviders)[number] | undefined =>
  keyedProviders.find(one => [one.name, one.keyVariable.toLowerCase()].includes(name.trim().toLowerCase()));

/** Asks the provider's server with the key. Throws the abort reason on abort. */
export async function checkKey(
  config: Config,
  name: Exclude<ProviderName, 'replay'>,
  key: string,
  signal: AbortSignal,
): Promise<Ping> {
  const { keyVariable, model } = providerSetups[name];
  const env = { ...config.env, ...(keyVariable && { [keyVariable]: key }) };
  const baseUrl = providerAddress(config, name);
  const choice = { name, model, why: '', recording: false, baseUrl };
  const ping = await pingProvider({ env }, choice, signal);
  return ping ?? { ok: false, problem: `${name} cannot be asked.` };
}

/** Sets variables in the `.env` of the config folder, and leaves its other lines as they are. Returns the path of the file. */
export async function keepInEnvFile(
  { configDir }: Pick<Config, 'configDir'>,
  variables: Readonly<Record<string, string>>,
): Promise<string> {
  const file = join(configDir, '.env');
  const before = await loadText(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw new TelosError('config', [
      sentence('{0} could not be read ({1}), so nothing was kept.', file, reasonOf(error)),
    ]);
  });
  const lines = before === '' ? [] : before.replace(/\r?\n$/, '').split('\n');
  for (const [name, value] of Object.entries(variables)) {
    const names = (line: string): boolean =>
      new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`).test(line.replace(/^\uFEFF/, ''));
    // The last of equal names wins.
    const at = lines.findLastIndex(names);
    if (at < 0) lines.push(`${name}=${value}`);
    else lines[at] = `${name}=${value}`;
  }
  await writeWhole(file, `${lines.join('\n')}\n`);
  return file;
}
