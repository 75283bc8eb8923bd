/** Calls whose names are looked for in several folders: which file they reach, and that a decision is made about that one. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Telos } from '../../../src/engine/telos.ts';
import { decisionOf, runAgent, wasQuestion } from '../agentRun.ts';
import { fieldsOf, textsOf } from '../caseFile.ts';
import { check, type Seen } from '../checks.ts';
import { applySetup, type World } from '../world.ts';

const slug = 'tea';

/**
 * A skill `tea` of other people's making, `skill` with its files, its card accepted if the case says so, and a person who stands in
 * `stands`. What the result `tells`, which files `hold` what afterwards, and which `exists` or is `absent`, is data of the case.
 */
export async function resolvedCall(world: World): Promise<Seen> {
  const { input, skills, put } = world;
  const files = Object.entries(fieldsOf(input['skill']));
  put(join(skills, slug, 'SKILL.md'), '---\nname: tea\ndescription: Makes tea.\n---\nMake it.\n');
  for (const [path, text] of files) put(join(skills, slug, path), String(text));
  applySetup(world);
  const standing: World = { ...world, work: String(input['stands'] ?? world.work) };
  if (standing.work !== world.work) {
    // The current folder may be any; the run then works in the folder of that person.
    standing.configFor = env => ({ ...world.configFor(env), cwd: standing.work });
    standing.mayChange.push(...textsOf(input['may_change']));
  }
  if (input['card'] === 'accepted') {
    const telos = Telos.open(standing.configFor());
    await telos.acceptCard(await telos.agentCard(slug));
  }
  const call = { name: String(input['name']), input: fieldsOf(input['input']) };
  const run = await runAgent(standing, [call], { agent: slug, skill: slug });
  const told = run.results.at(-1)?.content ?? '';
  return {
    decision: decisionOf(run),
    unattended: wasQuestion(run),
    checks: [
      ...(decisionOf(run) === 'allow'
        ? []
        : [
            check('end', 'what is not allowed is an error of the call', run.results.at(-1)?.isError === true),
          ]),
      ...textsOf(input['tells']).map(text =>
        check('shown', `the result tells ${text}`, told.includes(text) || told.slice(0, 300)),
      ),
      ...textsOf(input['tells_not']).map(text =>
        check('secrets', `the result does not tell ${text}`, !told.includes(text) || told.slice(0, 300)),
      ),
      ...Object.entries(fieldsOf(input['holds'])).map(([path, text]) =>
        check('files', `${path} holds ${text}`, contentOf(path).includes(String(text)) || contentOf(path)),
      ),
      ...textsOf(input['exists']).map(path => check('files', `${path} is there`, existsSync(path))),
      ...textsOf(input['absent']).map(path => check('files', `${path} is not there`, !existsSync(path))),
    ],
  };
}

const contentOf = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '(missing)');
