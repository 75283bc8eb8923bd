/**
 * Implements `Telos: Open Conversation...`: opens or replays a stored conversation in the sidebar or in an editor. Also
 * moves the sidebar's conversation into an editor.
 */
import { importRunSummary } from '@telos/engine/records';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import { describeError, plainLabel } from '../base/labels.ts';
import type { ChatDesk } from '../chat/chatHost.ts';
import type { ChatPanels, ChatView } from '../chat/chatPlaces.ts';
import type { Conversation } from '../chat/conversation.ts';
import type { ConversationPlace } from '../chat/storedConversations.ts';
import { outcomeLabel } from './runItem.ts';

/** The argument of the command. Without an id, the person is asked for a conversation. */
interface Wanted {
  conversationId?: string;
  runId?: string;
  /** Opens it in an editor. The sidebar stays unchanged. */
  panel?: boolean;
  /** Replays the conversation, or only the run if one is named. Nothing runs. */
  replay?: boolean;
  /** Continues its latest run if that was interrupted or stopped. */
  resume?: boolean;
}

/** The number of conversations in the list. The runs view finds the others. */
const mostOffered = 200;

/** Where conversations are shown. */
interface Places {
  desk: ChatDesk;
  view: ChatView;
  panels: ChatPanels;
}

export async function moveChatToEditor({ view, panels }: Places): Promise<void> {
  const conversation = await view.give();
  if (conversation) await panels.open().host.chat.open(conversation);
}

export async function openConversation({ desk, view, panels }: Places, given?: unknown): Promise<void> {
  const wanted = readWanted(given);
  try {
    const place = placeOf(wanted) ?? (await pick(desk));
    if (place) await openPlace(place, wanted, desk, view, panels);
  } catch (error) {
    const why = describeError(error);
    complain(plainLabel(why, 500));
  }
}

async function openPlace(
  place: ConversationPlace,
  { panel, replay, resume }: Wanted,
  desk: ChatDesk,
  view: ChatView,
  panels: ChatPanels,
): Promise<void> {
  if (replay && 'runId' in place) {
    const run = await desk.kept.run(place.runId);
    await panels.open().host.chat.replay([run]);
    return;
  }
  const open = 'conversationId' in place && !replay ? desk.chats.holding(place.conversationId) : undefined;
  if (open) {
    await open.focus();
    if (resume && 'runId' in place) open.chat.resume(place.runId);
    return;
  }
  const conversation = await desk.kept.conversation(place);
  if (!conversation) {
    acknowledge(vscode.l10n.t('This conversation is no longer stored.'));
    return;
  }
  if (replay) await panels.open().host.chat.replay(conversation.restoredRuns, conversation.title);
  else await openShown(conversation, panel === true, desk, view, panels);
  if (resume && 'runId' in place) desk.chats.holding(conversation.conversationId)?.chat.resume(place.runId);
}

/** Opens the conversation without replacing an active run in the sidebar. */
async function openShown(
  conversation: Conversation,
  inPanel: boolean,
  desk: ChatDesk,
  view: ChatView,
  panels: ChatPanels,
): Promise<void> {
  const open = desk.chats.holding(conversation.conversationId);
  if (open) await open.focus();
  else if (inPanel || view.isRunning) await panels.open().host.chat.open(conversation);
  else await view.open(conversation);
}

/** Reads the argument field by field, because other extensions and links can call the command. */
function readWanted(given: unknown): Wanted {
  if (typeof given !== 'object' || given === null) return {};
  const { conversationId, runId, panel, replay, resume } = given as Record<string, unknown>;
  return {
    ...(typeof conversationId === 'string' && { conversationId }),
    ...(typeof runId === 'string' && { runId }),
    panel: panel === true,
    replay: replay === true,
    resume: resume === true,
  };
}

function placeOf({ conversationId, runId }: Wanted): ConversationPlace | undefined {
  if (runId !== undefined) return { runId };
  return conversationId === undefined ? undefined : { conversationId };
}

async function pick(desk: ChatDesk): Promise<ConversationPlace | undefined> {
  const { titleOf } = await importRunSummary();
  const runs = await (await desk.kept.history()).list();
  const seen = new Set<string>();
  const latest = runs.filter(({ conversation }) => !seen.has(conversation) && seen.add(conversation));
  const items = latest.slice(0, mostOffered).map(run => ({
    label: plainLabel(titleOf(run), 80),
    description: new Date(run.startedAt).toLocaleString(vscode.env.language),
    detail: plainLabel(
      [run.skill && vscode.l10n.t('{0} of {1}', run.skill, run.agent ?? ''), outcomeLabel(run.outcome)]
        .filter(Boolean)
        .join(' · '),
    ),
    place: { conversationId: run.conversation },
  }));
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t('Open Conversation'),
    placeHolder:
      items.length > 0 ? vscode.l10n.t('Which conversation?') : vscode.l10n.t('No conversations yet'),
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return picked?.place;
}
