/** Draws an empty conversation: what Telos is, and something to begin with. */

import { CommandButton, SkillCommands, TrustButton } from './endCard.tsx';
import { Icon } from './icons.tsx';
import { callOfShared } from './mentions.ts';
import { draft, info } from './store.ts';
import { focusComposer } from './textbox.ts';
import { visible } from './visibleText.ts';
import { t } from './words.ts';

const mostSuggestions = 3;

export function Welcome() {
  const known = info.value;
  if (!known) return null;
  return (
    <div class="welcome">
      <p class="welcome-title">{t('What do you want to do?')}</p>
      <p class="quiet">
        {t(
          'Describe it in your own words. Telos chooses a matching skill, shows why, and asks before anything risky.',
        )}
      </p>
      {!known.trusted && <Restricted />}
      {known.trusted && known.recording && known.skills.length > 0 && (
        <p class="line recording">
          <span class="badge">{t('Recording')}</span>
          <span>{t('No model is set up, so a recorded run answers. Its tools run for real.')}</span>
        </p>
      )}
      {known.skills.length === 0 ? <NoSkills /> : <Suggestions />}
      {known.trusted && known.recording && known.skills.length > 0 && (
        <div class="buttons">
          <CommandButton command="telos.setApiKey" label={t('Set API Key…')} />
          <CommandButton command="telos.chooseModel" label={t('Choose Model…')} />
        </div>
      )}
    </div>
  );
}

function Suggestions() {
  const { skills } = info.value!;
  return (
    <ul class="suggestions" aria-label={t('Suggested skills')}>
      {skills.slice(0, mostSuggestions).map(each => (
        <li key={`${each.agent}:${each.skill}`}>
          <button
            type="button"
            title={visible(each.description)}
            onClick={() => {
              draft.value = callOfShared(each, skills) ?? t('Run {0}', each.skill);
              focusComposer();
            }}
          >
            <span class="suggestion-name">{visible(each.skill)}</span>
            <span class="suggestion-description">
              {visible(each.description) || t('of {0}', visible(each.agent))}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function NoSkills() {
  return (
    <div class="card">
      <p>
        {t(
          'There are no skills yet. Add three samples, or write one: a folder with a SKILL.md that describes how a task is done.',
        )}
      </p>
      <SkillCommands />
    </div>
  );
}

function Restricted() {
  return (
    <div class="card">
      <div class="card-title">
        <Icon name="shield" />
        <span>{t('Restricted Mode: nothing runs until you trust this workspace.')}</span>
      </div>
      <div class="buttons">
        <TrustButton />
      </div>
    </div>
  );
}
