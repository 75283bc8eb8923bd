/**
 * Implements `Telos: Choose Model...`: lists every provider with its models, and stores the picked one as the setting.
 */

import { effortFor } from '@telos/engine/config';
import { importEffort, importModelList, type ModelFacts, type ProviderModels } from '@telos/engine/providers';
import type { OfferedModel } from '@telos/protocol/webview';
import * as vscode from 'vscode';
import { askText } from '../base/askText.ts';
import { askEffort } from '../base/chooseEffort.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';
import { lmModelName, lmModels, lmProviderName } from './lmProvider.ts';

interface ModelItem extends vscode.QuickPickItem {
  /** Missing for a separator. */
  choice?: Choice;
}

/** `model` is empty for the provider's default model. */
type Choice =
  | { kind: 'model'; provider: string; model: string }
  | { kind: 'other'; provider: string }
  | { kind: 'key' };

/** The number of models shown of a provider: as many as a person reads through. */
const mostCurated = 20;

export async function chooseModel(current: CurrentTelos): Promise<void> {
  const picked = await vscode.window.showQuickPick(listItems(current), {
    title: vscode.l10n.t('Choose Model'),
    placeHolder: vscode.l10n.t('Which model do you want to use?'),
    matchOnDescription: true,
  });
  const choice = picked?.choice;
  if (!choice) return;
  if (choice.kind === 'key') {
    await vscode.commands.executeCommand('telos.setApiKey');
    return;
  }
  const model = choice.kind === 'model' ? choice.model : await askName(choice.provider);
  if (model === undefined) return;
  await useModel({ provider: choice.provider, model });
  if (choice.provider !== 'auto' && choice.provider !== 'replay') await chooseEffort(current);
}

/** Returns the models that are ready. */
export async function offeredModels(current: CurrentTelos): Promise<OfferedModel[]> {
  const offered: OfferedModel[] = [];
  for (const { label, description = '', choice } of await listItems(current)) {
    if (choice?.kind !== 'model' || choice.provider === 'replay') continue;
    const { provider, model } = choice;
    const detail =
      provider === 'auto' ? description : [providerLabel(provider), description].join(' ').trim();
    offered.push({ provider, model, label: label.replace('$(sparkle) ', ''), detail });
  }
  return offered;
}

/** Stores the model of the next runs as the setting. */
export async function useModel({ provider, model }: { provider: string; model: string }): Promise<void> {
  await store('provider', provider);
  await store('model', model);
}

/** Asks how much the chosen model is to think, if its effort can be set. */
async function chooseEffort(current: CurrentTelos): Promise<void> {
  const telos = await current.openTelos();
  const chosen = await telos.provider().catch(() => undefined);
  const { effortsOf } = await importEffort();
  const levels = chosen ? effortsOf(chosen.name, chosen.model) : [];
  if (!chosen || levels.length === 0) return;
  const { model } = chosen;
  const effort = await askEffort(plainLabel(model), effortFor(telos.config, model), levels);
  if (effort === undefined) return;
  const { [model]: _before, ...others } = vscode.workspace
    .getConfiguration('telos')
    .get<object>('effort') as Record<string, unknown>;
  await storeSetting('effort', effort === '' ? others : { ...others, [model]: effort });
}

async function listItems(current: CurrentTelos): Promise<ModelItem[]> {
  const telos = await current.openTelos();
  const { listModels } = await importModelList();
  const inForce = await telos.provider().catch(() => undefined);
  const [ofEngine, ofEditor] = await Promise.all([listModels(telos.config, false, inForce), lmModels()]);
  const using = inForce && `${inForce.name} ${inForce.model}`;
  const mark = (item: ModelItem): ModelItem => {
    const isUsed = item.choice?.kind === 'model' && `${item.choice.provider} ${item.choice.model}` === using;
    return isUsed
      ? { ...item, description: [item.description, vscode.l10n.t('in use')].filter(Boolean).join(', ') }
      : item;
  };
  const editorItems = ofEditor.map(model => ({
    label: plainLabel(model.name),
    description: plainLabel(lmModelName(model)),
    choice: { kind: 'model' as const, provider: lmProviderName, model: lmModelName(model) },
  }));
  const ready = ofEngine.filter(provider => provider.ready);
  const missing = ofEngine.filter(provider => !provider.ready);
  return [
    automatic(inForce),
    ...(editorItems.length > 0 ? [separator(providerLabel(lmProviderName)), ...editorItems.map(mark)] : []),
    ...ready.flatMap(provider => [
      separator(providerLabel(provider.name)),
      ...modelItems(provider).map(mark),
    ]),
    separator(vscode.l10n.t('Not set up')),
    ...missing.map(missingItem),
    {
      label: vscode.l10n.t('Recording'),
      description: vscode.l10n.t("the skills' recorded runs, no model"),
      choice: { kind: 'model', provider: 'replay', model: '' },
    },
  ];
}

const describe = ({ name, model }: { name: string; model: string }): string =>
  name === 'replay'
    ? vscode.l10n.t('the recording')
    : vscode.l10n.t('{0} of {1}', model, providerLabel(name));

function automatic(inForce: { name: string; model: string } | undefined): ModelItem {
  return {
    label: `$(sparkle) ${vscode.l10n.t('Automatic')}`,
    description: inForce ? plainLabel(vscode.l10n.t('now {0}', describe(inForce))) : '',
    detail: vscode.l10n.t('A key that is set, otherwise Ollama, otherwise a model of the editor'),
    choice: { kind: 'model', provider: 'auto', model: '' },
  };
}

function modelItems({ name, facts }: ProviderModels): ModelItem[] {
  const isWhole = name === 'ollama' || name === 'openai';
  const shown = facts.filter(({ isUsed }, at) => isWhole || isUsed || at < mostCurated);
  return [
    ...shown.map(one => ({
      label: plainLabel(one.id),
      description: describeFacts(one),
      choice: { kind: 'model' as const, provider: name, model: one.id },
    })),
    {
      label: vscode.l10n.t('Other...'),
      description: vscode.l10n.t('a model of {0} by its name', providerLabel(name)),
      choice: { kind: 'other', provider: name },
    },
  ];
}

/** Returns the price in US dollars per million tokens read and written, and the day on which the model ends. */
function describeFacts({ price, retires }: ModelFacts): string {
  const cost = price && `$${price.input} / $${price.output}`;
  return [cost, retires && vscode.l10n.t('ends on {0}', retires)].filter(Boolean).join(', ');
}

function missingItem({ name }: ProviderModels): ModelItem {
  return name === 'ollama'
    ? {
        label: providerLabel(name),
        description: vscode.l10n.t('does not respond; start it, then choose again'),
        choice: { kind: 'other', provider: name },
      }
    : { label: providerLabel(name), description: vscode.l10n.t('set its key...'), choice: { kind: 'key' } };
}

const separator = (label: string): ModelItem => ({ label, kind: vscode.QuickPickItemKind.Separator });

async function askName(provider: string): Promise<string | undefined> {
  const name = await askText({
    title: vscode.l10n.t('Model of {0}', providerLabel(provider)),
    prompt: vscode.l10n.t('The name as the provider writes it. Leave empty to use the default model.'),
    validateInput: text => (/\s/.test(text.trim()) ? vscode.l10n.t('A name has no spaces.') : undefined),
  });
  return name?.trim();
}

/** Stores the setting. An empty value, or `auto`, resets it. */
async function store(name: 'provider' | 'model', value: string): Promise<void> {
  const unset = value === '' || value === 'auto';
  await storeSetting(name, value, unset);
}

/** Stores a setting in the workspace if it is set there, or else for the user, where one that is `unset` is removed. */
async function storeSetting(name: string, value: unknown, unset = false): Promise<void> {
  const settings = vscode.workspace.getConfiguration('telos');
  const target =
    settings.inspect(name)?.workspaceValue === undefined
      ? vscode.ConfigurationTarget.Global
      : vscode.ConfigurationTarget.Workspace;
  const isRemoved = unset && target === vscode.ConfigurationTarget.Global;
  await settings.update(name, isRemoved ? undefined : value, target);
}

const labels: Readonly<Record<string, string>> = {
  anthropic: 'Anthropic',
  openai: 'OpenAI',
  gemini: 'Gemini',
  openrouter: 'OpenRouter',
  azure: 'Azure OpenAI',
  bedrock: 'Amazon Bedrock',
  vertex: 'Vertex AI',
  ollama: 'Ollama',
  vscode: 'VS Code',
  replay: 'Recording',
};

function providerLabel(name: string): string {
  return labels[name] ?? name;
}
