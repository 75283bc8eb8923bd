/** Knows how many tokens a model takes. */
import type { Config } from '../config.ts';
import type { Provider } from '../core/ports.ts';

/**
 * Tokens that the models of a provider take at least, by how their names begin. Where a larger context has to be asked for or costs
 * more, the usual one counts.
 */
const windows: Readonly<Record<string, readonly (readonly [RegExp, number])[]>> = {
  anthropic: [
    [/^claude-[a-z]+-(?:[5-9]|\d\d)(?:-|$)/, 1_000_000],
    [/^claude-/, 200_000],
  ],
  openai: [
    [/^gpt-4\.1/, 1_000_000],
    // Since 5.4 they take 1,050,000, at twice the price above this.
    [/^gpt-[5-9]/, 272_000],
    [/^o[134](?:-|$)/, 200_000],
    [/^gpt-4(?:o|-turbo)/, 128_000],
  ],
  gemini: [[/^gemini-/, 1_000_000]],
  openrouter: [
    [/^anthropic\/claude-[a-z]+-(?:[5-9]|\d\d)(?:[-.:]|$)/, 1_000_000],
    [/^anthropic\/claude-/, 200_000],
    [/^google\/gemini-/, 1_000_000],
  ],
};

/**
 * Returns the tokens that the model takes, prompt and answer: as the person has set it, as the provider says, or as is known of
 * it. Undefined for any other model; a prompt that is too long is then noticed when the server refuses it.
 */
export const windowOf = (
  { contextWindow }: Pick<Config, 'contextWindow'>,
  { name, model, contextWindow: own }: Pick<Provider, 'name' | 'model' | 'contextWindow'>,
): number | undefined => contextWindow ?? own ?? windows[name]?.find(([names]) => names.test(model))?.[1];
