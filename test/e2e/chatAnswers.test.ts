/** Answers worth reading, in the chat view's page by itself in Chromium: folds, wrapped code, diffs, reads in one row. */
import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import type { RunEvent } from '../../src/protocol/run.ts';
import { eventually } from '../eventually.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { buildView, openView, type View, type ViewBundle } from '../webview/harness.ts';
import { call, conversation, done, end, failed, routed, start, text } from '../webview/scenes.ts';

describe('answers in the chat page', () => {
  let browser: Browser;
  let bundle: ViewBundle;
  const views: View[] = [];

  before(async () => {
    bundle = await buildView();
    browser = await sharedChromium();
  });

  afterEach(async () => {
    for (const { page, problems } of views.splice(0)) {
      await page.close();
      assert.deepEqual(problems, []);
    }
  });

  async function open(options?: Parameters<typeof openView>[2]): Promise<View> {
    const view = await openView(browser, bundle, options);
    views.push(view);
    return view;
  }

  /** Opens a view that shows this answer. `size` cuts it into deltas. */
  async function answered(answer: string, size = answer.length): Promise<View> {
    const view = await open();
    const deltas = answer.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g'))!.map(text);
    await view.say(conversation([start('go'), routed, ...deltas, end]));
    return view;
  }

  const log = (view: View) => view.page.getByRole('log', { name: 'Conversation' });

  describe('folds', () => {
    const folded = `Before.

<details>
<summary>All <b>the</b> *steps*</summary>

1. one
2. two
</details>

<details open onclick="alert(1)" ontoggle="alert(2)"><summary onclick="alert(3)">Open</summary>Inside</details>
After.
`;

    it('draws `<details>` with Markdown inside, closed until it is pressed', async () => {
      for (const size of [folded.length, 7, 1]) {
        const view = await answered(folded, size);
        const folds = log(view).locator('details.fold');
        assert.equal(await folds.count(), 2);
        const [first, second] = [folds.nth(0), folds.nth(1)];
        assert.equal(await first.locator('summary').textContent(), 'All the steps');
        assert.equal(await first.locator('summary em').textContent(), 'steps');
        assert.equal(await first.locator('li').first().isVisible(), false);
        await first.locator('summary').click();
        assert.deepEqual(await first.locator('li').allTextContents(), ['one', 'two']);
        assert.equal(await first.locator('li').first().isVisible(), true);
        assert.equal(await second.getByText('Inside').isVisible(), true);
        assert.equal(await log(view).locator('.section > .prose', { hasText: 'After.' }).isVisible(), true);
        assert.equal(await log(view).locator('[onclick], [ontoggle]').count(), 0);
        assert.doesNotMatch((await log(view).textContent()) ?? '', /<|alert/);
      }
    });

    it('takes no other tag, no end without a beginning and none in code', async () => {
      const view = await answered(
        '</details>\n\n<div>\n<details-x>\n\n```html\n<details>\n<summary>code</summary>\n</details>\n```\n\n`<details>` end',
      );
      assert.equal(await log(view).locator('details.fold').count(), 0);
      assert.match((await log(view).textContent()) ?? '', /<\/details>[\s\S]*<div>[\s\S]*<details-x>/);
    });

    it('stops folding after eight levels, and loses no word of a fold that is not ended', async () => {
      const deep = Array.from({ length: 40 }, (_, at) => `<details><summary>S${at}</summary>\n\n`).join('');
      const view = await answered(`${deep}the end`);
      assert.equal(await log(view).locator('details.fold').count(), 8);
      assert.match((await log(view).textContent()) ?? '', /S0[\s\S]*S7[\s\S]*S39[\s\S]*the end/);
    });
  });

  describe('formulas', () => {
    const math = (view: View) => log(view).locator('span.formula');

    it('are drawn by their marks, and prices and variables are words', async () => {
      const view = await answered(
        'It is $E = mc^2$ or \\(a_1*b*c\\).\n\n$$\nx\n= y\n- z\n$$\n\n\\[ \\frac{1}{2} \\]\n\nFrom $5 to $10, US$5 and A$6, $HOME/$USER, `$x$`, a\\$b\\$.\n',
        9,
      );
      await eventually(async () => assert.equal(await math(view).count(), 4));
      assert.equal(await math(view).locator('.katex-error').count(), 0);
      assert.equal(await log(view).locator('span.formula.displayed').count(), 2);
      assert.match(
        (await log(view).textContent()) ?? '',
        /From \$5 to \$10, US\$5 and A\$6, \$HOME\/\$USER, \$x\$, a\$b\$\./,
      );
      // Its own letters are what only its style sheet and fonts bring.
      await eventually(async () =>
        assert.match(
          await math(view)
            .locator('.mathnormal')
            .first()
            .evaluate(one => getComputedStyle(one).fontFamily),
          /KaTeX_Math/,
        ),
      );
    });

    it('stay as they were written where they are not valid, define commands or are too large', async () => {
      const bombs = [
        '\\frac{1',
        `\\def\\a{${'x'.repeat(200)}}${'\\a'.repeat(60)}`,
        '\\newcommand{\\a}{\\a\\a}\\a',
        `${'\\frac{1}{'.repeat(100)}x${'}'.repeat(100)}`,
        `${'{'.repeat(190)}x${'}'.repeat(190)}`,
        `\\begin{matrix}${'&'.repeat(450)}\\end{matrix}`,
        '\\let\\a\\b \\a',
      ];
      const view = await answered(bombs.map(tex => `$${tex}$`).join('\n\n'));
      await view.page.waitForTimeout(1_500);
      assert.equal(await math(view).count(), 0);
      for (const tex of bombs) assert.ok((await log(view).textContent())?.includes(tex), tex.slice(0, 40));
    });

    it('neither link, load, name classes nor paint outside their place', async () => {
      const view = await answered(
        [
          '\\href{javascript:alert(1)}{x}',
          '\\url{https://evil.test}',
          '\\includegraphics{https://evil.test/x.png}',
          '\\htmlClass{approval}{x}',
          '\\htmlStyle{position:fixed}{x}',
          '\\htmlData{a=b}{x}',
          '\\kern{-2000em}\\rule{900em}{900em}',
          '\\raisebox{-900em}{x}',
        ]
          .map(tex => `before $${tex}$ after`)
          .join('\n\n'),
      );
      await eventually(async () => assert.ok((await math(view).count()) >= 6));
      assert.equal(
        await log(view).locator('.formula a, .formula img, .formula [href], .formula .approval').count(),
        0,
      );
      assert.equal(await log(view).locator('.formula [style*=fixed], .formula [data-a]').count(), 0);
      const places = await math(view).evaluateAll(all =>
        all.map(one => [getComputedStyle(one).contain, one.getBoundingClientRect().width < 420] as const),
      );
      for (const [contain, fits] of places) assert.deepEqual([contain, fits], ['paint', true]);
    });
  });

  describe('diagrams', () => {
    const fence = (source: string) => `\`\`\`mermaid\n${source}\n\`\`\`\n\n`;
    const pictures = (view: View) => log(view).locator('.diagram img');

    it('are drawn, with the source one click away', async () => {
      const view = await answered(fence('graph TD\n  A[Read notes] --> B[Plan]'), 5);
      await pictures(view).waitFor();
      assert.equal(await pictures(view).getAttribute('alt'), 'Diagram: graph TD');
      assert.ok(await pictures(view).evaluate(image => (image as HTMLImageElement).naturalWidth > 50));
      assert.equal(await log(view).locator('pre').isVisible(), false);
      await view.page.getByRole('button', { name: 'Source' }).click();
      assert.equal(await log(view).locator('pre').isVisible(), true);
      assert.equal(await pictures(view).isVisible(), false);
      await view.page.getByRole('button', { name: 'Copy code' }).click();
      const copied = (await view.posted()).find(message => message.type === 'copy');
      assert.deepEqual(copied, { type: 'copy', text: 'graph TD\n  A[Read notes] --> B[Plan]\n' });
    });

    it('of every usual kind are drawn, and those that are not valid or too large show their source', async () => {
      const good = [
        'sequenceDiagram\n  A->>B: Hi',
        'classDiagram\n  A <|-- B',
        'stateDiagram-v2\n  [*] --> A',
        'erDiagram\n  A ||--o{ B : has',
        'gantt\n  dateFormat YYYY-MM-DD\n  A task :a, 2026-01-01, 3d',
        'pie\n  "a" : 1\n  "b" : 2',
        'mindmap\n  root\n    a',
        'gitGraph\n  commit\n  branch b\n  commit',
        '---\nconfig:\n  layout: elk\n---\ngraph LR\n  A --> B',
      ];
      const edges = Array.from({ length: 300 }, (_, at) => `  N${at} --> N${(at * 7 + 3) % 300}`).join('\n');
      const bad = [
        'graph TD\n  A[[[',
        'nothing known',
        'architecture-beta\n  service a(server)[A]',
        `graph TD\n${edges}`,
        `graph TD\n  A[${'x'.repeat(30_000)}]`,
      ];
      const view = await open({ height: 6_000 });
      await view.say(conversation([start('go'), routed, text([...bad, ...good].map(fence).join('')), end]));
      await eventually(async () => assert.equal(await pictures(view).count(), good.length), 60_000);
      assert.equal(await log(view).locator('.code-block:not(.drawn) pre').count(), bad.length);
    });

    it('neither run, link nor load anything, whatever they say, and cannot change how they are drawn', async () => {
      const hostile = [
        '%%{init: {"securityLevel": "loose", "htmlLabels": true}}%%\ngraph TD\n  A["<img src=https://evil.test/c onerror=alert(1)>"] --> B["<a href=javascript:alert(2)>x</a>"]',
        '---\nconfig:\n  securityLevel: loose\n  themeCSS: "@import url(https://evil.test/a.css);"\n---\ngraph TD\n  A --> B',
        'graph TD\n  A --> B\n  click A "javascript:alert(4)"\n  click B href "https://evil.test/d"',
        'graph TD\n  A["<script>alert(3)</script>"] --> B\n  classDef c fill:red\n  class A c',
        'sequenceDiagram\n  A->>B: <img src=x onerror=alert(5)>',
      ];
      const view = await open({ height: 3_000 });
      await view.say(conversation([start('go'), routed, text(hostile.map(fence).join('')), end]));
      const drawn = () =>
        log(view)
          .locator('.code-block')
          .evaluateAll(all => all.map(one => one.querySelector('.diagram img') !== null));
      await eventually(
        async () =>
          assert.deepEqual(
            await drawn(),
            hostile.map(() => true),
          ),
        60_000,
      );
      const addresses = await pictures(view).evaluateAll(all =>
        all.map(one => one.getAttribute('src') ?? ''),
      );
      for (const address of addresses) {
        assert.match(address, /^data:image\/svg\+xml;charset=utf-8,%3Csvg/);
        const svg = decodeURIComponent(address);
        assert.doesNotMatch(svg, /<script|<img|<foreignObject|onerror=["']|@import|url\(["']?https?:/i);
      }
      await pictures(view).nth(2).click();
      const asked = (await view.posted()).map(({ type }) => type);
      assert.deepEqual(asked, ['ready']);
      // Some browsers say that they have blocked a handler while the diagram was measured.
      const blocked = /^Executing inline event handler violates .*The action has been blocked\.$/s;
      view.problems.splice(0, Infinity, ...view.problems.filter(problem => !blocked.test(problem)));
    });

    it('come from a frame that reaches neither the page nor the network', async () => {
      const view = await answered(fence('graph TD\n  A --> B'));
      await pictures(view).waitFor();
      const element = view.page.locator('iframe.diagram-frame');
      assert.equal(await element.getAttribute('sandbox'), 'allow-scripts');
      const frame = (await (await element.elementHandle())?.contentFrame()) ?? assert.fail('no frame');
      const seen = await frame.evaluate(async () => {
        const outcome = async (act: () => unknown): Promise<string> => {
          try {
            return `done ${String(await act())}`;
          } catch {
            return 'refused';
          }
        };
        return {
          origin: self.origin,
          page: await outcome(() => parent.document.title),
          fetch: await outcome(() => fetch('https://evil.test/')),
          image: await new Promise(resolve => {
            const image = new Image();
            image.onerror = () => resolve('refused');
            image.onload = () => resolve('loaded');
            image.src = 'https://evil.test/x.png';
          }),
        };
      });
      assert.deepEqual(seen, {
        origin: 'null',
        page: 'refused',
        fetch: 'refused',
        image: 'refused',
      });
      // What was refused is said in the console.
      await view.page.waitForTimeout(100);
      view.problems.length = 0;
    });
  });

  describe('files', () => {
    const dot =
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const asked = async (view: View) =>
      (await view.posted()).flatMap(message => (message.type === 'look_up_files' ? message.paths : []));

    it('that the host finds become links to their lines, others stay words', async () => {
      const view = await answered(
        'See `src/a.ts:12`, [the loop](src/loop.ts#L3-L9) and [gone](../gone.ts).\n\n- Then notes/b.md:4, not `gone.ts`.\n',
        6,
      );
      await eventually(async () => assert.equal((await asked(view)).length, 5));
      const paths = await asked(view);
      assert.deepEqual([...paths].sort(), ['../gone.ts', 'gone.ts', 'notes/b.md', 'src/a.ts', 'src/loop.ts']);
      assert.equal(await log(view).locator('a.file-place').count(), 0);
      const found = ['src/a.ts', 'src/loop.ts', 'notes/b.md'];
      await view.say({ type: 'files_looked_up', asked: paths, found });
      const links = log(view).locator('a.file-place');
      assert.deepEqual(await links.allTextContents(), ['src/a.ts:12', 'the loop', 'notes/b.md:4']);
      assert.match((await log(view).textContent()) ?? '', /gone \(\.\.\/gone\.ts\)/);
      for (const link of await links.all()) await link.click();
      assert.deepEqual(
        (await view.posted()).filter(({ type }) => type === 'open_file' || type === 'open_link'),
        [
          { type: 'open_file', path: 'src/a.ts', line: 12 },
          { type: 'open_file', path: 'src/loop.ts', line: 3, endLine: 9 },
          { type: 'open_file', path: 'notes/b.md', line: 4 },
        ],
      );
      await view.say({ type: 'events', id: 'c1', from: 0, events: [] });
    });

    it('are asked about in small numbers, however many an answer names', async () => {
      const view = await answered(
        Array.from({ length: 5_000 }, (_, at) => `\`dir/${at}.ts\``)
          .join(' and ')
          .replaceAll(' and `dir/50', '\n\n`dir/50'),
      );
      await view.page.waitForTimeout(1_500);
      const batches = (await view.posted()).flatMap(message =>
        message.type === 'look_up_files' ? [message.paths.length] : [],
      );
      assert.ok(batches.length > 0 && Math.max(...batches) <= 50, String(batches));
      assert.ok((await asked(view)).length <= 3_000);
    });

    it('that are images of the workspace are shown, and neither remote ones nor scripts in them', async () => {
      const view = await answered(
        '![a dot](out/dot.png) ![drawn](out/evil.svg) ![far](https://evil.test/x.png) ![big](out/big.png) ![unc](//evil.test/x.png)\n',
      );
      const wanted = (await view.posted()).flatMap(message =>
        message.type === 'read_image' ? [message.path] : [],
      );
      assert.deepEqual(wanted, ['out/dot.png', 'out/evil.svg', 'out/big.png']);
      const evil =
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="top.hit=1"><script>top.hit=1</script><image href="https://evil.test/y.png"/></svg>';
      await view.say({ type: 'image', path: 'out/dot.png', data: `data:image/png;base64,${dot}` });
      await view.say({
        type: 'image',
        path: 'out/evil.svg',
        data: `data:image/svg+xml;base64,${Buffer.from(evil).toString('base64')}`,
      });
      await view.say({ type: 'image', path: 'out/big.png', problem: 'It is larger than 3.75 MB.' });
      await eventually(async () =>
        assert.deepEqual(
          await log(view)
            .locator('.local-image img')
            .evaluateAll(all => all.map(one => (one as HTMLImageElement).naturalWidth)),
          [1, 9],
        ),
      );
      assert.equal(await view.page.evaluate(() => 'hit' in window), false);
      assert.match((await log(view).textContent()) ?? '', /big \(out\/big\.png\) It is larger than/);
      assert.equal(await log(view).locator('img').count(), 2);
    });
  });

  describe('code', () => {
    const long = `\`\`\`ts\nconst a = '${'word '.repeat(60)}';\n\`\`\`\n`;
    const scrolls = (view: View) =>
      log(view)
        .locator('pre')
        .first()
        .evaluate(frame => frame.scrollWidth > frame.clientWidth);

    it('wraps when the person wants it, in every block, and still does after a reload', async () => {
      const view = await answered(`${long}\n${long}`);
      assert.equal(await scrolls(view), true);
      const wrap = view.page.getByRole('button', { name: 'Wrap long lines of code' });
      await wrap.first().click();
      assert.equal(await scrolls(view), false);
      assert.deepEqual(await wrap.evaluateAll(all => all.map(one => one.getAttribute('aria-pressed'))), [
        'true',
        'true',
      ]);
      const kept = await view.page.evaluate(() =>
        (window as unknown as { keptState(): unknown }).keptState(),
      );
      const again = await open({ kept });
      await again.say(conversation([start('go'), routed, text(long), end]));
      assert.equal(await scrolls(again), false);
      await again.page.getByRole('button', { name: 'Wrap long lines of code' }).click();
      assert.equal(await scrolls(again), true);
    });

    it('colours added and removed lines of a diff apart from each other and from the rest', async () => {
      const diff = '```diff\n@@ -1 +1 @@\n-const a = 1;\n+const a = 2;\n same\n```\n';
      for (const theme of ['dark', 'light', 'high-contrast', 'high-contrast-light'] as const) {
        const view = await open({ theme });
        await view.say(conversation([start('go'), routed, text(diff), end]));
        const color = (selector: string) =>
          log(view)
            .locator(selector)
            .first()
            .evaluate(one => getComputedStyle(one).color);
        await log(view).locator('.hljs-addition').waitFor();
        const colors = [
          await color('.hljs-addition'),
          await color('.hljs-deletion'),
          await color('pre code'),
        ];
        assert.equal(new Set(colors).size, 3, `${theme}: ${colors.join(' ')}`);
      }
    });
  });

  describe('thinking', () => {
    const reasoning = (value: string, durationMs?: number): RunEvent => ({
      type: 'reasoning',
      text: value,
      ...(durationMs !== undefined && { durationMs }),
    });

    it('is a row that streams and folds to how long it took', async () => {
      const view = await open();
      await view.say(conversation([start('go'), routed, reasoning('First **look'), reasoning('** at')]));
      const row = log(view).getByRole('group', { name: 'Thinking' });
      assert.equal(await log(view).getByText('Waiting for').count(), 0);
      assert.equal(await log(view).locator('.thought .markdown').count(), 0, 'not drawn before it is opened');
      await row.locator('summary').click();
      await row.getByText('First look at', { exact: false }).waitFor();
      const more = [reasoning(' the notes.'), reasoning('', 8_400), text('Done.'), end];
      await view.say({ type: 'events', id: 'c1', from: 4, events: more });
      const folded = log(view).getByRole('group', { name: 'Thought for 8 s' });
      assert.match((await folded.locator('.markdown').textContent()) ?? '', /^First look at the notes\.\s*$/);
      assert.equal(await folded.locator('.icon-running').count(), 0);
      await log(view).getByText('Done.').waitFor();
    });

    it('ends with its run, and an empty one is not shown', async () => {
      const view = await open();
      await view.say(conversation([start('go'), routed, reasoning('', 20), reasoning('half a'), end]));
      assert.deepEqual(await log(view).locator('.thought summary').allTextContents(), ['Thought']);
    });
  });

  describe('reads', () => {
    const read = (at: number, path = `notes/${at}.md`): RunEvent[] => [
      call(`r${at}`, 'read_file', { path }),
      done(`r${at}`, 'read_file', `text of ${path}`),
    ];
    const rows = (view: View) => log(view).locator('.tool > details > summary');

    it('are one row from three on, with each of them in it', async () => {
      const view = await open();
      const some = [...read(1), ...read(2)];
      await view.say(conversation([start('go'), routed, ...some]));
      assert.equal(await rows(view).count(), 2);
      const more = [
        ...read(3),
        ...read(4, 'notes/1.md'),
        call('s', 'search_files', { pattern: 'todo' }),
        done('s', 'search_files', 'none'),
        call('l', 'read_file', { path: 'last.md' }),
      ];
      await view.say({ type: 'events', id: 'c1', from: 2 + some.length, events: more });
      const row = log(view).locator('.reads > details > summary');
      assert.match((await row.textContent()) ?? '', /^Read 4 files · Searched once/);
      assert.equal(await log(view).getByText('notes/2.md', { exact: true }).isVisible(), false);
      await row.click();
      assert.equal(await log(view).locator('.reads .tool').count(), 6);
      assert.equal(await log(view).getByText('notes/2.md', { exact: true }).isVisible(), true);
    });

    it('stay one row when the model thinks between them', async () => {
      const view = await open();
      const think: RunEvent = { type: 'reasoning', text: 'Next.', durationMs: 2_000 };
      const all = [think, ...read(1), think, ...read(2), think, ...read(3), think];
      await view.say(conversation([start('go'), routed, ...all, end]));
      assert.deepEqual(
        await log(view).locator('.scroller .tool-summary:visible, .tool-summary:visible').allTextContents(),
        ['Thought for 2 s', 'Read 3 files', 'Thought for 2 s'],
      );
    });

    it('stay rows of their own when one failed or something else came between', async () => {
      const view = await open();
      await view.say(
        conversation([
          start('go'),
          routed,
          ...read(1),
          ...read(2),
          call('f', 'read_file', { path: 'gone.md' }),
          failed('f', 'read_file', 'gone.md does not exist.'),
          ...read(3),
          text('And '),
          ...read(4),
          ...read(5),
          end,
        ]),
      );
      assert.equal(await log(view).locator('.reads').count(), 0);
      await eventually(async () => assert.equal(await rows(view).count(), 6));
    });
  });
});
