/** Reads what a provider's own list says of its models, keeps it in the data folder, and has a run keep to it. */
import { join } from 'node:path';
import type { CompletionRequest, MediaKind, Provider } from '../core/ports.ts';
import { writeOwn } from '../files/atomicWrite.ts';
import { loadText } from '../files/regularFile.ts';
import { listedEffort, thinkingTokens } from './effort.ts';

/** What a provider's list says of one model, as it is kept. */
export interface Listed {
  id: string;
  created?: number;
  window?: number;
  /** Tokens that an answer may have. */
  output?: number;
  efforts?: string[];
  thinkingOff?: CompletionRequest['thinkingOff'];
  media?: MediaKind[];
  retires?: string;
  price?: ListedPrice;
}

/** What a model costs in US dollars per million tokens, and the length of a prompt above which it costs more. */
export interface ListedPrice {
  input: number;
  output: number;
  above?: number;
}

/** Whose list it is: what one server says of a name says nothing of the models of another. */
export interface ListSource {
  dataDir: string;
  /** Of the provider. */
  name: string;
  address: string;
  /** True for a server that has any models, named as it likes. */
  isOther: boolean;
}

/** Upper bounds of a list: models that are kept, and characters that are read. A gateway may have hundreds. */
const mostModels = 1_000;
const mostCharacters = 8_000_000;
const longestId = 200;
/** More than any model takes. */
const mostTokens = 1e8;

/** Keeps what a provider's server has answered when it was asked for its models. Never throws. */
export async function keepList(source: ListSource, text: string): Promise<void> {
  try {
    await keep(source, listIn(source, text));
  } catch {
    // The answer is not a list.
  }
}

/** Never rejects. An empty list is not kept. */
export async function keep(source: ListSource, models: readonly Listed[]): Promise<void> {
  const { address } = source;
  if (models.length > 0)
    await writeOwn(fileOf(source), JSON.stringify({ address, at: Date.now(), models })).catch(() => false);
}

const fileOf = ({ dataDir, name }: ListSource): string => join(dataDir, 'models', `${name}.json`);

/**
 * Returns the provider, which keeps to what its maker's list has said of the model: tokens that it takes and writes, files, efforts. The
 * same one if nothing is kept of it. No server is asked.
 */
export async function asListed(source: ListSource, provider: Provider): Promise<Provider> {
  const { model } = provider;
  const facts = factsIn((await readKept(source))?.models, model);
  if (!facts) return provider;
  const { window, output, efforts, media, thinkingOff } = facts;
  return {
    ...provider,
    ...(window !== undefined && { contextWindow: window }),
    ...(media && { media: async () => media }),
    streamCompletion: (request, signal) =>
      provider.streamCompletion(
        { ...request, ...lengthOf(request, output, efforts ?? []), ...(thinkingOff && { thinkingOff }) },
        signal,
      ),
  };
}

/** Tokens that stay for the words of an answer, and the fewest that a budget for thinking may have. */
const forWords = 4_096;
const leastBudget = 1_024;

/** Returns how much a request may think and say, of `output` tokens together. */
function lengthOf(
  { effort: wanted, maxTokens }: CompletionRequest,
  output = Number.POSITIVE_INFINITY,
  efforts: readonly string[],
): Pick<CompletionRequest, 'effort' | 'maxTokens'> {
  if (wanted === undefined) return { maxTokens: Math.min(maxTokens, output) };
  const effort = listedEffort(wanted, efforts);
  const room = output - thinkingTokens(effort);
  if (room >= Math.min(maxTokens, forWords)) return { effort, maxTokens: Math.min(maxTokens, room) };
  const budget = Math.max(leastBudget, output - forWords);
  return { effort: budget, maxTokens: output - budget };
}

/** Returns the name of a model without the date at its end. */
export const undated = (id: string): string => id.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, '');

/** Days on which models end whose providers' lists do not say it. */
const retiring: Readonly<Record<string, string>> = {
  'claude-sonnet-4-5': '2026-11-30',
  'gemini-2.5-pro': '2026-12-01',
  'gemini-2.5-flash': '2026-12-01',
  'gpt-5': '2026-12-11',
  o3: '2026-12-11',
  'gpt-4o': '2027-01-14',
  'gpt-4.1': '2027-01-14',
};

/** Returns the day from which a model answers no more, if no list has to be asked to know it. */
export const knownEnd = (model: string): string | undefined => retiring[undated(model)];

/** Returns the day from which a model answers no more, as its provider has said, or as is known. Undefined if none is. */
export async function endOf(source: ListSource, model: string): Promise<string | undefined> {
  const kept = await readKept(source);
  return factsIn(kept?.models, model)?.retires ?? (source.isOther ? undefined : knownEnd(model));
}

/** Returns what is listed of a model, which may be named without its date. */
const factsIn = (listed: readonly Listed[] | undefined, model: string): Listed | undefined =>
  listed?.find(({ id }) => id === model) ??
  listed?.find(({ id }) => id !== undated(id) && undated(id) === model);

/** Returns what was kept of the server at this address, and when. Undefined if nothing was that can be used. */
export async function readKept(source: ListSource): Promise<{ at: number; models: Listed[] } | undefined> {
  try {
    const text = await loadText(fileOf(source));
    const kept = JSON.parse(text) as { address?: unknown; at?: unknown; models?: Listed[] };
    const isUsable =
      kept.address === source.address &&
      typeof kept.at === 'number' &&
      Array.isArray(kept.models) &&
      kept.models.every(one => typeof one?.id === 'string');
    return isUsable ? { at: kept.at as number, models: kept.models! } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the models of a list that hold conversations, the newest first. Throws if the text is not a list, or is too long. */
export function listIn({ name, isOther }: Omit<ListSource, 'dataDir'>, text: string): Listed[] {
  if (text.length > mostCharacters) throw new Error('too long');
  const { data } = JSON.parse(text) as { data?: unknown };
  const entries = (Array.isArray(data) ? data : []).flatMap(entry => listedIn(entry));
  const own = isOther ? entries : entries.filter(isForWords(name));
  const byId = new Map(own.map(one => [one.id, one]));
  return [...byId.values()]
    .sort((one, other) => (other.created ?? 0) - (one.created ?? 0))
    .slice(0, mostModels);
}

/** The lists of these makers have models for sound, pictures and vectors too, without saying which. */
const isForWords =
  (name: string) =>
  ({ id }: Listed): boolean => {
    if (/embed|image|imagen|audio|realtime|tts|transcribe|whisper|moderation|veo|live|instruct/.test(id))
      return name !== 'openai' && name !== 'gemini';
    if (name === 'openai') return /^(?:gpt-|o\d|chatgpt-|codex-)/.test(id);
    return name !== 'gemini' || id.startsWith('gemini-');
  };

/** Reads what is there of one entry, in the words of Anthropic, OpenAI, OpenRouter and servers that people run themselves. */
function listedIn(entry: unknown): Listed[] {
  const one = (entry ?? {}) as Record<string, unknown>;
  const id = one['id'];
  if (typeof id !== 'string' || id.length > longestId || one['lifecycle'] === 'retired') return [];
  const ends = one['retires_at'] ?? one['shutdown_date'] ?? one['expiration_date'];
  const created =
    typeof one['created'] === 'number' ? one['created'] : Date.parse(String(one['created_at'])) / 1000;
  const top = (one['top_provider'] ?? {}) as Record<string, unknown>;
  const window = tokensIn(
    ...[one['max_input_tokens'], one['context_length'], one['context_window'], one['max_model_len']],
  );
  const output = tokensIn(one['max_tokens'], one['max_completion_tokens'], top['max_completion_tokens']);
  const thinkingOff = thinkingOffIn(one['capabilities']);
  const efforts = effortsIn(one['capabilities'], thinkingOff !== undefined);
  const media = mediaIn(one['capabilities'], one['architecture']);
  const price = priceIn(one['pricing']);
  return [
    {
      id: id.replace(/^models\//, ''),
      ...(Number.isFinite(created) && { created }),
      ...(window && { window }),
      ...(output && { output }),
      ...(efforts && { efforts }),
      ...(thinkingOff && { thinkingOff }),
      ...(media && { media }),
      ...(typeof ends === 'string' && /^\d{4}-\d{2}-\d{2}/.test(ends) && { retires: ends.slice(0, 10) }),
      ...(price && { price }),
    },
  ];
}

/** Returns the first that is a number of tokens: a list that says nonsense says nothing. */
const tokensIn = (...said: readonly unknown[]): number | undefined =>
  said.find(
    (one): one is number => Number.isInteger(one) && Number(one) >= 2_048 && Number(one) <= mostTokens,
  );

type Support = { supported?: unknown } | null;

function effortsIn(capabilities: unknown, canStop: boolean): string[] | undefined {
  const { effort } = (capabilities ?? {}) as { effort?: Record<string, Support> };
  if (typeof effort !== 'object' || effort === null) return undefined;
  const levels = ['low', 'medium', 'high', 'xhigh', 'max'].filter(level => effort[level]?.supported === true);
  return levels.length > 0 && canStop ? ['off', ...levels] : levels;
}

function thinkingOffIn(capabilities: unknown): Listed['thinkingOff'] {
  const { thinking } = (capabilities ?? {}) as { thinking?: { types?: Record<string, Support> } };
  return (['disabled', 'between_tools'] as const).find(type => thinking?.types?.[type]?.supported === true);
}

function mediaIn(capabilities: unknown, architecture: unknown): MediaKind[] | undefined {
  const { image_input: image, pdf_input: pdf } = (capabilities ?? {}) as Record<string, Support>;
  const { input_modalities: inputs } = (architecture ?? {}) as { input_modalities?: unknown };
  if (!image && !pdf && !Array.isArray(inputs)) return undefined;
  const takes = (said: Support | undefined, word: string): boolean =>
    said?.supported === true || (Array.isArray(inputs) && inputs.includes(word));
  return [
    ...(takes(image, 'image') ? (['image'] as const) : []),
    ...(takes(pdf, 'file') ? (['document'] as const) : []),
  ];
}

/** Of OpenRouter, in dollars for one token as text. A price below 0 means that it depends. */
function priceIn(pricing: unknown): ListedPrice | undefined {
  const { prompt, completion } = (pricing ?? {}) as { prompt?: unknown; completion?: unknown };
  const [input, output] = [prompt, completion].map(one =>
    typeof one === 'string' && one !== '' ? Math.round(Number(one) * 1e10) / 1e4 : Number.NaN,
  );
  return input! >= 0 && output! >= 0 ? { input: input!, output: output! } : undefined;
}
