/** Cases on what reaches a terminal from models, tools, skills and files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fieldsOf, textsOf } from '../caseFile.ts';
import { applying, check, type Seen } from '../checks.ts';
import { runCli, turnsFor } from '../cliRun.ts';
import { steering } from '../witness.ts';
import type { World } from '../world.ts';
import { filesBelow } from './files.ts';

/** The same text comes from the model, from a file that a tool reads, and from a skill's description. */
export async function cliOutput(world: World): Promise<Seen> {
  const { input, work, pack, put } = world;
  const pieces = input['chunks'] ? textsOf(input['chunks']) : [String(input['text'])];
  const text = pieces.join('');
  put(join(work, 'x.txt'), text);
  put(join(pack, 'skills/two/SKILL.md'), `---\ndescription: ${JSON.stringify(text)}\n---\n`);
  const turns = [
    ...turnsFor([{ name: 'read_file', input: { path: 'x.txt' } }]).slice(0, 1),
    { text: pieces },
  ];
  const run = await runCli(world, ['--verbose', 'one'], turns);
  const list = await runCli(world, ['list-skills'], []);
  const all = [run.stdout, run.stderr, list.stdout, list.stderr].join('');
  const plain =
    text
      .replace(/[^\w ]/g, ' ')
      .split(' ')
      .filter(word => word.length > 3)[0] ?? '';
  return {
    decision: 'render',
    checks: applying(
      check('shown', 'nothing steers the terminal', !steering.test(all)),
      check('shown', 'no escape is passed on', !/[\x1b\x9b]/.test(all)),
      plain !== '' &&
        check('shown', 'the words are shown', run.stdout.includes(plain) || run.stdout.slice(0, 300)),
      check('end', 'the run ends well', run.exitCode === 0 && list.exitCode === 0),
    ),
  };
}

export async function cliJson(world: World): Promise<Seen> {
  const { stdout } = await runCli(world, ['--json', 'one'], [{ text: [String(world.input['text'])] }]);
  const lines = stdout.trimEnd().split('\n');
  const whole =
    lines.length > 3 && lines.every(line => typeof fieldsOf(JSON.parse(line))['type'] === 'string');
  return {
    decision: 'render',
    checks: [
      check('shown', 'each line is JSON', whole),
      check('shown', 'nothing steers the terminal', !steering.test(stdout.replaceAll('\n', ''))),
    ],
  };
}

/** The reader of the pipe leaves early. */
export async function cliPipe(world: World): Promise<Seen> {
  const text = Array.from({ length: 400 }, (_, at) => `line ${at}\n`);
  const shell = `{ "$@"; echo "left with $?" >&2; } | ${String(world.input['reader'])}`;
  const run = await runCli(world, ['one'], [{ text }], { shell, chunkDelayMs: 2 });
  const code = /left with (\d+)/.exec(run.stderr)?.[1];
  const ended = filesBelow(world.data).some(file => /"event":"skill_end"/.test(readFileSync(file, 'utf8')));
  return {
    decision: 'any',
    checks: [
      check('end', 'the run ends cleanly', code === '0' || code === '141' || `code ${code}`),
      check('records', 'the end is recorded', ended),
      check('shown', 'the broken pipe is not complained of', !/EPIPE/.test(run.stderr) || run.stderr),
    ],
  };
}
