/**
 * Disarms names and texts from skills, models and files. They are hostile if the editor reads links and icons out of
 * them.
 */

import { TelosError } from '@telos/engine/errors';
import type { Diagnostic } from '@telos/engine/files';
import { withHookNotice } from '@telos/protocol/describe';
import type { LocalizedMessage, Remedy, RunEvent } from '@telos/protocol/run';
import {
  Characters,
  codePointOf,
  english,
  type Say,
  type Sentence,
  shortened,
  spoken,
  unseen,
} from '@telos/protocol/text';

/** Matches invisible characters except the joiners and selectors that emoji and some scripts need. */
const invisible = new Characters(`(?![\\u200c\\u200d\\ufe0e\\ufe0f])${unseen.source}`);

/**
 * Returns one line that the editor shows literally: no `[text](command:...)` link, no `$(icon)` code, nothing
 * invisible. Longer texts are cut to `limit` characters, the last of them an ellipsis.
 */
export function plainLabel(text: string, limit = 200): string {
  const line = invisible
    .replacedIn(text.replace(/\s+/g, ' '), () => '')
    .replaceAll('](', '] (')
    .replaceAll('$(', '$ (')
    .trim();
  return shortened(line, limit);
}

const hidden = new Characters(`(?!\\n)(?:${unseen.source})`);

/** Replaces each hidden character with its code point, such as `<U+200B>`. Line breaks are kept. */
export const visibleText = (text: string): string => hidden.replacedIn(text, codePointOf);

let say: Say = english;
let locale = 'en';

/**
 * Sets the language. Call it once, before any text is shown. `name` is the language's name, in the form of
 * `vscode.env.language`.
 */
export function speak(language: Say, name: string): void {
  say = language;
  locale = name;
}

/** Formats the date and time of day for the reader's language. */
export const describeTime = (time: Date): string => time.toLocaleString(locale);

/** Translates like `vscode.l10n.t`. The first argument is the literal English text, so that a test can find it. */
export const t: Say = (text, ...values) => say(text, ...values);

/** Returns a message and what to do next, in the reader's language and with the names of the editor's commands. */
export function describeMessage({ message, sentences, remedy }: LocalizedMessage): string {
  const said = sentences ? spoken(sentences, t) : message;
  return remedy ? `${said} ${describeRemedy(remedy)}` : said;
}

/** Returns a sentence in the reader's language. */
export const translated = (said: Sentence): string => spoken([said], t);

/** Returns what a diagnostic says and how to mend it, in the reader's language. */
export function describeDefect(defect: Diagnostic): { message: string; fix: string | undefined } {
  const { message, sentences, fix, fixSentence } = defect;
  return {
    message: sentences ? spoken(sentences, t) : message,
    fix: fixSentence ? translated(fixSentence) : fix,
  };
}

/** Returns the words of an error of the engine as `describeMessage` does, and the message of any other. */
export function describeError(error: unknown): string {
  if (error instanceof TelosError) return describeMessage(error.runError);
  return error instanceof Error ? error.message : String(error);
}

/** Returns the event with its sentences in the reader's language. Unchanged if it has none. */
export function localized(event: RunEvent): RunEvent {
  switch (event.type) {
    case 'notice': {
      const { remedy, ...said } = event;
      // The view has a button for it.
      if (remedy?.kind === 'choose_folder') return { ...event, message: describeMessage(said) };
      return event.sentences || remedy ? { ...event, message: describeMessage(event) } : event;
    }
    case 'hook':
      return withHookNotice(event, t);
    case 'retry':
      return event.sentences ? { ...event, why: spoken(event.sentences, t) } : event;
    case 'approval_request': {
      const { request } = event;
      const { sentences, box = [] } = request;
      if (!sentences) return event;
      return { ...event, request: { ...request, reason: spoken([...sentences, ...box], t) } };
    }
    case 'run_end':
      return event.error
        ? { ...event, error: { ...event.error, message: describeMessage(withoutButtons(event.error)) } }
        : event;
    case 'skill_event':
      return { ...event, event: localized(event.event) };
    default:
      return event;
  }
}

/** Remedies that the card of a failed run offers as buttons. */
const onCard: readonly Remedy['kind'][] = ['set_key', 'set_up_model', 'choose_model'];

function withoutButtons({ remedy, ...said }: LocalizedMessage): LocalizedMessage {
  return remedy && !onCard.includes(remedy.kind) ? { ...said, remedy } : said;
}

function describeRemedy(remedy: Remedy): string {
  switch (remedy.kind) {
    case 'set_key':
      return t('Set it with “Telos: Set API Key...”, or choose another model.');
    case 'set_up_model':
      return t(
        'Set a key with “Telos: Set API Key...”, choose a model with “Telos: Choose Model...”, or start Ollama.',
      );
    case 'choose_model':
      return t('Choose another model with “Telos: Choose Model...”.');
    case 'add_skill':
      return t(
        'Create a first skill with “Telos: New Skill...”, or add the sample pack with “Telos: Add Sample Pack”.',
      );
    case 'choose_name':
      return t('Install this agent under another name, or remove or rename the other one.');
    case 'review_agent':
      return t('Review agent {0} with “Telos: Review Agent...”.', remedy.agent);
    case 'choose_folder':
      return t('Choose another folder with “Telos: Choose Working Folder...”.');
    case 'allow_rule':
      return t(
        'To always allow it, add an [[allow]] rule to {0}: {1}.',
        remedy.file,
        remedy.lines.join(', '),
      );
    case 'check_policy':
      return t('The rules are listed by “Telos: Manage Permissions...”.');
    case 'lint':
      return t('The Problems view lists them.');
    case 'record_again':
      return t('Record the run again.');
  }
}

/**
 * Puts a backslash before every character with a meaning in Markdown. Spaces stay spaces, so that a narrow view can
 * still wrap the line.
 */
export const escapeMarkdown = (text: string): string => text.replace(/[!-/:-@[-`{-~]/g, '\\$&');
