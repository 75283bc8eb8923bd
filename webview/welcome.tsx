/** What stands in an empty conversation: what this is, and something to begin with. */

import { CommandButton, SkillCommands } from './endCard.tsx';
import { Icon } from './icons.tsx';
import { draft, info } from './store.ts';
import { focusComposer } from './textbox.ts';
import { visible } from './visibleText.ts';

const mostSuggestions = 3;

export function Welcome() {
  const known = info.value;
  if (!known) return null;
  return (
    <div class="welcome">
      <p class="welcome-title">What should be done?</p>
      <p class="quiet">
        Say it in your words. Telos picks the skill that fits, shows why, and asks before anything risky.
      </p>
      {!known.trusted && <Restricted />}
      {known.trusted && known.recording && (
        <p class="line recording">
          <span class="badge">Recording</span>
          <span>No model is set up, so a recorded run answers. Its tools run for real.</span>
        </p>
      )}
      {known.skills.length === 0 ? <NoSkills /> : <Suggestions />}
      {known.recording && (
        <div class="buttons">
          <CommandButton command="telos.setApiKey" label="Set API Key…" />
        </div>
      )}
    </div>
  );
}

function Suggestions() {
  return (
    <ul class="suggestions" aria-label="Skills to begin with">
      {info.value!.skills.slice(0, mostSuggestions).map(({ agent, skill, description }) => (
        <li key={`${agent}:${skill}`}>
          <button
            type="button"
            title={visible(description)}
            onClick={() => {
              draft.value = `Run ${skill}`;
              focusComposer();
            }}
          >
            <span class="suggestion-name">{visible(skill)}</span>
            <span class="suggestion-description">{visible(description) || `of ${visible(agent)}`}</span>
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
        There are no skills yet. A skill is a folder with a <code>SKILL.md</code>; it goes to{' '}
        <code>~/.skills/&lt;agent&gt;/skills/</code> or into <code>.claude/skills</code> of your workspace.
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
        <span>Restricted Mode: nothing runs until you trust this workspace.</span>
      </div>
      <div class="buttons">
        <CommandButton command="workbench.trust.manage" label="Manage Workspace Trust" />
      </div>
    </div>
  );
}
