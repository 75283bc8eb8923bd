/** Implements `Telos: Install Skills...`: finds packs in ClawHub and in the person's catalogs, takes a source as typed, or from a link. */
import { isAbsolute } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import * as vscode from 'vscode';
import type { Config } from '../../engine/config.ts';
import { searchClawHub } from '../../engine/sources/clawhub.ts';
import { reachFor } from '../../engine/sources/fetchSource.ts';
import { lookAtSource } from '../../engine/sources/install.ts';
import { parseSource, sourceForms } from '../../engine/sources/sourceText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel, visibleText } from '../base/labels.ts';
import { install, installPack, linkText, said } from './agentPacks.ts';
import { offerSource } from './offers.ts';

/** Time without a key before ClawHub is asked, in milliseconds. */
const pause = 300;

interface GalleryItem extends vscode.QuickPickItem {
  source?: string;
  act?: 'folder' | 'addCatalog';
}

/** Asks for a pack, or takes the source that is given. Shows what it holds, and installs it after a yes. */
export async function installSkills(current: CurrentTelos, given?: unknown): Promise<void> {
  if (typeof given === 'string' && given.trim() !== '') return said(() => offerSource(current, given.trim()));
  const { config } = await current.openTelos();
  const picked = await pickFrom(config);
  if (picked?.act === 'folder') return installPack(current);
  if (picked?.act === 'addCatalog') {
    if (await addCatalog(config)) await installSkills(current);
    return;
  }
  const { source } = picked ?? {};
  if (source !== undefined) await said(() => offerSource(current, source));
}

/** Shows the list, which follows what is typed, until something is picked or the list is closed. */
function pickFrom(config: Config): Promise<GalleryItem | undefined> {
  const list = vscode.window.createQuickPick<GalleryItem>();
  list.title = vscode.l10n.t('Install Skills');
  list.placeholder = vscode.l10n.t('Search ClawHub, or type a source such as github:owner/repo');
  list.matchOnDescription = true;
  list.matchOnDetail = true;
  const closing = new AbortController();
  const catalogs = catalogItems(config, closing.signal);
  let search = new AbortController();
  const fill = async (words: string): Promise<void> => {
    search.abort();
    search = new AbortController();
    const signal = AbortSignal.any([search.signal, closing.signal]);
    const first = [...typedItem(words, config), ...fixedItems()];
    list.busy = true;
    if (words !== '') list.items = first;
    const [found, catalog] = await Promise.all([searchItems(words, config, signal), catalogs]);
    if (signal.aborted) return;
    list.items = [...first, ...found, ...catalog];
    list.busy = false;
  };
  return new Promise(resolve => {
    const end = (picked: GalleryItem | undefined): void => {
      // First, since a list that is disposed of also says that it was closed.
      resolve(picked);
      closing.abort();
      list.dispose();
    };
    list.onDidAccept(() => {
      const [picked] = list.selectedItems;
      if (picked?.source !== undefined || picked?.act) end(picked);
    });
    list.onDidHide(() => end(undefined));
    list.onDidChangeValue?.(value => void fill(value.trim()));
    list.show();
    void fill('');
  });
}

/** Returns an item for a text that is a source. A plain word is searched for, although a folder may have that name. */
function typedItem(words: string, config: Config): GalleryItem[] {
  try {
    if (words === '' || (parseSource(words, config).kind === 'folder' && !/^[.~/\\]/.test(words))) return [];
  } catch {
    return [];
  }
  return [
    {
      label: `$(cloud-download) ${vscode.l10n.t('Install from {0}', plainLabel(words, 300))}`,
      alwaysShow: true,
      source: words,
    },
  ];
}

const fixedItems = (): GalleryItem[] => [
  { label: `$(folder-opened) ${vscode.l10n.t('Choose a Folder...')}`, alwaysShow: true, act: 'folder' },
  { label: `$(add) ${vscode.l10n.t('Add Catalog...')}`, alwaysShow: true, act: 'addCatalog' },
];

const separator = (label: string): GalleryItem => ({ label, kind: vscode.QuickPickItemKind.Separator });

async function searchItems(words: string, config: Config, signal: AbortSignal): Promise<GalleryItem[]> {
  if (words === '' || /^[.~/\\]|^[\w+]+:/.test(words)) return [];
  try {
    await delay(pause, undefined, { signal });
    const found = await searchClawHub(words, await reachFor(undefined, config, { signal }));
    const items = found.map(({ source, name, owner, version, verdict, summary }) => ({
      label: plainLabel(name),
      description: plainLabel(['ClawHub', owner, version, verdict].filter(Boolean).join(' · ')),
      detail: plainLabel(summary, 300),
      alwaysShow: true,
      source,
    }));
    return items.length > 0
      ? items
      : [note(vscode.l10n.t('ClawHub finds nothing for {0}', plainLabel(words)))];
  } catch (error) {
    if (signal.aborted) return [];
    return [note(plainLabel(describeError(error), 300))];
  }
}

/** Returns an item that says something and cannot be installed. */
const note = (label: string): GalleryItem => ({ label: `$(info) ${label}`, alwaysShow: true });

/** The person's own setting: a workspace adds no catalogs. */
const catalogSetting = (): string[] =>
  vscode.workspace.getConfiguration('telos').inspect<string[]>('catalogs')?.globalValue ?? [];

/** Returns the packs of the catalogs. Looking at them runs nothing. */
async function catalogItems(config: Config, signal: AbortSignal): Promise<GalleryItem[]> {
  const lists = catalogSetting().map(async catalog => {
    try {
      const looked = await lookAtSource(catalog, config, { signal });
      if (looked.kind === 'choices')
        return looked.choices.map(source => ({ label: plainLabel(source, 300), source }));
      const { name, description, source, version } = looked;
      await looked.dispose();
      return [
        {
          label: plainLabel(name),
          description: plainLabel(version),
          detail: plainLabel(description, 300),
          source,
        },
      ];
    } catch (error) {
      return signal.aborted ? [] : [note(plainLabel(describeError(error), 300))];
    }
  });
  const found = await Promise.all(lists);
  return catalogSetting().flatMap((catalog, at) => [
    separator(plainLabel(catalog, 100)),
    ...(found[at] ?? []),
  ]);
}

async function addCatalog(config: Config): Promise<boolean> {
  const source = await vscode.window.showInputBox({
    title: vscode.l10n.t('Add Catalog'),
    prompt: vscode.l10n.t('A repository, a site or a marketplace.json with packs'),
    placeHolder: 'github:owner/repo',
    validateInput: text => problemOf(text, config),
  });
  if (!source?.trim()) return false;
  const all = [...new Set([...catalogSetting(), source.trim()])];
  await vscode.workspace.getConfiguration('telos').update('catalogs', all, vscode.ConfigurationTarget.Global);
  return true;
}

function problemOf(text: string, config: Config): string | undefined {
  if (text.trim() === '') return undefined;
  try {
    if (parseSource(text.trim(), config).kind !== 'folder') return undefined;
  } catch {
    // The forms say more than what is wrong with this one.
  }
  return vscode.l10n.t('Use one of these forms: {0}', sourceForms.slice(2).join(', '));
}

/** More than a person reads before agreeing. In characters. */
const longestSource = 400;

/**
 * Answers a link vscode://telos.telos/install?from=... with the question of an install. Nothing else that the link says counts, so
 * only the person can agree.
 */
export async function installFromLink(current: CurrentTelos, query: URLSearchParams): Promise<void> {
  const from = query.get('from') ?? query.get('source') ?? '';
  const problem = linkProblem(from);
  if (problem !== undefined) void vscode.window.showWarningMessage(problem);
  else if (isAbsolute(from)) await said(() => install(current, from, { isLink: true }));
  else if (await mayLook(from)) await said(() => offerSource(current, from, { isLink: true }));
}

/** Asks before anything is fetched: the place that a link names learns who looks. */
async function mayLook(from: string): Promise<boolean> {
  const agree = vscode.l10n.t('Continue');
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Look at the skills from {0}?', plainLabel(visibleText(from), 2 * longestSource)),
    {
      modal: true,
      detail: `${linkText()} ${vscode.l10n.t('They are downloaded and shown. You are asked again before they are installed.')}`,
    },
    agree,
  );
  return answer === agree;
}

/** Returns why nothing can be installed from there, or undefined for a folder by its full path and a source elsewhere. */
function linkProblem(from: string): string | undefined {
  if (from === '') return vscode.l10n.t('The link does not say from where to install.');
  if (from.length > longestSource)
    return vscode.l10n.t(
      'The link has more than {0} characters, which is too long to review. Nothing was installed.',
      longestSource,
    );
  // Two slashes at the beginning name another machine, which would learn who asks.
  if (isAbsolute(from) ? !/^[\\/]{2}/.test(from) : /^(?:https|github|clawhub|npm|git\+https):/i.test(from))
    return undefined;
  return vscode.l10n.t(
    'A link asks to install from {0}. Telos installs from a full path, or from a source such as github:owner/repo. Nothing was installed.',
    plainLabel(visibleText(from), 2 * longestSource),
  );
}
