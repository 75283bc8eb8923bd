/** Draws what is above the textbox: the waiting requests, and the skill of the next request. */
import { announce } from './announcer.tsx';
import { post } from './host.ts';
import { Icon } from './icons.tsx';
import { namedSkill } from './mentions.ts';
import { busy, continuing, draft, info, next, queued } from './store.ts';
import { focusComposer } from './textbox.ts';
import { visible } from './visibleText.ts';
import { t } from './words.ts';

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
