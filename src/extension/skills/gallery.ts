/**
 * Implements `Telos: Install Skills...`: lists packs of ClawHub and of the person's catalogs, each with its source and what is known of it,
 * or takes a source as typed. Nothing runs by looking.
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '@telos/engine/config';
import {
  type CatalogueEntry,
  lookAtCatalogue,
  lookAtSource,
  parseSource,
  reachFor,
  searchClawHub,
  sourceForms,
} from '@telos/packs/install';
import { holdingText, type PackLook, wantsTexts, worstText } from '@telos/protocol/packOffer';
import * as vscode from 'vscode';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel, t } from '../base/labels.ts';
import { installPack, said } from './agentPacks.ts';
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
  list.keepScrollPosition = true;
  const closing = new AbortController();
  const catalogs = catalogItems(config, closing.signal);
  let search = new AbortController();
  const fill = async (words: string): Promise<void> => {
    search.abort();
    search = new AbortController();
    const signal = AbortSignal.any([search.signal, closing.signal]);
    let shown = [...typedItem(words, config), ...fixedItems()];
    const add = async (items: Promise<GalleryItem[]>): Promise<void> => {
      const more = await items;
      if (signal.aborted) return;
      shown = [...shown, ...more];
      list.items = shown;
    };
    list.busy = true;
    list.items = shown;
    // A catalog that answers slowly does not hold back what ClawHub finds.
    if (mayBeSearched(words)) await add(searchItems(words, config, signal));
    await add(catalogs);
    if (!signal.aborted) list.busy = false;
  };
  const lookCloser = async (item: GalleryItem): Promise<void> => {
    list.busy = true;
    await describeHolding(item, config, closing.signal);
    if (closing.signal.aborted) return;
    list.busy = false;
    list.items = [...list.items];
    if (list.items.includes(item)) list.activeItems = [item];
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
    list.onDidTriggerItemButton(({ item }) => void lookCloser(item));
    list.show();
    void fill('');
  });
}

/** Fetches what an item leads to, and says in the item what it holds. Nothing of it runs or stays. */
async function describeHolding(item: GalleryItem, config: Config, signal: AbortSignal): Promise<void> {
  item.buttons = [];
  try {
    const looked = await lookAtSource(item.source ?? '', config, { signal });
    if (looked.kind === 'choices') {
      item.detail = plainLabel(looked.message, 300);
      return;
    }
    await looked.dispose();
    Object.assign(item, holding(item.label, item.description ?? '', item.detail ?? '', looked));
  } catch (error) {
    item.detail = plainLabel(describeError(error), 300);
  }
}

/** Returns the texts of an item with what a look found: the worst first, then the size, and what it asks for. */
function holding(
  label: string,
  description: string,
  detail: string,
  look: PackLook,
): Pick<GalleryItem, 'label' | 'description' | 'detail'> {
  const isHigh = look.findings[0]?.level === 'high';
  return {
    label: isHigh ? `$(warning) ${label}` : label,
    description: plainLabel(
      [worstText(look, t), holdingText(look, t), description].filter(Boolean).join(' · '),
      300,
    ),
    detail: plainLabel([detail, ...wantsTexts(look, t)].filter(Boolean).join(' · '), 300),
  };
}

/** The button of an item whose files were not fetched yet. */
const lookButton = (): vscode.QuickInputButton => ({
  iconPath: new vscode.ThemeIcon('eye'),
  tooltip: vscode.l10n.t('Show Size, Findings and What It Asks For'),
});

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

/** True for words. A path or a source is not searched for. */
const mayBeSearched = (words: string): boolean => words !== '' && !/^[.~/\\]|^[\w+]+:/.test(words);

async function searchItems(words: string, config: Config, signal: AbortSignal): Promise<GalleryItem[]> {
  try {
    await delay(pause, undefined, { signal });
    const found = await searchClawHub(words, await reachFor(undefined, config, { signal }));
    const items = found.map(({ source, name, owner, version, verdict, summary }) => ({
      label: plainLabel(name),
      description: plainLabel(['ClawHub', owner, version, verdict].filter(Boolean).join(' · ')),
      detail: plainLabel(summary, 300),
      alwaysShow: true,
      source,
      buttons: [lookButton()],
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
  const catalogs = catalogSetting();
  const found = await Promise.all(
    catalogs.map(async catalog => {
      try {
        return (await lookAtCatalogue(catalog, config, { signal })).map(entryItem);
      } catch (error) {
        return signal.aborted ? [] : [note(plainLabel(describeError(error), 300))];
      }
    }),
  );
  return catalogs.flatMap((catalog, at) => [separator(plainLabel(catalog, 100)), ...(found[at] ?? [])]);
}

function entryItem({ source, name, description, elsewhere, look, problem }: CatalogueEntry): GalleryItem {
  if (problem !== undefined)
    return { ...note(plainLabel(name)), detail: plainLabel(`${name} ${problem}`, 300) };
  const texts = {
    label: plainLabel(name),
    description: plainLabel(elsewhere ?? source, 300),
    detail: plainLabel(description, 300),
  };
  return look
    ? { ...holding(texts.label, texts.description, texts.detail, look), source }
    : { ...texts, source, buttons: [lookButton()] };
}

async function addCatalog(config: Config): Promise<boolean> {
  const source = await askText({
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
