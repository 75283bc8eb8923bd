/** Knows the database over which plans and evals run on workers. Its address has a password, so it lies in the secret storage. */

import type { Config } from '@telos/engine/config';
import { databaseAddress, databaseVariable, dbosInstall, hasDbos } from '@telos/fleet/executors';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import { describeError, plainLabel, t } from '../base/labels.ts';

const place = 'telos.workers';

/** What is needed to give work to workers. */
export interface WorkersAccess {
  /** With the password. */
  url: string;
  /** Of Telos, which must be that of the workers. */
  version: string;
}

/** Implements `Telos: Set Workers Database...`. */
export async function setWorkers(secrets: vscode.SecretStorage): Promise<void> {
  const known = await secrets.get(place);
  if (known === undefined) return void (await ask(secrets));
  const items = [
    { label: t('Set another address'), isClear: false },
    { label: t('Clear the address'), isClear: true },
  ];
  const title = t("The workers' database is {0}", shownOf(known));
  const picked = await vscode.window.showQuickPick(items, { title });
  if (!picked) return;
  if (!picked.isClear) return void (await ask(secrets));
  await secrets.delete(place);
  acknowledge(t("The address of the workers' database is cleared."));
}

/**
 * Returns how to reach the workers: by the address that is kept, or that of the environment, or one that the person gives now. Undefined
 * if they give none, or if the package is missing that workers need: it is then offered.
 */
export async function workersAccess(
  secrets: vscode.SecretStorage,
  { env, dataDir }: Config,
): Promise<WorkersAccess | undefined> {
  const url = (await secrets.get(place)) ?? env[databaseVariable] ?? (await ask(secrets));
  if (url === undefined) return undefined;
  databaseAddress(url);
  if (!hasDbos(dataDir)) return offerInstall(dataDir);
  const { version } = vscode.extensions.getExtension('telos.telos')?.packageJSON ?? {};
  return { url, version: String(version) };
}

const shownOf = (url: string): string => plainLabel(databaseAddress(url).shown);

/** Asks for the address and keeps it. */
async function ask(secrets: vscode.SecretStorage): Promise<string | undefined> {
  const typed = await askText({
    title: t("The workers' database"),
    prompt: t(
      "Address of the PostgreSQL database that your workers use. Kept in the editor's secret storage and used in place of {0}.",
      databaseVariable,
    ),
    placeHolder: 'postgres://user:password@host:5432/database',
    password: true,
    validateInput: text => problemOf(text),
  });
  const url = typed?.trim();
  if (!url) return undefined;
  await secrets.store(place, url);
  acknowledge(t("The workers' database is {0}.", shownOf(url)));
  return url;
}

function problemOf(text: string): string | undefined {
  try {
    databaseAddress(text);
    return undefined;
  } catch (error) {
    return describeError(error);
  }
}

/** The person sees in a terminal what is installed. */
async function offerInstall(dataDir: string): Promise<undefined> {
  const install = t('Install');
  const question = t('Workers need a package that is not installed.');
  const detail = t('This installs it. Then try again:\n{0}', dbosInstall(dataDir));
  const answer = await vscode.window.showInformationMessage(question, { modal: true, detail }, install);
  if (answer !== install) return;
  const terminal = vscode.window.createTerminal({ name: 'Telos' });
  terminal.show();
  terminal.sendText(dbosInstall(dataDir));
}
