/** The command line on a real terminal, with a person who accepts a card and says no to every other question. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunEvent } from '../../src/protocol/run.ts';

export interface PersonRun {
  code: number | null;
  events: RunEvent[];
  /** All that was shown beside the events. */
  shown: string;
}

/** Behind the question, so that the answer is not taken for typed ahead. In milliseconds. */
const readingTime = 260;
/** A question that is still open after this is answered again. In milliseconds. */
const patience = 3000;

const question = /Allow\? \[[^\]]*\]\s*$/;

/** `command` prints events as JSON; they go to `eventsFile`. `yesToAll` also answers what is not about a card with yes. */
export async function withPerson(
  command: readonly string[],
  {
    cwd,
    env,
    eventsFile,
    yesToAll,
  }: { cwd: string; env: Record<string, string>; eventsFile: string; yesToAll: boolean },
): Promise<PersonRun> {
  const quoted = command.map(word => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const child = spawn('script', ['-qfec', `${quoted} > '${eventsFile}'`, '/dev/null'], {
    cwd,
    env: { ...env, TERM: 'dumb', SHELL: '/bin/sh' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let shown = '';
  let isOver = false;
  let changedAt = performance.now();
  let answeredAt = Number.NEGATIVE_INFINITY;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    changedAt = performance.now();
  });
  child.stdin.on('error', () => undefined);
  const limit = setTimeout(() => child.kill('SIGKILL'), 120_000);
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  }).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await Promise.race([delay(20), closed]);
    const now = performance.now();
    // An answer that counted is echoed behind the question.
    if (!question.test(shown) || now - changedAt < readingTime || now - answeredAt < patience) continue;
    answeredAt = now;
    const isCard = /always = approve the permissions[^\]]*\]\s*$/.test(shown);
    child.stdin.write(isCard ? 'always\n' : yesToAll ? 'y\n' : 'n\n');
    await delay(200);
    if (!question.test(shown)) answeredAt = Number.NEGATIVE_INFINITY;
  }
  const code = await closed;
  clearTimeout(limit);
  const lines = readFileSync(eventsFile, 'utf8').split('\n').filter(Boolean);
  return { code, shown, events: lines.map(line => JSON.parse(line) as RunEvent) };
}
