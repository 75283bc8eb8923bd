/** Runs what is due while the bot is open, and says in Discord what a scheduled run needs from its owner. */

import { type Config, loadConfig } from '@telos/engine/config';
import { Interruption, reasonOf } from '@telos/engine/errors';
import { dueTime, isRunning, needsPerson, runIfDue, type Schedule, Schedules } from '@telos/engine/schedule';
import { projectFoldersAt } from '@telos/engine/skills';
import { Telos } from '@telos/engine/telos';
import type { Gateway } from './gateway.ts';
import { plainText } from './messageText.ts';
import { type BotSettings, limitedConfig } from './settings.ts';

/** In milliseconds. */
const lookInterval = 15_000;
const mostShown = 5;

interface ClockParts {
  settings: BotSettings;
  config: Config;
  env: Readonly<Record<string, string | undefined>>;
  gateway: Pick<Gateway, 'post' | 'channelsNamed'>;
  log(line: string): void;
}

export class BotClock {
  readonly #parts: ClockParts;
  readonly #schedules: Schedules;
  readonly #controller = new AbortController();
  readonly #startedAt = new Date().toISOString();
  readonly #reported = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(parts: ClockParts) {
    this.#parts = parts;
    this.#schedules = new Schedules(parts.config.dataDir);
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), lookInterval);
    this.#look();
  }

  /** Stops what it runs, and waits for its end. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#controller.abort(new Interruption('The bot has ended.'));
    await this.#looking;
  }

  #look(): void {
    this.#looking ??= this.#due()
      .catch(error => this.#parts.log(reasonOf(error)))
      .finally(() => {
        this.#looking = undefined;
      });
  }

  async #due(): Promise<void> {
    const { signal } = this.#controller;
    for (const schedule of this.#schedules.list().schedules) {
      if (signal.aborted) return;
      if (schedule.clock === 'none' && dueTime(schedule, new Date()) && !isRunning(schedule))
        await runIfDue(schedule.id, false, {
          schedules: this.#schedules,
          open: one => this.#open(one),
          signal,
        });
    }
    for (const schedule of this.#schedules.list().schedules) await this.#tell(schedule);
  }

  #open({ cwd, maxCost }: Schedule): Telos {
    const read = loadConfig({ env: this.#parts.env, cwd, ...(maxCost !== undefined && { maxCost }) });
    return Telos.open(
      limitedConfig({ ...read, projectFolders: projectFoldersAt(read) }, this.#parts.settings),
    );
  }

  /** Says once what a run that ended meanwhile needs, with a mention of the owners. The editor shows it until it was opened. */
  async #tell(schedule: Schedule): Promise<void> {
    const { id, request, last, failures, hasGivenUp } = schedule;
    const key = `${id} ${last?.startedAt}`;
    if (
      !last?.endedAt ||
      last.startedAt < this.#startedAt ||
      this.#reported.has(key) ||
      !needsPerson(schedule)
    )
      return;
    this.#reported.add(key);
    const { settings, gateway } = this.#parts;
    const needs = last.needs ?? [];
    const lines = [
      `**${plainText(request, 300)}** needs you.`,
      ...needs.slice(0, mostShown).map(need => `- ${plainText(need, 300)}`),
      ...(needs.length > mostShown ? [`- and ${needs.length - mostShown} more`] : []),
      ...(hasGivenUp ? [`It was paused automatically: it failed ${failures} times in a row.`] : []),
      settings.owners.map(owner => `<@${owner}>`).join(' '),
    ];
    for (const channel of gateway.channelsNamed(settings.textChannel, settings))
      await gateway.post(channel, { content: lines.join('\n'), mentions: settings.owners });
  }
}
