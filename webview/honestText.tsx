/** Text of unknown origin as it is: unseen characters escaped, a long middle left out with its length, on demand all of it. */
import { useState } from 'preact/hooks';
import { excerpt, visibleParts } from './visibleText.ts';
import { formatNumber } from './wording.ts';
import { t } from './words.ts';

/** `limit` is how many UTF-16 units are shown before the person asks for all. `calm` leaves line feeds and tabs without their marks. */
export function HonestText({
  text,
  limit = 2_000,
  calm = false,
}: {
  text: string;
  limit?: number;
  calm?: boolean;
}) {
  const [whole, setWhole] = useState(false);
  const { head, hidden, tail } = excerpt(text, whole ? Number.POSITIVE_INFINITY : limit);
  return (
    <>
      <Visible text={head} calm={calm} />
      {hidden > 0 && (
        <button type="button" class="hidden-part" onClick={() => setWhole(true)}>
          {t('{0} characters hidden: show all', formatNumber(hidden))}
        </button>
      )}
      <Visible text={tail} calm={calm} />
    </>
  );
}

function Visible({ text, calm }: { text: string; calm: boolean }) {
  const parts = visibleParts(calm ? text.replaceAll('\r\n', '\n') : text);
  return parts.map(part => {
    if (!part.escaped) return part.text;
    const usual = part.text === '\\n' || part.text === '\\t';
    // A line feed breaks the line behind its mark anyway; a tab is nothing but its mark.
    if (usual && calm) return part.text === '\\t' ? '\t' : null;
    return <span class={usual ? 'escaped usual' : 'escaped'}>{part.text}</span>;
  });
}
