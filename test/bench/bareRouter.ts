/**
 * The yardstick of the bench for routing: what somebody would write by hand on the same parser. Reads each SKILL.md below a folder and prints
 * the one whose name is a word of the request. No scoring, no order of places, no disabled skills, no agents.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const [root = '', request = ''] = process.argv.slice(2);
const words = request.split(' ');
for (const path of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
  if (!path.endsWith('SKILL.md')) continue;
  const [, frontmatter = ''] = readFileSync(join(root, path), 'utf8').split('---\n');
  const { name } = parse(frontmatter) as { name: string };
  if (words.includes(name)) console.log(name);
}
