/** A real VS Code with Telos in it and a model in Anthropic's wire format behind it, as most tests of the chat want it. */
import type { Frame } from 'playwright-core';
import { type AnthropicServerOptions, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { type EditorKind, endEditors, giveBack, takeEditor } from './editor.ts';
import { type RunningServer, writeSettings } from './server.ts';
import { chatFrame, untilStored, type Workbench } from './workbench.ts';
import { fillWorld, keptRun, type World } from './world.ts';

export { firstStartLimit } from './editor.ts';

export interface EditorSessionOptions {
  model?: AnthropicServerOptions;
  /** Sets neither a model's server nor a key. */
  withoutAccount?: true;
  /** The folder of skills: texts by path. The sample pack if there is none. */
  skills?: Readonly<Record<string, string>>;
  /** In place of the sample workspace: texts by path. */
  workspace?: Readonly<Record<string, string>>;
  /** User settings on top of the quiet ones. */
  settings?: Readonly<Record<string, unknown>>;
  /** Variables that the person has set. */
  variables?: Readonly<Record<string, string>>;
  /** Folders of other extensions that are installed, by name. */
  extensions?: Readonly<Record<string, string>>;
  /** VS Code asks whether to trust a folder, and starts in Restricted Mode. */
  restricted?: true;
  /** Called before the window opens. */
  prepare?: (world: World) => unknown;
  /** The rest of the window's address, in place of the one that opens the workspace. */
  path?: (world: World) => string;
  /** The language in which extensions speak, in place of English. */
  language?: string;
}

export interface EditorSession {
  readonly world: World;
  readonly model: FakeServer;
  readonly server: RunningServer;
  /** The first window. */
  readonly workbench: Workbench;
  /** Opens another window on the same workspace. It ends with the session. */
  openWindow(): Promise<Workbench>;
  close(): Promise<void>;
}

// Tests share editors, which end with mocha's run. Other programs call `endEditors` themselves.
if ('after' in globalThis) after(endEditors);

/**
 * Opens a window on a fresh world, in an editor that an earlier session of the same kind has left or in a new one. What was begun ends
 * again when a later step fails.
 */
export async function openEditorSession(options: EditorSessionOptions): Promise<EditorSession> {
  const undo: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const kind = kindOf(options);
    const editor = await takeEditor(kind);
    undo.push(() => giveBack(kind, editor));
    const { world, server } = editor;
    await fill(world, options);
    await writeSettings(world.profile, options.settings ?? {});
    await options.prepare?.(world);
    const model = await startAnthropicServer(options.model ?? { turns: [] });
    undo.push(() => model.close());
    editor.leadTo(model);
    const openWindow = (): Promise<Workbench> => editor.openWindow(options.path?.(world), options.language);
    return { world, model, server, workbench: await openWindow(), openWindow, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const kindOf = (options: EditorSessionOptions): EditorKind => ({
  trusted: !options.restricted,
  hasAccount: !options.withoutAccount,
  variables: options.variables ?? {},
  extensions: options.extensions ?? {},
});

/** Reloads the window once it has stored that the sidebar shows the conversation with this request; returns the page of the chat. */
export async function reloadShowing({ world, workbench }: EditorSession, request: string): Promise<Frame> {
  const [header = ''] = (await keptRun(world, `"request":${JSON.stringify(request)}`)).split('\n');
  await untilStored(workbench.page, JSON.parse(header).conversation);
  await workbench.page.reload();
  await workbench.page.waitForSelector('.monaco-workbench');
  return chatFrame(workbench);
}

/** Copies the texts into the world. */
async function fill(world: World, { skills, workspace }: EditorSessionOptions): Promise<void> {
  const [skillFolder, workspaceFolder] = [skills, workspace].map(texts => texts && tempFolder(texts));
  try {
    await fillWorld(world, {
      ...(skillFolder && { skills: skillFolder.path }),
      ...(workspaceFolder && { workspace: workspaceFolder.path }),
    });
  } finally {
    skillFolder?.remove();
    workspaceFolder?.remove();
  }
}
