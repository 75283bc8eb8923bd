/**
 * `npm run pictures`: takes the pictures of README.md, of the store's page and of the walkthrough from a real VS Code, in which a
 * scripted model runs a skill, evals run and the sample plan is played. Writes them to `media/pictures` and `media/walkthrough`,
 * with the digests of the views' sources beside them.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Frame as Chat, Page } from 'playwright-core';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { endEditors } from './editor.ts';
import { type EditorSession, openEditorSession } from './editorSession.ts';
import { root } from './paths.ts';
import { pictureSources, pictureSourcesFile } from './pictureSources.ts';
import { type Frame, smallPng } from './smallPng.ts';
import { anotherWindow, chatFrame, frameWith, runCommand } from './workbench.ts';

const folder = join(root, 'media', 'pictures');
const size = { width: 1120, height: 700 };

const notes = `# Release 2.4

- search finds words with accents
- CSV export keeps the order of columns
- fix: the second page was empty for some people
`;

const changelog = `# Changelog

## 2.4

- Search finds words with accents.
- The CSV export keeps the order of columns.
- The second page is no longer empty.

## 2.3

- Dark theme.
`;

const turns: AnthropicTurn[] = [
  {
    text: ['I read the notes of the release ', 'and the changelog as it is.'],
    toolCalls: [
      { name: 'read_file', input: { path: 'notes/release.md' } },
      { name: 'read_file', input: { path: 'CHANGELOG.md' } },
    ],
  },
  {
    text: ['Three changes are new. ', 'I write them in the style of your earlier entries.'],
    toolCalls: [{ name: 'write_file', input: { path: 'CHANGELOG.md', content: changelog } }],
  },
  {
    text: [
      '**2.4 is in `CHANGELOG.md`** ',
      'with three entries, newest first. ',
      'Dates stay as you had them: none.',
    ],
  },
  {
    text: ['The tag is set. ', 'It has to be pushed over the one that is there.'],
    toolCalls: [{ name: 'run_command', input: { command: 'git push --force origin v2.4' } }],
  },
  { text: ['The tag stays as it is.'] },
];

const skill = (name: string, description: string): string =>
  `---
name: ${name}
description: ${description}
---
# ${name}

1. Read \`notes/release.md\` and the file that is there.
2. Keep the order and the style of earlier entries.
3. One line for each change, without names of people.
4. Say what is left to do.
`;

/** Requests for the skill changelog, of which one does not find it. */
const requests = [
  { query: 'write the changelog of the release', should_trigger: true },
  { query: 'changelog from my notes', should_trigger: true },
  { query: 'tell people about the new version', should_trigger: true },
  { query: 'order a pizza', should_trigger: false },
];

const dark = 'Default Dark Modern';
/** Where the sample plan is made. */
const temporary = tempFolder();

const session = await openEditorSession({
  model: { turns: (_request, index) => turns[index] ?? {}, chunkDelayMs: 60 },
  skills: {
    'release/agent.toml': 'name = "release"\ndescription = "From notes to a tag"\nworking_dir = "."\n',
    'release/skills/changelog/SKILL.md': skill(
      'changelog',
      'Writes the changelog of a release from your notes.',
    ),
    'release/skills/changelog/evals/trigger.json': JSON.stringify(requests, undefined, 1),
    'release/skills/tag/SKILL.md': skill('tag', 'Tags a release and pushes the tag.'),
    'docs/skills/review-docs/SKILL.md': skill(
      'review-docs',
      'Reads the documentation as a newcomer and says what is unclear.',
    ),
    'docs/skills/screenshots/SKILL.md': skill('screenshots', 'Renews the pictures of the documentation.'),
  },
  workspace: {
    'CHANGELOG.md': '# Changelog\n\n## 2.3\n\n- Dark theme.\n',
    'notes/release.md': notes,
    'src/search.js': "export const fold = word => word.normalize('NFKD').replace(/\\p{M}/gu, '');\n",
  },
  settings: { 'files.autoSave': 'off', 'breadcrumbs.enabled': false, 'workbench.colorTheme': dark },
  variables: { TMPDIR: temporary.path },
});
try {
  await mkdir(folder, { recursive: true });
  await take(session);
  await takeEvals(session);
  await takePlan(session);
  await writeFile(pictureSourcesFile, pictureSources());
} catch (error) {
  console.error(await session.workbench.screenshot('pictures-failed'));
  throw error;
} finally {
  await session.close();
  await endEditors();
  temporary.remove();
}

async function take({ workbench: { page }, workbench }: EditorSession): Promise<void> {
  await page.setViewportSize(size);
  const chat = await chatFrame(workbench);
  const frames: Frame[] = [];
  const keep = async (shownMs: number): Promise<void> => {
    frames.push({ png: await page.screenshot({ caret: 'hide' }), shownMs });
  };
  await page.getByRole('treeitem', { name: /^changelog/ }).waitFor();
  const box = chat.getByRole('textbox', { name: 'Message Telos' });
  await chat.getByRole('button', { name: /^changelog/ }).waitFor();
  await keep(1200);
  for (const words of ['write the', 'write the changelog', 'write the changelog of 2.4']) {
    await box.fill(words);
    await keep(350);
  }
  await chat.locator('button.run-button.primary:enabled').waitFor();
  await box.press('Enter');
  const log = chat.getByRole('log', { name: 'Conversation' });
  await log.getByText('I read the notes').waitFor();
  await keep(1100);
  await log
    .getByRole('group', { name: /^Read / })
    .first()
    .waitFor();
  await keep(1100);
  await log.getByText('Three changes are new').waitFor();
  await keep(1300);
  await chat.getByRole('button', { name: 'Show diff of CHANGELOG.md' }).waitFor();
  await ended(chat, 1);
  await keep(1800);
  await chat.getByRole('button', { name: 'Show diff of CHANGELOG.md' }).click();
  await page.locator('.view-line', { hasText: 'keeps the order' }).first().waitFor();
  await page.waitForTimeout(1000);
  await keep(3500);
  await writeFile(join(folder, 'changes.png'), smallPng(frames.slice(-1)));
  await writeFile(join(folder, 'run.png'), smallPng(frames));
  await box.fill('tag it and push the tag');
  await box.press('Enter');
  await log.getByRole('group', { name: 'Approval: Run this command?' }).waitFor();
  await page.waitForTimeout(600);
  await writeFile(
    join(folder, 'approval.png'),
    smallPng([{ png: await page.screenshot({ caret: 'hide' }), shownMs: 0 }]),
  );
  await chat.getByRole('button', { name: 'Deny', exact: true }).click();
  await ended(chat, 2);
  await runCommand(page, 'View: Close All Editors');
  await page.getByRole('treeitem', { name: /^changelog/ }).click();
  await page.locator('.view-line', { hasText: 'description' }).first().waitFor();
  await box.fill('/');
  await page.waitForTimeout(800);
  await writeFile(
    join(folder, 'skills.png'),
    smallPng([{ png: await page.screenshot({ caret: 'hide' }), shownMs: 0 }]),
  );
}

/** Resolves once so many runs of the conversation have ended. */
async function ended(chat: Chat, runs: number): Promise<void> {
  await chat
    .locator('.end-completed')
    .nth(runs - 1)
    .waitFor();
}

/** The report of the sample plan, for the walkthrough, which shows it at half its size. */
async function takePlan({ workbench }: EditorSession): Promise<void> {
  const window = await anotherWindow(workbench, () => runCommand(workbench.page, 'Telos: Try a Plan'));
  const { page } = window;
  await page.setViewportSize({ width: 860, height: 600 });
  const card = await frameWith(window, frame => frame.getByRole('heading', { name: 'Before bakery starts' }));
  await card.getByRole('button', { name: 'Approve and Start' }).click();
  await page.locator('.monaco-list-row[aria-label^="bakery, done"]').waitFor();
  await runCommand(page, 'View: Hide Secondary Side Bar');
  await page.locator('.pane-header', { hasText: 'Runs' }).click();
  const report = await frameWith(window, frame =>
    frame.getByRole('heading', { name: 'bakery', exact: true }),
  );
  await report.getByText('Give the bakery').click();
  await inBothThemes(page, join(root, 'media', 'walkthrough', 'plan'));
}

/** The requests of a skill in the Testing view, one of which fails at its line. */
async function takeEvals({ workbench: { page } }: EditorSession): Promise<void> {
  await page.setViewportSize({ width: 860, height: 480 });
  await runCommand(page, 'View: Close All Editors');
  await runCommand(page, 'View: Hide Secondary Side Bar');
  await runCommand(page, 'Focus on Test Explorer View');
  await runCommand(page, 'Test: Refresh Tests');
  const row = (name: string) => page.locator('.part.sidebar .monaco-list-row', { hasText: name });
  await row('changelog').first().click();
  await page.keyboard.press('ArrowRight');
  await row('tell people').waitFor();
  await runCommand(page, 'Test: Run All Tests');
  await page
    .locator('.part.sidebar .monaco-list-row[aria-label*="(Failed)"]', { hasText: 'tell people' })
    .waitFor();
  await row('tell people').dblclick();
  await page.locator('.view-line', { hasText: 'tell people' }).first().waitFor();
  await runCommand(page, 'View: Hide Panel');
  await inBothThemes(page, join(folder, 'evals'));
  await page.setViewportSize(size);
  await runCommand(page, 'View: Close All Editors');
}

/** Writes a picture of the window in the dark theme and one in the light, and leaves it dark. */
async function inBothThemes(page: Page, path: string): Promise<void> {
  for (const [name, theme] of [
    ['light', 'Default Light Modern'],
    ['dark', dark],
  ] as const) {
    await runCommand(page, 'Preferences: Color Theme');
    await page.locator('.quick-input-widget input').first().fill(theme.replace('Default ', ''));
    await page.keyboard.press('Enter');
    await page.mouse.move(0, 0);
    await page.locator(`.monaco-workbench.${name === 'dark' ? 'vs-dark' : 'vs'}`).waitFor();
    await page.waitForTimeout(1_500);
    const png = await page.screenshot({ caret: 'hide' });
    await writeFile(`${path}-${name}.png`, smallPng([{ png, shownMs: 0 }]));
  }
}
