/** Folders on which several windows and command lines work at once: what lies in them at first, and what must be there afterwards. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ChangeStore } from '../../src/engine/changes/changeStore.ts';
import { loadConfig } from '../../src/engine/config.ts';
import { parseToml } from '../../src/engine/files/settingsFile.ts';
import { readPolicy } from '../../src/engine/policy/policyFile.ts';
import { logDays, readLog } from '../../src/engine/records/logFile.ts';
import { parseLine, runPath } from '../../src/engine/records/runFile.ts';
import { RunHistory } from '../../src/engine/records/runHistory.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { AnthropicTurn, ReceivedRequest } from '../fakes/anthropicServer.ts';

/** One window or one row of command lines. */
export interface Door {
  /** Letters and digits. */
  name: string;
  /** A window asks a person, whose answers are kept; a command line is told `--yes`, which keeps nothing. */
  isWindow: boolean;
  rounds: number;
}

const skill = '---\ndescription: Does one thing\n---\nDo it.\n';
const large = 'text\n'.repeat(20_000);

/** `key` is that of a round, see `roundsOf`. */
export const grantedCommand = (key: string): string => `test granted != ${key}`;
export const revokedCommand = (key: string): string => `echo revoked ${key}`;

export const titleOf = (key: string): string => `named ${key}`;

export const roundsOf = (door: Door): string[] =>
  Array.from({ length: door.rounds }, (_, index) => `${door.name}x${index}`);

/** Below the home folder of `cliHome`. */
export function seedFiles(doors: readonly Door[]): Record<string, string> {
  const keys = doors.flatMap(roundsOf);
  const rule = (command: string): string =>
    `\n[[allow]]\nagent = "kairos"\ntool = "run_command"\ncommand = "${command}"\n`;
  const entry = (name: string): string => `\n[agents.${name}]\nmode = "installed"\nworking_dir = "~"\n`;
  return {
    'skills/kairos/skills/kickoff/SKILL.md': skill,
    'sources/same/skills/one/SKILL.md': skill,
    'sources/same/large.txt': large,
    'config/policy.toml': `# Mine.\n${rule('echo stays')}${keys.map(key => rule(revokedCommand(key))).join('')}`,
    'config/agents.toml': `# Mine.\n${entry('stays')}${keys.map(key => entry(`old-${key}`) + entry(`told-${key}`)).join('')}`,
    ...Object.fromEntries(
      keys.flatMap(key => [
        [`skills/own-${key}/skills/one-${key}/SKILL.md`, skill],
        [`sources/pack-${key}/skills/one/SKILL.md`, skill],
        [`sources/pack-${key}/large.txt`, large],
        [`data/agents/old-${key}/skills/one/SKILL.md`, skill],
        [`data/agents/told-${key}/skills/one/SKILL.md`, skill],
        [`sources/told-${key}/agent.toml`, `name = "told-${key}"\ndescription = "of ${key}"\n`],
        [`sources/told-${key}/skills/one/SKILL.md`, skill],
      ]),
    ),
  };
}

/** The model: a command and a file in each run, by the key in its request. */
export function turnOf({ body }: ReceivedRequest): AnthropicTurn {
  const keys = [...JSON.stringify(body.messages).matchAll(/round (\w+x\d+)/g)];
  const key = keys.at(-1)?.[1] ?? 'none';
  if (JSON.stringify(body.messages.at(-1)).includes('tool_result')) return { text: [`Done with ${key}.`] };
  return {
    text: ['Looking.'],
    toolCalls: [
      { name: 'run_command', input: { command: grantedCommand(key) } },
      { name: 'write_file', input: { path: `${key}.md`, content: key } },
    ],
  };
}

/** What is lost or broken, in sentences. With `through: 'chat'` the windows have run skills and accepted cards, and left the rest to the command lines. */
export async function problemsAfter(
  home: string,
  doors: readonly Door[],
  through: 'chat' | 'engine',
): Promise<string[]> {
  const problems: string[] = [];
  const check = (isFine: boolean | undefined, what: string): void => void (isFine || problems.push(what));
  const at = (...parts: string[]): string => join(home, ...parts);
  const keys = doors.flatMap(roundsOf);
  const installed = doors.filter(({ isWindow }) => !isWindow || through === 'engine').flatMap(roundsOf);
  checkPolicy(at('config/policy.toml'), doors, through, check);
  const config = loadConfig({
    env: { TELOS_SKILLS_DIR: at('skills'), TELOS_CONFIG_DIR: at('config'), TELOS_DATA_DIR: at('data') },
    home,
    cwd: at('work'),
  });
  const telos = Telos.open(config);
  for (const key of keys)
    check((await telos.agentCard(`own-${key}`)).state === 'reviewed', `the review of own-${key} is lost`);
  checkAgentsToml(readFileSync(at('config/agents.toml'), 'utf8'), installed, check);
  for (const name of ['same', ...installed.map(key => `pack-${key}`)]) {
    const copied = (file: string): string | undefined =>
      existsSync(at('skills', name, file)) ? readFileSync(at('skills', name, file), 'utf8') : undefined;
    check(copied('large.txt') === large && copied('skills/one/SKILL.md') === skill, `${name} is not whole`);
  }
  await checkRuns(at('data'), keys, check);
  const titles = (await new RunHistory(at('data')).list()).map(({ title }) => title);
  for (const door of doors.filter(({ isWindow }) => isWindow && through === 'engine'))
    for (const key of roundsOf(door))
      check(titles.includes(titleOf(key)), `the name of the run of ${key} is lost`);
  for (const folder of ['config', 'skills', 'data'])
    for (const path of readdirSync(at(folder), { recursive: true, encoding: 'utf8' }))
      check(!/\.lock$|\.tmp$|(^|\/)\.telos-/.test(path), `${folder}/${path} is left over`);
  return problems;
}

type Check = (isFine: boolean | undefined, what: string) => void;

function checkPolicy(file: string, doors: readonly Door[], through: string, check: Check): void {
  const { allow, problems } = readPolicy(file, '/home/nobody');
  for (const problem of problems) check(false, problem);
  check(readFileSync(file, 'utf8').startsWith('# Mine.\n'), 'the first line of policy.toml is lost');
  const commands = allow.map(({ command }) => command);
  check(commands.includes('echo stays'), 'a rule of the user is lost');
  for (const door of doors.filter(({ isWindow }) => isWindow)) {
    for (const key of roundsOf(door)) {
      const count = commands.filter(command => command === grantedCommand(key)).length;
      check(count === 1, `the rule of ${key} is there ${count} times`);
      check(
        through === 'chat' || !commands.includes(revokedCommand(key)),
        `what ${key} revoked is granted again`,
      );
    }
  }
}

function checkAgentsToml(text: string, keys: readonly string[], check: Check): void {
  check(text.startsWith('# Mine.\n'), 'the first line of agents.toml is lost');
  const agents = parseToml(text)['agents'] as Record<string, { description?: string }>;
  check('stays' in agents, 'an entry of the user is lost');
  for (const key of keys) {
    check(!(`old-${key}` in agents), `the entry of old-${key}, which was uninstalled, is back`);
    check(agents[`told-${key}`]?.description === `of ${key}`, `the description of told-${key} is lost`);
  }
}

/** Every run in the log from start to end, and in a file of its own. */
async function checkRuns(dataDir: string, keys: readonly string[], check: Check): Promise<void> {
  const days = await Promise.all(logDays(dataDir).map(({ file }) => readLog(file)));
  for (const { skipped } of days) check(skipped === 0, `${skipped} lines of the log are no records`);
  const records = days.flatMap(day => day.records);
  const store = new ChangeStore({ dataDir, configDir: dataDir });
  for (const key of keys) {
    const end = records.find(
      record =>
        record.event === 'skill_end' && new RegExp(`round ${key}\\b`).test(JSON.stringify(record.messages)),
    );
    check(end?.event === 'skill_end' && end.outcome === 'completed', `the run of ${key} has no good end`);
    const count = (event: string): number =>
      records.filter(record => record.event === event && record.run_id === end?.run_id).length;
    check(count('skill_start') === 1, `the start of ${key} is lost`);
    checkRunFile(runPath(dataDir, end?.run_id ?? '') ?? '', key, check);
    const changed = await store.of(end?.run_id ?? '').catch(() => undefined);
    check(changed?.files[0]?.state === 'ready', `the file that ${key} wrote cannot be taken back`);
    check(count('tool_call') === 2, `${count('tool_call')} calls of ${key} are in the log`);
  }
}

function checkRunFile(file: string, key: string, check: Check): void {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const lines = text.trimEnd().split('\n').map(parseLine);
  const end = lines.findLast(line => line?.type !== 'title');
  const isWhole = !lines.includes(undefined) && lines[0]?.type === 'run' && end?.type === 'run_end';
  check(isWhole && end.outcome === 'completed', `the file of the run of ${key} is not whole`);
  const tools = lines.filter(line => line?.type === 'tool_end').length;
  check(tools === 2, `${tools} calls of ${key} are in its file`);
}
