/**
 * Keeps Ollama from cutting a prompt silently. Its OpenAI-compatible endpoint takes no context length with a request: what is longer
 * than the model's context, often 4,096 tokens, is dropped without a word. So its own API is asked how much a model
 * holds, and where that is too little a variant of the model with room enough is made; it shares the model's data on disk.
 */
import { TelosError } from '../errors.ts';

interface SizedRequest {
  model: string;
  max_tokens?: number | null;
}

/** A token is rarely shorter than this many characters of a request, in English, German or JSON. */
const charactersPerToken = 3;
/** What a model makes of an image, however large its file, in tokens; models with eyes take from 256 to about so many. */
const tokensPerImage = 3_000;
/** Room that the answer gets beside the prompt, in tokens. */
const answerRoom = 4_096;
const smallestVariant = 16_384;

export class OllamaContext {
  readonly #api: string;
  readonly #model: string;
  /** What the model holds as it is set up, in tokens; undefined when this server cannot tell. */
  #usual: Promise<number | undefined> | undefined;
  readonly #variants = new Map<number, Promise<string>>();

  /** `baseUrl` ends in /v1; Ollama's own API lies beside that. */
  constructor(baseUrl: string, model: string) {
    this.#api = baseUrl.replace(/\/v1$/, '/api');
    this.#model = model;
  }

  /**
   * The request with a model that holds all of it. Throws TelosError `provider` when there is none. A server that does not speak
   * Ollama's own API gets the request as it is.
   */
  async fit<Request extends SizedRequest>(request: Request, signal: AbortSignal): Promise<Request> {
    this.#usual ??= this.#contextInUse(signal);
    const usual = await this.#usual.catch(error => {
      this.#usual = undefined; // an abort or a lost connection is no answer
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
      const message = `This request needs about ${needed} tokens, and ${this.#model} runs in Ollama with ${usual}, so that Ollama would cut it (${reason}). Start Ollama with OLLAMA_CONTEXT_LENGTH=${size}, or choose another model.`;
      throw new TelosError('config', message, { cause: error });
    }
  }

  /** Loads the model, as the request itself would, and looks how much it was given. */
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

  /** `size` is what is wanted, and `needed` the least that will do; both in tokens. */
  async #makeVariant(size: number, needed: number, signal: AbortSignal): Promise<string> {
    const shown = (await this.#call('POST', '/show', { model: this.#model }, signal)) as
      | { model_info?: Record<string, unknown> }
      | undefined;
    const most = Object.entries(shown?.model_info ?? {}).find(([name]) =>
      name.endsWith('.context_length'),
    )?.[1];
    if (typeof most === 'number' && needed > most) throw new Error(`the model holds at most ${most} tokens`);
    const room = typeof most === 'number' ? Math.min(size, most) : size;
    const [name, tag] = this.#model.split(/:(?=[^/]*$)/);
    const variant = `${name}:${tag && tag !== 'latest' ? `${tag}-` : ''}telos-${Math.floor(room / 1024)}k`;
    const body = { model: variant, from: this.#model, parameters: { num_ctx: room }, stream: false };
    if (!(await this.#call('POST', '/create', body, signal)))
      throw new Error('no variant of it could be made');
    return variant;
  }

  /** The parsed answer; undefined when the server does not know the question, or answers it with an error. */
  async #call(
    method: string,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<object | undefined> {
    const response = await fetch(this.#api + path, {
      method,
      signal,
      ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
    });
    const text = await response.text();
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
