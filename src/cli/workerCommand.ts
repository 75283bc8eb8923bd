/** Implements `telos worker`, which runs evals and stories of others here. */

import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { isKnown, type Pace } from '@telos/engine/providers';
import { Telos } from '@telos/engine/telos';
import { answerEither, databaseAddress, databaseVariable, loadDbos } from '@telos/fleet/executors';
import {
  acceptWorkerCard,
  answerOrder,
  isDigest,
  runWorker,
  StoryWorker,
  type TryDatabase,
  Turns,
  type WaitingCard,
  type WorkerParts,
  waitingCards,
} from '@telos/fleet/workers';
import { describeBound } from '@telos/plans/state';
import { type ConfigOptions, configFor, hideStartEnvironment } from './cliConfig.ts';
import { abortOnInterrupt, type Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { errorText, exactText, sayError, terminalLine } from './terminalText.ts';

export interface WorkerCommandOptions extends ConfigOptions {
  database?: string;
  slots?: number;
  label?: string;
  /** Addresses of repositories whose stories may be worked on here. */
  repository?: readonly string[];
  /** Requests a minute, each `provider=number`. */
  requests?: readonly string[];
  /** Starts a database of its own. */
  try?: boolean;
  /** Of Telos. */
  version: string;
}

/** Returns the exit code: 0 when it was stopped, 2 if it cannot start. */
export async function workerCommand(options: WorkerCommandOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  // The address has a password, and nothing that runs here needs it.
  const { [databaseVariable]: known, ...env } = config.env;
  hideStartEnvironment(name => name === databaseVariable);
  delete process.env[databaseVariable];
  hideArguments();
  const { maxCost: _maxCost, ...budget } = config.budget;
  const own = { ...config, env, budget };
  const { signal, release } = abortOnInterrupt(terminal, () => undefined);
  const log = (line: string): void => terminal.say(terminalLine(line));
  // What plans of others run here runs in the box or not at all.
  const boxed = { ...own, sandbox: 'required' as const };
  let stories: StoryWorker | undefined;
  let tried: TryDatabase | undefined;
  try {
    if (options.try) tried = await (await import('./workerTry.ts')).tryDatabase(own, terminal);
    const database = databaseAddress(tried?.url ?? options.database ?? known);
    await loadDbos(own.dataDir);
    const { slots = 1, label, version } = options;
    const turns = new Turns(own, new Map(options.requests?.map(limitIn)));
    const pace: Pace = provider => turns.over(provider);
    const parts = partsOf(own, pace, terminal);
    stories = new StoryWorker({
      config: boxed,
      repositories: options.repository ?? [],
      log,
      open: () => Telos.open(boxed, { pace }),
      failed: error => terminal.say(errorText(error)),
    });
    await runWorker(
      {
        database,
        slots,
        label,
        turns,
        version,
        log,
        health: line => terminal.out(`${terminalLine(line)}\n`),
      },
      answerEither((given, stop) => answerOrder(given, parts, stop), stories),
      signal,
    );
    return 0;
  } catch (error) {
    return failed(error, signal, terminal);
  } finally {
    await stories?.close();
    await tried?.stop();
    release();
  }
}

/** `telos worker accept [DIGEST]`: shows the cards of plans that wait, or one of them, which is accepted after a yes. */
export async function acceptCardCommand(
  digest: string | undefined,
  options: ConfigOptions & { yes?: boolean },
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const cards = waitingCards(config);
  if (digest === undefined) {
    for (const card of cards) sayCard(card, terminal);
    const next = 'To accept one: telos worker accept DIGEST';
    terminal.say(cards.length === 0 ? 'No permissions of a plan wait.' : next);
    return 0;
  }
  const card = cards.find(one => one.digest === digest);
  if (!isDigest(digest)) {
    terminal.say(
      terminal.style.red('A digest has 64 digits and letters, as the permissions of a plan show it.'),
    );
    return 2;
  }
  if (card) sayCard(card, terminal);
  else
    terminal.say(
      'No order with these permissions has come yet. You approve the permissions that have this digest.',
    );
  const unattended = 'No one can be asked here; --yes approves the permissions as they are shown.';
  if (!options.yes && !(await agrees('', 'Run these commands for it, in the sandbox?', unattended, terminal)))
    return 3;
  await acceptWorkerCard(config, digest);
  terminal.say('Accepted.');
  return 0;
}

function sayCard({ digest, plan, repository, lines, roles }: WaitingCard, terminal: Terminal): void {
  const say = (text: string): void => terminal.say(exactText(text.replace(/\r/g, ' ')));
  say(`Plan ${plan} of ${repository}`.replace(/\n/g, ' '));
  // What follows in a text of several lines stands further in than any line of the card.
  const parts = lines.map(line => describeBound(line).replace(/\n/g, '\n      '));
  const texts = roles.map(({ file, text }) =>
    [`text for a role, ${file}:`, ...text.split('\n')].join('\n      '),
  );
  for (const line of [...parts, ...texts].flatMap(part => part.split('\n'))) say(`  ${line}`);
  say(`Digest: ${digest}`);
}

/** Returns the configuration with the model `provider:model`: where it has no key, that is what is said. */
function withModel(config: Config, named: string): Config {
  const [, provider = named, model = ''] = /^([\w-]+):(.+)$/s.exec(named) ?? [];
  return { ...config, provider, model };
}

const partsOf = (config: Config, pace: Pace, terminal: Terminal): WorkerParts => ({
  config,
  open: (its, more) => Telos.open(its, more),
  // Opened for each, so that what was spent today counts.
  model: named => Telos.open(withModel(config, named), { pace }).asideModel(),
  failed: error => terminal.say(errorText(error)),
});

const limitIn = (text: string): [string, number] => {
  const [provider = '', requests = ''] = text.split('=');
  if (!isKnown(provider)) throw new TelosError('config', `--requests: there is no provider ${provider}.`);
  return [provider, Number(requests)];
};

/** Puts a title in the place of the arguments, which other programs could read. */
function hideArguments(): void {
  process.title = 'telos worker';
}

/** Returns the exit code of a command that cannot use the database, and says why. Throws any other error. */
export function failed(error: unknown, signal: AbortSignal, terminal: Terminal): number {
  if (signal.aborted) return 0;
  if (!(error instanceof TelosError)) throw error;
  return sayError(error, terminal, 2);
}
