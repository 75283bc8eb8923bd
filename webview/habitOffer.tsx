/** Offers, below the latest answer, to save as a skill what the user does often. */
import { useRef } from 'preact/hooks';
import { post, t } from './host.ts';
import { pressable, useSettled } from './questions.tsx';
import { busy, habitOffer, lastRunId } from './store.ts';
import { visible } from './visibleText.ts';

export function HabitOffer() {
  const offer = habitOffer.value;
  if (!offer || offer.runId !== lastRunId.value || busy.value) return null;
  return <SaveHabit key={offer.runId} name={offer.name} />;
}

function SaveHabit({ name }: { name: string }) {
  const place = useRef<HTMLDivElement>(null);
  const isSettled = useSettled(place);
  const answer = (given: 'write' | 'never') =>
    pressable(isSettled, () => post({ type: 'habit', answer: given }));
  return (
    <div class="teaching" ref={place}>
      <p role="status">{t('You do this often. Save it as the skill {0}?', visible(name))}</p>
      <button type="button" class="chip" {...answer('write')}>
        {t('Save as Skill…')}
      </button>
      <button type="button" class="chip" {...answer('never')}>
        {t("Don't Ask Again")}
      </button>
    </div>
  );
}
