import assert from 'node:assert/strict';
import { importsOf } from '../importRules.ts';
import { projectSources } from '../map.ts';

/** Every file that one loads with itself, however far away. */
function loadedWith(file: string, sources: ReadonlyMap<string, string>): string[] {
  const found = new Set([file]);
  for (const path of found)
    for (const { file: imported, kind } of importsOf(path, sources.get(path) ?? ''))
      if (kind === 'value' && imported !== undefined) found.add(imported);
  return [...found].sort();
}

describe('the plans of a window that comes back', () => {
  it('are shown before anything loads that works on a plan, asks a model or reads skills', () => {
    const sources = projectSources();
    const loaded = loadedWith('src/extension/editor/plansTree.ts', sources);
    assert.ok(loaded.includes('src/plans/planLook.ts'));
    const heavy =
      /^src\/engine\/(?:telos\.ts|(?:run|policy|providers|box|mcp|routing|changes|scan)\/)|\/(?:plan|planRun|planActions|git|steps)\.ts$/;
    assert.deepEqual(
      loaded.filter(path => heavy.test(path)),
      [],
    );
    // Loading all of them would take longer than reading the plan.
    assert.ok(loaded.length <= 36, `${loaded.length} files: ${loaded.join(', ')}`);
  });
});
