/** Finds the lines of a skill's text and code that fetch instructions, last, hide something, or move money. Not on a card. */
import type { Looks } from './commandLooks.ts';
import { secretIn } from './secretShapes.ts';

const matching =
  (pattern: RegExp) =>
  (line: string): boolean =>
    pattern.test(line);

/** Number of places examined in a line, and number of characters read before each. */
const mostPlaces = 8;
const reach = 200;

/** Returns a test for lines with a place of which the text before it, up to there, matches as well. */
function behindA(place: RegExp, before: RegExp): (line: string) => boolean {
  const every = new RegExp(place.source, 'gi');
  return line => {
    let looked = 0;
    for (const { index } of line.matchAll(every)) {
      if (before.test(line.slice(Math.max(0, index - reach), index))) return true;
      if (++looked === mostPlaces) return false;
    }
    return false;
  };
}

/** The address of a text for agents, by its name. */
const instructionsAddress =
  /\bhttps?:\/\/[^\s"'<>)\]\x60]{1,200}(?<=\/[\w.-]{0,40}(?:skill|heartbeat|agents?|claude|instructions?|prompts?|messaging)[\w-]{0,20}\.(?:md|txt))(?![\w-])/;
const withoutAsking =
  /\bwithout\s+(?:asking|confirmation|confirming|telling|informing|notifying|approval|permission|(?:the\s+)?(?:user|human|owner)\S{0,2}\s+(?:approval|consent|knowledge|confirmation|permission))\b/;
const acts =
  /^(?!.*\b(?:never|not|don.?t|avoid|no|nothing|cannot|can.?t)\b[^.;!?]{0,60}$).*\b(?:runs?|executes?|install|send|delete|post|proceed|act|upload|commit|push|transfer|buy|sell)\b[^.;:!?]{0,40}$/i;
/** Files that agents obey, and those that Git and editors obey. */
const obeyedText =
  /(?:AGENTS|CLAUDE|GEMINI|SOUL|MEMORY|HEARTBEAT|TOOLS|IDENTITY|BOOTSTRAP|SKILL|copilot-instructions)\.md(?![\w-])|\.cursorrules|\.windsurfrules/;
const obeyed = new RegExp(
  String.raw`${obeyedText.source}|\.git\/hooks\/|\.husky\/|\.vscode\/(?:tasks|settings|launch)\.json|\.idea\/`,
);

/** Looks that only `telos scan` and an install have, beside those of the card. */
export const looksOfScan: readonly Looks[] = [
  {
    words: ['http'],
    looks: [
      [
        'executable-download',
        matching(
          /\bhttps?:\/\/[^\s"'<>)\]\x60]{1,300}\.(?:exe|msi|dmg|pkg|appimage|deb|rpm|scr|apk)(?![\w-]|\.[a-z])/i,
        ),
      ],
      [
        'fetched-instructions',
        behindA(instructionsAddress, /\b(?:curl|wget|fetch|read|follow|load|check|get|download)\b.{0,120}$/i),
      ],
    ],
  },
  {
    words: ['pip', 'install'],
    looks: [['unpinned-code', matching(unpinnedPython())]],
  },
  {
    words: [
      ...[
        'agents',
        'claude',
        'gemini',
        'soul',
        'memory',
        'heartbeat',
        'tools',
        'identity',
        'bootstrap',
        'skill',
      ],
      ...['copilot', 'cursorrules', 'windsurf', 'git/', 'hooks', 'husky', 'vscode', 'idea'],
    ],
    looks: [
      [
        'changes-instructions',
        behindA(
          obeyed,
          /(?:>|\btee(?:\s+-a)?|\b(?:writeFile|appendFile|open)\w{0,6}\s*\([^)]{0,80})\s{0,9}["'\x60]?[\w~${}/.-]{0,100}$|\b(?:cp|mv|ln|install)\s[^|;&]{1,120}\s[\w~${}/.-]{0,100}$/i,
        ),
      ],
      [
        'changes-instructions',
        behindA(
          obeyedText,
          /\b(?:add|append|write|insert|copy|paste)\b.{0,60}\b(?:to|into|in)\s{1,3}(?:your|the|my|its|their|a)?\s{0,3}\S{0,40}$/i,
        ),
      ],
      ['changes-instructions', matching(/\bcore\.hooksPath\b/i)],
    ],
  },
  {
    words: [
      ...['never', 'not', 'don', 'without', 'silently', 'secretly', 'covertly', 'quietly', 'hide', 'conceal'],
      ...['unnoticed'],
    ],
    looks: [
      [
        'hides-from-person',
        matching(
          /\b(?:never|do\s+not|don.?t|must\s+not)\s+(?:ever\s+)?(?:show(?!\s+up)|tell|mention|reveal|inform|notify|alert|disclose|report)\b.{0,60}\b(?:users?|persons?|humans?|owners?|operators?|them)\b/i,
        ),
      ],
      [
        'hides-from-person',
        matching(
          /\b(?:never|do\s+not|don.?t)\s+(?:ask|wait|request|prompt|require)\b.{0,40}\b(?:confirm\w*|permissions?|approvals?|consent)\b/i,
        ),
      ],
      ['hides-from-person', behindA(withoutAsking, acts)],
      [
        'hides-from-person',
        matching(
          /\b(?:silently|secretly|covertly|quietly)\s+(?:run|execute|send|upload|install|post|forward|copy|read|collect|exfiltrate|download|append|add)\b|\b(?:hide|conceal)\b.{0,40}\bfrom\s+(?:the\s+)?(?:user|person|human|owner)/i,
        ),
      ],
    ],
  },
  {
    words: [
      ...[
        'transfer',
        'send',
        'sign',
        'withdraw',
        'swap',
        'place',
        'create',
        'market',
        'stripe',
        'paypal',
        'pay',
      ],
      ...['trade', 'buy', 'sell', 'wallet'],
    ],
    looks: [
      [
        'moves-money',
        matching(
          /\b(?:send_?(?:raw_?)?transaction|sign_?transaction|signAndSend\w{0,20}|create_?order|place_?order|market_?order|create_?payment|payment_?intents?|create_?charge|withdraw(?:al)?s?\s*\(|transfer_?(?:funds|tokens?|sol|eth)|swap_?(?:tokens?|exact\w{0,30})|send_?(?:sats|payment|money|funds|sol|eth|usdc?|btc))\b|\b(?:buy|sell|trade|swap|send|withdraw|transfer)\s+(?:\w{1,12}\s+){0,3}(?:shares|stocks?|tokens?|crypto\w{0,8}|coins?|bitcoin|btc|eth|sol|usdc|funds|money|sats)\b/i,
        ),
      ],
    ],
  },
  {
    words: [
      'read',
      'fetch',
      'check',
      'summar',
      'scan',
      'search',
      'list',
      'scrape',
      'extract',
      'browse',
      'monitor',
    ],
    looks: [
      [
        'reads-foreign-text',
        matching(
          /\b(?:read|fetch|check|summari[sz]e|scan|search|list|scrape|extract|browse|monitor)(?:s|es|ing)?\b.{0,30}\b(?:e-?mails?|inbox(?:es)?|tweets?|comments|web\s?pages?|websites?|rss|feeds?|posts|messages|mentions|issues|pull\s+requests|reviews|transcripts?)\b/i,
        ),
      ],
    ],
  },
  { words: secretIn.words, looks: [['hard-coded-secret', line => secretIn(line) !== undefined]] },
];

/** Matches an installation of a Python package whose version is open. */
function unpinnedPython(): RegExp {
  return /\bpip[\d.]{0,5}\s+install\s+(?:-{1,2}(?:upgrade|user|quiet|U|q|break-system-packages|no-cache-dir)\s+){0,4}(?!-|\.|\/|["']?\S{1,80}(?:==|@|===))["']?[a-z]/i;
}
