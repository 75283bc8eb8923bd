/**
 * Says in the reader's language what the engine has written into the journal of a plan by itself. The journal keeps English texts, as
 * any program may read it, so they are known again here by their words. What a model or a person has written stays as it is.
 */
import { type Say, withValues } from './text.ts';

/** With `{0}`, `{1}` where a value is. A test holds them to what the engine writes. */
const sentences = (say: Say): string[] => [
  say('You paused it.', ...places),
  say('You stopped it.', ...places),
  say('It was interrupted.', ...places),
  say('It was stopped.', ...places),
  say('It is tried once more.', ...places),
  say('No story can start.', ...places),
  say('Only {0} was to run.', ...places),
  say('Everything up to {0} is done, as you wanted.', ...places),
  say('It was split into {0}.', ...places),
  say('A question waits.', ...places),
  say('{0} questions wait.', ...places),
  say('{0} changed nothing twice. Say what the story should do, skip it, or start it over.', ...places),
  say('{0} attempts did not pass.', ...places),
  say('{0} failed.', ...places),
  say('The budget of this plan is used up: {0}.', ...places),
  say('Add to it to go on with the same plan.', ...places),
  say('The provider {0} has no key.', ...places),
  say('{0} refused the key: {1}', ...places),
  say('{0} accepts no more requests for now: {1}', ...places),
  say('The spending limit at {0} is reached: {1}', ...places),
  say('{0} has an internal error ({1}): {2}', ...places),
  say('{0} refused the request ({1}): {2}', ...places),
  say('{0} cannot be reached at {1} ({2}).', ...places),
  say('Check the network and {0}.', ...places),
  say('The connection to {0} was lost in the middle of an answer.', ...places),
  say('The model did not answer within {0} seconds.', ...places),
  say('The model sent nothing for {0} seconds.', ...places),
  say('Send the request again.', ...places),
  say('Try again later.', ...places),
  say('It was interrupted before its work was saved.', ...places),
  say('Another runner has taken the plan.', ...places),
  say('Marks of the conflict are still in {0}.', ...places),
  say('It waits for your answer.', ...places),
  say('The coder took too long.', ...places),
  say('The coder was stopped.', ...places),
  say('The reviewer took too long.', ...places),
  say('The reviewer was stopped.', ...places),
  say('The reviewer neither approved nor denied the work.', ...places),
  say('The reviewer approved no criterion that is open.', ...places),
  say('its commit {0} is not on {1} any more', ...places),
  say('checked off in {0}', ...places),
  say('unchecked in {0}', ...places),
  say('{0} has new check boxes', ...places),
];

/** Values that are places themselves, so that a text keeps its own. */
const places = ['{0}', '{1}', '{2}'] as const;
const inEnglish: Say = text => text;

/** A longer text is a model's or a program's. In characters. */
const longest = 2_000;

/** Ids, numbers, paths and makers of models, as a sentence of the engine may begin: `The test failed.` is someone else's. */
const first = '[^\\s,]*\\d[^\\s,]*(?:, [^\\s,]*\\d[^\\s,]*)*|Anthropic|Gemini|Ollama|OpenAI|OpenRouter';

/** English sentences as patterns, each at the start of a text. A value has no line break. */
const patterns = sentences(inEnglish).map(text => {
  const words = text.split(/\{\d\}/).map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const [begin = '', ...rest] = words;
  const open = begin === '' && rest.length > 0 ? `(${first})${rest.shift()}` : begin;
  return new RegExp(`^${[open, ...rest].join('([^\\n]{1,200}?)')}(?: |$)`);
});

/** Returns the text with the sentences of the engine at its start in the language of `say`, up to the first other one. */
export function planWords(text: string, say: Say): string {
  if (text.length > longest) return text;
  const translated = sentences(say);
  const said: string[] = [];
  let rest = text;
  while (rest !== '') {
    const index = patterns.findIndex(pattern => pattern.test(rest));
    const [all = '', ...values] = patterns[index]?.exec(rest) ?? [];
    if (all === '') break;
    said.push(withValues(translated[index] ?? all, values));
    rest = rest.slice(all.length);
  }
  return [...said, ...(rest === '' ? [] : [rest])].join(' ');
}
