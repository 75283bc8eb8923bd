/** What a day at work has: forty skills, a git project, two MCP servers of which one is dead, and the words that are nobody's but ours. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Frame, Page } from 'playwright-core';
import { eventually } from '../eventually.ts';
import { runCommand, type Workbench } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';
import { textsIn } from './germanText.ts';

const fake = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));

/** Ten skills each. Their words are far from those that the day uses. */
const agents: Readonly<Record<string, readonly string[]>> = {
  garden: 'sow prune mulch compost harvest graft weed transplant fertilize germinate'.split(' '),
  kitchen: 'bake ferment pickle braise knead whisk marinate blanch poach garnish'.split(' '),
  music: 'compose transpose arrange tune rehearse improvise harmonize notate conduct master'.split(' '),
  radio:
    'broadcast interview podcast jingle schedule-shows archive-shows moderate transmit mix-sound dial-in'.split(
      ' ',
    ),
};

const skillText = (name: string): string =>
  `---\nname: ${name}\ndescription: Helps to ${name.replaceAll('-', ' ')} for the ${name} of tomorrow\n---\nDo it.\n`;

/** The folder of skills: 40, and the servers of `radio`. */
export const daySkills: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(agents).flatMap(([agent, skills]) =>
      skills.map(skill => [`${agent}/skills/${skill}/SKILL.md`, skillText(skill)]),
    ),
  ),
  'radio/mcp.json': JSON.stringify({
    mcpServers: {
      notes: { command: process.execPath, args: [fake, 'none'] },
      stations: { command: 'program-that-is-missing' },
    },
  }),
};

export const dayProject: Readonly<Record<string, string>> = {
  'src/cart.js': 'export const total = (price, count) => price + count;\n',
  'src/shop.js': "import { total } from './cart.js';\nconsole.log(total(2, 3));\n",
  'README.md': '# Shop\n',
};

/** Makes the workspace a git project with one commit. */
export function commitProject({ workspace }: World): void {
  const git = (...args: string[]): void =>
    void execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], {
      cwd: workspace,
      stdio: 'ignore',
    });
  git('init', '-q');
  git('add', '.');
  git('commit', '-qm', 'Begin');
}

/** Words that only we use for a thing that has a usual name, and what each is. */
const privateWords: readonly [RegExp, string][] = [
  [/\b(?:un)?box(?:ed|es)?\b/i, 'sandbox'],
  [/\bcards?\b/i, 'permissions'],
  [/\brounds?\b/i, 'steps'],
  [/\bland(?:s|ed|ing)?\b/i, 'keep changes'],
  [/\blayers?\b/i, 'changes'],
  [/\bgrants?\b/i, 'permissions'],
  [/\bsubjects?\b/i, 'the thing that is asked about'],
  [/\bledger\b/i, 'changes'],
  [/\bforeign\b/i, 'other'],
  [/\bdigests?\b/i, 'checksum'],
  [/\bfor the first time\b/i, 'First time'],
  [/\bWhat it names\b/, 'See what … can do'],
  [/\bworking_dir\b/, 'this workspace'],
];

/** The private words in texts that a person sees or hears. */
export const privateWordsIn = (texts: readonly string[]): string[] => [
  ...new Set(texts.filter(text => privateWords.some(([pattern]) => pattern.test(text)))),
];

/** What Telos says in the window now: in the chat, in lists, dialogs, notifications, its views and the status bar. */
export async function saidIn({ page }: Workbench, frames: readonly Frame[]): Promise<string[]> {
  const places = [
    ...frames.map(frame => frame.locator('body')),
    page.locator('.quick-input-widget:visible'),
    page.locator('.notifications-toasts'),
    page.locator('.monaco-dialog-box'),
    page.locator('.statusbar-item[id^="telos"]'),
    page.locator('.pane-body .monaco-list-row'),
  ];
  const found = await Promise.all(places.map(place => textsIn(place).catch(() => [])));
  return [...new Set(found.flat().map(text => text.replaceAll(/\s+/g, ' ').trim()))].filter(Boolean);
}

/** Makes the chat beside the editor as wide as this, by dragging its edge. */
export async function chatWidth(page: Page, width: number): Promise<void> {
  const { x, y, width: now, height } = (await page.locator('.part.auxiliarybar').boundingBox())!;
  await page.mouse.move(x - 2, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x - 2 + now - width, y + height / 2, { steps: 8 });
  await page.mouse.up();
  await page.mouse.move(640, 500);
}

/** Fails if the page is wider than its view. */
export async function fits(frame: Frame, name: string): Promise<void> {
  const [wide, view] = await frame.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide! <= view!, `${name}: ${wide} pixels in a view of ${view}`);
}

export const themes = [
  ['dark', 'Dark Modern', 'vs-dark'],
  ['high-contrast', 'Dark High Contrast', 'hc-black'],
  ['high-contrast-light', 'Light High Contrast', 'hc-light'],
  ['light', 'Light Modern', 'vs'],
] as const;

export async function useTheme(page: Page, label: string, kind: string): Promise<void> {
  await runCommand(page, 'Preferences: Color Theme');
  const widget = page.locator('.quick-input-widget');
  await widget.locator('input[type="text"]').fill(label);
  await page.locator('.quick-input-list .monaco-list-row', { hasText: label }).first().click();
  await page.locator(`.monaco-workbench.${kind}`).waitFor();
  await widget.waitFor({ state: 'hidden' });
}

/** The commands that the palette lists for these words, however long the list is. */
export async function paletteCommands(page: Page, words: string): Promise<string[]> {
  const widget = page.locator('.quick-input-widget');
  const rows = page.locator('.quick-input-list .monaco-list-row');
  // A window that is just loading has no commands of extensions yet, and may take no key.
  await eventually(async () => {
    await page.keyboard.press('Escape');
    await page.locator('.part.editor').click();
    await page.keyboard.press('F1');
    await widget.locator('input[type="text"]').fill(`>${words}`, { timeout: 5_000 });
    await rows.filter({ hasText: words }).first().waitFor({ timeout: 5_000 });
  });
  const found = new Set<string>();
  const focused = async (): Promise<string> =>
    (await rows.and(page.locator('.focused')).first().getAttribute('aria-label', { timeout: 5_000 })) ?? '';
  // The rows out of sight are not drawn, so each is gone to; behind the last comes the first.
  for (let label = await focused(); !found.has(label); ) {
    const before = label;
    found.add(label);
    await page.keyboard.press('ArrowDown');
    label = await eventually(async () => {
      const next = await focused();
      assert.notEqual(next, before, 'the palette has closed');
      return next;
    }, 4_000);
  }
  await page.keyboard.press('Escape');
  return [...found].filter(label => label.startsWith(words));
}
