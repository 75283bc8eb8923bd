/** Starts a page of cards with buttons: first what waits for the user or does not work, then what ran or is set up. */
import './parts.css';
import './planPage.css';
import './actionPage.css';
import type {
  PageAction,
  PageCard,
  PageRow,
  PageSection,
  PageShown,
  ToActionPage,
} from '@telos/protocol/actionPage';
import { render } from 'preact';
import { post, t } from './host.ts';
import { Icon } from './icons.tsx';
import { PageButtons } from './pageButtons.tsx';
import { visible, visibleLines } from './visibleText.ts';

const root = document.getElementById('root');

window.addEventListener('message', ({ data }: MessageEvent<ToActionPage>) => {
  if (data?.type !== 'page' || !root) return;
  const before = document.activeElement;
  render(<Page page={data.page} />, root);
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

function Page({ page }: { page: PageShown }) {
  const { title, summary, cardsTitle, cards, rows, sections, problems, actions, isBusy = false } = page;
  return (
    <main aria-busy={isBusy}>
      <h1>{visible(title)}</h1>
      <p class="facts" role="status">
        {visible(summary)}
      </p>
      {actions.length > 0 && <Buttons actions={actions} />}
      {problems.map(problem => (
        <p key={problem} class="problem" role="alert">
          {visibleLines(problem)}
        </p>
      ))}
      {cards.length > 0 && (
        <section aria-labelledby="cards">
          <h2 id="cards">{visible(cardsTitle)}</h2>
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
      {sections.map(section => (
        <Section key={section.title} section={section} />
      ))}
    </main>
  );
}

/** The keys are those of the first card: each decision takes one. */
function Card({ card: { title, level, lines, actions }, hasKeys }: { card: PageCard; hasKeys: boolean }) {
  return (
    <section
      class={level === 'error' ? 'question broken' : 'question'}
      aria-label={visible([title, lines[0]?.split('\n')[0]].filter(Boolean).join(': '))}
    >
      <p>
        {level && (
          <span class={level} role="img" aria-label={level === 'error' ? t('Error') : t('Warning')}>
            <Icon name={level === 'error' ? 'failed' : 'warning'} />
          </span>
        )}{' '}
        <strong>{visible(title)}</strong>
      </p>
      {lines.map(line => (
        <p key={line}>{visibleLines(line)}</p>
      ))}
      {actions.length > 0 && <Buttons actions={actions} hasKeys={hasKeys} />}
    </section>
  );
}

function Row({ row: { title, when, facts, actions } }: { row: PageRow }) {
  return (
    <li>
      <strong>{visible(title)}</strong>
      <span>{[when, ...facts].map(visible).join(' · ')}</span>
      <Buttons actions={actions} />
    </li>
  );
}

function Section({ section: { title, rows } }: { section: PageSection }) {
  if (rows.length === 0) return <p class="setup">{visible(title)}</p>;
  const width = Math.max(...rows.map(row => row.length));
  const table =
    width > 1 ? <Columns rows={rows} /> : rows.map(([line = ''], at) => <p key={at}>{visible(line)}</p>);
  return title === '' ? (
    <section class="finish text">{table}</section>
  ) : (
    <details class="setup">
      <summary>{visible(title)}</summary>
      {table}
    </details>
  );
}

const Columns = ({ rows }: Pick<PageSection, 'rows'>) => (
  <table>
    <tbody>
      {rows.map(([name = '', ...cells]) => (
        <tr key={name + cells.join()}>
          <th scope="row">{visible(name)}</th>
          {cells.map((cell, at) => (
            <td key={at}>{visible(cell)}</td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);

const Buttons = ({ actions, hasKeys = false }: { actions: readonly PageAction[]; hasKeys?: boolean }) => (
  <PageButtons
    buttons={actions.map(({ id, ...button }, at) => ({
      ...button,
      key: id,
      ...(hasKeys && at < 9 && { shortcut: String(at + 1) }),
      act: () => post({ type: 'page_act', id }),
    }))}
  />
);
