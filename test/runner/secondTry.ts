/** The one second try of a failed test. It is never silent. */
import { type LayerResult, type LayerRunOptions, runLayer } from './layerRun.ts';
import type { Layer } from './table.ts';

/** More failed files are no flakes, and a second try of them only takes time. */
const mostFiles = 6;

/**
 * Runs the files with failed tests once more, alone, and returns the result with the tests that passed now among the flaky ones. Returns
 * undefined where there is nothing to try: no test failed, too many did, or the layer ended before its last test.
 */
export async function secondTry(
  layer: Layer,
  result: LayerResult,
  options: LayerRunOptions,
): Promise<LayerResult | undefined> {
  const files = [...new Set(result.failed.flatMap(one => one.file ?? []))];
  const isWhole = result.ended && result.failed.every(one => one.file !== undefined);
  if (layer.command.kind !== 'mocha' || !isWhole || files.length === 0 || files.length > mostFiles)
    return undefined;
  console.log(`${layer.name}: once more, ${files.join(' ')}`);
  const again = await runLayer(layer, { ...options, files });
  // Where it did not get as far as the test, the first outcome stands.
  const passed = new Set(again.passedTitles);
  const passedNow = result.failed.filter(one => passed.has(one.title));
  const failed = result.failed.filter(one => !passed.has(one.title));
  return {
    ...result,
    ok: again.ok && failed.length === 0,
    passed: result.passed + passedNow.length,
    failed,
    flaky: [...result.flaky, ...passedNow.map(({ title, error = '' }) => ({ title, firstError: error }))],
    ...(failed.length === 0 && !again.ok && { why: `At the second try: ${again.why}` }),
  };
}
