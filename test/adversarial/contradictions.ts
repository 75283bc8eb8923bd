/** Cases that do not pass, each with the reason; the list shrinks, and a case on it that passes is an error. */
export const knownFailures: ReadonlyMap<string, string> = new Map([
  [
    'trust-007',
    'installing from a link comes with the sources of packs; until then the editor is told that Telos knows no such address, and nothing happens',
  ],
]);
