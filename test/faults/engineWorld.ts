/** Folders with one agent, and an engine on them whose model is brought by the test. */

import type { Human, Provider } from '../../src/engine/core/ports.ts';
import { allowAll } from '../../src/engine/human.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { RunEvent } from '../../src/protocol/run.ts';
import { openMachine } from '../harness/machine.ts';

export interface EngineWorld {
  path: string;
  workDir: string;
  dataDir: string;
  /** An engine whose every run asks `provider`. */
  open(provider: () => Provider): Telos;
  remove(): void;
}

/** Folders that lie elsewhere than usual, absolute. */
export interface Elsewhere {
  workDir?: string;
  dataDir?: string;
  configDir?: string;
  skillsDir?: string;
}

/** `files` are added to a skill called kickoff of an agent called kairos, whose folder is `skills/kairos` and whose files lie in `work`. */
export function engineWorld(
  files: Readonly<Record<string, string | Uint8Array>> = {},
  elsewhere: Elsewhere = {},
): EngineWorld {
  const { workDir: work, dataDir: data, configDir: config, skillsDir: skills } = elsewhere;
  const machine = openMachine({
    files: {
      'skills/kairos/agent.toml': 'working_dir = "."\n',
      'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Plans the day\n---\nDo what is asked.\n',
      'work/.keep': '',
      ...files,
    },
    folders: {
      ...(work && { work }),
      ...(data && { data }),
      ...(config && { config }),
      ...(skills && { skills }),
    },
  });
  const loaded = machine.loadConfig({ TELOS_PROVIDER: 'brought', TELOS_ROUTING_MODE: 'name' });
  return {
    path: machine.root,
    workDir: machine.work,
    dataDir: machine.data,
    open: provider =>
      Telos.open(loaded, {
        providers: { brought: { model: async () => 'script', create: async () => provider() } },
      }),
    remove: machine.remove,
  };
}

/** One run of the skill to its end. */
export async function eventsOf(
  telos: Telos,
  text: string,
  human: Human = allowAll,
  signal: AbortSignal = new AbortController().signal,
): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  const skill = { agent: 'kairos', skill: 'kickoff' };
  for await (const event of telos.run({ text, skill }, human, signal)) events.push(event);
  return events;
}

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;

export const endOf = (events: readonly RunEvent[]): EventOf<'run_end'> =>
  events.findLast(event => event.type === 'run_end') as EventOf<'run_end'>;

export const ofType = <Type extends RunEvent['type']>(
  events: readonly RunEvent[],
  type: Type,
): EventOf<Type>[] => events.filter((event): event is EventOf<Type> => event.type === type);
