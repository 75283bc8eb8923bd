/** Implements `telos key`: asks for the key of a provider, checks it there, keeps it, and offers the models. */

import { text as textOf } from 'node:stream/consumers';
import { checkKey, keepInEnvFile, keyedProvider, keyedProviders, usualModel } from '@telos/engine/providers';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { readLine, readSecret } from './keyboard.ts';
import { abortOnInterrupt, cancelledExitCode, type Terminal } from './terminal.ts';
import { pick } from './terminalHuman.ts';
import { terminalLine, terminalText } from './terminalText.ts';

/** Models that are listed. */
const mostListed = 12;

/** Returns the exit code: 1 if the key was refused. */
export async function keyCommand(
  wanted: string | undefined,
  options: ConfigOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { signal, release } = abortOnInterrupt(terminal, () => terminal.say(''));
  try {
    const names = keyedProviders.map(({ name }) => name);
    const named = wanted ?? (terminal.canAsk ? await chooseProvider(names, terminal, signal) : undefined);
    const provider = named === undefined ? undefined : keyedProvider(named);
    if (signal.aborted) return cancelledExitCode;
    if (!provider) {
      const whose = named === undefined ? 'Which provider?' : `'${named}' is not a provider with a key.`;
      terminal.say(terminalLine(`${whose} Use one of these: telos key ${names.join(', telos key ')}`));
      return 2;
    }
    const { name, keyVariable } = provider;
    const key = (await readKeyText(`API key for ${name} (it is not shown): `, terminal, signal)).trim();
    if (signal.aborted) return cancelledExitCode;
    if (!/^[\x21-\x7e]+$/.test(key)) {
      const why =
        key === '' ? 'No key was entered.' : 'A key has only letters, digits and signs, without spaces.';
      terminal.say(`${why} Nothing was saved.`);
      return 2;
    }
    terminal.say(terminal.style.dim(`Checking it with ${name} …`));
    const checked = await checkKey(config, name, key, signal);
    if (!checked.ok) {
      const why = checked.isRefused
        ? `${name} rejected this key. Check it, or enter another one.`
        : checked.problem;
      terminal.say(terminal.style.red(terminalText(`${why} Nothing was saved.`)));
      return 1;
    }
    const usual = usualModel(config, name);
    const chosen = terminal.canAsk ? await chooseModel(checked.models, usual, terminal, signal) : undefined;
    if (signal.aborted) return cancelledExitCode;
    const isUsual = chosen === undefined;
    const choice = isUsual ? {} : { TELOS_PROVIDER: name, TELOS_MODEL: chosen };
    const file = await keepInEnvFile(config, { [keyVariable]: key, ...choice });
    // A server without a list has said nothing about the key.
    const saved =
      checked.models.length > 0
        ? `The key works and was saved in ${file}.`
        : `The key was saved in ${file}. ${name} has no list of models, so the first run shows whether it works.`;
    terminal.out(terminalText(`${saved} Runs use ${chosen ?? usual}.\n`));
    const inEnvironment = terminal.surroundings.env[keyVariable];
    if (inEnvironment && inEnvironment !== key)
      terminal.say(
        terminal.style.yellow(
          `${keyVariable} is also set in the environment, which takes precedence over the file.`,
        ),
      );
    return 0;
  } finally {
    release();
  }
}

async function chooseProvider(
  names: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<string | undefined> {
  terminal.say(names.map((name, index) => `  ${index + 1}. ${name}`).join('\n'));
  const answer = await readLine('Which provider? [number or name] ', signal);
  return answer === undefined ? undefined : (pick(answer, names) ?? answer);
}

/** Returns the model that is to be used in place of the usual one. Undefined for the usual one. */
async function chooseModel(
  models: readonly string[],
  usual: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (models.length === 0) return undefined;
  const listed = models.slice(0, mostListed);
  const lines = listed.map((model, index) => `  ${String(index + 1).padStart(2)}. ${terminalLine(model)}`);
  if (models.length > listed.length) lines.push(`      and ${models.length - listed.length} more, by name`);
  terminal.say(['The key works. Models:', ...lines].join('\n'));
  for (;;) {
    const answer = (await readLine(`Which model? [number or name, Enter = ${usual}] `, signal))?.trim() ?? '';
    if (answer === '' || answer === usual) return undefined;
    const chosen = pick(answer, listed) ?? models.find(model => model === answer);
    if (chosen !== undefined) return chosen;
    terminal.say(terminalLine(`${answer} is not among its models.`));
  }
}

/** Reads the key: without showing it on a terminal, or all of a pipe. */
export const readKeyText = (prompt: string, terminal: Terminal, signal: AbortSignal): Promise<string> =>
  terminal.canAsk ? readSecret(prompt, signal) : textOf(terminal.surroundings.stdin);
