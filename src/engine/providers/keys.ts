/** Asks whether a provider answers, checks a key so, and keeps it in the `.env` of the config folder. */

import { join } from 'node:path';
import { beginningOf, sentence, spoken } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { reasonOf, TelosError } from '../core/errors.ts';
import { writeWhole } from '../files/atomicWrite.ts';
import { loadText } from '../files/regularFile.ts';
import { answerText, fetchOut } from '../tools/fetchOut.ts';
import { certificateProblem, followProxies } from '../tools/wayOut.ts';
import { bedrockList } from './cloudPlaces.ts';
import {
  addressProblem,
  isKnown,
  keyedProviders,
  keyIn,
  listSource,
  type ProviderChoice,
  type ProviderKey,
  type ProviderName,
  providerAddress,
  providerSetups,
} from './create.ts';
import { isAboutKey, wordsOf } from './failures.ts';
import { keepList } from './listedModels.ts';
import type { SignInPlace } from './signInProgram.ts';

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
  const ping = await pingProvider({ ...config, env }, choice, signal);
  return ping ?? { ok: false, problem: `${name} cannot be asked.` };
}

/** Sets variables in the `.env` of the config folder, and leaves its other lines as they are. Returns the path of the file. */
export async function keepInEnvFile(
  { configDir }: Pick<Config, 'configDir'>,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const file = join(configDir, '.env');
  const before = await loadText(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw new TelosError('config', [
      sentence('{0} could not be read ({1}), so nothing was kept.', file, reasonOf(error)),
    ]);
  });
  let lines = before === '' ? [] : before.replace(/\r?\n$/, '').split('\n');
  for (const [name, value] of Object.entries(variables)) {
    const names = (line: string): boolean =>
      new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`).test(line.replace(/^\uFEFF/, ''));
    if (value === undefined) {
      lines = lines.filter(line => !names(line));
      continue;
    }
    // The last of equal names wins.
    const at = lines.findLastIndex(names);
    if (at < 0) lines.push(`${name}=${value}`);
    else lines[at] = `${name}=${value}`;
  }
  await writeWhole(file, `${lines.join('\n')}\n`);
  return file;
}

export type Ping =
  /** `models` is empty if the server has no such list. */
  | { ok: true; milliseconds: number; models: readonly string[] }
  | { ok: false; problem: string; isRefused?: true };

/** How long a server may take to answer a ping, in milliseconds. */
const pingTimeoutMs = 10_000;

/**
 * Returns the result of asking a provider's server, or undefined for a recording or a frontend provider, which have none. What it lists is
 * kept for the runs.
 * Throws the abort reason on abort.
 */
export async function pingProvider(
  config: SignInPlace & Pick<Config, 'dataDir' | 'home'>,
  choice: ProviderChoice,
  signal: AbortSignal,
): Promise<Ping | undefined> {
  const { env } = config;
  const { name, baseUrl } = choice;
  if (baseUrl === undefined || choice.broughtBy || !isKnown(name)) return undefined;
  const problem = addressProblem(baseUrl, name);
  if (problem) return { ok: false, problem: spoken(problem) };
  const { keyVariable, baseUrlVariable } = providerSetups[name];
  const started = performance.now();
  try {
    followProxies(env);
    const address = name === 'bedrock' ? bedrockList(env) : listAddress(name, baseUrl);
    const response = await fetchOut(address, {
      headers: await headersOf(config, name, address, signal),
      // A key is sent only to the server that it is meant for.
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(pingTimeoutMs)]),
    });
    const text = await answerText(response);
    const { status } = response;
    if (isAboutKey(status, text) || (status === 400 && name === 'gemini'))
      return {
        ok: false,
        problem: `${name} refused the key (${status}). Check ${keyVariable ?? baseUrlVariable}.`,
        isRefused: true,
      };
    if (status === 403)
      return {
        ok: false,
        problem: `${name} at ${baseUrl} refused the request (403): ${beginningOf(wordsOf(text), 300) || 'no reason given'}`,
      };
    // A gateway may pass on messages only. An answer is enough to know.
    if (!response.ok && status !== 404 && status !== 405)
      return {
        ok: false,
        problem: `${name} at ${baseUrl} answered with status ${status}. Check ${baseUrlVariable}, or try again later.`,
      };
    // A page, such as that of a sign-in to the network, is no answer of a model's server, whatever its status.
    if (/^[\s\ufeff]*<(?:!|html)/i.test(text) || (response.ok && !isJson(text)))
      return {
        ok: false,
        problem: `${name} at ${baseUrl} did not answer like a model's server (status ${status}). Check the network and ${baseUrlVariable}.`,
      };
    const milliseconds = Math.round(performance.now() - started);
    // These list what one could use, not what is.
    if (name === 'azure' || name === 'bedrock' || name === 'vertex')
      return { ok: true, milliseconds, models: [] };
    if (response.ok) await keepList(listSource(config, name), text);
    return { ok: true, milliseconds, models: modelsIn(text) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TelosError) return { ok: false, problem: error.message };
    const certificate = certificateProblem(new URL(baseUrl).host, error);
    if (certificate) return { ok: false, problem: spoken(certificate) };
    return {
      ok: false,
      problem: `${name} did not answer at ${baseUrl} (${silenceOf(error)}). Check the network and ${baseUrlVariable}.`,
    };
  }
}

/** Returns where a provider's models are listed. */
export function listAddress(name: string, baseUrl: string): string {
  if (name === 'vertex') return baseUrl;
  if (name === 'anthropic') return `${baseUrl}/v1/models?limit=1000`;
  return name === 'azure' ? `${baseUrl}/openai/models?api-version=2024-10-21` : `${baseUrl}/models`;
}

async function headersOf(
  config: SignInPlace & Pick<Config, 'home'>,
  name: Exclude<ProviderName, 'replay'>,
  address: string,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  if (name === 'vertex') return (await import('./vertex.ts')).vertexHeaders(config, signal);
  if (name !== 'bedrock') return headersFor(name, keyIn(config.env, name));
  const { bedrockHeaders } = await import('./bedrock.ts');
  return bedrockHeaders(config, { method: 'GET', url: new URL(address), body: '' }, signal);
}

/** Returns the headers with which a provider's lists are asked for. */
export function headersFor(name: string, { key, isToken }: ProviderKey): Record<string, string> {
  const version = name === 'anthropic' ? { 'anthropic-version': '2023-06-01' } : {};
  if (!key) return version;
  if (name === 'azure') return { 'api-key': key };
  return name === 'anthropic' && !isToken
    ? { ...version, 'x-api-key': key }
    : { ...version, authorization: `Bearer ${key}` };
}

function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'object';
  } catch {
    return false;
  }
}

function modelsIn(text: string): string[] {
  try {
    const { data } = JSON.parse(text) as { data?: unknown };
    if (!Array.isArray(data)) return [];
    return data.flatMap((entry: { id?: unknown } | null) =>
      typeof entry?.id === 'string' ? [entry.id] : [],
    );
  } catch {
    return [];
  }
}

function silenceOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return `not within ${pingTimeoutMs / 1000} s`;
  const { cause } = error as { cause?: { code?: unknown; message?: unknown } };
  return String(cause?.code ?? cause?.message ?? (error instanceof Error ? error.message : error));
}
