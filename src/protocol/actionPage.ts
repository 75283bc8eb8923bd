/** Defines what a page of cards with buttons shows, worded by the extension host, and the messages between the two. */

/** A button. The host knows what its id means, and refuses any other. */
export interface PageAction {
  id: string;
  label: string;
  /** What screen readers say, where the label alone does not tell about what it is. */
  about: string;
  isPrimary?: boolean;
}

/** Something that ran. */
export interface PageRow {
  title: string;
  /** When it last did something, in words. */
  when: string;
  facts: readonly string[];
  actions: readonly PageAction[];
}

/** Something that waits for the user, or does not work. */
export interface PageCard {
  title: string;
  /** How much does not work. Missing where something only waits. */
  level?: 'error' | 'warning';
  /** May come from a model or a skill, so it is shown letter by letter. */
  lines: readonly string[];
  actions: readonly PageAction[];
}

/** A list of facts in columns. It is folded if it has a title. */
export interface PageSection {
  title: string;
  rows: readonly (readonly string[])[];
}

export interface PageShown {
  title: string;
  /** One line that says how things are. */
  summary: string;
  /** The heading of the cards. */
  cardsTitle: string;
  cards: readonly PageCard[];
  rows: readonly PageRow[];
  sections: readonly PageSection[];
  /** What could not be read. */
  problems: readonly string[];
  /** What else there is to do or to see. */
  actions: readonly PageAction[];
  /** The page is about to be drawn anew. */
  isBusy?: boolean;
}

export type ToActionPage = { type: 'page'; page: PageShown };

export type FromActionPage = { type: 'ready' } | { type: 'page_act'; id: string };
