/** Long work in short pieces: the extension host serves every extension, and a window that stalls is noticed. */

/** The work between two pauses, in milliseconds; several readers may be at work in turn. */
const sliceMs = 4;

/** Hands the values on one by one, and lets everybody else have a turn whenever the reader has been busy for a slice. */
export async function* inSlices<Value>(values: Iterable<Value>): AsyncGenerator<Value> {
  await othersTurn(); // whoever calls has often just done something long
  let start = performance.now();
  for (const value of values) {
    yield value;
    if (performance.now() - start < sliceMs) continue;
    await othersTurn();
    start = performance.now();
  }
}

const othersTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));
