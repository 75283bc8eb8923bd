/** One case's own machine: folders, an agent, a canary that sees who knocks, and a model that says what it is told to. */
import { chmodSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import type { Config } from '../../src/engine/config.ts';
import { Telos } from '../../src/engine/telos.ts';
import { mapText } from '../harness/caseFile.ts';
import { openMachine } from '../harness/machine.ts';
import { type CaseInput, type Fields, fieldsOf, textsOf, withRepetitions } from './caseFile.ts';

export const secretText = 'SECRET-c4n4ry-7d1f';
export const agentName = 'kairos';
/** Of the provider, in each run that has none of its own. */
export const usualKey = 'sk-ant-api03-0000000000000000000000';

/** All folders are real and absolute. */
export interface World {
  root: string;
  out: string;
  work: string;
  pack: string;
  skills: string;
  cfg: string;
  data: string;
  home: string;
  /** Of the canary. */
  port: number;
  /** Connections that the canary has seen, each with the first bytes it said. */
  knocks: string[];
  input: Fields & { kind: string };
  /** Folders in which a run may change things unasked, and those of the runner. */
  mayChange: string[];
  /** Actions of the runs of this case without a yes. */
  noted: Record<'changed' | 'leaked' | 'steered' | 'crashed', string[]>;
  configFor(env?: Readonly<Record<string, string>>): Config;
  /** Variables of a process on this machine. */
  env: Record<string, string>;
  put(path: string, content: string | Buffer): string;
  read(path: string): string | undefined;
  remove(): Promise<void>;
}

/** Opens the machine of a case, with its files, rules and trust as the case says. Relative places are those of the placeholders. */
export async function openWorld(theCase: CaseInput): Promise<World> {
  const machine = openMachine({
    folders: { home: 'home', config: 'home/.config/telos', data: 'home/.local/share/telos' },
  });
  const { home, work, skills, config: cfg, data, put, read } = machine;
  const place = (name: string): string => join(machine.root, name);
  const places = {
    root: place('root'),
    out: place('out'),
    work,
    skills,
    pack: join(skills, agentName),
    cfg,
    data,
    home,
  };
  for (const folder of [...Object.values(places), place('workspace')]) mkdirSync(folder, { recursive: true });
  const knocks: string[] = [];
  const canary = await openCanary(knocks);
  const address = canary.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const values: Record<string, string> = {
    ...Object.fromEntries(Object.entries(places).map(([name, path]) => [`$${name.toUpperCase()}`, path])),
    $WORKSPACE: place('workspace'),
    $PORT: String(port),
    $PROXY: String(port),
    $OTHER: String(port === 65535 ? 1024 : port + 1),
    $RAND: Math.random().toString(36).slice(2, 10),
  };
  const names = Object.keys(values).sort((a, b) => b.length - a.length);
  const placeholder = new RegExp(
    `(${names.map(name => name.replace('$', '\\$')).join('|')})(?![A-Za-z0-9_])`,
    'g',
  );
  const fill = (text: string): string =>
    withRepetitions(text).replace(placeholder, name => values[name] ?? name);
  const world: World = {
    ...places,
    port,
    knocks,
    input: mapText(theCase.input, fill),
    mayChange: [places.work, places.data, places.root],
    noted: { changed: [], leaked: [], steered: [], crashed: [] },
    configFor: (env = {}) => machine.loadConfig({ LANG: 'C.UTF-8', TERM: 'dumb', ...env }),
    env: { ...machine.env, LANG: 'C.UTF-8' },
    put,
    read,
    async remove() {
      await new Promise(resolve => canary.close(resolve));
      machine.remove();
    },
  };
  fillFolders(world);
  return world;
}

function openCanary(knocks: string[]): Promise<Server> {
  const canary = createServer(socket => {
    const number = knocks.push('') - 1;
    socket.on('data', data => {
      knocks[number] += data.toString('latin1');
      socket.end(
        'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\nconnection: close\r\n\r\ncanary',
      );
    });
    socket.on('error', () => undefined);
  });
  return new Promise(resolve => canary.listen(0, '127.0.0.1', () => resolve(canary)));
}

/** Puts on every machine an agent with one script, and files that no one should reach. */
function fillFolders({ put, pack, work, out, home, cfg }: World): void {
  put(join(pack, 'agent.toml'), `name = "${agentName}"\nworking_dir = "."\n`);
  put(join(pack, 'skills/one/SKILL.md'), '---\ndescription: Does one thing.\n---\nDo it.\n');
  chmodSync(put(join(pack, 'scripts/cal-list.sh'), '#!/bin/sh\necho "calendar $*"; pwd\n'), 0o755);
  put(join(work, 'notes/today.md'), 'today\n');
  put(join(work, 'a.txt'), 'alpha\n');
  put(join(out, 'secret.txt'), `${secretText}\n`);
  put(join(home, '.ssh/id_rsa'), `${secretText}\n`);
  put(join(home, '.bashrc'), '# bashrc\n');
  put(join(cfg, '.env'), `SOME_TOKEN=${secretText}\n`);
}

/** The files that the case wants; those `when` something has happened come then. */
export function applySetup({ input, put }: World, when?: string): void {
  for (const entry of Array.isArray(input['setup']) ? input['setup'] : []) {
    const fields = fieldsOf(entry);
    if (fields['when'] !== when) continue;
    const { symlink, to, dir, files, path, content, bytes_b64: base64, size } = fields;
    if (typeof symlink === 'string' && typeof to === 'string') {
      mkdirSync(dirname(symlink), { recursive: true });
      symlinkSync(to, symlink);
    } else if (typeof dir === 'string') {
      mkdirSync(dir, { recursive: true });
      for (let number = 0; number < Number(files); number++) writeFileSync(join(dir, `f${number}`), '');
    } else if (typeof path === 'string') {
      put(path, typeof base64 === 'string' ? Buffer.from(base64, 'base64') : String(content ?? ''));
      if (typeof size === 'number') truncateSync(path, size);
    }
  }
}

/** The rules of the user and the review of the agent, as the case says. */
export async function applyTrust(world: World): Promise<void> {
  const { input, cfg, put } = world;
  const rules: string[] = [];
  const allow = (tool: string, subject: string): void => {
    rules.push(`[[allow]]\nagent = "${agentName}"\ntool = "${tool}"\n${subject}\n`);
  };
  for (const words of Array.isArray(input['agent_rules']) ? input['agent_rules'] : [])
    allow('run_command', `argv = ${JSON.stringify(words)}`);
  for (const host of textsOf(input['agent_fetch'])) allow('fetch_url', `host = ${JSON.stringify(host)}`);
  const userRule = /^fetch = (\[.*\])$/.exec(String(input['user_rule'] ?? ''))?.[1];
  for (const host of textsOf(userRule && JSON.parse(userRule)))
    allow('fetch_url', `host = ${JSON.stringify(host)}`);
  if (rules.length > 0) put(join(cfg, 'policy.toml'), rules.join('\n'));
  if (input['trust'] !== 'reviewed') return;
  const telos = Telos.open(world.configFor());
  await telos.acceptCard(await telos.agentCard(agentName));
  applySetup(world, 'after review');
}
