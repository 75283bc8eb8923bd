/** A real VS Code with Telos in it and a model in Anthropic's wire format behind it, as most tests of the chat want it. */
import type { Frame } from 'playwright-core';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { fetchCodeServer } from './codeServer.ts';
import { type RunningServer, startServer } from './server.ts';
import { chatFrame, openWorkbench, untilStored, type Workbench } from './workbench.ts';
import { freshWorld, keptRun, testVariables, type World } from './world.ts';

/** The first start on a machine fetches VS Code. Milliseconds; for `this.timeout` of a hook that opens a session. */
export const firstStartLimit = 10 * 60_000;

export interface EditorSessionOptions {
  model: Parameters<typeof startAnthropicServer>[0];
  /** The folder of skills: texts by path. */
  skills: Readonly<Record<string, string>>;
  /** In place of the sample workspace: texts by path. */
  workspace?: Readonly<Record<string, string>>;
  /** User settings on top of the quiet ones. */
  settings?: Readonly<Record<string, unknown>>;
  /** Variables that the person has set. */
  variables?: Readonly<Record<string, string>>;
  /** Called before VS Code starts. */
  prepare?: (world: World) => unknown;
}

export interface EditorSession {
  readonly world: World;
  readonly model: FakeServer;
  readonly server: RunningServer;
  /** The first window. */
  readonly workbench: Workbench;
  close(): Promise<void>;
}

/** Opens one window on a fresh world; requests are routed without a model. What was begun ends again when a later step fails. */
export async function openEditorSession(options: EditorSessionOptions): Promise<EditorSession> {
  const undo: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const vscode = await fetchCodeServer(console.log, AbortSignal.timeout(firstStartLimit));
    const model = await startAnthropicServer(options.model);
    undo.push(() => model.close());
    const world = await worldOf(options);
    undo.push(() => world.remove());
    await options.prepare?.(world);
    const server = await startServer({
      vscode,
      profile: world.profile,
      extensions: world.extensions,
      folder: world.workspace,
      port: 0,
      env: {
        ...testVariables(world),
        ANTHROPIC_BASE_URL: model.url,
        ANTHROPIC_API_KEY: 'key-for-a-test-0123456789',
        TELOS_ROUTING_MODE: 'local',
        ...options.variables,
      },
      ...(options.settings && { settings: options.settings }),
      trusted: true,
    });
    undo.push(() => server.stop());
    const workbench = await openWorkbench(server.url);
    undo.push(() => workbench.close());
    return { world, model, server, workbench, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Reloads the window once it has stored that the sidebar shows the conversation with this request; returns the page of the chat. */
export async function reloadShowing({ world, workbench }: EditorSession, request: string): Promise<Frame> {
  const [header = ''] = (await keptRun(world, `"request":${JSON.stringify(request)}`)).split('\n');
  await untilStored(workbench.page, JSON.parse(header).conversation);
  await workbench.page.reload();
  await workbench.page.waitForSelector('.monaco-workbench');
  return chatFrame(workbench);
}

async function worldOf({ skills, workspace }: EditorSessionOptions): Promise<World> {
  const folders = [tempFolder(skills), ...(workspace ? [tempFolder(workspace)] : [])];
  const [skillFolder, workspaceFolder] = folders.map(folder => folder.path);
  try {
    return await freshWorld({
      skills: skillFolder!,
      ...(workspaceFolder !== undefined && { workspace: workspaceFolder }),
    });
  } finally {
    for (const folder of folders) folder.remove();
  }
}
