/** Names and texts from skills, models and files are hostile where the editor reads links and icons out of them; this disarms them. */
import { unseen } from '../protocol/unseen.ts';

/** Without the joiners and selectors that emoji and some scripts are written with. */
const invisible = new RegExp(`(?![\\u200c\\u200d\\ufe0e\\ufe0f])${unseen.source}`, 'gu');

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
