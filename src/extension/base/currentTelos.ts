/** Opens the engine for the extension on first use. Reopens it after a change to anything that it was opened with. */

import { homedir } from 'node:os';
import {
  type BudgetName,
  budgetNames,
  type Config,
  type ConfigOverrides,
  loadConfig,
} from '@telos/engine/config';
import { type FileAgent, importWorkFolders } from '@telos/engine/skills';
import type { FrontendParts, Telos } from '@telos/engine/telos';
import * as vscode from 'vscode';
import { isApiKey, readApiKeys } from './apiKeys.ts';

export class CurrentTelos implements vscode.Disposable {
  /** Of the editor. */
  readonly secrets: vscode.SecretStorage;
  readonly #parts: FrontendParts;
  readonly #opened = new vscode.EventEmitter<Config>();
  readonly #refreshed = new vscode.EventEmitter<void>();
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable;
  #telos: Promise<Telos> | undefined;
  /** Outlives the engine: servers do not change with a setting. */
  #book: Telos['book'] | undefined;
  #look = async (): Promise<void> => {};

  /** Fires when a Telos has been opened. Its configuration is then known. */
  readonly onDidOpen = this.#opened.event;
  /** Fires when files of skills have changed and the open engine has been refreshed. */
  readonly onDidRefresh = this.#refreshed.event;
  /** Fires when the available skills, or whatever runs them, may have changed. */
  readonly onDidChange = this.#changed.event;

  constructor(secrets: vscode.SecretStorage, parts: FrontendParts) {
    this.secrets = secrets;
    this.#parts = parts;
    this.#subscriptions = vscode.Disposable.from(
      this.#opened,
      this.#refreshed,
      this.#changed,
      secrets.onDidChange(({ key }) => {
        if (isApiKey(key)) this.reopen();
      }),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.reopen()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.reopen()),
      vscode.workspace.onDidChangeConfiguration(change => {
        if (change.affectsConfiguration('telos')) this.reopen();
      }),
    );
  }

  /**
   * Returns the open engine. Rejects if the engine cannot be loaded or the secrets cannot be read. The next call tries
   * again.
   */
  openTelos(): Promise<Telos> {
    if (this.#telos) return this.#telos;
    const opening = this.#open();
    this.#telos = opening;
    opening.then(
      telos => {
        if (this.#telos === opening) this.#opened.fire(telos.config);
      },
      () => {
        if (this.#telos === opening) this.#telos = undefined;
      },
    );
    return opening;
  }

  /** Resolves when changes to files of skills have been read, also those that nothing reported. */
  look(): Promise<void> {
    return this.#look();
  }

  /** Sets what looks for such changes. It never rejects. */
  lookWith(look: () => Promise<void>): vscode.Disposable {
    this.#look = look;
    return new vscode.Disposable(() => {
      this.#look = async () => {};
    });
  }

  /** Makes the engine read the files again after they have changed. */
  async refresh(): Promise<void> {
    const telos = await this.#telos;
    telos?.refresh();
    // Finding thousands of skills takes a while. The listeners therefore run in another turn of the event loop.
    await telos?.agents();
    await new Promise(resolve => setImmediate(resolve));
    this.#refreshed.fire();
    this.#changed.fire();
  }

  /**
   * Drops the engine after a change of settings, secrets, folders or trust. An active run keeps the engine it started
   * with.
   */
  reopen(): void {
    this.#telos = undefined;
    this.#changed.fire();
  }

  /** Ends what runs in the background of conversations, since the editor closes. */
  async closeCommands(): Promise<void> {
    await (await this.#telos)?.closeCommands();
  }

  dispose(): void {
    this.#subscriptions.dispose();
  }

  /** Returns an engine of its own for another folder, with a limit of US dollars for a run, such as for a schedule. */
  async openAt(cwd: string, maxCost: string | undefined): Promise<Telos> {
    const [{ Telos }, keys, { projectFoldersAt }] = await Promise.all([
      import('@telos/engine/telos'),
      readApiKeys(this.secrets),
      importWorkFolders(),
    ]);
    const config = configWith(keys, { cwd, workspaceFolders: [], ...(maxCost !== undefined && { maxCost }) });
    return Telos.open({ ...config, projectFolders: projectFoldersAt(config) }, this.#parts);
  }

  /** Returns an engine of one agent alone, such as for a skill that is tried. */
  async openTrial(config: Config, agent: FileAgent): Promise<Telos> {
    const { Telos } = await import('@telos/engine/telos');
    return Telos.open(config, { ...this.#parts, agents: [agent] });
  }

  async #open(): Promise<Telos> {
    const [{ Telos }, keys] = await Promise.all([import('@telos/engine/telos'), readApiKeys(this.secrets)]);
    const telos = Telos.open(configWith(keys), { ...this.#parts, ...(this.#book && { book: this.#book }) });
    this.#book = telos.book;
    this.#book.wantsOffers = true;
    return telos;
  }
}

/** Lays the editor's settings, keys and folders over the environment of its process. */
function configWith(keys: Readonly<Record<string, string>>, more: ConfigOverrides = {}): Config {
  const settings = vscode.workspace.getConfiguration('telos');
  const setting = (name: string): string | undefined => settings.get<string>(name)?.trim() || undefined;
  const addresses: Record<string, string> = {};
  for (const provider of ['anthropic', 'openai', 'ollama']) {
    const address = setting(`${provider}.baseUrl`);
    if (address) addresses[`${provider.toUpperCase()}_BASE_URL`] = address;
  }
  const auto = (value: string | undefined): string | undefined => (value === 'auto' ? undefined : value);
  const folders = (vscode.workspace.isTrusted ? vscode.workspace.workspaceFolders : undefined) ?? [];
  const workspaceFolders = folders
    .filter(({ uri }) => uri.scheme === 'file')
    .map(({ name, uri }) => ({ name, path: uri.fsPath }));
  return loadConfig({
    variables: { ...keys, ...addresses },
    overridesAre: 'setting',
    cwd: workspaceFolders[0]?.path ?? homedir(),
    workspaceFolders,
    provider: auto(setting('provider')),
    model: setting('model'),
    effort: effortsText(settings.get<unknown>('effort')),
    protocol: auto(setting('protocol')),
    // The usual value leaves the variable in force.
    defaults: setting('defaults') === 'specified' ? 'specified' : undefined,
    skillsDir: setting('skillsFolder'),
    workingRoot: setting('workingDirRoot'),
    routingMode: auto(setting('routing.mode')),
    routingLearns: settings.get('routing.learn') === false ? 'off' : undefined,
    suggestsSkills: settings.get('suggestSkills') === false ? 'off' : undefined,
    routingModel: setting('routing.model'),
    // The usual value leaves the variable in force.
    answerWithoutSkill: setting('answerWithoutSkill') === 'always' ? 'always' : undefined,
    replayFile: setting('replayFile'),
    sandbox: auto(setting('sandbox')),
    maxRounds: settings.get<number | null>('maxRounds')?.toString(),
    contextWindow: settings.get<number | null>('contextWindow')?.toString(),
    prices: settings.get<Record<string, unknown>>('prices') ?? {},
    ...limitsIn(settings),
    ...more,
  });
}

/** Returns the setting as the engine reads it, or undefined if it is empty. */
function effortsText(setting: unknown): string | undefined {
  if (typeof setting !== 'object' || setting === null) return undefined;
  return (
    Object.entries(setting)
      .map(([model, effort]) => `${model}=${effort}`)
      .join(',') || undefined
  );
}

/** Returns the limits that are set. An empty setting sets no limit. */
function limitsIn(settings: vscode.WorkspaceConfiguration): Partial<Record<BudgetName, string>> {
  const limits: Partial<Record<BudgetName, string>> = {};
  for (const name of budgetNames) {
    const limit = settings.get<number | null>(`budget.${name}`);
    if (limit !== undefined && limit !== null) limits[name] = String(limit);
  }
  return limits;
}
