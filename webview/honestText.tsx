/** Text of unknown origin as it is: unseen characters escaped, a long middle left out with its length, on demand all of it. */
import { useState } from 'preact/hooks';
import { excerpt, visibleParts } from './visibleText.ts';
import { formatNumber } from './wording.ts';
import { t } from './words.ts';

/** `limit` is how many UTF-16 units are shown before the person asks for all. */
export function HonestText({ text, limit = 2_000 }: { text: string; limit?: number }) {
  const [whole, setWhole] = useState(false);
  const { head, hidden, tail } = excerpt(text, whole ? Number.POSITIVE_INFINITY : limit);
  return (
    <>
      <Visible text={head} />
      {hidden > 0 && (
        <button type="button" class="hidden-part" onClick={() => setWhole(true)}>
          {t('{0} characters hidden: show all', formatNumber(hidden))}
        </button>
      )}
      <Visible text={tail} />
    </>
  );
}

function Visible({ text }: { text: string }) {
  return visibleParts(text).map(part =>
    part.escaped ? (
      <span class={/^\\[nt]$/.test(part.text) ? 'escaped usual' : 'escaped'}>{part.text}</span>
    ) : (
      part.text
    ),
  );
}
