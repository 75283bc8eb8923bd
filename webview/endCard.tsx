/** Shows how a run ended, and what to do next if it did not end well. */

import { describeRoute } from '@telos/protocol/describe';
import type { ErrorCode, RunError, SkillRef } from '@telos/protocol/run';
import { describeDay, describeLeft } from '@telos/protocol/usage';
import type { ViewCommand } from '@telos/protocol/webview';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { post, t } from './host.ts';
import { Icon, type IconName } from './icons.tsx';
import { pressable, useSettled } from './questions.tsx';
import type { EndItem, RoundUsage } from './runItems.ts';
import {
  askWithoutSkill,
  busy,
  info,
  lastRunId,
  ready,
  resend,
  resume,
  submit,
  takesLikely,
  teachingOffer,
  today,
  undone,
} from './store.ts';
import { visible, visibleLines } from './visibleText.ts';
import { describeChanges, describeFigures, describeOutcome, describeRound } from './wording.ts';

/** The likeliest of the skills that could have been meant come first. */
const mostSkills = 6;
/** Errors that another model may well solve. */
const modelErrors: readonly ErrorCode[] = ['auth', 'config', 'no_answer', 'provider', 'rate_limit'];

const icons: Partial<Record<EndItem['outcome'], IconName>> = {
  completed: 'done',
  failed: 'failed',
  cancelled: 'stopped',
  interrupted: 'stopped',
};

export function EndCard({ item }: { item: EndItem }) {
  const day = item.runId === lastRunId.value ? today.value : undefined;
  const figures = [...describeFigures(item), ...(day ? describeLeft(day, t) : [])].join(' · ');
  return (
    <>
      {item.error && <ErrorCard item={item} message={item.error.message} />}
      <div class={`line end end-${item.outcome}`}>
        <Icon name={icons[item.outcome] ?? 'warning'} />
        <span>
          {describeOutcome(item.outcome)}
          {figures && (
            <span class="figures" title={day && describeDay(day, t).join(', ')}>
              {' '}
              · {figures}
            </span>
          )}
        </span>
        {!item.error && item.outcome !== 'interrupted' && item.outcome !== 'round_limit' && (
          <Retry item={item} />
        )}
        {item.outcome !== 'interrupted' && item.outcome !== 'cancelled' && <Improve item={item} />}
      </div>
      {item.perRound && <Rounds rounds={item.perRound} />}
      {item.changedFiles.length > 0 && <Changes item={item} />}
      {(item.outcome === 'interrupted' || item.outcome === 'round_limit') && <WaysOn item={item} />}
    </>
  );
}

/** Shows how many tokens each round used. */
function Rounds({ rounds }: { rounds: readonly RoundUsage[] }) {
  return (
    <details class="rounds">
      <summary>{t('Per round')}</summary>
      <ol>
        {rounds.map(each => (
          <li key={each.round}>{describeRound(each)}</li>
        ))}
      </ol>
    </details>
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
  if (item.error?.remedy?.kind === 'add_skill') return <NoSkillsCard />;
  const isNoMatch = item.error!.code === 'no_match';
  return (
    <div class={`card ${isNoMatch ? 'no-match' : 'error'}`}>
      <div class="card-title">
        <Icon name={isNoMatch ? 'info' : 'warning'} />
        <span class="message">{isNoMatch ? noMatchText(item.error!) : visibleLines(message)}</span>
      </div>
      {isNoMatch && (item.error?.choices ?? []).length > 0 && <Choices item={item} />}
      {isNoMatch ? <OtherSkills item={item} /> : <WaysOut item={item} error={item.error!} />}
      {isNoMatch && item.runId === lastRunId.value && <TeachingOffer />}
    </div>
  );
}

function NoSkillsCard() {
  return (
    <div class="card no-match">
      <div class="card-title">
        <Icon name="info" />
        <span class="message">{t('There are no skills yet.')}</span>
      </div>
      {info.value?.skills.length === 0 && <SkillCommands />}
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
function Retry({ item }: { item: EndItem }) {
  if (item.runId !== lastRunId.value || busy.value || !ready.value) return null;
  return (
    <button
      type="button"
      class="small"
      title={t('Runs this request again and replaces this answer')}
      onClick={() => resend(item.runId, item.text)}
    >
      <Icon name="retry" />
      {t('Retry')}
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
      title={t('Adds what was wrong to the evals of the skill, and proposes an edit')}
      onClick={() => post({ type: 'improve_skill', runId })}
    >
      <Icon name="edit" />
      {t('Improve Skill…')}
    </button>
  );
}

function noMatchText({ choices = [], didYouMean }: RunError): string {
  if (didYouMean !== undefined) return t('Did you mean {0}?', visible(didYouMean));
  return choices.length > 0 ? t('Which skill do you mean?') : t('No skill matches this request.');
}

/** Offers the likely skills, each with its reason. Enter in the empty box below runs the first. */
function Choices({ item }: { item: EndItem }) {
  const choices = item.error?.choices ?? [];
  const list = useRef<HTMLOListElement>(null);
  const isSettled = useSettled(list);
  const isLast = item.runId === lastRunId.value;
  useLayoutEffect(() => {
    if (!isLast) return undefined;
    takesLikely.value = isSettled;
    return () => {
      takesLikely.value = false;
    };
  }, [isLast, isSettled]);
  return (
    <ol class="choices" ref={list}>
      {choices.map(({ agent, skill, description, reason }, index) => (
        <li key={`${agent}:${skill}`}>
          <button
            type="button"
            class={index === 0 ? 'primary' : 'secondary'}
            disabled={busy.value || !ready.value}
            title={visible(description)}
            {...pressable(isSettled, () => submit(item.text, { agent, skill }))}
          >
            {visible(skill)}
            {index === 0 && isLast && <kbd>{t('Enter')}</kbd>}
          </button>{' '}
          <span class="figures">{visible(describeRoute(agent, skill, reason, t))}</span>
        </li>
      ))}
    </ol>
  );
}

/** Offers the skills that could have been meant, else all skills. Each runs the same request. */
function OtherSkills({ item }: { item: EndItem }) {
  const suggestions: readonly SkillRef[] = item.error?.suggestions ?? [];
  const all = suggestions.length > 0 ? suggestions : (info.value?.skills ?? []);
  const hasChoices = (item.error?.choices ?? []).length > 0;
  const place = useRef<HTMLDivElement>(null);
  const isSettled = useSettled(place);
  const offered = hasChoices ? [] : all.slice(0, mostSkills);
  if (offered.length === 0 && !hasChoices) {
    return (
      <>
        <SkillCommands />
        <div class="buttons">
          <WithoutSkill item={item} />
        </div>
      </>
    );
  }
  return (
    <>
      {!hasChoices && <p>{t('Run it with:')}</p>}
      <div class="buttons" ref={place}>
        {offered.map(ref => (
          <button
            key={`${ref.agent}:${ref.skill}`}
            type="button"
            class="secondary"
            disabled={busy.value}
            {...pressable(isSettled, () => submit(item.text, { agent: ref.agent, skill: ref.skill }))}
          >
            {visible(ref.skill)} <span class="of">{t('of {0}', visible(ref.agent))}</span>
          </button>
        ))}
      </div>
      <div class="buttons">
        {all.length > offered.length && (
          <button
            type="button"
            class="secondary"
            disabled={busy.value}
            title={t('Runs the same request with a skill of your choice')}
            onClick={() => post({ type: 'pick_skill', text: item.text })}
          >
            {t('Other Skill…')}
          </button>
        )}
        <WithoutSkill item={item} />
      </div>
    </>
  );
}

function WithoutSkill({ item }: { item: EndItem }) {
  return (
    <button
      type="button"
      class="secondary"
      disabled={busy.value}
      title={t('Telos looks for a skill by itself, and only reads files')}
      onClick={() => askWithoutSkill(item.text)}
    >
      {t('Ask Without a Skill')}
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
