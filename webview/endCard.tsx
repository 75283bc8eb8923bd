/** Shows how a run ended, and what to do next if it did not end well. */

import type { ErrorCode, RunError } from '@telos/protocol/run';
import { describeDay, describeLeft } from '@telos/protocol/usage';
import type { ViewCommand } from '@telos/protocol/webview';
import { useRef } from 'preact/hooks';
import { post, t } from './host.ts';
import { Icon, type IconName } from './icons.tsx';
import { pressable, useSettled } from './questions.tsx';
import type { EndItem, RoundUsage } from './runItems.ts';
import {
  busy,
  info,
  lastRunId,
  ready,
  resend,
  resume,
  runInstead,
  teachingOffer,
  today,
  undone,
} from './store.ts';
import { visible, visibleLines } from './visibleText.ts';
import { describeChanges, describeEnd, describeFigures, describeOutcome, describeRound } from './wording.ts';

/** Errors that another model may well solve. */
const modelErrors: readonly ErrorCode[] = ['auth', 'config', 'no_answer', 'provider', 'rate_limit'];

const icons: Partial<Record<EndItem['outcome'], IconName>> = {
  completed: 'done',
  failed: 'failed',
  cancelled: 'stopped',
  interrupted: 'stopped',
};

export function EndCard({ item }: { item: EndItem }) {
  return (
    <>
      {item.error && <ErrorCard item={item} message={item.error.message} />}
      <div class={`line end end-${item.outcome}`}>
        {item.outcome !== 'completed' && <Icon name={icons[item.outcome] ?? 'warning'} />}
        <Figures item={item} />
        {!item.error && item.outcome !== 'interrupted' && item.outcome !== 'round_limit' && (
          <Retry item={item} isSmall />
        )}
        {item.hasSkill && item.outcome !== 'interrupted' && item.outcome !== 'cancelled' && (
          <Improve item={item} />
        )}
      </div>
      {item.changedFiles.length > 0 && <Changes item={item} />}
      {(item.outcome === 'interrupted' || item.outcome === 'round_limit') && <WaysOn item={item} />}
      {item.likely && <Likely text={item.text} likely={item.likely} />}
      {item.runId === lastRunId.value && <TeachingOffer />}
    </>
  );
}

/** Names the skills that the request may have meant, before and below an answer without one. Each runs it in place of that answer. */
export function Likely({ text, likely }: { text: string; likely: NonNullable<EndItem['likely']> }) {
  const place = useRef<HTMLDivElement>(null);
  const isSettled = useSettled(place);
  return (
    <div class="line switched" ref={place}>
      <span class="quiet">{t('no skill')}</span>
      {likely.map(({ agent, skill }) => (
        <button
          key={`${agent}:${skill}`}
          type="button"
          class="chip"
          title={t('Runs the same request with {0} of {1}', visible(skill), visible(agent))}
          {...pressable(isSettled, () => runInstead(text, { agent, skill }))}
        >
          {visible(skill)}?
        </button>
      ))}
    </div>
  );
}

/** Shows the time and the cost, and an end that was not a good one. Hovered or opened, all that is known. */
function Figures({ item }: { item: EndItem }) {
  const day = item.runId === lastRunId.value ? today.value : undefined;
  const outcome = describeOutcome(item.outcome);
  const left = day ? describeLeft(day, t) : [];
  const seen = [...describeEnd(item), ...left].join(' · ');
  const known = [...describeFigures(item), ...(day ? describeDay(day, t) : [])].join(' · ');
  return (
    <details class="end-figures">
      <summary title={[outcome, known].filter(Boolean).join(' · ')}>
        <span class={item.outcome === 'completed' && seen ? 'unseen' : ''}>
          {outcome}
          {seen && ' · '}
        </span>
        <span class="figures">{seen}</span>
      </summary>
      <div>{known}</div>
      {item.perRound && <Steps steps={item.perRound} />}
    </details>
  );
}

/** Shows how many tokens each step used, and its cost. */
function Steps({ steps }: { steps: readonly RoundUsage[] }) {
  return (
    <>
      <div>{t('Cost per step')}</div>
      <ol>
        {steps.map(each => (
          <li key={each.round}>{describeRound(each)}</li>
        ))}
      </ol>
    </>
  );
}

/** Shows how many files the run changed, with buttons to see and to undo the changes. */
function Changes({ item: { runId, changedFiles } }: { item: EndItem }) {
  const isUndone = undone.value.has(runId);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is not a form
    <div class="run-changes" role="group" aria-label={t('Files that this run changed')}>
      <span class="quiet">{describeChanges(changedFiles.length)}</span>
      <button type="button" class="small" onClick={() => post({ type: 'show_changes', runId })}>
        <Icon name="diff" />
        {t('Show Changes')}
      </button>
      <button
        type="button"
        class="small"
        disabled={isUndone}
        title={
          isUndone ? t('The files were restored') : t('Restores these files to their state before this run')
        }
        onClick={() => post({ type: 'undo_run', runId })}
      >
        <Icon name={isUndone ? 'done' : 'undo'} />
        {isUndone ? t('Undone') : t('Undo This Run')}
      </button>
    </div>
  );
}

/** Offers ways to go on with an interrupted run. */
function WaysOn({ item }: { item: EndItem }) {
  if (item.runId !== lastRunId.value || busy.value || !ready.value) return null;
  return (
    <div class="buttons">
      <button
        type="button"
        class="primary"
        title={t('Continues from here')}
        onClick={() => resume(item.runId)}
      >
        {t('Resume')}
      </button>
      <button
        type="button"
        class="secondary"
        title={t('Runs this request again from the start and replaces this answer')}
        onClick={() => resend(item.runId, item.text)}
      >
        {t('Retry')}
      </button>
    </div>
  );
}

function ErrorCard({ item, message }: { item: EndItem; message: string }) {
  // Only runs of earlier versions ended like this.
  const isNoMatch = item.error!.code === 'no_match';
  return (
    <div class={`card ${isNoMatch ? 'no-match' : 'error'}`}>
      <div class="card-title">
        <Icon name={isNoMatch ? 'info' : 'warning'} />
        <span class="message">{isNoMatch ? t('No skill matches this request.') : visibleLines(message)}</span>
      </div>
      {isNoMatch ? <Retry item={item} /> : <WaysOut item={item} error={item.error!} />}
    </div>
  );
}

/** Offers to let a model write how people ask for the skills, with the price. */
function TeachingOffer() {
  const text = teachingOffer.value;
  return text === undefined ? null : <Teaching text={text} />;
}

function Teaching({ text }: { text: string }) {
  const place = useRef<HTMLDivElement>(null);
  const isSettled = useSettled(place);
  const answer = (given: 'write' | 'never') =>
    pressable(isSettled, () => post({ type: 'teach', answer: given }));
  return (
    <div class="teaching" ref={place}>
      <p>{visible(text)}</p>
      <button type="button" class="chip" {...answer('write')}>
        {t('Write Them')}
      </button>
      <button type="button" class="chip" {...answer('never')}>
        {t("Don't Ask Again")}
      </button>
    </div>
  );
}

/** Offers ways out of an error. Without the workspace's trust nothing else would help. */
function WaysOut({ item, error: { code, remedy } }: { item: EndItem; error: RunError }) {
  const trusted = info.value?.trusted !== false;
  const keyHelps = code === 'auth' || remedy?.kind === 'set_key' || remedy?.kind === 'set_up_model';
  if (trusted && remedy?.kind === 'add_skill') return <SkillCommands />;
  return (
    <div class="buttons">
      {!trusted && <TrustButton />}
      {trusted && keyHelps && <CommandButton command="telos.setApiKey" label={t('Set API Key…')} primary />}
      {trusted && modelErrors.includes(code) && (
        <CommandButton command="telos.chooseModel" label={t('Choose Model…')} />
      )}
      {trusted && keyHelps && <CommandButton command="telos.trySample" label={t('Try the Sample')} />}
      {trusted && item.runId === lastRunId.value && (
        <button
          type="button"
          class="secondary"
          disabled={busy.value || !ready.value}
          onClick={() => resend(item.runId, item.text)}
        >
          {t('Retry')}
        </button>
      )}
      {!keyHelps && <CommandButton command="telos.openLog" label={t('Open Log')} />}
    </div>
  );
}

/** Runs the request of the last answer again and replaces that answer. */
function Retry({ item, isSmall = false }: { item: EndItem; isSmall?: boolean }) {
  if (item.runId !== lastRunId.value || busy.value || !ready.value) return null;
  return (
    <button
      type="button"
      class="small"
      aria-label={t('Retry')}
      title={t('Runs this request again and replaces this answer')}
      onClick={() => resend(item.runId, item.text)}
    >
      <Icon name="retry" />
      {!isSmall && t('Retry')}
    </button>
  );
}

/** Has the last run's skill improved, where its choice or its result was wrong. */
function Improve({ item: { runId } }: { item: EndItem }) {
  if (runId !== lastRunId.value || busy.value || !ready.value) return null;
  return (
    <button
      type="button"
      class="small"
      aria-label={t('Improve Skill…')}
      title={t('Improve Skill…: adds what was wrong to its evals, and proposes an edit')}
      onClick={() => post({ type: 'improve_skill', runId })}
    >
      <Icon name="edit" />
    </button>
  );
}

/** Offers what to do if there are no skills yet. */
export function SkillCommands() {
  return (
    <div class="buttons">
      <CommandButton command="telos.trySample" label={t('Try the Sample')} primary />
      {info.value?.isUnset && <CommandButton command="telos.chooseModel" label={t('Set Up a Model…')} />}
      <CommandButton command="telos.installSkills" label={t('Install Skills…')} />
      <CommandButton command="telos.newSkill" label={t('New Skill…')} />
    </div>
  );
}

export function TrustButton() {
  return <CommandButton command="workbench.trust.manage" label={t('Manage Workspace Trust')} primary />;
}

export function CommandButton(props: { command: ViewCommand; label: string; primary?: boolean }) {
  return (
    <button
      type="button"
      class={props.primary ? 'primary' : 'secondary'}
      onClick={() => post({ type: 'command', command: props.command })}
    >
      {props.label}
    </button>
  );
}
