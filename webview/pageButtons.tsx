/** Draws the buttons of a page in an editor. A press that was under way when they came does nothing. */
import { t } from './host.ts';
import { SettledButton } from './questions.tsx';
import { visible } from './visibleText.ts';

export interface PageButton {
  key: string;
  label: string;
  /** For screen readers, where the label alone does not tell what it is about. */
  about?: string;
  isPrimary?: boolean | undefined;
  /** The key that the page presses it with. */
  shortcut?: string;
  act(): void;
}

export const PageButtons = ({ buttons }: { buttons: readonly PageButton[] }) => (
  <div class="actions">
    {buttons.map(({ key, label, about, isPrimary, shortcut, act }) => (
      <SettledButton
        key={key}
        class={isPrimary ? 'primary' : 'secondary'}
        {...(about !== undefined && { 'aria-label': visible(about) })}
        {...(shortcut !== undefined && { 'aria-keyshortcuts': shortcut, title: t('Key {0}', shortcut) })}
        act={act}
      >
        {visible(label)}
      </SettledButton>
    ))}
  </div>
);
