/** What a chat shows around its conversation: which model answers next, and what skills there are. */
import * as vscode from 'vscode';
import { TelosError } from '../engine/errors.ts';
import type { Telos } from '../engine/telos.ts';
import type { ChatInfo } from '../protocol/webview.ts';
import type { CurrentTelos } from './currentTelos.ts';
import { descriptionOf, pickableSkills } from './pickableSkills.ts';
import { plainLabel } from './plainLabel.ts';

/** The view shows one line of each, and with thousands of skills each line counts. In characters. */
const maxListedDescription = 160;

/** Never throws; what cannot be read is said, and stands in the log. */
export async function readChatInfo(current: CurrentTelos, log: vscode.LogOutputChannel): Promise<ChatInfo> {
  const trusted = vscode.workspace.isTrusted;
  try {
    const telos = await current.openTelos();
    const [choice, agents] = await Promise.all([choiceOf(telos, log), telos.agents()]);
    const skills = (await pickableSkills(agents)).map(({ agent, skill }) => ({
      agent: agent.name,
      skill: skill.id,
      description: plainLabel(descriptionOf(skill), maxListedDescription),
    }));
    return { provider: choice.name, model: choice.model, recording: choice.recording, skills, trusted };
  } catch (error) {
    log.error('What the chat shows about models and skills could not be read.', error);
    return { provider: vscode.l10n.t('not available'), model: '', recording: false, skills: [], trusted };
  }
}

/** A provider that is not set up does not keep the skills from being shown; the run says what is missing. */
async function choiceOf(
  telos: Telos,
  log: vscode.LogOutputChannel,
): Promise<{ name: string; model: string; recording: boolean }> {
  try {
    return await telos.provider();
  } catch (error) {
    log.warn(error instanceof TelosError ? error.message : String(error));
    return { name: vscode.l10n.t('not set up'), model: '', recording: false };
  }
}
