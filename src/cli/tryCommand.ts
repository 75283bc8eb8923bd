/** Implements `telos gallery try`: runs a skill once without installing it, in a copy of the folder. */

import { TelosError } from '@telos/engine/errors';
import { Telos } from '@telos/engine/telos';
import {
  importTrial,
  lookAtSource,
  type Offer,
  type Trial,
  type TrialChange,
  UnclearSource,
} from '@telos/packs/install';
import { configFor } from './cliConfig.ts';
import { colouredCard, sayProgress } from './offerText.ts';
import { carryOut, type RequestOptions } from './requestCommand.ts';
import { abortOnInterrupt, cancelledExitCode, type Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, lookErrorText, terminalLine, toType } from './terminalText.ts';

export interface TryOptions extends RequestOptions {
  skill?: string;
  keep?: boolean;
  allow?: string;
}

/** Returns the exit code of the run; 1 if nothing ran, 2 if the source or the skill has to be said more exactly. */
export async function tryCommand(
  source: string,
  request: string,
  options: TryOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { signal, release } = abortOnInterrupt(terminal, () => terminal.say('Stopping.'));
  let offer: Offer | undefined;
  try {
    const looked = await lookAtSource(source, config, {
      signal,
      progress: event => sayProgress(event, terminal),
    });
    if (looked.kind === 'choices') return unclear(looked.message, looked.choices, terminal);
    offer = looked;
    const telos = Telos.open(config);
    if (!(await mayTry(offer, config.cwd, options, terminal))) return 1;
    const { openTrial } = await importTrial();
    const trial = await openTrial(offer, config, (await telos.today()).cost);
    try {
      return await runTrial(trial, { source, request, folder: config.cwd, telos }, options, terminal);
    } finally {
      await trial.dispose();
    }
  } catch (error) {
    if (signal.aborted) return cancelledExitCode;
    if (!(error instanceof TelosError)) throw error;
    if (error instanceof UnclearSource) return unclear(error.message, error.choices, terminal);
    terminal.say(terminal.style.red(lookErrorText(error)));
    return 1;
  } finally {
    release();
    await offer?.dispose();
  }
}

function unclear(message: string, choices: readonly string[], terminal: Terminal): number {
  terminal.say(exactText(message.replace(/ Nothing was installed\./, '')));
  for (const choice of choices) terminal.say(`  ${toType('gallery', 'try', choice)}`);
  return 2;
}

/** Shows what the pack may touch and what was found in it, and asks. */
async function mayTry(
  offer: Offer,
  folder: string,
  { yes, allow }: TryOptions,
  terminal: Terminal,
): Promise<boolean> {
  const about = [
    ...colouredCard(offer, terminal.style),
    `It works in a copy of ${exactText(folder)}. Nothing is installed, and nothing changes in the folder.`,
  ].join('\n');
  const isRisky = offer.isRisky && allow !== 'high';
  if (yes) {
    terminal.say(
      isRisky
        ? `${about}\nIt has high-severity findings, which --yes alone does not accept. If you have looked at them, add --allow high. Nothing ran.`
        : about,
    );
    return !isRisky;
  }
  const alone = `${about}\nNothing ran. Use --yes to try it without being asked, which also allows the run everything else.`;
  return agrees(about, isRisky ? 'Try it anyway?' : 'Try it?', alone, terminal, 'Nothing ran.');
}

async function runTrial(
  { config, agent, changed, keep }: Trial,
  { source, request, folder, telos }: { source: string; request: string; folder: string; telos: Telos },
  options: TryOptions,
  terminal: Terminal,
): Promise<number> {
  const [only] = agent.skills;
  const named = options.skill === undefined ? undefined : agent.skills.find(({ id }) => id === options.skill);
  const skill = named ?? (agent.skills.length === 1 ? only : undefined);
  if (options.skill !== undefined && !named) {
    const names = agent.skills.map(({ id }) => terminalLine(id)).join(', ');
    terminal.say(`It has no skill '${terminalLine(options.skill)}', but: ${names}`);
    return 2;
  }
  if (!skill && request === '') {
    terminal.say('It has several skills. Name one, or say a request:');
    for (const { id } of agent.skills) terminal.say(`  ${toType('gallery', 'try', source, '--skill', id)}`);
    return 2;
  }
  const wanted = {
    text: request || (skill?.id ?? ''),
    ...(skill && { skill: { agent: agent.name, skill: skill.id } }),
  };
  const code = await carryOut(Telos.open(config, { agents: [agent] }), wanted, options, terminal);
  const changes = await changed();
  terminal.say(
    changes.length === 0
      ? 'It changed no file of the copy, which is removed now.'
      : `It changed in the copy:\n${changes.map(lineOf).join('\n')}`,
  );
  if (changes.length > 0 && (await wantsThem(folder, options, terminal))) {
    const { kept, left, undoId } = await keep(changes, telos.changes);
    for (const path of left) terminal.say(exactText(`${path} was left as it is in the folder.`));
    terminal.say(`Kept ${kept.length} of ${changes.length}. Undo: ${toType('undo', undoId)}`);
  }
  return code;
}

const marks: Readonly<Record<TrialChange['kind'], string>> = { added: '+', changed: '~', deleted: '-' };
const lineOf = ({ kind, path }: TrialChange): string => `  ${marks[kind]} ${exactText(path)}`;

async function wantsThem(folder: string, { keep, yes }: TryOptions, terminal: Terminal): Promise<boolean> {
  if (keep) return true;
  const alone = 'Nothing was kept. Use --keep to keep its changes.';
  if (!yes) return agrees('', `Keep them in ${exactText(folder)}?`, alone, terminal, 'Nothing was kept.');
  terminal.say(alone);
  return false;
}
