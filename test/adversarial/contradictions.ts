/** Cases that do not pass, each with the reason; the list shrinks, and a case on it that passes is an error. */
export const knownFailures: ReadonlyMap<string, string> = new Map([
  [
    'trust-007',
    'the extension takes no links yet, so that one does nothing at all; the question comes with the sources of packs',
  ],
]);
