/** `node test/bench/largePack.ts`: a pack of 864 skills, and what listing it costs beside a script that reads the same files. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { tempFolder } from '../fakes/tempFolder.ts';
import { alternate, type Figure, figureLine, median, runOnce, type Side } from './measure.ts';

const skills = 864;
const root = fileURLToPath(new URL('../../', import.meta.url));

/** As packs are that a program has made for many services: a server that each needs, steps, a table, and a few commands. */
const textOf = (number: number): string =>
  `---
name: service-${number}-automation
description: "Does the chores of service ${number} by its server. Look up the tools first."
requires:
  mcp: [service${number % 40}]
---

# Chores of service ${number}

## Before you begin

- The server has to be connected: call \`SERVICE_SEARCH\` first, and read what it returns.
- Write down the id of the session.

## Steps

${Array.from({ length: 12 }, (_, step) => `### ${step + 1}. Chore ${step + 1}\n\nCall \`SERVICE_${number}_STEP_${step}\` with \`id\` and \`limit\`.\n\n\`\`\`json\n{ "id": "${step}", "limit": 10 }\n\`\`\`\n`).join('\n')}
| Chore | Tool | Takes |
|---|---|---|
${Array.from({ length: 12 }, (_, step) => `| ${step} | SERVICE_${number}_STEP_${step} | id, limit |`).join('\n')}
`;

export function addLargePack(folder: string): void {
  for (let number = 0; number < skills; number++) {
    const place = join(folder, `large/skills/service-${number}-automation`);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'SKILL.md'), textOf(number));
  }
}

/** From the start of the process to its end. `folder` is empty; the built command line is \`cli\`. */
export async function largePackFigure(folder: string, cli: string): Promise<Figure> {
  await build({
    entryPoints: { bareList: join(root, 'test/bench/bareList.ts') },
    ...{ outdir: folder, outExtension: { '.js': '.mjs' }, bundle: true, minify: true },
    ...{ platform: 'node', format: 'esm', target: 'node20', logLevel: 'error' },
    banner: {
      js: "import{createRequire as makeRequire}from'node:module';const require=makeRequire(import.meta.url);",
    },
  });
  addLargePack(join(folder, 'packs'));
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    TELOS_SKILLS_DIR: join(folder, 'packs'),
    TELOS_DATA_DIR: join(folder, 'data'),
    TELOS_CONFIG_DIR: join(folder, 'config'),
  };
  const ours: Side = { args: [cli, 'list-skills'], cwd: folder, env };
  const bare: Side = { args: [join(folder, 'bareList.mjs'), join(folder, 'packs')], cwd: folder, env };
  const totalOf = (side: Side) => async () => (await runOnce(side)).totalMs;
  const runs = await alternate(11, totalOf(ours), totalOf(bare));
  return {
    name: `listed a pack of ${skills} skills, start to exit`,
    unit: 'ms',
    ours: median(runs.ours),
    bare: median(runs.bare),
    limit: 2,
  };
}

if (import.meta.main) {
  const folder = tempFolder();
  console.log(figureLine(await largePackFigure(folder.path, join(root, 'dist/cli.js'))));
  folder.remove();
}
