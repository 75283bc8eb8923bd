/** Where the tests and the first run find the product, and where they keep what is fetched once. */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's root. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Fetched and unpacked things that outlive a run; never committed. */
export const cacheDir = join(root, '.vscode-test');

/** Screenshots and logs of the last test run; never committed. */
export const resultsDir = join(root, 'test-results');
