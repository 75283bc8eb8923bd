/**
 * Records a model's turns in a file and replays them. A recording answers to what tools found in one folder, so it plays only where
 * they find the same.
 */

import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { Message, ToolResultBlock, ToolUseBlock } from '@telos/protocol/run';
import { type Sentence, sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import type { CompletionRequest, Provider, StreamEvent, TokenCount, ToolDefinition } from '../core/ports.ts';
import { isInside } from '../files/paths.ts';
import { mapStrings } from '../redact.ts';
import {
  type RecordedRun,
  type RecordedTurn,
  type RecordingHeader,
  type RunTape,
  readRecording,
  type TapedCall,
  writeRecording,
} from './recordingFile.ts';
import { digestsOf, type Places } from './requestDigest.ts';
import { pause } from './turn.ts';

/** What a recording says besides the turns. */
export interface RecordOptions {
  header?: Pick<RecordingHeader, 'skillDigest' | 'eval'>;
  /** Folders of the run besides its working folder and that of its skill. */
  places?: Places;
  /** Hides secrets in all that is written. */
  redact?: (text: string) => string;
  /** Returns what a turn costs now, as prices change. */
  priceOf?: (tokens: TokenCount) => number | 'unknown';
}

export interface Recorder {
  /** Passes all events through and records them. Throws TelosError `config` if the file cannot be written. */
  provider: Provider;
  /** Records how calls ended that no replay can repeat. */
  tape: RunTape;
}

/** Returns what records a run. After each complete turn it rewrites the file: the header, then all turns so far. A turn that fails is not written. */
export function openRecorder(
  inner: Provider,
  file: string,
  run: RecordedRun,
  { header: more, places, redact = text => text, priceOf = () => 'unknown' }: RecordOptions = {},
): Recorder {
  let header: RecordingHeader | undefined;
  const turns: RecordedTurn[] = [];
  let taped: TapedCall[] = [];
  const serverTools: ToolDefinition[] = [];
  const write = (): Promise<void> => {
    const known = { ...header, ...(serverTools.length > 0 && { serverTools }) };
    return writeRecording(
      file,
      [known, ...turns].map(line => JSON.stringify(mapStrings(line, redact))),
    );
  };
  const begin = ({ workingDir }: CompletionRequest): RecordingHeader => ({
    format: 'telos-recording',
    version: 2,
    ...run,
    provider: inner.name,
    model: inner.model,
    recordedAt: new Date().toISOString(),
    ...(workingDir && { folder: folderDigest({ workingDir }) }),
    ...more,
  });
  const provider: Provider = {
    ...inner,
    async *streamCompletion(request, signal) {
      if (request.isAside) return yield* inner.streamCompletion(request, signal);
      header ??= begin(request);
      const last = turns.at(-1);
      if (last && taped.length > 0) last.tools = taped;
      taped = [];
      const results = lastResults(request.messages).map(resultDigest);
      const digests = digestsOf(
        { ...request, messages: mapStrings(request.messages, redact) },
        inner.model,
        placesOf(request, places),
      );
      const turn: RecordedTurn = {
        turn: turns.length + 1,
        ...digests,
        ...(results.length > 0 && { results }),
        events: [],
      };
      for await (const event of inner.streamCompletion(request, signal)) {
        if (event.type !== 'retry' && event.type !== 'spent') turn.events.push(priced(event, priceOf));
        // Written before `done` is passed on, since the caller may stop reading after that event.
        if (event.type === 'done') {
          turns.push(turn);
          await write();
        }
        yield event;
      }
    },
  };
  const tape: RunTape = {
    endOf: () => undefined,
    keep: ended => void taped.push(ended),
    keepServers: tools => void serverTools.splice(0, serverTools.length, ...tools),
  };
  return { provider, tape };
}

/** Returns the folders that are digested by their names. */
export const placesOf = ({ workingDir, skillDir }: CompletionRequest, more: Places = {}): Places => ({
  work: workingDir,
  skill: skillDir,
  ...more,
});

/** Returns the event with what the turn has cost. */
function priced(event: StreamEvent, priceOf: (tokens: TokenCount) => number | 'unknown'): StreamEvent {
  if (event.type !== 'done' || !event.usage) return event;
  const charged = priceOf(event.usage);
  return charged === 'unknown' ? event : { ...event, usage: { ...event.usage, charged } };
}

/** Default pause between two deltas, in milliseconds: quick, but visibly streamed. */
const standardPaceMs = 14;
/** Upper bound of all pauses of one turn, in milliseconds; a longer text is played faster. */
const longestTurnMs = 4_000;

/**
 * Returns a provider that plays `file`. The number of the model's messages in the request selects the turn, so that no state
 * is kept between requests. Token counts are left out: a recording costs nothing. A turn throws TelosError `provider` if the
 * calls before it returned something else than was recorded, or if it acts in a folder that is not known to be the same. Throws
 * TelosError `config` if the file cannot be read. The message names the file, and the line if its content is invalid.
 */
export async function openReplay(file: string, paceMs = standardPaceMs): Promise<Provider> {
  return replayOf(file, paceMs, false);
}

/**
 * Returns a provider that plays `<key>.jsonl` of a folder, the recording of one step of a plan. It acts in any folder, since each
 * attempt works in a fresh one. Throws TelosError `config` if the file cannot be read.
 */
export async function openStepReplay(folder: string, key: string): Promise<Provider> {
  return replayOf(join(folder, `${basename(key)}.jsonl`), 0, true);
}

function replayOf(file: string, paceMs: number, isAnywhere: boolean): Provider {
  const { header, turns } = readRecording(file);
  return {
    name: 'replay',
    model: header.model,
    recording: { model: header.model, recordedAt: header.recordedAt },
    async *streamCompletion(request, signal) {
      signal.throwIfAborted();
      const position = request.messages.filter(message => message.role === 'assistant').length;
      const turn = turns[position];
      if (!turn) throw noSuchTurn(file, position + 1, turns.length);
      checkResults(turn, request, file);
      if (!isAnywhere && turn.events.some(acts) && !isSameFolder(header, turns, request)) throw otherFolder();
      const step = Math.min(paceMs, longestTurnMs / turn.events.length);
      for (const event of turn.events) {
        if (step > 0) await pause(step, signal);
        signal.throwIfAborted();
        yield event.type === 'done' ? { type: 'done', stopReason: event.stopReason } : event;
      }
    },
  };
}

/**
 * Returns a provider that plays the skill's own `recording.jsonl`. If the file is missing, the provider throws when it is
 * used. Throws TelosError `config` if the file cannot be read.
 */
export async function openSkillReplay(skillDir: string, paceMs = standardPaceMs): Promise<Provider> {
  const file = join(skillDir, 'recording.jsonl');
  const found = await access(file).then(
    () => true,
    () => false,
  );
  if (found) return openReplay(file, paceMs);
  return speechless(sentence('No model is set up, so the skill {0} cannot run.', basename(skillDir)));
}

/** Returns a provider for when the skill is not known yet: the `skillDir` of each request selects the recording. */
export function replayBySkill(paceMs = standardPaceMs): Provider {
  const provider: Provider = {
    name: 'replay',
    model: 'recording',
    async *streamCompletion(request: CompletionRequest, signal: AbortSignal) {
      const inner = request.skillDir
        ? await openSkillReplay(request.skillDir, paceMs)
        : speechless(sentence('No model is set up.'));
      yield* inner.streamCompletion(request, signal);
    },
  };
  return provider;
}

function speechless(why: Sentence): Provider {
  return {
    name: 'replay',
    model: 'none',
    // biome-ignore lint/correctness/useYield: it fails before its first event
    async *streamCompletion() {
      throw new TelosError('provider', [why], { remedy: { kind: 'set_up_model' } });
    },
  };
}

interface DoneCall {
  call: ToolUseBlock;
  result: ToolResultBlock;
}

/** Returns the calls of the model's last message with their results. Empty if it made none. */
const lastResults = (messages: readonly Message[]): DoneCall[] =>
  resultsAt(
    messages,
    messages.findLastIndex(({ role }) => role === 'assistant'),
  );

/** Returns the calls of the message at `index` with their results, which are in the next one. */
function resultsAt(messages: readonly Message[], index: number): DoneCall[] {
  const [asked, answered] = [messages[index]?.content, messages[index + 1]?.content];
  if (!Array.isArray(asked) || !Array.isArray(answered)) return [];
  const results = answered.filter(block => block.type === 'tool_result');
  return asked.flatMap(call => {
    const result = call.type === 'tool_use' && results.find(({ tool_use_id }) => tool_use_id === call.id);
    return result ? [{ call, result }] : [];
  });
}

/** Tools whose results say only whether they worked: a file that is written again was there before. */
const writes = ['write_file', 'edit_file'];

function resultDigest({ call, result }: DoneCall): string {
  if (result.is_error) return `error ${digest(result.content)}`;
  return writes.includes(call.name) ? 'written' : digest(result.content);
}

const digest = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url');

const folderDigest = ({ workingDir = '' }: Pick<CompletionRequest, 'workingDir'>): string =>
  digest(realPlaceOf(workingDir));

function realPlaceOf(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder; // It is made by the first write.
  }
}

/** Throws if the calls before this turn returned something else than was recorded. */
function checkResults({ results = [] }: RecordedTurn, { messages }: CompletionRequest, file: string): void {
  const found = lastResults(messages);
  if (results.length < found.length) {
    const why = sentence('The recording {0} does not say what the tools found.', file);
    throw new TelosError('provider', [why], { remedy: { kind: 'record_again' } });
  }
  for (const [index, done] of found.entries()) {
    if (isSameResult(results[index], done)) continue;
    // A file that could not be written was refused, or is in the way: that says nothing about the folder.
    throw writes.includes(done.call.name) ? otherCourse(done.call.name) : otherFolder();
  }
}

const isSameResult = (recorded: string | null | undefined, done: DoneCall): boolean =>
  recorded === null || recorded === resultDigest(done);

/** Tools that change nothing, wherever a recording plays. */
const looks = ['read_file', 'list_directory', 'search_files', 'glob'];

const acts = (event: StreamEvent): boolean => event.type === 'tool_call' && !looks.includes(event.call.name);

/**
 * Returns true if the run works in the folder of the recording, or has read the same file as the recording in its own. Files of
 * the skill do not count, since they are the same everywhere.
 */
function isSameFolder(
  { folder }: Pick<RecordingHeader, 'folder'>,
  turns: readonly RecordedTurn[],
  request: CompletionRequest,
): boolean {
  const { workingDir, skillDir, messages } = request;
  if (workingDir === undefined) return false;
  if (folder === folderDigest(request)) return true;
  const place = realPlaceOf(workingDir);
  const isOwn = ({ call }: DoneCall): boolean => {
    const path = resolve(place, String(call.input['path']));
    const ofSkill = skillDir !== undefined && isInside(realPlaceOf(skillDir), path);
    return call.name === 'read_file' && isInside(place, path) && existsSync(path) && !ofSkill;
  };
  const asked = messages.flatMap(({ role }, index) => (role === 'assistant' ? [index] : []));
  return asked.some((index, position) =>
    resultsAt(messages, index).some((done, which) => {
      const { is_error, content } = done.result;
      return (
        !is_error &&
        content !== '' &&
        isOwn(done) &&
        turns[position + 1]?.results?.[which] === resultDigest(done)
      );
    }),
  );
}

const otherFolder = (): TelosError => stopped(sentence('This recording was made in another folder.'));

const otherCourse = (tool: string): TelosError =>
  stopped(sentence('This recording has no answer to what {0} returned.', tool));

const stopped = (why: Sentence): TelosError =>
  new TelosError('provider', [why, sentence('Set up a model to run it here.')], {
    remedy: { kind: 'set_up_model' },
  });

function noSuchTurn(file: string, wanted: number, held: number): TelosError {
  const why = sentence(
    'The recording {0} has only {1} turns, and the run needs turn {2}.',
    file,
    held,
    wanted,
  );
  return new TelosError('provider', [why, sentence('Start a new conversation.')], {
    remedy: { kind: 'set_up_model' },
  });
}
