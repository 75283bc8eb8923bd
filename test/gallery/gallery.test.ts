/** A gallery of a catalogue, opened in a real browser as a file: what is hostile is shown and not obeyed, and figures are of these bytes. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { loadConfig } from '../../src/engine/config.ts';
import { skillDigest } from '../../src/engine/skills/skillDigest.ts';
import { buildGallery } from '../../src/gallery/gallery.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { launchChromium } from '../vscode/chromium.ts';

const media = fileURLToPath(new URL('../../media/', import.meta.url));
const sample = join(media, 'demo/skills/kairos');

describe('a gallery', function () {
  this.timeout(60_000);
  let folder: TempFolder;
  let browser: Browser;
  let page: Page | undefined;
  let asked: string[];

  before(async () => {
    browser = await launchChromium();
  });
  after(() => browser?.close());
  beforeEach(() => {
    folder = tempFolder();
    cpSync(sample, join(folder.path, 'kairos'), { recursive: true });
  });
  afterEach(async () => {
    await page?.context().close();
    page = undefined;
    folder.remove();
  });

  const site = (): string => join(folder.path, 'site');
  const build = (more: { from?: string; by?: string } = {}) =>
    buildGallery(
      join(folder.path, 'kairos'),
      loadConfig({
        env: { HOME: folder.path, TELOS_DATA_DIR: join(folder.path, 'data') },
        home: folder.path,
        cwd: folder.path,
      }),
      { folder: site(), assets: join(media, 'gallery'), ...more },
    );
  const skill = (name: string, text: string): void =>
    folder.add({ [`kairos/skills/${name}/SKILL.md`]: text });
  const open = async (path = 'index.html', scheme: 'dark' | 'light' = 'light'): Promise<Page> => {
    await page?.context().close();
    const context = await browser.newContext({ colorScheme: scheme });
    page = await context.newPage();
    asked = [];
    page.on('request', request => asked.push(request.url()));
    page.on('dialog', dialog => assert.fail(`a page opened a dialog: ${dialog.message()}`));
    await page.goto(pathToFileURL(join(site(), path)).href);
    return page;
  };
  const shown = (view: Page): Promise<string[]> =>
    view.locator('.skills li:not([hidden]) a').allTextContents();
  const index = () => JSON.parse(readFileSync(join(site(), 'index.json'), 'utf8'));

  it('stays as it is if there is nothing to show any more', async () => {
    await build();
    const before = readFileSync(join(site(), 'index.json'), 'utf8');
    rmSync(join(folder.path, 'kairos', 'skills'), { recursive: true });
    folder.add({
      'kairos/.claude-plugin/marketplace.json':
        '{"name":"k","owner":{"name":"k"},"plugins":[{"name":"a","source":"./none"}]}',
    });
    const { skills, problems } = await build();
    assert.equal(skills, 0);
    assert.match(problems.join(), /^a .*[^.]\.$/);
    assert.equal(readFileSync(join(site(), 'index.json'), 'utf8'), before);
  });

  it('is searched and filtered in a browser, without a request to anywhere else', async () => {
    const built = await build();
    assert.deepEqual([built.packs, built.skills, built.problems], [1, 3, []]);
    const view = await open();
    await view.getByLabel('Search').fill('WEEK done');
    assert.deepEqual(await shown(view), ['weekly-summary']);
    await view.getByLabel('Search').fill('');
    await view.getByLabel('With a replay').check();
    assert.deepEqual(await shown(view), ['kickoff', 'weekly-summary']);
    await view.getByLabel('Search').fill('nothing like it');
    assert.equal(await view.getByRole('status').textContent(), 'No skill has all of this. Take a word away.');
    assert.ok(
      asked.length >= 3 && asked.every(url => url.startsWith(pathToFileURL(site()).href)),
      asked.join('\n'),
    );
  });

  it('plays a recorded run of this very version, step by step', async () => {
    await build();
    const view = await open('skills/kairos-kickoff.html');
    const steps = view.locator('#steps li:visible');
    const all = await steps.count();
    assert.ok(all > 4);
    await view.getByRole('button', { name: 'Play' }).click();
    assert.ok((await steps.count()) < all);
    await view.locator('#steps li').last().waitFor({ state: 'visible' });
    assert.equal(await steps.count(), all);
    writeFileSync(join(folder.path, 'kairos/skills/kickoff/SKILL.md'), '---\ndescription: Other\n---\nDo.');
    assert.equal((await build()).replays, 1, 'a recording of other bytes is none of these');
  });

  it('has no fault that axe finds, in dark and in light', async () => {
    await build({ from: 'github:acme/kairos' });
    const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
    for (const scheme of ['dark', 'light'] as const)
      for (const path of ['index.html', 'skills/kairos-kickoff.html']) {
        const view = await open(path, scheme);
        await view.evaluate(axe);
        const found = await view.evaluate(async () => {
          const { axe: checker } = window as unknown as {
            axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
          };
          return (await checker.run()).violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
        });
        assert.deepEqual(found, [], `${scheme} ${path}`);
      }
  });

  it('shows figures that were measured with these bytes, by whom, and none of others', async () => {
    const dir = join(folder.path, 'kairos/skills/kickoff');
    const write = (skillDigestOf: string): void => {
      const place = join(folder.path, 'data/evals/kairos.kickoff/2026-01-01');
      mkdirSync(place, { recursive: true });
      const column = {
        runs: { passed: 3, n: 4, low: 0.3, high: 0.95 },
        always: undefined,
        tokens: 100,
        cost: 0.02,
        ms: 5,
      };
      const plain = { ...column, runs: { passed: 1, n: 4, low: 0.05, high: 0.7 } };
      const figures = {
        models: [{ model: 'claude-x', with_skill: column, without_skill: plain, gain: 0.5 }],
        saysNothing: [],
        flaky: [],
      };
      writeFileSync(
        join(place, 'telos.json'),
        JSON.stringify({
          format: 'telos-evals',
          version: 1,
          agent: 'kairos',
          skill: 'kickoff',
          skillDigest: skillDigestOf,
          recordedAt: '2026-01-01T00:00:00Z',
          figures,
          runs: [],
        }),
      );
    };
    write(await skillDigest(dir));
    assert.equal((await build({ by: 'the authors' })).measured, 1);
    const view = await open('skills/kairos-kickoff.html');
    await view.getByText('claude-x: 3 of 4 runs pass, without it 1 of 4 runs pass, $0.0200 a run').waitFor();
    await view.getByText('Measured 2026-01-01 by the authors with').waitFor();
    write('0'.repeat(64));
    assert.equal((await build()).measured, 0);
    await (await open('skills/kairos-kickoff.html')).getByText('Not measured in this version.').waitFor();
  });

  it('names figures and a recording that cannot be read, and shows the skill all the same', async () => {
    const place = join(folder.path, 'data/evals/kairos.kickoff/2026-01-01');
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'telos.json'), '{');
    writeFileSync(join(folder.path, 'kairos/skills/weekly-summary/recording.jsonl'), 'no recording');
    const { skills, problems } = await build();
    assert.equal(skills, 3);
    assert.equal(problems.length, 2, problems.join('\n'));
    assert.match(problems.join('\n'), /telos\.json/);
    assert.match(problems.join('\n'), /recording\.jsonl/);
  });

  it('obeys nothing that a pack says of itself, and keeps each page inside the site', async () => {
    skill(
      'evil',
      '---\nname: "../../<img src=x onerror=alert(1)>"\ndescription: "</p><script>alert(2)</script>\u202Eevil & \\"x\\""\n---\nDo.',
    );
    skill('a b', '---\ndescription: one\n---\nDo.');
    skill('a-b', '---\ndescription: two\n---\nDo.');
    const { skills } = await build();
    assert.equal(skills, 6);
    const view = await open();
    assert.equal(await view.locator('script:not([src]), img').count(), 0);
    await view.getByText('</p><script>alert(2)</script><U+202E>evil').waitFor();
    const pages = readdirSync(join(site(), 'skills'));
    assert.equal(pages.length, 6);
    for (const name of pages) assert.match(name, /^[a-z0-9-]+\.html$/);
    for (const { page: place } of index().skills) assert.ok(existsSync(join(site(), place)), place);
  });

  it('names no folder of this machine, and says where readers install from if that is given', async () => {
    await build();
    for (const name of readdirSync(site(), { recursive: true, encoding: 'utf8' }))
      if (/\.(?:html|json)$/.test(name))
        assert.ok(!readFileSync(join(site(), name), 'utf8').includes(folder.path), name);
    await build({ from: 'github:acme/kairos' });
    assert.match(
      readFileSync(join(site(), 'skills/kairos-kickoff.html'), 'utf8'),
      /telos install github:acme\/kairos/,
    );
  });

  it('replaces an earlier gallery as a whole, and no other folder', async () => {
    await build();
    writeFileSync(join(site(), 'skills/gone.html'), 'old');
    await build();
    assert.ok(!existsSync(join(site(), 'skills/gone.html')));
    writeFileSync(join(site(), 'index.json'), '{"mine": true}');
    await assert.rejects(
      build(),
      /holds other files, and a gallery would replace them\. Choose another folder\./,
    );
    assert.equal(readFileSync(join(site(), 'index.json'), 'utf8'), '{"mine": true}');
    assert.deepEqual(
      readdirSync(folder.path).filter(name => name.startsWith('.')),
      [],
    );
  });

  it('has a page for each of 200 skills', async () => {
    for (let count = 0; count < 200; count++)
      skill(`made-${count}`, `---\ndescription: Skill number ${count}\n---\nDo ${count}.`);
    assert.equal((await build()).skills, 203);
    const view = await open();
    await view.getByLabel('Search').fill('number 199');
    assert.deepEqual(await shown(view), ['made-199']);
  });
});
