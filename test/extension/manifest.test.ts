/** What package.json says to the editor, as far as the editor would take a mistake in it without a word. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const manifest: unknown = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8'),
);

interface Manifest {
  contributes: { configuration: { properties: Record<string, { scope?: string }> } };
}

/** All conditions, in every part of the manifest. */
function conditions(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) =>
    (name === 'when' || name === 'enablement') && typeof part === 'string' ? [part] : conditions(part),
  );
}

describe('package.json', () => {
  it('has only conditions that the editor can read; one that it cannot read always holds', () => {
    const all = conditions(manifest);
    assert.ok(all.length > 40, `${all.length} conditions`);
    const key = String.raw`[\w.]+`;
    const term = String.raw`!?${key}(?: (?:==|!=|=~) (?:/(?:\\.|[^/\\])+/|[\w.]+))?`;
    const condition = new RegExp(String.raw`^(?:${term}|!\(${term}\))(?: && (?:${term}|!\(${term}\)))*$`);
    assert.deepEqual(
      all.filter(each => !condition.test(each)),
      [],
    );
  });

  it('offers at most 40 commands in an empty window, and none there about plans that there are not', () => {
    const { contributes } = manifest as {
      contributes: {
        commands: { command: string; enablement?: string }[];
        menus: { commandPalette: { command: string; when: string }[] };
        views: Record<string, unknown[]>;
      };
    };
    const facts: Record<string, string> = { workspaceFolderCount: '0', isWorkspaceTrusted: 'true' };
    const holds = (condition = 'isWorkspaceTrusted'): boolean =>
      condition.split(' && ').every(term => {
        const [, not, key = '', operator, wanted] = /^(!?)([\w.]+)(?: (==|!=) ([\w.]+))?$/.exec(term)!;
        const is = operator ? (facts[key] === wanted) === (operator === '==') : facts[key] !== undefined;
        return is !== (not === '!');
      });
    const when = new Map(contributes.menus.commandPalette.map(each => [each.command, each.when]));
    const offered = contributes.commands
      .filter(each => holds(when.get(each.command)) && holds(each.enablement))
      .map(({ command }) => command);
    // The editor adds a command for each view, which focuses it.
    const views = Object.values(contributes.views).flat().length;
    assert.ok(offered.length + views <= 40, `${offered.length} and ${views}: ${offered.join(', ')}`);
    assert.deepEqual(
      offered.filter(command => /Plan/.test(command)),
      ['telos.tryPlan'],
    );
  });

  it('takes no setting about safety, addresses or money from a workspace', () => {
    const { properties } = (manifest as Manifest).contributes.configuration;
    const ours = Object.entries(properties).filter(([name]) =>
      /sandbox|baseUrl|Folder|catalogs|offer|budget|mcp|protocol|keepRunning|maxRounds/.test(name),
    );
    assert.ok(ours.length >= 15);
    for (const [name, { scope }] of ours) assert.equal(scope, 'machine', name);
  });

  it('names the commands that the extension has, and no other', () => {
    const source = readFileSync(
      fileURLToPath(new URL('../../src/extension/commands.ts', import.meta.url)),
      'utf8',
    );
    const handled = [...source.matchAll(/^ {4}'(telos\.\w+)': /gm)].map(([, id = '']) => id);
    const { contributes } = manifest as { contributes: { commands: { command: string }[] } };
    const offered = contributes.commands.map(({ command }) => command);
    // Called by the line above a SKILL.md and by the page of an install, never by a name that a person sees.
    const own = ['telos.runSkillFile', 'telos.tryOnce'];
    assert.deepEqual(handled.toSorted(), [...offered, ...own].toSorted());
  });
});
