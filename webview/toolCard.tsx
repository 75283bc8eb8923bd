/** One tool call: a line that says what was done, and folded below it what went in and came out. */
import { Elapsed } from './elapsed.tsx';
import { HonestText } from './honestText.tsx';
import { post } from './host.ts';
import { Icon } from './icons.tsx';
import type { ToolItem } from './runItems.ts';
import { visible } from './visibleText.ts';
import { describeLines, relativeTo, summarizeCall, toolStateWords } from './wording.ts';
import { t } from './words.ts';

export function ToolCard({ item }: { item: ToolItem }) {
  const { call, state, result, workingDir } = item;
  const name = visible(call.name);
  const words = toolStateWords[state];
  const quiet = state === 'done' || state === 'running';
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups form fields, and this is no form
    <div role="group" aria-label={t('Tool: {0}', name)} class={`tool tool-${state}`}>
      <details>
        <summary>
          <Icon name={state} />
          <span class="tool-name">{name}</span>
          <span class="tool-summary">{summarizeCall(call, workingDir)}</span>
          <span class={quiet ? 'unseen' : 'tool-state'}>{words}</span>
          {state === 'running' && <Elapsed />}
          <Icon name="chevron" />
        </summary>
        <div class="tool-body">
          <div class="label">{t('Arguments')}</div>
          <pre>
            <HonestText text={call.problem ?? formatInput(call.input)} />
          </pre>
          {result && (
            <>
              <div class="label">{t('Result')}</div>
              <pre>
                <HonestText text={result.content || t('(empty)')} limit={4_000} />
              </pre>
            </>
          )}
        </div>
      </details>
      {state === 'failed' && result && <div class="tool-problem">{firstLine(result.content)}</div>}
      {result?.changedFiles?.map(path => (
        <ChangedFile key={path} path={path} item={item} />
      ))}
    </div>
  );
}

/** A file that the call has written: how much of it changed, and the way to the editor's diff. */
function ChangedFile({ path, item: { result, runId, workingDir } }: { path: string; item: ToolItem }) {
  const name = visible(relativeTo(path, workingDir));
  const lines = describeLines(result?.changedLines);
  const [added, removed] = lines.short;
  return (
    <div class="changed-file">
      <button
        type="button"
        class="file-link"
        title={visible(path)}
        onClick={() => post({ type: 'open_file', path })}
      >
        <Icon name="file" />
        <span>{name}</span>
      </button>
      {added && (
        <span class="line-counts">
          <span class="lines-added" aria-hidden="true">
            {added}
          </span>
          <span class="lines-removed" aria-hidden="true">
            {removed}
          </span>
          <span class="unseen">{lines.long}</span>
        </span>
      )}
      <button
        type="button"
        class="small"
        aria-label={t('Show diff of {0}', name)}
        title={t('Compares the file as it was before the run with the file as it is now')}
        onClick={() => post({ type: 'show_changes', runId, path })}
      >
        <Icon name="diff" />
        {t('Show diff')}
      </button>
    </div>
  );
}

/** Arguments as a person reads them: one text alone as it is, everything else as JSON. */
function formatInput(input: ToolItem['call']['input']): string {
  const values = Object.entries(input);
  const [only] = values;
  if (values.length === 1 && only && typeof only[1] === 'string') return `${only[0]}: ${only[1]}`;
  return JSON.stringify(input, null, 2);
}

function firstLine(text: string): string {
  const line = visible(text.trim().split('\n', 1)[0]!);
  return line.length > 300 ? `${line.slice(0, 299)}…` : line;
}
