/** Starts the chat view: applies the host's messages once per frame and mounts the components. */
import './layout.css';
import './markdown.css';
import './parts.css';
import type { ToWebview } from '@telos/protocol/webview';
import { render } from 'preact';
import { Announcer, announce } from './announcer.tsx';
import { DropPlace } from './attachments.tsx';
import { Composer } from './composer.tsx';
import { Conversation } from './conversation.tsx';
import { takeFilesFound, takeImage } from './fileLinks.ts';
import { post, t } from './host.ts';
import { takeClicks } from './markdownSurface.tsx';
import { takeQuestionKeys } from './questions.tsx';
import {
  emptyChat,
  type Inbox,
  interrupt,
  type Receipt,
  receiveConversation,
  receiveEvents,
  reduceAll,
} from './state.ts';
import {
  attached,
  batch,
  chat,
  chooseNext,
  commands,
  contextFiles,
  conversationId,
  cursor,
  draft,
  focusComposer,
  foundFiles,
  habitOffer,
  info,
  lastRunId,
  mode,
  models,
  next,
  offers,
  pending,
  putCursor,
  queued,
  ranElsewhere,
  restored,
  surroundings,
  teachingOffer,
  today,
  undone,
  viewProblem,
} from './store.ts';
import { announcementsFor, initialSpeech, modeNames } from './wording.ts';

let inbox: Inbox = { id: conversationId.peek(), have: 0 };
let speech = initialSpeech;
/** True from a request for missing events until the host answers, so that a gap is requested only once. */
let asking = true;
let queue: ToWebview[] = [];

function flush() {
  const messages = queue;
  queue = [];
  batch(() => messages.forEach(take));
}

function take(message: ToWebview) {
  switch (message.type) {
    case 'conversation':
      asking = false;
      info.value = message.info;
      // The person's draft is kept, even from before the host's first message, unless another conversation brings its own.
      if (message.id !== conversationId.peek() && message.draft && !isTypedBefore())
        draft.value = message.draft;
      if (message.id !== conversationId.peek() && message.events.length === 0) next.value = undefined;
      queued.value = message.queued ?? [];
      if (message.id !== conversationId.peek()) commands.value = [];
      mode.value = message.mode ?? 'default';
      contextFiles.value = message.withoutContextFiles !== true;
      conversationId.value = message.id;
      restored.value = message.restored;
      apply(receiveConversation(inbox, message));
      if (message.running === false) chat.value = interrupt(chat.peek());
      ranElsewhere.value =
        message.elsewhere === undefined ? undefined : { runId: lastRunId.peek(), where: message.elsewhere };
      break;
    case 'events':
      apply(receiveEvents(inbox, message));
      break;
    case 'info':
      info.value = message.info;
      break;
    case 'context_files':
      contextFiles.value = message.on;
      break;
    case 'mode':
      mode.value = message.mode;
      announce([t('Mode: {0}', modeNames[message.mode])]);
      break;
    case 'surroundings':
      surroundings.value = message.surroundings;
      break;
    case 'models':
      models.value = message.models;
      break;
    case 'commands':
      commands.value = message.commands;
      break;
    case 'undone':
      undone.value = new Set(message.runIds);
      break;
    case 'teaching_offer':
      teachingOffer.value = message.text ?? undefined;
      break;
    case 'habit_offer':
      habitOffer.value = message.name === null ? undefined : { name: message.name, runId: lastRunId.peek() };
      // One offer at a time is read.
      if (habitOffer.value) teachingOffer.value = undefined;
      break;
    case 'today':
      today.value = message.today;
      break;
    case 'attached':
      attached.value = message.attachments;
      viewProblem.value = message.problem;
      break;
    case 'problem':
      viewProblem.value = message.text;
      break;
    case 'files_found':
      foundFiles.value = { query: message.query, files: message.files };
      break;
    case 'offers':
      offers.value = { prompts: message.prompts, resources: message.resources };
      break;
    case 'insert': {
      const [text, at] = [draft.peek(), cursor.peek()];
      draft.value = text.slice(0, at) + message.text + text.slice(at);
      putCursor(at + message.text.length);
      break;
    }
    case 'files_looked_up':
      takeFilesFound(message.asked, message.found);
      break;
    case 'image':
      takeImage(message.path, message.data, message.problem);
      break;
    case 'queued':
      queued.value = message.queued;
      pending.value = false;
      break;
    case 'next_skill':
      chooseNext(message.skill);
      focusComposer();
      break;
    case 'draft':
      pending.value = false;
      if (message.suggested && draft.peek() !== '') break;
      draft.value = message.text;
      focusComposer();
      break;
  }
}

const isTypedBefore = (): boolean => conversationId.peek() === null && draft.peek() !== '';

function apply(receipt: Receipt) {
  inbox = receipt.inbox;
  if (receipt.gap && !asking) ask();
  if (receipt.reset) speech = initialSpeech;
  else speak(receipt);
  const before = receipt.reset ? emptyChat : chat.peek();
  if (!receipt.reset && receipt.events.length === 0) return;
  chat.value = reduceAll(before, receipt.events);
  if (!receipt.reset) restored.value = undefined;
  pending.value = false;
}

/** Announces new events. Those of a conversation that is drawn again were announced before. */
function speak(receipt: Receipt) {
  for (const event of receipt.events) {
    const heard = announcementsFor(speech, event);
    speech = heard.speech;
    announce(heard.say);
  }
}

function ask() {
  asking = true;
  post({ type: 'ready', id: inbox.id, have: inbox.have });
}

function App() {
  return (
    <main>
      <h1 class="unseen">Telos</h1>
      <Conversation />
      <Composer />
      <Announcer />
      <DropPlace />
    </main>
  );
}

window.addEventListener('message', event => {
  if (queue.length === 0) requestAnimationFrame(flush);
  queue.push(event.data as ToWebview);
});
window.addEventListener('focus', () => {
  if (document.activeElement === document.body) focusComposer();
});
takeClicks(document);
takeQuestionKeys();
render(<App />, document.getElementById('root')!);
ask();
