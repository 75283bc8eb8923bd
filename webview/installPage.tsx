/** Starts the page of an install: what the pack does, what it asks for, what was found in it, and the ways to answer. */
import './parts.css';
import './planPage.css';
import './actionPage.css';
import './installPage.css';
import type { InstallShown, InstallSkill, ToInstallPage } from '@telos/protocol/installPage';
import { type ComponentChildren, render } from 'preact';
import { useState } from 'preact/hooks';
import { post, t } from './host.ts';
import { Icon } from './icons.tsx';
import { PageButtons } from './pageButtons.tsx';
import { visible } from './visibleText.ts';

const root = document.getElementById('root');

window.addEventListener('message', ({ data }: MessageEvent<ToInstallPage>) => {
  if (data?.type === 'install' && root) render(<Page shown={data.shown} />, root);
});
post({ type: 'ready' });

function Page({ shown }: { shown: InstallShown }) {
  const { title, from, description, skills, canChoose, samples, wants, notes, isRisky, actions } = shown;
  const [without, setWithout] = useState<readonly string[]>([]);
  const wanted = skills.map(({ id }) => id).filter(id => !without.includes(id));
  const turn = (id: string, isOn: boolean): void =>
    setWithout(isOn ? without.filter(each => each !== id) : [...without, id]);
  return (
    <main>
      <h1>{visible(title)}</h1>
      <p class="facts">{visible(from)}</p>
      {description !== '' && <p class="goal">{visible(description)}</p>}
      <Findings shown={shown} />
      <Section title={t('Skills')}>
        <ul class="skills">
          {skills.map(skill => (
            <Skill
              key={skill.id}
              skill={skill}
              isOn={!without.includes(skill.id)}
              {...(canChoose && { onTurn: isOn => turn(skill.id, isOn) })}
            />
          ))}
        </ul>
      </Section>
      {samples.length > 0 && (
        <Section title={t('Try Asking')}>
          <Lines lines={samples.map(sample => `“${sample}”`)} />
        </Section>
      )}
      <Section title={t('Asks For')}>
        {wants.length > 0 ? (
          <Lines lines={wants} />
        ) : (
          <p>{t('Its files do not name any hosts, scripts, variables or MCP servers.')}</p>
        )}
      </Section>
      {notes.length > 0 && (
        <Section title={t('Good to Know')}>
          <Lines lines={notes} />
        </Section>
      )}
      <footer>
        {wanted.length === 0 && <p role="status">{t('Select at least one skill.')}</p>}
        <PageButtons
          buttons={actions
            .filter(({ act }) => wanted.length > 0 || (act !== 'install' && act !== 'try'))
            .map(({ act, label }) => ({
              key: act,
              label,
              isPrimary: act === (isRisky ? 'files' : 'install'),
              act: () => post({ type: 'install_act', act, skills: wanted }),
            }))}
        />
      </footer>
    </main>
  );
}

/** First what is bad, before anything else is read. */
function Findings({ shown: { findings, checked } }: { shown: InstallShown }) {
  return (
    <Section title={t('Findings')}>
      {findings.length > 0 && (
        <ul class="findings">
          {findings.map(({ text, level }) => (
            <li key={text}>
              <span class={level === 'high' ? 'bad' : ''}>
                <Icon name={level === 'low' ? 'info' : 'warning'} />
              </span>
              <span>{visible(text)}</span>
            </li>
          ))}
        </ul>
      )}
      {findings.length === 0 && (
        <p>
          <span class="good">
            <Icon name="done" />
          </span>{' '}
          {t('Nothing suspicious was found.')}
        </p>
      )}
      <p class="facts">{visible(checked)}</p>
    </Section>
  );
}

function Skill({
  skill: { id, description, size, problem },
  isOn,
  onTurn,
}: {
  skill: InstallSkill;
  isOn: boolean;
  onTurn?: (isOn: boolean) => void;
}) {
  const words = (
    <span>
      <strong>{visible(id)}</strong> <span class="facts">{visible(size)}</span>
      <br />
      {visible(problem ?? description)}
    </span>
  );
  return (
    <li>
      {onTurn ? (
        <label>
          <input
            type="checkbox"
            checked={isOn}
            onChange={({ currentTarget }) => onTurn(currentTarget.checked)}
          />
          {words}
        </label>
      ) : (
        words
      )}
    </li>
  );
}

function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="finish" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

const Lines = ({ lines }: { lines: readonly string[] }) => (
  <ul class="lines">
    {lines.map(line => (
      <li key={line}>{visible(line)}</li>
    ))}
  </ul>
);
