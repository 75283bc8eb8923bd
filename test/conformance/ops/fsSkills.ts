/** Skills that a run without a chosen one finds by itself: where they are looked for, and what the model is told of it. */

import { mkdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type Config, skillRootKinds } from '../../../src/engine/config.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { skillSearchText } from '../../../src/engine/run/prompt.ts';
import { readOnlyTools } from '../../../src/engine/run/runTools.ts';
import { existingSkillRoots, findSkills, type SkillRoot } from '../../../src/engine/skills/findSkills.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { skillTools } from '../../../src/engine/tools/builtin.ts';
import type { RunOutcome } from '../../../src/protocol/run.ts';
import { startOpenaiServer } from '../../fakes/openaiServer.ts';
import { type ConformanceCase, isRecord, strings, texts } from '../caseFile.ts';
import { type CaseWorld, fillWorld } from '../caseWorld.ts';
import type { Operations } from '../operations.ts';

export const fsSkillOperations: Operations = {
  /** A file for each name, since what is absent is told from a folder. */
  async tool_registry(_case, world) {
    const names = [...skillTools, ...readOnlyTools].map(tool => tool.definition.name);
    world.write(Object.fromEntries(names.map(name => [name, ''])));
    return { base: world.tmp };
  },

  async start_runtime(_case, world) {
    const { outcome, system } = await askedWithoutSkill(world);
    return {
      ok: outcome === 'completed',
      instructions: /Skills are folders.*|SKILL\.md/s.exec(system)?.[0] ?? '',
    };
  },

  async inject_instructions({ given }, world) {
    const root = join(world.home, '.claude', 'skills');
    if (given['roots_exist']) mkdirSync(root, { recursive: true });
    const { outcome, system } = await askedWithoutSkill(world);
    return {
      added: system.includes(root) && /SKILL\.md/.test(system),
      runtime_created: outcome === 'completed',
    };
  },

  async resolve_roots({ given }, world) {
    const roots = existingSkillRoots(configOf(given, world));
    const path = (kind: SkillRoot['kind']) => roots.find(root => root.kind === kind)?.path ?? null;
    const [project, user, builtin] = skillRootKinds.map(path);
    return { project, user, builtin, existing: roots.map(root => root.path) };
  },

  async find_skills({ given }, world) {
    const found = skillsIn(configOf(given, world));
    return { order: found.map(skill => skill.file), names: found.map(skill => skill.id) };
  },

  async effective_skill({ given, when }, world) {
    if (given['same_skill_in']) return { from: winnerAmong(strings(given['same_skill_in']), world) };
    return { path: skillsIn(configOf(given, world)).find(skill => skill.id === when['name'])?.file };
  },

  /** The original's `src/transactoid/skills` is the folder of the skills that ship with it; ours is `media/skills`, given by the frontend. */
  async root_defaults({ given }, world) {
    const shipped = join(world.root, 'media', 'skills');
    const env = texts(given['env']);
    const { skillRoots } = world.loadConfig(env, { builtinSkillsDir: shipped });
    if (Object.keys(env).length > 0) return { ...skillRoots };
    return {
      project: relative(world.cwd, skillRoots.project ?? ''),
      user: skillRoots.user?.replace(world.home, '~'),
      builtin: skillRoots.builtin === shipped ? 'src/transactoid/skills' : skillRoots.builtin,
    };
  },

  async instructions({ given }) {
    const resolved = texts(given['resolved']);
    const roots = skillRootKinds.flatMap(kind => {
      const path = resolved[kind];
      return path === undefined ? [] : [{ kind, path }];
    });
    const content = skillSearchText(roots);
    return { content, deterministic: content === skillSearchText(roots) };
  },

  /** Nothing of ours looks the name up. */
  async resolve_reference(_case, world) {
    const hint = skillSearchText([{ kind: 'user', path: world.skills }]).includes('$Name in a request means');
    return { by: hint ? 'instruction hint; the model looks the file up' : undefined };
  },
};

/** The roots are set as a user would: by the environment. */
function configOf(given: ConformanceCase['given'], world: CaseWorld): Config {
  fillWorld(world, given, 'tmp');
  const roots = isRecord(given['roots']) ? Object.entries(texts(given['roots'])) : [];
  const env = roots.map(([kind, path]) => [`TRANSACTOID_AGENT_SKILLS_${kind.toUpperCase()}_DIR`, path]);
  const home = given['home'];
  return world.loadConfig(Object.fromEntries(env), typeof home === 'string' ? { home } : {});
}

function winnerAmong(kinds: readonly string[], world: CaseWorld): string | undefined {
  world.write(Object.fromEntries(kinds.map(kind => [`${kind}/same/SKILL.md`, 'x'])));
  const roots = Object.fromEntries(kinds.map(kind => [kind, join(world.tmp, kind)]));
  const [first] = skillsIn(configOf({ roots }, world));
  return kinds.find(kind => first?.file.startsWith(join(world.tmp, kind)));
}

const skillsIn = (config: Config) =>
  existingSkillRoots(config).flatMap(({ kind, path }) => findSkills(path, kind));

/** One run over the wire; `system` is what the model was told. */
async function askedWithoutSkill(
  world: CaseWorld,
): Promise<{ outcome: RunOutcome | undefined; system: string }> {
  const server = await startOpenaiServer({ turns: [{ text: ['Done.'] }] });
  try {
    const env = { TELOS_PROVIDER: 'openai', OPENAI_API_KEY: 'k', OPENAI_BASE_URL: server.url };
    const telos = Telos.open(world.loadConfig(env));
    const request = { text: 'hello', withoutSkill: true };
    let outcome: RunOutcome | undefined;
    for await (const event of telos.run(request, denyAll, new AbortController().signal))
      if (event.type === 'run_end') outcome = event.outcome;
    const messages = server.requests[0]?.body.messages;
    return { outcome, system: JSON.parse(JSON.stringify(messages?.[0]?.content ?? '')) };
  } finally {
    await server.close();
  }
}
