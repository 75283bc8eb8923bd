/**
 * Conversations at random: runs that are stopped at any event, gone on with from memory and from the store, edited, branched, compacted,
 * with pictures and skills that use skills, in a small context. A server that is as strict as the real one must not refuse a request.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { blocksOf } from '../../src/engine/core/messages.ts';
import { attachmentOf } from '../../src/engine/files/attachedFile.ts';
import { allowAll } from '../../src/engine/human.ts';
import { Conversation, storedConversation } from '../../src/engine/run/conversation.ts';
import type { RunRequest } from '../../src/engine/run/request.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { RunEvent } from '../../src/protocol/run.ts';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { type Machine, openMachine } from '../harness/machine.ts';
import { endOf } from './engineWorld.ts';
import { type Extent, type Figure, inLanes, seeded } from './figure.ts';
import type { Given } from './measurements.ts';
import { type Dice, diceOf, modelFiles, randomTurn, smallPicture } from './randomModel.ts';

/** A run that is not over after this time meets a server that is silent, and is stopped. In milliseconds. */
const longestRun = 4_000;
const lanes = 6;

interface Seen {
  runs: number;
  requests: number;
  outcomes: Map<string, number>;
  ways: Map<string, number>;
  refused: string[];
  internal: string[];
  forgotten: string[];
}

export async function talkFigures(extent: Extent, { seed }: Given): Promise<Figure[]> {
  const runs = extent === 'whole' ? 100 : 10;
  const seen: Seen = {
    runs: 0,
    requests: 0,
    outcomes: new Map(),
    ways: new Map(),
    refused: [],
    internal: [],
    forgotten: [],
  };
  await inLanes(
    Array.from({ length: lanes }, (_, lane) => seed * lanes + lane),
    lanes,
    laneSeed => talkOn(laneSeed, runs, seen),
  );
  const on = `seed ${seed}: ${seen.runs} runs (${counted(seen.outcomes)}), ${seen.requests} requests (${counted(seen.ways)})`;
  const figure = (name: string, found: readonly string[]): Figure => ({
    name: `conversations at random: ${name}`,
    value: `${on}: ${found.length}${found.length > 0 ? ` (${found.slice(0, 2).join('; ')})` : ''}`,
    limit: 'none',
    met: found.length === 0 && seen.requests > seen.runs,
  });
  return [
    figure('requests that the server refuses', seen.refused),
    figure('runs that end by a defect', seen.internal),
    figure('conversations that are another one when they are read from the store', seen.forgotten),
  ];
}

const counted = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .sort()
    .map(([name, count]) => `${count} ${name}`)
    .join(', ');

const count = (counts: Map<string, number>, name: string): void =>
  void counts.set(name, (counts.get(name) ?? 0) + 1);

async function talkOn(seed: number, runs: number, seen: Seen): Promise<void> {
  const ofModel = diceOf(seeded(seed + 0x5eed));
  const server = await startAnthropicServer({ turns: request => randomTurn(ofModel, request) });
  const machine = openMachine({
    files: {
      'skills/kairos/agent.toml': 'working_dir = "."\n',
      'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Plans the day\n---\nDo what is asked.\n',
      ...modelFiles,
    },
  });
  try {
    const talk = new RandomTalk(diceOf(seeded(seed)), machine, server);
    for (let run = 0; run < runs; run++) {
      const { how, events } = await talk.next(run, seen);
      const { outcome, error } = endOf(events);
      const at = `lane seed ${seed}, run ${run}, ${how}`;
      seen.runs++;
      count(seen.outcomes, outcome);
      count(seen.ways, how);
      seen.requests += server.requests.splice(0).length;
      seen.refused.push(...server.refused.splice(0).map(why => `${at}: ${why}`));
      if (error?.code === 'internal') seen.internal.push(`${at}: ${error.message}`);
    }
  } finally {
    await server.close();
    machine.remove();
  }
}

class RandomTalk {
  readonly #dice: Dice;
  readonly #telos: Telos;
  readonly #dataDir: string;
  #conversation = new Conversation();
  #latest: string | undefined;

  constructor(dice: Dice, machine: Machine, server: FakeServer) {
    this.#dice = dice;
    this.#dataDir = machine.data;
    const env = {
      ANTHROPIC_API_KEY: 'key-for-tests-0123456789',
      ANTHROPIC_BASE_URL: server.url,
      TELOS_CONTEXT_WINDOW: '30000',
      TELOS_ROUTING_MODE: 'name',
    };
    this.#telos = Telos.open(machine.loadConfig(env));
  }

  /** Goes on with the conversation in some way. Returns which, and the events of the run. */
  async next(run: number, seen: Seen): Promise<{ how: string; events: RunEvent[] }> {
    const how = await this.#changed(seen);
    const request = this.#request(run, how);
    const stop = new AbortController();
    const stopAt = this.#dice.oneIn(3) ? Number.POSITIVE_INFINITY : 1 + this.#dice.below(25);
    const timer = setTimeout(() => stop.abort(), longestRun);
    const events: RunEvent[] = [];
    for await (const event of this.#telos.run(this.#conversation.next(request), allowAll, stop.signal)) {
      events.push(event);
      this.#conversation.note(event);
      if (events.length === stopAt) void delay(this.#dice.below(20)).then(() => stop.abort());
      if (event.type === 'run_start') this.#latest = event.runId;
    }
    clearTimeout(timer);
    return { how, events };
  }

  async #changed(seen: Seen): Promise<string> {
    const [dice, conversation] = [this.#dice, this.#conversation];
    if (conversation.isEmpty) return 'begun';
    const { length } = conversation.requests;
    const kind = dice.below(10);
    if (kind === 0 && length > 1) {
      this.#conversation = conversation.upTo(dice.below(length), false);
      return 'edited';
    }
    if (kind === 1 && length > 0) {
      this.#conversation = conversation.upTo(1 + dice.below(length), true);
      return 'branched';
    }
    if (kind <= 4 && this.#latest) {
      const stored = await storedConversation(this.#latest, this.#dataDir);
      this.#compare(stored?.conversation, seen);
      this.#conversation = stored?.conversation ?? new Conversation();
      return 'from the store';
    }
    if (kind === 5) return 'compacted';
    if (kind === 6) return 'compaction undone';
    if (kind === 7 && dice.oneIn(3)) {
      this.#conversation = new Conversation();
      return 'begun';
    }
    return 'gone on';
  }

  /** Words and calls must be the same in both. Thoughts and notes of the engine itself may be left out with a run that was stopped. */
  #compare(stored: Conversation | undefined, seen: Seen): void {
    if (saidIn(stored) !== saidIn(this.#conversation)) seen.forgotten.push(`after the run ${this.#latest}`);
  }

  #request(run: number, how: string): RunRequest {
    const dice = this.#dice;
    const isNew = this.#conversation.isEmpty;
    if (!isNew && how === 'compacted') return { text: '/compact', change: { kind: 'compact', focus: '' } };
    if (!isNew && how === 'compaction undone') return { text: '/uncompact', change: { kind: 'restore' } };
    return {
      text: dice.oneIn(5) && !isNew ? '' : `request ${run}`,
      ...(isNew && { skill: { agent: 'kairos', skill: 'kickoff' } }),
      ...(dice.oneIn(6) && { attachments: [attachmentOf({ name: 'p.png', bytes: smallPicture })] }),
      origin: 'cli',
    };
  }
}

function saidIn(conversation: Conversation | undefined): string {
  const messages = conversation?.next({ text: 'x' }).conversation?.messages ?? [];
  const said = messages.flatMap(blocksOf).flatMap(block => {
    if (block.type === 'text') return block.text.startsWith('[Telos, not the person') ? [] : [block.text];
    if (block.type === 'tool_use') return [`call ${block.id} of ${block.name}`];
    return block.type === 'tool_result' ? [`result of ${block.tool_use_id}`] : [];
  });
  return said.join('\n');
}
