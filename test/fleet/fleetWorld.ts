/** Workers and suites as a team has them: each a process of the built command line with a home of its own, over one database. */
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { queueOf } from '../../src/fleet/fleetDatabase.ts';
import { versionKey } from '../../src/fleet/presence.ts';
import { type CliHome, cliHome, packageVersion, program, type RunningCli } from '../cli/cliProcess.ts';
import type { ReceivedRequest } from '../fakes/loopback.ts';
import { type OpenaiTurn, startOpenaiServer } from '../fakes/openaiServer.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { type Postgres, startPostgres } from './postgres.ts';

const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));

export const skill = 'skills/notes/SKILL.md';
export const evals = 'skills/notes/evals/evals.json';
export const recordings = 'skills/notes/evals/recordings';

const checks = [
  { file: 'out.md', matches: '^Summary' },
  { files_changed: ['out.md'] },
  { tool: 'write_file', times: { min: 1, max: 1 } },
];

/** Returns the files of a home with a skill that has so many evals. */
export const notes = (count = 1): Record<string, string> => ({
  [skill]: '---\nname: notes\ndescription: Sums up notes\n---\nAlways begin with the word Summary.\n',
  'skills/notes/evals/files/notes.md': 'Buy milk\n',
  [evals]: JSON.stringify({
    skill_name: 'notes',
    evals: Array.from({ length: count }, (_, index) => ({
      id: index + 1,
      prompt: `Sum up notes.md, ${index + 1}`,
      expected_output: 'A summary',
      expectations: [],
      files: ['evals/files/notes.md'],
      checks,
    })),
  }),
});

const resultsIn = ({ body }: ReceivedRequest): number =>
  body.messages.filter(({ role }: { role: string }) => role === 'tool').length;

/** The words of the skill decide what this model writes. */
export function model(request: ReceivedRequest): OpenaiTurn {
  const said = JSON.stringify(request.body.messages);
  switch (resultsIn(request)) {
    case 0:
      return { toolCalls: [{ name: 'read_file', input: { path: 'notes.md' } }] };
    case 1: {
      const content = said.includes('begin with the word Summary') ? 'Summary: milk' : 'milk';
      return { toolCalls: [{ name: 'write_file', input: { path: 'out.md', content } }] };
    }
    default:
      return { text: ['Wrote ', 'out.md'] };
  }
}

export interface FleetHome extends CliHome {
  /** Accepts the agent, as its owner does. */
  trust(): Promise<void>;
  /** Starts a worker, and resolves when it takes jobs. */
  worker(
    args?: readonly string[],
    env?: Record<string, string | undefined>,
    program?: string,
  ): Promise<RunningCli>;
  suite(args: readonly string[], env?: Record<string, string | undefined>): RunningCli;
}

export interface FleetWorld {
  postgres: Postgres;
  /** The command line that finds the packages which a team installs with it. */
  program: string;
  /** Returns the same of another version. */
  otherVersion(version: string): string;
  /** Writes a job for a worker into the database by hand. `input` is the text of the row. Returns its key. */
  forge(
    worker: string,
    input: string | undefined,
    more?: { workflow?: string; version?: string },
  ): Promise<string>;
  home(files?: Record<string, string>): FleetHome;
  /** A model that answers, for workers and for runs on one machine. */
  serve(turns: (request: ReceivedRequest) => OpenaiTurn): Promise<Record<string, string>>;
  requests(): number;
  /** Ends all that was started, but the database. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** A copy of what was built, beside the packages that a team installs with it. */
function fleetProgram(): { file: string; folder: TempFolder } {
  const folder = tempFolder();
  cpSync(dirname(dirname(program())), folder.path, { recursive: true });
  symlinkSync(modules, join(folder.path, 'node_modules'));
  return { file: join(folder.path, 'dist/cli.js'), folder };
}

export async function openFleet(): Promise<FleetWorld> {
  const { file, folder } = fleetProgram();
  const copies = [folder];
  const postgres = await startPostgres();
  const homes: CliHome[] = [];
  let forged = 0;
  let running: RunningCli[] = [];
  let server: Awaited<ReturnType<typeof startOpenaiServer>> | undefined;
  const world: FleetWorld = {
    postgres,
    program: file,
    otherVersion(version) {
      const other = fleetProgram();
      copies.push(other.folder);
      const manifest = join(other.folder.path, 'package.json');
      const text = readFileSync(manifest, 'utf8');
      writeFileSync(manifest, text.replace(/"version": "[^"]+"/, `"version": "${version}"`));
      return other.file;
    },
    home(files = notes()) {
      const home = cliHome(files);
      homes.push(home);
      const start = (
        args: readonly string[],
        env: Record<string, string | undefined>,
        copy = file,
      ): RunningCli => {
        const one = home.start(args, {
          env: { TELOS_DATABASE_URL: postgres.url, ...env },
          program: copy,
        });
        running.push(one);
        return one;
      };
      return {
        ...home,
        async trust() {
          const { code, stderr } = await home.runProcess(['trust', 'notes', '--yes']);
          if (code !== 0) throw new Error(stderr);
        },
        async worker(args = [], env = {}, copy) {
          const worker = start(['worker', ...args], env, copy);
          await worker.says('takes jobs');
          return worker;
        },
        suite: (args, env = {}) => start(['eval', 'notes', '--workers', ...args], env),
      };
    },
    async forge(worker, input, { workflow = 'telos.eval', version = versionKey(packageVersion()) } = {}) {
      const key = `forged-${++forged}`;
      const row = [key, workflow, queueOf(worker), version, Date.now()];
      const status = `insert into dbos.workflow_status (workflow_uuid, status, name, class_name, config_name, queue_name, application_version, application_name, created_at, updated_at, priority, recovery_attempts, serialization)
         values ($1, 'ENQUEUED', $2, '', '', $3, $4, 'telos', $5, $5, 0, 0, 'telos-json')`;
      if (input === undefined) await postgres.query(status, row);
      // In one statement, as the engine does it in one transaction: a worker may look in between.
      else
        await postgres.query(
          `with status as (${status}) insert into dbos.workflow_input (workflow_uuid, inputs) values ($1, $6)`,
          [...row, input],
        );
      return key;
    },
    async serve(turns) {
      await server?.close();
      server = await startOpenaiServer({ turns });
      return { OPENROUTER_BASE_URL: server.url, OPENROUTER_API_KEY: 'sk-test-of-the-worker' };
    },
    requests: () => server?.requests.length ?? 0,
    async clear() {
      for (const { child } of running) child.kill('SIGKILL');
      await Promise.all(running.map(({ result }) => result));
      running = [];
      for (const home of homes.splice(0)) home.remove();
      await server?.close();
      server = undefined;
      // What was killed here is not silent for others.
      for (const table of ['workflow_status', 'queues'])
        await postgres.query(`delete from dbos.${table}`).catch(() => undefined);
    },
    async close() {
      await world.clear();
      await postgres.remove();
      for (const copy of copies) copy.remove();
    },
  };
  return world;
}

/** Returns the name that a worker has given itself: the one with the latest sign, as one that was killed may have left its own. */
export async function workerName({ postgres }: FleetWorld): Promise<string> {
  const [row] = await postgres.query(
    "select workflow_uuid from dbos.workflow_status where workflow_uuid like 'telos-worker-%' order by created_at desc limit 1",
  );
  return String(row?.['workflow_uuid']).slice('telos-worker-'.length);
}

/** Returns all files of results below a folder by their path, without what differs in each run: times, and who made it. */
export function resultFiles(folder: string): Record<string, string> {
  if (!existsSync(folder)) return {};
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
  return Object.fromEntries(
    names
      .map(({ parentPath, name }): [string, string] => {
        const path = join(parentPath, name);
        const text = readFileSync(path, 'utf8');
        return [path.slice(folder.length), name.endsWith('.json') ? timeless(text) : text];
      })
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

const times =
  /^(?:timestamp|recordedAt|durationMs|duration_ms|total_duration_seconds|time_seconds|ms|worker)$/;

function timeless(text: string): string {
  return JSON.stringify(
    JSON.parse(text, (key, value) => (times.test(key) ? undefined : value)),
    null,
    1,
  );
}
