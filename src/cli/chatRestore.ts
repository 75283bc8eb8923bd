/** Implements `/restore` and `/branch` of `telos chat`: back to before an earlier request, with the files or in a new conversation. */
import type { Conversation } from '@telos/engine/run';
import type { Telos } from '@telos/engine/telos';
import { isBlocked, type RestorePlan } from '@telos/engine/undo';
import { counted } from '@telos/protocol/text';
import type { Terminal } from './terminal.ts';
import { exactText, terminalLine } from './terminalText.ts';
import { lineFor, notUndone, saysYes } from './undoCommand.ts';

interface Chat {
  telos: Telos;
  conversation: Conversation;
  terminal: Terminal;
}

/** Asks, and restores. Returns the restore's id and the conversation from now on. Undefined, with a reason said, if nothing was done. */
export async function restoreConversation(
  words: string,
  { telos, conversation, terminal }: Chat,
): Promise<{ id: string; conversation: Conversation } | undefined> {
  const at = chosen(words, '/restore', conversation, terminal);
  if (at === undefined) return undefined;
  const requests = conversation.requests.slice(at);
  const runIds = requests.map(({ runId }) => runId);
  const since = requests[0]?.startedAt ?? '';
  const running = telos
    .commandsOf(conversation.id)
    .running.filter(({ startedAt }) => startedAt.toISOString() >= since);
  const plan = await telos.changes.restorable(runIds);
  const blocked = plan.files.filter(isBlocked);
  for (const line of linesOf(plan)) terminal.say(exactText(line));
  for (const { command } of running) terminal.say(terminalLine(`Ends: ${command}`, terminal.sayWidth));
  for (const sentence of [...notUndone(plan), ...besides(plan)])
    terminal.say(terminal.style.yellow(exactText(sentence)));
  const what = blocked.length > 0 ? 'the other files' : 'files';
  const question = `Restore ${what} and conversation to before request ${at + 1}? [y/N] `;
  if (!(await saysYes(question, terminal))) {
    terminal.say('Nothing was restored.');
    return undefined;
  }
  for (const command of running) await command.stop();
  const result = await telos.changes.restore(runIds, { others: blocked.length > 0 });
  if (result.outcome === 'refused') {
    terminal.say(terminal.style.red('Nothing was restored: a file was changed in the meantime.'));
    return undefined;
  }
  const count = result.restored.length + result.removed.length;
  const done = `Restored: ${counted(count, 'file')}. ${counted(runIds.length, 'request')} left out. /undo undoes that.`;
  terminal.say(done);
  if (result.problem !== undefined) terminal.say(terminal.style.red(exactText(result.problem)));
  return { id: result.id, conversation: conversation.upTo(at, false) };
}

/** Returns a new conversation that knows what was said before the request. Undefined, with a reason said, if there is no such request. */
export function branchOf(words: string, { conversation, terminal }: Chat): Conversation | undefined {
  const at = chosen(words, '/branch', conversation, terminal);
  if (at === undefined) return undefined;
  terminal.say(
    `A new conversation, which knows what was said before request ${at + 1}. Files stay as they are.`,
  );
  return conversation.upTo(at, true);
}

/** Returns the index of the request that the words name. Lists the requests if they name none. */
function chosen(
  words: string,
  command: string,
  { requests }: Conversation,
  terminal: Terminal,
): number | undefined {
  const number = /^\d{1,6}$/.test(words) ? Number(words) : 0;
  if (number >= 1 && number <= requests.length) return number - 1;
  if (requests.length === 0) {
    terminal.say('This conversation has no requests yet.');
    return undefined;
  }
  if (words !== '') terminal.say(terminalLine(`There is no request '${words}'.`));
  for (const [index, { text }] of requests.entries())
    terminal.say(`${String(index + 1).padStart(3)}  ${terminalLine(text, terminal.sayWidth - 5)}`);
  terminal.say(`To go back to before one of them: ${command} NUMBER`);
  return undefined;
}

function linesOf({ files, folders, repositories }: RestorePlan): string[] {
  const lines = [
    ...files.filter(({ state }) => state !== 'as_before').map(lineFor),
    ...repositories.map(path => `M ${path}  (branches, tags and index)`),
    ...folders.map(({ path, before }) => `${before === null ? 'A' : 'D'} ${path}/`),
  ];
  return lines.length === 0
    ? ['No file was changed since.']
    : ['Changed since:', ...lines.map(line => `  ${line}`)];
}

const besides = ({ outside, tooLarge }: RestorePlan): string[] => [
  ...(outside.length > 0 ? [`Ran outside the sandbox, and is not undone: ${outside.join(', ')}`] : []),
  ...(tooLarge.length > 0
    ? [`Too large to be kept, so that undoing the restore leaves it out: ${tooLarge.join(', ')}`]
    : []),
];
