/** Draws the textbox for the request, and the button that sends it or stops the run. */
import { Fragment } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { announce } from './announcer.tsx';
import { Attachments, dropDeletedMentions, handedOver, onPaste } from './attachments.tsx';
import { chatCommands, helpShown, obey, recall } from './chatCommands.ts';
import { Completions, chosenOption, completionsId, forgetChoice, takeKey } from './completions.tsx';
import { ContextMeter } from './contextUse.tsx';
import { post, t } from './host.ts';
import { Icon } from './icons.tsx';
import { namedSkill } from './mentions.ts';
import { Dial, ModelPicker } from './pickers.tsx';
import { Restored, RunningCommands, Todos } from './pinned.tsx';
import { isAllowKey, useMenu } from './questions.tsx';
import {
  busy,
  continuing,
  cursor,
  draft,
  elsewhere,
  focusComposer,
  info,
  next,
  queued,
  ready,
  sendDraft,
  stop,
  textboxId,
} from './store.ts';
import { visible } from './visibleText.ts';

export function Composer() {
  const trusted = info.value?.trusted !== false;
  const canSend = ready.value && draft.value.trim() !== '';
  const listed = chosenOption();
  return (
    <form
      class="composer"
      onSubmit={event => {
        event.preventDefault();
        void send();
      }}
    >
      <Todos />
      <RunningCommands />
      <Restored />
      <Queue />
      {helpShown.value && <Help />}
      <div class="composer-box">
        <Completions />
        <NextSkill />
        <Attachments />
        <textarea
          id={textboxId}
          aria-label={t('Message Telos')}
          rows={1}
          placeholder={trusted ? t('Describe what you want to do') : t('Restricted Mode: nothing runs here')}
          value={draft.value}
          aria-autocomplete="list"
          aria-controls={listed ? completionsId : undefined}
          aria-activedescendant={listed}
          onInput={event => {
            dropDeletedMentions(draft.peek(), event.currentTarget.value);
            draft.value = event.currentTarget.value;
            cursor.value = event.currentTarget.selectionStart;
            forgetChoice();
          }}
          onSelect={event => {
            cursor.value = event.currentTarget.selectionStart;
          }}
          onPaste={onPaste}
          onKeyDown={onKeyDown}
        />
        <div class="composer-foot">
          <AttachButton />
          <Dial />
          <ModelPicker />
          <ContextMeter />
          <RunButton canSend={canSend} />
        </div>
      </div>
    </form>
  );
}

/** Lists the commands and keys of the chat. */
function Help() {
  const rows = [
    ...chatCommands.map(({ name, description }) => [name, description] as const),
    ['@', t('Attaches a file, the selection, problems or a resource')] as const,
    [t('Enter'), t('Sends')] as const,
    [t('Ctrl+Enter'), t('On a question: allows once, or goes to its choices or fields')] as const,
    [t('Shift+Enter'), t('Begins a new line')] as const,
    [t('Up'), t('Brings the last request back')] as const,
    [t('Escape'), t('Closes a list; on a question, denies or skips')] as const,
  ];
  const close = () => {
    helpShown.value = false;
    focusComposer();
  };
  useMenu(true, close);
  return (
    <section class="card help" aria-label={t('Commands and keys')}>
      <div class="card-title">
        <span>{t('Commands and keys')}</span>
        <button type="button" class="small" aria-label={t('Close')} title={t('Close')} onClick={close}>
          <Icon name="close" />
        </button>
      </div>
      <dl>
        {rows.map(([name, words]) => (
          <Fragment key={name}>
            <dt>
              <code>{name}</code>
            </dt>
            <dd>{words}</dd>
          </Fragment>
        ))}
      </dl>
    </section>
  );
}

function AttachButton() {
  return (
    <button
      type="button"
      class="attach-button"
      aria-label={t('Attach')}
      title={t('Attach a file, an image, the selection or problems (@)')}
      disabled={!ready.value}
      onClick={() => post({ type: 'attach' })}
    >
      <Icon name="attach" />
    </button>
  );
}

/** Holds both buttons. If the focused one disappears, the textbox gets the focus. */
function RunButton({ canSend }: { canSend: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const hadFocus = useRef(false);
  useLayoutEffect(() => {
    if (hadFocus.current && document.activeElement === document.body) focusComposer();
  }, [busy.value]);
  const onFocusChange = () => {
    hadFocus.current = place.current?.contains(document.activeElement) === true;
  };
  return (
    <div
      ref={place}
      class="run-buttons"
      onFocusIn={onFocusChange}
      onFocusOut={event => {
        if (event.relatedTarget) hadFocus.current = false;
      }}
    >
      {(!busy.value || canSend || elsewhere.value !== undefined) && (
        <button
          key="send"
          type="submit"
          class="run-button primary"
          aria-label={busy.value ? t('Send when the run ends') : t('Send')}
          title={busy.value ? t('Send when the run ends (Enter)') : t('Send (Enter)')}
          disabled={!canSend}
        >
          <Icon name="send" />
        </button>
      )}
      {busy.value && elsewhere.value === undefined && (
        <button
          key="stop"
          type="button"
          class="run-button"
          aria-label={t('Stop')}
          title={t('Stop the run')}
          onClick={stop}
        >
          <Icon name="stop" />
        </button>
      )}
    </div>
  );
}

function onKeyDown(event: KeyboardEvent) {
  // Some input methods send 229 for the Enter that ends a composition.
  const composing = event.isComposing || event.keyCode === 229;
  if (!composing && takeKey(event)) return;
  if (!composing && /^Arrow(?:Up|Down)$/.test(event.key) && takeRecall(event)) return;
  // Nothing is sent by the key that allows: its question may just have gone.
  if (event.key !== 'Enter' || event.shiftKey || event.altKey || composing || isAllowKey(event)) return;
  event.preventDefault();
  if (!event.repeat) void send();
}

/** Brings back an earlier request, if the person has typed nothing of their own. Returns true if the key was used. */
function takeRecall(event: KeyboardEvent): boolean {
  if (event.shiftKey || event.altKey || event.ctrlKey || event.metaKey) return false;
  const text = recall(draft.peek(), event.key === 'ArrowUp');
  if (text === undefined) return false;
  event.preventDefault();
  draft.value = text;
  focusComposer();
  return true;
}

/** Sends the draft. Waits first, so that something pasted right before is attached. */
async function send() {
  await handedOver();
  if (obey(draft.peek())) {
    draft.value = '';
    focusComposer();
  } else if (sendDraft()) focusComposer();
}

/** Shows the requests that wait for the end of the run. */
export function Queue() {
  if (queued.value.length === 0) return null;
  return (
    <ul class="queue" aria-label={t('Waiting requests')}>
      {queued.value.map(({ id, text }) => (
        <li key={id}>
          <Icon name="waiting" />
          <span class="one-line" title={visible(text)}>
            {visible(text)}
          </span>
          {!busy.value && (
            <button type="button" class="small" onClick={() => post({ type: 'run_queued', id })}>
              {t('Send now')}
            </button>
          )}
          <button
            type="button"
            class="small"
            aria-label={t('Remove waiting request')}
            title={t('Remove')}
            onClick={() => {
              post({ type: 'unqueue', id });
              announce([t('Removed.')]);
              focusComposer();
            }}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Shows the skill of the next request. Pressing it chooses another; the cross leaves the choice to the request's words. */
export function NextSkill() {
  const named = namedSkill(draft.value, info.value?.skills ?? []);
  const chosen = next.value;
  const continued = continuing.value;
  const skill = named ?? (chosen === undefined ? continued : chosen);
  if (skill === undefined) return null;
  const label =
    skill === null ? t('Telos chooses the skill') : skill.skill ? visible(skill.skill) : t('No skill');
  const whole = skill?.skill ? t('{0} of {1}', label, visible(skill.agent)) : label;
  const isContinued = !named && chosen === undefined;
  return (
    <div class="next-skill">
      <button
        type="button"
        class="chip"
        aria-label={t('Next request: {0}. Choose another skill', whole)}
        title={
          isContinued ? t('Your next request continues with: {0}', whole) : t('Your next request: {0}', whole)
        }
        onClick={() => post({ type: 'choose_skill' })}
      >
        <Icon name="route" />
        <span class="one-line">{label}</span>
      </button>
      {!named && skill !== null && (
        <button
          type="button"
          class="chip chip-clear"
          aria-label={t('Let Telos choose the skill')}
          title={t('Let Telos choose the skill by your words')}
          onClick={() => {
            next.value = null;
            focusComposer();
          }}
        >
          <Icon name="close" />
        </button>
      )}
    </div>
  );
}
