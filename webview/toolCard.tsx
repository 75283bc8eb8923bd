/** Draws what a run does beside its answer, each as a line with the rest folded below it: a tool call, a series of reads, a thought. */

import type { ToolResult } from '@telos/protocol/run';
import { shortened } from '@telos/protocol/text';
import { formatDuration } from '@telos/protocol/usage';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { post, t } from './host.ts';
import { Icon } from './icons.tsx';
import { MarkdownView } from './markdownSurface.tsx';
import type { Item, ThoughtItem, ToolItem } from './runItems.ts';
import { UntrustedText } from './untrustedText.tsx';
import { visible, visibleLines } from './visibleText.ts';
import {
  describeLines,
  describeReads,
  describeThought,
  relativeTo,
  toolStateWords,
  wordCall,
} from './wording.ts';

export function ToolCard({ item }: { item: ToolItem }) {
  const { call, state, result, workingDir } = item;
  // The list is in sight above the textbox.
  if (call.name === 'update_todos' && state !== 'failed') return null;
  const words = toolStateWords[state];
  const quiet = state === 'done' || state === 'running';
  const [before, subject, after] = wordCall(call, workingDir, state === 'done');
  const name = `${before}${subject}${after}`;
  // A call that writes one file names it itself.
  const [only, ...others] = result?.changedFiles ?? [];
  const own = others.length === 0 && only !== undefined && relativeTo(only, workingDir) === subject;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is not a form
    <div role="group" aria-label={name} class={own ? 'tool tool-own' : `tool tool-${state}`}>
      <details>
        <summary>
          <Icon name={state} />
          <span class="tool-words">
            {before && <span>{before}</span>}
            <span class="tool-summary">{subject}</span>
            {after && <span>{after}</span>}
          </span>
          {own && <LineCounts lines={result?.changedLines} />}
          {item.boxed && state !== 'denied' && <BoxMark />}
          <span class={quiet ? 'unseen' : 'tool-state'}>{words}</span>
          {state === 'running' && item.progress && (
            <Progress {...item.progress} name={subject || visible(call.name)} />
          )}
          {state === 'running' && <Elapsed />}
          <Icon name="chevron" />
        </summary>
        <div class="tool-body">
          <div class="label">{t('Arguments')}</div>
          <Scrolled text={call.problem ?? formatInput(call.input)} />
          {result && (
            <>
              <div class="label">{t('Result')}</div>
              <Scrolled text={result.content || t('(empty)')} />
            </>
          )}
        </div>
      </details>
      {call.name === 'run_command' && state === 'running' && <ToBackground callId={call.id} />}
      {item.output !== undefined && <Output text={item.output} name={subject || visible(call.name)} />}
      {state === 'failed' && result && (
        <div class="tool-problem">{problemOf(result.content, workingDir)}</div>
      )}
      {own ? (
        <span class="tool-actions">
          <OpenFile path={only} name={subject} isIcon />
          <ShowDiff path={only} name={subject} runId={item.runId} isIcon />
        </span>
      ) : (
        result?.changedFiles?.map(path => <ChangedFile key={path} path={path} item={item} />)
      )}
    </div>
  );
}

/** Draws a series of reads as one line, and folded below it each of them. */
export function ReadsRow({ items, children }: { items: readonly Item[]; children: ComponentChildren }) {
  const calls = items.filter(item => item.kind === 'tool');
  const running = calls.some(({ state }) => state === 'running');
  const words = describeReads(calls.map(({ call }) => call));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is not a form
    <div role="group" aria-label={words} class="tool reads">
      <details>
        <summary>
          <Icon name={running ? 'running' : 'done'} />
          <span class="tool-summary">{words}</span>
          {running && <Elapsed key={items.length} />}
          <Icon name="chevron" />
        </summary>
        <div class="tool-body">{children}</div>
      </details>
    </div>
  );
}

/**
 * Shows the end of what a command prints. It stays when the command has ended, since a row that shrinks would move what is below it
 * under the eyes of the person.
 */
function Output({ text, name }: { text: string; name: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is not a form
    <div class="tool-output" role="group" aria-label={t('Output of {0}', name)}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll what has the focus */}
      <pre tabIndex={0}>{visibleLines(text)}</pre>
    </div>
  );
}

/** Shows in the row of a call how far it is. */
function Progress({ message, share, name }: NonNullable<ToolItem['progress']> & { name: string }) {
  const words = visible(message);
  return (
    <span class="tool-progress" title={words}>
      {share !== undefined && <progress value={share} max={1} aria-label={t('Progress of {0}', name)} />}
      <span>{words}</span>
    </span>
  );
}

/** Draws a thought as one line. Its words are drawn only once someone opens it. */
export function ThoughtRow({ item }: { item: ThoughtItem }) {
  const [isOpened, setOpened] = useState(false);
  const words = item.over ? describeThought(item.durationMs) : t('Thinking');
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is not a form
    <div role="group" aria-label={words} class="tool thought">
      <details onToggle={() => setOpened(true)}>
        <summary>
          <Icon name={item.over ? 'thought' : 'running'} />
          <span class="tool-summary">{words}</span>
          {!item.over && <Elapsed />}
          <Icon name="chevron" />
        </summary>
        <div class="tool-body">{isOpened && <MarkdownView markdown={item.markdown} />}</div>
      </details>
    </div>
  );
}

function ToBackground({ callId }: { callId: string }) {
  return (
    <button
      type="button"
      class="small to-background"
      aria-label={t('Move to Background')}
      title={t('Move to Background: the command goes on, and so does the run')}
      onClick={() => post({ type: 'to_background', callId })}
    >
      <Icon name="down" />
    </button>
  );
}

function BoxMark() {
  return (
    <span
      class="tool-box"
      title={t('Ran in a sandbox: it could change only this workspace, and asked before it used the network')}
    >
      <Icon name="box" />
      <span class="unseen">{t('in the sandbox')}</span>
    </span>
  );
}

/** Shows a long text in its own scrolling frame, so that the content after it stays near. */
function Scrolled({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll what has the focus
    <pre tabIndex={0}>
      <UntrustedText text={text} limit={4_000} calm />
    </pre>
  );
}

/** Shows a file that the call has written: how much of it changed, and a button for the editor's diff. */
function ChangedFile({ path, item: { result, runId, workingDir } }: { path: string; item: ToolItem }) {
  const name = visible(relativeTo(path, workingDir));
  return (
    <div class="changed-file">
      <OpenFile path={path} name={name} />
      <LineCounts lines={result?.changedLines} />
      <ShowDiff path={path} name={name} runId={runId} />
    </div>
  );
}

function OpenFile({ path, name, isIcon = false }: { path: string; name: string; isIcon?: boolean }) {
  return (
    <button
      type="button"
      class={isIcon ? 'small' : 'file-link'}
      aria-label={name}
      title={visible(path)}
      onClick={() => post({ type: 'open_file', path })}
    >
      <Icon name="file" />
      {!isIcon && <span>{name}</span>}
    </button>
  );
}

function ShowDiff(props: { path: string; name: string; runId: string; isIcon?: boolean }) {
  const { path, name, runId, isIcon = false } = props;
  return (
    <button
      type="button"
      class="small"
      aria-label={t('Show diff of {0}', name)}
      title={t('Compares the file as it was before the run with the file as it is now')}
      onClick={() => post({ type: 'show_changes', runId, path })}
    >
      <Icon name="diff" />
      {!isIcon && t('Show Diff')}
    </button>
  );
}

function LineCounts({ lines }: { lines: ToolResult['changedLines'] }) {
  const { short, long } = describeLines(lines);
  const [added, removed] = short;
  if (!added) return null;
  return (
    <span class="line-counts">
      <span class="lines-added" aria-hidden="true">
        {added}
      </span>
      <span class="lines-removed" aria-hidden="true">
        {removed}
      </span>
      <span class="unseen">{long}</span>
    </span>
  );
}

/** Formats arguments for people, one below the other: texts as they are, everything else as JSON. */
function formatInput(input: ToolItem['call']['input']): string {
  const lines = Object.entries(input).map(([name, value]) => {
    if (typeof value !== 'string') return `${name}: ${JSON.stringify(value, null, 2)}`;
    return value.includes('\n') ? `${name}:\n${value}` : `${name}: ${value}`;
  });
  return lines.join('\n') || '{}';
}

/** Returns the first line that says what went wrong, with paths as they are from the workspace, and without the advice for the model. */
function problemOf(text: string, workingDir: string): string {
  const near = workingDir === '' ? text : text.replaceAll(`${workingDir}/`, '');
  return firstLine(near.replace(/^(Unknown tool: \S+)\. .*$/s, '$1'));
}

function firstLine(text: string): string {
  const lines = text.trim().split('\n');
  // A mark such as `[stderr]` only says where the lines below it come from.
  const line = lines.find(each => each.trim() !== '' && !/^\[std(?:err|out)\]$/.test(each.trim()));
  return shortened(visible(line ?? lines[0]!), 300);
}

/** Shows how long it has been there, or how long ago `since` is. */
export function Elapsed({ since }: { since?: string }) {
  const [seconds, setSeconds] = useState(() =>
    since === undefined ? 0 : Math.max(0, Math.round((Date.now() - Date.parse(since)) / 1_000)),
  );
  useEffect(() => {
    const timer = setInterval(() => setSeconds(value => value + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  return seconds < 2 ? null : <span class="figures">{formatDuration(seconds * 1_000)}</span>;
}
