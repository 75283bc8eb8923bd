/** `telos trust <agent>`: shows what an agent's files name, and binds a yes to exactly those bytes. */
import { Telos } from '../engine/telos.ts';
import { type AgentCard, describeCard } from '../protocol/agentCard.ts';
import { type ConfigOptions, configFor } from './openConfig.ts';
import type { Terminal } from './terminal.ts';
import { readLine } from './terminalHuman.ts';
import { exactText, terminalJson, terminalText } from './terminalText.ts';

export interface TrustOptions extends ConfigOptions {
  yes?: boolean;
  json?: boolean;
}

/** Returns the exit code: 0 when the agent is reviewed, 1 when it is not or there is none of that name. */
export async function trustCommand(name: string, options: TrustOptions, terminal: Terminal): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const telos = Telos.open(config);
  const card = await telos.agentCard(name);
  if (options.json) terminal.out(`${terminalJson(card)}\n`);
  else terminal.out(`${cardText(card)}\n`);
  if (card.state === 'reviewed') {
    terminal.say('It is reviewed; nothing has changed since.');
    return 0;
  }
  if (!options.yes && !(await saysYes(terminal))) {
    terminal.say(
      `Nothing was accepted. ${terminal.canAsk ? '' : 'Use --yes where nobody can be asked.'}`.trim(),
    );
    return 1;
  }
  await telos.acceptCard(card);
  terminal.say(
    terminalText(`Accepted. '${card.agent}' may use what is named above until one of its files changes.`),
  );
  return 0;
}

/** Names, paths and lines come from files of unknown origin: what cannot be seen in them is written as escapes. */
function cardText(card: AgentCard): string {
  return describeCard(card)
    .map(line => exactText(line.replaceAll('\n', ' ')))
    .join('\n');
}

async function saysYes(terminal: Terminal): Promise<boolean> {
  if (!terminal.canAsk) return false;
  // It counts from now on, so a letter that slips is not enough.
  const answer = await readLine('Accept it? [yes/N] ', new AbortController().signal);
  return answer?.trim().toLowerCase() === 'yes';
}
