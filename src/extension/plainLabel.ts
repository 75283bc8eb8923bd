/** Names and texts from skills, models and files are hostile where the editor reads links and icons out of them; this disarms them. */

/** Control, bidirectional, zero-width and tag characters: invisible on the screen, or able to rearrange what stands there. */
const invisible =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]+/gu;

/**
 * One line that the editor shows as it is: no `[text](command:...)` link, no `$(icon)` code, nothing invisible. Longer texts are cut
 * to `limit` characters, the last of them an ellipsis.
 */
export function plainLabel(text: string, limit = 200): string {
  const line = text
    .replace(/\s+/g, ' ')
    .replace(invisible, '')
    .replaceAll('](', '] (')
    .replaceAll('$(', '$ (')
    .trim();
  const characters = [...line];
  return characters.length <= limit ? line : `${characters.slice(0, limit - 1).join('')}…`;
}
