/** Knows how many tokens a model takes. */
import type { Config } from '../config.ts';
import type { Provider } from '../core/ports.ts';

/** Tokens that models take at least, by how their names begin. Above the first number, the whole prompt costs more: the second is taken on request. */
type Row = readonly [names: RegExp, tokens: number, whole?: number];

const gpt = (prefix: string): readonly Row[] => [
  [new RegExp(`^${prefix}gpt-4\\.1`), 1_000_000],
  [new RegExp(`^${prefix}gpt-5\\.4-(?:mini|nano)`), 272_000],
  [new RegExp(`^${prefix}gpt-(?:5\\.(?:[4-9]|\\d\\d)|[6-9]|\\d\\d)`), 272_000, 1_050_000],
  [new RegExp(`^${prefix}gpt-5`), 272_000],
  [new RegExp(`^${prefix}o[134](?:-|$)`), 200_000],
  [new RegExp(`^${prefix}gpt-4(?:o|-turbo)`), 128_000],
];

const windows: Readonly<Record<string, readonly Row[]>> = {
  anthropic: [
    [/^claude-[a-z]+-(?:[5-9]|\d\d)(?:-|$)/, 1_000_000],
    [/^claude-/, 200_000],
  ],
  openai: gpt(''),
  azure: gpt(''),
  bedrock: [
    [/anthropic\.claude-[a-z]+-(?:[5-9]|\d\d)(?:-|$)/, 1_000_000],
    [/anthropic\.claude-/, 200_000],
  ],
  vertex: [
    [/^claude-[a-z]+-(?:[5-9]|\d\d)(?:[-@]|$)/, 1_000_000],
    [/^claude-/, 200_000],
    [/^gemini-/, 1_000_000],
  ],
  gemini: [[/^gemini-/, 1_000_000]],
  openrouter: [
    [/^anthropic\/claude-[a-z]+-(?:[5-9]|\d\d)(?:[-.:]|$)/, 1_000_000],
    [/^anthropic\/claude-/, 200_000],
    [/^google\/gemini-/, 1_000_000],
    ...gpt('openai/'),
  ],
};

type Named = Pick<Provider, 'name' | 'model' | 'contextWindow'>;

const rowOf = ({ name, model }: Named): Row | undefined =>
  windows[name]?.find(([names]) => names.test(model));

/**
 * Returns the tokens that the model takes, prompt and answer: as the person has set it, as is known of it, or more if the provider says
 * so. Undefined for any other model; a prompt that is too long is then noticed when the server refuses it.
 */
export function windowOf(
  { contextWindow }: Pick<Config, 'contextWindow'>,
  provider: Named,
): number | undefined {
  if (typeof contextWindow === 'number') return contextWindow;
  const [, tokens, whole] = rowOf(provider) ?? [];
  if (contextWindow !== 'full' && whole !== undefined) return tokens;
  const most = Math.max(tokens ?? 0, whole ?? 0, provider.contextWindow ?? 0);
  return most === 0 ? undefined : most;
}

/** Returns all tokens that the model takes, if it is sent fewer only since a longer prompt costs more. */
export function wholeWindowOf(provider: Named, window: number | undefined): number | undefined {
  const [, tokens, whole] = rowOf(provider) ?? [];
  return tokens === window ? whole : undefined;
}
