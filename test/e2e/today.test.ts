/** The page Today in a real VS Code, after a night: a schedule that wrote a file, one that asked, and a plan that waits for an answer. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Frame } from 'playwright-core';
import { loadConfig } from '../../src/engine/config.ts';
import type { Schedule } from '../../src/engine/schedule/schedules.ts';
import { Telos } from '../../src/engine/telos.ts';
import { Journal } from '../../src/plans/journal.ts';
import { MachineSeal } from '../../src/plans/machineSeal.ts';
import type { PlanEvent } from '../../src/protocol/plan.ts';
import { eventually } from '../eventually.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { frameWith, runCommand, type Workbench } from '../vscode/workbench.ts';
import { testVariables, type World } from '../vscode/world.ts';

const hour = 3_600_000;
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();

const scheduleOf = (id: string, request: string, more: Partial<Schedule>): Schedule => ({
  version: 1,
  id,
  request,
  skill: { agent: 'garden', skill: 'barrel' },
  at: 'daily 3:00',
  cwd: '/',
  digest: '',
  missed: 'skip',
  clock: 'none',
  since: ago(0),
  failures: 0,
  ...more,
});

const events: readonly PlanEvent[] = [
  { type: 'plan_created', name: 'bakery', goal: 'Sell bread' },
  { type: 'phase', phase: 'needs_you' },
  {
    type: 'question_parked',
    question: {
      id: 'q-1',
      text: 'May US-001 use run_command for this? npm publish\nIt reaches the network.',
      choices: ['yes', 'no'],
    },
  },
];

async function night(made: World): Promise<void> {
  const { data, workspace } = made;
  const telos = Telos.open(loadConfig({ env: testVariables(made), home: made.dir }));
  const { digest } = await telos.agentCard('garden');
  const schedules = join(data, 'schedules');
  mkdirSync(schedules, { recursive: true });
  const asked = { dueAt: ago(3 * hour), startedAt: ago(3 * hour), endedAt: ago(3 * hour), pid: 1 };
  const last = {
    ...asked,
    outcome: 'completed' as const,
    needs: ['run_command: curl https://example.org/x'],
  };
  const kept = scheduleOf('sweep', 'sweep the floor', { last, cwd: workspace, digest });
  writeFileSync(join(schedules, 'sweep.json'), JSON.stringify(kept));
  const plan = join(workspace, '.telos', 'plans', 'bakery');
  mkdirSync(join(plan, 'prds'), { recursive: true });
  const seal = new MachineSeal(data);
  await seal.ready();
  const journal = await Journal.open(join(plan, 'journal.jsonl'), seal);
  for (const event of events) await journal.append(event);
  await journal.close();
}

describe('the page Today in a real VS Code', () => {
  let session: EditorSession | undefined;
  let world: World;
  let workbench: Workbench;
  let page: Frame;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: {
        turns: (_request, index) =>
          index === 0
            ? { toolCalls: [{ name: 'write_file', input: { path: 'barrel.md', content: '# Half full\n' } }] }
            : { text: ['The barrel is half full.'] },
      },
      skills: {
        'garden/agent.toml': 'name = "garden"\ndescription = "rain"\nworking_dir = "."\n',
        'garden/skills/barrel/SKILL.md':
          '---\nname: barrel\ndescription: Rain barrel\n---\nTHE BARREL TEXT\n',
      },
      prepare: night,
    });
    ({ world, workbench } = session);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      await workbench?.screenshot(`failed-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`);
  });

  after(() => session?.close());

  it('shows what waits above what ran, and one button answers the plan', async () => {
    await runCommand(workbench.page, 'Telos: Show Today');
    page = await frameWith(workbench, frame => frame.getByRole('heading', { name: 'Waiting for You' }));
    const question = page.getByRole('region', { name: 'The plan bakery asks' });
    await question.getByText('It reaches the network.').waitFor();
    await page.getByText('run_command: curl https://example.org/x').waitFor();
    await workbench.screenshot('today');
    await question.getByRole('button', { name: 'yes' }).click();
    await question.waitFor({ state: 'detached' });
    await page.getByRole('region', { name: 'The plan bakery waits: needs input' }).waitFor();
    await workbench.screenshot('today-answered');
  });

  it('runs a schedule again at once, and undoes what it changed after a question', async () => {
    await page.getByRole('button', { name: 'Run Again: sweep the floor' }).click();
    const file = join(world.workspace, 'barrel.md');
    await eventually(() => assert.ok(existsSync(file)));
    const undo = page.getByRole('button', { name: 'Undo...: sweep the floor' });
    await undo.waitFor();
    await workbench.screenshot('today-ran');
    await undo.click();
    await workbench.page.getByRole('button', { name: 'Undo', exact: true }).click();
    await eventually(() => assert.ok(!existsSync(file)));
    await undo.waitFor({ state: 'detached' });
    await workbench.screenshot('today-undone');
  });
});
