/**
 * `npm run stranger`: plays a newcomer with an empty home folder, by the words of README and docs alone, and prints how long each step
 * took. Fails if one took longer than it may. Pictures and the table lie in test-results/stranger; `--write` puts the table into docs.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { packTelos } from '../cli/packedTelos.ts';
import { root } from '../docs/pages.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { closeSharedChromium } from '../vscode/chromium.ts';
import { inEditor } from './editor.ts';
import { overdue, type Step, tableOf } from './steps.ts';
import { onTerminal } from './terminal.ts';

const { values } = parseArgs({
  options: { write: { type: 'boolean' }, only: { type: 'string' } },
});
const pictures = join(root, 'test-results', 'stranger');
rmSync(pictures, { recursive: true, force: true });
mkdirSync(pictures, { recursive: true });

async function play(): Promise<Step[]> {
  const folder = tempFolder();
  try {
    const packed = await packTelos(folder.path);
    return [
      ...(values.only === 'editor' ? [] : await onTerminal(packed.tarball, pictures)),
      ...(values.only === 'terminal' ? [] : await inEditor(packed.copy, pictures)),
    ];
  } finally {
    await closeSharedChromium();
    folder.remove();
  }
}

/** The page that has the table, between two comments. */
const page = join(root, 'docs', 'getting-started.md');

const steps = await play();
const table = tableOf(steps);
console.log(table);
writeFileSync(join(pictures, 'table.md'), `${table}\n`);
const late = overdue(steps);
for (const line of late) console.error(line);
if (late.length > 0) process.exitCode = 1;
else if (values.write) {
  const text = readFileSync(page, 'utf8');
  const marks = /(<!-- Measured by `npm run stranger -- --write`\. -->\n\n)[\s\S]*?(\n\n<!-- End\. -->)/;
  if (!marks.test(text)) throw new Error(`${page} has no place for the table.`);
  writeFileSync(
    page,
    text.replace(marks, (_, before: string, after: string) => before + table + after),
  );
}
