/** Draws what stays in sight above the textbox: the to-do list of the run, commands in the background, and how to undo a restore. */

import type { Todo } from '@telos/protocol/todos';
import { useLayoutEffect, useState } from 'preact/hooks';
import { post, t } from './host.ts';
import { Icon, type IconName } from './icons.tsx';
import { busy, chat, commands, restored } from './store.ts';
import { Elapsed } from './toolCard.tsx';
import { visible } from './visibleText.ts';

const icons: Record<Todo['state'], IconName> = { open: 'waiting', doing: 'running', done: 'done' };

/** Shows the list of the latest run. Folded, it says what is being done. It folds by itself once all is done. */
export function Todos() {
  const [isOpen, setOpen] = useState(true);
  const run = chat.value.runs.at(-1);
  const todos = run?.todos ?? [];
  const isDone = todos.length > 0 && todos.every(({ state }) => state === 'done');
  useLayoutEffect(() => setOpen(!isDone), [run?.id, isDone]);
  if (todos.length === 0) return null;
  const words: Record<Todo['state'], string> = {
    open: t('open'),
    doing: run?.running ? t('in progress') : t('begun'),
    done: t('done'),
  };
  const done = todos.filter(({ state }) => state === 'done').length;
  const current = todos.find(({ state }) => state === 'doing') ?? todos.find(({ state }) => state === 'open');
  return (
    <details class="todos" open={isOpen} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="chevron" />
        <span>{t('{0} of {1} done', String(done), String(todos.length))}</span>
        {!isOpen && current && <span class="one-line">{visible(current.text)}</span>}
      </summary>
      <ol aria-label={t('To do')}>
        {todos.map(({ text, state }, index) => (
          <li key={index} class={`todo-${state}`}>
            <Icon name={state === 'doing' && !run?.running ? 'waiting' : icons[state]} />
            <span>{visible(text)}</span>
            <span class="unseen">{words[state]}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}

/** Says that the conversation was taken back, with the way back. */
export function Restored() {
  const runId = restored.value;
  if (runId === undefined || busy.value) return null;
  return (
    <div class="line restored" role="status">
      <Icon name="undo" />
      <span>{t('Files and conversation were restored to here.')}</span>
      <button type="button" class="link" onClick={() => post({ type: 'undo_run', runId })}>
        {t('Undo Restore')}
      </button>
    </div>
  );
}

/** Lists the commands that run in the background of the conversation. */
export function RunningCommands() {
  if (commands.value.length === 0) return null;
  return (
    <ul class="queue" aria-label={t('Commands in the background')}>
      {commands.value.map(({ id, command, startedAt }) => (
        <li key={id}>
          <Icon name="running" />
          <code class="one-line" title={visible(command)}>
            {visible(command)}
          </code>
          <Elapsed since={startedAt} />
          <button
            type="button"
            class="small"
            aria-label={t('Stop {0}', visible(command))}
            title={t('Stop')}
            onClick={() => post({ type: 'stop_command', id })}
          >
            <Icon name="stop" />
          </button>
        </li>
      ))}
    </ul>
  );
}
