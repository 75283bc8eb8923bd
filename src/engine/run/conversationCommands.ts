/** The commands of conversations that go on in the background, for those who run and end conversations. */
import type { RunEvent } from '../../protocol/run.ts';
import { asMessage, sentence } from '../../protocol/text.ts';
import type { Config } from '../config.ts';
import {
  type BackgroundCommands,
  backgroundOf,
  closeBackground,
  endBackground,
} from '../tools/background.ts';
import { endedWithProgram } from '../tools/startedCommands.ts';

export type { BackgroundCommands };

/** Returns the commands of a conversation. */
export const commandsOf = (
  conversationId: string,
  { dataDir }: Pick<Config, 'dataDir'>,
): BackgroundCommands => backgroundOf(conversationId, dataDir);

/** Ends the commands of a conversation that is over. Returns their lines. */
export const endCommands = (conversationId: string): Promise<readonly string[]> =>
  endBackground(conversationId);

/** Ends all commands because this program closes. The next start says so. */
export const closeCommands = (): Promise<void> => closeBackground();

/** Says which commands ended with the program in which they ran, once. */
export function endedBefore(
  { dataDir }: Pick<Config, 'dataDir'>,
  redact: (text: string) => string,
): RunEvent[] {
  const commands = endedWithProgram(dataDir).map(redact);
  if (commands.length === 0) return [];
  const said = sentence('Stopped when Telos closed: {0}.', commands.join(', '));
  return [{ type: 'notice', level: 'info', ...asMessage(said) }];
}
