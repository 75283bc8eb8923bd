/** The commands below `/telos`, but for `run`: how they are registered, and what they answer. */
import { importRunHistory, importRunSummary, outcomeText, timeText } from '@telos/engine/records';
import { Telos } from '@telos/engine/telos';
import { describeRoute } from '@telos/protocol/describe';
import { counted, exactText, shortened } from '@telos/protocol/text';
import type { RunParts } from './discordHuman.ts';
import type { SlashCall, Typing } from './handlers.ts';
import { plainText, splitMessage } from './messageText.ts';

/** What the commands work with. */
export interface Desk extends RunParts {
  /** Stops what someone may stop in a channel, or else elsewhere. Returns how much that was. */
  stop(user: string, channel: string): number;
  /** Whether commands that no rule names are asked about. */
  asksCommands: boolean;
}

/** Types of an option: a command below another one, a text, and a file. */
const [below, text, file] = [1, 3, 11];

const wish = { type: text, name: 'request', description: 'What you want, in your own words', required: true };
const option = (name: string, description: string) => ({ type: text, name, description, autocomplete: true });

export const slashCommands = [
  {
    name: 'telos',
    description: 'Run skills',
    type: 1,
    options: [
      {
        type: below,
        name: 'run',
        description: 'Run a skill; the answer comes in a thread',
        options: [
          wish,
          option('agent', 'Only this agent’s skills'),
          option('skill', 'Exactly this skill'),
          { type: file, name: 'file', description: 'A text file that goes with the request' },
        ],
      },
      { type: below, name: 'skills', description: 'List the skills' },
      {
        type: below,
        name: 'route',
        description: 'Say which skill a request means, and why',
        options: [wish],
      },
      { type: below, name: 'stop', description: 'Stop your request, or the one of this thread' },
      { type: below, name: 'plan', description: 'Show the plans, and answer their questions (owners)' },
      { type: below, name: 'runs', description: 'List the latest runs (owners)' },
      {
        type: below,
        name: 'undo',
        description: 'Undo what a run has changed (owners)',
        options: [option('run', 'The beginning of its id; the latest change if none is named')],
      },
    ],
  },
] as const;

/** Runs that are listed. */
const listedRuns = 15;
/** Choices that Discord takes, and the longest of them. */
const [mostChoices, mostLetters] = [25, 100];

type Command = (call: SlashCall, desk: Desk) => Promise<void>;

/** Whispers as much of a list as one message takes. */
export async function whisperList(call: SlashCall, lines: readonly string[], none: string): Promise<void> {
  const [first = ''] = splitMessage(lines.join('\n'));
  const left = lines.length - first.split('\n').length;
  const more = left > 0 ? `\nand ${left} more` : '';
  await call.whisper({ content: lines.length > 0 ? `${first}${more}` : none });
}

const skills: Command = async (call, { telos, isOffered }) => {
  const agents = (await telos.agents()).filter(({ name }) => isOffered(name));
  const lines = agents.flatMap(({ name, skills: all }) =>
    all.map(
      ({ id, description }) => `- **${plainText(`${name}:${id}`, 80)}** ${plainText(description, 120)}`,
    ),
  );
  await whisperList(call, lines, 'There are no skills.');
};

/** Only by words: a model could take longer than Discord waits. */
const route: Command = async (call, { telos, isOffered }) => {
  const local = Telos.open({ ...telos.config, routingMode: 'local' });
  const { request = '' } = call.options;
  const found = await local.route({ text: request }, AbortSignal.timeout(2_500));
  const content =
    found.skill && isOffered(found.agent.name)
      ? `${plainText(describeRoute(found.agent.name, found.skill.id, found.reason))}\n${plainText(found.skill.description)}`
      : 'No skill clearly fits these words.';
  await call.whisper({ content });
};

const stop: Command = async (call, desk) => {
  const stopped = desk.stop(call.user, call.channel);
  await call.whisper({
    content: stopped > 0 ? `Stopped: ${counted(stopped, 'request')}.` : 'You have no running requests.',
  });
};

const runs: Command = async (call, { telos, isOwner }) => {
  if (!isOwner(call.user)) return call.whisper({ content: 'Only an owner can list the runs.' });
  const { RunHistory } = await importRunHistory();
  const { titleOf } = await importRunSummary();
  const list = (await new RunHistory(telos.config.dataDir).list()).slice(0, listedRuns);
  const lines = list.map(run => {
    const about = `${timeText(run.startedAt)}, ${outcomeText[run.outcome]}`;
    return `- \`${run.runId.slice(0, 8)}\` ${plainText(titleOf(run), 60)} (${plainText(about)})`;
  });
  await whisperList(call, lines, 'There are no runs yet.');
};

const undoWords = {
  undone: 'The files are as they were before the run.',
  already_undone: 'This run is undone already.',
  refused:
    'Nothing was undone: files are not as the run left them. On the machine, `telos undo --show` shows what differs.',
} as const;

const undo: Command = async (call, { telos, gateway, questions, isOwner, log }) => {
  if (!isOwner(call.user)) return call.whisper({ content: 'Only an owner can undo a run.' });
  const { changes } = telos;
  const { run } = call.options;
  const latest = run === undefined ? await changes.latest() : undefined;
  const found = run === undefined ? (latest === undefined ? [] : [latest]) : await changes.find(run);
  const [runId] = found;
  if (runId === undefined) return call.whisper({ content: 'There is nothing to undo.' });
  if (found.length > 1)
    return call.whisper({ content: 'Several runs begin with this ID. Enter more characters.' });
  const { files, undoneAt } = await changes.of(runId);
  if (undoneAt !== undefined) return call.whisper({ content: undoWords.already_undone });
  await call.whisper({ content: `What run ${runId.slice(0, 8)} has changed is listed below.` });
  const listed = files.map(
    ({ path, before, isRemoved }) => `${isRemoved ? 'D' : before ? 'M' : 'A'} ${exactText(path)}`,
  );
  for (const path of await changes.writtenInTurn(runId))
    listed.push(`Another run has written ${exactText(path)} too`);
  const shown = shortened(listed.join('\n').replaceAll('`', 'ˋ'), 1500);
  const title = `**Undo run ${runId.slice(0, 8)}?** ${counted(files.length, 'file')}`;
  const answer = await questions.ask({
    channel: call.channel,
    post: { content: `${title}\n\`\`\`\n${shown}\n\`\`\`` },
    choices: [{ label: 'Undo', style: 'danger' }, { label: 'No' }],
    mayAnswer: user => user === call.user,
  });
  if (answer?.label !== 'Undo') return;
  const content = await changes
    .undo(runId)
    .then(({ outcome }) => undoWords[outcome])
    .catch((error: Error) => plainText(error.message));
  await gateway.post(call.channel, { content }).catch(error => log(error.message));
};

/** By their names. `run` belongs to the queue, and `plan` loads when it is called. */
export const commands: Readonly<Record<string, Command>> = { skills, route, stop, runs, undo };

/** Returns what fits what was typed so far, best first. */
export async function choicesFor(
  { option: name, options, user }: Typing,
  desk: Desk,
): Promise<{ name: string; value: string }[]> {
  const typed = (options[name] ?? '').toLowerCase();
  return (await valuesFor(name, options, desk, desk.isOwner(user)))
    .filter(value => value.length <= mostLetters && value.toLowerCase().includes(typed))
    .slice(0, mostChoices)
    .map(value => ({ name: shortened(exactText(value), mostLetters), value }));
}

async function valuesFor(
  name: string,
  { request = '', agent }: Typing['options'],
  { telos, isOffered }: Desk,
  isOwner: boolean,
): Promise<string[]> {
  if (name === 'run')
    return isOwner ? [(await telos.changes.latest())?.slice(0, 8) ?? ''].filter(Boolean) : [];
  const agents = (await telos.agents()).filter(one => isOffered(one.name));
  if (name === 'agent') return agents.map(one => one.name);
  const of = agents.filter(one => !agent || one.name === agent);
  const all = of.flatMap(one => one.skills.map(({ id }) => `${one.name}:${id}`));
  const ranked = request === '' ? [] : await telos.ranking({ text: request });
  const best = ranked.map(one => `${one.agent.name}:${one.skill.id}`).filter(one => all.includes(one));
  return [...new Set([...best, ...all])];
}
