/** A run of 200 rounds over 5 MB of results in the built command line: what `npm run bench` prints of it, as a test. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { farFigures, farRun } from '../bench/farRun.ts';
import { figureLine, isMet } from '../bench/measure.ts';
import { mostAtOnce, readsAtOnce } from '../bench/readsAtOnce.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';

describe('a run that goes far', () => {
  let home: CliHome;
  beforeEach(() => {
    home = cliHome({
      'skills/one/skills/go/SKILL.md': '---\nname: go\ndescription: d\n---\nRead all pages.\n',
    });
  });
  afterEach(() => home.remove());

  const sideAt = (more: Record<string, string>) => (url: string) => ({
    args: [program(), 'run', 'go'],
    cwd: home.workDir,
    env: {
      ...home.env,
      ANTHROPIC_API_KEY: 'sk-ant-test-0123456789',
      ANTHROPIC_BASE_URL: url,
      TELOS_ROUTING_MODE: 'local',
      ...more,
    },
  });

  it('stays inside the window of its model, keeps what it found, and finds most of its prompts in the cache', async function () {
    this.timeout(120_000);
    const run = await farRun(sideAt({}));
    assert.ok(run.resultBytes > 5_000_000, String(run.resultBytes));
    assert.deepEqual(run.lost, []);
    for (const figure of farFigures(run)) assert.ok(isMet(figure), figureLine(figure));
  });

  it('keeps what it found through summaries of summaries, with a small window', async function () {
    this.timeout(120_000);
    const run = await farRun(sideAt({ TELOS_CONTEXT_WINDOW: '40000' }), 40_000);
    assert.equal(run.rounds, 200);
    assert.ok(run.summaries > 2, String(run.summaries));
    assert.ok(run.longestPrompt < 40_000, String(run.longestPrompt));
    assert.deepEqual(run.lost, []);
  });

  it('reads eight pages of a turn at the same time, and gives their results in order', async function () {
    this.timeout(120_000);
    const { most, order } = await readsAtOnce(sideAt({}), {
      agent: 'one',
      config: join(home.folder.path, 'web'),
      times: 1,
    });
    assert.equal(most, mostAtOnce);
    assert.deepEqual(
      order,
      Array.from({ length: 16 }, (_, page) => String(page)),
    );
  });
});
