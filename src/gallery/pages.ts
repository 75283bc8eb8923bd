/** Writes the pages of a gallery. All that packs say is hostile: it is escaped, and hidden characters are shown by their numbers. */
import { escapedMarkup, type StoredResults } from '@telos/evals/report';
import type { CatalogueEntry } from '@telos/packs/install';
import {
  findingLines,
  type OfferedSkill,
  type PackLook,
  sizeText,
  wantsTexts,
  worstText,
} from '@telos/protocol/packOffer';
import { Characters, codePointOf, unseen } from '@telos/protocol/text';
import { formatCost } from '@telos/protocol/usage';

export interface ReplayStep {
  kind: 'request' | 'text' | 'tool';
  text: string;
}

export interface ShownSkill {
  offered: OfferedSkill;
  /** See `skillDigest`. */
  digest: string;
  /** From the folder of the site. */
  page: string;
  replay: readonly ReplayStep[];
  /** The newest results, if they were measured with these very bytes. */
  results?: StoredResults;
}

export interface ShownPack {
  entry: CatalogueEntry;
  look: PackLook;
  skills: readonly ShownSkill[];
  /** What `telos install` takes, if others can reach it. */
  install: string | undefined;
}

/** Line breaks stay as they are. */
const hidden = new Characters(`(?!\\n)(?:${unseen.source})`);

const shown = (text: string): string => escapedMarkup(hidden.replacedIn(text, codePointOf));

/** Longest text of a replay's step. In characters. */
const mostText = 2_000;

/** Returns one page. `up` leads to the folder of the site. */
const page = (title: string, up: string, body: string): string => `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${shown(title)}</title>
<link rel="stylesheet" href="${up}gallery.css">
<script defer src="${up}gallery.js"></script>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;

/** Returns the first page: each skill with its words, its worst finding and its figures, and a search over them. */
export function indexPage(packs: readonly ShownPack[]): string {
  const rows = packs.flatMap(pack => pack.skills.map(skill => skillRow(pack, skill)));
  const count = `${rows.length} ${rows.length === 1 ? 'skill' : 'skills'}`;
  return page(
    'Skills',
    '',
    `<h1>Skills</h1>
<div class="search">
<label>Search <input type="search" id="search" autocomplete="off"></label>
<label><input type="checkbox" id="measured"> Measured</label>
<label><input type="checkbox" id="replay"> With a replay</label>
<label><input type="checkbox" id="clean"> No high finding</label>
</div>
<p id="count" role="status">${count}</p>
<ul class="skills">
${rows.join('\n')}
</ul>`,
  );
}

function skillRow({ entry, look }: ShownPack, skill: ShownSkill): string {
  const { offered, page: place, results, replay } = skill;
  const flags = [
    ...(results ? ['measured'] : []),
    ...(replay.length > 0 ? ['replay'] : []),
    ...(look.findings.some(({ level }) => level === 'high') ? [] : ['clean']),
  ];
  const facts = [`from ${entry.name}`, worstText(look), ...figureTexts(results).slice(0, 1)];
  return `<li data-flags="${flags.join(' ')}"><a href="${place}">${shown(offered.id)}</a>
<p>${shown(offered.description)}</p><p class="facts">${facts.map(shown).join(' · ')}</p></li>`;
}

/** Returns the page of one skill. */
export function skillPage(
  { entry, look, install }: ShownPack,
  skill: ShownSkill,
  by: string | undefined,
): string {
  const { offered, digest, replay, results } = skill;
  const wants = wantsTexts(look);
  const found = findingLines(look.findings);
  const { read, of } = look.counts;
  const list = (items: readonly string[]): string =>
    `<ul>${items.map(item => `<li>${shown(item)}</li>`).join('')}</ul>`;
  const figures = figureTexts(results);
  const sections = [
    ...(install === undefined
      ? []
      : [section('Install', `<pre>telos install ${shown(quoted(install))}</pre>`)]),
    ...(replay.length > 0 ? [replaySection(replay)] : []),
    section(
      'Permissions',
      wants.length > 0 ? list(wants) : '<p>It asks for nothing besides its own folder.</p>',
    ),
    section(
      'Findings',
      `${found.length > 0 ? list(found.map(({ text }) => text)) : '<p>None.</p>'}<p class="facts">Read ${read} of ${of} files of ${shown(entry.name)}. The check finds only known patterns.</p>`,
    ),
    section(
      'Figures',
      figures.length > 0 ? measured(figures, results, by) : '<p>Not measured in this version.</p>',
    ),
    section('Version', `<p class="facts">${shown(sizeText(offered))}, SHA-256 <code>${digest}</code></p>`),
    ...(offered.problems.length > 0 ? [section('Problems', list(offered.problems))] : []),
  ];
  return page(
    offered.id,
    '../',
    `<p><a href="../index.html">All skills</a></p>
<h1>${shown(offered.id)}</h1>
<p>${shown(offered.description)}</p>
${sections.join('\n')}`,
  );
}

const section = (title: string, body: string): string => `<section><h2>${title}</h2>${body}</section>`;

const measured = (
  figures: readonly string[],
  results: StoredResults | undefined,
  by: string | undefined,
): string =>
  `<ul>${figures.map(figure => `<li>${shown(figure)}</li>`).join('')}</ul><p class="facts">Measured ${shown(
    [results?.recordedAt.slice(0, 10) ?? '', ...(by ? [`by ${by}`] : [])].join(' '),
  )} with <code>telos eval</code>.</p>`;

function replaySection(steps: readonly ReplayStep[]): string {
  const items = steps.map(
    ({ kind, text }) =>
      `<li class="${kind}">${shown(text.length > mostText ? `${text.slice(0, mostText).toWellFormed()}…` : text)}</li>`,
  );
  return section(
    'Replay',
    `<p class="facts">A recorded run of this version. Results of tools are not shown.</p><button type="button" id="play" hidden>Play</button><ol class="replay" id="steps">${items.join('')}</ol>`,
  );
}

/** Returns what was measured, a line for each model. */
function figureTexts(results: StoredResults | undefined): string[] {
  return (results?.figures.models ?? []).map(({ model, with_skill: mine, without_skill: plain }) => {
    const share = (column: typeof mine): string =>
      column?.runs ? `${column.runs.passed} of ${column.runs.n} runs pass` : 'no graded run';
    return [
      `${model || 'model not recorded'}: ${share(mine)}`,
      ...(plain ? [`without it ${share(plain)}`] : []),
      ...(mine?.cost === undefined ? [] : [`${formatCost(mine.cost)} a run`]),
    ].join(', ');
  });
}

/** For a shell: a source that holds more than plain letters is quoted. */
const quoted = (text: string): string =>
  /^[\w@./:#+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Returns what other programs read: `index.json`. */
export function indexOf(packs: readonly ShownPack[], by: string | undefined) {
  return {
    ...(by !== undefined && { measuredBy: by }),
    skills: packs.flatMap(({ entry, look, skills, install }) =>
      skills.map(({ offered, digest, page: place, results, replay }) => ({
        name: offered.id,
        description: offered.description,
        pack: entry.name,
        ...(install !== undefined && { source: install }),
        page: place,
        digest: `sha256:${digest}`,
        findings: countsOf(look),
        permissions: wantsTexts(look),
        hasReplay: replay.length > 0,
        ...(results && { measuredAt: results.recordedAt, figures: results.figures.models }),
      })),
    ),
  };
}

const countsOf = ({ findings }: PackLook): Record<'high' | 'medium' | 'low', number> => ({
  high: findings.filter(({ level }) => level === 'high').length,
  medium: findings.filter(({ level }) => level === 'medium').length,
  low: findings.filter(({ level }) => level === 'low').length,
});
