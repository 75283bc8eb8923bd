/** Says how much a model is to think, in the words of each model: levels for some, a budget of tokens for others. */

import { effortLevels } from '../core/limits.ts';
import type { CompletionRequest, Effort, EffortLevel } from '../core/ports.ts';

const budgets: Readonly<Record<EffortLevel, number>> = {
  off: 0,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
};

/** Returns the tokens for thinking. The limit of an answer counts them, so it is raised by as many. */
export const thinkingTokens = (effort: Effort): number =>
  typeof effort === 'number' ? effort : budgets[effort];

/** Returns the level that comes nearest to a budget. */
export function levelOf(effort: Effort): EffortLevel {
  if (typeof effort !== 'number') return effort;
  return effortLevels.find(level => level !== 'off' && effort <= budgets[level]) ?? 'max';
}

/** Returns a level that every model with levels knows. */
export const plainLevel = <Level extends EffortLevel>(
  level: Level,
): Exclude<Level, 'xhigh' | 'max'> | 'high' =>
  level === 'xhigh' || level === 'max' ? 'high' : (level as Exclude<Level, 'xhigh' | 'max'>);

/** Returns the version in the name of a model, as one number: 5.02 for `gpt-5.2`, 4.06 for `claude-opus-4-6`. Undefined if it has none. */
export function versionOf(model: string): number | undefined {
  const undated = model.replace(/[-@]?(?:\d{8}|\d{4}-\d{2}-\d{2})(?=\D|$)/g, '');
  const [, major, minor = '0'] = /(?:^|[-/])o?(\d{1,2})(?:[.-](\d{1,2}))?(?=\D|$)/.exec(undated) ?? [];
  return major === undefined ? undefined : Number(major) + Number(minor) / 100;
}

/** Returns the name without what a house puts before it: `anthropic/`, `global.anthropic.`. */
const nameOf = (model: string): string =>
  model
    .slice(model.lastIndexOf('/') + 1)
    .toLowerCase()
    .replace(/^(?:[\w-]+\.)?anthropic\./, '');

/** Returns true for a model of OpenAI that thinks: it takes an effort, and gives its reasoning to be sent back. */
export const isOpenaiReasoner = (model: string): boolean =>
  /^(?:o\d|codex-|gpt-(?:[5-9]|\d\d)|gpt-oss)/.test(nameOf(model)) && !/-chat(?:-|$)/.test(nameOf(model));

/** Returns the effort as OpenAI's model knows it: not every one takes the highest, or none at all. */
export function openaiEffort(effort: Effort, model: string): string {
  const level = levelOf(effort);
  const version = /^gpt-\d/.test(nameOf(model)) ? (versionOf(nameOf(model)) ?? 0) : 0;
  // These refuse to think not at all.
  if (level === 'off' && /^gpt-(?:6\.1-sol|6\.2-astra)(?:-|$)/.test(nameOf(model))) return 'low';
  if (level === 'off') return version >= 5.01 ? 'none' : version >= 5 ? 'minimal' : 'low';
  if (level === 'max' && version >= 5.06) return 'max';
  if (level === 'max' || level === 'xhigh') return version >= 5.02 ? 'xhigh' : 'high';
  return level;
}

/** Returns true for a model that is known to think, so that an effort can be set. */
function isThinker(provider: string, model: string): boolean {
  const isClaude = /^claude-/.test(nameOf(model)) && (versionOf(nameOf(model)) ?? 0) >= 3.07;
  return provider !== 'vscode' && (isOpenaiReasoner(model) || isGeminiThinker(model) || isClaude);
}

/** Returns the efforts that a model tells apart, by what is sent for each. None for a model that is not known to think. */
export function effortsOf(provider: string, model: string): EffortLevel[] {
  if (!isThinker(provider, model)) return [];
  const sent = (level: EffortLevel): string => {
    if (!/claude-/.test(model))
      return JSON.stringify(
        isGeminiThinker(model) ? geminiThinking(level, model) : openaiEffort(level, model),
      );
    const { effort, thinking } = anthropicThinking(level, model);
    return JSON.stringify(effort ?? thinking ?? '');
  };
  const told = new Map<string, EffortLevel>();
  for (const level of [...effortLevels.slice(1), 'off'] as const)
    if (!told.has(sent(level))) told.set(sent(level), level);
  const own = [...told.values()];
  return effortLevels.filter(level => own.includes(level));
}

/** Returns the effort that a model takes in place of the wanted one: itself, or the next one below that its provider lists. */
export function listedEffort(effort: Effort, listed: readonly string[]): Effort {
  const level = levelOf(effort);
  if (listed.length === 0 || listed.includes(level)) return effort;
  const below = effortLevels.slice(1, effortLevels.indexOf(level)).filter(one => listed.includes(one));
  return below.at(-1) ?? effortLevels.find(one => one !== 'off' && listed.includes(one)) ?? effort;
}

/** Returns true for a model of Gemini that thinks. A name without a version means the latest one. */
export const isGeminiThinker = (model: string): boolean =>
  /^gemini-/.test(nameOf(model)) && (versionOf(nameOf(model)) ?? 9) >= 2.05;

/** Returns the effort as Gemini's model knows it: a budget of tokens before version 3, then a level. */
export function geminiThinking(effort: Effort, model: string): object {
  const name = nameOf(model);
  const canStop = /flash/.test(name);
  if ((versionOf(name) ?? 9) < 3) {
    const tokens = Math.min(thinkingTokens(effort), 24_576);
    return { thinkingBudget: tokens === 0 && !canStop ? 128 : tokens };
  }
  const level = levelOf(effort);
  return {
    thinkingLevel: level === 'off' ? (canStop ? 'minimal' : 'low') : plainLevel(level),
  };
}

/** Returns true for a model of Anthropic that thinks by a budget of tokens. It takes its thoughts back after anything, and wants them. */
export const thinksByBudget = (model: string): boolean =>
  /claude-/.test(nameOf(model)) && (versionOf(nameOf(model)) ?? 9) < 4.06;

type AnthropicThinking =
  | { type: 'adaptive'; display: 'summarized' }
  | { type: 'between_tools' }
  | { type: 'disabled' }
  | { type: 'enabled'; budget_tokens: number };

/** Returns what sets the effort of Anthropic's model: since 4.6 it decides itself, below an effort; before, it takes a budget. */
export function anthropicThinking(
  effort: Effort,
  model: string,
  off?: CompletionRequest['thinkingOff'],
): { thinking?: AnthropicThinking; effort?: Exclude<EffortLevel, 'off'> } {
  const name = nameOf(model);
  const level = levelOf(effort);
  const version = /^claude-/.test(name) ? (versionOf(name) ?? 0) : 0;
  const isAdaptive = version >= 4.06;
  if (level === 'off') return off ? { thinking: { type: off } } : withoutThoughts(name, version);
  if (!isAdaptive) return { thinking: { type: 'enabled', budget_tokens: thinkingTokens(effort) } };
  const isPlain = level === 'max' ? /^claude-sonnet-4-6/.test(name) : version < 4.07;
  const most = isPlain ? plainLevel(level) : level;
  return { thinking: { type: 'adaptive', display: 'summarized' }, effort: most };
}

/** Returns what makes a model of Anthropic think as little as it can. Since version 5 it thinks unless it is told not to. */
function withoutThoughts(name: string, version: number): ReturnType<typeof anthropicThinking> {
  if (/^claude-(?:opus-5-5|fable-|mythos-)/.test(name)) return { effort: 'low' };
  if (version < 5) return {};
  return {
    thinking: { type: /^claude-sonnet-/.test(name) && version >= 5.05 ? 'between_tools' : 'disabled' },
  };
}
