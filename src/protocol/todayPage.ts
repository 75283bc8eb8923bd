/** Defines what the page *Today* shows, worded by the extension host, and the messages between the two. */

/** A button. The host knows what its id means, and refuses any other. */
export interface TodayAction {
  id: string;
  label: string;
  /** What screen readers say, where the label alone does not tell about what it is. */
  about: string;
  isPrimary?: boolean;
}

/** Something that ran. */
export interface TodayRow {
  title: string;
  /** When it last did something, in words. */
  when: string;
  facts: readonly string[];
  actions: readonly TodayAction[];
}

/** Something that waits for the user. */
export interface TodayCard {
  title: string;
  /** May come from a model or a skill, so it is shown letter by letter. */
  lines: readonly string[];
  actions: readonly TodayAction[];
}

export interface TodayShown {
  /** One line: what it cost, and what else ran. */
  summary: string;
  cards: readonly TodayCard[];
  rows: readonly TodayRow[];
  /** What could not be read. */
  problems: readonly string[];
  /** What else of the day there is to see. */
  actions: readonly TodayAction[];
}

export type ToTodayPage = { type: 'today'; today: TodayShown };

export type FromTodayPage = { type: 'ready' } | { type: 'today_act'; id: string };
