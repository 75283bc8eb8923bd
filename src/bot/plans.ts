/** `/telos plan`: how the plans of the folder stand, and the questions that wait for their owner, with buttons. */

import { TelosError } from '@telos/engine/errors';
import { repositoryAbove } from '@telos/engine/files';
import { denyAll } from '@telos/engine/run';
import { openPlan, type Plan } from '@telos/plans/plan';
import { PlanFolder, type PlanLook } from '@telos/plans/state';
import type { ParkedQuestion, SteerCommand } from '@telos/protocol/plan';
import { counted, exactText, shortened } from '@telos/protocol/text';
import { formatCost } from '@telos/protocol/usage';
import { type Desk, whisperList } from './botCommands.ts';
import { fitted } from './discordHuman.ts';
import type { SlashCall } from './handlers.ts';
import { plainText } from './messageText.ts';
import type { Choice } from './questions.ts';

/** Messages with buttons that one look puts into a channel. */
const mostShown = 5;

interface Looked {
  plan: Plan;
  look: PlanLook;
}

/** Lists the plans, and puts what waits for the owner below. Throws errors of the file system. */
export async function planCommand(call: SlashCall, desk: Desk): Promise<void> {
  if (!desk.isOwner(call.user)) return call.whisper({ content: 'Only an owner can see the plans.' });
  const { telos, log } = desk;
  const repo = repositoryAbove(telos.config.cwd) ?? telos.config.cwd;
  const caller = { runs: telos, human: denyAll, by: 'discord' as const };
  const plans = PlanFolder.list(repo).map(name => openPlan(repo, name, caller));
  const all = await Promise.all(plans.map(async plan => ({ plan, look: await plan.look() })));
  await whisperList(call, all.map(lineOf), 'There are no plans in the folder of the bot.');
  const asked = all.flatMap(one => one.look.state.questions.map(question => ({ ...one, question })));
  const running = all.filter(({ look }) => /^(?:running|waiting|paused)$/.test(look.state.phase));
  const tasks = [
    ...asked.map(one => () => putQuestion(one, one.question, call, desk)),
    ...running.map(one => () => offerControls(one, call, desk)),
  ];
  for (const task of tasks.slice(0, mostShown)) void task().catch((error: Error) => log(error.message));
}

function lineOf({ plan, look }: Looked): string {
  const { phase, stories, usage, questions } = look.state;
  const passed = stories.filter(({ status }) => status === 'passed' || status === 'accepted').length;
  const parts = [
    phase.replaceAll('_', ' '),
    ...(stories.length > 0 ? [`${passed} of ${stories.length} stories passed`] : []),
    ...(typeof usage?.cost === 'number' && usage.cost > 0 ? [formatCost(usage.cost)] : []),
    ...(questions.length > 0 ? [`${counted(questions.length, 'question')} for you`] : []),
  ];
  return `- **${plainText(plan.name)}** ${parts.join(', ')}`;
}

/** Returns true if a yes would let a command run. A question that an older version has parked says so in its words alone. */
const isCommand = ({ tool, text }: ParkedQuestion): boolean =>
  tool === undefined ? /^May \S+ use run_command/.test(text) : tool.startsWith('run_command');

async function putQuestion(
  { plan }: Looked,
  question: ParkedQuestion,
  call: SlashCall,
  { questions, asksCommands, gateway }: Desk,
): Promise<void> {
  const { id, story, text, choices = [] } = question;
  const title = `**Plan ${plainText(plan.name)}${story === undefined ? '' : `, ${plainText(story)}`} asks**`;
  const isForbidden = isCommand(question) && !asksCommands;
  const note = isForbidden
    ? `It is about a command, so it is answered on the machine: telos plan answer ${plainText(id)} yes`
    : '-# Only you can answer, for five minutes. Later, /telos plan shows it again.';
  const post = fitted(title, [['question', exactText(text)]], 'question.txt', note);
  if (isForbidden) {
    await gateway.post(call.channel, post);
    return;
  }
  const listed = choices
    .slice(0, 20)
    .map((choice, at): Choice => ({ label: shortened(`${at + 1}. ${exactText(choice)}`, 70) }));
  const own: Choice = { label: 'Answer …', form: 'Your answer' };
  const answer = await questions.ask({
    channel: call.channel,
    post,
    mayAnswer: user => user === call.user,
    choices: isCommand(question) ? listed : [...listed, own],
  });
  const words = answer?.text ?? choices[listed.findIndex(({ label }) => label === answer?.label)];
  if (words === undefined) return;
  const { state } = await plan.look();
  const isOpen = state.questions.some(one => one.id === id);
  const content = isOpen
    ? await steer(plan, { kind: 'answer', id, text: words })
    : 'It was answered elsewhere.';
  await gateway.post(call.channel, { content });
}

/** Returns what became of the command, in words. */
async function steer(plan: Plan, command: SteerCommand): Promise<string> {
  const name = plainText(plan.name);
  let isRunning: boolean;
  try {
    isRunning = await plan.steer(command);
  } catch (error) {
    if (!(error instanceof TelosError)) throw error;
    return plainText(error.message);
  }
  const sent = command.kind === 'answer' ? `Plan ${name} uses your answer.` : `Sent to plan ${name}.`;
  return isRunning
    ? sent
    : `Plan ${name} is not running. This takes effect when it runs: telos plan run ${name}`;
}

async function offerControls(
  { plan, look }: Looked,
  call: SlashCall,
  { questions, gateway }: Desk,
): Promise<void> {
  const commands: Readonly<Record<string, SteerCommand>> = {
    ...(look.state.phase === 'paused' ? { Resume: { kind: 'resume' } } : { Pause: { kind: 'pause' } }),
    Stop: { kind: 'stop', when: 'after-step' },
  };
  const answer = await questions.ask({
    channel: call.channel,
    mayAnswer: user => user === call.user,
    post: { content: lineOf({ plan, look }) },
    choices: Object.keys(commands).map(label => ({ label })),
  });
  const command = commands[answer?.label ?? ''];
  if (command) await gateway.post(call.channel, { content: await steer(plan, command) });
}
