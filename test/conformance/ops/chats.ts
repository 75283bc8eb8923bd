/** Texts for chats outside of the editor. */
import { splitMessage } from '../../../src/bot/messageText.ts';
import type { Operations } from '../operations.ts';

export const chatOperations: Operations = {
  async split_message({ given }) {
    const runs = given['text_runs'] as [string, number][];
    const text = runs.map(([piece, times]) => piece.repeat(times)).join('');
    return { lengths: splitMessage(text, Number(given['limit'])).map(({ length }) => length) };
  },
};
