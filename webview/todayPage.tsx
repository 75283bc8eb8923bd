/** Starts the page *Today*: first what waits for the user, then what ran. */
import './parts.css';
import './planPage.css';
import './todayPage.css';
import type { TodayAction, TodayCard, TodayRow, TodayShown, ToTodayPage } from '@telos/protocol/todayPage';
import { render } from 'preact';
import { post, t } from './host.ts';
import { PageButtons } from './pageButtons.tsx';
import { visible, visibleLines } from './visibleText.ts';

const root = document.getElementById('root');

window.addEventListener('message', ({ data }: MessageEvent<ToTodayPage>) => {
  if (data?.type !== 'today' || !root) return;
  const before = document.activeElement;
  render(<Page today={data.today} />, root);
  // The button that was pressed may be gone, and with it where the keyboard was.
  const heading = root.querySelector('h1');
  if (before === null || before.isConnected || !heading) return;
  heading.tabIndex = -1;
  heading.focus();
});
/** Presses the button of the first question that shows the key. It takes no press before it was read, as with the mouse. */
document.addEventListener('keydown', ({ key, ctrlKey, metaKey, altKey, repeat }) => {
  if (ctrlKey || metaKey || altKey || repeat || !/^[1-9]$/.test(key)) return;
  root?.querySelector<HTMLButtonElement>(`.question button[aria-keyshortcuts="${key}"]`)?.click();
});
post({ type: 'ready' });

function Page({ today: { summary, cards, rows, problems, actions } }: { today: TodayShown }) {
  return (
    <main>
      <h1>{t('Today')}</h1>
      <p class="facts">{visible(summary)}</p>
      {actions.length > 0 && <Buttons actions={actions} />}
      {problems.map(problem => (
        <p key={problem} class="problem" role="alert">
          {visibleLines(problem)}
        </p>
      ))}
      {cards.length > 0 && (
        <section aria-labelledby="waiting">
          <h2 id="waiting">{t('Waiting for You')}</h2>
          {cards.map((card, at) => (
            <Card key={card.title + card.lines.join('\n')} card={card} hasKeys={at === 0} />
          ))}
        </section>
      )}
      {rows.length > 0 && (
        <section class="finish" aria-labelledby="ran">
          <h2 id="ran">{t('While You Were Away')}</h2>
          <ul>
            {rows.map(row => (
              <Row key={row.title + row.when} row={row} />
            ))}
          </ul>
        </section>
      )}
    </main>
  );
}

/** The keys are those of the first card: each decision takes one. */
function Card({ card: { title, lines, actions }, hasKeys }: { card: TodayCard; hasKeys: boolean }) {
  return (
    <section
      class="question"
      aria-label={visible([title, lines[0]?.split('\n')[0]].filter(Boolean).join(': '))}
    >
      <p>
        <strong>{visible(title)}</strong>
      </p>
      {lines.map(line => (
        <p key={line}>{visibleLines(line)}</p>
      ))}
      <Buttons actions={actions} hasKeys={hasKeys} />
    </section>
  );
}

function Row({ row: { title, when, facts, actions } }: { row: TodayRow }) {
  return (
    <li>
      <strong>{visible(title)}</strong>
      <span>{[when, ...facts].map(visible).join(' · ')}</span>
      <Buttons actions={actions} />
    </li>
  );
}

const Buttons = ({ actions, hasKeys = false }: { actions: readonly TodayAction[]; hasKeys?: boolean }) => (
  <PageButtons
    buttons={actions.map(({ id, ...button }, at) => ({
      ...button,
      key: id,
      ...(hasKeys && at < 9 && { shortcut: String(at + 1) }),
      act: () => post({ type: 'today_act', id }),
    }))}
  />
);
