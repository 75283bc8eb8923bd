/** The commands of conversations that go on in the background, for those who run and end conversations. */
import type { RunEvent } from '@telos/protocol/run';
import { asMessage, sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { dropLeftLayers } from '../files/leftLayers.ts';
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

/** Says which commands were cut off in the middle, when a program ended that could not end them itself. Each once. */
export const cutOffBefore = ({ dataDir }: Pick<Config, 'dataDir'>): RunEvent[] =>
  dropLeftLayers(dataDir).map(({ root, isLanding }) => {
    const said = isLanding
      ? sentence(
          'Telos ended while the files of a command were being put into {0}: some may be missing. Undo that run, or run it again.',
          root,
        )
      : sentence('Telos ended while a command ran in {0}: nothing that it wrote is there.', root);
    return { type: 'notice', level: 'warning', ...asMessage(said) };
  });
