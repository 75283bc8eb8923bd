/** Adds rules of the user, and switches tools off and on, without a word of TOML. */

import type { Config } from '@telos/engine/config';
import type { ServerBook } from '@telos/engine/mcp';
import {
  openPolicyFile,
  type PolicyRule,
  type PolicyRules,
  removeRule,
  ruleProblem,
  switchesOf,
  switchTool,
  type UserRule,
  writeRule,
} from '@telos/engine/policy';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import { plainLabel } from '../base/labels.ts';

type Places = Pick<Config, 'configDir' | 'home'>;

/** Each tool with what it does in the words of a person. */
const tools = (): Readonly<Record<string, string>> => ({
  run_command: vscode.l10n.t('Run commands'),
  write_file: vscode.l10n.t('Write files'),
  edit_file: vscode.l10n.t('Change files'),
  read_file: vscode.l10n.t('Read files'),
  list_directory: vscode.l10n.t('List folders'),
  glob: vscode.l10n.t('Find files by name'),
  search_files: vscode.l10n.t('Search in files'),
  fetch_url: vscode.l10n.t('Open web pages'),
});

/** Returns true for a rule that forbids a tool as a whole, for every agent. */
const isSwitch = ({ effect, agent, pack, argv, command, host, path, server, digest }: PolicyRule): boolean =>
  effect === 'deny' &&
  agent === '*' &&
  [pack, argv, command, host, path, server, digest].every(part => part === undefined);

interface ServerTool {
  agent: string;
  server: string;
  tool: string;
}

interface SwitchItem extends vscode.QuickPickItem {
  tool: string;
  picked: boolean;
  /** Set for a tool of an MCP server. */
  of?: ServerTool;
}

/** Returns the tools of the MCP servers that have started, and those that are switched off. */
function serverTools({ deny }: PolicyRules, book: ServerBook): ServerTool[] {
  const off = deny.flatMap(({ agent, server, tool, digest }) =>
    server === undefined || digest !== undefined ? [] : [{ agent, server, tool }],
  );
  const all = [...book.tools(), ...off].map(one => [JSON.stringify(one), one] as const);
  return [...new Map(all).values()];
}

/** Lists the tools with a checkbox each. One that is switched off is forbidden for every agent. */
export async function switchTools(places: Places, book: ServerBook): Promise<void> {
  const rules = openPolicyFile(places).read();
  const { file, deny } = rules;
  const off = deny.filter(isSwitch);
  const own: SwitchItem[] = Object.entries(tools()).map(([tool, label]) => ({
    label,
    description: tool,
    tool,
    picked: !off.some(rule => rule.tool === tool),
  }));
  const theirs = serverTools(rules, book).map(
    (of): SwitchItem => ({
      label: plainLabel(of.tool, 80),
      description: plainLabel(vscode.l10n.t('MCP server {0} of {1}', of.server, of.agent)),
      tool: of.tool,
      of,
      picked: switchesOf(rules, of.agent, of.server, of.tool).length === 0,
    }),
  );
  const items = [...own, ...theirs];
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t('Tools That Agents Can Use'),
    placeHolder: vscode.l10n.t('Tools that are not selected are denied without asking'),
    canPickMany: true,
  });
  if (!picked) return;
  for (const item of items) {
    const { tool, of, picked: wasOn } = item;
    const isOn = picked.includes(item);
    if (of) {
      if (isOn !== wasOn) await switchTool({ file, home: places.home }, of, isOn);
      continue;
    }
    if (!isOn && wasOn) await writeRule(file, 'deny', { agent: '*', tool });
    if (isOn && !wasOn)
      for (const rule of off.filter(each => each.tool === tool)) await removeRule(file, rule, places.home);
  }
  const refused = items.filter(item => !picked.includes(item));
  const names = refused.map(({ label }) => label).join(', ');
  acknowledge(
    names ? vscode.l10n.t('Refused from now on: {0}', names) : vscode.l10n.t('Agents may use every tool.'),
  );
}

interface RuleKind extends vscode.QuickPickItem {
  effect: PolicyRule['effect'];
  tool: string;
  subject: 'argv' | 'path' | 'host';
}

function ruleKinds(): RuleKind[] {
  const kind = (
    effect: RuleKind['effect'],
    tool: string,
    subject: RuleKind['subject'],
    label: string,
  ): RuleKind => ({ effect, tool, subject, label });
  return [
    kind('allow', 'run_command', 'argv', vscode.l10n.t('Allow a command')),
    kind('allow', 'fetch_url', 'host', vscode.l10n.t('Allow a website')),
    kind('allow', 'read_file', 'path', vscode.l10n.t('Allow reading a file or folder')),
    kind('allow', 'write_file', 'path', vscode.l10n.t('Allow writing a file or folder')),
    kind('deny', '*', 'path', vscode.l10n.t('Forbid a file or folder')),
    kind('deny', 'fetch_url', 'host', vscode.l10n.t('Forbid a website')),
    kind('deny', 'run_command', 'argv', vscode.l10n.t('Forbid a command')),
  ];
}

/** Asks for a rule, and writes it. Returns without one if the person cancels. */
export async function addPermission(places: Places, agents: readonly string[]): Promise<void> {
  const kind = await vscode.window.showQuickPick(ruleKinds(), { title: vscode.l10n.t('New Rule') });
  if (!kind) return;
  const agent = kind.effect === 'deny' ? '*' : await whichAgent(agents);
  if (agent === undefined) return;
  const value = await askText({
    title: kind.label,
    ...wordsFor(kind),
    validateInput: text =>
      ruleProblem(kind.effect, ruleOf(kind, agent, text), places.home) === undefined && isPlain(kind, text)
        ? undefined
        : wordsFor(kind).prompt,
  });
  if (!value) return;
  const { file } = openPolicyFile(places).read();
  await writeRule(file, kind.effect, ruleOf(kind, agent, value));
  acknowledge(vscode.l10n.t('Added: {0}: {1}', kind.label, plainLabel(value.trim(), 200)));
}

async function whichAgent(agents: readonly string[]): Promise<string | undefined> {
  const every = { label: vscode.l10n.t('Every agent'), name: '*' };
  const items = [every, ...agents.map(name => ({ label: plainLabel(name), name }))];
  const title = vscode.l10n.t('For which agent?');
  return (await vscode.window.showQuickPick(items, { title }))?.name;
}

function wordsFor({ subject }: RuleKind): { prompt: string; placeHolder: string } {
  switch (subject) {
    case 'argv':
      return {
        prompt: vscode.l10n.t('Enter plain words. A * at the end stands for any further arguments.'),
        placeHolder: 'npm run build',
      };
    case 'host':
      return { prompt: vscode.l10n.t('Enter a host such as example.com.'), placeHolder: 'docs.example.com' };
    case 'path':
      return {
        prompt: vscode.l10n.t('Enter an absolute path. With /** at its end, it stands for all in a folder.'),
        placeHolder: '~/notes/**',
      };
  }
}

function ruleOf({ tool, subject }: RuleKind, agent: string, text: string): UserRule {
  const value = text.trim();
  return { agent, tool, ...(subject === 'argv' ? { argv: value.split(/\s+/) } : { [subject]: value }) };
}

/** A rule compares words, so quotes and operators would never match. */
const isPlain = ({ subject }: RuleKind, text: string): boolean =>
  text.trim() !== '' &&
  (subject !== 'argv' || /^[^\s"'\\`$;&|<>()*]+(\s+[^\s"'\\`$;&|<>()*]+)*(\s+\*)?$/.test(text.trim()));
