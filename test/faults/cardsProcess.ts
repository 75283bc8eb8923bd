/**
 * Runs ordinary skills and counts what a person is asked: `node cardsProcess.ts auto|off [corpus]`, with commands in a box or
 * without; tells its parent. A process of its own, since here nothing reaches a network: a local server replaces every host.
 */
import dns from 'node:dns/promises';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import type { Human, Provider } from '../../src/engine/core/ports.ts';
import { openReplay } from '../../src/engine/providers/recording.ts';
import { Telos } from '../../src/engine/telos.ts';
import { findProgram } from '../../src/engine/tools/programPath.ts';
import { calls, done, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import {
  chosenSkills,
  type OrdinarySkill,
  reachesNoHost,
  sampleSkills,
  skillFolder,
  writtenSkills,
} from './ordinarySkills.ts';

export interface CountedRun {
  /** Questions, by rule and subject. */
  asked: string[];
  /** `completed`, or what was wrong, results of tools included. */
  outcome: string;
  /** Commands that ran in the box, and those that ran outside of it. */
  boxed: number;
  outside: number;
}

export interface CountedSkill {
  name: string;
  kind: 'sample' | 'written' | 'corpus' | 'hostless';
  /** Whether its run gets no page and names no host. */
  reachesNoHost: boolean;
  /** Kinds of actions beyond reading and writing. */
  does: string[];
  /** The first, the second, and one whose command has other words behind it. */
  runs: CountedRun[];
}

const corpusCount = 20;
const [sandbox = 'off', corpus] = process.argv.slice(2);
const bubblewrap = findProgram('bwrap', { env: { PATH: process.env['PATH'] ?? '' } });
const server = http.createServer((_request, response) => response.end('A page.'));
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
standInForTheNetwork((server.address() as AddressInfo).port);
const counted: CountedSkill[] = [];
for (const skill of sampleSkills()) counted.push(await count(skill, 'sample'));
for (const skill of writtenSkills()) counted.push(await count(skill, 'written'));
for (const skill of corpus ? chosenSkills(corpus, corpusCount) : [])
  counted.push(await count(skill, 'corpus'));
for (const skill of corpus ? chosenSkills(corpus, corpusCount, reachesNoHost) : [])
  counted.push(await count(skill, 'hostless'));
server.close();
server.closeAllConnections();
process.send?.(counted, () => process.disconnect());

/** A name has a public address, and every connection ends here. */
function standInForTheNetwork(port: number): void {
  const plain = http.request.bind(http);
  const here = (options: http.RequestOptions): http.ClientRequest => {
    const { lookup: _lookup, agent: _agent, ...rest } = options;
    return plain({ ...rest, protocol: 'http:', hostname: '127.0.0.1', host: '127.0.0.1', port });
  };
  http.request = here as typeof http.request;
  https.request = here as typeof https.request;
  dns.lookup = (async () => [{ address: '198.41.0.4', family: 4 }]) as unknown as typeof dns.lookup;
  syncBuiltinESMExports();
}

async function count(skill: OrdinarySkill, kind: CountedSkill['kind']): Promise<CountedSkill> {
  const [owner = '', id = ''] = skill.name.split('/');
  const prefixed = (prefix: string, files: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(files).map(([path, text]) => [`${prefix}/${path}`, text]));
  const place = `skills/${owner}/skills/${id}`;
  const programs = Object.fromEntries(skill.programs.map(name => [name, '#!/bin/sh\necho done\n']));
  const folder = tempFolder({
    [`skills/${owner}/agent.toml`]: 'working_dir = "."\n',
    ...prefixed(place, skill.files),
    ...prefixed('work', skill.work),
    ...prefixed('programs', programs),
  });
  const skillDir = join(folder.path, place);
  if (bubblewrap !== undefined) {
    mkdirSync(join(folder.path, 'programs'), { recursive: true });
    symlinkSync(bubblewrap, join(folder.path, 'programs/bwrap'));
  }
  for (const path of Object.keys(programs)) chmodSync(join(folder.path, 'programs', path), 0o755);
  for (const [path, text] of Object.entries(skill.files))
    if (text.startsWith('#!')) chmodSync(join(skillDir, path), 0o755);
  const wanted = skill.calls.map(({ tool, input }) => ({
    tool,
    input: JSON.parse(JSON.stringify(input).replaceAll(skillFolder, skillDir)) as typeof input,
  }));
  const provider = (more: string) => async (): Promise<Provider> =>
    skill.recording
      ? openReplay(join(skillDir, skill.recording), 0)
      : scriptedProvider([
          ...wanted.map(({ tool, input }, index) => {
            const command = input['command'];
            const said = command === undefined ? input : { command: `${command}${more}` };
            return [calls(`c${index}`, tool, said), done('tool_use')];
          }),
          [says('Done.'), done()],
        ]);
  try {
    const runs: CountedRun[] = [];
    for (const more of ['', '', ' again']) runs.push(await oneRun(folder.path, owner, id, provider(more)));
    const does = wanted.flatMap(({ tool, input }) => {
      if (tool === 'run_command') return `runs ${String(input['command']).replaceAll(skillDir, '.')}`;
      return tool === 'fetch_url' ? `gets ${String(input['url'])}` : [];
    });
    return {
      name: skill.name,
      kind,
      reachesNoHost: reachesNoHost(skill),
      runs,
      does: skill.recording ? ['plays its recording'] : does,
    };
  } finally {
    folder.remove();
  }
}

/** Telos anew, as after a start of the editor; the person answers with the most that is offered. */
async function oneRun(
  path: string,
  agent: string,
  skill: string,
  provider: () => Promise<Provider>,
): Promise<CountedRun> {
  const config = loadConfig({
    env: {
      PATH: join(path, 'programs'),
      HOME: join(path, 'home'),
      TELOS_SKILLS_DIR: join(path, 'skills'),
      TELOS_CONFIG_DIR: join(path, 'config'),
      TELOS_DATA_DIR: join(path, 'data'),
      TELOS_PROVIDER: 'brought',
      TELOS_SANDBOX: sandbox,
      TELOS_ROUTING_MODE: 'name',
    },
    home: join(path, 'home'),
    cwd: join(path, 'work'),
  });
  const telos = Telos.open(config, {
    providers: { brought: { model: async () => 'script', create: provider } },
  });
  const asked: string[] = [];
  const person: Human = {
    approve: async ({ rule, subject, scopes }) => {
      asked.push(`${rule} ${subject.replaceAll(path, '')}`);
      return { allow: true, scope: scopes.at(-1) ?? 'once' };
    },
    ask: async questions => questions.map(() => ''),
  };
  const problems: string[] = [];
  let [boxed, outside] = [0, 0];
  const request = { text: 'go on', skill: { agent, skill } };
  for await (const event of telos.run(request, person, new AbortController().signal)) {
    if (event.type === 'tool_end' && event.name === 'run_command' && event.policy?.rule !== 'run.read-only')
      event.policy?.boxed ? boxed++ : outside++;
    if (event.type === 'tool_end' && event.result.isError)
      problems.push(`${event.name}: ${event.result.content.slice(0, 200).replaceAll(path, '')}`);
    if (event.type === 'run_end' && event.outcome !== 'completed')
      problems.push(`${event.outcome}: ${event.error?.message}`);
  }
  return { asked, outcome: problems.length === 0 ? 'completed' : problems.join('; '), boxed, outside };
}
