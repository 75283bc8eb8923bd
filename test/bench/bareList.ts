/**
 * The yardstick of the bench for lists: what somebody would write by hand on the same parser. Reads each SKILL.md below a folder and prints
 * its name and description. Nothing is said of what a skill lacks, of agents, or of defects.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const [root = ''] = process.argv.slice(2);
const rows: string[] = [];
for (const path of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
  if (!path.endsWith('SKILL.md')) continue;
  const [, frontmatter = ''] = readFileSync(join(root, path), 'utf8').split('---\n');
  const { name, description } = parse(frontmatter) as { name: string; description: string };
  rows.push(`${name.padEnd(30)}  ${description}`);
}
console.log(rows.sort().join('\n'));
