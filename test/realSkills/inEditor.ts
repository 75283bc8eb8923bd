/** Runs one skill twice in the chat of a real VS Code, with a person who accepts its card and says no to every other question. */

import type { RunEvent } from '../../src/protocol/run.ts';
import { type EditorSession, openEditorSession } from '../vscode/editorSession.ts';
import { chatFrame, runCommand } from '../vscode/workbench.ts';
import { keptRun, type World } from '../vscode/world.ts';
import type { SkillCase } from './caseFile.ts';
import { type LiteralModel, literalModel } from './literalModel.ts';
import { endOf, outcomeOf, type RunOutcome, requestOf, runTwice, type SkillOutcome } from './runSkill.ts';
import { type SkillWorld, skillWorld } from './skillWorld.ts';

export interface SkillEditor {
  run(one: SkillCase): Promise<SkillOutcome>;
  session: EditorSession;
}

/** Opens one window with all skills, and all their persons' files in its folder. */
export async function openSkillEditor(cases: readonly SkillCase[]): Promise<SkillEditor> {
  const worlds = new Map<SkillCase, SkillWorld>();
  let model: LiteralModel | undefined;
  const session = await openEditorSession({
    model: { turns: request => model?.turn(request) ?? { text: ['Nothing is asked.'] } },
    skills: {},
    workspace: {},
    variables: Object.assign({}, ...cases.map(({ env }) => env ?? {})),
    prepare: ({ dir, workspace, skills }) => {
      const places = { home: dir, project: workspace, skills, remove: () => undefined };
      for (const one of cases) worlds.set(one, skillWorld(one, 'pack', places));
    },
  });
  const runOnce = async (one: SkillCase, run: number): Promise<RunOutcome> => {
    const world = worlds.get(one)!;
    const words = world.wordsOf(run);
    model = literalModel(one.steps, words, one.name);
    const events = await runInChat(session, requestOf(one, words));
    const problems = endOf(events)?.startsWith('completed') ? [] : [`the run ended: ${endOf(events)}`];
    return outcomeOf(one, world, words, { steps: model.results, events, problems });
  };
  return { session, run: one => runTwice(one, 'pack', run => runOnce(one, run)) };
}

/** Sends the request in a new conversation, and resolves with the events of its run. */
async function runInChat({ workbench, world }: EditorSession, request: string): Promise<RunEvent[]> {
  await runCommand(workbench.page, 'Telos: New Conversation');
  const chat = await chatFrame(workbench);
  await chat.getByText('What do you want to do?').waitFor();
  await chat.getByRole('textbox', { name: 'Message Telos' }).fill(request);
  await chat.getByRole('button', { name: 'Send', disabled: false }).click();
  const question = chat.locator('.card.approval');
  const end = chat.locator('.line.end');
  for (;;) {
    await question.or(end).first().waitFor();
    if ((await end.count()) > 0) return eventsOf(world, request);
    const answered = await chat.locator('.line.answered').count();
    await question.getByRole('button', { name: 'More answers' }).click();
    const accept = question.getByRole('button', { name: /^Trust / });
    const isCard = (await accept.count()) > 0;
    await (isCard ? accept : question.getByRole('button', { name: 'Deny', exact: true })).click();
    await chat.locator('.line.answered').nth(answered).waitFor();
  }
}

async function eventsOf(world: World, request: string): Promise<RunEvent[]> {
  const lines = (await keptRun(world, `"request":${JSON.stringify(request)}`)).split('\n').filter(Boolean);
  return lines.map(line => JSON.parse(line));
}
