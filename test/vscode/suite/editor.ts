/** What several tests of the suite need of the editor: Telos activated, and models that answer as written. */
import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import type { ExtensionExports } from '../../../src/extension/extension.ts';

export async function activated(): Promise<vscode.Extension<ExtensionExports>> {
  const extension = vscode.extensions.getExtension<ExtensionExports>('telos.telos');
  assert.ok(extension, 'telos.telos is not installed');
  await extension.activate();
  return extension;
}

export interface OfferedModel {
  id: string;
  tools?: boolean;
  images?: boolean;
}

export type ScriptedPart =
  | { text: string }
  | { call: { id: string; name: string; input: object } }
  | { hang: true }
  | { error: string; code?: 'Blocked' | 'NotFound' | 'NoPermissions' };

/** The models of the fixture extension from now on (undefined leaves them as they are), and what they answer, turn by turn. */
export async function scriptModels(
  models: OfferedModel[] | undefined,
  turns: ScriptedPart[][],
): Promise<void> {
  await vscode.extensions.getExtension('telos.telos-lm')?.activate();
  if (models) {
    await vscode.commands.executeCommand('telos-lm.offer', models);
    await until(
      async () => (await vscode.lm.selectChatModels({ vendor: 'telos-lm' })).length === models.length,
    );
  }
  await vscode.commands.executeCommand('telos-lm.script', turns);
}

/** Asks again until it is so; the test's own limit ends the waiting. */
export async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await new Promise(resolve => setTimeout(resolve, 50));
}

/** What a person would answer: the words for input boxes, and the labels to pick from lists, each in its order. Nothing left means Escape. */
export interface Answers {
  typed?: string[];
  picked?: (string | RegExp | string[])[];
}

export interface Asked {
  titles: string[];
  /** The labels of each list, separators included. */
  lists: string[][];
  /** The items of all lists, one after the other. */
  items: vscode.QuickPickItem[];
}

/** Answers the editor's questions in place of a person while `act` runs. */
export async function answering(answers: Answers, act: () => Promise<unknown>): Promise<Asked> {
  const { showInputBox, showQuickPick, createQuickPick } = vscode.window;
  const typed = [...(answers.typed ?? [])];
  const picked = [...(answers.picked ?? [])];
  const asked: Asked = { titles: [], lists: [], items: [] };
  Object.assign(vscode.window, {
    showInputBox: async (options?: vscode.InputBoxOptions) => {
      asked.titles.push(options?.title ?? '');
      return typed.shift();
    },
    showQuickPick: async (
      items: readonly vscode.QuickPickItem[] | Promise<readonly vscode.QuickPickItem[]>,
      options?: vscode.QuickPickOptions,
    ) => {
      asked.titles.push(options?.title ?? '');
      const list = await items;
      asked.lists.push(list.map(({ label }) => label));
      asked.items.push(...list);
      const wanted = picked.shift();
      if (Array.isArray(wanted)) return list.filter(({ label }) => wanted.includes(label));
      return list.find(({ label }) => (wanted instanceof RegExp ? wanted.test(label) : label === wanted));
    },
    createQuickPick: () => pickBy(asked, () => picked.shift()),
  });
  try {
    await act();
  } finally {
    Object.assign(vscode.window, { showInputBox, showQuickPick, createQuickPick });
  }
  return asked;
}

/** A list that the extension fills by itself, perhaps bit by bit. It is answered once it has the wanted item, else when it is no longer busy. */
function pickBy(asked: Asked, wanted: () => string | RegExp | string[] | undefined): object {
  const accepted = new vscode.EventEmitter<void>();
  const hidden = new vscode.EventEmitter<void>();
  const button = new vscode.EventEmitter<never>();
  const changed = new vscode.EventEmitter<string>();
  const want = wanted();
  let isBusy = false;
  const list = {
    title: '',
    selectedItems: [] as vscode.QuickPickItem[],
    onDidAccept: accepted.event,
    onDidHide: hidden.event,
    onDidTriggerItemButton: button.event,
    onDidChangeValue: changed.event,
    show(): void {
      asked.titles.push(list.title);
    },
    dispose(): void {},
    set busy(value: boolean) {
      if (isBusy && !value) hidden.fire();
      isBusy = value;
    },
    set items(items: readonly vscode.QuickPickItem[]) {
      asked.lists.push(items.map(({ label }) => label));
      asked.items.push(...items);
      const found = items.find(({ label }) => (want instanceof RegExp ? want.test(label) : label === want));
      list.selectedItems = found ? [found] : [];
      if (found) accepted.fire();
      else if (!isBusy) hidden.fire();
    },
  };
  return list;
}
