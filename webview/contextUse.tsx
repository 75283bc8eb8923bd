/** Draws how full the model's context is, and the row of a compaction. */
import { computed } from '@preact/signals';
import { type ContextPart, contextParts } from '@telos/protocol/run';
import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { post, t } from './host.ts';
import { Icon } from './icons.tsx';
import { useMenu } from './questions.tsx';
import type { Item } from './runItems.ts';
import { totalOf } from './state.ts';
import { busy, chat, contextFiles, ready } from './store.ts';
import { visible, visibleLines } from './visibleText.ts';
import { formatNumber } from './wording.ts';

/** What the latest round has sent. Undefined before a provider has counted one. */
const use = computed(() => chat.value.runs.findLast(run => run.context)?.context);

const partNames: Readonly<Record<ContextPart, string>> = {
  system: t('System'),
  skill: t('Skill'),
  files: t('Files'),
  tools: t('Tools'),
  conversation: t('Conversation'),
};

/** Shows the share of the context that is used. Pressing it shows the parts, with a button that makes room. */
export function ContextMeter() {
  const [open, setOpen] = useState(false);
  useMenu(open, () => setOpen(false));
  const known = use.value;
  if (!known) return null;
  const total = totalOf(known);
  const share = known.window === undefined ? undefined : Math.round((100 * total) / known.window);
  const amount =
    known.window === undefined
      ? t('{0} tokens', formatNumber(total))
      : t('{0} of {1} tokens', formatNumber(total), formatNumber(known.window));
  const shown = share === undefined ? `${Math.round(total / 1000)}k` : t('{0}%', share);
  return (
    <>
      <button
        type="button"
        class={share !== undefined && share >= 75 ? 'model context-share chosen' : 'model context-share'}
        aria-expanded={open}
        aria-label={t('Context {0}: {1}', shown, amount)}
        title={t('What the model was last sent: {0}', amount)}
        onClick={() => setOpen(!open)}
      >
        {shown}
      </button>
      {open && (
        <section class="card help context-parts" aria-label={t('Context')}>
          <div class="quiet">{amount}</div>
          <dl>
            {contextParts
              .filter(part => known.tokens[part] > 0)
              .map(part => (
                <Fragment key={part}>
                  <dt>
                    {partNames[part]}
                    {part === 'files' && known.read && ` (${known.read.map(visible).join(', ')})`}
                  </dt>
                  <dd>{formatNumber(known.tokens[part])}</dd>
                </Fragment>
              ))}
          </dl>
          <label>
            <input
              type="checkbox"
              checked={contextFiles.value}
              onChange={event => post({ type: 'context_files', on: event.currentTarget.checked })}
            />{' '}
            {t('Read AGENTS.md, CLAUDE.md and your notes.md')}
          </label>
          <button
            type="button"
            class="secondary"
            disabled={!ready.value}
            title={t('Summarizes the conversation, so that the model is sent less')}
            onClick={() => {
              setOpen(false);
              post({ type: 'compact', focus: '' });
            }}
          >
            {t('Compact')}
          </button>
        </section>
      )}
    </>
  );
}

/** Shows that a summary stands for what came before, with the summary and a way back. */
export function Compacted({ item }: { item: Extract<Item, { kind: 'compacted' }> }) {
  const { summary, tokensBefore, tokensAfter } = item;
  return (
    <details class="rounds compacted">
      <summary class="line">
        <Icon name="info" />
        <span>
          {t(
            'Compacted: the model is sent about {0} tokens in place of {1}',
            formatNumber(tokensAfter),
            formatNumber(tokensBefore),
          )}
        </span>
        <Icon name="chevron" />
      </summary>
      <div class="quiet">{t('The model wrote this summary. Everything before it stays here.')}</div>
      <div class="message">{visibleLines(summary)}</div>
      {isLatest(item) && !busy.value && (
        <button type="button" class="link" onClick={() => post({ type: 'undo_compaction' })}>
          {t('Undo')}
        </button>
      )}
    </details>
  );
}

/** Returns true for the compaction that counts: the latest one that is not undone. */
function isLatest(item: Item): boolean {
  const open: Item[] = [];
  for (const each of chat.value.runs.flatMap(({ items }) => items)) {
    if (each.kind === 'compacted') open.push(each);
    if (each.kind === 'restored') open.pop();
  }
  return open.at(-1) === item;
}
