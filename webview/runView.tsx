/** Draws one run from request to end. Unchanged items are not drawn again. */

import type { AttachedName } from '@telos/protocol/attachment';
import { describeRoute } from '@telos/protocol/describe';
import type { RouteReason } from '@telos/protocol/run';
import { Component, type ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApprovalCard } from './approvalCard.tsx';
import { iconOf } from './attachments.tsx';
import { Compacted } from './contextUse.tsx';
import { EndCard, Likely } from './endCard.tsx';
import { post, t } from './host.ts';
import { Icon, type IconName } from './icons.tsx';
import { MarkdownView } from './markdownSurface.tsx';
import { pressable, useSettled } from './questions.tsx';
import { type Item, isWaiting, type RouteItem, type Run, rowsOf, type ServerName } from './runItems.ts';
import { busy, ready, resend, runInstead, staySkillless } from './store.ts';
import { Elapsed, ReadsRow, ThoughtRow, ToolCard } from './toolCard.tsx';
import { excerpt, visible, visibleLines } from './visibleText.ts';
import {
  describeActivity,
  describeRecording,
  describeRetry,
  describeScores,
  fitsText,
  formatNumber,
  modeNames,
} from './wording.ts';

/** Draws `of` again only if it or `draw` is a different one. The reducer never changes one in place. */
export class Unchanged<T> extends Component<{ of: T; draw: (of: T) => ComponentChildren }> {
  override shouldComponentUpdate(next: { of: T; draw: (of: T) => ComponentChildren }) {
    return next.of !== this.props.of || next.draw !== this.props.draw;
  }

  override render() {
    return this.props.draw(this.props.of);
  }
}

export function RunView({ run }: { run: Run }) {
  return (
    <>
      <h2 class="unseen">{t('Your request')}</h2>
      <Request runId={run.id} text={run.text} />
      {run.mode && <span class="badge run-mode">{modeNames[run.mode]}</span>}
      {(run.attached || run.selection) && <Attached names={run.attached ?? []} selection={run.selection} />}
      <Rows items={run.items} />
      {run.running && run.route?.reason.likely && <Likely text={run.text} likely={run.route.reason.likely} />}
      {run.running && <Activity run={run} />}
    </>
  );
}

const Rows = ({ items }: { items: readonly Item[] }) => (
  <>
    {rowsOf(items).map(({ index, items }) =>
      items.length > 1 ? (
        <ReadsRow key={`reads${index}`} items={items}>
          {items.map(drawRow)}
        </ReadsRow>
      ) : (
        drawRow(items[0]!, index)
      ),
    )}
  </>
);

/**
 * Draws the run of a skill that a call uses, folded unless the person has opened it or it asks something. A question cannot be folded
 * away: the click may have been on its way when it came. How the run ended is in the result of the call.
 */
function InnerRun({ run }: { run: Run }) {
  const [isOpen, setOpen] = useState(false);
  const waits = isWaiting(run);
  const name = run.route ? `${run.route.agent}:${run.route.skill}` : '';
  const words = t('Run of {0}', visible(name));
  return (
    <details class="inner-run" open={isOpen || waits}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button */}
      <summary
        aria-label={words}
        onClick={event => {
          event.preventDefault();
          if (!waits) setOpen(!isOpen);
        }}
      >
        <Icon name={run.running ? 'running' : 'route'} />
        <span class="tool-summary">{words}</span>
        <Icon name="chevron" />
      </summary>
      {(isOpen || waits) && (
        <div class="inner-items">
          <div class="request">
            <RequestText text={run.text} />
          </div>
          <Rows items={run.items.filter(({ kind }) => kind !== 'end')} />
          {run.running && <Activity run={run} />}
        </div>
      )}
    </details>
  );
}

/** Items are only ever appended, so the index identifies an item. */
const drawRow = (item: Item, index: number) => (
  <Unchanged key={`${item.kind}${index}`} of={item} draw={drawItem} />
);

function drawItem(item: Item) {
  switch (item.kind) {
    case 'route':
      return <Route item={item} />;
    case 'text':
      return <MarkdownView markdown={item.markdown} />;
    case 'thought':
      return <ThoughtRow item={item} />;
    case 'tool':
      return (
        <>
          <ToolCard item={item} />
          {item.inner && <InnerRun run={item.inner} />}
        </>
      );
    case 'approval':
      return <ApprovalCard item={item} />;
    case 'end':
      return <EndCard item={item} />;
    case 'step':
      return (
        <div class="line step">
          <Icon name="route" />
          <span>
            <strong>{visible(item.skill)}</strong> {visible(item.detail)}
          </span>
        </div>
      );
    case 'notice':
      return (
        <div class={`line notice-${item.level}`}>
          <Icon name={item.level} />
          <span class="message">
            {visibleLines(item.message)} {item.dead && <DeadServer {...item.dead} />}
          </span>
        </div>
      );
    case 'retry':
      return (
        <div class="line">
          <Icon name="waiting" />
          <span>{describeRetry(item)}</span>
        </div>
      );
    case 'compacted':
      return <Compacted item={item} />;
    case 'restored':
      return (
        <div class="line">
          <Icon name="info" />
          <span>{t('The compaction is undone: the model is sent the whole conversation again.')}</span>
        </div>
      );
  }
}

/** What helps against a server that does not start. */
function DeadServer({ agent, server }: ServerName) {
  const place = useRef<HTMLSpanElement>(null);
  const isSettled = useSettled(place);
  const act = (what: 'log' | 'off') =>
    pressable(isSettled, () => post({ type: 'dead_server', act: what, agent, server }));
  return (
    <span class="other-skill" ref={place}>
      <button
        type="button"
        class="link"
        title={t('No run starts {0} any more', visible(server))}
        {...act('off')}
      >
        {t('Switch Off')}
      </button>
      <button type="button" class="link" {...act('log')}>
        {t('Show Log')}
      </button>
    </span>
  );
}

function ChooseFolder({ agent, place = '' }: { agent: string; place?: string | undefined }) {
  return (
    <span class="other-skill">
      <button
        type="button"
        class="link"
        title={`${visible(place)}\n${t('Chooses where {0} writes its files', visible(agent))}`}
        onClick={() => post({ type: 'choose_folder', agent })}
      >
        {t('Choose Folder…')}
      </button>
    </span>
  );
}

function Request({ runId, text }: { runId: string; text: string }) {
  const [editing, setEditing] = useState(false);
  return editing ? (
    <RequestEditor runId={runId} text={text} close={() => setEditing(false)} />
  ) : (
    <div class="request">
      <RequestText text={text} />
      {ready.value && (
        <div class="request-tools">
          {!busy.value && (
            <>
              <Tool
                icon="undo"
                label={t('Restore files and conversation to here')}
                act={() => post({ type: 'restore', runId })}
              />
              <Tool
                icon="branch"
                label={t('Branch from here')}
                title={t('Branch from here: a new conversation that knows what was said before this request')}
                act={() => post({ type: 'branch', runId })}
              />
            </>
          )}
          <Tool
            icon="edit"
            label={t('Edit request')}
            title={t('Edit and resend; everything after it is removed')}
            act={() => setEditing(true)}
          />
        </div>
      )}
    </div>
  );
}

function Tool({
  icon,
  label,
  title = label,
  act,
}: {
  icon: IconName;
  label: string;
  title?: string;
  act: () => void;
}) {
  return (
    <button type="button" class="small" aria-label={label} title={title} onClick={act}>
      <Icon name={icon} />
    </button>
  );
}

/** Shows the attachments of the request. */
function Attached({ names, selection }: { names: readonly AttachedName[]; selection: string | undefined }) {
  return (
    <ul class="attachments request-attachments" aria-label={t('Attached to your request')}>
      {selection !== undefined && (
        <li class="attachment" title={t('Selection: {0}', visible(selection))}>
          <Icon name="file" />
          <span class="attachment-name">{visible(selection)}</span>
        </li>
      )}
      {names.map((each, index) => (
        <li key={index} class="attachment" title={visible(each.name)}>
          <Icon name={iconOf(each)} />
          <span class="attachment-name">{visible(each.name)}</span>
        </li>
      ))}
    </ul>
  );
}

function RequestText({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  // A person who picks a skill from a list needs no words.
  if (text === '') return <span class="quiet">{t('(no text)')}</span>;
  const { head, hidden, tail } = excerpt(text, whole ? Number.POSITIVE_INFINITY : 1_000);
  return (
    <>
      {head}
      {hidden > 0 && (
        <button type="button" class="hidden-part" onClick={() => setWhole(true)}>
          {t('{0} characters hidden: show all', formatNumber(hidden))}
        </button>
      )}
      {tail}
    </>
  );
}

/** Names the skill, why it was chosen, and the model, in one line. What does not fit is in its hover. */
function Route({ item }: { item: RouteItem }) {
  const why = visible(describeRoute(item.agent, item.skill, item.reason, t));
  const facts = [describeScores(item.reason), answeredBy(item)].filter(Boolean).map(fact => ` · ${fact}`);
  const more = [item.place, item.description].filter(Boolean).map(text => `\n${visible(text!)}`);
  return (
    <>
      {!item.isSame && (
        <div class="line route" title={[why, ...facts, ...more].join('')}>
          <Icon name="route" />
          <span class="one-line">
            {why}
            <span class="figures">{facts}</span>
          </span>
          {item.folderOf === undefined || isGuess(item) ? (
            <OtherSkill item={item} />
          ) : (
            <ChooseFolder agent={item.folderOf} place={item.place} />
          )}
        </div>
      )}
      <Switched item={item} />
      {item.recording && (
        <div class="line recording">
          <span class="badge">{t('Recording')}</span>
          <span>{describeRecording(item.recording)}</span>
        </div>
      )}
    </>
  );
}

/** Returns which model answers. Empty for a recording, which is named below. */
function answeredBy({ provider, model, recording }: RouteItem): string {
  if (recording) return '';
  return provider === 'replay' ? t('no model') : visible(model);
}

/** Says that the conversation has left its skill, with the way back, or which other skill fits about as well. */
function Switched({ item: { skill, text, reason } }: { item: RouteItem }) {
  const { switchedFrom, alsoFits, rule } = reason;
  // A person who names a skill knows that it is another one.
  if (text.trim() === '' || !ready.value || rule === 'explicit' || rule === 'chosen') return null;
  if (switchedFrom) {
    const before = visible(switchedFrom.skill);
    return (
      <div class="line switched">
        {fitsText(visible(skill), { ...reason, switchedFrom: { ...switchedFrom, skill: before } })}
        <button
          type="button"
          class="chip"
          title={t('Runs this request as the conversation went on before')}
          onClick={() => (before ? runInstead(text, switchedFrom) : staySkillless(text))}
        >
          {before ? t('Stay with {0}', before) : t('Stay without a skill')}
        </button>
      </div>
    );
  }
  if (!alsoFits) return null;
  return (
    <div class="line switched">
      <button
        type="button"
        class="chip"
        title={t('Runs the same request with {0} of {1}', visible(alsoFits.skill), visible(alsoFits.agent))}
        onClick={() => runInstead(text, alsoFits)}
      >
        {fitsText(skill, { ...reason, alsoFits: { ...alsoFits, skill: visible(alsoFits.skill) } })}
      </button>
    </div>
  );
}

/** Rules that understood the words, and may have misunderstood them. */
const guesses: readonly RouteReason['rule'][] = ['index', 'model', 'misspelt', 'learned', 'name'];

const isGuess = ({ text, reason }: RouteItem): boolean => text.trim() !== '' && guesses.includes(reason.rule);

/** Corrects a choice that may be wrong: the runner-up with one click, any other skill from a list. */
function OtherSkill({ item }: { item: RouteItem }) {
  const { text, reason } = item;
  if (!ready.value || !isGuess(item)) return null;
  const { runnerUp } = reason;
  return (
    <span class="other-skill">
      {runnerUp && (
        <button
          type="button"
          class="link"
          title={t('Runs the same request with {0} of {1}', visible(runnerUp.skill), visible(runnerUp.agent))}
          onClick={() => runInstead(text, { agent: runnerUp.agent, skill: runnerUp.skill })}
        >
          {t('Run {0} instead', visible(runnerUp.skill))}
        </button>
      )}
      <button
        type="button"
        class="link"
        title={t('Runs the same request with a skill of your choice')}
        onClick={() => post({ type: 'pick_skill', text })}
      >
        {t('Other Skill…')}
      </button>
    </span>
  );
}

/** Shows what the run does while no text arrives, and for how long. It never just says "thinking". */
function Activity({ run }: { run: Run }) {
  const words = describeActivity(run);
  if (words === undefined) return null;
  return (
    <div class="line activity" key={words}>
      <Icon name="running" />
      <span>{words}</span>
      <Elapsed key={run.items.length} />
    </div>
  );
}

function RequestEditor({ runId, text, close }: { runId: string; text: string; close: () => void }) {
  const [words, setWords] = useState(text);
  const textbox = useRef<HTMLTextAreaElement>(null);
  // Runs before the editor is shown. Later, the cursor would jump while the person types or selects.
  useLayoutEffect(() => {
    textbox.current?.focus();
    textbox.current?.setSelectionRange(text.length, text.length);
  }, []);
  const send = () => {
    if (words.trim() === '') return;
    resend(runId, words);
    close();
  };
  return (
    <form
      class="request-editor"
      onSubmit={event => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={textbox}
        aria-label={t('Edit request')}
        rows={1}
        value={words}
        onInput={event => setWords(event.currentTarget.value)}
        onKeyDown={event => {
          if (event.isComposing) return;
          if (event.key === 'Escape') close();
          else if (event.key === 'Enter' && !event.shiftKey && !event.altKey) send();
          else return;
          event.preventDefault();
        }}
      />
      <div class="buttons">
        <button type="submit" class="primary" disabled={words.trim() === ''}>
          {t('Send')}
        </button>
        <button type="button" class="secondary" onClick={close}>
          {t('Cancel')}
        </button>
        <span class="quiet">{t('Everything after it is removed; files are not changed.')}</span>
      </div>
    </form>
  );
}
