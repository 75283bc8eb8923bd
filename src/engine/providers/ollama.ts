/**
 * Asks Ollama's own API what its models can do, which of them a run takes where none is named, and how much each takes.
 *
 * It keeps Ollama from cutting a prompt silently: its OpenAI-compatible endpoint takes no context length with a request, and
 * drops whatever exceeds the model's context, often 4,096 tokens, without a message. So Ollama's own API is asked for the
 * context size. If that is too small, a variant of the model with enough room is made. It shares the model's data on disk.
 */
import { sentence } from '@telos/protocol/text';
import { PromptTooLong } from '../core/errors.ts';
import { answerText, fetchOut } from '../tools/fetchOut.ts';

interface SizedRequest {
  model: string;
  max_tokens?: number | null;
}

/** Lower estimate of a token's length in characters, for English, German or JSON. */
const charactersPerToken = 3;
/** Upper estimate of an image in tokens, whatever the size of its file. Models that read images use from 256 to about this. */
const tokensPerImage = 3_000;
/** Room for the answer in addition to the prompt, in tokens. */
const answerRoom = 4_096;
const smallestVariant = 16_384;

export class OllamaContext {
  readonly #api: string;
  readonly #model: string;
  /** Context of the model as it is set up, in tokens; undefined if this server does not report it. */
  #usual: Promise<number | undefined> | undefined;
  readonly #variants = new Map<number, Promise<string>>();

  /** `baseUrl` ends in `/v1`; Ollama's own API is at `/api` of the same server. */
  constructor(baseUrl: string, model: string) {
    this.#api = baseUrl.replace(/\/v1$/, '/api');
    this.#model = model;
  }

  /**
   * Returns the request with a model whose context holds all of it. Throws PromptTooLong if there is none. Returns
   * the request unchanged if the server does not speak Ollama's own API.
   */
  async fit<Request extends SizedRequest>(request: Request, signal: AbortSignal): Promise<Request> {
    this.#usual ??= this.#contextInUse(signal);
    const usual = await this.#usual.catch(error => {
      this.#usual = undefined; // an abort or a lost connection is not an answer
      throw error;
    });
    if (usual === undefined) return request;
    const prompt = promptTokens(request);
    const needed = prompt + Math.min(request.max_tokens ?? answerRoom, answerRoom);
    if (needed <= usual) return request;
    const size = Math.max(smallestVariant, 2 ** Math.ceil(Math.log2(needed)));
    const variant = this.#variants.get(size) ?? this.#makeVariant(size, needed, signal);
    this.#variants.set(size, variant);
    try {
      return { ...request, model: await variant };
    } catch (error) {
      this.#variants.delete(size);
      if (signal.aborted) throw signal.reason;
      const reason = error instanceof Error ? error.message : String(error);
      const why = [
        sentence('This request needs about {0} tokens.', needed),
        sentence('Ollama runs {0} with {1} and would cut the request ({2}).', this.#model, usual, reason),
        sentence('Start Ollama with OLLAMA_CONTEXT_LENGTH={0}, or choose another model.', size),
      ];
      throw new PromptTooLong('config', why, { cause: error });
    }
  }

  /** Loads the model, as the request itself would, and returns the size of its context in tokens. */
  async #contextInUse(signal: AbortSignal): Promise<number | undefined> {
    const loaded = await this.#call('POST', '/generate', { model: this.#model, stream: false }, signal);
    if (!loaded) return undefined;
    const running = (await this.#call('GET', '/ps', undefined, signal)) as
      | { models?: { name?: string; model?: string; context_length?: number }[] }
      | undefined;
    const names = [this.#model, `${this.#model}:latest`];
    const own = running?.models?.find(
      ({ name = '', model = '' }) => names.includes(name) || names.includes(model),
    );
    return own?.context_length || undefined;
  }

  /** Makes a variant and returns its name. `size` is the wanted context and `needed` the least that is enough, in tokens. */
  async #makeVariant(size: number, needed: number, signal: AbortSignal): Promise<string> {
    const shown = (await this.#call('POST', '/show', { model: this.#model }, signal)) as
      | { model_info?: Record<string, unknown> }
      | undefined;
    const most = Object.entries(shown?.model_info ?? {}).find(([name]) =>
      name.endsWith('.context_length'),
    )?.[1];
    if (typeof most === 'number' && needed > most) throw new Error(`the model takes at most ${most} tokens`);
    const room = typeof most === 'number' ? Math.min(size, most) : size;
    const [name, tag] = this.#model.split(/:(?=[^/]*$)/);
    const variant = `${name}:${tag && tag !== 'latest' ? `${tag}-` : ''}telos-${Math.floor(room / 1024)}k`;
    const body = { model: variant, from: this.#model, parameters: { num_ctx: room }, stream: false };
    if (!(await this.#call('POST', '/create', body, signal)))
      throw new Error('Ollama could not create a variant of it');
    return variant;
  }

  /** Returns the parsed answer, or undefined if the server answers with an error or with something that is not JSON. */
  async #call(
    method: string,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<object | undefined> {
    const response = await fetchOut(this.#api + path, {
      method,
      signal,
      ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
    });
    const text = await answerText(response);
    if (!response.ok) return undefined;
    try {
      const answer: unknown = JSON.parse(text);
      return typeof answer === 'object' && answer !== null ? answer : undefined;
    } catch {
      return undefined;
    }
  }
}

function promptTokens(request: SizedRequest): number {
  let images = 0;
  const text = JSON.stringify(request).replace(/"data:image\/[\w.+-]+;base64,[^"]*"/g, () => {
    images++;
    return '';
  });
  return Math.ceil(text.length / charactersPerToken) + images * tokensPerImage;
}

/** How long Ollama may take to answer one question, in milliseconds. */
const patienceMs = 2_000;
/** Models that are asked what they can do, the first first. */
const mostAsked = 20;

/**
 * Returns the first installed model that calls tools, in Ollama's order. Models that run elsewhere, and variants that Telos has made, are left
 * out. Undefined if there is none, or no Ollama. `baseUrl` ends in `/v1`.
 */
export async function firstWithTools(baseUrl: string): Promise<string | undefined> {
  const api = baseUrl.replace(/\/v1$/, '/api');
  const signal = AbortSignal.timeout(patienceMs);
  const { models } = (await answerOf(`${api}/tags`, undefined, signal)) ?? {};
  const names = (Array.isArray(models) ? models : [])
    .flatMap(one => (typeof one?.name === 'string' ? [one.name as string] : []))
    .filter(name => !/[:-]cloud$|[:-]telos-\d+k$/.test(name));
  for (const name of names.slice(0, mostAsked))
    if ((await ollamaCapabilities(api, name, signal))?.includes('tools')) return name;
  return undefined;
}

/** Returns what a model can do, such as `tools` and `vision`. Undefined if Ollama does not say. `api` ends in `/api`. */
export async function ollamaCapabilities(
  api: string,
  model: string,
  signal: AbortSignal,
): Promise<readonly unknown[] | undefined> {
  const { capabilities } = (await answerOf(`${api}/show`, { model }, signal)) ?? {};
  return Array.isArray(capabilities) ? capabilities : undefined;
}

/** Returns the answer, or undefined if there is none that is an object. */
async function answerOf(
  address: string,
  body: object | undefined,
  signal: AbortSignal,
): Promise<Record<string, unknown> | undefined> {
  try {
    const response = await fetchOut(address, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]),
      ...(body && {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
    const answer: unknown = JSON.parse(await answerText(response));
    return response.ok && typeof answer === 'object' && answer !== null ? { ...answer } : undefined;
  } catch {
    return undefined; // The request itself will say what is wrong.
  }
}
