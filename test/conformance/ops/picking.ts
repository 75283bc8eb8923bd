/** Choosing from a numbered list. */
import { pick } from '../../../src/cli/terminalHuman.ts';
import { strings } from '../caseFile.ts';
import type { Operations } from '../operations.ts';

export const pickingOperations: Operations = {
  pick: async ({ given, when }) => ({
    choice: pick(String(when['input']), strings(given['choices'])) ?? null,
  }),
};
