/** Offers the models that Telos is set up with to the editor, so that its Chat view and other extensions can use them; only where the person has asked for it. */
import * as vscode from 'vscode';
import type { ProviderModels } from '../../engine/providers/models.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';
import { providerLabel } from './chooseModel.ts';
import { offeredVendor } from './lmProvider.ts';

interface OfferedModel extends vscode.LanguageModelChatInformation {
  provider: string;
  model: string;
}

const setting = 'offerModels';
const toldKey = 'telos.toldOfBilling';

/** Of the models that a list of prices knows, as many as a person looks through. */
const mostCurated = 8;
/** What the smallest of the known models takes; a model on this machine usually takes less. In tokens. */
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
        tellOnce(model as OfferedModel, memory);
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

/** None where nobody has asked for it: then neither a key nor a server is looked at. Models of the editor itself never are among them. */
async function offered(current: CurrentTelos): Promise<OfferedModel[]> {
  if (!isOn() || !vscode.workspace.isTrusted) return [];
  const { config } = await current.openTelos();
  const { listModels } = await import('../../engine/providers/models.ts');
  return (await listModels(config)).filter(({ ready }) => ready).flatMap(modelsOf);
}

function modelsOf({ name: provider, models }: ProviderModels): OfferedModel[] {
  const isLocal = provider === 'ollama';
  const shown = isLocal || provider === 'openai' ? models : models.slice(0, mostCurated);
  const whose = isLocal ? vscode.l10n.t('on your machine') : vscode.l10n.t('billed to your key');
  return shown.map(model => ({
    id: `${provider}/${model}`,
    name: plainLabel(model, 80),
    family: model,
    version: '1',
    detail: `${providerLabel(provider)}, ${whose}`,
    tooltip: isLocal
      ? vscode.l10n.t('Telos asks the Ollama that you have set up.')
      : vscode.l10n.t(
          'Telos asks {0} with your own key, and each question is billed to it.',
          providerLabel(provider),
        ),
    maxInputTokens: isLocal ? localInput : hostedInput,
    maxOutputTokens: mostOutput,
    capabilities: { toolCalling: true, imageInput: !isLocal },
    provider,
    model,
  }));
}

/** The first question to a model that costs is told, since another extension may have put it. */
function tellOnce({ provider, model }: OfferedModel, memory: vscode.Memento): void {
  if (provider === 'ollama' || memory.get(toldKey)) return;
  void memory.update(toldKey, true);
  void vscode.window
    .showInformationMessage(
      vscode.l10n.t(
        'The editor has asked {0} through Telos. It is billed to your key of {1}; it counts towards what a day may cost.',
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
    `Telos does not offer its models here. The setting telos.${setting} does that, in a workspace that is trusted.`,
  );
