/** Asks people on Discord with buttons that work once, for the people, the message and the time that they are meant for. */
import { newToken } from '@telos/engine/run';
import type { BotState } from './botState.ts';
import type { Gateway } from './gateway.ts';
import type { Button, Click, Post, Submission } from './handlers.ts';
import { plainText } from './messageText.ts';

/** How long a question waits, in milliseconds. */
const usualPatience = 5 * 60_000;

/** A button, and what a click on it means. With `form`, the click opens a form of that title, whose text is the answer. */
export interface Choice {
  label: string;
  style?: Button['style'];
  form?: string;
}

export interface Wanted {
  channel: string;
  post: Omit<Post, 'buttons'>;
  choices: readonly Choice[];
  /** Whose click counts. */
  mayAnswer(user: string): boolean;
  signal?: AbortSignal;
}

/** The choice that was clicked, and what was written if it has a form. */
export interface Answer {
  label: string;
  text?: string;
  user: string;
}

interface OpenQuestion {
  wanted: Wanted;
  /** Empty until Discord has taken it, which `posted` waits for: a click may be heard of before that. */
  message: string;
  posted: Promise<void>;
  until: number;
  answer: (answer: Answer | undefined) => void;
  timer: NodeJS.Timeout;
}

export class Questions {
  readonly #gateway: Pick<Gateway, 'post' | 'edit'>;
  readonly #kept: Pick<BotState, 'open' | 'over'>;
  readonly #patience: number;
  readonly #open = new Map<string, OpenQuestion>();

  constructor(
    gateway: Pick<Gateway, 'post' | 'edit'>,
    kept: Pick<BotState, 'open' | 'over'>,
    patience = usualPatience,
  ) {
    this.#gateway = gateway;
    this.#kept = kept;
    this.#patience = patience;
  }

  /**
   * Resolves to the answer, or undefined if there was none in time or the signal has aborted. Throws if the question cannot be put.
   */
  async ask(wanted: Wanted): Promise<Answer | undefined> {
    const { channel, post, choices, signal } = wanted;
    const token = newToken();
    const buttons = choices.map(({ label, style }, at) => ({
      id: `${token}.${at}`,
      label,
      ...(style && { style }),
    }));
    let settle: (answer: Answer | undefined) => void = () => {};
    const answered = new Promise<Answer | undefined>(resolve => {
      settle = resolve;
    });
    const until = performance.now() + this.#patience;
    const over = (): void => settle(undefined);
    const timer = setTimeout(over, this.#patience);
    const open: OpenQuestion = {
      wanted,
      message: '',
      posted: Promise.resolve(),
      until,
      answer: settle,
      timer,
    };
    this.#open.set(token, open);
    signal?.addEventListener('abort', over);
    try {
      if (signal?.aborted) return undefined;
      open.posted = this.#gateway.post(channel, { ...post, buttons }).then(message => {
        open.message = message;
      });
      await open.posted;
      this.#kept.open(channel, open.message);
      const answer = await answered;
      if (answer) this.#kept.over(open.message);
      else void this.#close(open);
      return answer;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', over);
      this.#open.delete(token);
    }
  }

  /** Waits for no answer any more. The next start takes the buttons away. */
  end(): void {
    for (const { timer } of this.#open.values()) clearTimeout(timer);
    this.#open.clear();
  }

  /** Takes the click, if it is one on a question. Everyone gets an answer; only the first click of the right person decides. */
  async click(click: Click): Promise<void> {
    const [token = '', at = ''] = click.button.split('.');
    await this.#open.get(token)?.posted.catch(() => undefined);
    const open = this.#open.get(token);
    const choice = open?.wanted.choices[Number(at)];
    if (!open || !choice || open.message !== click.message || performance.now() > open.until)
      return click.whisper({ content: 'This question is over. Nothing was decided by your click.' });
    if (!open.wanted.mayAnswer(click.user))
      return click.whisper({ content: 'This question is not yours to answer. Nothing was decided.' });
    if (choice.form !== undefined) return click.openForm(click.button, choice.form, 'Your answer');
    await this.#take(token, open, { label: choice.label, user: click.user }, click);
  }

  /** Takes what was written into the form of a question. */
  async submitted(submission: Submission): Promise<void> {
    const [token = '', at = ''] = submission.form.split('.');
    const open = this.#open.get(token);
    const choice = open?.wanted.choices[Number(at)];
    if (
      !open ||
      choice?.form === undefined ||
      performance.now() > open.until ||
      !open.wanted.mayAnswer(submission.user)
    )
      return submission.whisper({ content: 'This question is over. Your answer was not used.' });
    const answer = { label: choice.label, text: submission.text, user: submission.user };
    await this.#take(token, open, answer, submission);
  }

  async #take(
    token: string,
    open: OpenQuestion,
    answer: Answer,
    by: { update(post: Post): Promise<void> },
  ): Promise<void> {
    // At once, so that a second click finds nothing to decide.
    this.#open.delete(token);
    open.answer(answer);
    const { content } = open.wanted.post;
    const said = answer.text === undefined ? answer.label : plainText(answer.text, 60);
    await by
      .update({ content: `${content}\n**${said}**`, buttons: [] })
      .catch(() => this.#gateway.edit(open.wanted.channel, open.message, { content, buttons: [] }));
  }

  async #close({ wanted: { channel, post }, message }: OpenQuestion): Promise<void> {
    const content = `${post.content}\n**This question is over.**`;
    await this.#gateway.edit(channel, message, { content, buttons: [] }).catch(() => undefined);
    this.#kept.over(message);
  }
}
