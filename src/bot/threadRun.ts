/** Carries out one request in a channel: its answer grows there, and its questions are put there. */

import { basename } from 'node:path';
import { openRegularFile, shellWord } from '@telos/engine/files';
import type { Telos } from '@telos/engine/telos';
import { withHookNotice } from '@telos/protocol/describe';
import type { ApprovalRequest, RunEvent, SkillRef, ToolCall, Usage } from '@telos/protocol/run';
import { beginningOf, counted, exactText } from '@telos/protocol/text';
import { addedUsage, formatCost } from '@telos/protocol/usage';
import {
  decider,
  discordHuman,
  fitted,
  interruptedText,
  type Job,
  messageOf,
  type RunParts,
} from './discordHuman.ts';
import { Refused } from './gateway.ts';
import { GrowingAnswer } from './growingAnswer.ts';
import type { Post } from './handlers.ts';
import { plainText } from './messageText.ts';

/** All files of an answer, in bytes. Discord takes no more. */
const mostBytes = 10 * 1024 * 1024;
const mostFiles = 10;
/** Warnings of a run that are shown. */
const mostWarnings = 5;

const neededText = 'There the bot needs View Channel, Send Messages and Send Messages in Threads.';

/** Runs the request to its end. Never throws: what goes wrong is said in the channel, or in the log if even that fails. */
export async function runInChannel(job: Job, parts: RunParts): Promise<void> {
  try {
    const found = await oneRun(job, parts);
    if (found && !job.stop.signal.aborted)
      await oneRun({ ...job, request: { ...job.request, ...found } }, parts);
  } catch (error) {
    const needs = error instanceof Refused ? ` ${neededText}` : '';
    parts.log(
      `The answer could not be written in channel ${job.place.channel}: ${messageOf(error)}.${needs} telos runs show has it.`,
    );
  }
}

/** Returns the skill that the person has chosen, if the run needs one. Throws the errors of Discord. */
async function oneRun(job: Job, parts: RunParts): Promise<{ skill: SkillRef; isChoice: true } | undefined> {
  const { telos, gateway } = parts;
  const { channel } = job.place;
  const answer = new GrowingAnswer(gateway, job.place);
  answer.state('begins');
  const shown = new RunShown(
    answer,
    post =>
      gateway.post(channel, post).then(
        () => undefined,
        error => parts.log(messageOf(error)),
      ),
    telos,
  );
  for await (const event of telos.run(job.request, discordHuman(job, parts), job.stop.signal)) {
    job.note(event);
    shown.add(withHookNotice(event));
    // The run goes on only when its next event is asked for.
    if (event.type === 'routed' && event.agent !== '' && !parts.isOffered(event.agent)) {
      job.stop.abort();
      answer.add(`**${plainText(event.agent)} is not offered on Discord.**`);
    }
  }
  await answer.end(shown.closing);
  const choices = shown.choices.filter(({ agent }) => parts.isOffered(agent));
  if (choices.length > 0) return chooseSkill(choices, job, parts);
  if (shown.files.size > 0) void offerFiles(shown.runId, [...shown.files], job, parts);
  return undefined;
}

/** Shows the events of a run in its answer. */
class RunShown {
  runId = '';
  readonly files = new Set<string>();
  closing = '';
  choices: readonly SkillRef[] = [];
  readonly #answer: GrowingAnswer;
  readonly #post: (post: Post) => Promise<void>;
  readonly #telos: Telos;
  readonly #calls = new Map<string, ToolCall>();
  #usage: Usage | undefined;
  #skill = '';
  #warnings = 0;

  constructor(answer: GrowingAnswer, post: (post: Post) => Promise<void>, telos: Telos) {
    this.#answer = answer;
    this.#post = post;
    this.#telos = telos;
  }

  add(event: RunEvent): void {
    const answer = this.#answer;
    if (event.type === 'run_start') this.runId = event.runId;
    else if (event.type === 'routed') {
      this.#skill = event.skill ? `${event.agent}:${event.skill}` : '';
      answer.state(this.#skill || 'looks for a skill');
    } else if (event.type === 'notice') this.#warn(event);
    else if (event.type === 'text') answer.add(event.text);
    else if (event.type === 'tool_start') {
      this.#calls.set(event.call.id, event.call);
      answer.pause();
      answer.state(doing(event.call));
    } else if (event.type === 'tool_end') {
      for (const file of event.result.changedFiles ?? []) this.files.add(file);
      if (event.policy?.rule === 'surface.discord') this.#sayRefused(event.callId);
      answer.state('thinks');
    } else if (event.type === 'retry') answer.state(`tries again in ${Math.ceil(event.waitMs / 1000)} s`);
    else if (event.type === 'usage') this.#usage = addedUsage(this.#usage, event.usage);
    else if (event.type === 'run_end') this.#end(event);
  }

  #warn({ level, message }: Extract<RunEvent, { type: 'notice' }>): void {
    if (level === 'warning' && this.#warnings++ < mostWarnings)
      void this.#post({ content: `⚠ ${plainText(message, 800)}` });
  }

  /** Says which command did not run, and how its owner lets it. */
  #sayRefused(callId: string): void {
    const { input = {} } = this.#calls.get(callId) ?? {};
    const command = exactText(String(input['command'] ?? ''));
    const rule = `[[allow]]\nagent = ${JSON.stringify(this.#skill.split(':')[0])}\ntool = "run_command"\ncommand = ${JSON.stringify(command)}`;
    const said = 'Not run: from Discord, a command runs only by an exact rule.';
    const after = 'To allow exactly this one, its owner adds to policy.toml on the machine:';
    void this.#post(fitted(`**${said}**\n${after}`, [['rule', rule]], 'rule.txt'));
  }

  #end({ outcome, error, toolCalls, interrupted }: Extract<RunEvent, { type: 'run_end' }>): void {
    this.choices = error?.choices ?? [];
    if (interrupted) {
      this.#answer.pause();
      this.#answer.add(interruptedText);
    }
    if (error) {
      this.#answer.pause();
      this.#answer.add(`**${plainText(error.message, 1500)}**${remedyText(error.remedy)}`);
    } else if (this.#answer.isEmpty) this.#answer.add('(no output)');
    const cost = this.#usage?.cost;
    const parts = [
      this.#skill,
      outcome === 'completed' ? '' : outcome.replaceAll('_', ' '),
      toolCalls > 0 ? counted(toolCalls, 'tool call') : '',
      typeof cost === 'number' ? formatCost(cost) : '',
    ];
    this.closing = parts.filter(Boolean).join(' · ') || outcome;
    if (this.#telos.config.replayFile !== undefined) this.closing = `${this.closing} · a recording`;
  }
}

/** What a person can do, which is on the machine where the bot runs. */
function remedyText(remedy: ApprovalRequest['toAllow']): string {
  switch (remedy?.kind) {
    case 'set_key':
    case 'set_up_model':
      return '\nOn the machine of the bot, `telos key` sets a key.';
    case 'review_agent':
      return `\nOn the machine of the bot: telos trust ${plainText(shellWord(remedy.agent))}`;
    default:
      return '';
  }
}

/** What a call does, in few words: "read file notes.md". */
function doing({ name, input }: ToolCall): string {
  const about = input['path'] ?? input['command'] ?? input['url'] ?? input['pattern'] ?? '';
  const words = name.replaceAll('_', ' ');
  return typeof about === 'string' && about !== '' ? `${words} ${basename(about)}` : words;
}

async function chooseSkill(
  choices: readonly SkillRef[],
  { user, place, stop: { signal } }: Job,
  { questions }: RunParts,
): Promise<{ skill: SkillRef; isChoice: true } | undefined> {
  const named = choices.map(({ agent, skill }) => ({
    label: beginningOf(`${agent}:${skill}`, 75),
    skill: { agent, skill },
  }));
  const answer = await questions.ask({
    channel: place.channel,
    signal,
    mayAnswer: clicked => clicked === user,
    post: { content: '**Which skill?**' },
    choices: [...named.map(({ label }) => ({ label })), { label: 'None' }],
  });
  const chosen = named.find(({ label }) => label === answer?.label);
  return chosen && { skill: chosen.skill, isChoice: true };
}

/** Sends the files that the run has written, if an owner wants them. */
async function offerFiles(runId: string, files: readonly string[], job: Job, parts: RunParts): Promise<void> {
  const { channel } = job.place;
  try {
    const named = files.slice(0, mostFiles).map(file => `- ${plainText(file, 120)}`);
    const more =
      files.length > mostFiles ? [`- and ${files.length - mostFiles} more, which are not sent`] : [];
    const answer = await parts.questions.ask({
      channel,
      signal: job.stop.signal,
      mayAnswer: decider(job, parts),
      post: { content: ['**Written by this run**', ...named, ...more].join('\n') },
      choices: [{ label: 'Send here' }],
    });
    if (!answer) return;
    const sent = await asTheRunLeft(runId, files.slice(0, mostFiles), parts.telos);
    const content =
      sent.length > 0 ? counted(sent.length, 'file') : 'None of them can be read, or they are too large.';
    await parts.gateway.post(channel, { content, files: sent });
  } catch (error) {
    parts.log(`The files of a run could not be sent: ${messageOf(error)}`);
  }
}

/** Returns the files that are still as the run has left them, as many as Discord takes. */
async function asTheRunLeft(
  runId: string,
  wanted: readonly string[],
  { changes }: Telos,
): Promise<{ name: string; data: Buffer }[]> {
  const { files } = await changes.of(runId);
  const found: { name: string; data: Buffer }[] = [];
  let left = mostBytes;
  for (const { path, state, isRemoved } of files) {
    if (!wanted.includes(path) || isRemoved || state !== 'ready') continue;
    const { handle, size } = await openRegularFile(path);
    try {
      if (size > left) continue;
      found.push({ name: basename(path), data: await handle.readFile() });
      left -= size;
    } finally {
      await handle.close();
    }
  }
  return found;
}
