/**
 * Draws text of unknown origin as it is. Unseen characters are escaped; a long middle is left out with its length, until
 * requested.
 */
import { useState } from 'preact/hooks';
import { t } from './host.ts';
import { excerpt, visibleParts } from './visibleText.ts';
import { formatNumber } from './wording.ts';

/** Draws honest text. `limit` is the number of UTF-16 units shown at first; `calm` leaves line feeds and tabs unmarked. */
export function UntrustedText({
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
      {hidden > 0 && <HiddenPart hidden={hidden} show={() => setWhole(true)} />}
      <Visible text={tail} calm={calm} />
    </>
  );
}

/** Draws a diff line by line, as honestly as any text here. */
export function DiffText({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const { head, hidden, tail } = excerpt(text, whole ? Number.POSITIVE_INFINITY : 2_000);
  return (
    <>
      <DiffLines text={head} />
      {hidden > 0 && <HiddenPart hidden={hidden} show={() => setWhole(true)} />}
      {/* The text after the cut may begin in the middle of a line, whose sign is not visible. */}
      <DiffLines text={tail} cut />
    </>
  );
}

function DiffLines({ text, cut = false }: { text: string; cut?: boolean }) {
  if (!text) return null;
  const lines = text.replace(/\n$/, '').split('\n');
  return lines.map((line, index) => (
    <span key={index} class={`diff-line ${cut && index === 0 ? '' : (lineKinds[line.charAt(0)] ?? '')}`}>
      <Visible text={line} calm />
    </span>
  ));
}

const lineKinds: Readonly<Record<string, string>> = { '+': 'diff-added', '-': 'diff-removed' };

function HiddenPart({ hidden, show }: { hidden: number; show: () => void }) {
  return (
    <button type="button" class="hidden-part" onClick={show}>
      {t('{0} characters hidden: show all', formatNumber(hidden))}
    </button>
  );
}

function Visible({ text, calm }: { text: string; calm: boolean }) {
  const parts = visibleParts(calm ? text.replaceAll('\r\n', '\n') : text);
  return parts.map(part => {
    if (!part.escaped) return part.text;
    const usual = part.text === '\\n' || part.text === '\\t';
    // A line feed breaks the line after its mark anyway. A tab consists only of its mark.
    if (usual && calm) return part.text === '\\t' ? '\t' : null;
    return <span class={usual ? 'escaped usual' : 'escaped'}>{part.text}</span>;
  });
}
