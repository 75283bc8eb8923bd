/** Chooses the model for a run from what is set up, and makes it; no SDK is loaded before a model is made. */
import type { Config } from '../config.ts';
import { TelosError } from '../errors.ts';
import type { Provider } from './provider.ts';

export type ProviderName = 'anthropic' | 'openai' | 'gemini' | 'openrouter' | 'ollama' | 'replay';

export interface ProviderChoice {
  /** One of `providerNames`. */
  name: string;
  model: string;
  /** A short sentence for the person. */
  why: string;
  /** A recorded run answers in place of a model. */
  recording: boolean;
  /** Where the model is asked, without a slash at the end; a recording has none. */
  baseUrl?: string;
}

interface ProviderSetup {
  model: string;
  baseUrl: string;
  /** Variable that moves the provider to another address. */
  baseUrlVariable: string;
  /** Variable of its key; undefined when it needs none. */
  keyVariable: string | undefined;
}

/** In the order in which their keys are looked for. */
export const providerSetups: Readonly<Record<Exclude<ProviderName, 'replay'>, ProviderSetup>> = {
  anthropic: {
    model: 'claude-haiku-4-5',
    baseUrl: 'https://api.anthropic.com',
    baseUrlVariable: 'ANTHROPIC_BASE_URL',
    keyVariable: 'ANTHROPIC_API_KEY',
  },
  openai: {
    model: 'gpt-5.4-mini',
    baseUrl: 'https://api.openai.com/v1',
    baseUrlVariable: 'OPENAI_BASE_URL',
    keyVariable: 'OPENAI_API_KEY',
  },
  gemini: {
    model: 'gemini-flash-latest',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    baseUrlVariable: 'GEMINI_BASE_URL',
    keyVariable: 'GEMINI_API_KEY',
  },
  openrouter: {
    model: 'anthropic/claude-haiku-4.5',
    baseUrl: 'https://openrouter.ai/api/v1',
    baseUrlVariable: 'OPENROUTER_BASE_URL',
    keyVariable: 'OPENROUTER_API_KEY',
  },
  ollama: {
    model: 'llama3.1',
    baseUrl: 'http://localhost:11434/v1',
    baseUrlVariable: 'OLLAMA_BASE_URL',
    keyVariable: undefined,
  },
};

export const providerNames = [...Object.keys(providerSetups), 'replay'] as readonly ProviderName[];

/** How long an Ollama may take to show that it is there, in milliseconds. */
const ollamaPatienceMs = 300;

/**
 * What the next run will use: the provider that is set, else the recording that is set, else the first one with a key, else an Ollama that
 * answers, else the skills' recordings. Throws TelosError `config` for an unknown name, `auth` for a provider without its key.
 */
export async function chooseProvider(config: Config): Promise<ProviderChoice> {
  if (config.provider) return chooseNamed(config, config.provider);
  if (config.replayFile) return recordingChoice('A recording is set to be played.');
  for (const name of providerNames) {
    const variable = name === 'replay' ? undefined : providerSetups[name].keyVariable;
    if (variable && config.env[variable]) return choiceOf(config, name, `${variable} is set.`);
  }
  if (config.env['OPENAI_BASE_URL']) return choiceOf(config, 'openai', 'OPENAI_BASE_URL is set.');
  if (await ollamaAnswers(config)) return choiceOf(config, 'ollama', 'No key is set, and Ollama answers.');
  return recordingChoice('No key is set and no Ollama answers, so skills play their recorded runs.');
}

function chooseNamed(config: Config, wanted: string): ProviderChoice {
  const name = knownName(wanted);
  if (name === 'replay') return recordingChoice('The provider is set to replay.');
  keyOf(config, name);
  return choiceOf(config, name, `The provider is set to ${name}.`);
}

function knownName(wanted: string): ProviderName {
  const name = providerNames.find(known => known === wanted);
  if (name) return name;
  const message = `There is no provider '${wanted}'. Known are ${providerNames.join(', ')}; set TELOS_PROVIDER to one of them.`;
  throw new TelosError('config', message);
}

function choiceOf(config: Config, name: ProviderName, why: string): ProviderChoice {
  if (name === 'replay') return recordingChoice(why);
  const model = config.model ?? providerSetups[name].model;
  return { name, model, why, recording: false, baseUrl: addressOf(config, name) };
}

function addressOf(config: Config, name: Exclude<ProviderName, 'replay'>): string {
  const { baseUrl, baseUrlVariable } = providerSetups[name];
  return (config.env[baseUrlVariable] || baseUrl).replace(/\/+$/, '');
}

function recordingChoice(why: string): ProviderChoice {
  return { name: 'replay', model: 'recording', why, recording: true };
}

function keyOf(config: Config, name: Exclude<ProviderName, 'replay'>): string {
  const { keyVariable } = providerSetups[name];
  if (!keyVariable) return '';
  const key = config.env[keyVariable];
  if (key) return key;
  // Another server than OpenAI's own, which may well want no key.
  if (name === 'openai' && config.env['OPENAI_BASE_URL']) return '';
  const message = `The provider ${name} has no key. Set ${keyVariable}, or run “Telos: Set API Key…”.`;
  throw new TelosError('auth', message);
}

async function ollamaAnswers(config: Config): Promise<boolean> {
  try {
    const response = await fetch(`${addressOf(config, 'ollama')}/models`, {
      signal: AbortSignal.timeout(ollamaPatienceMs),
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false; // nobody there, or something that is not an Ollama
  }
}

/**
 * Makes what was chosen. `skillDir` is the skill that will run: with a recording it decides which one, so that its model and date
 * are known at once. Throws TelosError `auth` without a key, `config` for a recording that cannot be read.
 */
export async function createProvider(
  config: Config,
  choice: ProviderChoice,
  skillDir?: string,
): Promise<Provider> {
  const name = knownName(choice.name);
  switch (name) {
    case 'replay': {
      const { openReplay, openSkillReplay, replayBySkill } = await import('./replay.ts');
      if (config.replayFile) return openReplay(config.replayFile);
      return skillDir ? openSkillReplay(skillDir) : replayBySkill();
    }
    case 'anthropic': {
      const apiKey = keyOf(config, name);
      const { createAnthropic } = await import('./anthropic.ts');
      return createAnthropic({ apiKey, model: choice.model, baseUrl: addressOf(config, name) });
    }
    default: {
      const apiKey = keyOf(config, name);
      const { keyVariable, baseUrlVariable } = providerSetups[name];
      const { createOpenaiCompatible } = await import('./openaiCompatible.ts');
      const baseUrl = addressOf(config, name);
      return createOpenaiCompatible({
        name,
        apiKey,
        keyVariable,
        model: choice.model,
        baseUrl,
        baseUrlVariable,
      });
    }
  }
}
