/** A real VS Code on the folders of a case, beside another extension that does what the case wants. */
import { cp, mkdir, readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Frame } from 'playwright-core';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import { descendants } from '../vscode/processTree.ts';
import { type RunningServer, startServer } from '../vscode/server.ts';
import { chatFrame, openWorkbench, type Workbench } from '../vscode/workbench.ts';
import { type World as EditorWorld, freshWorld, testVariables } from '../vscode/world.ts';
import type { World } from './world.ts';

export interface EditorOptions {
  trusted: boolean;
  /** Files of the workspace, by their paths in it. */
  files?: Readonly<Record<string, string>>;
  env?: Readonly<Record<string, string>>;
  /** Commands that the other extension calls, or functions that Telos exports. */
  plan?: readonly { command: string; values?: readonly unknown[] }[];
  /** Called with the workspace before the window opens. */
  prepare?: (workspace: string) => void;
}

export interface EditorWindow {
  world: EditorWorld;
  server: RunningServer;
  workbench: Workbench;
  chat: Frame;
  /** Lines that the other extension has written. */
  report(): Promise<Record<string, unknown>[]>;
}

const caller = fileURLToPath(new URL('caller-extension', import.meta.url));

/** Opens the window, lets `act` look at it, and closes it whatever becomes of that. */
export async function inEditor<Result>(
  world: World,
  { trusted, files = {}, env = {}, plan = [], prepare }: EditorOptions,
  act: (window: EditorWindow) => Promise<Result>,
): Promise<Result> {
  const vscode = await fetchCodeServer(console.error, AbortSignal.timeout(600_000));
  const workspace = join(world.root, 'workspace');
  await mkdir(workspace, { recursive: true });
  const editor = await freshWorld({ skills: world.skills, workspace });
  const reportFile = join(editor.dir, 'report.jsonl');
  const planFile = join(editor.dir, 'plan.json');
  let server: RunningServer | undefined;
  let workbench: Workbench | undefined;
  try {
    for (const [path, content] of Object.entries({ 'note.md': 'A note.\n', ...files })) {
      await mkdir(dirname(join(editor.workspace, path)), { recursive: true });
      await writeFile(join(editor.workspace, path), content);
    }
    prepare?.(editor.workspace);
    await writeFile(planFile, JSON.stringify(plan));
    await writeFile(reportFile, '');
    await cp(caller, join(editor.extensions, 'telos.case-caller-0.0.1'), { recursive: true });
    server = await startServer({
      vscode,
      profile: editor.profile,
      extensions: editor.extensions,
      folder: editor.workspace,
      port: 0,
      env: {
        ...testVariables(editor),
        TELOS_CASE_PLAN: planFile,
        TELOS_CASE_REPORT: reportFile,
        ...env,
      },
      trusted,
    });
    workbench = await openWorkbench(server.url);
    const chat = await chatFrame(workbench);
    const report = async (): Promise<Record<string, unknown>[]> =>
      (await readFile(reportFile, 'utf8'))
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line));
    return await act({ world: editor, server, workbench, chat, report });
  } finally {
    await workbench?.close();
    await server?.stop();
    await editor.remove();
  }
}

/** The command lines of what the extension host has started, and the host's own process number. */
export async function startedByHost(server: RunningServer): Promise<{ host: number; commands: string[] }> {
  const all = [server.pid, ...(await descendants(server.pid))];
  const lines = await Promise.all(
    all.map(async pid => ({ pid, line: await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') })),
  );
  const host = lines.find(({ line }) => line.includes('--type=extensionHost'))?.pid ?? 0;
  const below = host ? await descendants(host) : [];
  const commands = lines
    .filter(({ pid }) => below.includes(pid))
    .map(({ line }) => line.replaceAll('\0', ' '));
  return { host, commands };
}

/** Inodes of the TCP sockets that listen on this machine. */
async function listeningSockets(): Promise<Set<string>> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map(name => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  );
  const rows = tables.flatMap(table =>
    table
      .split('\n')
      .slice(1)
      .map(line => line.trim().split(/\s+/)),
  );
  return new Set(rows.filter(row => row[3] === '0A').map(row => row[9] ?? ''));
}

/** How many TCP sockets these processes listen on. */
export async function listeningIn(pids: readonly number[]): Promise<number> {
  const sockets = await listeningSockets();
  const links = await Promise.all(
    pids.map(async pid => {
      const names = await readdir(`/proc/${pid}/fd`).catch(() => []);
      return Promise.all(names.map(name => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
    }),
  );
  return links.flat().filter(link => sockets.has(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? '-')).length;
}
