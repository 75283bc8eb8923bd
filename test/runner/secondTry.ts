/** The one second try of a failed test. It is never silent. */
import { type LayerResult, type LayerRunOptions, runLayer } from './layerRun.ts';
import type { Outcome } from './outcomes.ts';
import type { Layer } from './table.ts';

/** More failed files are no flakes, and a second try of them only takes time. */
const mostFiles = 6;

/**
 * Runs the files with failed tests once more, alone, and returns the result with what passed now among what is flaky. A hook that failed
 * has passed once no test or hook of its file fails. Returns undefined where there is nothing to try: no test failed, too many files
 * have one, the file of one is not known, or the layer ended before its last test.
 */
export async function secondTry(
  layer: Layer,
  result: LayerResult,
  options: LayerRunOptions,
): Promise<LayerResult | undefined> {
  const files = [...new Set(result.failed.flatMap(one => one.file ?? []))];
  const isWhole = result.ended && result.failed.every(one => one.file !== undefined);
  if (!isWhole || files.length === 0 || files.length > mostFiles) return undefined;
  console.log(`${layer.name}: once more, ${files.join(' ')}`);
  const again = await runLayer(layer, { ...options, files });
  // Where it did not get as far as the test, the first outcome stands.
  const passed = new Set(again.passedTitles);
  const fails = (file?: string): boolean => again.failed.some(one => one.file === file);
  const passesNow = ({ isHook, file, title }: Outcome): boolean =>
    isHook ? again.ended && passed.size > 0 && !fails(file) : passed.has(title);
  const before = new Set(result.passedTitles);
  const newTitles = [...passed].filter(title => !before.has(title));
  const failed = result.failed.filter(one => !passesNow(one));
  const flaky = result.failed
    .filter(passesNow)
    .map(({ title, error = '' }) => ({ title, firstError: error }));
  return {
    ...result,
    ok: again.ok && failed.length === 0,
    passed: result.passed + newTitles.length,
    passedTitles: [...result.passedTitles, ...newTitles],
    failed,
    flaky,
    ...(failed.length === 0 && !again.ok && { why: `At the second try: ${again.why}` }),
  };
}
