/** What goes along with the next request: the chips over the textbox, and what is pasted or dropped into the chat. */
import { useEffect, useState } from 'preact/hooks';
import type { AttachedName } from '../src/protocol/attachment.ts';
import type { AttachmentChip } from '../src/protocol/webview.ts';
import { announce } from './announcer.tsx';
import { handOver } from './handOver.ts';
import { post } from './host.ts';
import { Icon } from './icons.tsx';
import { attached, attachProblem, draft, ready } from './store.ts';
import { focusComposer } from './textbox.ts';
import { visible } from './visibleText.ts';
import { t } from './words.ts';

export function Attachments() {
  const chips = attached.value;
  const problem = attachProblem.value;
  const count = chips.length;
  useEffect(() => {
    if (count > 0) announce([count === 1 ? t('1 attachment') : t('{0} attachments', count)]);
  }, [count]);
  return (
    <>
      {count > 0 && (
        <ul class="attachments" aria-label={t('Attached')}>
          {chips.map(chip => (
            <Chip key={chip.id} chip={chip} />
          ))}
        </ul>
      )}
      {problem && (
        <div class="attach-problem" role="alert">
          <Icon name="warning" />
          <span>{visible(problem)}</span>
          <button
            type="button"
            class="small"
            aria-label={t('Dismiss')}
            title={t('Dismiss')}
            onClick={() => {
              attachProblem.value = undefined;
              focusComposer();
            }}
          >
            <Icon name="close" />
          </button>
        </div>
      )}
    </>
  );
}

function Chip({ chip }: { chip: AttachmentChip }) {
  const name = visible(chip.name);
  return (
    <li class="attachment" title={`${name} · ${chip.detail}`}>
      {chip.thumbnail ? <img src={chip.thumbnail} alt="" /> : <Icon name={iconOf(chip)} />}
      <span class="attachment-name">{name}</span>
      <span class="quiet">{chip.detail}</span>
      <button
        type="button"
        class="small"
        aria-label={t('Remove {0}', name)}
        title={t('Remove')}
        onClick={event => remove(chip, event.currentTarget)}
      >
        <Icon name="close" />
      </button>
    </li>
  );
}

/** Who goes through the chips with the keyboard stays among them. */
function remove({ id, mention }: AttachmentChip, button: HTMLElement): void {
  const item = button.closest('li');
  const neighbour = item?.nextElementSibling ?? item?.previousElementSibling;
  const next = neighbour?.querySelector('button');
  if (mention !== undefined) draft.value = withoutMention(draft.peek(), mention);
  post({ type: 'detach', id });
  if (next) next.focus();
  else focusComposer();
}

/** The request without the words that stand for something that is not attached any more. */
function withoutMention(text: string, mention: string): string {
  const words = text.split(/(?<=\s)(?=\S)/);
  return words.filter(word => word.trimEnd() !== `@${mention}`).join('');
}

export const iconOf = ({ kind, name }: AttachedName): 'image' | 'warning' | 'file' =>
  kind === 'image' ? 'image' : name.startsWith('Problems of ') ? 'warning' : 'file';

/** The mark that something can be dropped here; it lies over the whole chat while something is dragged over it. */
export function DropPlace() {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    // The pointer goes from element to element; only what leaves the page leaves for good.
    const over = (event: DragEvent) => {
      if (!ready.peek() || !holdsFiles(event)) return;
      event.preventDefault();
      if (event.dataTransfer) event.dataTransfer.dropEffect = 'copy';
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      setOver(false);
      if (!ready.peek() || !event.dataTransfer || !holdsFiles(event)) return;
      event.preventDefault();
      handOver(event.dataTransfer);
      focusComposer();
    };
    document.addEventListener('dragover', over);
    document.addEventListener('dragleave', leave);
    document.addEventListener('drop', drop);
    return () => {
      document.removeEventListener('dragover', over);
      document.removeEventListener('dragleave', leave);
      document.removeEventListener('drop', drop);
    };
  }, []);
  return isOver ? <div class="drop-place">{t('Drop to attach')}</div> : null;
}

const fileTypes = ['Files', 'text/uri-list', 'application/vnd.code.uri-list'];

const holdsFiles = ({ dataTransfer }: DragEvent): boolean =>
  fileTypes.some(type => dataTransfer?.types.includes(type));

/** For the textbox: pictures and files go along, text goes in. */
export function onPaste(event: ClipboardEvent): void {
  const data = event.clipboardData;
  // A table, for example, comes as text and as a picture of it; the text is what is meant.
  if (!data || data.files.length === 0 || data.getData('text/plain') !== '') return;
  event.preventDefault();
  if (ready.peek()) handOver(data);
}
