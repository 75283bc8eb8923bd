/**
 * Offers the models that are set up in Telos to the editor's Chat view and to other extensions. Only if the person has
 * turned this on.
 */
import * as vscode from 'vscode';
import type { ProviderModels } from '../../engine/providers/modelList.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';
import { offeredVendor } from './lmProvider.ts';

interface OfferedModel extends vscode.LanguageModelChatInformation {
  provider: string;
  model: string;
}

const setting = 'offerModels';
const toldKey = 'telos.toldOfBilling';

/** The number of models shown from a price list: as many as a person reads through. */
const mostCurated = 8;
/** The input limit of the smallest known model. A local model usually takes less. In tokens. */
const hostedInput = 128_000;
const localInput = 32_000;
const mostOutput = 16_384;

export function registerOfferedModels(current: CurrentTelos, memory: vscode.Memento): vscode.Disposable {
  const changed = new vscode.EventEmitter<void>();
  return vscode.Disposable.from(
    changed,
    current.onDidChange(() => changed.fire()),
    vscode.lm.registerLanguageModelChatProvider(offeredVendor, {
      onDidChangeLanguageModelChatInformation: changed.event,
      provideLanguageModelChatInformation: () => offered(current),
      provideLanguageModelChatResponse: async (model, messages, options, progress, token) => {
        void tellOnce(model as OfferedModel, memory);
        if (!isOn() || !vscode.workspace.isTrusted) throw notOffered();
        const [{ answerOffered }, { fromLmRequest }] = await Promise.all([
          import('./answerOffered.ts'),
          import('./lmMessages.ts'),
        ]);
        const request = fromLmRequest(messages, options);
        await answerOffered(current, model as OfferedModel, request, progress, token);
      },
      provideTokenCount: async (_model, text) => (await import('./lmMessages.ts')).estimateTokens(text),
    }),
  );
}

const isOn = (): boolean => vscode.workspace.getConfiguration('telos').get<boolean>(setting) === true;

/**
 * Returns the offered models. Unless the person has turned this on, there are none, and no key or server is read.
 * Models of the editor itself are never included.
 */
async function offered(current: CurrentTelos): Promise<OfferedModel[]> {
  if (!isOn() || !vscode.workspace.isTrusted) return [];
  const { config } = await current.openTelos();
  const [{ listModels }, { providerLabel }] = await Promise.all([
    import('../../engine/providers/modelList.ts'),
    import('./chooseModel.ts'),
  ]);
  const ready = (await listModels(config)).filter(provider => provider.ready);
  return ready.flatMap(provider => modelsOf(provider, providerLabel(provider.name)));
}

function modelsOf({ name: provider, models }: ProviderModels, label: string): OfferedModel[] {
  const isLocal = provider === 'ollama';
  const shown = isLocal || provider === 'openai' ? models : models.slice(0, mostCurated);
  const whose = isLocal ? vscode.l10n.t('on your machine') : vscode.l10n.t('billed to your key');
  return shown.map(model => ({
    id: `${provider}/${model}`,
    name: plainLabel(model, 80),
    family: model,
    version: '1',
    detail: `${label}, ${whose}`,
    tooltip: isLocal
      ? vscode.l10n.t('Telos uses the Ollama that you have set up.')
      : vscode.l10n.t('Telos uses {0} with your own key, and each request is billed to it.', label),
    maxInputTokens: isLocal ? localInput : hostedInput,
    maxOutputTokens: mostOutput,
    capabilities: { toolCalling: true, imageInput: !isLocal },
    provider,
    model,
  }));
}

/** Reports the first request to a model that costs money, since another extension may have made it. */
async function tellOnce({ provider, model }: OfferedModel, memory: vscode.Memento): Promise<void> {
  if (provider === 'ollama' || memory.get(toldKey)) return;
  void memory.update(toldKey, true);
  const { providerLabel } = await import('./chooseModel.ts');
  void vscode.window
    .showInformationMessage(
      vscode.l10n.t(
        'The editor used {0} through Telos. It is billed to your key of {1} and counts towards the budget of the day.',
        plainLabel(model, 80),
        providerLabel(provider),
      ),
      vscode.l10n.t('Open Setting'),
    )
    .then(answer => {
      if (answer) void vscode.commands.executeCommand('workbench.action.openSettings', `telos.${setting}`);
    });
}

const notOffered = (): Error =>
  vscode.LanguageModelError.NotFound(
    vscode.l10n.t(
      'Telos does not offer its models here. The setting {0} does that, in a workspace that is trusted.',
      `telos.${setting}`,
    ),
  );
