/** Asks a provider whether it is there and takes the key, by its list of models, which costs nothing. */
import type { Config } from '../config.ts';
import { addressProblem, type ProviderChoice, providerSetups } from './create.ts';

export type Ping =
  /** `models` is empty where the server has no such list. */
  { ok: true; milliseconds: number; models: readonly string[] } | { ok: false; problem: string };

/** Milliseconds. */
const patienceMs = 10_000;

/** Undefined where there is nothing to ask: a recording, or a provider that the frontend brought. Throws the abort reason on abort. */
export async function pingProvider(
  { env }: Pick<Config, 'env'>,
  choice: ProviderChoice,
  signal: AbortSignal,
): Promise<Ping | undefined> {
  const { name, baseUrl } = choice;
  if (baseUrl === undefined || choice.broughtBy || !isKnown(name)) return undefined;
  const problem = addressProblem(baseUrl, name);
  if (problem) return { ok: false, problem };
  const { keyVariable, baseUrlVariable } = providerSetups[name];
  const key = keyVariable ? (env[keyVariable] ?? '') : '';
  const started = performance.now();
  try {
    const response = await fetch(
      name === 'anthropic' ? `${baseUrl}/v1/models?limit=1000` : `${baseUrl}/models`,
      {
        headers: headersFor(name, key),
        // A key goes to nobody but whom it is meant for.
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]),
      },
    );
    const text = await response.text();
    const { status } = response;
    if (status === 401 || status === 403)
      return {
        ok: false,
        problem: `${name} refuses the key (${status}). Check ${keyVariable ?? baseUrlVariable}.`,
      };
    // A gateway may well pass on messages alone; that it answers is all there is to know.
    if (!response.ok && status !== 404 && status !== 405)
      return {
        ok: false,
        problem: `${name} at ${baseUrl} answers with ${status}. Check ${baseUrlVariable}, or try again later.`,
      };
    return { ok: true, milliseconds: Math.round(performance.now() - started), models: modelsIn(text) };
  } catch (error) {
    signal.throwIfAborted();
    return {
      ok: false,
      problem: `${name} does not answer at ${baseUrl} (${reasonOf(error)}). Check the network, and ${baseUrlVariable}.`,
    };
  }
}

const isKnown = (name: string): name is keyof typeof providerSetups => Object.hasOwn(providerSetups, name);

function headersFor(name: string, key: string): Record<string, string> {
  if (name === 'anthropic')
    return { 'anthropic-version': '2023-06-01', ...(key ? { 'x-api-key': key } : {}) };
  return key ? { authorization: `Bearer ${key}` } : {};
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

function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return `not within ${patienceMs / 1000} s`;
  const { cause } = error as { cause?: { code?: unknown; message?: unknown } };
  return String(cause?.code ?? cause?.message ?? (error instanceof Error ? error.message : error));
}
