/**
 * Stores the API keys of model providers in the editor's secret storage. The engine reads them under the names of their
 * variables.
 */
import * as vscode from 'vscode';
import { acknowledge } from './acknowledge.ts';
import { askText } from './askText.ts';
import { plainLabel } from './labels.ts';

interface ApiKey {
  provider: string;
  /** The environment variable that the key replaces. */
  variable: string;
  /** The page on which a person creates a key. */
  page: string;
}

const apiKeys: readonly ApiKey[] = [
  {
    provider: 'Anthropic',
    variable: 'ANTHROPIC_API_KEY',
    page: 'https://console.anthropic.com/settings/keys',
  },
  { provider: 'OpenAI', variable: 'OPENAI_API_KEY', page: 'https://platform.openai.com/api-keys' },
  { provider: 'Gemini', variable: 'GEMINI_API_KEY', page: 'https://aistudio.google.com/apikey' },
  { provider: 'OpenRouter', variable: 'OPENROUTER_API_KEY', page: 'https://openrouter.ai/keys' },
  { provider: 'Azure OpenAI', variable: 'AZURE_OPENAI_API_KEY', page: 'https://ai.azure.com' },
  {
    provider: 'Amazon Bedrock',
    variable: 'AWS_BEARER_TOKEN_BEDROCK',
    page: 'https://console.aws.amazon.com/bedrock',
  },
];

const keyPlace = 'telos.key.';
const secretName = (variable: string): string => `${keyPlace}${variable}`;

/** Returns false for every other secret in the storage. */
export const isApiKey = (name: string): boolean => name.startsWith(keyPlace);

/** Returns the keys that are set, by variable. Rejects if the secret storage cannot be read. */
export async function readApiKeys(secrets: vscode.SecretStorage): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const { variable } of apiKeys) {
    const value = await secrets.get(secretName(variable));
    if (value) found[variable] = value;
  }
  return found;
}

/** Asks the provider whether a key counts. `problem` says why it does not, or why the provider could not be asked. */
export type KeyCheck = (variable: string, key: string) => Promise<{ isRefused?: true; problem?: string }>;

/** Implements `Telos: Set API Key...`. */
export async function setApiKey(secrets: vscode.SecretStorage, check: KeyCheck): Promise<void> {
  const stored = await readApiKeys(secrets);
  const key = await pickKey(stored);
  if (!key) return;
  const action = stored[key.variable] === undefined ? 'set' : await pickAction(key);
  if (action === 'clear') {
    await secrets.delete(secretName(key.variable));
    acknowledge(vscode.l10n.t('The {0} key is cleared.', key.provider));
  } else if (action === 'set') {
    await askAndStore(secrets, key, check);
  }
}

/** Clears everything that Telos keeps in the secret storage. Keys in the environment and in `.env` are left alone. */
export async function clearSecrets(secrets: vscode.SecretStorage): Promise<void> {
  const names = await secrets.keys();
  if (names.length === 0) {
    acknowledge(vscode.l10n.t("Telos keeps nothing in the editor's secret storage."));
    return;
  }
  const known = apiKeys.filter(({ variable }) => names.includes(secretName(variable)));
  const others = names.length - known.length;
  const what = [
    ...known.map(({ provider }) => vscode.l10n.t('the {0} key', provider)),
    ...(others > 0
      ? [others === 1 ? vscode.l10n.t('one other secret') : vscode.l10n.t('{0} other secrets', others)]
      : []),
  ];
  const clear = vscode.l10n.t('Clear');
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Clear {0}?', new Intl.ListFormat(vscode.env.language).format(what)),
    { modal: true, detail: vscode.l10n.t('Keys in environment variables and in the file .env stay.') },
    clear,
  );
  if (answer !== clear) return;
  for (const name of names) await secrets.delete(name);
  acknowledge(vscode.l10n.t('The secrets of Telos are cleared.'));
}

async function pickKey(stored: Readonly<Record<string, string>>): Promise<ApiKey | undefined> {
  const items = apiKeys.map(key => ({
    label: key.provider,
    description: stored[key.variable] === undefined ? '' : vscode.l10n.t('set'),
    key,
  }));
  return (await vscode.window.showQuickPick(items, { title: vscode.l10n.t('Which provider?') }))?.key;
}

async function pickAction({ provider }: ApiKey): Promise<'set' | 'clear' | undefined> {
  const items = [
    { label: vscode.l10n.t('Set another key'), action: 'set' as const },
    { label: vscode.l10n.t('Clear the key'), action: 'clear' as const },
  ];
  return (
    await vscode.window.showQuickPick(items, { title: vscode.l10n.t('A key for {0} is set', provider) })
  )?.action;
}

/** Asks until a key is not refused, or the person gives up. */
async function askAndStore(secrets: vscode.SecretStorage, asked: ApiKey, check: KeyCheck): Promise<void> {
  const { provider, variable } = asked;
  let key = await askKey(asked, false);
  let checked: Awaited<ReturnType<KeyCheck>> = {};
  while (key) {
    const given = key;
    const place = { location: vscode.ProgressLocation.Window, title: vscode.l10n.t('Checking the key') };
    checked = await vscode.window.withProgress(place, () => check(variable, given));
    if (!checked.isRefused) break;
    key = await askKey(asked, true);
  }
  if (!key) return;
  const { problem } = checked;
  await secrets.store(secretName(variable), key);
  if (problem === undefined) {
    acknowledge(vscode.l10n.t('The {0} key is set. The next run uses it.', provider));
    await vscode.commands.executeCommand('telos.chooseModel');
    return;
  }
  acknowledge(
    vscode.l10n.t('The {0} key is set, but could not be checked: {1}', provider, plainLabel(problem, 300)),
  );
}

/** `isAgain` if the provider has just refused a key. */
async function askKey({ provider, variable, page }: ApiKey, isAgain: boolean): Promise<string | undefined> {
  const value = await askText({
    title: vscode.l10n.t('API key for {0}', provider),
    prompt: isAgain
      ? vscode.l10n.t('{0} rejected this key. Check it, or enter another one.', provider)
      : vscode.l10n.t(
          "Kept in the editor's secret storage and used in place of {0}. Create a key at {1}.",
          variable,
          page,
        ),
    password: true,
    validateInput: text =>
      /^\S+$/.test(text.trim()) ? undefined : vscode.l10n.t('A key is one word without spaces.'),
  });
  return value?.trim();
}
