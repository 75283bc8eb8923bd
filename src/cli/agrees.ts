/** A yes or no to something that cannot be taken back, asked on a terminal. */
import { abortOnInterrupt } from './interrupts.ts';
import type { Terminal } from './terminal.ts';
import { readLine } from './terminalHuman.ts';

/** `about` says what would happen, `question` asks; `unattended` is said where nobody sits. Anything but a yes is a no, and is said to be one. */
export async function agrees(
  about: string,
  question: string,
  unattended: string,
  terminal: Terminal,
): Promise<boolean> {
  if (!terminal.canAsk) {
    terminal.say(unattended);
    return false;
  }
  const { signal, release } = abortOnInterrupt(() => {});
  try {
    terminal.say(about);
    const answer = await readLine(`${question} [y/N] `, signal);
    // The end of the input, and Ctrl-C, leave the cursor behind the question.
    if (answer === undefined) terminal.say('');
    if (['y', 'yes'].includes(answer?.trim().toLowerCase() ?? '')) return true;
    terminal.say('Nothing was changed.');
    return false;
  } finally {
    release();
  }
}
