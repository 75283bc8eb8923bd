/** Ordinary commands as data: each must do in the box what it does outside of it. */
import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { commandBox } from '../../../src/engine/box/commandBox.ts';
import { type BoxFinding, findBox } from '../../../src/engine/box/findBox.ts';
import { boxNetwork } from '../../../src/engine/box/forwarder.ts';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { RunMemory } from '../../../src/engine/policy/decision.ts';
import { unseen } from '../../../src/engine/run/commandChanges.ts';
import { landLayer } from '../../../src/engine/run/landLayer.ts';
import { runLine } from '../../../src/engine/tools/command.ts';
import { isProgram } from '../../../src/engine/tools/programPath.ts';
import type { CommandBox, CommandLayer, ToolContext } from '../../../src/engine/tools/tool.ts';
import { tar } from '../../fakes/tarFile.ts';
import { CannotJudge, type Verdict } from '../../harness/report.ts';
import { temporaryRun } from '../tools/temporaryRun.ts';

export interface OrdinaryCommand {
  id: string;
  area: string;
  /** What is in its folder before, by the name of what prepares it. */
  in: string;
  /** Programs without which it cannot be judged here. */
  needs: readonly string[];
  /** What must succeed outside first: a program may be there and still have nothing to run with. */
  starts?: string;
  /** `$PORT` is that of a server on localhost which commands may reach. */
  line: string;
  /** Why it does something else in the box, if it does. */
  why?: string;
}

interface CommandFile {
  /** Lines for sh, by their names. */
  prepare: Readonly<Record<string, string>>;
  commands: readonly OrdinaryCommand[];
  differing: readonly OrdinaryCommand[];
}

export const { prepare, commands, differing }: CommandFile = JSON.parse(
  readFileSync(new URL('ordinaryCommands.json', import.meta.url), 'utf8'),
);

export interface Workbench {
  finding: BoxFinding;
  judge(command: OrdinaryCommand): Promise<Verdict>;
  close(): void;
}

/** Makes the folders, the server and the box that the commands run in, one after the other. */
export async function openBench(): Promise<Workbench> {
  const run = temporaryRun();
  const { server, port } = await localServer();
  run.put(
    'home/.gitconfig',
    '[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n',
  );
  run.put('home/notes.txt', 'private');
  for (const name of ['data', 'config']) mkdirSync(join(run.root, name));
  const env = {
    ...run.context.env,
    LANG: 'C.UTF-8',
    GIT_AUTHOR_DATE: '2024-01-02T03:04:05Z',
    GIT_COMMITTER_DATE: '2024-01-02T03:04:05Z',
    npm_config_update_notifier: 'false',
    PORT: String(port),
  };
  const context: ToolContext = { ...run.context, env, commandDir: run.work };
  const finding = await findBox(context);
  const box =
    finding.works &&
    commandBox({
      finding,
      folders: context,
      conversation: 'ordinary',
      config: {
        home: run.home,
        env: {},
        dataDir: join(run.root, 'data'),
        configDir: join(run.root, 'config'),
      },
      network: boxNetwork({ ownHosts: () => [`localhost:${port}`] }),
    });
  const policy = { ...context, home: run.home, protectedDirs: [], memory: new RunMemory() };
  const call = { id: 'ordinary', name: 'run_command', input: {} };
  const changes = new ChangeStore({
    dataDir: join(run.root, 'data'),
    configDir: join(run.root, 'config'),
  }).keeper(randomUUID())!;
  const agrees: Human = { ...denyAll, approve: async () => ({ allow: true, scope: 'once' }) };
  const runOnce = async (line: string, before: string, inBox: boolean): Promise<string> => {
    for (const name of readdirSync(run.work)) rmSync(join(run.work, name), { recursive: true, force: true });
    execFileSync('/bin/sh', ['-c', before], { cwd: run.work, env, stdio: ['ignore', 'ignore', 'pipe'] });
    const askHost: ToolContext['askHost'] = async wanted =>
      wanted.host === 'localhost' && wanted.port === port ? undefined : 'Denied: not that one.';
    let layer: CommandLayer | undefined;
    const layered: CommandBox | undefined = (box || undefined) && {
      async enclose(start, ask) {
        const enclosed = await (box as CommandBox).enclose(start, ask, true);
        layer = enclosed.layer;
        return enclosed;
      },
    };
    const end = await runLine(line, { ...context, ...(inBox && layered && { box: layered, askHost }) });
    if (layer)
      await unseen(landLayer(call, layer, { human: agrees, policy }, changes.layered(), context.signal));
    if ('refusal' in end) return `not run: ${end.refusal}`;
    const { stdout, stderr } = end.streams;
    const shown = [stdout.text(), '[stderr]', stderr.text(), `[exit code: ${end.code}]`, end.note ?? ''];
    return plain([...shown, ...filesIn(run.work)].join('\n'));
  };
  return {
    finding,
    async judge({ line, in: place, needs, starts, why }) {
      if (!box) throw new CannotJudge('no sandbox works here');
      const missing = needs.filter(name => !isThere(name, process.env['PATH'] ?? ''));
      if (missing.length > 0) throw new CannotJudge(`${missing.join(' and ')} is not installed`);
      if (starts !== undefined && !(await runOnce(starts, 'true', false)).includes('[exit code: 0]'))
        throw new CannotJudge(`${starts} does not succeed here, so ${line} was not run`);
      const before = prepare[place] ?? '';
      const [outside, inside] = [await runOnce(line, before, false), await runOnce(line, before, true)];
      if (why === undefined && outside === inside) return { result: 'pass', problems: [] };
      if (why === undefined)
        return { result: 'fail', problems: [`${line}: outside ${outside}`, `in the sandbox ${inside}`] };
      if (outside !== inside) return { result: 'contradicts', problems: [why] };
      return {
        result: 'fail',
        problems: [`${line}: it is the same in the sandbox, and is listed as different`],
      };
    },
    close() {
      server.closeAllConnections();
      server.close();
      run.remove();
    },
  };
}

const isThere = (name: string, path: string): boolean =>
  path.split(delimiter).some(folder => isProgram(join(folder, name)));

/** Returns the text without times that a program took, and names that it made up. */
const plain = (text: string): string =>
  text
    .replace(/\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds)\b/g, 'N s')
    .replace(/(duration_ms|real|user|sys)[: \t]+\d[\d.]*/g, '$1 N')
    .replace(/(?:\/tmp|\/var\/tmp)\/[\w./-]+/g, '/tmp/…')
    .replace(/\d{4}-\d\d-\d\dT[\d_:.]+Z(?:-debug-0\.log)?/g, 'now')
    .replace(/[ \t]+$/gm, '');

/** Returns the names of all files below, but those in which Git keeps its own. */
const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => !/(?:^|\/)(?:\.git|v|target|__pycache__)(?:\/|$)/.test(name))
    .sort();

/** Serves pages, and a registry of npm with one package. */
export async function localServer(): Promise<{ server: Server; port: number }> {
  const packed = tar(
    { path: 'package/package.json', content: '{"name":"left-of","version":"1.0.0","bin":"cli.js"}' },
    { path: 'package/index.js', content: 'module.exports = 42' },
    { path: 'package/cli.js', content: '#!/usr/bin/env node\nconsole.log("ran")', mode: 0o755 },
  );
  const integrity = `sha512-${createHash('sha512').update(packed).digest('base64')}`;
  let port = 0;
  const server = createServer((request, response) => {
    const path = (request.url ?? '').replace(/\?.*/, '');
    const dist = { tarball: `http://localhost:${port}/left-of.tgz`, integrity };
    const version = { name: 'left-of', version: '1.0.0', bin: { 'left-of': 'cli.js' }, dist };
    const listing = { name: 'left-of', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } };
    if (path === '/hello')
      response.setHeader('date', 'Tue, 02 Jan 2024 03:04:05 GMT').end(`hello ${request.url}\n`);
    else if (path === '/moved') response.writeHead(302, { location: '/hello' }).end();
    else if (path === '/left-of.tgz') response.end(packed);
    else if (path === '/left-of') response.end(JSON.stringify(listing));
    else if (path === '/echo')
      request.on('data', chunk => response.write(chunk)).on('end', () => response.end('.\n'));
    else response.writeHead(404).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
  return { server, port };
}
