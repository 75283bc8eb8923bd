/** Plays a recording for an eval: only if each request is the one that was recorded. */

import { TelosError } from '@telos/engine/errors';
import { isBuiltin } from '@telos/engine/policy';
import {
  asksClock,
  type CompletionRequest,
  digestsOf,
  type Places,
  type Provider,
  placesOf,
  type Recording,
  type RequestPart,
  type RunTape,
  requestParts,
  type TapedCall,
  type TokenCount,
} from '@telos/engine/providers';
import { sentence } from '@telos/protocol/text';

/** Why a recording says nothing any more. Since version 2 each turn knows which part of its request was what. */
export type StaleReason = RequestPart | 'none' | 'format' | 'inputs' | 'skill' | 'turns' | 'judge';

export interface Stale {
  reason: StaleReason;
  /** Counts from 1. Undefined if no turn had to be looked at. */
  turn?: number;
}

const words: Readonly<Record<StaleReason, string>> = {
  none: 'nothing is recorded',
  format: 'the recording has an older format',
  inputs: "the eval's request or files changed",
  skill: "the skill's files changed",
  turns: 'the run takes another number of turns',
  judge: 'what the judge is asked changed',
  instructions: 'what Telos tells the model changed: its own text, or what this machine lacks',
  tools: 'the list of tools changed',
  request: 'the text of the skill or the request changed',
  results: 'what a tool returned changed',
  limits: 'the limit of an answer changed',
};

/** Returns the reason in words: "the skill's files changed". */
export const staleText = ({ reason, turn }: Stale): string =>
  `${words[reason]}${turn === undefined ? '' : ` (turn ${turn})`}`;

export interface StrictReplay {
  provider: Provider;
  tape: RunTape;
  /** Returns why the recording does not answer what was asked, or undefined while it does. Asked again when the run has ended. */
  stale(): Stale | undefined;
}

/** Returns a provider that plays the recording. `places` are the folders of this run. */
export function strictReplay({ header, turns }: Recording, places: Places): StrictReplay {
  let played = 0;
  let stale: Stale | undefined;
  const tape = replayTape(
    turns.flatMap(({ tools = [] }) => tools),
    header.serverTools ?? [],
  );
  const fail = (found: Stale): TelosError => {
    stale ??= found;
    return new TelosError('provider', [sentence('The recording does not answer this request.')]);
  };
  const provider: Provider = {
    name: 'replay',
    model: header.model,
    recording: { model: header.model, recordedAt: header.recordedAt },
    async *streamCompletion(request: CompletionRequest, signal) {
      signal.throwIfAborted();
      const turn = turns[played];
      if (!turn) throw fail({ reason: 'turns', turn: played + 1 });
      const now = digestsOf(request, header.model, placesOf(request, places));
      if (turn.requestSha256 !== now.requestSha256) {
        const part = requestParts.find(name => turn.parts?.[name] !== now.parts[name]);
        throw fail({ reason: part ?? 'request', turn: played + 1 });
      }
      played++;
      for (const event of turn.events) {
        signal.throwIfAborted();
        yield event.type === 'done' ? { type: 'done', stopReason: event.stopReason } : event;
      }
    },
  };
  return {
    provider,
    tape,
    stale: () => stale ?? (played < turns.length ? { reason: 'turns', turn: played + 1 } : undefined),
  };
}

/** Returns a tape that answers all calls that would leave the machine, in the order in which they were recorded. */
function replayTape(calls: readonly TapedCall[], servers: RunTape['servers'] & object): RunTape {
  const left = [...calls];
  return {
    servers: servers.filter(({ name }) => !isBuiltin(name)),
    endOf(call) {
      // What can be done again is done, whatever a recording says of it.
      if (isBuiltin(call.name) && call.name !== 'fetch_url' && !asksClock(call)) return undefined;
      const same = left.findIndex(({ callId }) => callId === call.id);
      const found = same >= 0 ? same : left.findIndex(({ name }) => name === call.name);
      const [taped] = found >= 0 ? left.splice(found, 1) : [];
      return taped ?? { result: { content: 'This call is not in the recording.', isError: true } };
    },
    keep: () => undefined,
    keepServers: () => undefined,
  };
}

/** Returns what the turns of a recording have used, with their cost if all of them say it. */
export function recordedUse({ turns }: Recording): { tokens: number; cost: number | undefined } {
  const used = turns.flatMap(({ events }) =>
    events.flatMap(event => (event.type === 'done' && event.usage ? [event.usage] : [])),
  );
  const tokensOf = (one: TokenCount): number =>
    one.inputTokens + one.outputTokens + one.cacheReadTokens + one.cacheWriteTokens;
  const costs = used.flatMap(({ charged }) => (charged === undefined ? [] : [charged]));
  return {
    tokens: used.reduce((sum, one) => sum + tokensOf(one), 0),
    cost: costs.length === used.length ? costs.reduce((sum, one) => sum + one, 0) : undefined,
  };
}
