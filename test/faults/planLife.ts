/** What befalls a plan over its life besides kills: sleep, a clock that is put back, a person's `git gc`, a full disk; and what its prompts cost. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Figure } from './figure.ts';
import { fullDisk } from './planDisk.ts';
import { PlanWorld, type SentRequest } from './planWorld.ts';

export async function planLife(): Promise<Figure[]> {
  return [await rough(), await fullDisk(), ...(await prompts())];
}

/** A short day of a laptop: it sleeps, the person cleans the repository up, and the next runner's clock is an hour behind. */
async function rough(): Promise<Figure> {
  const world = await PlanWorld.make(24, 2);
  let [sleeps, cleanings] = [0, 0];
  try {
    const first = world.start();
    for (; first.child.exitCode === null && sleeps < 4; sleeps++) {
      await delay(700);
      process.kill(-first.child.pid!, 'SIGSTOP');
      await delay(300);
      process.kill(-first.child.pid!, 'SIGCONT');
      world.git('gc', '--quiet');
      cleanings++;
    }
    first.child.kill('SIGKILL');
    await first.report;
    world.noteKill();
    world.git('gc', '--quiet', '--auto');
    const second = world.start({ clockBackMs: 3_600_000 });
    await Promise.race([delay(2500), second.report]);
    second.child.kill('SIGKILL');
    if (!(await second.report)) world.noteKill();
    await world.start().report;
    world.verify();
    return {
      name: 'F12, F9: sleep, a clock put back by an hour, git gc by the person, in 24 stories',
      value: `${world.problems.length} violations after ${sleeps} sleeps, ${cleanings} cleanings and ${world.kills} kills${world.problems.length > 0 ? ` (${world.problems.slice(0, 3).join('; ')})` : ''}`,
      limit: 'no violation',
      met: world.problems.length === 0,
    };
  } finally {
    world.remove();
  }
}

/** Characters of a token, about. */
const tokenLength = 4;

async function prompts(): Promise<Figure[]> {
  const world = await PlanWorld.make(3, 1);
  try {
    const requests = join(world.folder.path, 'requests.jsonl');
    await world.start({ requests }).report;
    const sent = readFileSync(requests, 'utf8')
      .split('\n')
      .map((line): SentRequest => JSON.parse(line));
    const fixed = [...new Set(sent.map(one => `${one.step} ${one.fixed}`))];
    const most = Math.max(...fixed.map(one => one.length)) / tokenLength;
    const steps = new Set(sent.map(({ step }) => step));
    return [
      {
        name: 'F15: tokens of the fixed parts of a prompt',
        value: `about ${most.toFixed(0)}, ${fixed.length} texts for ${steps.size} roles in ${sent.length} requests; ${(againShare(sent) * 100).toFixed(0)} % of a second request of a step was in the first`,
        limit: '6000, one text a role, 80 %',
        met: most <= 6000 && fixed.length === steps.size && againShare(sent) >= 0.8,
      },
    ];
  } finally {
    world.remove();
  }
}

/** Share of the requests behind the first of a step that a provider has seen before from its start, and so may have kept. */
function againShare(sent: readonly SentRequest[]): number {
  let [seen, all] = [0, 0];
  for (const [index, { fixed, messages }] of sent.entries()) {
    const before = sent[index - 1];
    if (!before || before.fixed !== fixed || !messages.startsWith(before.messages.slice(0, -1))) continue;
    seen += fixed.length + before.messages.length;
    all += fixed.length + messages.length;
  }
  return seen / all;
}
