/** Draws the buttons of a page in an editor. A press that was under way when they came does nothing. */
import { SettledButton } from './questions.tsx';
import { visible } from './visibleText.ts';

export interface PageButton {
  key: string;
  label: string;
  /** For screen readers, where the label alone does not tell what it is about. */
  about?: string;
  isPrimary?: boolean | undefined;
  act(): void;
}

export const PageButtons = ({ buttons }: { buttons: readonly PageButton[] }) => (
  <div class="actions">
    {buttons.map(({ key, label, about, isPrimary, act }) => (
      <SettledButton
        key={key}
        class={isPrimary ? 'primary' : 'secondary'}
        {...(about !== undefined && { 'aria-label': visible(about) })}
        act={act}
      >
        {visible(label)}
      </SettledButton>
    ))}
  </div>
);
